"""What approximations for many rows are made of.

``landmarks``: randomly pivoted Cholesky, with many pivots at once and one at a time.
``estimate``: the seconds that :func:`mercer.estimate` predicts, and those of the fits.
``bounds``, ``bounds_cost``, ``restricted_cost``: certificates of fits over landmarks, see ``scale_bounds.py``.
``flights``: a table of three million rows from the command line; see ``scale_flights.py``.
``text_svc``, ``text_ridge``, ``columns``: linear kernels beside scikit-learn, see ``scale_linear.py``.
``svc``, ``dask``: a million rows exactly, and workers beside threads, see ``scale_machines.py``.
The others are fits to many rows: see ``scale_fits.py``.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import ExitStack
from typing import Any

import numpy as np

import scale_bounds
import scale_fits
import scale_flights
import scale_linear
import scale_machines
from harness import Row, in_turn
from mercer import SVC, KernelLogisticRegression, KernelPCA, KernelRidge, estimate
from mercer.gram import Gram
from mercer.gram.pivots import randomly_pivoted_cholesky
from mercer.kernels import RBF

TITLE = "Many rows"
N, D, LANDMARKS = 20_000, 10, 2_000
REPEATS = 3
GAIN = 5.0
# How far predicted seconds may be off.
WITHIN = 3.0


def accelerated(gram: Gram, m: int) -> float:
    """The trace that is left."""
    with ExitStack() as stack:
        return randomly_pivoted_cholesky(gram, m, np.random.RandomState(0), stack).residual_trace


def one_at_a_time(gram: Gram, m: int) -> float:
    """The same by the simple algorithm."""
    random, n = np.random.RandomState(0), gram.shape[0]
    rows, left = np.empty((m, n)), gram.diagonal()
    for r in range(m):
        pivot = int(random.choice(n, p=left / left.sum()))
        row = gram.block([pivot], None)[0] - rows[:r, pivot] @ rows[:r]
        rows[r] = row / np.sqrt(left[pivot])
        left = np.maximum(left - rows[r] ** 2, 0.0)
        left[pivot] = 0.0
    return float(left.sum())


def landmarks() -> list[Row]:
    """Landmarks of the largest sample that is looked at for them."""
    gram = Gram(RBF(np.sqrt(D)), np.random.default_rng(0).normal(size=(N, D)))
    left: dict[str, float] = {}
    cpu: dict[str, float] = {}

    def timed(name: str, factor: Callable[[Gram, int], float]) -> Callable[[], None]:
        def run() -> None:
            start = time.process_time()
            left[name] = factor(gram, LANDMARKS) / N
            cpu[name] = time.process_time() - start

        return run

    contenders = {"ours": timed("ours", accelerated), "peer": timed("peer", one_at_a_time)}
    times = in_turn(contenders, REPEATS, warm_up=lambda name: None)
    met = times["peer"] >= GAIN * times["ours"] and abs(left["ours"] / left["peer"] - 1) < 0.05
    note = (
        f"share of the trace left {left['ours']:.4f}, one at a time {left['peer']:.4f}; CPU seconds {cpu['ours']:.1f} "
        f"and {cpu['peer']:.1f}"
    )
    facts = {f"{name}_{what}": values[name] for what, values in (("cpu", cpu), ("left", left)) for name in values}
    case = f"{LANDMARKS:,} pivots of {N:,} rows, d = {D}"
    return [Row(case, "one pivot at a time", times["ours"], times["peer"], f">= {GAIN:g}", met, note, facts)]


def predicted() -> list[Row]:
    """CPU seconds of five fits, and what was predicted for one thread."""
    random = np.random.default_rng(0)
    X = random.normal(size=(40_000, D))
    y = np.sin(2 * X[:, 0]) + X[:, 1] * X[:, 2] + 0.3 * random.normal(size=len(X))
    options: dict[str, Any] = {"kernel": "rbf", "gamma": 1 / D, "n_jobs": 1}
    on_landmarks = {"approximation": "nystroem", "n_landmarks": 500, **options}
    fits: dict[str, tuple[Any, int, Any]] = {
        "KernelRidge, Cholesky": (KernelRidge(0.1, **options), 6_000, y),
        "KernelRidge, conjugate gradients": (KernelRidge(0.1, solver="cg", **options), 10_000, y),
        "KernelRidge, 500 landmarks": (KernelRidge(0.1, **on_landmarks), 40_000, y),
        "KernelLogisticRegression, 500 landmarks": (KernelLogisticRegression(**on_landmarks), 40_000, y > 0),
        "SVC": (SVC(**options), 15_000, y > 0),
        "KernelPCA": (KernelPCA(5, **options), 5_000, None),
    }
    rows = []
    for name, (model, n, target) in fits.items():
        arguments = (X[:n],) if target is None else (X[:n], target[:n])
        # Loops are compiled, or read from their cache, by the first fit.
        model.fit(*(part[:600] for part in arguments))
        expected = estimate(model, *arguments).seconds
        assert expected is not None
        start = time.process_time()
        model.fit(*arguments)
        taken = time.process_time() - start
        met = 1 / WITHIN <= taken / expected <= WITHIN
        case = f"{name}, {n:,} rows"
        demand = f"within a factor of {WITHIN:g}"
        rows.append(Row(case, "predicted", taken, expected, demand, met, "CPU seconds of one thread"))
    return rows


PARTS = {
    "landmarks": landmarks,
    "estimate": predicted,
    "flights": scale_flights.flights,
    **scale_fits.PARTS,
    **scale_bounds.PARTS,
    **scale_linear.PARTS,
    **scale_machines.PARTS,
}
