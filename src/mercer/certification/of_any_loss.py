"""Any loss with a known conjugate over landmarks, beside the problem of all rows."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.optimize import minimize_scalar

from mercer._errors import DataError
from mercer._types import Vector
from mercer.certification.finding import Finding
from mercer.certification.of_landmark_box import BoxLoss, of_box
from mercer.certification.rows_of_fit import RowsOfFit
from mercer.losses import Loss
from mercer.solvers.ball import radius, shift_of_slope
from mercer.solvers.risk.certify import balanced

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

    def value(self, f: Vector) -> float:
        """The sum."""
        return float(self.weights @ self.loss.value(self.targets, f))

    def slopes(self, f: Vector) -> Vector:
        """The derivatives of the losses without their weights, (n,)."""
        with np.errstate(over="ignore"):
            return self.loss.gradient(self.targets, f)

    def conjugate(self, u: Vector) -> float:
        """The sum of the conjugates."""
        return float(self.weights @ self.loss.conjugate(self.targets, u))

    def shift(self, f: Vector, reach: Vector) -> tuple[float, float]:
        """An interval of the best change of the offset, for values that are known up to ``reach``."""

        def slope(change: Vector) -> float:
            return float(self.weights @ self.slopes(f + change))

        size = float(self.weights @ (np.abs(self.slopes(f)) + np.abs(f) + np.abs(self.targets)))
        with np.errstate(over="ignore", invalid="ignore"):
            return shift_of_slope(slope, reach, size)

    def dual_point(self, f: Vector) -> Vector:
        """The slopes at f, changed so that they have the weighted sum 0 if there is an offset."""
        u = self.slopes(f)
        if not self.intercept:
            return u
        even = balanced(self.loss, self.targets, self.weights, self.weights * u) / self.weights
        # The division may have rounded to where the conjugate is infinite.
        return np.clip(even, *self.loss.slopes(self.targets))


def of_loss(rows: RowsOfFit, risk: LossOfRows, alpha: float, offset: float) -> Finding:
    r"""Find how far f is from the least sum of losses plus :math:`\tfrac{\alpha}{2} \|f\|^2`.

    The slopes u of smooth losses at f with its best offset are a solution of the dual problem. With
    :math:`g = -\tfrac{1}{\alpha} \sum_i w_i u_i k(x_i, \cdot)` the gap is :math:`\tfrac{\alpha}{2} \|f - g\|^2`, what
    the best offset wins, and what Fenchel's inequality leaves where slopes were changed for the sum 0. Smaller
    multiples of the slopes are dual solutions, too. Losses of straight pieces are those of :func:`of_box`.

    Parameters
    ----------
    rows : RowsOfFit
        Of one function.
    risk : LossOfRows
    alpha : float
    offset : float

    Raises
    ------
    DataError
        If the objective is not finite.
    """
    tube = risk.loss.tube(risk.targets)
    if tube is not None:
        costs = risk.weights / alpha
        box = BoxLoss(tube.centre, -costs * tube.below, costs * tube.above, tube.width, risk.intercept)
        finding = of_box(rows, box, offset)
        gaps = (alpha * finding.gaps[0], alpha * finding.gaps[1])
        return replace(finding, primal=alpha * finding.primal, gaps=gaps)
    f, norm = rows.values[:, 0], float(rows.square_norms[0])
    primal, best = risk.value(f + offset) + alpha * norm / 2, offset
    if not math.isfinite(primal):
        raise DataError(
            f"the objective of this {type(rows.model).__name__} at its training rows is {primal}, so that there is "
            "nothing to certify. Fit the model again, with smaller targets or a larger penalty."
        )
    if risk.intercept:
        low, high = risk.shift(f + offset, np.zeros_like(f))
        best += 0.5 * (low + high) if math.isfinite(low) and math.isfinite(high) else 0.0
    u = risk.dual_point(f + best)
    c = -risk.weights * u / alpha
    squares, along = rows.squares(c[:, None]), float(c @ f)
    at_best = risk.value(f + best)
    conjugate, pulled = risk.conjugate(u), float((risk.weights * u) @ (f + best))
    lost = max(primal - alpha * norm / 2 - at_best, 0.0) + max(at_best + conjugate - pulled, 0.0)
    # The sum of the multipliers is 0 only up to rounding, which a large offset makes visible.
    room = _ROUNDING * (abs(primal) + abs(conjugate) + alpha * float(np.abs(c) @ (np.abs(f) + abs(best))))
    ends = []
    for square in (float(squares.low[0]), float(squares.high[0])):
        near = lost + alpha * max(norm - 2 * along + square, 0.0) / 2
        ends.append(max(min(near, primal - _largest_dual(risk, u, alpha * square)), 0.0) + room)
    ball = radius(ends[1], abs(primal) + abs(primal - ends[1]), strength=alpha)
    bound = _LossBound(rows, risk, offset, ball)
    return Finding(primal, (ends[0], ends[1]), ball, bound, squares.rows, len(f))


def _largest_dual(risk: LossOfRows, u: Vector, square: float) -> float:
    """The largest dual objective of all multiples of u up to u itself; ``square`` is ``alpha ||g||^2``."""

    def minus_dual(t: float) -> float:
        return risk.conjugate(t * u) + t * t * square / 2

    optimum = minimize_scalar(minus_dual, bounds=(0.0, 1.0), method="bounded")
    return -min(float(optimum.fun), minus_dual(1.0))


@dataclass(frozen=True, eq=False)
class _LossBound:
    """From new rows to bounds of predictions without the link of the loss, (m,)."""

    rows: RowsOfFit
    risk: LossOfRows
    offset: float
    ball: float

    def __call__(self, X: Any) -> Vector:
        X = self.rows.new_rows(X)
        lengths = self.rows.lengths_of(X)
        out = self.rows.rounding(lengths)[:, 0] + self.ball * lengths
        if self.risk.intercept:
            out = out + self._shift()
        return self._of_responses(X, out) if self.risk.loss.targets == "counts" else out

    def _shift(self) -> float:
        """How far the offset of the exact solution may be from this one."""
        reach = self.ball * self.rows.lengths + self.rows.rounding(self.rows.lengths)[:, 0]
        low, high = self.risk.shift(self.rows.values[:, 0] + self.offset, reach)
        return max(-low, high, 0.0) if math.isfinite(low) and math.isfinite(high) else math.inf

    def _of_responses(self, X: Any, reach: Vector) -> Vector:
        """The same after the link, which grows: at the ends of the interval of the prediction."""
        f, response = self.rows.values_at(X)[:, 0] + self.offset, self.risk.loss.response
        with np.errstate(over="ignore"):
            return np.asarray(np.maximum(response(f + reach) - response(f), response(f) - response(f - reach)))
