"""The problem with half the squared norm, at one factor of it: by Newton's method, with multipliers, or as a BoxQP.

What every other penalty is reduced to; see :mod:`mercer.solvers.risk.search`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np

from mercer._types import Vector
from mercer.engine.progress import Progress
from mercer.losses import HalfSquare
from mercer.solvers.risk.certify import Bounds, balanced, bounds
from mercer.solvers.risk.kernel_products import KernelProducts
from mercer.solvers.risk.regularized_risk import RegularizedRisk
from mercer.solvers.risk.row_newton import Newton, Point, Residual
from mercer.solvers.risk.rows import EnvelopeRows, SmoothRows
from mercer.solvers.risk.values import RiskValue
from mercer.solvers.solution import Solution
from mercer.solvers.svm.box_qp import BoxQP, BoxQPValue
from mercer.solvers.svm.smo import SMO
from mercer.solvers.svm.solver import Start

# The part of the allowed gap that is left to the inner problem of the method of multipliers.
_INNER = 0.1
# The curvature of the first envelope, in units of the kernel's own, its growth, and the most of it.
_FIRST, _GROWTH, _LAST = 10.0, 6.0, 1e9
_ROUNDS = 60
# Rounds without a gap of half the size after which rounding is taken to have stopped the progress.
_PATIENCE = 8
# Tolerances of the box solver: the first, and what it is divided by while the gap is too large.
_BOX_TOL, _BOX_FINER = 1e-3, 0.1
_BOX_ROUNDS = 8


@dataclass(frozen=True, eq=False)
class Answer:
    """Coefficients c and multipliers u with their products with K, the offset, and what they certify."""

    c: Vector
    Kc: Vector
    b: float
    u: Vector
    Ku: Vector
    bounds: Bounds
    worst: float

    @property
    def t(self) -> float:
        """The norm."""
        return math.sqrt(max(float(self.c @ self.Kc), 0.0))

    @property
    def s(self) -> float:
        """The norm of the multipliers."""
        return math.sqrt(max(float(self.u @ self.Ku), 0.0))


@dataclass(frozen=True)
class Aim:
    """The gap that is small enough: a share of the objective, or a part of that of its value at zero."""

    relative: float
    absolute: float

    def allows(self, bounds: Bounds) -> bool:
        if not np.isfinite(bounds.gap):
            return False
        return bounds.gap <= max(self.relative * max(abs(bounds.primal), abs(bounds.dual)), self.absolute)


class QuadraticSolver(Protocol):
    """Solves the problem with ``lam / 2 ||w||^2`` for one lam after the other; each goes on from the last answer."""

    steps: int

    def begin(self, start: RiskValue) -> None: ...
    def solve(self, lam: float, aim: Aim) -> Answer: ...


class ByNewton:
    """Smooth losses."""

    def __init__(self, problem: RegularizedRisk, K: KernelProducts, progress: Progress, limit: int) -> None:
        self.problem, self.K, self.limit, self.steps = problem, K, limit, 0
        self.newton = Newton(K, progress, problem.intercept)
        self.rows = SmoothRows(problem.loss, problem.targets, problem.weight)
        self.point = Point.zero(len(problem.targets))

    def begin(self, start: RiskValue) -> None:
        """Go on from a solution for another factor."""
        self.point = point_of(start)

    def solve(self, lam: float, aim: Aim) -> Answer:
        """At one factor of the penalty."""

        def enough(residual: Residual) -> bool:
            f = residual.point.F
            primal = self.rows.value(f) + 0.5 * lam * residual.point.square
            return aim.allows(Bounds(primal, residual.bound, 0.0, 0.0))

        residual, steps = self.newton.minimise(self.rows, lam, self.point, enough, self.limit - self.steps)
        self.steps += steps
        self.point = residual.point
        return answer(self.problem, self.K, lam, residual)


class ByMultipliers:
    """Any loss that has a proximal map: the method of multipliers, with Newton's method inside."""

    def __init__(self, problem: RegularizedRisk, K: KernelProducts, progress: Progress, limit: int) -> None:
        self.problem, self.K, self.limit, self.steps = problem, K, limit, 0
        self.newton = Newton(K, progress, problem.intercept)
        self.point = Point.zero(len(problem.targets))
        self.u = np.zeros(len(problem.targets))
        diagonal = K.diagonal()
        self.unit = 1.0 / max(float(diagonal.mean()), 1e-300)

    def begin(self, start: RiskValue) -> None:
        """Go on from a solution for another factor."""
        self.point, self.u = point_of(start), start.u

    def solve(self, lam: float, aim: Aim) -> Answer:
        """At one factor of the penalty."""
        sigma = _FIRST * lam * self.unit
        best: Answer | None = None
        idle = 0
        for _ in range(_ROUNDS):
            rows = EnvelopeRows(self.problem.loss, self.problem.targets, self.problem.weight, self.u, sigma)
            within = _INNER * max(aim.relative * abs(best.bounds.primal) if best else 0.0, aim.absolute)

            def enough(residual: Residual, within: float = within) -> bool:
                return residual.bound <= within

            residual, steps = self.newton.minimise(rows, lam, self.point, enough, self.limit - self.steps)
            self.steps += steps
            self.point = residual.point
            self.u = residual.expansion.gradient[:, 0]
            now = answer(self.problem, self.K, lam, residual)
            better = best is None or now.bounds.gap < best.bounds.gap
            idle = 0 if best is None or now.bounds.gap < 0.5 * best.bounds.gap else idle + 1
            best = now if better or best is None else best
            if aim.allows(best.bounds) or self.steps >= self.limit or idle > _PATIENCE:
                break
            sigma = min(_GROWTH * sigma, _LAST * lam * self.unit)
        assert best is not None
        return best


class AsBox:
    """Losses of straight pieces: the dual is a :class:`BoxQP`, which is solved on working sets of rows."""

    def __init__(self, problem: RegularizedRisk, rules: SMO):
        self.problem, self.rules, self.steps = problem, rules, 0
        self.beta: Vector | None = None

    def begin(self, start: RiskValue) -> None:
        """Go on from a solution for another factor."""
        self.beta = start.c

    def solve(self, lam: float, aim: Aim) -> Answer:
        """At one factor of the penalty."""
        problem = self.problem
        pieces = problem.loss.tube(problem.targets)
        assert pieces is not None
        price = problem.weight / lam
        box = BoxQP(
            problem.gram,
            pieces.centre,
            -price * pieces.below,
            price * pieces.above,
            tube=pieces.width,
            totals=(0.0,) if problem.intercept else (),
            convex=problem.convex,
        )
        tol = _BOX_TOL
        start = Start(None if self.beta is None else np.clip(self.beta, box.lower, box.upper))
        for _ in range(_BOX_ROUNDS):
            solution = replace(self.rules.after(self.steps), tol=tol).solve(box, start)
            self.steps += solution.certificate.iterations
            start = Start(solution.value.beta, solution.value.gradient)
            answer = self._answer(lam, solution.value.beta, box.linear - solution.value.gradient, solution)
            if aim.allows(answer.bounds) or self.steps >= self.rules.limit:
                break
            tol *= _BOX_FINER
        self.beta = answer.c
        return answer

    def _answer(self, lam: float, c: Vector, Kc: Vector, solution: Solution[BoxQPValue, Vector]) -> Answer:
        u, Ku, b = -lam * c, -lam * Kc, solution.value.offset
        risk = replace(self.problem, penalty=HalfSquare(), alpha=lam)
        return Answer(c, Kc, b, u, Ku, bounds(risk, c, Kc, b, u, Ku), solution.certificate.kkt_violation)


def point_of(start: RiskValue) -> Point:
    """The point of Newton's method at a solution."""
    return Point(start.c[:, None], start.Kc[:, None], np.array([start.b]))


def answer(problem: RegularizedRisk, K: KernelProducts, lam: float, residual: Residual) -> Answer:
    """From where Newton's method ended, with the multipliers there."""
    c, Kc, b = residual.point.C[:, 0], residual.point.KC[:, 0], float(residual.point.b[0])
    u, Ku = residual.expansion.gradient[:, 0], residual.KR[:, 0] - lam * Kc
    if problem.intercept:
        even = balanced(problem.loss, problem.targets, problem.weight, u)
        if (even != u).any():
            u, Ku = even, Ku + (K @ (even - u)[:, None])[:, 0]
    risk = replace(problem, penalty=HalfSquare(), alpha=lam)
    return Answer(c, Kc, b, u, Ku, bounds(risk, c, Kc, b, u, Ku), residual.worst)
