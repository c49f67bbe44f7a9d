"""Conjugates and proximal maps of convex functions that come with a gradient only, for many functions at once."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

Vector = NDArray[np.float64]
Function = Callable[[Vector, Vector], Vector]

# Halving a bracket so often leaves nothing of it in float64.
_HALVINGS = 120
# A bracket is doubled so often at most: a gradient that has not come up by then never will in float64.
_DOUBLINGS = 60
_NARROW = 2.0 * np.finfo(np.float64).eps


def prox_by_bisection(gradient: Function, y: Vector, v: Vector, step: Vector) -> Vector:
    r"""The root p of :math:`p + \text{step} \cdot \ell'(y, p) = v`, element by element.

    The left side rises at least as fast as p, so the root lies between v and :math:`v - \text{step} \cdot \ell'(y, v)`;
    where the gradient jumps over the root, the jump is the answer.

    Examples
    --------
    >>> prox_by_bisection(lambda y, f: np.sign(f - y), np.zeros(3), np.array([3.0, 0.5, -2.0]), np.ones(3)).round(12)
    array([ 2.,  0., -1.])
    """
    v = np.asarray(v, dtype=np.float64)
    with np.errstate(over="ignore"):
        other = v - step * gradient(y, v)
    # A gradient that overflows says which side the root is on; the bracket is then grown from v.
    low, high = np.minimum(v, other), np.maximum(v, other)
    if not np.isfinite(other).all():
        low, high = _grown(gradient, y, v, step, low, high)
    for _ in range(_HALVINGS):
        middle = 0.5 * (low + high)
        with np.errstate(over="ignore"):
            above = middle + step * gradient(y, middle) > v
        low, high = np.where(above, low, middle), np.where(above, middle, high)
        if (high - low <= _NARROW * np.maximum(np.abs(low), np.abs(high))).all():
            break
    return 0.5 * (low + high)


def _grown(
    gradient: Function, y: Vector, v: Vector, step: Vector, low: Vector, high: Vector
) -> tuple[Vector, Vector]:
    """Finite brackets in place of infinite ones."""
    reach = np.maximum(np.abs(v), 1.0)
    downwards = ~np.isfinite(low)
    low, high = np.where(np.isfinite(low), low, v - reach), np.where(np.isfinite(high), high, v + reach)
    for _ in range(_DOUBLINGS):
        reach = 2.0 * reach
        with np.errstate(over="ignore"):
            left = downwards & (low + step * gradient(y, low) > v)
        if not left.any():
            break
        low, high = np.where(left, v - reach, low), np.where(left, low, high)
    return low, high


def conjugate_by_tangents(value: Function, gradient: Function, y: Vector, u: Vector) -> Vector:
    r"""An upper bound of :math:`\sup_f u f - \ell(y, f)` that is off by rounding only, element by element.

    The supremum is bracketed by the sign of :math:`\ell'(y, f) - u`, and the tangents at the ends of the bracket bound
    it from above, so that a dual value computed from it is a lower bound as it should be. It is infinite where the
    gradient does not come up to u within the range of float64.

    Examples
    --------
    >>> y, u = np.zeros(3), np.array([0.5, -1.0, 3.0])
    >>> conjugate_by_tangents(lambda y, f: 0.5 * (f - y) ** 2, lambda y, f: f - y, y, u).round(12)
    array([0.125, 0.5  , 4.5  ])
    """
    y, u = np.broadcast_arrays(np.asarray(y, dtype=np.float64), np.asarray(u, dtype=np.float64))
    with np.errstate(over="ignore", invalid="ignore"):
        low, high, found = _bracket(gradient, y, u)
        for _ in range(_HALVINGS):
            middle = 0.5 * (low + high)
            above = gradient(y, middle) > u
            low, high = np.where(above, low, middle), np.where(above, middle, high)
            if (high - low <= _NARROW * np.maximum(np.abs(low), np.abs(high)))[found].all():
                break
        width = high - low
        from_low = u * low - value(y, low) + np.maximum(u - gradient(y, low), 0.0) * width
        from_high = u * high - value(y, high) + np.maximum(gradient(y, high) - u, 0.0) * width
        return np.where(found, np.fmin(from_low, from_high), np.inf)


def _bracket(gradient: Function, y: Vector, u: Vector) -> tuple[Vector, Vector, NDArray[np.bool_]]:
    """Ends between which the gradient comes up to u, and where there are such."""
    low, high = np.minimum(y, 0.0) - 1.0, np.maximum(y, 0.0) + 1.0
    reach = high - low
    for _ in range(_DOUBLINGS):
        short, over = gradient(y, high) < u, gradient(y, low) > u
        if not (short.any() or over.any()):
            break
        low, high = np.where(short, high, low), np.where(over, low, high)
        low, high = np.where(over, low - reach, low), np.where(short, high + reach, high)
        reach = 2.0 * reach
    return low, high, ~(short | over)
