"""Where the entries of K come from: a stored matrix, or the kernel anew each time."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

import numpy as np

from mercer.engine import threads, tiles
from mercer.loops.kmeans import add_moves
from mercer.solvers.clustering.means import Index, Labels, changes
from mercer.solvers.matrix import Array, GramMatrix, Vector


class Entries(Protocol):
    """Products with K and with parts of it."""

    rounding: float
    cost: float

    def product(self, V: Vector) -> Vector:
        """``K @ V``, in float64."""
        ...

    def moves(self, rows: Index, columns: Index, before: Labels, after: Labels, weight: Vector, k: int) -> Vector:
        """What moves of the rows ``columns`` add to the products of ``rows`` with the sums, (len(rows), k)."""
        ...

    def columns(self, index: Index) -> Vector:
        """Whole columns, (n, len(index))."""
        ...


class Stored:
    """Of a matrix in memory; sums in float64, whatever its precision.

    ``cost`` is the number of entries of a whole product.
    """

    def __init__(self, matrix: Array, n_jobs: int | None) -> None:
        self.matrix, self._n_jobs = matrix, n_jobs
        self.rounding = float(np.finfo(matrix.dtype).eps)
        self.cost = float(matrix.size)

    def product(self, V: Vector) -> Vector:
        out = np.empty((len(self.matrix), V.shape[1]))

        def work(rows: slice) -> None:
            out[rows] = self.matrix[rows].astype(np.float64, copy=False) @ V

        self._by_rows(work, len(out))
        return out

    def moves(self, rows: Index, columns: Index, before: Labels, after: Labels, weight: Vector, k: int) -> Vector:
        out = np.zeros((len(rows), k))

        def work(part: slice) -> None:
            add_moves(self.matrix, rows[part], columns, before, after, weight, out[part])

        self._by_rows(work, len(out))
        return out

    def columns(self, index: Index) -> Vector:
        # The matrix is symmetric, and rows lie together in memory.
        return np.ascontiguousarray(self.matrix[index].T, dtype=np.float64)

    def _by_rows(self, work: Callable[[slice], None], n: int) -> None:
        threads.run([lambda part=part: work(part) for part in tiles.spans(n)], self._n_jobs)  # type: ignore[misc]


class Evaluated:
    """Of the kernel, evaluated for every product and never held."""

    def __init__(self, gram: GramMatrix) -> None:
        self._gram = gram
        self.rounding = float(np.finfo(gram.dtype).eps)
        # Of a symmetric product, half of the entries.
        self.cost = 0.5 * float(gram.shape[0]) ** 2

    def product(self, V: Vector) -> Vector:
        return np.asarray(self._gram @ V, dtype=np.float64)

    def moves(self, rows: Index, columns: Index, before: Labels, after: Labels, weight: Vector, k: int) -> Vector:
        part = self._gram.restrict(rows, rows if rows is columns else columns)
        return np.asarray(part @ changes(before, after, weight, k), dtype=np.float64)

    def columns(self, index: Index) -> Vector:
        out: Any = np.empty((self._gram.shape[0], len(index)), self._gram.dtype)
        return np.asarray(self._gram.block(None, index, out=out), dtype=np.float64)
