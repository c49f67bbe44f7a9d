"""Newton steps on the free weights of a support vector machine, for problems where pairs of weights move too slowly.

For a fixed set of free weights, the optimality conditions are linear: ``K d + A b = F`` and ``A'd = 0`` over the free
set, where the columns of A mark the groups with fixed sums. A step that leaves the box ends at the first bound, and
that weight leaves the set.

Source: Scheinberg (2006), "An efficient implementation of an active set method for SVMs", JMLR 7.
"""

from __future__ import annotations

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve, solve

from mercer._types import Array, Vector

# Added to the diagonal, relative to its mean: the matrix of a smooth kernel is singular to rounding.
_RIDGE = 1e-13
_MOST_BOUNDS = 8


@np.errstate(all="ignore")
def newton_change(K: Array, F: Vector, beta: Vector, lower: Vector, upper: Vector, A: Vector) -> Vector:
    """Return the change of the free weights ``beta`` (m,) that makes their gradients ``F`` equal, within the box.

    ``K`` (m, m) is their block of the kernel matrix; the columns of ``A`` (m, s) are one where a weight belongs to the
    sum and zero elsewhere. The dual objective never falls.
    """
    K = np.asarray(K, dtype=np.float64)
    F = F.copy()
    new = beta.copy()
    inside = np.arange(len(beta))
    for _ in range(_MOST_BOUNDS):
        if len(inside) < 2:
            break
        block = K[np.ix_(inside, inside)]
        step = _direction(block, F[inside], A[inside])
        if step is None or not np.isfinite(step).all():
            break
        curvature = step @ block @ step
        gain = step @ F[inside]
        best = gain / curvature if curvature > 0 else np.inf
        if not gain > 0:
            break
        room = np.where(step > 0, upper[inside] - new[inside], lower[inside] - new[inside]) / step
        room[step == 0] = np.inf
        length = min(best, room.min())
        if not np.isfinite(length):
            break
        new[inside] += length * step
        F -= K[:, inside] @ (length * step)
        if length < room.min():
            break
        hit = room <= length
        at = inside[hit]
        new[at] = np.where(step[hit] > 0, upper[at], lower[at])
        inside = inside[~hit]
    return new - beta


def _direction(K: Array, F: Vector, A: Vector) -> Vector | None:
    """Return the Newton direction that keeps the sums; None if the matrix is not positive definite."""
    ridge = _RIDGE * np.trace(K) / len(K)
    A = A[:, A.any(axis=0)]
    try:
        factor = cho_factor(K + ridge * np.eye(len(K)), lower=True, check_finite=False)
        # The part of F in the span of A changes the multipliers alone.
        solved = cho_solve(factor, np.column_stack([_without(A, F), A]), check_finite=False)
        step, columns = solved[:, 0], solved[:, 1:]
        if A.size:
            step = step - columns @ solve(A.T @ columns, A.T @ step)
    except (LinAlgError, ValueError):
        return None
    return _without(A, step)


def _without(A: Vector, v: Vector) -> Vector:
    """Return ``v`` minus its mean over each group."""
    return v - A @ ((A.T @ v) / A.sum(axis=0)) if A.size else v
