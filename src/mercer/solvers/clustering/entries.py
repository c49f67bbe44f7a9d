"""Where the entries of K come from: a stored matrix, or the kernel anew each time."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np

from mercer._types import Array, Positions, Vector
from mercer.engine import tiles
from mercer.gram.protocol import GramMatrix
from mercer.loops.kmeans import add_moves
from mercer.solvers.clustering.means import Labels, changes, in_parts

# Sums of so many columns stay in the cache while rows are added to them.
_COLUMNS = 2048


class Entries(Protocol):
    """Products with K and with parts of it."""

    rounding: float

    def product(self, V: Vector) -> Vector:
        """``(K @ V)'``, (k, n), in float64."""
        ...

    def add(self, rows: Positions, before: Labels, after: Labels, weight: Vector, out: Vector) -> None:
        """Add what moves of rows change in the products (k, n) with the sums of clusters."""
        ...

    def columns(self, index: Positions) -> Vector:
        """Whole columns, (n, len(index))."""
        ...


class Stored:
    """Of a matrix in memory; sums in float64, whatever its precision."""

    def __init__(self, matrix: Array, n_jobs: int | None) -> None:
        self.matrix, self._n_jobs = matrix, n_jobs
        self.rounding = float(np.finfo(matrix.dtype).eps)

    def product(self, V: Vector) -> Vector:
        out = np.empty((V.shape[1], len(self.matrix)))

        def work(rows: slice) -> None:
            out[:, rows] = (self.matrix[rows].astype(np.float64, copy=False) @ V).T

        in_parts(work, len(self.matrix), tiles.TILE, self._n_jobs)
        return out

    def add(self, rows: Positions, before: Labels, after: Labels, weight: Vector, out: Vector) -> None:
        # Rows of the symmetric matrix in the place of columns, since they lie together in memory.
        def work(part: slice) -> None:
            add_moves(self.matrix[:, part], rows, before, after, weight, out[:, part])

        in_parts(work, len(self.matrix), _COLUMNS, self._n_jobs)

    def columns(self, index: Positions) -> Vector:
        return np.ascontiguousarray(self.matrix[index].T, dtype=np.float64)


class Evaluated:
    """Of the kernel, evaluated for every product and never held."""

    def __init__(self, gram: GramMatrix) -> None:
        self._gram = gram
        self.rounding = float(np.finfo(gram.dtype).eps)

    def product(self, V: Vector) -> Vector:
        return np.ascontiguousarray(np.asarray(self._gram @ V, dtype=np.float64).T)

    def add(self, rows: Positions, before: Labels, after: Labels, weight: Vector, out: Vector) -> None:
        out += (self._gram.restrict(None, rows) @ changes(before, after, weight, len(out))).T

    def columns(self, index: Positions) -> Vector:
        out: Any = np.empty((self._gram.shape[0], len(index)), self._gram.dtype)
        return np.asarray(self._gram.block(None, index, out=out), dtype=np.float64)
