"""Bounds of the best value of a regularised risk, in float64."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from mercer._types import Vector
from mercer.losses import Loss
from mercer.solvers.risk.regularized_risk import RegularizedRisk
from mercer.solvers.rounding import product_rounding


@dataclass(frozen=True)
class Bounds:
    """The primal objective, the dual one, and the shares of the gap that belong to rows and to the norm."""

    primal: float
    gap: float
    worst_row: float
    norm: float

    @property
    def dual(self) -> float:
        return self.primal - self.gap


def zero_value(problem: RegularizedRisk) -> float:
    """The objective at the function that is zero everywhere."""
    return problem.risk(np.zeros(len(problem.targets))) + problem.alpha * problem.penalty.value(0.0)


def bounds(problem: RegularizedRisk, c: Vector, Kc: Vector, b: float, u: Vector, Ku: Vector) -> Bounds:
    r"""The objectives at coefficients c and an offset b, and at multipliers u, whose products with K are known.

    The gap is a sum of what Fenchel's inequality leaves, and none of it is negative: of each row
    :math:`w_i \ell(y_i, f_i) + w_i \ell^*(y_i, u_i / w_i) - u_i f_i`, and of the norm
    :math:`\alpha R(t) + \alpha R^*(s / \alpha) + u^\top K c`.
    """
    w, alpha, f = problem.weight, problem.alpha, Kc + b
    low, high = problem.loss.slopes(problem.targets)
    slopes = np.clip(u / w, low, high)
    moved = slopes * w - u
    t = math.sqrt(max(float(c @ Kc), 0.0))
    # What clipping has moved is rounding; its effect on the norm is at most that of its own norm.
    s = math.sqrt(max(float(u @ Ku), 0.0))
    if moved.any():
        s = math.sqrt(max(float(u @ Ku) + 2.0 * float(moved @ Ku), 0.0))
    with np.errstate(over="ignore", invalid="ignore"):
        losses = w * problem.loss.value(problem.targets, f)
        rows = losses + w * problem.loss.conjugate(problem.targets, slopes) - w * slopes * f
    rows = np.where(np.isnan(rows), np.inf, np.maximum(rows, 0.0))
    penalty = alpha * problem.penalty.value(t)
    norm = max(penalty + alpha * problem.penalty.conjugate(s / alpha) + float((w * slopes) @ Kc), 0.0)
    return Bounds(float(losses.sum()) + penalty, float(rows.sum()) + norm, float(rows.max(initial=0.0)), norm)


def with_rounding(problem: RegularizedRisk, found: Bounds, c: Vector, t: float, u: Vector, s: float) -> Bounds:
    """Bounds moved apart by what rounding of products with K makes of losses and of norms t of c and s of u."""
    diagonal, alpha, penalty = np.asarray(problem.gram.diagonal(), dtype=np.float64), problem.alpha, problem.penalty
    d = product_rounding(diagonal, np.column_stack([c, u]))
    more_t, more_s = (math.sqrt(size**2 + float(np.abs(v) @ e)) for size, v, e in ((t, c, d[:, 0]), (s, u, d[:, 1])))
    above = alpha * (penalty.value(more_t) - penalty.value(t))
    below = alpha * (penalty.conjugate(more_s / alpha) - penalty.conjugate(s / alpha))
    # At the edge of what is finite, functions and multipliers shrink by a factor that is 1 up to rounding; so do the
    # conjugates of the losses.
    above = (above if math.isfinite(above) else 0.0) + float(np.abs(u) @ d[:, 0])
    below = below if math.isfinite(below) else (1.0 - s / more_s) * abs(found.dual)
    return Bounds(found.primal + above, found.gap + above + below, found.worst_row, found.norm)


def balanced(loss: Loss, targets: Vector, w: Vector, u: Vector) -> Vector:
    """Multipliers next to u that sum to 0, as they must where there is an offset, and stay gradients of the losses.

    The excess of the sum is taken from each in proportion to the room that it has. The losses have weights w (n,).
    """
    low, high = loss.slopes(targets)
    u = np.clip(u, w * low, w * high)
    excess = float(u.sum())
    room = u - w * low if excess > 0 else w * high - u
    room = np.where(np.isfinite(room), room, w * max(1.0, float(np.abs(u).max(initial=0.0))))
    total = float(room.sum())
    return u - room * (excess / total) if total > abs(excess) else np.zeros_like(u)
