"""The point that a support vector solver moves: signed variables, their box, and the gradient."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mercer.solvers.problems import BoxQP, Vector


@dataclass
class Iterate:
    """``beta_i = y_i alpha_i`` in ``[lower, upper]`` and the gradient ``F = linear - K beta`` of the dual, (n,) each.

    ``F_i = b`` for every row strictly inside its box at the solution, ``F_i <= b`` where beta may only rise and
    ``F_i >= b`` where it may only fall.
    """

    linear: Vector
    lower: Vector
    upper: Vector
    beta: Vector
    F: Vector
    steps: int = 0

    @classmethod
    def begin(cls, problem: BoxQP, start: Vector | None) -> Iterate:
        """At ``start`` (alpha, clipped to its box by the caller), or at zero; ``F`` is right only at zero."""
        assert problem.p is not None
        beta = np.zeros(len(problem.y)) if start is None else problem.y * start
        lower = np.where(problem.y > 0, 0.0, -problem.upper)
        upper = np.where(problem.y > 0, problem.upper, 0.0)
        linear = problem.y * problem.p
        return cls(linear, lower, upper, beta, linear.copy())

    @property
    def may_rise(self) -> np.ndarray:
        """Rows whose beta is below its upper bound."""
        return self.beta < self.upper

    @property
    def may_fall(self) -> np.ndarray:
        """Rows whose beta is above its lower bound."""
        return self.beta > self.lower

    @property
    def support(self) -> np.ndarray:
        """Indices of the rows with a weight that is not zero."""
        return np.flatnonzero(self.beta)

    def sides(self) -> tuple[Vector, Vector]:
        """F where beta may rise, and -F where it may fall, -inf elsewhere: their maxima sum to the violation."""
        return np.where(self.may_rise, self.F, -np.inf), np.where(self.may_fall, -self.F, -np.inf)

    def interval(self) -> tuple[float, float]:
        """The largest F that may rise and the smallest that may fall; b lies between them at a solution."""
        rising, falling = self.sides()
        return float(rising.max()), -float(falling.max())

    def violation(self) -> float:
        """The worst violation of the optimality conditions: ``max F (may rise) - min F (may fall)``, or 0."""
        top, bottom = self.interval()
        return max(top - bottom, 0.0) if np.isfinite(top) and np.isfinite(bottom) else 0.0

    def offset(self) -> float:
        """The multiplier b: the mean of F over the free rows, or the middle of the interval if there are none."""
        free = self.may_rise & self.may_fall
        if free.any():
            return float(self.F[free].mean())
        top, bottom = self.interval()
        if np.isfinite(top) and np.isfinite(bottom):
            return 0.5 * (top + bottom)
        return top if np.isfinite(top) else bottom

    def dual(self) -> float:
        """The dual objective ``linear'beta - beta'K beta / 2``."""
        return float(0.5 * (self.beta @ (self.linear + self.F)))
