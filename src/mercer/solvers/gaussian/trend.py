r"""Mean functions: ``m(x) = h(x)^T b`` with a flat prior on the coefficients, which are integrated out.

Rasmussen and Williams, "Gaussian Processes for Machine Learning" (2006), section 2.7. With covariance matrix A and the
rows h(x_i) in H: ``b = (H^T A^-1 H)^-1 H^T A^-1 y``, ``alpha = A^-1 (y - H b) = P y``, where
``P = A^-1 - A^-1 H (H^T A^-1 H)^-1 H^T A^-1`` is in the place of ``A^-1`` in all that follows.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import scipy.linalg

from mercer._errors import DataError, NumericalError
from mercer._types import Matrix
from mercer.data.fitted import Fitted
from mercer.data.statements import Floats
from mercer.solvers.gaussian.factor import Factor


@dataclass(frozen=True, eq=False)
class Trend:
    """The columns of H on orthonormal axes.

    Parameters
    ----------
    basis : ndarray of shape (n, r)
        ``H @ transform``, whose columns are orthonormal; r is the rank of H.
    transform : ndarray of shape (m, r)
    log_volume : float
        Half of the log determinant of ``H^T H``, on its range: what the evidence loses by the change of axes.
    """

    basis: Matrix
    transform: Matrix
    log_volume: float

    @classmethod
    def of(cls, H: Matrix) -> Trend:
        """From the values of the basis functions in the training rows.

        Raises
        ------
        DataError
            If there are as many independent coefficients as rows, so that nothing is left to learn from.
        """
        n = len(H)
        left, sizes, right = scipy.linalg.svd(H, full_matrices=False)
        large = sizes > n * np.finfo(np.float64).eps * sizes[0]
        if large.sum() >= n:
            raise DataError(
                f"a mean function of {int(large.sum())} coefficients goes through all {n} rows, and nothing is left to "
                'learn the rest from. Pass more rows, or choose a mean of fewer coefficients (mean="zero" has none).'
            )
        transform = right[large].T / sizes[large]
        return cls(left[:, large], transform, float(np.log(sizes[large]).sum()))

    @classmethod
    def on_axes(cls, H: Matrix, transform: Matrix) -> Trend:
        """On given axes, which need not be orthonormal in these rows."""
        return cls(H @ transform, transform, -0.5 * float(np.linalg.slogdet(transform.T @ transform)[1]))


@dataclass(frozen=True, eq=False)
class TrendFit:
    """What generalised least squares leaves for predictions.

    Parameters
    ----------
    solved : ndarray of shape (n, r)
        ``A^-1 Q`` for the basis Q.
    lower : ndarray of shape (r, r)
        The Cholesky factor of ``Q^T A^-1 Q``.
    coefficients : ndarray of shape (r, t)
        Of the basis, for each of t targets.
    transform : ndarray of shape (m, r)
        From basis functions to the basis.
    """

    solved: Matrix
    lower: Matrix
    coefficients: Matrix
    transform: Matrix
    _fitted: ClassVar[Fitted] = Fitted(
        {
            "solved": Floats("n, r"),
            "lower": Floats("r, r"),
            "coefficients": Floats("r, t"),
            "transform": Floats("m, r"),
        },
        rules=(("lower has a zero on its diagonal", lambda fit: bool((fit.lower.diagonal() > 0).all())),),
    )

    def moved(self, step: Matrix) -> TrendFit:
        """With ``step`` added to the coefficients."""
        return dataclasses.replace(self, coefficients=self.coefficients + step)

    @property
    def reduced(self) -> Matrix:
        """``U`` with ``P = A^-1 - U U^T``, (n, r)."""
        return np.asarray(scipy.linalg.solve_triangular(self.lower, self.solved.T, lower=True).T)

    @property
    def log_determinant(self) -> float:
        """Of ``Q^T A^-1 Q``."""
        return 2.0 * float(np.log(self.lower.diagonal()).sum())


def solve(factor: Factor, targets: Matrix, trend: Trend | None) -> tuple[Matrix, TrendFit | None]:
    """``alpha = P y`` for every target, and the fit of the trend."""
    if trend is None:
        return factor.solve(targets), None
    t = targets.shape[1]
    both = factor.solve(np.concatenate([targets, trend.basis], axis=1))
    solved = both[:, t:]
    try:
        lower = scipy.linalg.cholesky(trend.basis.T @ solved, lower=True)
    except np.linalg.LinAlgError as error:
        raise NumericalError(
            "the covariance matrix is so ill-conditioned that the coefficients of the mean function are not "
            'determined. Use a larger alpha, scale the columns of X, or choose mean="zero".'
        ) from error
    coefficients = scipy.linalg.cho_solve((lower, True), trend.basis.T @ both[:, :t])
    return both[:, :t] - solved @ coefficients, TrendFit(solved, lower, coefficients, trend.transform)
