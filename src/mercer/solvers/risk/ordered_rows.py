"""Pinball losses of several levels, of predictions that must not cross: proximal map and envelope, row by row."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mercer._types import Matrix, Vector
from mercer.solvers.risk.rows import QuadraticModel

# Predictions of two levels that differ by this part of their size are one but for rounding.
_ROUNDING = 1e-13


def ordered_prox(y: Vector, levels: Vector, V: Matrix, step: Vector) -> Matrix:
    r"""The proximal map of the pinball losses of all levels under the order of the predictions.

    .. math:: \arg\min_{p_{i1} \le \dots \le p_{im}} \sum_j s_i \rho_{\tau_j}(y_i - p_{ij})
              + \tfrac12 (p_{ij} - V_{ij})^2

    It is an isotonic regression with strictly convex losses: :math:`p_j = \max_{k \le j} \min_{l \ge j} \theta_{kl}`
    with the best single prediction :math:`\theta_{kl}` for the levels from k to l, which is the proximal map of one
    pinball loss at the mean of their levels and of their columns of V.

    Parameters
    ----------
    y : ndarray of shape (n,)
    levels : ndarray of shape (m,)
        Ascending.
    V : ndarray of shape (n, m)
    step : ndarray of shape (n,)

    References
    ----------
    T. Robertson, F. T. Wright and R. L. Dykstra, "Order restricted statistical inference" (1988), section 1.4.

    Examples
    --------
    >>> V = np.array([[3.0, 1.0], [0.0, 1.0]])
    >>> ordered_prox(np.zeros(2), np.array([0.25, 0.75]), V, np.array([1.0, 1.0]))
    array([[1.5 , 1.5 ],
           [0.  , 0.75]])
    """
    n, m = V.shape
    P = np.full((n, m), -np.inf)
    for k in range(m):
        count = np.arange(1, m - k + 1)
        mean, level = np.cumsum(V[:, k:], axis=1) / count, np.cumsum(levels[k:]) / count
        theta = np.clip(y[:, None], mean - step[:, None] * (1.0 - level), mean + step[:, None] * level)
        least = np.minimum.accumulate(theta[:, ::-1], axis=1)[:, ::-1]
        np.maximum(P[:, k:], least, out=P[:, k:])
    return P


@dataclass(frozen=True, eq=False)
class OrderedRows:
    """The augmented Lagrangian of the pinball losses under the order, as a function of predictions (n, m).

    ``price`` (n,) is the factor of each row's losses, ``multipliers`` (n, m) are those of the predictions.
    """

    targets: Vector
    levels: Vector
    price: Vector
    multipliers: Matrix
    sigma: float

    def nearest(self, F: Matrix) -> Matrix:
        """The predictions in order that the envelope is taken at, (n, m)."""
        return ordered_prox(self.targets, self.levels, F + self.multipliers / self.sigma, self.price / self.sigma)

    def value(self, F: Matrix) -> float:
        P = self.nearest(F)
        away = F - P
        losses = pinball(self.targets, self.levels, P).sum(axis=1)
        return float(self.price @ losses + (self.multipliers * away).sum() + 0.5 * self.sigma * np.square(away).sum())

    def gradient(self, F: Matrix) -> Matrix:
        return self.multipliers + self.sigma * (F - self.nearest(F))

    def expand(self, F: Matrix) -> QuadraticModel:
        P = self.nearest(F)
        rows, directions = _directions(self.targets, P)
        return QuadraticModel(self.multipliers + self.sigma * (F - P), rows, np.sqrt(self.sigma) * directions)


def pinball(y: Vector, levels: Vector, F: Matrix) -> Matrix:
    """The loss of each row (n,) at each level (m,)."""
    r = y[:, None] - F
    return np.maximum(levels * r, (levels - 1.0) * r)


def _directions(y: Vector, P: Matrix) -> tuple[NDArray[np.intp], Matrix]:
    """Orthonormal directions in which the proximal map does not move, with their rows.

    Predictions on their target stay there; those of levels that are tied move together, so that only what
    has no part in their mean is left.
    """
    n, m = P.shape
    fixed = y[:, None] == P
    rows, directions = [], []
    together = np.zeros(n, dtype=np.intp)
    for j in range(m):
        at = np.flatnonzero(fixed[:, j])
        rows.append(at)
        directions.append(np.tile(np.eye(m)[j], (len(at), 1)))
        if j == 0:
            continue
        size = np.abs(P[:, j]) + np.abs(P[:, j - 1])
        joined = (np.abs(P[:, j] - P[:, j - 1]) <= _ROUNDING * size) & ~fixed[:, j] & ~fixed[:, j - 1]
        together = np.where(joined, together + 1, 0)
        at = np.flatnonzero(together)
        r = together[at][:, None]
        level = np.arange(m)[None, :]
        among = (level >= j - r) & (level < j)
        rows.append(at)
        directions.append((among - r * (level == j)) / np.sqrt(r * (r + 1.0)))
    return np.concatenate(rows), np.concatenate(directions)
