"""Random settings against scikit-learn with the same parameters: fits and predictions by the number of rows.

``python benchmarks/race.py 40 [seed]`` runs 40 settings instead of 150, and prints each of them.
"""

from __future__ import annotations

import math
import sys
import time
import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn import decomposition, gaussian_process, kernel_ridge, svm
from sklearn.gaussian_process import kernels

import mercer
from harness import Row

TITLE = "Random settings, fits and predictions, RBF"
SETTINGS = 150
ROWS, COLUMNS = (30, 6000), (2, 400)
GROUPS = (100, 300, 1000, 3000, ROWS[1] + 1)
# The geometric mean, the share of settings that may be slower, and the worst.
DEMANDS = {"fit": (2.0, 0.1, 0.7), "predict": (4.0, 0.1, 0.0)}
# Repeats of one setting: seconds of each side, and the most.
SECONDS, MOST = 0.2, 15


@dataclass(frozen=True)
class Setting:
    """A learner of both libraries, and its data; ``ratios`` are scikit-learn's seconds over Mercer's."""

    name: str
    n: int
    d: int
    ratios: dict[str, float]


def contenders(name: str, n: int, d: int, rng: np.random.Generator) -> tuple[Any, Any]:
    """The learner of Mercer and that of scikit-learn, with the same parameters."""
    rate, C = float(10 ** rng.uniform(-1, 0.5)) / d, float(10 ** rng.uniform(-1, 2))
    options: dict[str, Any] = {"gamma": rate}
    if name == "GaussianProcessRegressor":
        scale = math.sqrt(0.5 / rate)
        theirs = gaussian_process.GaussianProcessRegressor(kernels.RBF(scale), alpha=0.1, optimizer=None)
        return mercer.GaussianProcessRegressor(mercer.kernels.RBF(scale), alpha=0.1, optimizer=None), theirs
    if name in ("SVC", "SVR", "NuSVR"):
        options["C"] = C
    if name in ("NuSVC", "NuSVR", "OneClassSVM"):
        options["nu"] = float(rng.uniform(0.05, 0.5))
    if name == "KernelRidge":
        options |= {"kernel": "rbf", "alpha": 1 / C}
    if name == "KernelPCA":
        options |= {"kernel": "rbf", "n_components": int(rng.integers(2, 11))}
    module = {"KernelRidge": kernel_ridge, "KernelPCA": decomposition}.get(name, svm)
    return getattr(mercer, name)(**options), getattr(module, name)(**options)


NAMES = ("SVC", "NuSVC", "SVR", "NuSVR", "OneClassSVM", "KernelRidge", "KernelPCA", "GaussianProcessRegressor")


def setting(name: str, rng: np.random.Generator) -> Setting:
    """Draw the data and the parameters, and time both sides in turn: the least of some repeats, warm."""
    n, d = (round(math.exp(rng.uniform(*np.log(bounds)))) for bounds in (ROWS, COLUMNS))
    X = rng.normal(size=(2 * n, d)) * np.linspace(1.0, 0.1, d)
    f = np.sin(2 * X[:, 0]) + X[:, 1] + 0.3 * rng.normal(size=2 * n)
    y = (f > 0).astype(int) if name.endswith("SVC") else f
    ratios = {}
    ours, theirs = contenders(name, n, d, rng)
    call = "transform" if name == "KernelPCA" else "predict"
    for what, of in (
        ("fit", lambda model: lambda: model.fit(X[:n], y[:n])),
        ("predict", lambda model: lambda: getattr(model, call)(X[n:])),
    ):
        least = [math.inf, math.inf]
        start, turn = time.perf_counter(), 0
        # The first repeat warms up both sides, and does not count if there are others.
        while turn < 2 or (turn < MOST and time.perf_counter() - start < 2 * SECONDS):
            for side, model in enumerate((ours, theirs)):
                begin = time.perf_counter()
                of(model)()
                least[side] = min(least[side], time.perf_counter() - begin)
            turn += 1
        ratios[what] = least[1] / least[0]
    return Setting(name, n, d, ratios)


def race(settings: int, seed: int = 0, *, tell: bool = False) -> list[Setting]:
    """Run so many settings; the same seed draws the same ones."""
    out = []
    warnings.simplefilter("ignore")
    for i, rng in enumerate(np.random.default_rng(seed).spawn(settings)):
        out.append(setting(NAMES[i % len(NAMES)], rng))
        if tell:
            s = out[-1]
            print(f"{s.name} {s.n} x {s.d}: " + ", ".join(f"{k} {v:.2f}" for k, v in s.ratios.items()), flush=True)
    return out


def rows_of(settings: list[Setting]) -> list[Row]:
    """One row of the table for each group of sizes, and one for all."""
    out = []
    for what, (mean, slower, least) in DEMANDS.items():
        bounds = [(low, high) for low, high in zip((0, *GROUPS), GROUPS, strict=False)]
        for low, high in (*bounds, (0, GROUPS[-1])):
            group = [s for s in settings if low <= s.n < high]
            if not group:
                continue
            ratios = np.array([s.ratios[what] for s in group])
            average, share = float(np.exp(np.log(ratios).mean())), float((ratios < 1).mean())
            worst = group[int(ratios.argmin())]
            note = (
                f"{average:.2f} x scikit-learn's speed, slower in {100 * share:.0f} %, worst {ratios.min():.2f} "
                f"({worst.name}, {worst.n} x {worst.d})"
            )
            met = average >= mean and share <= slower and ratios.min() >= least
            facts = {"mean": average, "slower": share, "worst": float(ratios.min())}
            case = f"{what}, {len(group)} settings, {low} <= n < {high}"
            demand = f">= {mean:g} x, slower in <= {100 * slower:.0f} %, none below {least:g} x"
            out.append(Row(case, "scikit-learn", None, None, demand, bool(met), note, facts))
    return out


def run() -> list[Row]:
    """All rows of the section."""
    return rows_of(race(SETTINGS))


if __name__ == "__main__":
    number, *rest = [int(argument) for argument in sys.argv[1:]] or [SETTINGS]
    for row in rows_of(race(number, *rest, tell=True)):
        print(f"{row.case}: {row.note}")
