"""Many products of a kernel matrix with a few columns: it is kept in the precision that there is room for."""

from __future__ import annotations

from contextlib import ExitStack
from functools import partial

import numpy as np

from mercer._errors import MemoryBudgetError
from mercer._types import Array, Matrix
from mercer.engine import memory, threads, tiles
from mercer.gram.precomputed import PrecomputedGram
from mercer.solvers.linear.cholesky import check_finite
from mercer.solvers.matrix import GramMatrix, whole_matrix

# Up to so many rows a float64 matrix is small enough to work on alone.
WHOLE = 2048


class ExactProducts:
    """``K V`` for a float64 ``V`` (n, m), in float64: from the matrix where the budget has room for it, else by tiles.

    Parameters
    ----------
    gram : GramMatrix
        (n, m), in float64 or a precomputed matrix.
    held : ExitStack
        Holds the memory.
    n_jobs : int, optional
        Threads; the results have the same bits for any number of them.
    beside : int, default=0
        Bytes that must be free beside the matrix for it to be kept.
    """

    def __init__(self, gram: GramMatrix, held: ExitStack, n_jobs: int | None, beside: int = 0) -> None:
        self._gram, self._n_jobs = gram, n_jobs
        self.matrix: Array | None
        if isinstance(gram, PrecomputedGram):
            self.matrix = gram.matrix
        else:
            self.matrix = _kept(gram, np.dtype(np.float64), held, beside)

    def exact(self, V: Matrix) -> Matrix:
        """In float64."""
        if self.matrix is None:
            return np.asarray(self._gram @ V, dtype=np.float64)
        return self._by_strips(self.matrix, V)

    def _by_strips(self, K: Array, V: Array) -> Matrix:
        if len(K) <= tiles.TILE:
            with threads.one_blas_thread():
                return np.asarray(K @ V, dtype=np.float64)
        out = np.empty((len(K), *V.shape[1:]))

        def strip(rows: slice) -> None:
            out[rows] = K[rows] @ V

        threads.run([partial(strip, rows) for rows in tiles.spans(len(K))], self._n_jobs)
        return out


class Products(ExactProducts):
    """The same for a symmetric K, with ``quick`` products in float32 where that is faster.

    Up to 2048 rows one float64 matrix serves for both. Above, a float32 matrix is kept for ``quick`` and a float64 one
    for ``exact`` (12 n^2 bytes); without room for both the float32 one alone; without room for that, none: the
    products are then evaluated by tiles.

    Parameters
    ----------
    gram : GramMatrix
        Symmetric, (n, n), in float64 or a precomputed matrix.
    held : ExitStack
        Holds the memory.
    n_jobs : int, optional
        Threads; the results have the same bits for any number of them.
    """

    def __init__(self, gram: GramMatrix, held: ExitStack, n_jobs: int | None) -> None:
        n = gram.shape[0]
        self.mixed = n > WHOLE
        super().__init__(gram, held, n_jobs, beside=4 * n * n if self.mixed else 0)
        self._single: Array | None = self._kept_single(held) if self.mixed else None

    def _kept_single(self, held: ExitStack) -> Array | None:
        if self.matrix is None:
            return _kept(self._gram, np.dtype(np.float32), held)
        if self.matrix.dtype == np.float32:
            return self.matrix
        if not _hold(self.matrix.shape, np.dtype(np.float32), held):
            return None
        return tiles.converted(self.matrix, np.dtype(np.float32), self._n_jobs)

    def quick(self, V: Matrix) -> Matrix:
        """In the precision of the matrix that is kept, or in float32."""
        if not self.mixed:
            return self.exact(V)
        if self._single is None:
            return np.asarray(self._gram.astype(np.float32) @ V, dtype=np.float64)
        # Columns of length 1: nothing under- or overflows.
        size = np.abs(V).max(axis=0)
        size[size == 0] = 1.0
        return self._by_strips(self._single, (V / size).astype(np.float32)) * size


def _hold(shape: tuple[int, int], dtype: np.dtype, held: ExitStack, beside: int = 0) -> bool:
    """Whether there was room for a matrix, which is held then, and for so many bytes more."""
    size = shape[0] * shape[1] * dtype.itemsize
    if size + beside > memory.budget():
        return False
    try:
        held.enter_context(memory.reserve(size, f"the {shape[0]} x {shape[1]} kernel matrix in {dtype}"))
    except MemoryBudgetError:
        # Somebody else took it meanwhile.
        return False
    return True


def _kept(gram: GramMatrix, dtype: np.dtype, held: ExitStack, beside: int = 0) -> Array | None:
    if not _hold(gram.shape, dtype, held, beside):
        return None
    matrix = whole_matrix(gram, dtype)
    check_finite(matrix)
    return matrix
