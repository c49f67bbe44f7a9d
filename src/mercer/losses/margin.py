"""Losses of the margin y f, for labels y of -1 and +1."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import entr, expit

from mercer.losses.loss import Loss, Tube, Vector


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
class Logistic(Loss):
    r""":math:`\log(1 + e^{-y f})`, the negative log likelihood of the label with log-odds f.

    Examples
    --------
    >>> Logistic().value(np.array([1.0, -1.0]), np.array([0.0, 2.0])).round(6)
    array([0.693147, 2.126928])
    """

    name = "logistic"
    targets = "signs"

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
