"""A symmetric matrix and a factor of it, both in one square array."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import blas
from scipy.linalg import lapack as scipy_lapack

from mercer._types import AnyArray
from mercer.engine import decompositions, lapack, routines, threads, tiles

# float32 or float64, as the array that the store was made from.

# Up to this many columns, one pass over the matrix for each column is faster than the blocked routine for many.
_FEW = 4
_SPAN = 512
# Columns of a product that one thread computes.
_COLUMNS = 256


class SymmetricStore:
    """Keeps ``A`` below the diagonal of an array and the factor of ``A + shift I`` above, the diagonals apart.

    LAPACK reads one triangle only, so a factorisation needs no second matrix, and ``A`` stays available for
    residuals. LAPACK's columns are NumPy's rows: the factor is lower triangular in ``array.T``.

    Parameters
    ----------
    array : ndarray of shape (n, n), float32 or float64, C-ordered
        The whole matrix; taken over and overwritten.

    Examples
    --------
    >>> import numpy as np
    >>> store = SymmetricStore(np.array([[3.0, 1.0], [1.0, 3.0]]))
    >>> store.factor_cholesky(1.0)
    True
    >>> b = np.array([[5.0], [5.0]])
    >>> store.solve(b).ravel().round(12).tolist(), store.product(b).ravel().tolist()
    ([1.0, 1.0], [20.0, 20.0])
    """

    def __init__(self, array: AnyArray) -> None:
        self._array = array
        self._turned = array.T
        self.diagonal: AnyArray = array.diagonal().copy()
        self._factor_diagonal: AnyArray = self.diagonal
        self._pivots: NDArray[np.int32] | None = None
        self._is_whole = True
        self._prefix = "s" if array.dtype == np.float32 else "d"

    def _blas(self, name: str, *arguments: Any, **options: Any) -> AnyArray:
        return getattr(blas, self._prefix + name)(*arguments, **options)

    def _lapack(self, name: str, *arguments: Any, **options: Any) -> tuple[Any, ...]:
        return getattr(scipy_lapack, self._prefix + name)(*arguments, **options)

    def _show(self, diagonal: AnyArray) -> None:
        """Put one of the two diagonals in place; a few microseconds beside any use of the matrix."""
        np.fill_diagonal(self._array, diagonal)

    def restore(self) -> AnyArray:
        """The whole matrix again, in the same array; the factor is gone."""
        n = len(self._array)
        for start in range(0, n, _SPAN):
            stop = min(start + _SPAN, n)
            self._array[start:stop, stop:] = self._array[stop:, start:stop].T
            square = np.tril(self._array[start:stop, start:stop], -1)
            self._array[start:stop, start:stop] = square + square.T
        self._show(self.diagonal)
        self._is_whole = True
        return self._array

    def _shift(self, shift: float) -> None:
        """``A + shift I`` in the place of an older factor."""
        if not self._is_whole:
            self.restore()
        self._is_whole = False
        with np.errstate(over="ignore"):
            self._show(self.diagonal + self._array.dtype.type(shift))

    def factor_cholesky(self, shift: float) -> bool:
        """Factor ``A + shift I``; False if a pivot is not positive."""
        self._pivots = None
        self._shift(shift)
        info = lapack.factor_cholesky(self._array)
        self._factor_diagonal = self._array.diagonal().copy()
        return info == 0 and bool(np.isfinite(self._factor_diagonal).all())

    @property
    def smallest_pivot(self) -> float:
        """The smallest of the squares on the diagonal of the Cholesky factor."""
        return float(self._factor_diagonal.min()) ** 2

    def factor_ldl(self, shift: float) -> bool:
        """Factor ``A + shift I`` as ``L D L^T`` with Bunch and Kaufman's pivots; False if it is singular."""
        self._shift(shift)
        self._pivots, info = decompositions.factor_indefinite(self._array)
        self._factor_diagonal = self._array.diagonal().copy()
        return info == 0 and bool(np.isfinite(self._factor_diagonal).all())

    def solve(self, B: AnyArray) -> AnyArray:
        """``X`` with ``(A + shift I) X = B``, by the factor; ``B`` has shape (n, k)."""
        self._show(self._factor_diagonal)
        if self._pivots is not None:
            return self._lapack("sytrs", self._turned, self._pivots, B, lower=1)[0]
        if B.shape[1] > _FEW:
            rows = np.array(B.T, dtype=self._array.dtype, order="C")
            lapack.solve_cholesky(self._array, rows)
            return rows.T
        columns = []
        for b in B.T:
            y = self._blas("trsv", self._turned, b, lower=1, trans=0)
            columns.append(self._blas("trsv", self._turned, y, lower=1, trans=1, overwrite_x=1))
        return np.stack(columns, axis=1)

    def product(self, V: AnyArray) -> AnyArray:
        """``A V``, without the shift."""
        self._show(self.diagonal)
        if V.shape[1] > _FEW:
            return self._product_of_many(np.ascontiguousarray(V, dtype=self._array.dtype))
        return np.stack([self._blas("symv", 1.0, self._turned, v, lower=0) for v in V.T], axis=1)

    def _product_of_many(self, V: AnyArray) -> AnyArray:
        out = np.empty_like(V)

        def part(columns: slice) -> None:
            routines.multiply_symmetric(self._array, V[:, columns], out[:, columns])

        threads.run([partial(part, columns) for columns in tiles.spans(V.shape[1], _COLUMNS)])
        return out

    def inverse_diagonal(self) -> AnyArray:
        """The diagonal of ``(A + shift I)^-1``; the factor is overwritten by the inverse."""
        self._show(self._factor_diagonal)
        if self._pivots is not None:
            decompositions.invert_indefinite(self._array, self._pivots)
            return self._array.diagonal().copy()
        lapack.invert_triangle(self._array)
        # (A^-1)_ii is the squared length of column i of L^-1, which is row i of this array from the diagonal on.
        return np.array([row[i:] @ row[i:] for i, row in enumerate(self._array)])
