"""Newton's method for a smooth function of the predictions and half the squared norm.

Minimise ``H(F) + lam / 2 sum_j c_j'K c_j`` over C (n, m) and, if requested, offsets b (m,), where ``F = K C + 1 b'``.
With the residual ``R = H'(F) + lam C``, zero at the solution, the distance to the best value is at most
``tr(R'K R) / (2 lam)``. The curvature of H is a sum of squares S S', so that the system of a step is
``lam I + S'K S``: as large as the number of rows that curve, and well conditioned however singular K is.

Source: Rasmussen and Williams (2006), "Gaussian Processes for Machine Learning", section 3.4, for smooth losses of one
output; Li, Sun and Toh (2018), "A highly efficient semismooth Newton augmented Lagrangian method", SIAM J. Optim. 28.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from mercer._types import Matrix
from mercer.engine import threads
from mercer.engine.progress import Progress
from mercer.engine.trace import record
from mercer.solvers.algebra.line_search import flat_step
from mercer.solvers.risk.kernel_products import KernelProducts
from mercer.solvers.risk.rows import QuadraticModel, RowFunction

# What a step must gain of what the slope promises, and how small the slope must be where the search ends.
_GAIN = 1e-4
_LEVEL = 0.1
_SEARCH = 60
# Steps without a smaller residual after which rounding is taken to have stopped the progress.
_PATIENCE = 2
# Added to the curvature of the offsets, as a part of it.
_OFFSET = 1e-9


@dataclass(frozen=True, eq=False)
class Point:
    """Coefficients C (n, m), their product with K, and offsets b (m,)."""

    C: Matrix
    KC: Matrix
    b: NDArray[np.float64]

    @classmethod
    def zero(cls, n: int, m: int = 1) -> Point:
        return cls(np.zeros((n, m)), np.zeros((n, m)), np.zeros(m))

    @property
    def F(self) -> Matrix:
        """Predictions (n, m)."""
        return self.KC + self.b

    @property
    def square(self) -> float:
        """The squared norm, summed over the columns."""
        return max(float((self.C * self.KC).sum()), 0.0)


@dataclass(frozen=True, eq=False)
class Residual:
    """How far a point is from stationary: ``bound`` on what can be gained, ``worst`` in units of the predictions."""

    point: Point
    expansion: QuadraticModel
    R: Matrix
    KR: Matrix
    bound: float
    worst: float
    total: NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Newton:
    """Newton's method for one K and one problem.

    Parameters
    ----------
    K : KernelProducts
    intercept : bool, default=False
        Whether there are offsets.
    progress : Progress
    """

    K: KernelProducts
    progress: Progress
    intercept: bool = False

    def minimise(
        self, rows: RowFunction, lam: float, point: Point, enough: Callable[[Residual], bool], limit: int
    ) -> tuple[Residual, int]:
        """From ``point`` until ``enough`` holds for it, ``limit`` steps are done or nothing is gained.

        Returns the best point found and the number of steps.
        """
        best = self.residual(rows, lam, self._settled(rows, lam, point))
        residual, idle, steps = best, 0, 0
        while steps < limit and idle < _PATIENCE and not enough(residual):
            threads.checkpoint()
            change = self._direction(residual, lam)
            length = self._search(rows, lam, residual, change)
            steps += 1
            self.progress.advance()
            if length == 0.0:
                break
            point = residual.point
            point = Point(point.C + length * change.C, point.KC + length * change.KC, point.b + length * change.b)
            residual = self.residual(rows, lam, self._settled(rows, lam, point))
            better = residual.bound < best.bound
            idle = 0 if residual.bound < 0.5 * best.bound else idle + int(not self._descends(rows, lam, best, residual))
            best = residual if better else best
            record("Newton steps", steps, partial(self._figures, rows, lam, residual))
        return best, steps

    def _figures(self, rows: RowFunction, lam: float, residual: Residual) -> dict[str, float]:
        """What traces keep."""
        primal = float(rows.value(residual.point.F) + 0.5 * lam * residual.point.square)
        return {"primal": primal, "dual": primal - residual.bound, "violation": residual.worst}

    def residual(self, rows: RowFunction, lam: float, point: Point) -> Residual:
        expanded = rows.expand(point.F)
        R = expanded.gradient + lam * point.C
        KR = self.K @ R
        total = expanded.gradient.sum(axis=0) if self.intercept else np.zeros(R.shape[1])
        bound = max(float((R * KR).sum()) / (2.0 * lam), 0.0)
        if self.intercept:
            # Multipliers that do not sum to 0 must be moved, and the bound by that times a prediction at most.
            bound += float(np.abs(total) @ np.abs(point.F).max(axis=0))
        return Residual(point, expanded, R, KR, bound, float(np.abs(KR).max(initial=0.0)) / lam, total)

    def _settled(self, rows: RowFunction, lam: float, point: Point) -> Point:
        """The point with offsets at their best where no row curves, which no Newton step finds."""
        if not self.intercept:
            return point
        curved = np.square(rows.expand(point.F).directions).sum(axis=0) > 0
        total = rows.gradient(point.F).sum(axis=0)
        b = point.b.copy()
        for j in np.flatnonzero(~curved & (total != 0)).tolist():

            def slope(value: float, j: int = j) -> float:
                return float(rows.gradient(point.KC + np.where(np.arange(len(b)) == j, value, b))[:, j].sum())

            b[j] = root_of_rising(slope, float(b[j]))
        return replace(point, b=b)

    def _descends(self, rows: RowFunction, lam: float, before: Residual, after: Residual) -> bool:
        """Whether the objective fell by more than rounding."""
        old, new = (rows.value(r.point.F) + 0.5 * lam * r.point.square for r in (before, after))
        return new < old - 1e-13 * abs(old)

    def _direction(self, residual: Residual, lam: float) -> Point:
        """The step of Newton's method, as a change of the point."""
        at, S, m = residual.expansion.rows, residual.expansion.directions, residual.R.shape[1]
        right = -(residual.KR[at] * S).sum(axis=1)[:, None]
        solution = self.K.solve(lam, at, S, np.hstack([right, S]) if self.intercept else right)
        g, shift = solution[:, 0], np.zeros(m)
        if self.intercept:
            coupling = lam * (S.T @ solution[:, 1:])
            coupling = 0.5 * (coupling + coupling.T)
            # Where no row curves, the sum is settled already, and the offset stays.
            least = np.where(np.diag(coupling) > 0, _OFFSET * np.diag(coupling), 1.0)
            shift[:] = np.linalg.solve(coupling + np.diag(least), -residual.total - S.T @ g)
            g = g + lam * (solution[:, 1:] @ shift)
        spread = np.zeros_like(residual.R)
        np.add.at(spread, at, S * g[:, None])
        C = -(residual.R + spread) / lam
        return Point(C, self.K @ C, shift)

    def _search(self, rows: RowFunction, lam: float, residual: Residual, change: Point) -> float:
        """How far to go; 0 where rounding is all that is left."""
        point, F, dF = residual.point, residual.point.F, change.F
        linear = lam * float((point.KC * change.C).sum())
        square = lam * float((change.C * change.KC).sum())

        def slope(length: float) -> float:
            with np.errstate(invalid="ignore", over="ignore"):
                value = float((rows.gradient(F + length * dF) * dF).sum()) + linear + length * square
            return value if not np.isnan(value) else np.inf

        start = slope(0.0)
        if not start < 0:
            return 0.0
        # Where curvatures jump, a whole step that gains something leads to fewer steps than one to where it is flat.
        if rows.value(F + dF) + linear + 0.5 * square <= rows.value(F) + _GAIN * start:
            return 1.0
        return flat_step(slope, left=_LEVEL)


def root_of_rising(slope: Callable[[float], float], start: float) -> float:
    """Where a function that does not fall changes its sign, from ``start``, which is returned where it does not.

    >>> round(root_of_rising(lambda b: b**3 - 8.0, 0.0), 12)
    2.0
    """
    value = slope(start)
    if value == 0:
        return start
    step = -math.copysign(1e-3 * max(abs(start), 1.0), value)
    inner, outer = start, start + step
    while slope(outer) * value > 0 and math.isfinite(outer):
        inner, step = outer, 2.0 * step
        outer += step
    for _ in range(_SEARCH):
        middle = 0.5 * (inner + outer)
        if middle in (inner, outer):
            break
        inner, outer = (middle, outer) if slope(middle) * value > 0 else (inner, middle)
    return outer if math.isfinite(outer) else start
