"""Regularised least squares over landmarks: residuals and curvature, each from one pass over the rows."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mercer._errors import DataError, ParameterError
from mercer._types import Matrix, Positions, Vector
from mercer.solvers.restricted.passes import Passes, Residuals
from mercer.solvers.restricted.whitening import Whitening


@dataclass(frozen=True, eq=False)
class RestrictedLeastSquares:
    r"""Weighted, regularised least squares over functions :math:`f = \sum_j \beta_j k(z_j, \cdot)`.

    .. math:: \min_\beta \sum_i w_i (t_i - f(x_i))^2 + \alpha\, \beta^\top K_{mm} \beta

    Parameters
    ----------
    rows : Passes
        n rows, with k targets.
    white : Whitening
        Of the m landmarks.
    alphas : ndarray of shape (k,)
        The penalty of each target, above 0.
    exponents : ndarray of int of shape (k,), optional
        Targets are divided by two to these powers.
    """

    rows: Passes
    white: Whitening
    alphas: Vector
    exponents: Positions | None = None

    def __post_init__(self) -> None:
        n, m, k = self.rows.shape
        if self.white.factor.shape != (m, m) or np.shape(self.alphas) != (k,):
            raise DataError(
                f"{n} rows with {m} landmarks and {k} targets need a factor of shape ({m}, {m}) and {k} penalties; "
                f"the shapes are {self.white.factor.shape} and {np.shape(self.alphas)}."
            )
        if not (np.isfinite(self.alphas).all() and (np.asarray(self.alphas) > 0).all()):
            raise ParameterError(
                f"an approximation by landmarks needs alpha > 0 and finite, but alpha is {self.alphas}."
            )

    def residual(self, gamma: Matrix, rows: Passes | None = None) -> tuple[Matrix, Vector]:
        """Half of minus the gradient by coordinates, (m, k), and the objective of each target; one pass.

        It is over other ``rows`` where these are given.
        """
        k = gamma.shape[1]
        passes = self.rows if rows is None else rows
        products, losses = passes.sweep(self.white.coefficients(gamma), Residuals(self.exponents), (k, k))
        return self.white.pull(products) - self.alphas * gamma, losses + self.alphas * (gamma**2).sum(axis=0)

    def residuals_of_two(
        self, gamma: Matrix, rows: Passes | None = None
    ) -> tuple[tuple[Matrix, Vector], tuple[Matrix, Vector]]:
        """What :meth:`residual` returns for these coordinates and for 0; one pass."""
        k = gamma.shape[1]
        passes = self.rows if rows is None else rows
        visit = Residuals(self.exponents, beside_zero=True)
        products, losses = passes.sweep(self.white.coefficients(gamma), visit, (2 * k, 2 * k))
        pulled = self.white.pull(products)
        objective = losses[:k] + self.alphas * (gamma**2).sum(axis=0)
        return (pulled[:, :k] - self.alphas * gamma, objective), (pulled[:, k:], losses[k:])

    def curve(self, gamma: Matrix, rows: Passes | None = None) -> Matrix:
        """The Hessian (halved) times coordinates, (m, k); one pass, over other ``rows`` where these are given."""
        k = gamma.shape[1]
        # Within the range of float32, whatever the units of the targets.
        size = float(np.abs(gamma).max(initial=0.0)) or 1.0
        passes = self.rows if rows is None else rows
        products, _ = passes.sweep(self.white.coefficients(-gamma / size), Residuals(of_zero=True), (k, k))
        return size * self.white.pull(products) + self.alphas * gamma
