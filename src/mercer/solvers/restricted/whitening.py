"""Coordinates of functions over landmarks in which their norm is the Euclidean length."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mercer._errors import IndefiniteKernelError
from mercer._types import Matrix, Vector
from mercer.engine import lapack, tiles

# The jitter is raised this often, each time tenfold.
_RAISES = 6


@dataclass(frozen=True, eq=False)
class Whitening:
    r"""The factor of the landmarks' kernel matrix, :math:`K_{mm} + \epsilon I = L L^\top`.

    A function :math:`f = \sum_j \beta_j k(z_j, \cdot)` has the coordinates :math:`\gamma = L^\top \beta`, and
    :math:`\|f\|^2 = \|\gamma\|^2 - \epsilon \|\beta\|^2`. The jitter :math:`\epsilon` is of the size of rounding, but
    between nearly equal landmarks coefficients may be large.

    Parameters
    ----------
    factor : ndarray of shape (m, m)
        L in the upper triangle, as :mod:`mercer.engine.lapack` has it.
    own_diagonal : ndarray of shape (m,)
        That of the kernel matrix, which is below the diagonal of ``factor``.
    jitter : float
        What was added to the diagonal.

    Examples
    --------
    >>> white = Whitening.of(np.array([[4.0, 2.0], [2.0, 5.0]]))
    >>> gamma = white.coordinates(np.array([[1.0], [1.0]]))
    >>> round(float((gamma**2).sum()), 9), white.coefficients(gamma).round(9).ravel().tolist()
    (13.0, [1.0, 1.0])
    """

    factor: Matrix
    own_diagonal: Vector
    jitter: float

    @classmethod
    def of(cls, K: Matrix, *, overwrite: bool = False) -> Whitening:
        """Factor a kernel matrix (m, m).

        Parameters
        ----------
        K : ndarray of shape (m, m)
            Symmetric.
        overwrite : bool, default=False
            Whether the factor takes the place of K, which spares new memory.

        Raises
        ------
        IndefiniteKernelError
            If the matrix has an eigenvalue below zero by more than rounding.
        """
        diagonal = np.diagonal(K).astype(np.float64)
        trace = float(diagonal.sum())
        # The smallest number serves where all values are 0: then all coordinates are.
        jitter = max(float(np.finfo(np.float64).eps) * trace, np.finfo(np.float64).tiny)
        in_place = overwrite and K.dtype == np.float64 and K.flags.c_contiguous and K.flags.writeable
        factor = K if in_place else np.array(K, dtype=np.float64, order="C")
        positions = np.diag_indices_from(factor)
        for _ in range(_RAISES):
            factor[positions] = diagonal + jitter
            if not lapack.factor_cholesky(factor):
                return cls(factor, diagonal, jitter)
            _restore(factor)
            jitter *= 10.0
        raise IndefiniteKernelError(
            f"the kernel matrix of the {len(K)} landmarks has a negative eigenvalue, beyond rounding: raising its "
            f"diagonal by {jitter / 10:.2g} is not enough. An approximation by landmarks needs a positive kernel."
        )

    def diagonal(self) -> Vector:
        """The diagonal of ``L L^T``, (m,)."""
        total = np.zeros(len(self.factor))
        for rows in tiles.spans(len(self.factor), tiles.TILE):
            # The lower triangle holds other numbers.
            total[rows.start :] += (np.triu(self.factor[rows, rows.start :]) ** 2).sum(axis=0)
        return total

    def coefficients(self, gamma: Matrix) -> Matrix:
        """``L^-T gamma``, the coefficients of landmarks for coordinates, (m, k)."""
        rows = np.array(gamma.T, dtype=np.float64, order="C")
        lapack.solve_triangle(self.factor, rows, transposed=True)
        return rows.T

    def coordinates(self, beta: Matrix) -> Matrix:
        """``L^T beta``, the coordinates for coefficients, (m, k)."""
        rows = np.array(beta.T, dtype=np.float64, order="C")
        lapack.multiply_triangle(self.factor, rows, transposed=True)
        return rows.T

    def squared_norms(self, beta: Matrix) -> Vector:
        """``beta_j^T K_mm beta_j`` for coefficients (m, k), without jitter, (k,).

        >>> Whitening.of(np.array([[4.0, 2.0], [2.0, 5.0]])).squared_norms(np.array([[1.0], [1.0]])).tolist()
        [13.0]
        """
        with np.errstate(over="ignore", invalid="ignore"):
            squares = self.own_diagonal @ beta**2
            for rows in tiles.spans(len(self.factor), tiles.TILE):
                # Below its diagonal, the array of the factor still holds the kernel matrix.
                below = np.tril(self.factor[rows, : rows.stop], rows.start - 1)
                squares += 2.0 * (beta[rows] * (below @ beta[: rows.stop])).sum(axis=0)
        return np.maximum(squares, 0.0)

    def pull(self, products: Matrix) -> Matrix:
        """``L^-1 v``: a gradient by coordinates from one by coefficients, (m, k)."""
        rows = np.array(products.T, dtype=np.float64, order="C")
        lapack.solve_triangle(self.factor, rows)
        return rows.T

    def features(self, K: Matrix) -> Matrix:
        """``K L^-T``, in place: the features of rows from their kernel values with the landmarks, (s, m)."""
        lapack.solve_triangle(self.factor, K)
        return K


def _restore(factor: Matrix) -> None:
    """Write the lower triangle, which a factorisation leaves as it was, to the upper one as well."""
    for rows in tiles.spans(len(factor), tiles.TILE):
        corner = np.tril(factor[rows, rows], -1)
        factor[rows, rows] = corner + corner.T
        factor[rows, rows.stop :] = factor[rows.stop :, rows].T


def jitter_share(lengths: Vector, norms: Vector) -> Vector:
    """The share of squared norms (k,) by which jitter makes the squared lengths of coordinates larger.

    >>> jitter_share(np.array([1.5, 0.0, 1.0]), np.array([1.0, 0.0, 0.0])).tolist()
    [0.5, 0.0, inf]
    """
    extra = np.maximum(lengths - norms, 0.0)
    return np.divide(extra, norms, out=np.where(extra > 0, np.inf, 0.0), where=norms > 0)
