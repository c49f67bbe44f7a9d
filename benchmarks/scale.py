"""What approximations for many rows are made of.

``landmarks``: randomly pivoted Cholesky, with many pivots at once and one at a time.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import ExitStack

import numpy as np

from harness import Row, in_turn
from mercer.gram import Gram
from mercer.gram.pivots import randomly_pivoted_cholesky
from mercer.kernels import RBF

TITLE = "Many rows"
N, D, LANDMARKS = 20_000, 10, 2_000
REPEATS = 3
GAIN = 5.0


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


PARTS = {"landmarks": landmarks}
