"""Explicit features F, (n, p), of a kernel matrix ``K = F F^T``, where they are fewer than the rows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import numpy as np
import scipy.sparse as sp

from mercer._types import Matrix, Positions, Vector
from mercer.engine import lapack, threads
from mercer.engine.tiles import spans
from mercer.loops.sparse_products import add_curved_rows, add_rows, add_squared_entries, multiply_rows, square_rows
from mercer.loops.sparse_rows import SparseRows

# Rows in a task: few enough for a float64 copy of dense ones to stay in the cache.
_SPAN = 4096
# Entries of dense rows that are read twice: they stay in the cache.
_ENTRIES = 2**17
# A sum over the rows has at most this many parts, whatever the number of threads, so that its bits are always the same.
_PARTS = 16
# Up to this many entries one thread is as fast as several.
_ALONE = 2**20
FEATURES_STORAGE = "explicit features in its place"
"""The sentence on the kernel matrix in certificates."""


@dataclass(frozen=True, eq=False)
class ExplicitFeatures:
    """F with ``K = F F^T``; sums are in float64 and have the same bits for any number of threads.

    Parameters
    ----------
    matrix : ndarray or csr_matrix of shape (n, p)
        C-ordered, of float32 or float64.
    is_copy : bool, default=False
        Whether the matrix takes memory beside the data.

    Examples
    --------
    >>> F = ExplicitFeatures(np.array([[1.0, 2.0], [3.0, 4.0]]))
    >>> (F @ np.ones((2, 1))).ravel().tolist(), F.pull(np.ones((2, 1))).ravel().tolist()
    ([3.0, 7.0], [4.0, 6.0])
    >>> np.triu(F.square()).tolist()
    [[10.0, 14.0], [0.0, 20.0]]
    """

    matrix: Any
    is_copy: bool = False

    @property
    def shape(self) -> tuple[int, int]:
        """Rows n and features p."""
        n, p = self.matrix.shape
        return int(n), int(p)

    @property
    def is_sparse(self) -> bool:
        return bool(sp.issparse(self.matrix))

    @property
    def entries(self) -> int:
        """How many numbers a product reads."""
        return int(self.matrix.nnz if self.is_sparse else self.matrix.size)

    @property
    def nbytes(self) -> int:
        """The memory that the features take beside the data."""
        per_entry = self.matrix.dtype.itemsize + (4 if self.is_sparse else 0)
        return per_entry * self.entries if self.is_copy else 0

    @cached_property
    def rows(self) -> SparseRows:
        """The rows of sparse features, for loops."""
        return SparseRows(self.matrix.indptr, self.matrix.indices, self.matrix.data)

    def __matmul__(self, V: Matrix) -> Matrix:
        """``F V`` for V of shape (p, k)."""
        n = self.shape[0]
        out = np.empty((V.shape[1], n)) if self.is_sparse else np.empty((n, V.shape[1]))
        columns = np.ascontiguousarray(V.T)

        def strip(part: slice) -> None:
            threads.checkpoint()
            if self.is_sparse:
                for v, target in zip(columns, out, strict=True):
                    multiply_rows(self.rows, part.start, part.stop, v, target)
            else:
                np.matmul(self._dense(part), V, out=out[part])

        self._run(strip, spans(n, _SPAN))
        return np.ascontiguousarray(out.T) if self.is_sparse else out

    def pull(self, U: Matrix) -> Matrix:
        """``F^T U`` for U of shape (n, k), (p, k)."""
        columns = np.ascontiguousarray(U.T)

        def strip(part: slice, target: Matrix) -> None:
            if self.is_sparse:
                for u, total in zip(columns, target, strict=True):
                    add_rows(self.rows, part.start, part.stop, u, total)
            else:
                target += columns[:, part] @ self._dense(part)

        return self._sum(strip, len(columns))

    def curve(self, V: Matrix, weights: Vector | None = None) -> Matrix:
        """``F^T W F V`` for V of shape (p, k), (p, k); each row is read once."""
        columns, w = np.ascontiguousarray(V.T), np.ones(self.shape[0]) if weights is None else weights

        def strip(part: slice, target: Matrix) -> None:
            if self.is_sparse:
                for v, total in zip(columns, target, strict=True):
                    add_curved_rows(self.rows, part.start, part.stop, w, v, total)
            else:
                A = self._dense(part)
                target += (w[part] * (columns @ A.T)) @ A

        return self._sum(strip, len(columns))

    def _sum(self, strip: Callable[[slice, Matrix], None], k: int) -> Matrix:
        """A sum over all rows, (p, k): ``strip`` adds that of some rows to an array (k, p)."""
        n, p = self.shape
        parts = _parts(n)
        sums = np.zeros((len(parts), k, p))
        length = _SPAN if self.is_sparse else max(1, _ENTRIES // max(p, 1))

        def work(number: int) -> None:
            part = parts[number]
            for span in spans(part.stop - part.start, length):
                threads.checkpoint()
                strip(slice(part.start + span.start, part.start + span.stop), sums[number])

        self._run(work, list(range(len(parts))))
        return np.ascontiguousarray(sums.sum(axis=0).T)

    def squared_norms(self) -> Vector:
        """``K_ii``, (n,)."""
        if self.is_sparse:
            out = np.empty(self.shape[0])
            square_rows(self.rows, out)
            return out
        return np.concatenate([np.einsum("ij,ij->i", A, A) for A in map(self._dense, spans(self.shape[0], _SPAN))])

    def column_squares(self, weights: Vector | None = None) -> Vector:
        """The diagonal of ``F^T W F``, (p,)."""
        n, p = self.shape
        w = np.ones(n) if weights is None else weights
        if self.is_sparse:
            add_squared_entries(self.rows, w, total := np.zeros(p))
            return total
        total = np.zeros(p)
        for part in spans(n, _SPAN):
            total += np.einsum("ij,ij,i->j", A := self._dense(part), A, w[part])
        return total

    def square(self, weights: Vector | None = None) -> Matrix:
        """``F^T W F`` in float64, (p, p): the upper triangle, in an array whose lower one is arbitrary."""
        p = self.shape[1]
        roots = None if weights is None else np.sqrt(weights)
        if self.is_sparse:
            A = self.matrix.astype(np.float64, copy=False)
            A = A if roots is None else sp.csr_matrix(sp.diags_array(roots) @ A)
            return np.ascontiguousarray((A.T @ A).toarray())
        out = np.zeros((p, p))
        for part in spans(self.shape[0], _SPAN):
            threads.checkpoint()
            A = np.ascontiguousarray(self._dense(part) if roots is None else self._dense(part) * roots[part, None])
            lapack.add_square_of_columns(out, A)
        return out

    def take(self, rows: Positions) -> ExplicitFeatures:
        """The features of some rows."""
        return ExplicitFeatures(self.matrix[rows], True)

    def dense(self) -> Matrix:
        """All features as a new array in float64."""
        return np.array(self.matrix.toarray() if self.is_sparse else self.matrix, dtype=np.float64, order="C")

    def _dense(self, part: slice) -> Matrix:
        return np.asarray(self.matrix[part], dtype=np.float64)

    def _run(self, work: Callable[[Any], None], over: list[Any]) -> None:
        threads.run([partial(work, part) for part in over], 1 if self.entries <= _ALONE else None)


def sum_bytes(n: int, p: int, k: int) -> int:
    """Memory of :meth:`ExplicitFeatures.pull` and :meth:`ExplicitFeatures.curve` for k columns: a sum of each part.

    >>> sum_bytes(1000, 10, 2)
    160
    """
    return 8 * k * p * len(_parts(n))


def square_work_bytes(entries: int, is_sparse: bool) -> int:
    """Memory of :meth:`ExplicitFeatures.square` beside the result: sparse rows in float64, weighted, and by columns.

    >>> square_work_bytes(1000, True), square_work_bytes(1000, False)
    (36000, 0)
    """
    return 3 * 12 * entries if is_sparse else 0


def _parts(n: int) -> list[slice]:
    """Parts of n rows, each of which is summed by itself."""
    return spans(n, max(_SPAN, -(-n // _PARTS)))


def features_of_rows(matrix: Any, given: Any) -> ExplicitFeatures:
    """Wrap the features of a kernel; ``given`` are the rows, which may be the features themselves."""
    if sp.issparse(matrix):
        # Sorted columns make the scattered sums faster.
        matrix = matrix if matrix.has_sorted_indices else matrix.sorted_indices()
        return ExplicitFeatures(matrix, matrix is not given)
    matrix = np.ascontiguousarray(matrix)
    return ExplicitFeatures(matrix, matrix is not given)
