"""A primal-dual interior point method for dense problems on which steps on pairs of weights are slow.

The number of iterations hardly depends on C or on the condition of the kernel matrix; each takes a Cholesky
factorisation.

Source: Mehrotra (1992), "On the implementation of a primal-dual interior point method", SIAM J. Optim. 2.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve

from mercer._types import Array, Vector

_MOST = 60
_GAP = 1e-12
# Part of the way to the boundary that a step may go.
_INSIDE = 0.995


@np.errstate(all="ignore")
def interior_point(K: Array, linear: Vector, lower: Vector, upper: Vector, A: Vector, totals: Vector) -> Vector:
    """Return a near-optimal ``beta`` (n,) of ``min beta'K beta / 2 - linear'beta``, ``A'beta = totals``, in its box.

    The columns of ``A`` (n, s) are one where a weight belongs to the sum and zero elsewhere. Weights that end next to
    a bound are put there. It ends early where the factorisation or the range of float64 breaks down, with the last
    point that was finite.
    """
    K = np.asarray(K, dtype=np.float64)
    n = len(linear)
    width = upper - lower
    beta = 0.5 * (lower + upper)
    shares = A * width[:, None]
    beta += shares @ ((totals - A.T @ beta) / shares.sum(axis=0)) * 0.5
    below, above = np.ones(n), np.ones(n)
    offset = np.zeros(len(totals))
    # The distances to the bounds are variables of their own: next to a bound, a difference has no digits left.
    t, v = beta - lower, upper - beta
    for _ in range(_MOST):
        gap = float(below @ t + above @ v)
        product = K @ beta
        residual = product - linear + A @ offset - below + above
        missing = totals - A.T @ beta
        size = max(abs(linear @ beta), abs(beta @ product))
        astray = np.abs(missing).max(initial=0.0)
        if gap <= _GAP * size and np.abs(residual).max() <= 1e-9 and astray <= _GAP * width.sum():
            break
        factor = _factor(K, below / t + above / v)
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
    at_lower, at_upper = t / width < 1e-3 * below, v / width < 1e-3 * above
    return _on_bounds(beta, at_lower, at_upper, lower, upper, A, totals)


def _factor(K: Array, diagonal: Vector) -> tuple[Array, bool] | None:
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
    factor: tuple[Array, bool],
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
    solved = cho_solve(factor, np.column_stack([from_below - from_above - residual, A]), check_finite=False)
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
