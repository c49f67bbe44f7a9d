"""A kernel matrix that the user computed, with the interface of the lazy one."""

from __future__ import annotations

from functools import partial
from operator import itemgetter
from typing import Any

import numpy as np
from numpy.typing import DTypeLike
from scipy.sparse.linalg import LinearOperator, aslinearoperator

from mercer._errors import DataError
from mercer.engine import lapack, threads, tiles
from mercer.engine.tiles import Array
from mercer.gram.array_interface import ArrayInterface
from mercer.gram.operator import as_index, check_factor
from mercer.loops.transpose import widest_gap

# Rows and columns that are compared at a time.
_SIDE = 256


def _as_matrix(K: Any) -> Array:
    """``K`` as a matrix of float32 or float64."""
    array = np.asarray(K)
    if array.ndim != 2 or array.dtype.kind not in "fiub":
        raise DataError(
            f"a precomputed kernel matrix must be a two-dimensional array of real numbers, and is {type(K).__name__} "
            f"of {array.dtype} and shape {np.shape(K)}."
        )
    return array if array.dtype in (np.float32, np.float64) else array.astype(np.float64)


def check_square(K: Any, name: str = "K") -> Array:
    """``K`` as a square, finite and symmetric array.

    Raises
    ------
    DataError
        If it is not; with the worst asymmetry and where it is.
    """
    array = _as_matrix(K)
    if array.shape[0] != array.shape[1]:
        raise DataError(
            f"a precomputed {name} must be square, k(x_i, x_j) for all training rows, and has shape {array.shape}."
        )
    if array.size == 0:
        raise DataError(f"the precomputed {name} is empty: its shape is {array.shape}.")
    if not np.isfinite(array.sum()) and not np.isfinite(array).all():
        i, j = np.argwhere(~np.isfinite(array))[0]
        raise DataError(f"the precomputed {name} has {array[i, j]} at [{i}, {j}]; every entry must be finite.")
    worst, i, j = worst_asymmetry(array)
    if worst > _rounding(array):
        raise DataError(
            f"the precomputed {name} is not symmetric: {name}[{i}, {j}] = {array[i, j]:.6g} and "
            f"{name}[{j}, {i}] = {array[j, i]:.6g}; pass ({name} + {name}.T) / 2 if that is what is meant."
        )
    return array


def _rounding(K: Array) -> float:
    """How much entries that should be equal may differ."""
    return 1e3 * float(np.finfo(K.dtype).eps) * max(abs(float(K.max())), abs(float(K.min())), np.finfo(float).tiny)


def symmetric_once_centred(K: Array) -> Array:
    r"""Return ``(K + K.T) / 2`` if centring takes the asymmetry of ``K`` (n, n) away, else ``K`` itself.

    That is where :math:`K_{ij} - K_{ji} = a_i - a_j` for some vector a; both matrices are then the same once centred.

    Examples
    --------
    >>> symmetric_once_centred(np.array([[1.0, 2.0], [3.0, 40.0]])).tolist()
    [[1.0, 2.5], [2.5, 40.0]]
    """
    square = K.ndim == 2 and K.shape[0] == K.shape[1] > 0
    # What is not square or finite gets its error where matrices are checked.
    if not square or not np.isfinite(K).all() or worst_asymmetry(K)[0] <= _rounding(K):
        return K
    difference = K - K.T
    a = difference.mean(axis=1)
    difference -= a[:, None] - a
    return (K + K.T) / 2 if np.abs(difference).max() <= _rounding(K) else K


def worst_asymmetry(K: Array) -> tuple[float, int, int]:
    """The largest ``|K_ij - K_ji|`` and where it is, by tiles; no second matrix is made."""
    strips = tiles.spans(len(K), _SIDE)
    found = [(0.0, 0, 0)] * len(strips)

    def look(number: int) -> None:
        rows = strips[number]
        for columns in strips[number:]:
            threads.checkpoint()
            with tiles.scratch((columns.stop - columns.start, rows.stop - rows.start), K.dtype) as mirrored:
                # A copy in the cache, read by whole lines: the other way round every entry would be a line of its own.
                mirrored[...] = K[columns, rows]
                worst, i, j = widest_gap(K[rows, columns], mirrored)
            if worst > found[number][0]:
                found[number] = worst, rows.start + i, columns.start + j

    threads.run([partial(look, number) for number in range(len(strips))])
    # Of equally large ones the first.
    return max(found, key=itemgetter(0), default=(0.0, 0, 0))


class PrecomputedGram(ArrayInterface):
    """A matrix with the interface of :class:`mercer.gram.Gram`.

    Examples
    --------
    >>> import numpy as np
    >>> PrecomputedGram(np.eye(2)).rows([1]).tolist()
    [[0.0, 1.0]]
    """

    def __init__(self, K: Any, *, symmetric: bool = True) -> None:
        self.matrix = _as_matrix(K)
        self.symmetric = symmetric
        self.n_jobs: int | None = None

    @property
    def shape(self) -> tuple[int, int]:
        return self.matrix.shape[0], self.matrix.shape[1]

    @property
    def dtype(self) -> np.dtype:
        return self.matrix.dtype

    @property
    def nbytes(self) -> int:
        return self.matrix.nbytes

    @property
    def tile(self) -> int:
        """Rows and columns of the tiles that it is read by."""
        return tiles.TILE

    @property
    def dear(self) -> bool:
        """An entry is there already."""
        return False

    def leading(self) -> None:
        """There is nothing cheaper."""

    def __matmul__(self, V: Any) -> Array:
        V = check_factor(V, self.shape[1])
        if V.dtype == self.dtype:
            return lapack.multiply(self.matrix, V)
        # By strips: NumPy would make a copy of the whole matrix in the other precision.
        out = np.empty((self.shape[0], *V.shape[1:]), np.result_type(self.dtype, V.dtype))
        for rows in tiles.spans(self.shape[0]):
            out[rows] = self.matrix[rows] @ V
        return out

    def dense(self, out: Array | None = None) -> Array:
        """A copy of the matrix; into ``out`` if given."""
        if out is None:
            return self.matrix.copy()
        if out.shape != self.shape:
            raise DataError(f"out has shape {out.shape}, and the matrix has {self.shape}.")
        out[...] = self.matrix
        return out

    def block(self, rows: Any = None, columns: Any = None, out: Array | None = None) -> Array:
        """The part of the matrix at ``rows`` and ``columns``."""
        return self.restrict(rows, columns).dense(out)

    def fill(self, rows: slice | np.ndarray, columns: slice, out: Array) -> None:
        """Write the part at rows, a slice or positions, and columns, a slice, into ``out``."""
        out[...] = self.matrix[rows, columns]

    def rows(self, index: Any) -> Array:
        """Whole rows."""
        return self.block(index, None)

    def restrict(self, rows: Any = None, columns: Any = None) -> PrecomputedGram:
        """The part of the matrix at ``rows`` and ``columns``."""
        left = as_index(rows, self.shape[0], "row positions")
        right = as_index(columns, self.shape[1], "column positions")
        part = self.matrix[left]
        part = part[:, right]
        return PrecomputedGram(part, symmetric=self.symmetric and rows is columns)

    def diagonal(self) -> Array:
        """``K_ii`` in float64."""
        if not self.symmetric:
            raise DataError("only the Gram matrix of rows with themselves has a diagonal of k(x, x).")
        return self.matrix.diagonal().astype(np.float64)

    def astype(self, dtype: DTypeLike) -> PrecomputedGram:
        """The same matrix in another precision."""
        return PrecomputedGram(self.matrix.astype(dtype, copy=False), symmetric=self.symmetric)

    @property
    def T(self) -> PrecomputedGram:
        """The transposed matrix, on the same memory."""
        if self.symmetric:
            return self
        transposed = PrecomputedGram(self.matrix.T, symmetric=False)
        transposed.n_jobs = self.n_jobs
        return transposed

    def _entries(self) -> tuple[Array, bool]:
        return self.matrix, False

    def _is_stored(self, dtype: DTypeLike | None) -> bool:
        return dtype is None or np.dtype(dtype) == self.dtype

    def as_linear_operator(self) -> LinearOperator:
        """The matrix for SciPy's iterative solvers."""
        return aslinearoperator(self.matrix)
