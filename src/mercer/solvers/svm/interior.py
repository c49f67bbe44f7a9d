"""A primal-dual interior point method for problems on which steps on pairs of weights are slow.

The number of iterations hardly depends on C or on the condition of the kernel matrix; each takes a Cholesky
factorisation: of all of K, or of as many columns as there are explicit features.

Source: Mehrotra (1992), "On the implementation of a primal-dual interior point method", SIAM J. Optim. 2.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mercer._types import Vector
from mercer.solvers.svm.quadratic import Factor, Quadratic

_MOST = 60
_GAP = 1e-12
# Part of the way to the boundary that a step may go.
_INSIDE = 0.995
# Errors rise now and then, but where they are this many times the least, rounding dominates.
_ASTRAY = 1e3


def interior_point(
    quadratic: Quadratic, linear: Vector, lower: Vector, upper: Vector, A: Vector, totals: Vector
) -> Vector:
    """Return a near-optimal ``beta`` (n,) of ``min beta'K beta / 2 - linear'beta``, ``A'beta = totals``, in its box.

    The columns of ``A`` (n, s) are one where a weight belongs to the sum and zero elsewhere. Weights that end next to
    a bound are put there. It ends early where the factorisation or the digits of float64 do, with the best point so
    far.
    """
    end = _iterate(quadratic, linear, lower, upper, A, totals)
    return _on_bounds(end.weights, end.at_lower, end.at_upper, lower, upper, A, totals)


def interior_point_in_tube(
    doubled: Quadratic, linear: Vector, tube: float, lower: Vector, upper: Vector, A: Vector, totals: Vector
) -> Vector:
    """The same for ``min beta'K beta / 2 - linear'beta + tube |beta|``, with ``lower < 0 < upper``.

    Each weight is the difference of two that are not negative; ``doubled`` is the quadratic term of these.
    """
    n = len(linear)
    slope, width = np.concatenate([linear - tube, -linear - tube]), np.concatenate([upper, -lower])
    end = _iterate(doubled, slope, np.zeros(2 * n), width, np.concatenate([A, -A]), totals)
    beta = end.weights[:n] - end.weights[n:]
    at_zero, positive = end.at_lower[:n] & end.at_lower[n:], beta > 0
    beta[at_zero] = 0.0
    at_lower, at_upper = at_zero | (end.at_upper[n:] & ~positive), end.at_upper[:n] & positive
    # A weight keeps its sign, so one of its bounds is zero.
    least, most = np.where(positive | at_zero, 0.0, lower), np.where(positive, upper, 0.0)
    return _on_bounds(beta, at_lower, at_upper, least, most, A, totals)


class _End(NamedTuple):
    """The best point, and which weights are next to their bounds."""

    weights: Vector
    at_lower: NDArray[np.bool_]
    at_upper: NDArray[np.bool_]


@np.errstate(all="ignore")
def _iterate(quadratic: Quadratic, linear: Vector, lower: Vector, upper: Vector, A: Vector, totals: Vector) -> _End:
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
    unit = float(np.abs(linear).max(initial=0.0)) or 1.0
    least, best = np.inf, (beta, _Slacks(t, v, below, above))
    for _ in range(_MOST):
        gap = float(below @ t + above @ v)
        product = quadratic.product(beta)
        residual = product - linear + A @ offset - below + above
        missing = totals - A.T @ beta
        size = max(abs(float(linear @ beta)), abs(float(beta @ product)))
        astray = np.abs(missing).max(initial=0.0)
        left = float(np.abs(residual).max())
        error = max(gap / size if size > 0 else np.inf, left / unit)
        if error <= least:
            least, best = error, (beta, _Slacks(t, v, below, above))
        close = gap <= _GAP * size and left <= 1e-9 and astray <= _GAP * width.sum()
        if close or not error <= _ASTRAY * least:
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
    beta, (t, v, below, above) = best
    return _End(beta, t / width < 1e-3 * below, v / width < 1e-3 * above)


class _Slacks(NamedTuple):
    """The distances to the lower and upper bounds, and their multipliers, (n,) each."""

    t: Vector
    v: Vector
    below: Vector
    above: Vector


def _step(
    factor: Factor,
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
    solved = factor(np.column_stack([from_below - from_above - residual, A]))
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
