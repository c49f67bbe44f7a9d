"""Squared error and log loss over landmarks, beside the problem of all rows."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.optimize import minimize_scalar
from scipy.special import expit, xlogy

from mercer._errors import ParameterError
from mercer._types import Matrix, Positions, Vector
from mercer.certification.finding import Finding
from mercer.certification.rows_of_fit import RowsOfFit
from mercer.engine import memory
from mercer.losses.log_loss import LogLoss, log_loss
from mercer.solvers.ball import radius, shift_of_slope
from mercer.solvers.restricted.exact import SubsetVariance
from mercer.solvers.risk.newton import best_offset

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


def of_logistic(
    rows: RowsOfFit, codes: Positions, cost: Vector, classes: int, offsets: Vector, *, intercept: bool
) -> Finding:
    r"""Find how far functions are from the least of :math:`\sum_i c_i \ell(y_i, f(x_i) + b) + \tfrac12 \|f\|^2`.

    The slopes at f with its best offsets are a solution of the dual problem, and with their expansion g the gap is
    :math:`\tfrac12 \|f - g\|^2`, and what the best offsets win. Smaller multiples of the slopes
    are dual solutions, too.

    Parameters
    ----------
    rows : RowsOfFit
    codes : ndarray of int of shape (n,)
    cost : ndarray of shape (n,)
    classes : int
    offsets : ndarray of shape (k,)
    intercept : bool
    """
    loss = log_loss(codes, cost, classes)
    best = best_offset(loss, rows.values, offsets) if intercept else offsets
    G = loss.pull(rows.values + best)
    squares, norm = rows.squares(G), float(rows.square_norms.sum())
    primal = loss.value(rows.values + offsets) + norm / 2
    won = primal - loss.value(rows.values + best) - norm / 2
    along = float((G * rows.values).sum())
    low, high = (
        min(max(won, 0.0) + max(norm - 2 * along + q, 0.0) / 2, primal - _largest_entropy(loss, G, q))
        for q in (float(squares.low.sum()), float(squares.high.sum()))
    )
    ball = radius(high, abs(primal) + abs(primal - high))
    bound = _LogisticBound(rows, loss, offsets, ball, intercept)
    return Finding(primal, (max(low, 0.0), max(high, 0.0)), ball, bound, squares.rows, len(codes))


def _largest_entropy(loss: LogLoss, G: Matrix, square: float) -> float:
    """The largest dual objective of all multiples of G up to G itself, with ``tr G'KG``."""
    relative = np.abs(G) / loss.cost[:, None]
    if loss.columns > 1:
        own = relative[np.arange(len(G)), loss.codes].copy()
        relative[np.arange(len(G)), loss.codes] = 0.0
    else:
        own = relative[:, 0]

    def minus_dual(t: float) -> float:
        entropies = -xlogy(t * relative, t * relative).sum(axis=1) - xlogy(1 - t * own, 1 - t * own)
        return t * t * square / 2 - float(loss.cost @ entropies)

    optimum = minimize_scalar(minus_dual, bounds=(0.0, 1.0), method="bounded")
    return -min(float(optimum.fun), minus_dual(1.0))


@dataclass(frozen=True, eq=False)
class _LogisticBound:
    """From new rows to bounds of decision values, (m,) or (m, k)."""

    rows: RowsOfFit
    loss: LogLoss
    offsets: Vector
    ball: float
    intercept: bool

    def __call__(self, X: Any) -> Matrix:
        if self.intercept and self.loss.columns > 1:
            raise ParameterError(
                "no bound of the offsets of several classes is known, so that there is none of decision values. Pass "
                "fit_intercept=False, or look at two classes."
            )
        X = self.rows.new_rows(X)
        lengths = self.rows.lengths_of(X)
        out = self.rows.rounding(lengths) + self.ball * lengths[:, None]
        if self.intercept:
            out += self._shift()
        return out[:, 0] if self.loss.columns == 1 else out

    def _shift(self) -> float:
        """How far the offset of the exact solution may be from this one."""
        at = self.rows.values[:, 0] + self.offsets[0]
        reach = self.ball * self.rows.lengths + self.rows.rounding(self.rows.lengths)[:, 0]
        cost, codes = self.loss.cost, self.loss.codes

        def slope(change: Vector) -> float:
            return float(cost @ (expit(at + change) - codes))

        low, high = shift_of_slope(slope, reach, float(cost.sum()))
        return max(-low, high, 0.0) if math.isfinite(low) and math.isfinite(high) else math.inf
