"""Decomposition: inner steps on a dense block of the kernel matrix, outer rounds that choose the block.

Source: Joachims (1999), "Making large-scale SVM learning practical"; Wen et al. (2018), "ThunderSVM", JMLR 19, for
large working sets of which half is kept from round to round.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from mercer.loops.smo import set_masks, smo_steps, subtract_rows
from mercer.solvers.free_set import newton_change
from mercer.solvers.iterate import Iterate
from mercer.solvers.problems import Array, GramMatrix, Vector
from mercer.solvers.row_store import RowStore

# A compiled call ends after about this many element updates (0.05 s), so that Ctrl-C is answered.
_CALL = 10**8
# The block is solved to this part of the violation that it began with.
_INNER = 0.1
# Steps for each row of a whole matrix before Newton steps are tried.
_ROUND = 4
# The most free rows for a Newton step: its cost grows with their cube.
NEWTON_ROWS = 2048
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
        point.beta[rows] = beta
        return beta - before


class Progress:
    """Notices when the dual objective has stopped growing."""

    def __init__(self, dtype: np.dtype) -> None:
        self._eps = float(np.finfo(dtype).eps)
        self._best, self._idle = -np.inf, 0

    def stalled(self, dual: float) -> bool:
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
    gram: GramMatrix, point: Iterate, tol: float, max_iter: int, size: int, limit: int, n_jobs: int | None
) -> int:
    """Move ``point`` until its violation is at most ``tol``, the steps are used up, or rounding stops it.

    Returns the bytes held for the block and the kept rows.
    """
    dtype = np.dtype(gram.dtype)
    block, progress = Block(size, dtype), Progress(dtype)
    K = np.empty((size, size), dtype)
    diagonal = gram.diagonal().astype(dtype, copy=False)
    rows = np.empty(0, dtype=np.intp)
    with RowStore(gram, limit, n_jobs) as store:
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
            if progress.stalled(point.dual()):
                break
        return K.nbytes + store.nbytes


def on_whole_matrix(K: Array, point: Iterate, tol: float, max_iter: int) -> None:
    """The same for a problem whose whole matrix is one block; the gradient is made anew after every round.

    Where a round of steps does not end it, Newton steps on the free weights follow.
    """
    block, progress = Block(len(K), K.dtype), Progress(K.dtype)
    diagonal = K.diagonal().copy()
    rows = np.arange(len(K))
    while point.violation() > tol and point.steps < max_iter and resolves(K.dtype, diagonal, point, tol):
        portion = min(_ROUND * len(K), max_iter - point.steps)
        change = block.solve(K, diagonal, point, rows, 0.9 * tol, portion)
        moved = np.flatnonzero(change)
        subtract_rows(point.F, K, moved, change[moved])
        if point.violation() > tol:
            free = np.flatnonzero(point.may_rise & point.may_fall)
            if 2 <= len(free) <= NEWTON_ROWS:
                newton_round(K[np.ix_(free, free)], point, free, lambda c: subtract_rows(point.F, K, free, c))
        if progress.stalled(point.dual()):
            return


def newton_round(K: Array, point: Iterate, free: np.ndarray, subtract: Callable[[Vector], None]) -> None:
    """Newton steps on the ``free`` rows; ``subtract`` takes their change to the gradient of all rows."""
    change = newton_change(K, point.F[free], point.beta[free], point.lower[free], point.upper[free])
    # Set, not added, so that a weight at its bound is exactly there.
    moved = np.clip(point.beta[free] + change, point.lower[free], point.upper[free])
    subtract(moved - point.beta[free])
    point.beta[free] = moved
    point.steps += 1


def resolves(dtype: np.dtype, diagonal: Array, point: Iterate, tol: float) -> bool:
    """Whether gradients in this precision can tell a violation of ``tol`` from rounding."""
    rounding = 0.5 * float(np.finfo(dtype).eps) * float(np.abs(diagonal).max()) * float(np.linalg.norm(point.beta))
    return rounding <= tol
