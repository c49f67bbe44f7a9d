r"""Any penalty of the norm, by a search for the factor of half the squared norm that has the same solution.

At the solution :math:`0 \in \Phi^\top u + \alpha R'(\|w\|) w / \|w\|`, so that it is the one with
:math:`\tfrac\lambda2 \|w\|^2` for :math:`\lambda = \alpha R'(t) / t`. With rising :math:`\lambda` the norm t of the
solution falls and the norm :math:`s = \lambda t` of its multipliers rises, while :math:`R'` does not fall: there is one
crossing of s and :math:`\alpha R'(t)`, which a bracket closes in on.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from mercer._errors import NumericalError
from mercer.solvers.risk.certify import Bounds, bounds
from mercer.solvers.risk.quadratic import Aim, Answer, QuadraticSolver
from mercer.solvers.risk.regularized_risk import RegularizedRisk

# The part of the allowed gap that is left to the problem at one factor.
_PART = 0.1
# The relative gap of the first answers.
_COARSE = 1e-3
_MOST = 200
# Steps in search of a bracket, on the logarithm of the factor: at least and at most.
_LEAST_STEP, _MOST_STEP = 0.5, 3.0
# How far the factor may go from where the search begins, as a logarithm, and a bracket of nothing but rounding.
_REACH = 35.0
_NARROW = 1e-12
# A crossing, and a gap, to rounding.
_CROSSED = 1e-10
_NOTHING = 1e-14


@dataclass(frozen=True, eq=False)
class Found:
    """An answer at one factor, its bounds for the penalty itself, and on which side of the crossing it is."""

    lam: float
    answer: Answer
    mismatch: float


def first_factor(problem: RegularizedRisk, s: float) -> float:
    """A factor of the right size, from the norm s of the multipliers at zero."""
    risk = problem.risk(np.zeros(len(problem.targets)))
    if not (risk > 0 and s > 0):
        return 1.0
    factor = s * (s / (2.0 * risk))
    if not 0 < factor < math.inf:
        raise NumericalError(
            f"the loss at zero is {risk:.3g} and its gradient has the length {s:.3g}, whose squares leave the range of "
            "float64. Scale y, the columns of X, or the weights."
        )
    return factor


def search_factor(
    problem: RegularizedRisk, solver: QuadraticSolver, first: float, aim: Aim, exact: bool
) -> tuple[Answer, float]:
    """The best answer found and its factor; ``exact`` to go on until the crossing is found to rounding."""
    inner = Aim(_PART * aim.relative, _PART * aim.absolute)
    trail = _Trail(math.log(first))
    best: Found | None = None
    while len(trail.seen) < _MOST and trail.is_open:
        point = _evaluate(problem, solver, math.exp(trail.x), inner, exact)
        if best is None or point.answer.bounds.gap < best.answer.bounds.gap:
            best = point
        limits = best.answer.bounds
        if abs(point.mismatch) <= _CROSSED or limits.gap <= _NOTHING * abs(limits.primal):
            break
        if aim.allows(limits) and not exact:
            break
        trail.add(point.mismatch)
    assert best is not None
    return best.answer, best.lam


class _Trail:
    """The logarithms of factors that were looked at, a bracket of the crossing, and where to look next."""

    def __init__(self, x: float) -> None:
        self.first = self.x = x
        self.seen: list[tuple[float, float]] = []
        self.low, self.high = -math.inf, math.inf
        # Widths of the bracket after each step.
        self.widths: list[float] = []

    @property
    def is_open(self) -> bool:
        """Whether there is anything left to look for."""
        return abs(self.x - self.first) <= _REACH and self.high - self.low > _NARROW * max(1.0, abs(self.x))

    def add(self, mismatch: float) -> None:
        """Add the mismatch at ``x``, and choose the next x."""
        self.seen.append((self.x, mismatch))
        if mismatch > 0:
            self.low = self.x
        else:
            self.high = self.x
        self.widths.append(self.high - self.low)
        self.x = self._inside() if math.isfinite(self.widths[-1]) else self._outwards(mismatch)

    def _outwards(self, mismatch: float) -> float:
        size = min(max(abs(mismatch), _LEAST_STEP), _MOST_STEP)
        return self.x + math.copysign(size, mismatch)

    def _inside(self) -> float:
        """By a straight line through the two best, unless it leaves the bracket, or has not halved it in four steps."""
        middle = 0.5 * (self.low + self.high)
        (x, p), (z, q) = sorted(self.seen, key=lambda pair: abs(pair[1]))[:2]
        slow = len(self.widths) > 4 and self.widths[-1] > 0.5 * self.widths[-5]
        if slow or p == q or not (math.isfinite(p) and math.isfinite(q)):
            if slow:
                self.widths.clear()
            return middle
        line = x - p * (x - z) / (p - q)
        return line if self.low < line < self.high else middle


def _evaluate(problem: RegularizedRisk, solver: QuadraticSolver, lam: float, inner: Aim, exact: bool) -> Found:
    """Solve at one factor, as exactly as the side of the crossing that it is on requires, or as ``inner`` allows."""
    for aim in (inner,) if exact else (Aim(max(inner.relative, _COARSE), inner.absolute), inner):
        raw = solver.solve(lam, aim)
        if aim is inner or _is_certain(problem, raw, lam):
            break
    return Found(lam, _best_of(problem, raw), problem.penalty.mismatch(raw.t, raw.s / problem.alpha))


def _is_certain(problem: RegularizedRisk, raw: Answer, lam: float) -> bool:
    """Whether the solution itself is on the same side of the crossing.

    The problem bends by lam in w and its dual by 1 / lam in the multipliers' norm, so that the gap bounds how far the
    norms of an answer are from those of the solution.
    """
    gap, alpha = raw.bounds.gap, problem.alpha
    if not math.isfinite(gap):
        return False
    t, s = math.sqrt(2.0 * gap / lam), math.sqrt(2.0 * gap * lam)
    corners = [
        problem.penalty.mismatch(max(raw.t + i * t, 0.0), max(raw.s + j * s, 0.0) / alpha)
        for i in (-1.0, 1.0)
        for j in (-1.0, 1.0)
    ]
    return min(corners) > 0 or max(corners) < 0


def _best_of(problem: RegularizedRisk, raw: Answer) -> Answer:
    """The answer with its bounds for the penalty; moved to where the penalty and its conjugate are finite."""
    alpha, penalty = problem.alpha, problem.penalty
    inward = _shrink(lambda part: penalty.value(part * raw.t))
    dual_part = _shrink(lambda part: penalty.conjugate(part * raw.s / alpha))
    choices = []
    for part in dict.fromkeys((inward, 0.0)):
        c, Kc, u, Ku = part * raw.c, part * raw.Kc, dual_part * raw.u, dual_part * raw.Ku
        limits: Bounds = bounds(problem, c, Kc, raw.b, u, Ku)
        choices.append(replace(raw, c=c, Kc=Kc, u=u, Ku=Ku, bounds=limits))
    return min(choices, key=lambda a: a.bounds.gap)


def _shrink(at: Callable[[float], float]) -> float:
    """The largest part, 1 or less, at which a convex function that is finite at 0 is finite."""
    if math.isfinite(at(1.0)):
        return 1.0
    low, high = 0.0, 1.0
    while high - low > 1e-16 + 1e-15 * high:
        middle = 0.5 * (low + high)
        if middle in (low, high):
            break
        low, high = (middle, high) if math.isfinite(at(middle)) else (low, middle)
    return low
