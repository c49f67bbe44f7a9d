"""Newton steps on the free weights of a support vector machine, where pairs of weights move too slowly.

With the set of weights inside their box held fixed, the optimality conditions are linear: ``K d + b 1 = F`` and
``1'd = 0`` over the free set. A step that leaves the box is cut at the first bound, whose weight leaves the set.

Source: Scheinberg (2006), "An efficient implementation of an active set method for SVMs", JMLR 7.
"""

from __future__ import annotations

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve

from mercer.solvers.problems import Array, Vector

# Added to the diagonal, relative to its mean: the matrix of a smooth kernel is singular to rounding.
_RIDGE = 1e-13
_MOST_BOUNDS = 8


@np.errstate(all="ignore")
def newton_change(K: Array, F: Vector, beta: Vector, lower: Vector, upper: Vector) -> Vector:
    """The change of the free weights ``beta`` (m,) that makes their gradients ``F`` equal, kept inside the box.

    ``K`` (m, m) is their block of the kernel matrix. The dual objective never falls.
    """
    K = np.asarray(K, dtype=np.float64)
    F = F.copy()
    new = beta.copy()
    inside = np.arange(len(beta))
    for _ in range(_MOST_BOUNDS):
        if len(inside) < 2:
            break
        block = K[np.ix_(inside, inside)]
        step = _direction(block, F[inside])
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


def _direction(K: Array, F: Vector) -> Vector | None:
    """The Newton direction that keeps the sum of the weights; None where the matrix is not positive definite."""
    ridge = _RIDGE * np.trace(K) / len(K)
    try:
        factor = cho_factor(K + ridge * np.eye(len(K)), lower=True, check_finite=False)
    except LinAlgError:
        return None
    ones = cho_solve(factor, np.ones(len(K)), check_finite=False)
    step = cho_solve(factor, F - F.mean(), check_finite=False)
    step -= ones * (step.sum() / ones.sum())
    return step - step.mean()
