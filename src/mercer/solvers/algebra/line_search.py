"""How far to go along a direction: to where the slope is next to nothing, or by halves until a step is good."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import numpy as np

T = TypeVar("T")

_MOST_TRIALS = 50


def flat_step(slope: Callable[[float], float], *, left: float = 0.25, longest: float = 1.0) -> float:
    """Return the length of a step along a direction in which a convex function falls.

    The slope and not the function is looked at: no digits are lost where the function hardly changes any more. It
    rises with the length.

    Parameters
    ----------
    slope : callable
        From a length to the derivative by it; infinite where it overflows.
    left : float, default=0.25
        The share of the slope at 0 that may be left.
    longest : float, default=1
        The longest step, at least 1. It is taken where the function still falls at its end.

    Returns
    -------
    float
        1 where the slope at 0 is not below 0, which is rounding alone.

    Examples
    --------
    >>> flat_step(lambda t: t - 0.9), flat_step(lambda t: t - 0.5), flat_step(lambda t: t - 8.0, longest=np.inf)
    (1.0, 0.5, 8.0)
    """
    first = slope(0.0)
    if not first < 0:
        return 1.0
    low, low_slope, high, high_slope = 0.0, first, np.inf, np.inf
    t = 1.0
    for _ in range(_MOST_TRIALS):
        now = slope(t)
        # A straight line has no end.
        if abs(now) <= -left * first or (np.isinf(high) and (now <= first or (now < 0 and t >= longest))):
            break
        if now < 0:
            low, low_slope = t, now
        else:
            high, high_slope = t, now
        if np.isinf(high):
            t = min(t * min(2.0, max(1.2, first / (first - low_slope))), longest)
            continue
        # Never next to an end, where the chord of a curved slope would stay.
        chord = low + (high - low) * low_slope / (low_slope - high_slope)
        t = min(max(chord, low + 0.1 * (high - low)), high - 0.1 * (high - low))
    return t


def halved_step(attempt: Callable[[float], T | None], first: float = 1.0, shortest: float = 1e-12) -> T | None:
    """Return what an attempt makes of the longest step that is good, or None if there is none.

    Parameters
    ----------
    attempt : callable
        From a length to what is found there, or None where it is not good enough.
    first, shortest : float, default=1, 1e-12
        Lengths are halved from the first to above the shortest.

    Examples
    --------
    >>> halved_step(lambda t: t if t < 0.3 else None)
    0.25
    """
    t = first
    while t > shortest:
        found = attempt(t)
        if found is not None:
            return found
        t *= 0.5
    return None
