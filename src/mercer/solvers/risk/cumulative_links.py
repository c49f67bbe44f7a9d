r"""Cumulative links: the loss of an ordered class, with its derivatives, safe in the tails.

A row of an ordered class has an interval between two cut-points. Seen from its latent value g the interval runs from
``lower = t_{j-1} - g`` to ``upper = t_j - g``, of length ``gap = t_j - t_{j-1}``, and the loss is

.. math:: \psi = -\log\bigl(F(\text{upper}) - F(\text{lower})\bigr)

with the distribution function F of the link. The ends of the scale are infinite: ``lower = -inf`` in the first class,
``upper = inf`` in the last. For a density with a concave logarithm, which all links here have, the loss is jointly
convex in ``upper`` and ``lower`` (Prekopa, 1973), so also in latent values and cut-points.

The gap is passed on its own: where a class is narrow, it has digits that ``upper - lower`` has lost.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import erfcx, expit, log_expit, log_ndtr, logit, ndtr, ndtri

from mercer._types import Vector

_LOG_SQRT_2PI = 0.5 * math.log(2.0 * math.pi)
# Below this Bernoulli's series replaces formulas that cancel.
_SERIES = 0.03
# Intervals of the normal distribution below this length, in units of 1 + |middle|, are expanded about their middle.
_NARROW = 5e-3


@dataclass(frozen=True, eq=False)
class Slopes:
    """The loss of every row and its derivatives, each (n,).

    ``upper`` and ``lower`` are those by the ends of the interval, ``latent`` that by the latent value,
    ``-(upper + lower)``. ``cross_upper`` and ``cross_lower`` are the derivatives of ``latent`` by the ends,
    ``curvature`` that by the latent value, ``-(cross_upper + cross_lower)``; ``mixed`` is the second derivative by both
    ends. ``third_upper`` and ``third_lower`` are the derivatives of ``curvature`` by the ends.
    """

    value: Vector
    upper: Vector
    lower: Vector
    latent: Vector
    cross_upper: Vector
    cross_lower: Vector
    curvature: Vector
    mixed: Vector
    third_upper: Vector
    third_lower: Vector


class Link(ABC):
    """A distribution function F with a log-concave density."""

    name: str

    @abstractmethod
    def value(self, upper: Vector, lower: Vector, gap: Vector) -> Vector:
        """The losses alone, of the shape of the arguments."""

    @abstractmethod
    def slopes(self, upper: Vector, lower: Vector, gap: Vector) -> Slopes:
        """The losses with their derivatives."""

    @abstractmethod
    def quantile(self, share: Vector) -> Vector:
        """The inverse of F."""

    @abstractmethod
    def cumulative(self, z: Vector) -> Vector:
        """F itself."""


class Logit(Link):
    r"""The logistic distribution, ``F(z) = 1 / (1 + exp(-z))``.

    The loss falls apart into :math:`\log(1 + e^{-u}) + \log(1 + e^{l}) - \log(1 - e^{-(u - l)})` without rounding, for
    the upper end u and the lower end l, so that nothing ever cancels.

    Examples
    --------
    >>> one = np.array([1.0])
    >>> Logit().value(one, -one, 2 * one).round(6).tolist(), round(-math.log(math.tanh(0.5)), 6)
    ([0.771937], 0.771937)
    """

    name = "logit"

    def value(self, upper: Vector, lower: Vector, gap: Vector) -> Vector:
        return -log_expit(upper) - log_expit(-lower) - log_one_minus_exp(gap)

    def slopes(self, upper: Vector, lower: Vector, gap: Vector) -> Slopes:
        above, below = expit(-upper), expit(lower)
        narrow = _odds(gap)
        steep_upper, steep_lower = above * (1.0 - above), below * (1.0 - below)
        return Slopes(
            value=self.value(upper, lower, gap),
            upper=-above - narrow,
            lower=below + narrow,
            latent=above - below,
            cross_upper=-steep_upper,
            cross_lower=-steep_lower,
            curvature=steep_upper + steep_lower,
            mixed=-narrow * (1.0 + narrow),
            third_upper=steep_upper * (2.0 * above - 1.0),
            third_lower=steep_lower * (1.0 - 2.0 * below),
        )

    def quantile(self, share: Vector) -> Vector:
        return np.asarray(logit(share))

    def cumulative(self, z: Vector) -> Vector:
        return np.asarray(expit(z))


class Probit(Link):
    """The normal distribution, ``F(z) = Phi(z)``.

    Examples
    --------
    >>> far = np.array([-40.0])
    >>> Probit().value(far, far - 1.0, np.ones(1)).round(3).tolist()
    [804.608]
    """

    name = "probit"

    def value(self, upper: Vector, lower: Vector, gap: Vector) -> Vector:
        return _normal_parts(upper, lower, gap, _tight(upper, lower, gap))[0]

    def slopes(self, upper: Vector, lower: Vector, gap: Vector) -> Slopes:
        tight = _tight(upper, lower, gap)
        value, a, b = _normal_parts(upper, lower, gap, tight)
        top, low = np.where(np.isinf(upper), 0.0, upper), np.where(np.isinf(lower), 0.0, lower)
        latent = a - b
        cross_upper, cross_lower = -a * (latent + top), b * (latent + low)
        curvature = np.maximum(latent * latent + top * a - low * b, 0.0)
        # a' = -a (top + a) by top and a b by low; b' = -a b by top and b (b - low) by low.
        third_upper = -2.0 * latent * a * (top + latent) + a - top * a * (top + a) + low * a * b
        third_lower = 2.0 * latent * b * (latent + low) + top * a * b - b - low * b * (b - low)
        slopes = Slopes(value, -a, b, latent, cross_upper, cross_lower, curvature, -a * b, third_upper, third_lower)
        return _with_narrow(slopes, tight, upper, lower, gap) if tight.any() else slopes

    def quantile(self, share: Vector) -> Vector:
        return np.asarray(ndtri(share))

    def cumulative(self, z: Vector) -> Vector:
        return np.asarray(ndtr(z))


class ComplementaryLogLog(Link):
    r"""The smallest of many values, ``F(z) = 1 - exp(-exp(z))``: proportional hazards.

    With :math:`x = e^u - e^l = e^u (1 - e^{-(u - l)})` the loss is :math:`e^l - \log(1 - e^{-x})`.

    Examples
    --------
    >>> link = ComplementaryLogLog()
    >>> link.value(np.array([0.0, np.inf]), np.array([-np.inf, 0.0]), np.full(2, np.inf)).round(6).tolist()
    [0.458675, 1.0]
    """

    name = "cloglog"

    def value(self, upper: Vector, lower: Vector, gap: Vector) -> Vector:
        with np.errstate(over="ignore"):
            return np.exp(lower) - _log_of_mass(upper + log_one_minus_exp(gap))

    def slopes(self, upper: Vector, lower: Vector, gap: Vector) -> Slopes:
        with np.errstate(over="ignore"):
            rest = np.exp(lower)
            y = upper + log_one_minus_exp(gap)
            x = np.exp(np.minimum(y, 6.5))
        first, second, third = _bernoulli(x)
        narrow = _odds(gap)
        wide = 1.0 + narrow
        return Slopes(
            value=rest - _log_of_mass(y),
            upper=-first * wide,
            lower=rest + first * narrow,
            latent=first - rest,
            cross_upper=second * wide,
            cross_lower=-rest - second * narrow,
            curvature=rest - second,
            mixed=narrow * wide * (second - first),
            third_upper=-third * wide,
            third_lower=rest + third * narrow,
        )

    def quantile(self, share: Vector) -> Vector:
        return np.log(-np.log1p(-share))

    def cumulative(self, z: Vector) -> Vector:
        with np.errstate(over="ignore"):
            return -np.expm1(-np.exp(z))


class LogLog(Link):
    """The largest of many values, ``F(z) = exp(-exp(-z))``: the mirror image of ``"cloglog"``.

    Examples
    --------
    >>> LogLog().cumulative(np.array([0.0])).round(6).tolist()
    [0.367879]
    """

    name = "loglog"

    def __init__(self) -> None:
        self._mirror = ComplementaryLogLog()

    def value(self, upper: Vector, lower: Vector, gap: Vector) -> Vector:
        return self._mirror.value(-lower, -upper, gap)

    def slopes(self, upper: Vector, lower: Vector, gap: Vector) -> Slopes:
        m = self._mirror.slopes(-lower, -upper, gap)
        return Slopes(
            m.value,
            -m.lower,
            -m.upper,
            -m.latent,
            m.cross_lower,
            m.cross_upper,
            m.curvature,
            m.mixed,
            -m.third_lower,
            -m.third_upper,
        )

    def quantile(self, share: Vector) -> Vector:
        return -np.log(-np.log(share))

    def cumulative(self, z: Vector) -> Vector:
        with np.errstate(over="ignore"):
            return np.exp(-np.exp(-z))


LINKS: dict[str, Link] = {link.name: link for link in (Logit(), Probit(), ComplementaryLogLog(), LogLog())}


def log_one_minus_exp(x: Vector) -> Vector:
    """``log(1 - exp(-x))`` for x of 0 or more, exact on either side of log 2 (Maechler, 2012).

    Examples
    --------
    >>> log_one_minus_exp(np.array([1e-20, 1.0, np.inf])).round(4).tolist()
    [-46.0517, -0.4587, -0.0]
    """
    with np.errstate(divide="ignore"):
        return np.where(x < math.log(2.0), np.log(-np.expm1(-x)), np.log1p(-np.exp(-x)))


def _odds(gap: Vector) -> Vector:
    """``1 / (exp(gap) - 1)``, which is 0 for an infinite gap."""
    with np.errstate(over="ignore"):
        return 1.0 / np.expm1(gap)


def _log_of_mass(y: Vector) -> Vector:
    """``log(1 - exp(-exp(y)))``; next to minus infinity it is y."""
    with np.errstate(over="ignore"):
        return np.where(y < -37.0, y, log_one_minus_exp(np.exp(np.maximum(y, -37.0))))


def _bernoulli(x: Vector) -> tuple[Vector, Vector, Vector]:
    """``x / (exp(x) - 1)`` and its first two derivatives by ``log x``."""
    safe = np.maximum(x, _SERIES)
    first = safe / np.expm1(safe)
    second = first * (1.0 - safe - first)
    third = second * (1.0 - safe - first) - first * (safe + second)
    s = x * x
    small = x < _SERIES
    return (
        np.where(small, 1.0 - x / 2 + s * (1 / 12 - s * (1 / 720 - s / 30240)), first),
        np.where(small, -x / 2 + s * (1 / 6 - s * (1 / 180 - s / 5040)), second),
        np.where(small, -x / 2 + s * (1 / 3 - s * (1 / 45 - s / 840)), third),
    )


def _normal_parts(upper: Vector, lower: Vector, gap: Vector, tight: NDArray[np.bool_]) -> tuple[Vector, Vector, Vector]:
    """The loss of an interval of the normal distribution, and the density at either end in units of its mass.

    Only the losses hold where an interval is ``tight``.
    """
    # By symmetry the interval is put where its middle is at most 0: there the tail beyond it is not part of any term.
    flip = upper + lower > 0
    top, low = np.where(flip, -lower, upper), np.where(flip, -upper, lower)
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        tail = erfcx(-top * math.sqrt(0.5))
        # phi(low) / phi(top): the product keeps digits that a difference of squares would lose.
        fall = np.exp(0.5 * gap * (top + low))
        share = erfcx(-low * math.sqrt(0.5)) / tail * fall
        at_upper = math.sqrt(2.0 / math.pi) / (tail * (1.0 - share))
        value = -log_ndtr(top) - np.log1p(-share)
    at_lower = at_upper * fall
    if tight.any():
        value[tight] = _narrow_normal(0.5 * (top + low)[tight], gap[tight])[0]
    return value, np.where(flip, at_lower, at_upper), np.where(flip, at_upper, at_lower)


def _tight(upper: Vector, lower: Vector, gap: Vector) -> NDArray[np.bool_]:
    """Where an interval of the normal distribution is so narrow that differences of its ends would cancel."""
    with np.errstate(invalid="ignore"):
        middle = np.abs(upper + lower)
    return gap * (1.0 + np.where(np.isfinite(middle), 0.5 * middle, 0.0)) < _NARROW


def _narrow_normal(m: Vector, d: Vector) -> tuple[Vector, Vector, Vector, Vector, Vector, Vector, Vector]:
    """The loss of a narrow interval with the middle m and the length d, and its derivatives by m and d.

    ``-log(d phi(m)) - log(1 + d^2 (m^2 - 1) / 24 + ...)``, the logarithm to the fourth order of d: its value and the
    derivatives m, d, mm, md, mmm, mmd. What is left out is below (d (1 + |m|))^6 / 1e4.
    """
    s, q = m * m, d * d
    value = 0.5 * s + _LOG_SQRT_2PI - np.log(d) - q * (s - 1) / 24 + q * q * (s * s + 4 * s - 2) / 2880
    by_m = m - q * m / 12 + q * q * (s * m + 2 * m) / 720
    by_d = -1.0 / d - d * (s - 1) / 12 + q * d * (s * s + 4 * s - 2) / 720
    by_mm = 1.0 - q / 12 + q * q * (3 * s + 2) / 720
    by_md = -d * m / 6 + q * d * (s * m + 2 * m) / 180
    by_mmm = q * q * m / 120
    by_mmd = -d / 6 + q * d * (3 * s + 2) / 180
    return value, by_m, by_d, by_mm, by_md, by_mmm, by_mmd


def _with_narrow(slopes: Slopes, tight: NDArray[np.bool_], upper: Vector, lower: Vector, gap: Vector) -> Slopes:
    """The derivatives of narrow intervals in the place of those that have cancelled."""
    m, d = 0.5 * (upper + lower)[tight], gap[tight]
    value, by_m, by_d, by_mm, by_md, by_mmm, by_mmd = _narrow_normal(m, d)
    by_dd = 1.0 / (d * d) - (m * m - 1) / 12
    # The middle is half of each end, the length the upper end less the lower.
    parts = {
        "value": value,
        "upper": 0.5 * by_m + by_d,
        "lower": 0.5 * by_m - by_d,
        "latent": -by_m,
        "cross_upper": -0.5 * by_mm - by_md,
        "cross_lower": -0.5 * by_mm + by_md,
        "curvature": by_mm,
        "mixed": 0.25 * by_mm - by_dd,
        "third_upper": 0.5 * by_mmm + by_mmd,
        "third_lower": 0.5 * by_mmm - by_mmd,
    }
    whole = {name: getattr(slopes, name).copy() for name in parts}
    for name, part in parts.items():
        whole[name][tight] = part
    return Slopes(**whole)
