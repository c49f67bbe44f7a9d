"""Losses with a known conjugate over landmarks, beside the problem of all rows."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from scipy.optimize import minimize_scalar
from scipy.special import expit, xlogy

from mercer._errors import DataError, ParameterError
from mercer._types import Matrix, Vector
from mercer.certification.finding import BallBound, Finding
from mercer.certification.of_landmark_box import BoxLoss, of_box
from mercer.certification.rows_of_fit import RowsOfFit
from mercer.losses import Loss
from mercer.losses.log_loss import LogLoss
from mercer.solvers.ball import radius, shift_of_slope
from mercer.solvers.risk.certify import balanced
from mercer.solvers.risk.newton import best_offset

# Share of two objectives that rounding may hide in their difference.
_ROUNDING = 1e-13


@dataclass(frozen=True, eq=False)
class LossOfRows:
    r"""The sum :math:`\sum_i w_i\, \ell(y_i, f(x_i) + b)`.

    Parameters
    ----------
    loss : Loss
    targets : ndarray of shape (n,)
        y.
    weights : ndarray of shape (n,)
        w, above 0.
    intercept : bool
        Whether there is b.
    """

    loss: Loss
    targets: Vector
    weights: Vector
    intercept: bool

    def value(self, F: Matrix) -> float:
        """The sum."""
        return float(self.weights @ self.loss.value(self.targets, F[:, 0]))

    def best(self, F: Matrix, offsets: Vector) -> Vector:
        """The middle of the interval without a reach, if it has ends."""
        low, high = self.interval(F + offsets, np.zeros(len(F)))
        return offsets + 0.5 * (low + high) if math.isfinite(low) and math.isfinite(high) else offsets

    def dual_point(self, F: Matrix) -> Matrix:
        """The slopes at F, changed so that they have the weighted sum 0 if there is an offset."""
        u = self._slopes(F[:, 0])
        if self.intercept:
            u = balanced(self.loss, self.targets, self.weights, self.weights * u) / self.weights
            # The division may have rounded to where the conjugate is infinite.
            u = np.clip(u, *self.loss.slopes(self.targets))
        return u[:, None]

    def conjugate(self, u: Matrix) -> float:
        """The sum of the conjugates."""
        return float(self.weights @ self.loss.conjugate(self.targets, u[:, 0]))

    def interval(self, F: Matrix, reach: Vector) -> tuple[float, float]:
        """Of the best change of the offset."""
        f = F[:, 0]
        size = float(self.weights @ (np.abs(self._slopes(f)) + np.abs(f) + np.abs(self.targets)))
        with np.errstate(over="ignore", invalid="ignore"):
            return shift_of_slope(lambda change: float(self.weights @ self._slopes(f + change)), reach, size)

    def _slopes(self, f: Vector) -> Vector:
        with np.errstate(over="ignore"):
            return self.loss.gradient(self.targets, f)


@dataclass(frozen=True, eq=False)
class LogLossOfRows:
    """The log loss of rows of two or more classes."""

    loss: LogLoss
    intercept: bool

    @property
    def weights(self) -> Vector:
        """The costs of the rows."""
        return self.loss.cost

    def value(self, F: Matrix) -> float:
        """The sum."""
        return self.loss.value(F)

    def best(self, F: Matrix, offsets: Vector) -> Vector:
        """The best offsets, by Newton's method."""
        return best_offset(self.loss, F, offsets)

    def dual_point(self, F: Matrix) -> Matrix:
        """The slopes at F, whose weighted sum is 0 at the best offsets."""
        return -self.loss.pull(F) / self.loss.cost[:, None]

    def conjugate(self, u: Matrix) -> float:
        """Minus the entropies of the classes."""
        shares, rows = np.abs(u), np.arange(len(u))
        if self.loss.columns > 1:
            own, shares[rows, self.loss.codes] = shares[rows, self.loss.codes], 0.0
        else:
            own = shares[:, 0]
        rest = np.maximum(1.0 - own, 0.0)
        return float(self.loss.cost @ (xlogy(shares, shares).sum(axis=1) + xlogy(rest, rest)))

    def interval(self, F: Matrix, reach: Vector) -> tuple[float, float]:
        """Of the best change of the offset, for two classes."""
        cost, codes = self.loss.cost, self.loss.codes
        if self.loss.columns > 1:
            raise ParameterError(
                "no bound of the offsets of several classes is known, so that there is none of decision values. Pass "
                "fit_intercept=False, or look at two classes."
            )
        return shift_of_slope(lambda change: float(cost @ (expit(F[:, 0] + change) - codes)), reach, float(cost.sum()))


Risk = LossOfRows | LogLossOfRows


def of_loss(rows: RowsOfFit, risk: LossOfRows, alpha: float, offset: float) -> Finding:
    r"""Find how far f is from the least sum of losses plus :math:`\tfrac{\alpha}{2} \|f\|^2`.

    Losses of straight pieces are those of :func:`of_box`, all others those of :func:`of_smooth`.

    Parameters
    ----------
    rows : RowsOfFit
        Of one function.
    risk : LossOfRows
    alpha : float
    offset : float
    """
    tube = risk.loss.tube(risk.targets)
    if tube is not None:
        costs = risk.weights / alpha
        box = BoxLoss(tube.centre, -costs * tube.below, costs * tube.above, tube.width, risk.intercept)
        finding = of_box(rows, box, offset)
        gaps = (alpha * finding.gaps[0], alpha * finding.gaps[1])
        return replace(finding, primal=alpha * finding.primal, gaps=gaps)
    finding = of_smooth(rows, risk, alpha, np.array([offset]))
    if risk.loss.targets != "counts":
        return finding
    return replace(finding, bound=partial(_of_responses, rows, risk.loss, offset, finding.bound))


def of_smooth(rows: RowsOfFit, risk: Risk, alpha: float, offsets: Vector) -> Finding:
    r"""Find how far functions are from the least sum of smooth losses plus :math:`\tfrac{\alpha}{2} \|f\|^2`.

    The slopes u at f with its best offsets are a solution of the dual problem. With
    :math:`g = -\tfrac{1}{\alpha} \sum_i w_i u_i k(x_i, \cdot)` the gap is :math:`\tfrac{\alpha}{2} \|f - g\|^2`, what
    the best offsets win, and what Fenchel's inequality leaves where slopes were changed for the sum 0. Smaller
    multiples of the slopes are dual solutions, too.

    Parameters
    ----------
    rows : RowsOfFit
    risk : LossOfRows or LogLossOfRows
    alpha : float
    offsets : ndarray of shape (k,)

    Raises
    ------
    DataError
        If the objective is not finite.
    """
    F, norm = rows.values, float(rows.square_norms.sum())
    primal = risk.value(F + offsets) + alpha * norm / 2
    if not math.isfinite(primal):
        raise DataError(
            f"the objective of this {type(rows.model).__name__} at its training rows is {primal}, so that there is "
            "nothing to certify. Fit the model again, with smaller targets or a larger penalty."
        )
    best = risk.best(F, offsets) if risk.intercept else offsets
    u = risk.dual_point(F + best)
    C = -risk.weights[:, None] * u / alpha
    squares, along = rows.squares(C), float((C * F).sum())
    at_best, conjugate, pulled = risk.value(F + best), risk.conjugate(u), -alpha * float((C * (F + best)).sum())
    lost = max(primal - alpha * norm / 2 - at_best, 0.0) + max(at_best + conjugate - pulled, 0.0)
    # The sum of the multipliers is 0 only up to rounding, which a large offset makes visible.
    room = _ROUNDING * (abs(primal) + abs(conjugate) + alpha * float((np.abs(C) * (np.abs(F) + np.abs(best))).sum()))
    ends = []
    for square in (float(squares.low.sum()), float(squares.high.sum())):
        near = lost + alpha * max(norm - 2 * along + square, 0.0) / 2
        ends.append(max(min(near, primal - _largest_dual(risk, u, alpha * square)), 0.0) + room)
    ball = radius(ends[1], abs(primal) + abs(primal - ends[1]), strength=alpha)
    bound = BallBound(rows, ball, partial(risk.interval, F + offsets) if risk.intercept else None)
    return Finding(primal, (ends[0], ends[1]), ball, bound, squares.rows, len(F))


def _largest_dual(risk: Risk, u: Matrix, square: float) -> float:
    """The largest dual objective of all multiples of u up to u itself; ``square`` is ``alpha ||g||^2``."""

    def minus_dual(t: float) -> float:
        return risk.conjugate(t * u) + t * t * square / 2

    optimum = minimize_scalar(minus_dual, bounds=(0.0, 1.0), method="bounded")
    return -min(float(optimum.fun), minus_dual(1.0))


def _of_responses(rows: RowsOfFit, loss: Loss, offset: float, bound: Callable[[Any], Matrix], X: Any) -> Vector:
    """Bounds after the link of a loss, which grows: at the ends of the interval of the prediction."""
    f, reach, response = rows.values_at(rows.new_rows(X))[:, 0] + offset, bound(X), loss.response
    with np.errstate(over="ignore"):
        return np.asarray(np.maximum(response(f + reach) - response(f), response(f) - response(f - reach)))
