"""Primal and dual objectives of each problem at coefficients from any source.

Such coefficients need not be feasible. The primal objective is evaluated at the function that they define, and the dual
objective at the nearest feasible multipliers, so that the optimal value always lies between the two.
"""

from __future__ import annotations

import math

import numpy as np

from mercer._types import Vector
from mercer.gram.protocol import GramMatrix
from mercer.losses import HalfSquare
from mercer.solvers.linear.linear_system import LinearSystem
from mercer.solvers.risk.certify import Bounds, balanced, bounds
from mercer.solvers.risk.logistic_problem import LogisticPoint, LogisticRisk, Quality, gap_of, inner
from mercer.solvers.risk.newton import best_offset
from mercer.solvers.risk.regularized_risk import RegularizedRisk
from mercer.solvers.solution import Certificate, Status
from mercer.solvers.svm.box_qp import BoxQP
from mercer.solvers.svm.warm_starts import feasible

# Halvings of an interval, after which it is as short as float64 resolves.
_HALVINGS = 200
# Sums of coefficients up to this share of the sum of their sizes are zero.
_ZERO = 1e-12


def _certificate(primal: float, dual: float, worst: float, violations: dict[str, float], convex: bool) -> Certificate:
    return Certificate(primal, dual, worst, 0, 0.0, 0, Status.given, violations, convex)


def _products(gram: GramMatrix, *columns: Vector) -> list[Vector]:
    """``K v`` for each of the columns, by one pass over K."""
    return list(np.asarray(gram @ np.column_stack(columns), dtype=np.float64).T)


def of_box(problem: BoxQP, beta: Vector, offset: float | None) -> Certificate:
    """Evaluate a support vector machine with at most one offset, at weights (n,) of its expansion.

    Examples
    --------
    >>> from mercer.gram import PrecomputedGram
    >>> problem = BoxQP.classification(PrecomputedGram(np.eye(2)), np.array([1.0, -1.0]), np.ones(2))
    >>> best = of_box(problem, np.array([1.0, -1.0]), 0.0)
    >>> best.primal, best.gap
    (1.0, 0.0)
    >>> of_box(problem, np.array([3.0, -1.0]), None).violations["box"]
    2.0
    """
    nearest = feasible(beta, problem)
    K_beta, K_nearest = _products(problem.gram, beta, nearest)
    F = problem.linear - K_beta
    total = problem.totals[0] if problem.totals else 0.0
    if offset is None:
        offset = _best_box_offset(problem, F) if problem.totals else 0.0
    r = F - offset
    loss = problem.upper * np.maximum(r - problem.tube, 0.0) - problem.lower * np.maximum(-r - problem.tube, 0.0)
    primal = 0.5 * float(beta @ K_beta) + float(loss.sum()) + offset * total
    dual = float(problem.linear @ nearest) - problem.tube * float(np.abs(nearest).sum())
    dual -= 0.5 * float(nearest @ K_nearest)
    outside = np.maximum(problem.lower - beta, beta - problem.upper)
    violations = {
        "stationarity": _stationarity(problem, beta, r),
        "box": float(outside.max(initial=0.0)) + 0.0,
        "sum": abs(float(beta.sum()) - total) if problem.totals else 0.0,
    }
    worst, gap = max(violations.values()), max(primal - dual, 0.0)
    # The objective is strongly convex in w.
    return _certificate(primal, primal - gap, worst, violations | {"distance": math.sqrt(2.0 * gap)}, problem.convex)


def _stationarity(problem: BoxQP, beta: Vector, r: Vector) -> float:
    """How far the residual of some row is from where its weight says that it is."""
    above = r - np.where(beta >= 0, problem.tube, -problem.tube)
    below = np.where(beta > 0, problem.tube, -problem.tube) - r
    rising = above[beta < problem.upper].max(initial=0.0)
    falling = below[beta > problem.lower].max(initial=0.0)
    return float(max(rising, falling))


def _best_box_offset(problem: BoxQP, F: Vector) -> float:
    """The offset of least primal objective: a kink of a convex function of straight pieces."""
    kinks = np.concatenate([F - problem.tube, F + problem.tube])
    # From one kink to the next the slope by b grows by the loss that begins or ends there.
    steps = np.concatenate([problem.upper, -problem.lower])
    order = np.argsort(kinks, kind="stable")
    slopes = problem.totals[0] - float(problem.upper.sum()) + np.cumsum(steps[order])
    flat = _ZERO * float(steps.sum())
    first = int(np.argmax(slopes >= -flat))
    if abs(slopes[first]) <= flat and first + 1 < len(order):
        # All offsets between two kinks are equally good.
        return 0.5 * float(kinks[order[first]] + kinks[order[first + 1]])
    return float(kinks[order[first]])


def of_system(system: LinearSystem, coefficients: Vector) -> Certificate:
    """Evaluate kernel ridge regression at coefficients (n, t).

    With the residual r of the symmetric system the gap is ``|r|^2`` and rounding. By r alone w is at most
    ``|r| / (2 sqrt(mu))`` from the best one: no eigenvalue of ``A (A + mu I)^-2`` is above ``1 / (4 mu)``.

    Examples
    --------
    >>> from mercer.gram import PrecomputedGram
    >>> system = LinearSystem(PrecomputedGram(np.eye(2)), [[1.0], [2.0]], [1.0])
    >>> round(of_system(system, np.array([[0.5], [1.0]])).gap, 12)
    0.0
    >>> certificate = of_system(system, np.array([[0.5], [0.0]]))
    >>> round(certificate.gap, 12), round(certificate.violations["residual"], 6), certificate.violations["distance"]
    (4.0, 0.894427, 1.0)
    """
    A, shifts = system.scaled(), np.asarray(system.shifts)
    z = coefficients if A.scale is None else coefficients / A.scale[:, None]
    b = A.apply_scale(np.asarray(system.targets))
    residual = b - (A @ z) - shifts * z
    primal, dual = system.objectives(z, residual)
    lengths, sizes = np.linalg.norm(residual, axis=0), np.linalg.norm(b, axis=0)
    relative = np.divide(lengths, sizes, out=np.where(lengths > 0, np.inf, 0.0), where=sizes > 0)
    distance = np.divide(lengths, 2.0 * np.sqrt(shifts), out=np.where(lengths > 0, np.inf, 0.0), where=shifts > 0)
    worst = float(relative.max())
    violations = {"residual": worst, "distance": float(distance.max())}
    return _certificate(primal, dual, worst, violations, system.convex)


def of_logistic(problem: LogisticRisk, A: Vector, offset: Vector | None) -> Certificate:
    """Evaluate kernel logistic regression at weights (n, m) and offsets (m,)."""
    loss, zero = problem.loss, np.zeros(A.shape[1])
    (products,) = (np.asarray(problem.gram @ A, dtype=np.float64),)
    best = best_offset(loss, products, zero if offset is None else offset) if problem.intercept else zero
    at_best = LogisticPoint(A, products, best)
    primal = LogisticPoint(A, products, best if offset is None else offset).objective(loss)
    slope = loss.slope(at_best.decision)
    gradient = slope.pull - A
    squared = max(inner(gradient, np.asarray(problem.gram @ gradient, dtype=np.float64)), 0.0)
    sums = [A.sum(axis=0)] if problem.intercept else []
    sums += [A.sum(axis=1)] if A.shape[1] > 1 else []
    missed = max((float(np.abs(s).max()) for s in sums), default=0.0)
    # Only weights with the right sums stand for probabilities that are feasible in the dual.
    keeps = missed <= _ZERO * float(np.abs(A).sum())
    below = gap_of(slope, gradient, squared) if keeps else 0.5 * squared
    # With another offset than the best one, the primal objective is larger by that.
    gap = max(primal - at_best.objective(loss), 0.0) + below
    quality = Quality(primal, gap, at_best.squared_norm)
    violations = {"error": quality.violation, "sum": missed, "distance": math.sqrt(2.0 * gap)}
    return _certificate(primal, primal - gap, quality.violation, violations, problem.convex)


def of_risk(problem: RegularizedRisk, c: Vector, offset: float | None) -> Certificate:
    """Evaluate any loss and any penalty on the norm at coefficients (n,).

    The multipliers are the better ones of two: the slopes of the losses, and ``-lambda c``.
    """
    (Kc,) = _products(problem.gram, c)
    b = _best_risk_offset(problem, Kc) if offset is None else offset
    slopes = problem.weight * problem.loss.gradient(problem.targets, Kc + b)
    candidates = [_within(problem, u) for u in (slopes, *(-factor * c for factor in _factors(problem, c, Kc, slopes)))]
    pairs = list(zip(candidates, _products(problem.gram, *candidates), strict=True))
    best: Bounds = min((bounds(problem, c, Kc, b, u, Ku) for u, Ku in pairs), key=lambda bound: bound.gap)
    # Coefficients may be where the objective is infinite, outside of a ball: the dual bound holds all the same.
    dual = best.dual if math.isfinite(best.gap) else max(_dual(problem, u, Ku) for u, Ku in pairs)
    violations = {"complementary slackness": best.worst_row, "norm": best.norm}
    if problem.intercept:
        violations["sum"] = abs(float(c.sum()))
    if isinstance(problem.penalty, HalfSquare):
        violations["distance"] = math.sqrt(2.0 * best.gap / problem.alpha)
    return _certificate(best.primal, dual, max(best.worst_row, best.norm), violations, problem.convex)


def _dual(problem: RegularizedRisk, u: Vector, Ku: Vector) -> float:
    """The dual objective at multipliers that are feasible."""
    conjugates = problem.weight * problem.loss.conjugate(problem.targets, u / problem.weight)
    length = math.sqrt(max(float(u @ Ku), 0.0))
    return -float(conjugates.sum()) - problem.alpha * problem.penalty.conjugate(length / problem.alpha)


def _within(problem: RegularizedRisk, u: Vector) -> Vector:
    """The nearest multipliers that are feasible."""
    if problem.intercept:
        return balanced(problem.loss, problem.targets, problem.weight, u)
    low, high = problem.loss.slopes(problem.targets)
    return np.clip(u, problem.weight * low, problem.weight * high)


def _factors(problem: RegularizedRisk, c: Vector, Kc: Vector, slopes: Vector) -> list[float]:
    """Factors of half the squared norm at which c may be optimal."""
    square = float(c @ Kc)
    if not square > 0:
        return []
    if isinstance(problem.penalty, HalfSquare):
        return [problem.alpha]
    slope = problem.alpha * problem.penalty.slope(math.sqrt(square)) / math.sqrt(square)
    # The one at which -lambda c comes nearest to the slopes of the losses, where the penalty itself has an edge.
    nearest = -float(slopes @ Kc) / square
    return [factor for factor in (slope, nearest) if 0 < factor < math.inf]


def _best_risk_offset(problem: RegularizedRisk, Kc: Vector) -> float:
    """The offset of least loss, by bisection of the slope, which grows with b."""
    if not problem.intercept:
        return 0.0

    def slope(b: float) -> float:
        return float(problem.weight @ problem.loss.gradient(problem.targets, Kc + b))

    reach = 1.0 + float(np.abs(problem.targets).max() + np.abs(Kc).max())
    low, high = -reach, reach
    for _ in range(_HALVINGS):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if slope(middle) < 0 else (low, middle)
    return 0.5 * (low + high)
