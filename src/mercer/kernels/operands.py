"""The operands of one side of a block: arrays with one entry a row, from which tiles of statistics are computed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp

from mercer._errors import DataError
from mercer._types import Array
from mercer.engine import threads, tiles
from mercer.kernels.inputs import Frame, Index, Operand, Rows
from mercer.loops import distances
from mercer.loops.sparse_rows import SparseRows
from mercer.loops.transpose import mirror

# Rows that are prepared at once.
_ROWS = 4096
# Up to this many columns a symmetric product takes longer than a general one.
_NARROW = 64


def held(side: Rows, frame: Frame) -> Any:
    """The rows in the layout of both sides of a block: an array, or CSR."""
    X: Any = side.vectors
    if frame.layout == "sparse":
        return X if sp.issparse(X) else sp.csr_matrix(X)
    return X.toarray() if sp.issparse(X) else X


def words(side: Rows) -> np.ndarray:
    """Rows of zeros and ones, (n, d), as (n, ceil(d / 64)) words."""
    X: Any = side.vectors
    n, d = X.shape
    words = np.zeros((n, -(-d // 64) * 8), np.uint8)
    # By parts, so that a sparse matrix is never dense as a whole.
    for start in range(0, n, 4096):
        part = X[start : start + 4096]
        packed = np.packbits((part.toarray() if sp.issparse(part) else part).astype(bool), axis=1)
        words[start : start + 4096, : packed.shape[1]] = packed
    return words.view(np.uint64)


def largest_word_count(operand: Operand) -> int | None:
    return 64 * operand[0].shape[1] if operand[0].dtype == np.uint64 else None


def multiples(operand: Operand, multiplier: float, dtype: np.dtype) -> Array:
    """The table of ``multiplier * count``."""
    return (multiplier * np.arange(64 * operand[0].shape[1] + 1)).astype(dtype)


def scale_divisors(X: Any, scales: tuple[float, ...]) -> Array | None:
    if not scales:
        return None
    if len(scales) != X.shape[1]:
        raise DataError(
            f"the kernel has {len(scales)} length scales, but X has {X.shape[1]} columns; "
            "pass one length scale, or one per column, or choose columns with kernel.on([...])."
        )
    return np.asarray(scales)


def scaled(X: Any, scales: tuple[float, ...]) -> Any:
    divisors = scale_divisors(X, scales)
    if divisors is None:
        return X
    return X @ sp.diags_array(1 / divisors) if sp.issparse(X) else X / divisors


def same(A: Array, B: Array) -> bool:
    """Whether two arrays are the same entries in memory."""
    return A.shape == B.shape and A.strides == B.strides and A.ctypes.data == B.ctypes.data


def products(A: Any, B: Any, out: Array) -> None:
    """Inner products of the rows of two operands."""
    if not sp.issparse(A):
        if A.shape[1] <= _NARROW and same(A, B):
            # NumPy would take a symmetric product, whose copy of one triangle costs more than the product.
            np.matmul(A, B.copy().T, out=out)
            mirror(out)
        else:
            np.matmul(A, B.T, out=out)
        return
    columns = sp.csc_matrix(B)
    distances.sparse_products(A.data, A.indices, A.indptr, columns.data, columns.indices, columns.indptr, out)


class GivenRows:
    """Rows as they were passed, not rounded, centred or scaled, of which few are read: where digits would be lost."""

    def __init__(self, vectors: Any, positions: range | np.ndarray) -> None:
        self._vectors, self._positions = vectors, positions

    @classmethod
    def of(cls, side: Rows) -> GivenRows:
        """All rows of a side."""
        return cls(side.vectors, range(side.n))

    def __len__(self) -> int:
        return len(self._positions)

    def __getitem__(self, index: Index) -> GivenRows:
        at = self._positions
        if isinstance(index, slice):
            return GivenRows(self._vectors, at[index])
        if isinstance(at, range):
            # Positions among the first rows are not stored a second time.
            return GivenRows(self._vectors, index if (at.start, at.step) == (0, 1) else at.start + at.step * index)
        return GivenRows(self._vectors, at[index])

    def _picked(self) -> Any:
        """The rows; of a range a view."""
        at = self._positions
        return self._vectors[slice(at.start, at.stop, at.step) if isinstance(at, range) else at]

    @property
    def is_sparse(self) -> bool:
        return bool(sp.issparse(self._vectors))

    @property
    def width(self) -> int:
        """The number of columns."""
        return int(self._vectors.shape[1])

    def lower(self, table: Array, place: int, alive: list[Any]) -> bool:
        """Write where the rows are into the table of a program; False unless they are floats side by side."""
        X, at = self._vectors, self._positions
        if not isinstance(X, np.ndarray) or X.dtype not in (np.float32, np.float64) or not X.flags.c_contiguous:
            return False
        table[place : place + 2] = X.ctypes.data, X.dtype == np.float64
        if isinstance(at, range):
            table[place + 3 : place + 5] = at.start, at.step
        else:
            at = np.ascontiguousarray(at, np.int64)
            table[place + 2] = at.ctypes.data
        alive += [X, at]
        return True

    def dense(self) -> Array:
        """The rows as an array in float64."""
        X = self._picked()
        return np.ascontiguousarray(X.toarray() if sp.issparse(X) else X, dtype=np.float64)

    def sparse(self) -> SparseRows:
        """The rows in compressed form in float64."""
        X = sp.csr_matrix(self._picked())
        return SparseRows(X.indptr, X.indices, X.data.astype(np.float64, copy=False))


def centred(
    X: Array, frame: Frame, scales: tuple[float, ...], dtype: np.dtype, norms_of: Callable[[Array], Array]
) -> tuple[Array, Array]:
    """Rows about the centre in units of the scales, and their norms.

    Where a norm overflows float32, it is infinite and the row is of zeros: distances from it are then computed apart.
    """
    # A sparse matrix that was made dense is not centred, nor are its columns looked at.
    columns = slice(None) if scales or frame.center is None else frame.varying
    divisors = scale_divisors(X, scales)
    # Taken in float64 before any rounding to float32: far from the origin nothing else would be left.
    middle = np.zeros(X.shape[1]) if frame.center is None else frame.center[columns]
    A, norms = np.empty((len(X), len(middle)), dtype), np.empty(len(X), dtype)

    def prepare(rows: slice) -> Callable[[], None]:
        def work() -> None:
            part = X[rows] if isinstance(columns, slice) else X[rows].take(columns, axis=1)
            with np.errstate(over="ignore"):
                if divisors is None:
                    # The difference is still rounded from float64, but is written once.
                    np.subtract(part, middle, out=A[rows], casting="same_kind")
                else:
                    A[rows] = (part - middle) / divisors
                norms[rows] = norms_of(A[rows])

        return work

    tasks = [prepare(rows) for rows in tiles.spans(len(X), _ROWS)]
    if len(tasks) > 1:
        threads.run(tasks)
    else:
        tasks[0]()
    A[np.isinf(norms)] = 0
    return A, norms


def squared_norms(A: Any, dtype: np.dtype) -> Array:
    with np.errstate(over="ignore"):
        if sp.issparse(A):
            return np.asarray(A.multiply(A).sum(axis=1)).ravel().astype(dtype)
        return np.einsum("ij,ij->i", A, A)


def unit_rows(A: Any) -> Any:
    """Rows of any size divided by their lengths, in float64; rows of zeros stay.

    >>> unit_rows(np.array([[3e200, 4e200], [0.0, 0.0]])).round(12).tolist()
    [[0.6, 0.8], [0.0, 0.0]]
    """
    A = A.astype(np.float64)
    # By the largest entries first: squares of rows that are huge or tiny leave the range of numbers.
    A = _divided(A, abs(A).max(axis=1))
    return _divided(A, np.sqrt(squared_norms(A, A.dtype)))


def _divided(A: Any, sizes: Any) -> Any:
    """Rows divided by their sizes, those of size 0 unchanged."""
    sizes = np.ravel(sizes.toarray() if sp.issparse(sizes) else sizes)
    sizes[sizes == 0] = 1
    return sp.csr_matrix(sp.diags_array(1 / sizes) @ A) if sp.issparse(A) else A / sizes[:, None]
