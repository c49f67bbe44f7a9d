"""Squared error over landmarks, beside the problem of all rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from mercer._types import Matrix, Positions, Vector
from mercer.certification.finding import Finding
from mercer.certification.rows_of_fit import RowsOfFit
from mercer.engine import memory
from mercer.solvers.restricted.exact import SubsetVariance

# Rows whose posterior variance stands for that of all: at least so many, or as many as there are landmarks.
_VARIANCE_ROWS = 2000
# Share of two objectives that rounding may hide in their difference.
_ROUNDING = 1e-13


def of_ridge(rows: RowsOfFit, targets: Matrix, weights: Vector, alphas: Vector) -> Finding:
    r"""Find how far functions are from the least of :math:`\sum_i w_i (y_i - f(x_i))^2 + \alpha \|f\|^2`.

    With :math:`c = W (y - f(X)) / \alpha` and :math:`g = \sum_i c_i k(x_i, \cdot)` the gap to the dual objective
    :math:`\alpha (2 c^\top y - c^\top (K + \alpha W^{-1}) c)` is

    .. math:: \alpha \|f - g\|^2
              = 2 \sum_i w_i (f - f^*)(x_i)^2 + \alpha \|f - f^*\|^2 + \alpha \|g - f^*\|^2 .

    The multiple of c with the largest dual objective has the gap of the certificate.

    Parameters
    ----------
    rows : RowsOfFit
    targets : ndarray of shape (n, t)
    weights : ndarray of shape (n,)
    alphas : ndarray of shape (t,)
    """
    residuals = targets - rows.values
    C = weights[:, None] * residuals / alphas
    squares, norms = rows.squares(C), rows.square_norms
    losses = (weights[:, None] * residuals**2).sum(axis=0)
    primal = losses + alphas * norms
    along, own = (C * targets).sum(axis=0), losses / alphas
    # The gap of c itself, without the cancellation of objectives.
    gaps = [
        alphas * np.maximum(norms - 2 * (C * rows.values).sum(axis=0) + q, 0.0) for q in (squares.low, squares.high)
    ]
    scaled = [
        np.maximum(primal - _largest_dual(along, own + q, alphas), 0.0) + _ROUNDING * primal
        for q in (squares.low, squares.high)
    ]
    low, high = (np.minimum(one, other) for one, other in zip(gaps, scaled, strict=True))
    # Of c itself the rows count twice.
    pair = gaps[1] <= 2 * scaled[1]
    energies, halves = np.where(pair, gaps[1], scaled[1]), np.where(pair, 2.0, 1.0)
    at_rows = np.minimum(gaps[1] / 4, scaled[1])
    return Finding(
        float(primal.sum()),
        (float(low.sum()), float(high.sum())),
        float(np.sqrt(energies / alphas).max()),
        _RidgeBound(rows, weights, energies, halves, alphas),
        squares.rows,
        len(weights),
        float(np.sqrt(at_rows.max() / weights.sum())),
    )


def _largest_dual(along: Vector, square: Vector, alphas: Vector) -> Vector:
    """The largest dual objective of all multiples of c, from ``c'y`` and ``c'(K + alpha W^-1) c``, (t,)."""
    with np.errstate(divide="ignore", invalid="ignore"):
        best = np.where(square > 0, along**2 / square, 0.0)
    return np.asarray(np.where(np.isfinite(best), alphas * best, 0.0))


@dataclass(frozen=True, eq=False)
class _RidgeBound:
    """From new rows to bounds, (m,) or (m, t).

    A function h with :math:`s \\sum_i w_i h(x_i)^2 + \\alpha \\|h\\|^2 \\le g` has
    :math:`h(x)^2 \\le g v(x) / \\alpha`, with the posterior variance v for noise of the variance
    :math:`\\alpha / (s w_i)`: s is 2 or 1 for each target, g its energy.
    """

    rows: RowsOfFit
    weights: Vector
    energies: Vector
    halves: Vector
    alphas: Vector

    def __call__(self, X: Any) -> Matrix:
        X = self.rows.new_rows(X)
        some = self._some_rows()
        S, weights = self.rows.X[some], self.weights[some]
        out = self.rows.rounding(self.rows.lengths_of(X))
        noises = self.alphas / self.halves
        for noise in np.unique(noises):
            variance = SubsetVariance.of(self.rows.model.kernel_, S, noise / weights, self.rows.model.n_jobs)
            columns = noises == noise
            out[:, columns] += np.sqrt(np.outer(variance(X), self.energies[columns] / self.alphas[columns]))
        return out[:, 0] if self.rows.model.dual_coef_.ndim == 1 else out

    def _some_rows(self) -> Positions:
        n = len(self.weights)
        most = min(n, max(_VARIANCE_ROWS, self.rows.landmarks.shape[0]))
        size = memory.fitting(lambda s: 16 * s * s, most, 1)
        return np.sort(np.random.RandomState(0).choice(n, size, replace=False))
