"""Newton's method for Platt's sigmoid: two parameters, for which calls of NumPy take longer than the arithmetic."""

from __future__ import annotations

import numpy as np

from mercer.loops._jit import jit_in_order

_STEPS = 100
# A slope of the objective, relative to the total weight, below which Newton's method ends.
_SLOPE = 1e-10
# Added to the diagonal of the Hessian, which is singular where all values are equal.
_RIDGE = 1e-12
_SHORTEST = 1e-10


@jit_in_order
def _cross_entropy(A, B, values, target, weight, p):
    """The objective; ``p`` (n,) gets the probabilities."""
    total = 0.0
    for r in range(values.shape[0]):
        z = A * values[r] + B
        # -t log p - (1 - t) log(1 - p), without overflow: log(1 + e^z) - (1 - t) z.
        e = np.exp(-abs(z))
        total += weight[r] * (max(z, 0.0) + np.log1p(e) - (1.0 - target[r]) * z)
        p[r] = (e if z > 0.0 else 1.0) / (1.0 + e)
    return total


@jit_in_order
def fit_two_parameters(values, target, weight, A, B):
    """Return A and B of the least cross entropy of ``1 / (1 + exp(A f + B))`` to ``target`` (n,), from a start.

    Newton's method with a line search, for decision ``values`` (n,) that count ``weight`` (n,) times.
    """
    n = values.shape[0]
    p, p_tried = np.empty(n), np.empty(n)
    enough_a, enough_b = 0.0, 0.0
    for r in range(n):
        enough_a += _SLOPE * abs(values[r]) * weight[r]
        enough_b += _SLOPE * weight[r]
    objective = _cross_entropy(A, B, values, target, weight, p)
    for _ in range(_STEPS):
        a, b, haa, hab, hbb = 0.0, 0.0, 0.0, 0.0, 0.0
        for r in range(n):
            slope, curvature = weight[r] * (target[r] - p[r]), weight[r] * p[r] * (1.0 - p[r])
            a += slope * values[r]
            b += slope
            haa += curvature * values[r] * values[r]
            hab += curvature * values[r]
            hbb += curvature
        if abs(a) <= enough_a and abs(b) <= enough_b:
            break
        haa, hbb = haa + _RIDGE * (1.0 + haa), hbb + _RIDGE * (1.0 + hbb)
        step_a = (b * (hab / hbb) - a) / (haa - hab * (hab / hbb))
        step_b = -(b + hab * step_a) / hbb
        downhill = a * step_a + b * step_b
        step = 1.0
        while step > _SHORTEST:
            candidate = _cross_entropy(A + step * step_a, B + step * step_b, values, target, weight, p_tried)
            if candidate < objective + 1e-4 * step * downhill:
                break
            step /= 2.0
        if not step > _SHORTEST:
            # No step goes downhill: the slope that is left is rounding.
            break
        A, B, objective = A + step * step_a, B + step * step_b, candidate
        p, p_tried = p_tried, p
    return A, B
