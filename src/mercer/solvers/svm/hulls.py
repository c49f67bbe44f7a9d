"""The nearest points of two convex hulls in a feature space, or of one hull and the origin."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mercer._types import Vector
from mercer.gram.protocol import GramMatrix
from mercer.solvers.svm.box_qp import BoxQP, BoxQPValue
from mercer.solvers.svm.signed import SignedGram


@dataclass(frozen=True)
class Hulls:
    """The problem of the nearest points, and the quantities that its weights give.

    ``sides`` is 2 for two hulls and 1 for one hull and the origin.
    """

    problem: BoxQP
    y: Vector
    sides: int
    gram: GramMatrix

    @classmethod
    def of(cls, gram: GramMatrix, y: Vector, intercept: bool, total: float = 1.0) -> Hulls:
        """Create the problem with shares of at most 1 that sum to ``total`` in each hull."""
        zeros, ones = np.zeros(len(y)), np.ones(len(y))
        if not intercept:
            return cls(BoxQP(SignedGram(gram, y, y), zeros, zeros, ones, totals=(total,)), y, 1, gram)
        lower, upper = np.where(y > 0, zeros, -ones), np.where(y > 0, ones, zeros)
        groups = (y < 0).astype(np.int8)
        return cls(BoxQP(gram, zeros, lower, upper, totals=(total, -total), groups=groups), y, 2, gram)

    def shares(self, beta: Vector) -> Vector | None:
        """Return weights of an earlier answer, scaled to the sums of the problem; None if this is impossible."""
        parts = [self.y > 0, self.y < 0] if self.sides == 2 else [slice(None)]
        shares = np.abs(beta)
        for part in parts:
            total = float(shares[part].sum())
            if not total > 0:
                return None
            shares[part] /= total
        return self.y * shares if self.sides == 2 else shares

    def heights(self, value: BoxQPValue) -> Vector:
        """``y_i <w, phi_i>``, (n,)."""
        return -self.y * value.gradient if self.sides == 2 else -value.gradient

    def width(self, value: BoxQPValue) -> float:
        """``|w|^2``: the squared distance of the two mixtures."""
        return float(np.abs(value.beta) @ self.heights(value))

    def ends(self, value: BoxQPValue) -> tuple[float, float]:
        """The least height of each class; without an intercept, the least of all for both."""
        heights = self.heights(value)
        if self.sides == 1:
            return float(heights.min()), float(heights.min())
        return float(heights[self.y > 0].min()), float(heights[self.y < 0].min())

    def slab(self, value: BoxQPValue) -> float:
        """The width of the slab between the classes in the direction of w, times ``|w|``; negative if there is none."""
        ends = self.ends(value)
        return ends[0] + ends[1] if self.sides == 2 else ends[0]

    def relative_gap(self, value: BoxQPValue) -> float:
        """The gap between the bounds of ``|w|^2 / 2``, relative to the upper one; 1 if that is infinite."""
        slab, width = self.slab(value), self.width(value)
        return 1.0 - (slab / width) ** 2 if slab > 0 else 1.0

    def meet(self, value: BoxQPValue, rounding: float) -> bool:
        """Whether no slab has been found and the mixtures are the same point, to rounding."""
        return self.slab(value) <= 0 and self.width(value) <= rounding
