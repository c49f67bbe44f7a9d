"""Losses in compiled code, by number: those of the margin ``z = y f`` for labels y of -1 and 1, and of ``r = y - f``.

``mercer.losses`` says which loss has which number. A loss that has none, such as a user-defined one, is ``GIVEN``:
whoever calls a loop computes its slope, and the loop takes it as it is.
"""

from __future__ import annotations

import numpy as np

from mercer.loops._jit import jit

HINGE, SQUARED_HINGE, LOGISTIC, MODIFIED_HUBER, SOFTMAX, SQUARED, EPSILON_INSENSITIVE, HUBER, GIVEN = range(9)


@jit
def slope(loss, z):
    """Minus the derivative of a loss of the margin at ``z``."""
    if loss == HINGE:
        return 1.0 if z < 1.0 else 0.0
    if loss == SQUARED_HINGE:
        return 2.0 * max(1.0 - z, 0.0)
    if loss == LOGISTIC:
        if z > 0.0:
            small = np.exp(-z)
            return small / (1.0 + small)
        return 1.0 / (1.0 + np.exp(z))
    return min(2.0 * max(1.0 - z, 0.0), 4.0)


@jit
def margin_value(loss, z):
    """A loss of the margin at ``z``."""
    if loss == LOGISTIC:
        return max(-z, 0.0) + np.log1p(np.exp(-abs(z)))
    if loss == HINGE:
        return max(1.0 - z, 0.0)
    if loss == MODIFIED_HUBER and z < -1.0:
        return -4.0 * z
    return max(1.0 - z, 0.0) ** 2


@jit
def descent(loss, parameter, y, f, g):
    """Minus the gradient of a loss at the values ``f`` (k,), into ``g`` (k,); returns the loss.

    ``parameter`` is the width or the bend of the losses that have one. For a loss that is ``GIVEN``, ``y`` holds minus
    the gradient, and 0 is returned.
    """
    total = 0.0
    if loss == SOFTMAX:
        top = f[0]
        for c in range(f.shape[0]):
            top = max(top, f[c])
        for c in range(f.shape[0]):
            g[c] = np.exp(f[c] - top)
            total += g[c]
        out = np.log(total)
        for c in range(f.shape[0]):
            out -= y[c] * (f[c] - top)
            g[c] = y[c] - g[c] / total
        return out
    for c in range(f.shape[0]):
        if loss == GIVEN:
            g[c] = y[c]
            continue
        if loss <= MODIFIED_HUBER:
            z = y[c] * f[c]
            g[c] = y[c] * slope(loss, z)
            total += margin_value(loss, z)
            continue
        r = y[c] - f[c]
        size = abs(r)
        if loss == SQUARED:
            g[c] = r
            total += 0.5 * r * r
        elif loss == HUBER:
            g[c] = min(max(r, -parameter), parameter)
            inner = min(size, parameter)
            total += inner * (size - 0.5 * inner)
        else:
            g[c] = 0.0 if size <= parameter else (1.0 if r > 0.0 else -1.0)
            total += max(size - parameter, 0.0)
    return total
