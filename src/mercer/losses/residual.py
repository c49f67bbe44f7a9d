"""Robust losses of the residual y - f, and the pinball loss of quantiles."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from mercer._types import Vector
from mercer.loops import losses
from mercer.losses.loss import Loss, Tube, require


@dataclass(frozen=True)
class EpsilonInsensitive(Loss):
    r""":math:`\max(0, |y - f| - \varepsilon)`, the loss of support vector regression; the absolute error at 0.

    Parameters
    ----------
    epsilon : float, default=0.1
        The largest error without loss, in units of y, 0 or more.

    Examples
    --------
    >>> EpsilonInsensitive(0.5).value(np.zeros(2), np.array([0.4, -2.0]))
    array([0. , 1.5])
    """

    epsilon: float = 0.1

    name = "epsilon_insensitive"
    smooth = False
    code = losses.EPSILON_INSENSITIVE
    step_bound = 1.0

    @property
    def parameter(self) -> float:
        """``epsilon``."""
        return self.epsilon

    def __post_init__(self) -> None:
        requirement = "a finite number of 0 or more"
        number = require("EpsilonInsensitive", "epsilon", self.epsilon, requirement, lambda e: 0 <= e < np.inf)
        object.__setattr__(self, "epsilon", number)

    def value(self, y: Vector, f: Vector) -> Vector:
        return np.maximum(np.abs(y - f) - self.epsilon, 0.0)

    def gradient(self, y: Vector, f: Vector) -> Vector:
        return np.where(np.abs(f - y) > self.epsilon, np.sign(f - y), 0.0)

    def curvature(self, y: Vector, f: Vector) -> Vector:
        return np.zeros_like(f)

    def conjugate(self, y: Vector, u: Vector) -> Vector:
        return np.where(np.abs(u) <= 1.0, u * y + self.epsilon * np.abs(u), np.inf)

    def prox(self, y: Vector, v: Vector, step: Any) -> Vector:
        r = v - y
        size = np.abs(r)
        return y + np.sign(r) * np.minimum(size, np.maximum(size - step, self.epsilon))

    def slopes(self, y: Vector) -> tuple[Vector, Vector]:
        return np.full(np.shape(y), -1.0), np.ones(np.shape(y))

    def tube(self, y: Vector) -> Tube:
        return Tube(y, np.ones(np.shape(y)), np.ones(np.shape(y)), self.epsilon)


@dataclass(frozen=True)
class Huber(Loss):
    r"""The square :math:`\tfrac12 r^2` for errors :math:`r = y - f` up to :math:`\delta`, a straight line beyond.

    .. math:: \ell = \delta |r| - \tfrac12 \delta^2 \quad\text{where } |r| > \delta

    Parameters
    ----------
    delta : float, default=1.0
        The error at which the loss becomes linear, in units of y, above 0.

    References
    ----------
    P. J. Huber, "Robust estimation of a location parameter", Annals of Mathematical Statistics 35 (1964).

    Examples
    --------
    >>> Huber().value(np.zeros(2), np.array([1.0, 3.0]))
    array([0.5, 2.5])
    """

    delta: float = 1.0

    name = "huber"
    code = losses.HUBER
    step_bound = 1.0

    @property
    def parameter(self) -> float:
        """``delta``."""
        return self.delta

    def __post_init__(self) -> None:
        number = require("Huber", "delta", self.delta, "a finite number above 0", lambda d: 0 < d < np.inf)
        object.__setattr__(self, "delta", number)

    def value(self, y: Vector, f: Vector) -> Vector:
        size = np.abs(y - f)
        inner = np.minimum(size, self.delta)
        return inner * (size - 0.5 * inner)

    def gradient(self, y: Vector, f: Vector) -> Vector:
        return np.clip(f - y, -self.delta, self.delta)

    def curvature(self, y: Vector, f: Vector) -> Vector:
        return (np.abs(y - f) <= self.delta).astype(np.float64)

    def conjugate(self, y: Vector, u: Vector) -> Vector:
        return np.where(np.abs(u) <= self.delta, u * y + 0.5 * u * u, np.inf)

    def prox(self, y: Vector, v: Vector, step: Any) -> Vector:
        return v - step * np.clip((v - y) / (1.0 + step), -self.delta, self.delta)

    def slopes(self, y: Vector) -> tuple[Vector, Vector]:
        return np.full(np.shape(y), -self.delta), np.full(np.shape(y), self.delta)


@dataclass(frozen=True)
class Quantile(Loss):
    r"""The pinball loss :math:`\max(\tau r, (\tau - 1) r)` of :math:`r = y - f`, whose best prediction is a quantile.

    Parameters
    ----------
    level : float, default=0.5
        The share :math:`\tau` of targets below the prediction, between 0 and 1; half the absolute error at 0.5.

    References
    ----------
    R. Koenker and G. Bassett, "Regression quantiles", Econometrica 46 (1978).

    Examples
    --------
    >>> Quantile(0.9).value(np.zeros(2), np.array([-1.0, 1.0])).round(12)
    array([0.9, 0.1])
    """

    level: float = 0.5

    name = "quantile"
    smooth = False
    step_bound = 1.0

    def __post_init__(self) -> None:
        number = require("Quantile", "level", self.level, "a number between 0 and 1", lambda t: 0 < t < 1)
        object.__setattr__(self, "level", number)

    def value(self, y: Vector, f: Vector) -> Vector:
        return np.maximum(self.level * (y - f), (1.0 - self.level) * (f - y))

    def gradient(self, y: Vector, f: Vector) -> Vector:
        return np.where(f > y, 1.0 - self.level, np.where(f < y, -self.level, 0.0))

    def curvature(self, y: Vector, f: Vector) -> Vector:
        return np.zeros_like(f)

    def conjugate(self, y: Vector, u: Vector) -> Vector:
        return np.where((u >= -self.level) & (u <= 1.0 - self.level), u * y, np.inf)

    def prox(self, y: Vector, v: Vector, step: Any) -> Vector:
        return np.clip(y, v - step * (1.0 - self.level), v + step * self.level)

    def slopes(self, y: Vector) -> tuple[Vector, Vector]:
        return np.full(np.shape(y), -self.level), np.full(np.shape(y), 1.0 - self.level)

    def tube(self, y: Vector) -> Tube:
        return Tube(y, np.full(np.shape(y), self.level), np.full(np.shape(y), 1.0 - self.level), 0.0)
