"""Least squares."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from mercer._types import Vector
from mercer.loops import losses
from mercer.losses.loss import Loss


@dataclass(frozen=True)
class Squared(Loss):
    r""":math:`\tfrac12 (y - f)^2`, whose best prediction is the mean.

    Examples
    --------
    >>> Squared().value(np.array([1.0]), np.array([3.0]))
    array([2.])
    """

    name = "squared"
    aliases = ("squared_error",)
    code = losses.SQUARED
    step_bound = 1.0

    def value(self, y: Vector, f: Vector) -> Vector:
        return 0.5 * np.square(y - f)

    def gradient(self, y: Vector, f: Vector) -> Vector:
        return f - y

    def curvature(self, y: Vector, f: Vector) -> Vector:
        return np.ones_like(f)

    def conjugate(self, y: Vector, u: Vector) -> Vector:
        return u * y + 0.5 * u * u

    def prox(self, y: Vector, v: Vector, step: Any) -> Vector:
        return (v + step * y) / (1.0 + step)
