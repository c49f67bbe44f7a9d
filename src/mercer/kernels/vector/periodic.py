"""Kernels that are periodic: in every column, or in the distance."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from mercer._types import Array
from mercer.kernels.base import Definiteness
from mercer.kernels.elementary import exponential
from mercer.kernels.leaf import Exponential, Powers, StatisticKernel
from mercer.kernels.parameters import number
from mercer.kernels.statistics import PeriodicDistance, SquaredDistance, Statistic


@dataclass(frozen=True, repr=False)
class Periodic(Exponential, StatisticKernel):
    """``k(x, z) = exp(-2 sum_c sin^2(pi (x_c - z_c) / period) / length_scale^2)``: functions that repeat.

    Parameters
    ----------
    length_scale : float, default 1.0
        Relative to the amplitude of the sine, above 0.
    period : float, default 1.0
        In the units of the columns, above 0.
    tuning : tuple, optional
        Set by :meth:`fixed` and :meth:`bounded`.

    Examples
    --------
    >>> Periodic(1.0, period=2.0)([[0.0]], [[4.0]]).round(12).tolist()
    [[1.0]]

    References
    ----------
    MacKay (1998), *Introduction to Gaussian processes*, equation 47.
    """

    length_scale: float = number(1.0)
    period: float = number(1.0)

    _in_statistic: ClassVar[tuple[str, ...]] = ("period",)

    def _statistic(self) -> Statistic:
        return PeriodicDistance(self.period)

    def _multiplier(self) -> float:
        return -2 / self.length_scale**2

    def _multiplier_powers(self) -> Powers:
        return {"length_scale": -2}


@dataclass(frozen=True, repr=False)
class ExpSineSquared(StatisticKernel):
    """``k(x, z) = exp(-2 sin^2(pi |x - z| / period) / length_scale^2)`` with the Euclidean distance.

    scikit-learn's periodic kernel. It is positive semi-definite on one column only; :class:`Periodic` is on any number.

    Parameters
    ----------
    length_scale : float, default 1.0
    period : float, default 1.0
        In the units of the columns.
    tuning : tuple, optional
        Set by :meth:`fixed` and :meth:`bounded`.

    Examples
    --------
    >>> ExpSineSquared(1.0, period=2.0)([[0.0]], [[2.0]]).tolist()
    [[1.0]]
    """

    length_scale: float = number(1.0)
    period: float = number(1.0)

    def _statistic(self) -> Statistic:
        return SquaredDistance()

    def _multiplier(self) -> float:
        return (math.pi / self.period) ** 2

    def _multiplier_powers(self) -> Powers:
        return {"period": -2}

    def _finish(self, t: Array) -> None:
        np.sqrt(t, out=t)
        np.sin(t, out=t)
        np.square(t, out=t)
        t *= t.dtype.type(-2 / self.length_scale**2)
        exponential(t)

    def _slopes(self, t: Array) -> tuple[Array, dict[str, Array]]:
        u = np.sqrt(t)
        logarithm = np.sin(u) ** 2 * (-2 / self.length_scale**2)
        value = exponential(logarithm.copy())
        # d sin^2(u) / dt = sin(2u) / (2u), which is 1 at 0.
        inner = np.sinc(2 * u / np.pi)
        outer = value * (-2 / self.length_scale**2) * inner
        return outer, {"length_scale": value * logarithm * (-2 / self.length_scale)}

    @property
    def definiteness(self) -> Definiteness:
        return "indefinite"
