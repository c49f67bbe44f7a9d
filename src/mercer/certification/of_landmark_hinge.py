"""Support vector classifiers over landmarks, beside the problem of all rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from mercer._errors import DataError
from mercer._types import Positions, Vector
from mercer.certification.finding import Finding
from mercer.certification.rows_of_fit import RowsOfFit
from mercer.gram import Gram
from mercer.solvers.ball import radius, shift_of_kinks
from mercer.solvers.svm.box_qp import BoxQP
from mercer.solvers.svm.smo import SMO
from mercer.solvers.svm.warm_starts import feasible

# Rows next to the margin, as multiples of the landmarks, whose multipliers are solved for.
_FREE = 2
# Of the part of the dual problem of these rows; the gap is computed from whatever is found.
_TOL = 1e-4
# Share of two objectives that rounding may hide in their difference.
_ROUNDING = 1e-13


def of_hinge(rows: RowsOfFit, signs: Vector, costs: Vector, offset: float, *, intercept: bool) -> Finding:
    r"""Find how far f is from the least of :math:`\sum_i c_i \max(0, 1 - y_i (f(x_i) + b)) + \tfrac12 \|f\|^2`.

    A dual solution has the weights :math:`\beta_i = y_i c_i` for rows within the margin and 0 for rows beyond it. Those
    next to the margin, at most two for each landmark, are between: they are solved for, with the others as they are.

    Parameters
    ----------
    rows : RowsOfFit
        Of one function, n rows.
    signs : ndarray of shape (n,)
        y, +1 or -1.
    costs : ndarray of shape (n,)
        c, above 0.
    offset : float
    intercept : bool
    """
    residuals = 1.0 - signs * (rows.values[:, 0] + offset)
    primal = float(costs @ np.maximum(residuals, 0.0)) + float(rows.square_norms[0]) / 2
    beta = _multipliers(rows, signs, costs, residuals, intercept)
    found, along = rows.squares(beta[:, None]), float(signs @ beta)
    gaps = []
    for square in (float(found.low[0]), float(found.high[0])):
        # Smaller multiples of the weights are feasible, too.
        share = min(1.0, along / square) if square > 0 else 1.0
        gaps.append(max(primal - (share * along - share**2 * square / 2), 0.0) + _ROUNDING * primal)
    ball = radius(gaps[1], abs(primal) + abs(primal - gaps[1]))
    bound = _HingeBound(rows, signs, costs, offset, ball, intercept)
    return Finding(primal, (gaps[0], gaps[1]), ball, bound, found.rows, len(signs))


def _multipliers(rows: RowsOfFit, signs: Vector, costs: Vector, residuals: Vector, intercept: bool) -> Vector:
    """A feasible dual solution near the best one, (n,)."""
    n, count = len(signs), min(len(signs), _FREE * rows.landmarks.shape[0])
    free = np.sort(np.argpartition(np.abs(residuals), count - 1)[:count])
    beta = np.where(residuals > 0, signs * costs, 0.0)
    beta[free] = 0.0
    try:
        beta[free] = _solved(rows, signs, costs, beta, free, intercept)
    except DataError:
        # The sum of the weights cannot be 0 with the others as they are.
        start = np.where(residuals > 0, signs * costs, 0.0)
        gram = Gram(rows.model.kernel_, rows.X, dtype=np.float64, n_jobs=rows.model.n_jobs)
        beta = feasible(start, BoxQP.classification(gram, signs, costs, intercept=intercept))
        beta[free] = _solved(rows, signs, costs, np.where(np.isin(np.arange(n), free), 0.0, beta), free, intercept)
    return beta


def _solved(rows: RowsOfFit, signs: Vector, costs: Vector, fixed: Vector, free: Positions, intercept: bool) -> Vector:
    """The best weights of the rows ``free``, with ``fixed`` (n,) for the others and 0 for these.

    Raises
    ------
    DataError
        If no weights within their bounds have the sum that is missing.
    """
    kernel, jobs = rows.model.kernel_, rows.model.n_jobs
    gram = Gram(kernel, rows.X[free], dtype=np.float64, n_jobs=jobs)
    others = np.flatnonzero(fixed)
    pulled = np.zeros(len(free))
    if len(others):
        pulled = np.asarray(Gram(kernel, rows.X[free], rows.X[others], dtype=np.float64, n_jobs=jobs) @ fixed[others])
    bounds = signs[free] * costs[free]
    problem = BoxQP(
        gram,
        signs[free] - pulled,
        np.minimum(bounds, 0.0),
        np.maximum(bounds, 0.0),
        totals=(-float(fixed.sum()),) if intercept else (),
    )
    beta = SMO(tol=_TOL, n_jobs=jobs).solve(problem).value.beta
    return np.asarray(np.clip(beta, problem.lower, problem.upper))


@dataclass(frozen=True, eq=False)
class _HingeBound:
    """From new rows to bounds of decision values, (m,)."""

    rows: RowsOfFit
    signs: Vector
    costs: Vector
    offset: float
    ball: float
    intercept: bool

    def __call__(self, X: Any) -> Vector:
        X = self.rows.new_rows(X)
        lengths = self.rows.lengths_of(X)
        out = self.rows.rounding(lengths)[:, 0] + self.ball * lengths
        return out + self._shift() if self.intercept else out

    def _shift(self) -> float:
        """How far the offset of the exact solution may be from this one."""
        at = self.rows.values[:, 0] + self.offset
        reach = self.ball * self.rows.lengths + self.rows.rounding(self.rows.lengths)[:, 0]
        # The loss of a row begins or ends where y = f.
        total = float(self.costs[self.signs > 0].sum())
        low, high = shift_of_kinks(self.signs - at, self.costs, total, reach)
        return max(-low, high, 0.0)
