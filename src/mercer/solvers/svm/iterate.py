"""The state of a support vector solver: the weights, their box, and the gradient."""

from __future__ import annotations

import copy
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from mercer._types import Vector
from mercer.solvers.svm.box_qp import BoxQP

Interval = tuple[float, float]
# A sum that is this close to its total, relative to the weights in it, has it.
_ROUNDING = 1e-10
# A weight as close to its bound (or to 0, where a tube has its edge) as this part of the largest weight is there: what
# rounding has left of it would count as free and decide the offset.
_AT_BOUND = 1e-12


@dataclass
class Iterate:
    """Weights ``beta`` in ``[lower, upper]`` and the gradient ``F = linear - K beta`` of the dual, (n,) each.

    The value of a row is F less the slope of ``tube |beta|``. At the solution it is b for every row strictly inside
    its box, at most b where beta may only rise, and at least b where it may only fall; where there is no sum that
    the weights must keep (``sums = 0``), b is 0.

    It is the state of every level of :class:`mercer.solvers.svm.smo.SMO`: each level moves a part of the point
    (:meth:`take`) and hands it back (:meth:`put`).
    """

    linear: Vector
    lower: Vector
    upper: Vector
    beta: Vector
    F: Vector
    tube: float = 0.0
    totals: tuple[float, ...] = (0.0,)
    groups: NDArray[np.int8] | None = None
    steps: int = 0
    # The weights at which the gradient is ``linear``, where these are not zero.
    origin: Vector | None = None

    @classmethod
    def begin(cls, problem: BoxQP, start: Vector | None) -> Iterate:
        """Create the point at ``start`` or at zero, which may not have the right sums; ``F`` is exact only at zero."""
        beta = np.zeros(len(problem.linear)) if start is None else np.clip(start, problem.lower, problem.upper)
        return cls(
            problem.linear,
            problem.lower,
            problem.upper,
            beta,
            problem.linear.copy(),
            problem.tube,
            problem.totals,
            problem.groups,
        )

    def fill(self, totals: Vector) -> np.ndarray:
        """Correct each sum by the weights that gain most; return the change, which F does not include.

        Weights that are there already must not be beyond the totals.
        """
        change = np.zeros(len(self.beta))
        for part, total in zip(self.parts(), totals):
            rows = np.arange(len(change))[part]
            missing = total - float(self.beta[rows].sum())
            if abs(missing) <= _ROUNDING * max(abs(total), float(np.abs(self.beta[rows]).sum())):
                continue
            room = self.upper[rows] - self.beta[rows] if missing > 0 else self.beta[rows] - self.lower[rows]
            order = np.argsort(-np.sign(missing) * self.F[rows], kind="stable")
            before = np.concatenate([[0.0], np.cumsum(room[order])[:-1]])
            change[rows[order]] = np.sign(missing) * np.clip(abs(missing) - before, 0.0, room[order])
        self.beta = self.beta + change
        return change

    def take(self, rows: np.ndarray) -> Iterate:
        """Copy the part of the point at ``rows``: the problem with all other weights fixed.

        Its dual objective counts from here.
        """
        groups = None if self.groups is None else self.groups[rows]
        return replace(
            self,
            linear=self.F[rows],
            lower=self.lower[rows],
            upper=self.upper[rows],
            beta=self.beta[rows],
            F=self.F[rows],
            groups=groups,
            origin=self.beta[rows],
        )

    def put(self, rows: np.ndarray, part: Iterate) -> None:
        """Copy the weights, the gradient and the steps of a part back; the gradient of other rows is unchanged."""
        self.beta[rows], self.F[rows], self.steps = part.beta, part.F, part.steps

    @property
    def sums(self) -> int:
        """The number of sums that the weights must keep."""
        return len(self.totals)

    def off(self) -> Vector:
        """By how much each sum is above its total; it is that of the whole problem, not of a part."""
        return np.array([self.beta[part].sum() - total for part, total in zip(self.parts(), self.totals)])

    @property
    def may_rise(self) -> np.ndarray:
        """Rows whose beta is below its upper bound."""
        return self.beta < self.upper

    @property
    def may_fall(self) -> np.ndarray:
        """Rows whose beta is above its lower bound."""
        return self.beta > self.lower

    @property
    def free(self) -> np.ndarray:
        """Rows whose beta may move in both directions with the same slope."""
        inside = self.may_rise & self.may_fall
        return inside & (self.beta != 0) if self.tube else inside

    @property
    def support(self) -> np.ndarray:
        """Indices of the rows with a weight that is not zero."""
        return np.flatnonzero(self.beta)

    def parts(self) -> list[slice | np.ndarray]:
        """The rows of each sum; all rows if there is none."""
        return [slice(None)] if self.groups is None else [np.flatnonzero(self.groups == g) for g in (0, 1)]

    def membership(self) -> Vector:
        """One where a row belongs to a sum, zero elsewhere, (n, sums)."""
        if self.groups is None:
            return np.ones((len(self.F), self.sums))
        return np.column_stack([self.groups == 0, self.groups == 1]).astype(np.float64)

    def sides(self) -> tuple[Vector, Vector]:
        """Return the value of rows that may rise, and minus that of rows that may fall; -inf for other rows."""
        rising, falling = np.where(self.may_rise, self.F, -np.inf), np.where(self.may_fall, -self.F, -np.inf)
        if self.tube:
            rising -= np.where(self.beta >= 0, self.tube, -self.tube)
            falling += np.where(self.beta > 0, self.tube, -self.tube)
        return rising, falling

    def intervals(self) -> list[Interval]:
        """For each sum the largest value that may rise and the smallest that may fall; b lies between them."""
        rising, falling = self.sides()
        intervals = [(float(rising[part].max()), -float(falling[part].max())) for part in self.parts()]
        return intervals if self.sums else [(max(intervals[0][0], 0.0), min(intervals[0][1], 0.0))]

    def violation(self) -> float:
        """The worst violation of the optimality conditions: ``max (may rise) - min (may fall)``, or 0."""
        gaps = [top - bottom for top, bottom in self.intervals() if np.isfinite(top) and np.isfinite(bottom)]
        return max([0.0, *gaps])

    def offsets(self) -> tuple[float, ...]:
        """The multiplier b of each sum: the median value of its free rows, or the middle of the interval.

        The value of a row with far larger kernel values than the others may be rounding, and moves no median. What
        rounding has left next to a bound does not count, nor so how copies of a row share its weight.
        """
        if not self.sums:
            return ()
        point = self._on_bounds()
        free, values = point.free, point.F - point.tube * np.sign(point.beta) if point.tube else point.F
        offsets = []
        for part, (top, bottom) in zip(point.parts(), point.intervals()):
            if free[part].any():
                offsets.append(float(np.median(values[part][free[part]])))
            elif np.isfinite(top) and np.isfinite(bottom):
                offsets.append(0.5 * (top + bottom))
            else:
                offsets.append(top if np.isfinite(top) else bottom)
        return tuple(offsets)

    def _on_bounds(self) -> Iterate:
        """Return the point with weights within rounding of a bound moved to it; F is unchanged."""
        rounding = _AT_BOUND * float(np.abs(self.beta).max(initial=0.0))
        above, below = self.upper - self.beta, self.beta - self.lower
        beta = np.where(above <= np.minimum(rounding, below), self.upper, self.beta)
        beta = np.where(below <= np.minimum(rounding, above), self.lower, beta)
        if self.tube:
            beta[np.abs(beta) <= rounding] = 0.0
        point = copy.copy(self)
        point.beta = beta
        return point

    def residual(self, offsets: tuple[float, ...] | None = None) -> Vector:
        """``F - b``, each row with the b of its sum, which :meth:`offsets` gives if it is not passed."""
        offsets = self.offsets() if offsets is None else offsets
        if self.groups is not None:
            return self.F - np.asarray(offsets)[self.groups]
        return self.F - offsets[0] if offsets else self.F

    def dual(self) -> float:
        """The dual objective ``linear'beta - tube |beta| - beta'K beta / 2``; for a part, its increase."""
        change = self.beta if self.origin is None else self.beta - self.origin
        value = 0.5 * (change @ (self.linear + self.F))
        if self.tube:
            before = 0.0 if self.origin is None else np.abs(self.origin).sum()
            value -= self.tube * (np.abs(self.beta).sum() - before)
        return float(value)
