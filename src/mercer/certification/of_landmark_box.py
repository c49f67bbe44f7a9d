"""Support vector machines over landmarks, beside the problem of all rows."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from mercer._errors import DataError
from mercer._types import Positions, Vector
from mercer.certification.finding import BallBound, Finding
from mercer.certification.rows_of_fit import RowsOfFit
from mercer.gram import Gram
from mercer.solvers.ball import radius, shift_of_kinks
from mercer.solvers.svm.box_qp import BoxQP
from mercer.solvers.svm.smo import SMO
from mercer.solvers.svm.warm_starts import feasible

# Rows next to a kink of the loss, as multiples of the landmarks, whose multipliers are solved for.
_FREE = 2
# Tolerance of the dual problem of these rows; the gap is computed from the weights, however exact they are.
_TOL = 1e-4
# Share of two objectives that rounding may hide in their difference.
_ROUNDING = 1e-13


@dataclass(frozen=True, eq=False)
class BoxLoss:
    r"""The loss :math:`u_i (r_i - \varepsilon)_+ - l_i (-r_i - \varepsilon)_+`.

    The residuals are :math:`r_i = t_i - f(x_i) - b`. It is the hinge of the signs :math:`t_i` with
    :math:`\varepsilon = 0` and one of the costs u and -l 0, and the epsilon-insensitive loss with both alike.

    Parameters
    ----------
    targets : ndarray of shape (n,)
        t.
    lower, upper : ndarray of shape (n,)
        l and u, the bounds of the weights of a dual solution.
    tube : float
    intercept : bool
        Whether there is b, so that the weights have the sum 0.
    """

    targets: Vector
    lower: Vector
    upper: Vector
    tube: float
    intercept: bool

    @classmethod
    def hinge(cls, signs: Vector, costs: Vector, *, intercept: bool) -> BoxLoss:
        """The hinge of classification.

        >>> BoxLoss.hinge(np.array([1.0, -1.0]), np.array([2.0, 3.0]), intercept=True).lower.tolist()
        [0.0, -3.0]
        """
        bounds = signs * costs
        return cls(signs, np.minimum(bounds, 0.0), np.maximum(bounds, 0.0), 0.0, intercept)

    def value(self, residuals: Vector) -> float:
        """The sum over the rows."""
        above, below = np.maximum(residuals - self.tube, 0.0), np.maximum(-residuals - self.tube, 0.0)
        return float(self.upper @ above - self.lower @ below)

    def slopes(self, residuals: Vector) -> Vector:
        """The weights that belong to the residuals away from the kinks."""
        return np.where(residuals > self.tube, self.upper, np.where(residuals < -self.tube, self.lower, 0.0))

    def problem(self, gram: Any, rows: Positions | slice, pulled: Vector | float, total: float) -> BoxQP:
        """The dual problem of some rows, for others that pull them by values (s,) and leave the sum ``total``."""
        return BoxQP(
            gram,
            self.targets[rows] - pulled,
            self.lower[rows],
            self.upper[rows],
            self.tube,
            totals=(total,) if self.intercept else (),
        )


def of_box(rows: RowsOfFit, loss: BoxLoss, offset: float) -> Finding:
    r"""Find how far f is from the least sum of losses plus :math:`\tfrac12 \|f\|^2`.

    A dual solution has weights at their bounds for rows away from the kinks of the loss. Those next to a kink, at most
    two for each landmark, are between: they are solved for, with the others as they are.

    Parameters
    ----------
    rows : RowsOfFit
        Of one function.
    loss : BoxLoss
    offset : float
    """
    residuals = loss.targets - rows.values[:, 0] - offset
    primal = loss.value(residuals) + float(rows.square_norms[0]) / 2
    beta = _weights(rows, loss, residuals)
    squares, along = rows.squares(beta[:, None]), float(loss.targets @ beta) - loss.tube * float(np.abs(beta).sum())
    gaps = []
    for square in (float(squares.low[0]), float(squares.high[0])):
        # Smaller multiples of the weights are feasible, too.
        share = min(1.0, max(along, 0.0) / square) if square > 0 else 1.0
        gaps.append(max(primal - (share * along - share**2 * square / 2), 0.0) + _ROUNDING * primal)
    ball = radius(gaps[1], abs(primal) + abs(primal - gaps[1]))
    bound = BallBound(rows, ball, partial(_interval, loss, residuals) if loss.intercept else None)
    return Finding(primal, (gaps[0], gaps[1]), ball, bound, squares.rows, len(residuals))


def _weights(rows: RowsOfFit, loss: BoxLoss, residuals: Vector) -> Vector:
    """A feasible dual solution near the best one, (n,)."""
    n, count = len(residuals), min(len(residuals), _FREE * rows.landmarks.shape[0])
    free = np.sort(np.argpartition(np.abs(np.abs(residuals) - loss.tube), count - 1)[:count])
    start = loss.slopes(residuals)
    beta = start.copy()
    beta[free] = 0.0
    try:
        beta[free] = _solved(rows, loss, beta, free)
    except DataError:
        # The sum of the weights cannot be 0 with the others as they are.
        beta = feasible(start, loss.problem(rows.gram, slice(None), 0.0, 0.0))
        beta[free] = _solved(rows, loss, np.where(np.isin(np.arange(n), free), 0.0, beta), free)
    return beta


def _solved(rows: RowsOfFit, loss: BoxLoss, fixed: Vector, free: Positions) -> Vector:
    """The best weights of the rows ``free``, with ``fixed`` (n,) for the others and 0 for these.

    Raises
    ------
    DataError
        If no weights within their bounds have the sum that is missing.
    """
    jobs, near = rows.model.n_jobs, rows.X[free]
    gram = Gram(rows.model.kernel_, near, dtype=np.float64, n_jobs=jobs)
    problem = loss.problem(gram, free, rows.products(near, fixed), -float(fixed.sum()))
    beta = SMO(tol=_TOL, n_jobs=jobs).solve(problem).value.beta
    return np.asarray(np.clip(beta, problem.lower, problem.upper))


def _interval(loss: BoxLoss, residuals: Vector, reach: Vector) -> tuple[float, float]:
    """Of the best change of the offset, for residuals that are known up to ``reach``."""
    # Where the loss of a row begins or ends as the offset grows.
    kinks = np.concatenate([residuals - loss.tube, residuals + loss.tube])
    steps = np.concatenate([loss.upper, -loss.lower])
    counts = steps > 0
    return shift_of_kinks(kinks[counts], steps[counts], float(loss.upper.sum()), np.tile(reach, 2)[counts])
