"""A primal-dual interior point method for dense problems on which steps on pairs of weights are slow.

The number of iterations hardly depends on C or on the condition of the kernel matrix; each takes a Cholesky
factorisation.

Source: Mehrotra (1992), "On the implementation of a primal-dual interior point method", SIAM J. Optim. 2.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import LinAlgError, cho_factor, cho_solve

from mercer._types import Array, Vector

_MOST = 60
_GAP = 1e-12
# Part of the way to the boundary that a step may go.
_INSIDE = 0.995


def interior_point(K: Array, linear: Vector, lower: Vector, upper: Vector, A: Vector, totals: Vector) -> Vector:
    """Return a near-optimal ``beta`` (n,) of ``min beta'K beta / 2 - linear'beta``, ``A'beta = totals``, in its box.

    The columns of ``A`` (n, s) are one where a weight belongs to the sum and zero elsewhere. Weights that end next to
    a bound are put there. It ends early where the factorisation or the range of float64 breaks down, with the last
    point that was finite.
    """
    K = np.asarray(K, dtype=np.float64)
    end = _iterate(_Quadratic(K), linear, lower, upper, A, totals)
    return _on_bounds(end.weights, end.at_lower, end.at_upper, lower, upper, A, totals)


def interior_point_in_tube(
    K: Array, linear: Vector, tube: float, lower: Vector, upper: Vector, A: Vector, totals: Vector
) -> Vector:
    """The same for ``min beta'K beta / 2 - linear'beta + tube |beta|``, with ``lower < 0 < upper``.

    Each weight is the difference of two that are not negative, whose systems are solved by one factor of size n.
    """
    K, n = np.asarray(K, dtype=np.float64), len(linear)
    slope, width = np.concatenate([linear - tube, -linear - tube]), np.concatenate([upper, -lower])
    end = _iterate(_Doubled(K), slope, np.zeros(2 * n), width, np.concatenate([A, -A]), totals)
    beta = end.weights[:n] - end.weights[n:]
    at_zero, positive = end.at_lower[:n] & end.at_lower[n:], beta > 0
    beta[at_zero] = 0.0
    at_lower, at_upper = at_zero | (end.at_upper[n:] & ~positive), end.at_upper[:n] & positive
    # A weight keeps its sign, so one of its bounds is zero.
    least, most = np.where(positive | at_zero, 0.0, lower), np.where(positive, upper, 0.0)
    return _on_bounds(beta, at_lower, at_upper, least, most, A, totals)


@dataclass(frozen=True)
class _Quadratic:
    """The quadratic term ``z'K z / 2``."""

    K: Array

    def product(self, z: Vector) -> Vector:
        """``K z``."""
        return np.asarray(self.K @ z)

    def factor(self, diagonal: Vector) -> _Factor | None:
        """Factor ``K + diag(diagonal)``; None if that breaks down."""
        chol = _cholesky(self.K, diagonal)
        return None if chol is None else _Factor(chol)


@dataclass(frozen=True)
class _Doubled:
    """The quadratic term ``(p - q)'K (p - q) / 2`` of ``z = (p, q)``."""

    K: Array

    def product(self, z: Vector) -> Vector:
        """Return the gradient."""
        n = len(self.K)
        half = self.K @ (z[:n] - z[n:])
        return np.concatenate([half, -half])

    def factor(self, diagonal: Vector) -> _DoubledFactor | None:
        """Factor ``[[K, -K], [-K, K]] + diag(diagonal)``; None if that breaks down."""
        n = len(self.K)
        harmonic = 1.0 / (1.0 / diagonal[:n] + 1.0 / diagonal[n:])
        chol = _cholesky(self.K, harmonic)
        return None if chol is None else _DoubledFactor(chol, self.K, diagonal, harmonic)


@dataclass(frozen=True)
class _Factor:
    chol: tuple[Array, bool]

    def solve(self, columns: Vector) -> Vector:
        return np.asarray(cho_solve(self.chol, columns, check_finite=False), dtype=np.float64)


@dataclass(frozen=True)
class _DoubledFactor:
    r"""The solution by elimination.

    With ``d = p - q`` the system is ``D_p p = r_p - K d``, ``D_q q = r_q + K d``, so that
    ``(K + E) d = E (r_p / D_p - r_q / D_q)`` with ``1 / E = 1 / D_p + 1 / D_q``.
    """

    chol: tuple[Array, bool]
    K: Array
    diagonal: Vector
    harmonic: Vector

    def solve(self, columns: Vector) -> Vector:
        n, D = len(self.K), self.diagonal[:, None]
        alone = columns / D
        apart = self.harmonic[:, None] * (alone[:n] - alone[n:])
        d = np.asarray(cho_solve(self.chol, apart, check_finite=False), dtype=np.float64)
        product = np.asarray(self.K @ d, dtype=np.float64)
        p, q = alone[:n] - product / D[:n], alone[n:] + product / D[n:]
        # Of the two the one with the larger diagonal, which is next to zero, keeps its digits in the division.
        clear = D[:n] > D[n:]
        return np.concatenate([np.where(clear, p, d + q), np.where(clear, p - d, q)])


class _End(NamedTuple):
    """The last point, and which weights are next to their bounds."""

    weights: Vector
    at_lower: NDArray[np.bool_]
    at_upper: NDArray[np.bool_]


@np.errstate(all="ignore")
def _iterate(
    quadratic: _Quadratic | _Doubled, linear: Vector, lower: Vector, upper: Vector, A: Vector, totals: Vector
) -> _End:
    """Take predictor and corrector steps from the middle of the box."""
    n = len(linear)
    width = upper - lower
    beta = 0.5 * (lower + upper)
    shares = A * width[:, None]
    beta += shares @ ((totals - A.T @ beta) / np.abs(shares).sum(axis=0)) * 0.5
    below, above = np.ones(n), np.ones(n)
    offset = np.zeros(len(totals))
    # The distances to the bounds are variables of their own: next to a bound, a difference has no digits left.
    t, v = beta - lower, upper - beta
    for _ in range(_MOST):
        gap = float(below @ t + above @ v)
        product = quadratic.product(beta)
        residual = product - linear + A @ offset - below + above
        missing = totals - A.T @ beta
        size = max(abs(linear @ beta), abs(beta @ product))
        astray = np.abs(missing).max(initial=0.0)
        if gap <= _GAP * size and np.abs(residual).max() <= 1e-9 and astray <= _GAP * width.sum():
            break
        factor = quadratic.factor(below / t + above / v)
        if factor is None:
            break
        slacks = _Slacks(t, v, below, above)
        d = _step(factor, A, slacks, (residual, missing), 0.0, (0.0, 0.0))
        length = _length(slacks, d)
        after = float((below + length * d[1]) @ (t + length * d[0]) + (above + length * d[2]) @ (v - length * d[0]))
        center = float((max(after, 0.0) / gap) ** 3 * gap / (2 * n))
        d = _step(factor, A, slacks, (residual, missing), center, (d[0] * d[1], -d[0] * d[2]))
        length = min(1.0, _INSIDE * _length(slacks, d))
        if not (length > 0 and np.isfinite(length) and np.isfinite(d[0]).all()):
            break
        beta, t, v = beta + length * d[0], t + length * d[0], v - length * d[0]
        below, above, offset = below + length * d[1], above + length * d[2], offset + length * d[3]
    return _End(beta, t / width < 1e-3 * below, v / width < 1e-3 * above)


def _cholesky(K: Array, diagonal: Vector) -> tuple[Array, bool] | None:
    A = K.copy()
    A.flat[:: len(A) + 1] += diagonal + 1e-13 * np.abs(K.diagonal()).max()
    try:
        return cho_factor(A, lower=True, overwrite_a=True, check_finite=False)
    except LinAlgError:
        return None


class _Slacks(NamedTuple):
    """The distances to the lower and upper bounds, and their multipliers, (n,) each."""

    t: Vector
    v: Vector
    below: Vector
    above: Vector


def _step(
    factor: _Factor | _DoubledFactor,
    A: Vector,
    slacks: _Slacks,
    residuals: tuple[Vector, Vector],
    center: float,
    corrections: tuple[Vector | float, Vector | float],
) -> tuple[Vector, Vector, Vector, Vector]:
    """The Newton step of the perturbed conditions: changes of beta, of both multipliers, and of the offsets.

    ``residuals`` are those of stationarity and of the sums.
    """
    (t, v, below, above), (residual, missing) = slacks, residuals
    from_below = (center - corrections[0]) / t - below
    from_above = (center - corrections[1]) / v - above
    solved = factor.solve(np.column_stack([from_below - from_above - residual, A]))
    change, columns = solved[:, 0], solved[:, 1:]
    sums = A.T @ columns
    if not np.isfinite(sums).all():
        # Out of the range of float64, which ends the iteration.
        return change * np.nan, below, above, missing
    offset = np.linalg.pinv(sums) @ (A.T @ change - missing) if A.size else missing
    change = change - columns @ offset
    return change, from_below - below * change / t, from_above + above * change / v, offset


def _length(slacks: _Slacks, d: tuple[Vector, Vector, Vector, Vector]) -> float:
    """Return the largest step, at most 1, that keeps positive all that must be positive."""
    values, changes = np.concatenate(slacks), np.concatenate([d[0], -d[0], d[1], d[2]])
    falling = changes < 0
    return min(1.0, float((-values[falling] / changes[falling]).min(initial=np.inf)))


@np.errstate(all="ignore")
def _on_bounds(
    beta: Vector, at_lower: np.ndarray, at_upper: np.ndarray, lower: Vector, upper: Vector, A: Vector, totals: Vector
) -> Vector:
    """Move weights near a bound to it, and correct each sum by its free weights."""
    beta = np.clip(np.where(at_lower, lower, np.where(at_upper, upper, beta)), lower, upper)
    for column, total in zip(A.T, totals):
        for _ in range(8):
            missing = total - column @ beta
            room = np.where(at_lower | at_upper, 0.0, upper - beta if missing > 0 else beta - lower) * column
            if missing == 0 or room.sum() == 0:
                break
            beta = np.clip(beta + np.sign(missing) * room * min(1.0, abs(missing) / room.sum()), lower, upper)
    return beta
