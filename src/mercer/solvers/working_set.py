"""Decomposition: inner steps on a dense block of the kernel matrix, outer rounds that choose the block.

Source: Joachims (1999), "Making large-scale SVM learning practical"; Wen et al. (2018), "ThunderSVM", JMLR 19, for
large working sets of which half is kept from round to round.
"""

from __future__ import annotations

import numpy as np

from mercer.loops.smo import set_masks, smo_steps
from mercer.solvers.iterate import Iterate
from mercer.solvers.problems import Array, GramMatrix
from mercer.solvers.row_store import RowStore

# A compiled call ends after about this many element updates (0.05 s), so that Ctrl-C is answered.
_CALL = 10**8
# The block is solved to this part of the violation that it began with.
_INNER = 0.1
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


def select(point: Iterate, size: int, previous: np.ndarray) -> np.ndarray:
    """The next working set: up to half from ``previous``, the rest the worst violators of either side."""
    rising = np.where(point.may_rise, point.F, -np.inf)
    falling = np.where(point.may_fall, -point.F, -np.inf)
    kept = previous[: size // 2]
    rising[kept] = falling[kept] = -np.inf
    each = (size - len(kept)) // 2
    top = _largest(rising, each)
    falling[top] = -np.inf
    return np.concatenate([top, _largest(falling, each), kept])


def _largest(values: np.ndarray, count: int) -> np.ndarray:
    """Indices of the ``count`` largest finite values, in ascending order of the index."""
    found = np.argpartition(values, -count)[-count:] if count < len(values) else np.arange(len(values))
    return np.sort(found[values[found] > -np.inf])


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
        while (gap := point.violation()) > tol and point.steps < max_iter:
            rows = select(point, size, rows)
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
    """The same for a problem whose whole matrix is one block; the gradient is made anew after every round."""
    block, progress = Block(len(K), K.dtype), Progress(K.dtype)
    diagonal = K.diagonal().copy()
    rows = np.arange(len(K))
    while point.violation() > tol and point.steps < max_iter:
        change = block.solve(K, diagonal, point, rows, 0.9 * tol, max_iter - point.steps)
        moved = np.flatnonzero(change)
        point.F -= change[moved] @ K[moved].astype(np.float64)
        if progress.stalled(point.dual()):
            return
