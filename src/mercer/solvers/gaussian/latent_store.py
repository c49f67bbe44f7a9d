"""A kernel matrix, and a factor of ``I + DKD``, in one square array."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import blas

from mercer._types import Array, Matrix, Vector
from mercer.engine import lapack
from mercer.engine.tiles import Fill, spans
from mercer.solvers.gaussian.covariance import upper_tile

# Up to this many columns, one pass over the matrix for each column is faster than the blocked routine for many.
_FEW = 4


class LatentStore:
    r"""Keeps K below the diagonal of an array, and above it the factor of :math:`B = I + DKD` or the inverse of B.

    D is a diagonal matrix of numbers of 0 or more, the roots of the curvatures of the rows' likelihoods. The two
    diagonals stand apart. The factor is laid out as in :mod:`mercer.engine.lapack`.

    Parameters
    ----------
    array : ndarray of shape (n, n), float64, C-ordered
        The whole of K; taken over and overwritten.
    single : ndarray of shape (n, n), float32, C-ordered, optional
        Room for factors that only precondition.

    Examples
    --------
    >>> store = LatentStore(np.array([[3.0, 1.0], [1.0, 3.0]]))
    >>> store.factor(np.array([1.0, 1.0])), round(float(np.exp(store.log_determinant)), 9)
    (True, 15.0)
    >>> store.solve(np.array([[5.0], [5.0]])).ravel().round(12).tolist()
    [1.0, 1.0]
    >>> store.product(np.array([[1.0], [1.0]])).ravel().tolist()
    [4.0, 4.0]
    """

    def __init__(self, array: Matrix, single: NDArray[np.float32] | None = None) -> None:
        self._array, self._single = array, single
        self.diagonal: Vector = array.diagonal().copy()
        self._upper_diagonal: Vector = self.diagonal
        # Until a factor takes the place above the diagonal, K stands there too.
        self._whole = True

    def __len__(self) -> int:
        return len(self._array)

    def _show(self, diagonal: Vector) -> None:
        np.fill_diagonal(self._array, diagonal)

    def _scaled_tiles(self, scale: Vector) -> Iterator[tuple[slice, slice, Matrix]]:
        """Tiles of ``DKD`` on and above the diagonal."""
        self._show(self.diagonal)
        strips = spans(len(self))
        for number, rows in enumerate(strips):
            square = np.tril(self._array[rows, rows])
            square += np.tril(square, -1).T
            yield rows, rows, scale[rows, None] * square * scale[rows]
            for columns in strips[number + 1 :]:
                yield rows, columns, scale[rows, None] * self._array[columns, rows].T * scale[columns]

    def product(self, V: Matrix) -> Matrix:
        """``K V`` for ``V`` of shape (n, k)."""
        self._show(self.diagonal)
        turned = self._array.T
        if self._whole and V.shape[1] > 1:
            return lapack.multiply(self._array, V)
        if V.shape[1] > _FEW:
            return np.asarray(blas.dsymm(1.0, turned, V, lower=0))
        return np.stack([blas.dsymv(1.0, turned, v, lower=0) for v in V.T], axis=1)

    def factor(self, scale: Vector) -> bool:
        """Factor ``I + DKD`` for ``D = diag(scale)``; False if a pivot is not positive."""
        self._whole = False
        for rows, columns, tile in self._scaled_tiles(scale):
            if rows is columns:
                np.copyto(self._array[rows, rows], tile, where=_above(len(tile)))
            else:
                self._array[rows, columns] = tile
        self._show(1.0 + scale * self.diagonal * scale)
        info = lapack.factor_cholesky(self._array)
        self._upper_diagonal = self._array.diagonal().copy()
        return info == 0 and bool(np.isfinite(self._upper_diagonal).all())

    def factor_single(self, scale: Vector) -> SingleFactor | None:
        """The factor of ``I + DKD`` in float32, in an array of its own; None if a pivot is not positive."""
        single = self._single
        if single is None:
            return None
        with np.errstate(over="ignore"):
            for rows, columns, tile in self._scaled_tiles(scale):
                single[rows, columns] = tile
            np.fill_diagonal(single, 1.0 + scale * self.diagonal * scale)
        info = lapack.factor_cholesky(single)
        return SingleFactor(single) if info == 0 and np.isfinite(single.diagonal()).all() else None

    @property
    def log_determinant(self) -> float:
        """``log |I + DKD|``, of the last factor."""
        return 2.0 * float(np.log(self._upper_diagonal).sum())

    def solve(self, V: Matrix) -> Matrix:
        """``(I + DKD)^-1 V`` by the last factor."""
        self._show(self._upper_diagonal)
        return _solve(self._array, V)

    def whiten(self, V: Matrix) -> Matrix:
        """``L^-1 V`` for the last factor ``I + DKD = L L'``."""
        self._show(self._upper_diagonal)
        rows = np.array(V.T, order="C")
        lapack.solve_triangle(self._array, rows)
        return rows.T

    def columns(self, positions: NDArray[np.intp]) -> Matrix:
        """Some columns of K, (n, k)."""
        self._show(self.diagonal)
        out = np.empty((len(self), len(positions)))
        for k, i in enumerate(positions):
            out[: i + 1, k] = self._array[i, : i + 1]
            out[i:, k] = self._array[i:, i]
        return out

    def invert(self) -> Vector:
        """Put ``(I + DKD)^-1`` in the place of the last factor; its diagonal."""
        self._show(self._upper_diagonal)
        lapack.invert_cholesky(self._array)
        self._upper_diagonal = self._array.diagonal().copy()
        return self._upper_diagonal

    def invert_triangle(self) -> Vector:
        """Put ``L^-1`` in the place of the last factor L; the diagonal of ``(I + DKD)^-1``."""
        self._show(self._upper_diagonal)
        lapack.invert_triangle(self._array)
        self._upper_diagonal = self._array.diagonal().copy()
        return np.array([row[i:] @ row[i:] for i, row in enumerate(self._array)])

    def finish_inverse(self) -> None:
        """``(I + DKD)^-1`` in the place of ``L^-1``, so that both steps are what :meth:`invert` does."""
        self._show(self._upper_diagonal)
        lapack.square_triangle(self._array)
        self._upper_diagonal = self._array.diagonal().copy()

    def upper_tile(self, rows: slice, columns: slice, out: Array) -> None:
        """A tile, on the diagonal or above, of what :meth:`invert` made; its diagonal must still be in place."""
        upper_tile(self._array, rows, columns, out)

    def times_inverse(self, V: Matrix) -> Matrix:
        """The product of V (n, k) with what :meth:`invert` made."""
        self._show(self._upper_diagonal)
        return np.stack([blas.dsymv(1.0, self._array.T, v, lower=1) for v in V.T], axis=1)

    def slope(self, scale: Vector, left: Matrix, right: Matrix) -> Fill:
        r""":math:`\tfrac14 (U V^\top + V U^\top) - \tfrac12 D B^{-1} D` by tiles, after :meth:`invert`.

        That is the derivative of an approximate evidence by the entries of K; ``left`` U and ``right`` V are (n, k).
        """
        self._show(self._upper_diagonal)

        def weigh(rows: slice, columns: slice, out: Array) -> None:
            self.upper_tile(rows, columns, out)
            out *= scale[rows, None]
            out *= -0.5 * scale[columns]
            out += 0.25 * (left[rows] @ right[columns].T + right[rows] @ left[columns].T)

        return weigh

    def lower_factor(self) -> Matrix:
        """L, the factor alone, in Fortran's order; the array is given up for it, and K is lost."""
        self._show(self._upper_diagonal)
        for rows in spans(len(self)):
            self._array[rows, : rows.start] = 0.0
            np.copyto(self._array[rows, rows], 0.0, where=_above(rows.stop - rows.start).T)
        return self._array.T


class SingleFactor:
    """A Cholesky factor in float32 that preconditions solves in float64."""

    def __init__(self, array: NDArray[np.float32]) -> None:
        self._array = array

    def solve(self, V: Matrix) -> Matrix:
        """About ``(L L')^-1 V``, on columns scaled to a largest entry of 1 so that nothing under- or overflows."""
        size = np.abs(V).max(axis=0)
        size[size == 0] = 1.0
        return _solve(self._array, (V / size).astype(np.float32)).astype(np.float64) * size


def _solve(factor: NDArray[Any], V: NDArray[Any]) -> NDArray[Any]:
    """``(L L')^-1 V``."""
    if V.shape[1] > _FEW:
        rows = np.array(V.T, order="C")
        lapack.solve_cholesky(factor, rows)
        return rows.T
    trsv, turned = blas.strsv if factor.dtype == np.float32 else blas.dtrsv, factor.T
    columns = [trsv(turned, trsv(turned, v, lower=1), lower=1, trans=1, overwrite_x=1) for v in V.T]
    return np.stack(columns, axis=1)


def _above(n: int) -> NDArray[np.bool_]:
    """Where an n x n square is above its diagonal."""
    return np.arange(n)[:, None] < np.arange(n)
