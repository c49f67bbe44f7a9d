"""Time and memory of support vector machines against the number of rows, inside a budget of 8 GiB.

Each fit runs in a process of its own (on Linux), whose peak of resident memory is that of the whole process: data,
libraries and all. Mercer and scikit-learn-intelex are given float32, scikit-learn float64.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.datasets import make_classification
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC as LibSVC
from sklearnex.svm import SVC as IntelexSVC

import mercer
from harness import SLOW, Row, data_folder, peak_so_far, seconds_of, tell
from mercer import SVC, OneClassSVM
from svm_data import SETTINGS, read
from svr import NU, shuttle

TITLE = "Growth of SVC.fit with n, RBF, tol = 1e-3, memory budget 8 GiB, cache_size = 2000; a process for each fit"
SIZES = (5_000, 10_000, 20_000, 40_000, 80_000, 140_000)
MADE = 300_000
BUDGET = 8 * 2**30
PEERS = {"scikit-learn-intelex": IntelexSVC, "scikit-learn": LibSVC}
# Seconds that a peer may take, and what its process may take besides.
_LIMIT, _START = 120.0, 30.0
_WARM_UP_ROWS = 1000
_KERNELS = {"tol": 1e-3, "cache_size": 2000}


def problem(name: str, n: int, folder: Path) -> tuple[np.ndarray, np.ndarray, dict[str, Any]]:
    """Rows, labels and parameters."""
    if name == "ijcnn1":
        X, y, _ = read(folder, "classification", name)
        rows = np.random.default_rng(0).permutation(len(X))[:n]
        return X[rows], y[rows], {"C": SETTINGS[name].C, "gamma": SETTINGS[name].gamma}
    if name == "shuttle":
        X = shuttle(folder)
        return X, np.zeros(len(X)), {"nu": NU, "gamma": "scale"}
    X, y = make_classification(
        n_samples=n, n_features=20, n_informative=10, n_clusters_per_class=4, flip_y=0.01, class_sep=2.0, random_state=0
    )
    return StandardScaler().fit_transform(X), y, {"C": 1.0, "gamma": 1 / 20}


def fit_here(contender: str, name: str, n: int, folder: Path) -> dict[str, float]:
    """Fit in this process: median seconds of three runs (of one, if slow), peak memory, certificate."""
    X, y, options = problem(name, n, folder)
    X = X.astype(np.float64 if contender == "scikit-learn" else np.float32)
    kind = PEERS.get(contender) or (OneClassSVM if name == "shuttle" else SVC)
    model = kind(**options, **_KERNELS)
    mercer.config(memory=BUDGET)
    model.fit(X[:_WARM_UP_ROWS], y[:_WARM_UP_ROWS])
    seconds = [seconds_of(lambda: model.fit(X, y))]
    while len(seconds) < 3 and seconds[0] <= SLOW:
        seconds.append(seconds_of(lambda: model.fit(X, y)))
    result = {"seconds": statistics.median(seconds), "peak_bytes": float(peak_so_far()), "rows": float(len(X))}
    if contender == "Mercer":
        certificate = model.certificate_
        result |= {"relative_gap": float(certificate.relative_gap), "violation": float(certificate.kkt_violation)}
    return result | {"n_support": float(len(model.support_))}


def fit_apart(contender: str, name: str, n: int, limit: float | None = None) -> dict[str, float] | None:
    """The same in a process of its own; None if it takes longer than ``limit``."""
    tell(f"  {contender}, {name}, n = {n:,}")
    command = [sys.executable, str(Path(__file__).resolve()), contender, name, str(n)]
    try:
        process = subprocess.run(
            command, stdout=subprocess.PIPE, text=True, check=True, timeout=None if limit is None else limit + _START
        )
    except subprocess.TimeoutExpired:
        return None
    return json.loads(process.stdout)


def growth(sizes: tuple[int, ...] = SIZES) -> list[Row]:
    """A row for each size and peer, and the exponents. A peer that took too long is not asked again."""
    times: dict[str, dict[int, float]] = {name: {} for name in ("Mercer", *PEERS)}
    rows, left = [], list(PEERS)
    for n in sizes:
        ours = fit_apart("Mercer", "ijcnn1", n)
        times["Mercer"][n] = ours["seconds"]
        for peer in PEERS:
            theirs = fit_apart(peer, "ijcnn1", n, _LIMIT) if peer in left else None
            if theirs is None:
                left = [other for other in left if other != peer]
            else:
                times[peer][n] = theirs["seconds"]
            rows.append(_row(f"ijcnn1, n = {n:,}", peer, ours, theirs))
    return [*rows, *(_exponents(times["Mercer"], peer, times[peer]) for peer in PEERS)]


def _row(case: str, peer: str, ours: dict[str, float], theirs: dict[str, float] | None) -> Row:
    note = f"peak {_gib(ours)}, {ours['n_support']:,.0f} support vectors, gap {ours['relative_gap']:.0e}"
    facts = {"n": ours["rows"], **ours}
    if theirs is not None:
        note += f"; {peer}: peak {_gib(theirs)}"
        facts["peer_peak_bytes"] = theirs["peak_bytes"]
    elif peer:
        note += f"; {peer} takes over {_LIMIT / 60:g} minutes"
    met = ours["peak_bytes"] <= BUDGET and ours["violation"] <= _KERNELS["tol"]
    return Row(case, peer, ours["seconds"], theirs and theirs["seconds"], "inside 8 GiB", met, note, facts)


def _gib(result: dict[str, float]) -> str:
    return f"{result['peak_bytes'] / 2**30:.2f} GiB"


def _exponents(ours: dict[int, float], peer: str, theirs: dict[int, float]) -> Row:
    facts = {"exponent": slope(ours)}
    note = f"Mercer n^{slope(ours):.2f}"
    if len(theirs) > 1:
        facts |= {"peer_exponent": slope(theirs), "exponent_there": slope({n: ours[n] for n in theirs})}
        note += f", up to n = {max(theirs):,} n^{facts['exponent_there']:.2f} and {peer} n^{facts['peer_exponent']:.2f}"
    return Row("ijcnn1: time grows as", peer, None, None, "reported", True, note, facts)


def slope(times: dict[int, float]) -> float:
    """The exponent of the power of n that fits the times best: least squares of the logarithms."""
    return float(np.polyfit(np.log(list(times)), np.log(list(times.values())), 1)[0])


def run() -> list[Row]:
    """All rows of the section; none where the data are missing."""
    if data_folder() is None:
        return []
    rows = growth()
    for case, name in (("OneClassSVM, shuttle", "shuttle"), ("made, d = 20", "made")):
        ours = fit_apart("Mercer", name, MADE)
        rows.append(_row(f"{case}, n = {ours['rows']:,.0f}", "", ours, None))
    return rows


if __name__ == "__main__":
    contender_name, problem_name, rows_asked = sys.argv[1:]
    where = data_folder()
    if where is None:
        raise SystemExit(2)
    print(json.dumps(fit_here(contender_name, problem_name, int(rows_asked), where)))
