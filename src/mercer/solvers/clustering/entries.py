"""Where the entries of K come from: a stored matrix, or the kernel anew each time."""

from __future__ import annotations

from typing import Any

import numpy as np

from mercer._types import Positions, Vector
from mercer.gram.protocol import GramMatrix
from mercer.loops.kmeans import add_moves
from mercer.solvers.clustering.means import Labels, changes, in_parts

# Sums of this many columns stay in the cache while rows are added to them.
_COLUMNS = 2048


class Entries:
    """Products with K and with parts of it, in float64: of a stored array, else of entries that are evaluated anew.

    Parameters
    ----------
    gram : GramMatrix
        K, symmetric, (n, n).
    n_jobs : int, optional
    """

    def __init__(self, gram: GramMatrix, n_jobs: int | None = None) -> None:
        self._gram, self._n_jobs = gram, n_jobs
        self._array = gram.stored_array()
        self.rounding = float(np.finfo(gram.dtype).eps)

    def product(self, V: Vector) -> Vector:
        """``(K @ V)'``, (k, n)."""
        return np.ascontiguousarray(np.asarray(self._gram @ V, dtype=np.float64).T)

    def add(self, rows: Positions, before: Labels, after: Labels, weight: Vector, out: Vector) -> None:
        """Add what moves of rows change in the products (k, n) with the sums of clusters."""
        array = self._array
        if array is None:
            out += (self._gram.restrict(None, rows) @ changes(before, after, weight, len(out))).T
            return

        # Rows of the symmetric matrix in the place of columns, since they lie together in memory.
        def work(part: slice) -> None:
            add_moves(array[:, part], rows, before, after, weight, out[:, part])

        in_parts(work, len(array), _COLUMNS, self._n_jobs)

    def columns(self, index: Positions) -> Vector:
        """Whole columns, (n, len(index))."""
        if self._array is not None:
            return np.ascontiguousarray(self._array[index].T, dtype=np.float64)
        out: Any = np.empty((self._gram.shape[0], len(index)), self._gram.dtype)
        return np.asarray(self._gram.block(None, index, out=out), dtype=np.float64)
