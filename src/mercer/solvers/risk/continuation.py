r"""A stationary point at one factor of the penalty, by following a curve of them from large factors.

With multipliers :math:`v = \alpha c` the condition is :math:`v + w\,\ell'(K v / \alpha + b) = 0`, and, for the offset,
:math:`1^\top v = 0`. At large :math:`\alpha` there is one solution, next to that of K = 0. Where slopes are bounded so
is v, and then a connected set of solutions reaches from there to every :math:`\alpha > 0` (Leray and Schauder). It may
turn back on its way, so that it is followed by its length, not by :math:`\alpha`.

Source: H. B. Keller, "Numerical solution of bifurcation and nonlinear eigenvalue problems", in P. H. Rabinowitz (ed.),
"Applications of bifurcation theory" (1977), pp. 359-384.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from mercer._types import Matrix, Vector
from mercer.solvers.risk.row_newton import root_of_rising

# (system, right side) -> solution; the system may be overwritten.
Solve = Callable[[Matrix, Vector], Vector]

# How far above the largest curvature of K the curve begins.
_ABOVE = 4.0
# Lengths of steps, in units in which v has the length 1 and log alpha counts as it is.
_FIRST, _LONGEST, _SHORTEST = 0.3, 1.0, 1e-6
_CORRECTIONS = 8
_EASY = 4
# A residual that lies on the curve, and one that ends a correction, relative to the slopes at zero.
_ON_CURVE = 1e-8
_RISE = 10.0
_GROWTH = 1.6
# Where multipliers are this many times as long as at first, the curve goes to infinity.
_AWAY = 30.0


@dataclass(frozen=True, eq=False)
class Curve:
    """The equations of the curve.

    Parameters
    ----------
    K : ndarray of shape (n, n)
    slope, curvature : callable
        Weighted derivatives of the losses at predictions (n,).
    intercept : bool
    solve : callable
        Of linear systems.
    """

    K: Matrix
    slope: Callable[[Vector], Vector]
    curvature: Callable[[Vector], Vector]
    intercept: bool
    solve: Solve

    @property
    def n(self) -> int:
        return len(self.K)

    def predictions(self, z: Vector) -> Vector:
        """f at ``z = (v, b, log alpha)``."""
        b = z[self.n] if self.intercept else 0.0
        return np.asarray(self.K @ z[: self.n] * math.exp(-z[-1]) + b)

    def residual(self, z: Vector) -> Vector:
        v = z[: self.n]
        r = v + self.slope(self.predictions(z))
        return np.append(r, v.sum()) if self.intercept else r

    def bordered(self, z: Vector, border: Vector) -> Matrix:
        """The derivative of the residual, with ``border`` as its last row."""
        n, m = self.n, len(z)
        steep, part = self.curvature(self.predictions(z)), math.exp(-z[-1])
        out = np.zeros((m, m))
        np.multiply((steep * part)[:, None], self.K, out=out[:n, :n])
        out[:n, -1] = -out[:n, :n] @ z[:n]
        out.flat[: n * m : m + 1] += 1.0
        if self.intercept:
            out[:n, n], out[n, :n] = steep, 1.0
        out[-1] = border
        return out

    def correct(self, z: Vector, border: Vector, tol: float) -> tuple[Vector | None, int]:
        """The point of the curve next to z in the plane across ``border``, and the steps that it took."""
        size = math.inf
        for step in range(_CORRECTIONS + 1):
            r = self.residual(z)
            now = float(np.abs(r).max())
            if now <= tol:
                return z, step
            # Where a slope has a kink the residual may rise for once.
            if not now < _RISE * size:
                break
            size = min(now, size)
            z = z - self.solve(self.bordered(z, border), np.append(r, 0.0))
            if not np.isfinite(z).all():
                break
        return None, _CORRECTIONS


def follow(curve: Curve, alpha: float, limit: int) -> tuple[Vector | None, int]:
    """c, with b behind it if there is one, and the number of systems solved; None where the curve does not get there.

    Parameters
    ----------
    curve : Curve
    alpha : float
        The factor that is looked for.
    limit : int
        The most systems.
    """
    n, target = curve.n, math.log(alpha)
    start = _start(curve, alpha)
    size = max(float(np.linalg.norm(start[:n])), 1e-300)
    metric, across = np.zeros(len(start)), np.zeros(len(start))
    metric[:n], metric[-1], across[-1] = 1.0 / size**2, 1.0, 1.0
    tol = _ON_CURVE * max(float(np.abs(start[:n]).max()), 1e-300)
    z, steps = curve.correct(start, across, tol)
    if z is None:
        return None, steps
    tangent, length = _tangent(curve, z, across, metric, -1.0), _FIRST
    while steps < limit and length > _SHORTEST and np.isfinite(tangent).all():
        corrected, more = curve.correct(z + length * tangent, metric * tangent, tol)
        steps += more
        if corrected is not None and corrected[-1] <= target:
            landed, more = _landed(curve, z, corrected, target, tol)
            steps += more
            if landed is not None:
                return np.append(landed[:n] / alpha, landed[n:-1]), steps
            corrected = None
        if corrected is None:
            length *= 0.5
            continue
        z, tangent = corrected, _tangent(curve, corrected, metric * tangent, metric, 1.0)
        steps += 1
        if np.linalg.norm(z[:n]) > _AWAY * size:
            break
        if more <= _EASY:
            length = min(_GROWTH * length, _LONGEST)
    return None, steps


def _landed(curve: Curve, before: Vector, after: Vector, target: float, tol: float) -> tuple[Vector | None, int]:
    """The point of the curve at ``log alpha = target``, which lies between two others."""
    across = np.zeros(len(before))
    across[-1] = 1.0
    share = (before[-1] - target) / (before[-1] - after[-1])
    guess = before + share * (after - before)
    guess[-1] = target
    return curve.correct(guess, across, tol)


def _start(curve: Curve, alpha: float) -> Vector:
    """The solution without K, at a factor that no eigenvalue of K times the curvature reaches."""
    f = np.zeros(curve.n)
    if curve.intercept:
        f += root_of_rising(lambda b: float(curve.slope(np.full(curve.n, b)).sum()), 0.0)
    reach = float(np.abs(curve.K).sum(axis=1).max()) * float(np.abs(curve.curvature(f)).max())
    top = math.log(max(_ABOVE * reach, alpha, 1e-300))
    v = -curve.slope(f)
    return np.concatenate([v, f[:1], [top]]) if curve.intercept else np.append(v, top)


def _tangent(curve: Curve, z: Vector, border: Vector, metric: Vector, along: float) -> Vector:
    """The direction of the curve at z, of length 1, whose part along ``border`` has the sign of ``along``."""
    right = np.zeros(len(z))
    right[-1] = along
    direction = curve.solve(curve.bordered(z, border), right)
    return direction / math.sqrt(float(metric @ direction**2))
