"""The Poisson loss of counts, with the logarithm of the mean as prediction."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import entr, xlogy

from mercer._types import Vector
from mercer.losses.loss import Loss


@dataclass(frozen=True)
class Poisson(Loss):
    r""":math:`e^f - y f + y \log y - y`: half the deviance of counts y with mean :math:`e^f`.

    Its last two terms make it zero where the prediction is right. ``response`` is the mean.

    References
    ----------
    P. McCullagh and J. A. Nelder, "Generalized linear models" (2nd edition, 1989), section 2.3.

    Examples
    --------
    >>> Poisson().value(np.array([1.0, 0.0]), np.zeros(2))
    array([0., 1.])
    """

    name = "poisson"
    targets = "counts"

    def value(self, y: Vector, f: Vector) -> Vector:
        with np.errstate(over="ignore"):
            return np.exp(f) - y * f + (xlogy(y, y) - y)

    def gradient(self, y: Vector, f: Vector) -> Vector:
        with np.errstate(over="ignore"):
            return np.exp(f) - y

    def curvature(self, y: Vector, f: Vector) -> Vector:
        with np.errstate(over="ignore"):
            return np.exp(f)

    def conjugate(self, y: Vector, u: Vector) -> Vector:
        mean = u + y
        return np.where(mean >= 0, -entr(mean) - u - xlogy(y, y), np.inf)

    def slopes(self, y: Vector) -> tuple[Vector, Vector]:
        return -y, np.full(np.shape(y), np.inf)

    def response(self, f: Vector) -> Vector:
        return np.exp(f)
