"""Conjugates and proximal maps of convex functions that come with a gradient only, for many functions at once."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from mercer._types import Positions, Vector

Function = Callable[[Vector, Vector], Vector]

# Halving a bracket so often leaves nothing of it in float64.
_HALVINGS = 120
# A bracket is doubled so often at most: a gradient that has not come up by then never will in float64.
_DOUBLINGS = 60
_NARROW = 2.0 * np.finfo(np.float64).eps


def prox_by_bracketing(gradient: Function, y: Vector, v: Vector, step: Vector) -> Vector:
    r"""The root p of :math:`p + \text{step} \cdot \ell'(y, p) = v`, element by element.

    The left side rises at least as fast as p, so the root lies between v and :math:`v - \text{step} \cdot \ell'(y, v)`;
    where the gradient jumps over the root, the result is the place of the jump. A kink at the target is tried first.
    The remaining roots are bracketed and found by inverse quadratic interpolation, with bisection where that makes no
    progress.

    Source: T. R. Chandrupatla, "A new hybrid quadratic/bisection algorithm for finding the zero of a nonlinear function
    without using derivatives", Advances in Engineering Software 28 (1997), 145-149.

    Examples
    --------
    >>> prox_by_bracketing(lambda y, f: np.sign(f - y), np.zeros(3), np.array([3.0, 0.5, -2.0]), np.ones(3)).round(12)
    array([ 2.,  0., -1.])
    """
    y, v, step = (np.array(part, dtype=np.float64) for part in np.broadcast_arrays(y, v, step))
    out = v.copy()

    def excess(p: Vector, at: Positions) -> Vector:
        return np.asarray(p + step[at] * gradient(y[at], p) - v[at])

    with np.errstate(all="ignore"):
        every = np.arange(len(v))
        start = excess(v, every)
        beside = np.maximum(_NARROW * np.abs(y), np.finfo(np.float64).tiny)
        kink = (excess(y - beside, every) <= 0) & (excess(y + beside, every) >= 0)
        out[kink] = y[kink]
        left = np.flatnonzero((start != 0) & ~kink)
        other = _other_end(lambda p: excess(p, left), v[left], start[left])
        _bracketed(excess, left, other, out)
    return out


def _other_end(excess: Callable[[Vector], Vector], v: Vector, start: Vector) -> Vector:
    """Points on the other side of the roots than v, not much further away than they are."""
    way = -np.sign(start)
    # What is to be crossed is at most that long, but where a gradient explodes the root is far nearer.
    reach = np.minimum(np.abs(start), np.maximum(1e-3 * np.abs(v), 1e-3))
    for _ in range(_DOUBLINGS):
        short = (excess(v + way * reach) * way < 0) & (reach < np.abs(start))
        if not short.any():
            break
        reach = np.where(short, np.minimum(4.0 * reach, np.abs(start)), reach)
    return np.asarray(v + way * reach)


def _bracketed(excess: Callable[[Vector, Positions], Vector], at: Positions, other: Vector, out: Vector) -> None:
    """Set ``out[at]`` to the roots between ``out[at]`` and ``other``, all at once, until each is known to rounding."""
    one, two = other, out[at]
    f_one, f_two, share = excess(one, at), excess(two, at), np.full(len(at), 0.5)
    # No change of sign: the other end is the root but for rounding.
    out[at] = one
    keep = np.sign(f_one) * np.sign(f_two) < 0
    at, (one, two, f_one, f_two, share) = at[keep], (part[keep] for part in (one, two, f_one, f_two, share))
    for _ in range(_HALVINGS):
        if not len(at):
            return
        new = one + share * (two - one)
        f_new = excess(new, at)
        same = np.sign(f_new) == np.sign(f_one)
        three, f_three = np.where(same, one, two), np.where(same, f_one, f_two)
        two, f_two = np.where(same, two, one), np.where(same, f_two, f_one)
        one, f_one = new, f_new
        best = np.where(np.abs(f_one) < np.abs(f_two), one, two)
        least = 0.5 * _NARROW * np.abs(best) / np.abs(two - one)
        out[at] = best
        keep = (least < 0.5) & (f_one != 0) & (f_two != 0)
        xi, phi = (one - two) / (three - two), (f_one - f_two) / (f_three - f_two)
        curved = (phi**2 < xi) & ((1.0 - phi) ** 2 < 1.0 - xi)
        inverse = f_one / (f_two - f_one) * f_three / (f_two - f_three)
        inverse += (three - one) / (two - one) * f_one / (f_three - f_one) * f_two / (f_three - f_two)
        share = np.clip(np.where(curved & np.isfinite(inverse), inverse, 0.5), least, 1.0 - least)
        at, (one, two, f_one, f_two, share) = at[keep], (part[keep] for part in (one, two, f_one, f_two, share))


def conjugate_by_tangents(value: Function, gradient: Function, y: Vector, u: Vector) -> Vector:
    r"""An upper bound of :math:`\sup_f u f - \ell(y, f)` that is off by rounding only, element by element.

    The supremum is bracketed by the sign of :math:`\ell'(y, f) - u`, and the tangents at the ends of the bracket bound
    it from above, so that a dual value computed from it remains a lower bound. The bound is infinite where the gradient
    does not reach u within the range of float64.

    Examples
    --------
    >>> y, u = np.zeros(3), np.array([0.5, -1.0, 3.0])
    >>> conjugate_by_tangents(lambda y, f: 0.5 * (f - y) ** 2, lambda y, f: f - y, y, u).round(12)
    array([0.125, 0.5  , 4.5  ])
    """
    y, u = np.broadcast_arrays(np.asarray(y, dtype=np.float64), np.asarray(u, dtype=np.float64))
    with np.errstate(over="ignore", invalid="ignore"):
        low, high, finite = _bracket(gradient, y, u)
        for _ in range(_HALVINGS):
            middle = 0.5 * (low + high)
            above = gradient(y, middle) > u
            low, high = np.where(above, low, middle), np.where(above, middle, high)
            if (high - low <= _NARROW * np.maximum(np.abs(low), np.abs(high)))[finite].all():
                break
        width = high - low
        from_low = u * low - value(y, low) + np.maximum(u - gradient(y, low), 0.0) * width
        from_high = u * high - value(y, high) + np.maximum(gradient(y, high) - u, 0.0) * width
        return np.where(finite, np.fmin(from_low, from_high), np.inf)


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
