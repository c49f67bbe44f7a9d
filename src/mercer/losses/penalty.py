"""Penalties on the norm: convex, non-decreasing functions R of ``||w||``, each with its conjugate."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np

from mercer._errors import ParameterError
from mercer.losses.loss import require

_RATIO = 0.5 * (math.sqrt(5.0) - 1.0)
_ROUNDING = 1e-9


class Penalty(ABC):
    r"""A convex, non-decreasing function R of the norm :math:`t = \|w\| \ge 0`.

    The representer theorem requires that R does not decrease: components of w orthogonal to all rows then only add to
    the objective.

    Examples
    --------
    >>> from mercer.losses import NormPower
    >>> R = NormPower(4.0)
    >>> R.value(2.0), R.slope(2.0), round(R.conjugate(8.0), 12)
    (4.0, 8.0, 12.0)
    """

    @abstractmethod
    def value(self, t: float) -> float:
        """R(t).

        Parameters
        ----------
        t : float
            The norm, 0 or more.

        Returns
        -------
        float
            Infinite where t is outside the domain.
        """

    @abstractmethod
    def slope(self, t: float) -> float:
        """Return the derivative at t.

        Parameters
        ----------
        t : float
            The norm, 0 or more.

        Returns
        -------
        float
            The largest subgradient where the derivative does not exist.
        """

    @abstractmethod
    def conjugate(self, s: float) -> float:
        r""":math:`\sup_{t \ge 0} s t - R(t)`.

        Parameters
        ----------
        s : float
            0 or more.

        Returns
        -------
        float
        """

    def mismatch(self, t: float, s: float) -> float:
        """Return how far s is below the slopes at t, as a logarithm.

        It decreases as s rises; where it is 0, t and s are the norms of a primal and a dual solution.

        Parameters
        ----------
        t, s : float
            A norm and a slope, 0 or more.

        Returns
        -------
        float
            0 where s is one of the slopes, negative where s is above.
        """
        slope = self.slope(t)
        if s <= 0 or not math.isfinite(slope):
            return math.inf if slope > 0 else 0.0
        return math.log(slope) - math.log(s) if slope > 0 else -math.inf


@dataclass(frozen=True)
class HalfSquare(Penalty):
    r""":math:`\tfrac12 t^2`, the penalty of ridge regression and support vector machines.

    Examples
    --------
    >>> HalfSquare().value(2.0)
    2.0
    """

    def value(self, t: float) -> float:
        return 0.5 * t * t

    def slope(self, t: float) -> float:
        return t

    def conjugate(self, s: float) -> float:
        return 0.5 * s * s


@dataclass(frozen=True)
class Norm(Penalty):
    """The norm t itself: all of w is zero once the penalty is large enough.

    Examples
    --------
    >>> Norm().value(2.0), Norm().conjugate(1.5)
    (2.0, inf)
    """

    def value(self, t: float) -> float:
        return t

    def slope(self, t: float) -> float:
        return 1.0

    def conjugate(self, s: float) -> float:
        # Where a dual solution is at the edge, rounding must not make its bound infinite.
        return 0.0 if s <= 1.0 + 1e-12 else math.inf


def _power(base: float, exponent: float) -> float:
    """A power of a number of 0 or more; infinite where it overflows, which Python raises an error for.

    >>> _power(2.0, 3.0), _power(1e200, 2.0)
    (8.0, inf)
    """
    try:
        return float(base**exponent)
    except OverflowError:
        return math.inf


@dataclass(frozen=True)
class NormPower(Penalty):
    """:math:`t^p / p`.

    Parameters
    ----------
    exponent : float, default=3.0
        p, above 1; 2 is :class:`HalfSquare`, 1 is :class:`Norm`.

    Examples
    --------
    >>> NormPower(3.0).value(2.0).__round__(6)
    2.666667
    """

    exponent: float = 3.0

    def __post_init__(self) -> None:
        requirement = "a finite number above 1 (1 is Norm())"
        number = require("NormPower", "exponent", self.exponent, requirement, lambda p: 1 < p < math.inf)
        object.__setattr__(self, "exponent", number)

    def value(self, t: float) -> float:
        return _power(t, self.exponent) / self.exponent

    def slope(self, t: float) -> float:
        return _power(t, self.exponent - 1.0)

    def conjugate(self, s: float) -> float:
        other = self.exponent / (self.exponent - 1.0)
        return _power(s, other) / other


@dataclass(frozen=True)
class Ball(Penalty):
    """Zero up to a radius and infinite beyond: the loss is minimised under ``||w|| <= radius``.

    Parameters
    ----------
    radius : float, default=1.0
        Above 0.

    Examples
    --------
    >>> Ball(2.0).value(1.0), Ball(2.0).value(3.0), Ball(2.0).conjugate(5.0)
    (0.0, inf, 10.0)
    """

    radius: float = 1.0

    def __post_init__(self) -> None:
        number = require("Ball", "radius", self.radius, "a finite number above 0", lambda r: 0 < r < math.inf)
        object.__setattr__(self, "radius", number)

    def value(self, t: float) -> float:
        # A solution at the edge is outside by rounding as often as inside.
        return 0.0 if t <= self.radius * (1.0 + 1e-12) else math.inf

    def slope(self, t: float) -> float:
        return 0.0 if t < self.radius else math.inf

    def conjugate(self, s: float) -> float:
        return s * self.radius

    def mismatch(self, t: float, s: float) -> float:
        return math.log(t / self.radius) if t > 0 else -math.inf


class OwnPenalty(Penalty):
    """A user-defined function ``R(t)``; its slopes and its conjugate are computed from its values.

    Parameters
    ----------
    given : callable
        Takes a float of 0 or more and returns a float or infinity. Its methods ``slope(t)`` and ``conjugate(s)`` are
        used if it has them.

    Examples
    --------
    >>> R = OwnPenalty(lambda t: max(0.0, t - 1.0))
    >>> round(R.conjugate(0.5), 6), round(R.slope(3.0), 6)
    (0.5, 1.0)
    """

    def __init__(self, given: Callable[[float], float]) -> None:
        self.given = given

    def __repr__(self) -> str:
        return f"OwnPenalty({self.given!r})"

    def value(self, t: float) -> float:
        try:
            with np.errstate(over="ignore"):
                value: Any = self.given(float(t))
        except OverflowError:
            return math.inf
        if isinstance(value, np.ndarray) and value.ndim == 0:
            value = value.item()
        if not isinstance(value, Real) or math.isnan(value):
            raise ParameterError(f"the penalty {self.given!r} must return a number for each norm; at {t:g}: {value!r}.")
        return float(value)

    def slope(self, t: float) -> float:
        own = getattr(self.given, "slope", None)
        if callable(own):
            return float(own(t))
        step = 1e-8 * max(t, 1e-6)
        return (self.value(t + step) - self.value(t)) / step if math.isfinite(self.value(t)) else math.inf

    def conjugate(self, s: float) -> float:
        own = getattr(self.given, "conjugate", None)
        if callable(own):
            return float(own(s))
        high = 1.0
        while s * high - self.value(high) > s * 0.5 * high - self.value(0.5 * high):
            high *= 2.0
            if high > 1e150:
                return math.inf
        # The largest value is between 0 and here: golden sections of a concave function.
        low = 0.0
        for _ in range(120):
            left, right = high - _RATIO * (high - low), low + _RATIO * (high - low)
            if s * left - self.value(left) >= s * right - self.value(right):
                high = right
            else:
                low = left
        return max(s * t - self.value(t) for t in (0.0, low, 0.5 * (low + high), high) if math.isfinite(self.value(t)))


def as_penalty(penalty: Any) -> Penalty:
    """Return a penalty from ``"l2"`` or ``"norm"``, from a penalty, or from a function of the norm.

    Parameters
    ----------
    penalty : {"l2", "norm"}, Penalty or callable

    Returns
    -------
    Penalty

    Raises
    ------
    ParameterError
        If it is none of these.

    Examples
    --------
    >>> as_penalty("l2"), as_penalty(Ball(3.0))
    (HalfSquare(), Ball(radius=3.0))
    """
    named: dict[Any, Penalty] = {"l2": HalfSquare(), "norm": Norm()}
    if isinstance(penalty, str) and penalty in named:
        return named[penalty]
    if isinstance(penalty, Penalty):
        return penalty
    if callable(penalty) and not isinstance(penalty, type):
        return OwnPenalty(penalty)
    raise ParameterError(
        f"regularizer must be 'l2', 'norm', a penalty such as mercer.losses.Ball(1.0), or a function of the norm, "
        f"but is {penalty!r}."
    )


def check_penalty(penalty: Penalty) -> None:
    """Raise an error if samples show that a penalty decreases, is not convex, or is infinite at 0.

    Norms from 1e-6 to 1e6 are sampled. A penalty that passes is not thereby proved valid.

    Parameters
    ----------
    penalty : Penalty

    Raises
    ------
    ParameterError
        If a sample violates a requirement; the message says which one, and where.

    Examples
    --------
    >>> check_penalty(OwnPenalty(lambda t: t**0.5))
    Traceback (most recent call last):
        ...
    mercer._errors.ParameterError: the penalty OwnPenalty(...) is not convex: ...
    """
    norms = np.concatenate([[0.0], np.geomspace(1e-6, 1e6, 97)])
    values = np.array([penalty.value(float(t)) for t in norms])
    if not math.isfinite(values[0]):
        raise ParameterError(f"the penalty {penalty!r} must be finite at the norm 0, but is {values[0]}.")
    if (values == values[0]).all():
        raise ParameterError(f"the penalty {penalty!r} is {values[0]:g} for every norm, so it penalises nothing.")
    with np.errstate(invalid="ignore"):
        falls = np.flatnonzero(values[1:] < values[:-1] - _ROUNDING * np.abs(values[:-1]))
        if len(falls):
            at = falls[0]
            raise ParameterError(
                f"the penalty {penalty!r} decreases, from {values[at]:.6g} at the norm {norms[at]:.6g} to "
                f"{values[at + 1]:.6g} at {norms[at + 1]:.6g}; a penalty must not decrease, since otherwise the "
                "solution may not be an expansion."
            )
        for left, right in zip(range(len(norms) - 2), range(2, len(norms)), strict=True):
            middle = left + 1
            share = (norms[middle] - norms[left]) / (norms[right] - norms[left])
            chord = values[left] + share * (values[right] - values[left])
            if values[middle] > chord + _ROUNDING * abs(values[right]):
                raise ParameterError(
                    f"the penalty {penalty!r} is not convex: {values[middle]:.6g} at the norm {norms[middle]:.6g} is "
                    f"above {chord:.6g}, between its values at {norms[left]:.6g} and {norms[right]:.6g}."
                )
