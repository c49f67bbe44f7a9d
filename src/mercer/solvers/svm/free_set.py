"""Newton steps on the free weights of a support vector machine, for problems where pairs of weights move too slowly.

For a fixed set of free weights, the optimality conditions are linear: ``K d + A b = F`` and ``A'd = 0`` over the free
set, where the columns of A mark the groups with fixed sums. A step that leaves the box ends at the first bound, and
that weight leaves the set.

Source: Scheinberg (2006), "An efficient implementation of an active set method for SVMs", JMLR 7.
"""

from __future__ import annotations

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve

from mercer._types import Array, Vector

# Added to the diagonal, relative to its mean: the matrix of a smooth kernel is singular to rounding.
_RIDGE = 1e-13
_MOST_BOUNDS = 8
# Sets of free weights that are tried, and how far inward a gradient at a bound must point for the weight to be free.
_MOST_SETS = 12
_INWARD = 1e-9


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


@np.errstate(all="ignore")
def solution_by_free_sets(
    K: Array, linear: Vector, beta: Vector, lower: Vector, upper: Vector, A: Vector
) -> Vector | None:
    """Return the solution of ``min beta'K beta / 2 - linear'beta`` with the sums ``A'beta`` as they are, in the box.

    With the weights at their bounds fixed, the optimality conditions of the others are linear. Those that leave the box
    are put at their bounds, those at bounds whose gradient points inward become free, and the system is solved anew,
    until neither is the case. Near the solution this takes two to six factorisations of the free block.

    Parameters
    ----------
    K : ndarray of shape (m, m)
        In float64.
    linear, beta, lower, upper : ndarray of shape (m,)
        ``beta`` is near the solution.
    A : ndarray of shape (m, s)
        The columns are one where a weight belongs to a sum and zero elsewhere.

    Returns
    -------
    ndarray of shape (m,) or None
        None where the sets do not settle, or no weight is free.

    References
    ----------
    Hintermueller, Ito and Kunisch (2002), "The primal-dual active set strategy as a semismooth Newton method".

    Examples
    --------
    >>> K, y = np.eye(2), np.array([1.0, -1.0])
    >>> box = np.array([0.0, -2.0]), np.array([2.0, 0.0])
    >>> solution_by_free_sets(K, y, np.array([0.1, -0.1]), *box, np.ones((2, 1))).round(6)
    array([ 1., -1.])
    """
    totals, residual = A.T @ beta, linear - K @ beta
    free = (beta > lower) & (beta < upper)
    if A.size:
        counts = A[free].sum(axis=0)
        residual = residual - A @ np.divide(A[free].T @ residual[free], counts, where=counts > 0, out=0.0 * counts)
    at_lower, at_upper = ~free & (beta <= lower) & (residual <= 0), ~free & (beta >= upper) & (residual >= 0)
    fewest, idle = len(beta) + 1, 0
    for _ in range(_MOST_SETS):
        new = np.where(at_lower, lower, np.where(at_upper, upper, 0.0))
        solved = _solve_free(K, linear, new, np.flatnonzero(~(at_lower | at_upper)), A, totals)
        if solved is None:
            return None
        below, above = new < lower, new > upper
        inward = (at_lower & (solved > _INWARD)) | (at_upper & (solved < -_INWARD))
        changes = int(np.count_nonzero(below | above | inward))
        if not changes:
            return new
        idle = 0 if changes < fewest else idle + 1
        if idle > 1:
            return None
        fewest = min(fewest, changes)
        at_lower, at_upper = (at_lower & ~inward) | below, (at_upper & ~inward) | above
    return None


def _solve_free(K: Array, linear: Vector, new: Vector, free: np.ndarray, A: Vector, totals: Vector) -> Vector | None:
    """Set the free weights of ``new`` by the optimality conditions; return ``linear - K new - A b``, or None."""
    fixed = np.flatnonzero(new)
    some = A[free][:, A.any(axis=0)]
    if not some.any(axis=0).all() or not len(free):
        return None
    block = K[np.ix_(free, free)]
    block.flat[:: len(free) + 1] += _RIDGE * np.trace(block) / len(free)
    try:
        factor = cho_factor(block, lower=True, overwrite_a=True, check_finite=False)
        right = linear[free] - K[np.ix_(free, fixed)] @ new[fixed]
        solved = cho_solve(factor, np.column_stack([right, some]), check_finite=False)
        missing = (totals - A.T @ new)[A.any(axis=0)]
        # As in NumPy: SciPy's takes a quarter of a millisecond for one number.
        b = np.linalg.solve(some.T @ solved[:, 1:], some.T @ solved[:, 0] - missing) if some.size else np.empty(0)
    except (LinAlgError, ValueError):
        return None
    new[free] = solved[:, 0] - solved[:, 1:] @ b
    residual = linear - K @ new - A[:, A.any(axis=0)] @ b
    return residual if np.isfinite(residual).all() else None


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
            step = step - columns @ np.linalg.solve(A.T @ columns, A.T @ step)
    except (LinAlgError, ValueError):
        return None
    return _without(A, step)


def _without(A: Vector, v: Vector) -> Vector:
    """Return ``v`` minus its mean over each group."""
    return v - A @ ((A.T @ v) / A.sum(axis=0)) if A.size else v
