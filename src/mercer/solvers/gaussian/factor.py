"""The Cholesky factor of a covariance matrix, with jitter where rounding has made the matrix indefinite."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg import blas

from mercer._errors import IndefiniteKernelError
from mercer._types import Matrix, Vector
from mercer.engine import lapack
from mercer.engine.tiles import spans
from mercer.loops.transpose import transpose

# Shares of the mean of the diagonal that are tried, in turn, as jitter.
JITTER = (0.0, 1e-12, 1e-10, 1e-8, 1e-6, 1e-4)
# Where the kernel need not be positive semi-definite, its spectrum is shifted until it is.
SHIFTS = (*JITTER, 1e-3, 1e-2, 1e-1, 1.0, 1e1, 1e2, 1e3)


@dataclass(frozen=True, eq=False)
class Factor:
    """``L`` in the upper triangle of ``array``, as :mod:`mercer.engine.lapack` has it, and the matrix in the lower one.

    ``diagonal`` is that of the matrix, with the jitter, and ``jitter`` what was added to it.
    """

    array: Matrix
    diagonal: Vector
    jitter: float

    @property
    def log_determinant(self) -> float:
        """Of the matrix."""
        return 2.0 * float(np.log(self.array.diagonal()).sum())

    def solve(self, B: Matrix) -> Matrix:
        """``A^-1 B`` for the columns of B (n, k)."""
        rows = np.array(B.T, order="C")
        lapack.solve_cholesky(self.array, rows)
        return rows.T

    def product(self, V: Matrix) -> Matrix:
        """``A V``, from the triangle that the factor left alone."""
        with_other_diagonal = blas.dsymm(1.0, self.array.T, V, lower=0)
        return np.asarray(with_other_diagonal + (self.diagonal - self.array.diagonal())[:, None] * V)

    def lower(self) -> Matrix:
        """``L`` with zeros above its diagonal, in the same memory: the matrix is gone."""
        for rows in spans(len(self.array)):
            self.array[rows, : rows.start] = 0.0
            square = self.array[rows, rows]
            square[np.tril_indices(len(square), -1)] = 0.0
        return self.array.T


def factor(matrix: Matrix, *, definite: bool = True, size: float | None = None) -> Factor:
    """Factor a symmetric matrix in place; with the least jitter of a ladder where it must be.

    Parameters
    ----------
    matrix : ndarray of shape (n, n), C-ordered, float64
        Both triangles. The upper one is overwritten.
    definite : bool, default=True
        Whether the matrix is positive semi-definite but for rounding. If not, jitter of any size is added.
    size : float, optional
        What jitter and rounding are measured by; the mean of the diagonal, if it is not what is left of larger numbers.

    Raises
    ------
    IndefiniteKernelError
        If the largest jitter was not enough.
    """
    diagonal = matrix.diagonal().copy()
    size = size or float(np.abs(diagonal).mean()) or 1.0
    for share in JITTER if definite else SHIFTS:
        if share:
            _restore(matrix)
        jitter = share * size
        np.fill_diagonal(matrix, diagonal + jitter)
        if lapack.factor_cholesky(matrix) == 0 and _is_regular(matrix, max(size, float(diagonal.max())) + jitter):
            return Factor(matrix, diagonal + jitter, jitter)
    raise IndefiniteKernelError(
        f"the covariance matrix is not positive semi-definite: with {jitter:.3g} added to its diagonal, whose mean is "
        f"{diagonal.mean():.3g}, it still has no Cholesky factor. Use a larger alpha, another kernel, or "
        "mercer.validity.nearest(K); or pass allow_indefinite=True to add as much as needed."
    )


def _is_regular(array: Matrix, largest: float) -> bool:
    """Whether the pivots are numbers above what rounding makes of zero."""
    pivots = array.diagonal() ** 2
    noise = np.sqrt(len(pivots)) * np.finfo(np.float64).eps * largest
    return bool(np.isfinite(pivots).all()) and float(pivots.min()) > noise


def _restore(matrix: Matrix) -> None:
    """The upper triangle again, from the lower one."""
    for rows in spans(len(matrix)):
        for columns in spans(rows.start):
            transpose(np.ascontiguousarray(matrix[rows, columns]), matrix[columns, rows])
        square = matrix[rows, rows]
        above = np.triu_indices(len(square), 1)
        square[above] = square.T[above]
