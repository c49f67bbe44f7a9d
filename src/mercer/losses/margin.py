"""Losses of the margin y f, for labels y of -1 and +1."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import entr, expit

from mercer._types import Vector
from mercer.loops import losses
from mercer.losses.loss import Loss, Tube


@dataclass(frozen=True)
class Hinge(Loss):
    r""":math:`\max(0, 1 - y f)`, the loss of support vector machines.

    Examples
    --------
    >>> Hinge().value(np.array([1.0, -1.0]), np.array([0.5, 0.5]))
    array([0.5, 1.5])
    """

    name = "hinge"
    targets = "signs"
    smooth = False
    code = losses.HINGE
    step_bound = 1.0

    def value(self, y: Vector, f: Vector) -> Vector:
        return np.maximum(1.0 - y * f, 0.0)

    def gradient(self, y: Vector, f: Vector) -> Vector:
        return np.where(y * f < 1.0, -y, 0.0)

    def curvature(self, y: Vector, f: Vector) -> Vector:
        return np.zeros_like(f)

    def conjugate(self, y: Vector, u: Vector) -> Vector:
        return np.where((u * y <= 0) & (u * y >= -1), u * y, np.inf)

    def prox(self, y: Vector, v: Vector, step: Any) -> Vector:
        return y * np.clip(1.0, y * v, y * v + step)

    def slopes(self, y: Vector) -> tuple[Vector, Vector]:
        return np.where(y > 0, -1.0, 0.0), np.where(y > 0, 0.0, 1.0)

    def tube(self, y: Vector) -> Tube:
        return Tube(y, (y > 0).astype(np.float64), (y < 0).astype(np.float64), 0.0)


@dataclass(frozen=True)
class SquaredHinge(Loss):
    r""":math:`\max(0, 1 - y f)^2`.

    Examples
    --------
    >>> SquaredHinge().value(np.array([1.0, -1.0]), np.array([0.5, 0.5]))
    array([0.25, 2.25])
    """

    name = "squared_hinge"
    targets = "signs"
    code = losses.SQUARED_HINGE
    step_bound = 2.0

    def value(self, y: Vector, f: Vector) -> Vector:
        return np.square(np.maximum(1.0 - y * f, 0.0))

    def gradient(self, y: Vector, f: Vector) -> Vector:
        return -2.0 * y * np.maximum(1.0 - y * f, 0.0)

    def curvature(self, y: Vector, f: Vector) -> Vector:
        return np.where(y * f < 1.0, 2.0, 0.0)

    def conjugate(self, y: Vector, u: Vector) -> Vector:
        return np.where(u * y <= 0, u * y + 0.25 * u * u, np.inf)

    def prox(self, y: Vector, v: Vector, step: Any) -> Vector:
        return y * np.maximum(y * v, (y * v + 2.0 * step) / (1.0 + 2.0 * step))

    def slopes(self, y: Vector) -> tuple[Vector, Vector]:
        return np.where(y > 0, -np.inf, 0.0), np.where(y > 0, 0.0, np.inf)


@dataclass(frozen=True)
class ModifiedHuber(Loss):
    r""":math:`\max(0, 1 - y f)^2` for margins of at least -1, and the straight line :math:`-4 y f` below.

    References
    ----------
    T. Zhang, "Statistical behavior and consistency of classification methods based on convex risk minimization",
    Annals of Statistics 32 (2004).

    Examples
    --------
    >>> ModifiedHuber().value(np.array([1.0, -1.0]), np.array([0.5, 2.0]))
    array([0.25, 8.  ])
    """

    name = "modified_huber"
    targets = "signs"
    code = losses.MODIFIED_HUBER
    step_bound = 2.0

    def value(self, y: Vector, f: Vector) -> Vector:
        z = y * f
        return np.where(z < -1.0, -4.0 * z, np.square(np.maximum(1.0 - z, 0.0)))

    def gradient(self, y: Vector, f: Vector) -> Vector:
        return -y * np.clip(2.0 * (1.0 - y * f), 0.0, 4.0)

    def curvature(self, y: Vector, f: Vector) -> Vector:
        return np.where(np.abs(y * f) < 1.0, 2.0, 0.0)

    def conjugate(self, y: Vector, u: Vector) -> Vector:
        return np.where((u * y <= 0) & (u * y >= -4), u * y + 0.25 * u * u, np.inf)

    def prox(self, y: Vector, v: Vector, step: Any) -> Vector:
        z = y * v
        inner = np.maximum(z, (z + 2.0 * step) / (1.0 + 2.0 * step))
        return y * np.where(z + 4.0 * step < -1.0, z + 4.0 * step, inner)

    def slopes(self, y: Vector) -> tuple[Vector, Vector]:
        return np.where(y > 0, -4.0, 0.0), np.where(y > 0, 0.0, 4.0)


@dataclass(frozen=True)
class Logistic(Loss):
    r""":math:`\log(1 + e^{-y f})`, the negative log likelihood of the label with log-odds f.

    Examples
    --------
    >>> Logistic().value(np.array([1.0, -1.0]), np.array([0.0, 2.0])).round(6)
    array([0.693147, 2.126928])
    """

    name = "logistic"
    aliases = ("log_loss",)
    targets = "signs"
    code = losses.LOGISTIC
    step_bound = 0.25

    def value(self, y: Vector, f: Vector) -> Vector:
        return np.logaddexp(0.0, -y * f)

    def gradient(self, y: Vector, f: Vector) -> Vector:
        return -y * expit(-y * f)

    def curvature(self, y: Vector, f: Vector) -> Vector:
        return expit(f) * expit(-f)

    def conjugate(self, y: Vector, u: Vector) -> Vector:
        share = -u * y
        return np.where((share >= 0) & (share <= 1), -entr(share) - entr(1.0 - share), np.inf)

    def slopes(self, y: Vector) -> tuple[Vector, Vector]:
        return np.where(y > 0, -1.0, 0.0), np.where(y > 0, 0.0, 1.0)
