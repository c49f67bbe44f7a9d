"""Decomposition: inner steps on a dense block of the kernel matrix, outer rounds that choose the block.

Source: Joachims (1999), "Making large-scale SVM learning practical"; Wen et al. (2018), "ThunderSVM", JMLR 19, for
large working sets of which half is kept from round to round.
"""

from __future__ import annotations

import numpy as np

from mercer.engine import memory, threads
from mercer.engine.progress import Progress
from mercer.loops.smo import set_masks, smo_steps, subtract_rows
from mercer.solvers.free_set import newton_change
from mercer.solvers.interior import interior_point
from mercer.solvers.iterate import Iterate
from mercer.solvers.problems import Array, GramMatrix
from mercer.solvers.row_store import RowStore

# A compiled call ends after about this many element updates (0.05 s), so that Ctrl-C is answered.
_CALL = 10**8
# The block is solved to this part of the violation that it began with.
_INNER = 0.1
# Steps for each row of a whole matrix before Newton steps are tried.
_ROUND = 4
# The most free rows for a Newton step: its cost grows with their cube.
_NEWTON_ROWS = 512
# Steps for each row of a whole matrix after which pairs of weights are said to crawl.
_CRAWL = 100
# Rounds without progress beyond rounding after which a solve is given up as stalled.
_PATIENCE = 20


class Block:
    """Work arrays for inner steps on at most ``size`` rows."""

    def __init__(self, size: int, dtype: np.dtype) -> None:
        self.dtype = np.dtype(dtype)
        self._F, self._rise, self._fall, self._work = np.empty((4, size), self.dtype)
        self._bits = self._work.view(f"i{self.dtype.itemsize}")

    def solve(
        self, K: Array, diagonal: Array, point: Iterate, rows: np.ndarray, tolerance: float, max_steps: int
    ) -> np.ndarray:
        """Improve ``point.beta[rows]`` in place until the violation within ``rows`` is small; returns the change."""
        q = len(rows)
        F, rise, fall, work, bits = self._F[:q], self._rise[:q], self._fall[:q], self._work[:q], self._bits[:q]
        F[:] = point.F[rows]
        before = point.beta[rows]
        beta, lower, upper = before.copy(), point.lower[rows], point.upper[rows]
        set_masks(beta, lower, upper, rise, fall)
        least = float(np.finfo(self.dtype).eps * max(diagonal.max(), np.finfo(np.float32).tiny))
        while max_steps > 0:
            portion = min(max_steps, max(_CALL // q, 100))
            steps, _ = smo_steps(
                K, diagonal, F, beta, lower, upper, rise, fall, work, bits, tolerance, least, portion
            )
            point.steps += steps
            max_steps -= steps
            if steps < portion:
                break
            threads.checkpoint()
        if not np.isfinite(F).all():
            # A row of the block that was used is not finite. The caller tries float64, or raises.
            point.F[rows] = np.nan
            return np.zeros(q)
        point.beta[rows] = beta
        return beta - before


class Stall:
    """Notices when the dual objective has stopped growing."""

    def __init__(self, dtype: np.dtype) -> None:
        self._eps = float(np.finfo(dtype).eps)
        self._best, self._idle = -np.inf, 0

    def reached(self, dual: float) -> bool:
        """Whether the last rounds together did not raise the objective by more than rounding."""
        if dual > self._best + self._eps * abs(dual):
            self._best, self._idle = dual, 0
        else:
            self._idle += 1
        return self._idle >= _PATIENCE


def select(rising: np.ndarray, falling: np.ndarray, size: int, previous: np.ndarray) -> np.ndarray:
    """The next working set: up to half from ``previous``, the rest the worst violators of either side.

    ``rising`` and ``falling`` are the sides of the iterate; they are overwritten.
    """
    # Only rows that violate with the best of the other side can take part in a step.
    least_rising, least_falling = -falling.max(), -rising.max()
    kept = previous[: size // 2]
    rising[kept] = falling[kept] = -np.inf
    each = (size - len(kept)) // 2
    top = _largest(rising, least_rising, each)
    falling[top] = -np.inf
    return np.concatenate([top, _largest(falling, least_falling, each), kept])


def _largest(values: np.ndarray, least: float, count: int) -> np.ndarray:
    """Indices of the ``count`` largest values above ``least``, in ascending order of the index.

    Without the rows that are masked by -inf: the partition takes quadratic time over many equal values.
    """
    found = np.flatnonzero(values > least)
    if len(found) > count:
        found = np.sort(found[np.argpartition(values[found], -count)[-count:]])
    return found


def by_working_sets(
    gram: GramMatrix, point: Iterate, tol: float, max_iter: int, size: int, limit: int, n_jobs: int | None,
    verbose: bool,
) -> int:  # fmt: skip
    """Move ``point`` until its violation is at most ``tol``, the steps are used up, or rounding stops it.

    Returns the bytes held for the block and the kept rows.
    """
    dtype = np.dtype(gram.dtype)
    block, stall = Block(size, dtype), Stall(dtype)
    K = np.empty((size, size), dtype)
    progress = Progress(None, "working sets", verbose)
    diagonal = gram.diagonal().astype(dtype, copy=False)
    rows = np.empty(0, dtype=np.intp)
    with memory.reserve(K.nbytes, "the kernel block of a working set"), RowStore(gram, limit, n_jobs) as store:
        while point.steps < max_iter:
            rising, falling = point.sides()
            gap = rising.max() + falling.max()
            if not gap > tol or not resolves(dtype, diagonal, point, tol):
                break
            rows = select(rising, falling, size, rows)
            square = K.reshape(-1)[: len(rows) ** 2].reshape(len(rows), len(rows))
            gram.block(rows, rows, out=square)
            inner = max(_INNER * gap, 0.5 * tol)
            change = block.solve(square, diagonal[rows], point, rows, inner, max_iter - point.steps)
            moved = np.flatnonzero(change)
            store.subtract(point.F, rows[moved], change[moved])
            progress.advance()
            if stall.reached(point.dual()):
                break
        return K.nbytes + store.nbytes


def on_whole_matrix(K: Array, point: Iterate, tol: float, max_iter: int) -> None:
    """The same for a problem whose whole matrix is one block; the gradient is made anew after every round.

    Where a round of steps does not end it, Newton steps on the free weights follow; where many do not, an interior
    point method (in float64; in float32 the point is left to a solve in float64).
    """
    block, stall = Block(len(K), K.dtype), Stall(K.dtype)
    diagonal = K.diagonal().copy()
    rows = np.arange(len(K))
    crawls = point.steps + _CRAWL * len(K)
    while point.violation() > tol and point.steps < max_iter and resolves(K.dtype, diagonal, point, tol):
        portion = min(_ROUND * len(K), max_iter - point.steps)
        change = block.solve(K, diagonal, point, rows, 0.9 * tol, portion)
        moved = np.flatnonzero(change)
        subtract_rows(point.F, K, moved, change[moved])
        if point.violation() > tol and point.steps < max_iter:
            _newton_round(K, point)
        if point.steps >= crawls:
            if K.dtype == np.float32:
                return
            _interior_round(K, point)
            crawls = max_iter
        if stall.reached(point.dual()):
            return


def _newton_round(K: Array, point: Iterate) -> None:
    free = np.flatnonzero(point.may_rise & point.may_fall)
    if not 2 <= len(free) <= _NEWTON_ROWS:
        return
    before = point.beta[free]
    change = newton_change(K[np.ix_(free, free)], point.F[free], before, point.lower[free], point.upper[free])
    point.beta[free] = np.clip(before + change, point.lower[free], point.upper[free])
    subtract_rows(point.F, K, free, point.beta[free] - before)
    point.steps += 1


def _interior_round(K: Array, point: Iterate) -> None:
    """Take the interior point method's answer if it is the better one."""
    beta = interior_point(K, point.linear, point.lower, point.upper, float(point.beta.sum()))
    F = point.linear - K @ beta
    if 0.5 * (beta @ (point.linear + F)) > point.dual():
        point.beta, point.F = beta, F
    point.steps += 1


def resolves(dtype: np.dtype, diagonal: Array, point: Iterate, tol: float) -> bool:
    """Whether gradients in this precision can tell a violation of ``tol`` from rounding."""
    rounding = 0.5 * float(np.finfo(dtype).eps) * float(np.abs(diagonal).max()) * float(np.linalg.norm(point.beta))
    # A NaN goes on, to be found where the block is made.
    return not rounding > tol
