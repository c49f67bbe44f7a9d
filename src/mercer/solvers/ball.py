r"""What the duality gap of an inexact solution says about the values of the exact one.

An objective :math:`\tfrac{\lambda}{2} \|w\|^2 + \sum_i c_i \ell_i(\langle w, \phi_i \rangle + b)` is strongly convex in
w, so the exact w lies in a ball around the inexact one, and :math:`\langle w, \phi(x) \rangle` is known up to its
radius times :math:`\sqrt{k(x, x)}`. The exact offset is a minimum over b, and the slope by b grows with b and with each
:math:`\langle w, \phi_i \rangle`: it lies between the roots for the largest and the smallest values.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from mercer._types import Vector

# Share of the objectives that rounding may hide in their difference.
_ROUNDING = 1e-13
# Share of a sum of positive numbers that rounding may hide.
_SUM = 1e-12
_HALVINGS = 200


def radius(gap: float, size: float, *, strength: float = 1.0, is_pair: bool = False) -> float:
    r"""Return the radius of the ball in which the exact w lies.

    Parameters
    ----------
    gap : float
        Primal minus dual objective.
    size : float
        The sum of the sizes of both, whose rounding is allowed for.
    strength : float, default=1.0
        The factor :math:`\lambda` of half the squared norm.
    is_pair : bool, default=False
        Whether w belongs to the feasible dual point as well. Then each objective is
        :math:`\tfrac{\lambda}{2} \|w - w^*\|^2` at least from the best one, and the gap is twice that.

    Returns
    -------
    float
        :math:`\sqrt{2 g / \lambda}`, or :math:`\sqrt{g / \lambda}` for a pair; infinite if the gap is not finite.

    Examples
    --------
    >>> radius(0.02, 0.0), radius(0.04, 0.0, is_pair=True)
    (0.2, 0.2)
    """
    room = max(gap, 0.0) + _ROUNDING * size
    if not math.isfinite(room) or strength <= 0:
        return math.inf
    return math.sqrt((1.0 if is_pair else 2.0) * room / strength)


def shift_of_kinks(kinks: Vector, steps: Vector, total: float, reach: Vector) -> tuple[float, float]:
    r"""Return an interval of the minimum over b of a risk of straight pieces, whose kinks are known up to ``reach``.

    The slope by b is :math:`\sum_j s_j [b > t_j] - S` with kinks :math:`t_j` and steps :math:`s_j`. If all b between
    two kinks are equally good, the minimum is the middle between these, as in the solvers. Sums that differ from S
    by no more than rounding are equal to it.

    Parameters
    ----------
    kinks, steps : ndarray of shape (m,)
        t and s, ``s > 0``.
    total : float
        S, above 0 and below the sum of the steps.
    reach : ndarray of shape (m,)
        How far each kink may be from where it is given.

    Returns
    -------
    low, high : float

    Examples
    --------
    >>> shift_of_kinks(np.array([1.0, 2.0, 4.0]), np.ones(3), 1.0, np.zeros(3))
    (1.5, 1.5)
    >>> shift_of_kinks(np.array([1.0, 2.0, 4.0]), np.ones(3), 1.5, np.full(3, 0.5))
    (1.5, 2.5)
    """
    return _middle(kinks - reach, steps, total), _middle(kinks + reach, steps, total)


def _middle(kinks: Vector, steps: Vector, total: float) -> float:
    """The middle of the minima: no kink moves it down that moves up."""
    order = np.argsort(kinks, kind="stable")
    slopes = np.cumsum(steps[order]) - total
    room = _SUM * float(steps.sum())
    first, last = int(np.argmax(slopes >= -room)), int(np.argmax(slopes > room))
    return 0.5 * float(kinks[order[first]] + kinks[order[last]])


def shift_of_slope(slope: Callable[[Vector], float], reach: Vector, size: float) -> tuple[float, float]:
    """Return an interval of the minima over b of a smooth risk whose predictions are known up to ``reach``.

    Parameters
    ----------
    slope : callable
        From changes of the predictions (n,) to the slope of the risk by b; it grows with each of them.
    reach : ndarray of shape (n,)
    size : float
        The sum of the sizes of the terms of the slope, whose rounding is allowed for.

    Returns
    -------
    low, high : float

    Examples
    --------
    >>> low, high = shift_of_slope(lambda change: float((change - 1.0).sum()), np.array([0.5]), 1.0)
    >>> round(low, 9), round(high, 9)
    (0.5, 1.5)
    """
    room = _SUM * size
    low, _ = _root(lambda b: slope(b + reach) + room)
    _, high = _root(lambda b: slope(b - reach) - room)
    return low, high


def _root(slope: Callable[[float], float]) -> tuple[float, float]:
    """Two neighbouring numbers between which an ascending function changes its sign; infinite where it does not."""
    low, high = -1.0, 1.0
    while slope(low) > 0 and low > -math.inf:
        low *= 2.0
    while slope(high) < 0 and high < math.inf:
        high *= 2.0
    for _ in range(_HALVINGS if math.isfinite(low) and math.isfinite(high) else 0):
        middle = 0.5 * (low + high)
        if not low < middle < high:
            break
        low, high = (middle, high) if slope(middle) < 0 else (low, middle)
    return low, high
