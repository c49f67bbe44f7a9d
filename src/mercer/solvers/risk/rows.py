"""What Newton's method minimises: a smooth convex function of the predictions, row by row."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from mercer._types import Matrix, Vector
from mercer.losses import Loss

# Curvature below this part of the largest counts as none.
_FLAT = 1e-14
# Of a difference in place of a second derivative.
_STEP = 1e-7


@dataclass(frozen=True, eq=False)
class QuadraticModel:
    """A function to second order: its gradient (n, m), and its curvature as a sum of squares of directions.

    The Hessian of row i is the sum of ``d d'`` over the ``directions`` d (a, m) whose entry in ``rows`` (a,) is i.
    """

    gradient: Matrix
    rows: NDArray[np.intp]
    directions: Matrix


class RowFunction(Protocol):
    """A smooth convex function of predictions F (n, m), a sum over rows."""

    def value(self, F: Matrix) -> float: ...
    def gradient(self, F: Matrix) -> Matrix: ...
    def expand(self, F: Matrix) -> QuadraticModel: ...


@dataclass(frozen=True, eq=False)
class SmoothRows:
    """The weighted sum of a smooth loss, of predictions (n, 1)."""

    loss: Loss
    targets: Vector
    weight: Vector

    def value(self, F: Matrix) -> float:
        with np.errstate(over="ignore", invalid="ignore"):
            return float(self.weight @ self.loss.value(self.targets, F[:, 0]))

    def gradient(self, F: Matrix) -> Matrix:
        with np.errstate(over="ignore", invalid="ignore"):
            return (self.weight * self.loss.gradient(self.targets, F[:, 0]))[:, None]

    def expand(self, F: Matrix) -> QuadraticModel:
        return expansion(self.gradient(F), self.weight * self.loss.curvature(self.targets, F[:, 0]))


@dataclass(frozen=True, eq=False)
class EnvelopeRows:
    r"""The Moreau envelope of a loss that need not be smooth, moved by multipliers u: the augmented Lagrangian.

    .. math:: \min_p \sum_i w_i \ell(y_i, p_i) + u_i (f_i - p_i) + \tfrac{\sigma}{2} (f_i - p_i)^2

    Its gradient :math:`u + \sigma (f - p)` is one of the loss at p.
    """

    loss: Loss
    targets: Vector
    weight: Vector
    multipliers: Vector
    sigma: float

    def nearest(self, f: Vector) -> Vector:
        """p, (n,)."""
        return self.loss.prox(self.targets, f + self.multipliers / self.sigma, self.weight / self.sigma)

    def value(self, F: Matrix) -> float:
        f = F[:, 0]
        p = self.nearest(f)
        away = f - p
        with np.errstate(over="ignore", invalid="ignore"):
            loss = self.weight @ self.loss.value(self.targets, p)
        return float(loss + self.multipliers @ away + 0.5 * self.sigma * (away @ away))

    def gradient(self, F: Matrix) -> Matrix:
        return (self.multipliers + self.sigma * (F[:, 0] - self.nearest(F[:, 0])))[:, None]

    def expand(self, F: Matrix) -> QuadraticModel:
        p = self.nearest(F[:, 0])
        steep = self.weight * self._curvature(p)
        # The slope of the proximal map is 1 / (1 + curvature / sigma); where the loss has a kink, that is nothing.
        with np.errstate(invalid="ignore"):
            curvature = np.where(np.isfinite(steep), steep * self.sigma / (steep + self.sigma), self.sigma)
        return expansion((self.multipliers + self.sigma * (F[:, 0] - p))[:, None], curvature)

    def _curvature(self, p: Vector) -> Vector:
        if self.loss.smooth:
            return self.loss.curvature(self.targets, p)
        step = _STEP * (np.abs(p) + np.abs(p).mean() + 1e-100)
        with np.errstate(over="ignore", invalid="ignore"):
            rise = self.loss.gradient(self.targets, p + step) - self.loss.gradient(self.targets, p - step)
        return np.maximum(rise, 0.0) / (2.0 * step)


def expansion(gradient: Matrix, curvature: Vector) -> QuadraticModel:
    """From the second derivative of each row, (n,)."""
    rows = np.flatnonzero(curvature > _FLAT * float(curvature.max(initial=0.0)))
    return QuadraticModel(gradient, rows, np.sqrt(curvature[rows])[:, None])
