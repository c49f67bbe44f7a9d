"""Newton steps on the free weights of a small problem, where steps on pairs would take hundreds for the last digits."""

from __future__ import annotations

from typing import NamedTuple

from mercer._types import Integers, Matrix, Vector
from mercer.loops._jit import jit_in_order

# Sums are taken in the order that is written: otherwise the last bits would depend on whether a function was
# compiled or read from the cache.
# The most free weights: elimination takes the cube of their number.
MOST_FREE = 96
# Added to the diagonal, relative to its mean: the matrix of a smooth kernel is singular to rounding.
_RIDGE = 1e-13


class NewtonRoom(NamedTuple):
    """Work arrays for at most m free weights."""

    A: Matrix
    """(m + 2, m + 3)"""
    index: Integers
    """(m,)"""
    d: Vector
    """(m + 2,)"""


@jit_in_order
def _free(beta, lower, upper, a, index):
    """The weights inside their box, in ``index``: how many, none if there is no room for them, and of the first a."""
    m, first = 0, 0
    for r in range(beta.shape[0]):
        if lower[r] < beta[r] < upper[r]:
            if m == index.shape[0]:
                return 0, 0
            index[m] = r
            m += 1
            if r < a:
                first += 1
    return m, first


@jit_in_order
def newton_step(K, F, weights, balanced, a, room):
    """One Newton step on the weights inside their box, cut at the first bound, in place; whether there was one.

    ``F`` (q,) is the gradient, which follows; the weights have no tube. ``balanced`` keeps the sum of the first ``a``
    weights, and that of the others: ``[[K, E], [E', 0]] [d, offsets] = [F, 0]`` for the free weights, where a column
    of ``E`` has ones for the rows of one sum.
    """
    (beta, lower, upper, _), (A, index, d) = weights, room
    m, first = _free(beta, lower, upper, a, index)
    # With the sums that have free weights.
    n = m
    if balanced:
        n += (1 if first > 0 else 0) + (1 if first < m else 0)
    if m < (2 if balanced else 1):
        return False
    _bordered(K, F, index, first, m, n, A)
    if not _solve(A, m, n, d):
        return False
    if balanced:
        _center(d, first, m)
    return _go(K, F, weights, index, d, m)


@jit_in_order
def _bordered(K, F, index, first, m, n, A):
    """The upper triangle of the matrix of the system, and its right-hand side in column ``n``."""
    mean = 0.0
    for r in range(n):
        for c in range(max(r, m), n + 1):
            A[r, c] = 0.0
        if r < m:
            row = K[index[r]]
            for c in range(r, m):
                A[r, c] = row[index[c]]
            if n > m:
                A[r, m if r < first else n - 1] = 1.0
            A[r, n] = F[index[r]]
            mean += A[r, r] / m
    for r in range(m):
        A[r, r] += _RIDGE * mean


@jit_in_order
def _solve(A, m, n, d):
    """Solve by elimination in the upper triangle; False if one of the first ``m`` pivots is not positive."""
    for k in range(n):
        row = A[k]
        if k < m and not row[k] > 0.0:
            return False
        for r in range(k + 1, n):
            factor, target = row[r] / row[k], A[r]
            for c in range(r, n + 1):
                target[c] -= factor * row[c]
    for r in range(n - 1, -1, -1):
        total = A[r, n]
        for c in range(r + 1, n):
            total -= A[r, c] * d[c]
        d[r] = total / A[r, r]
    return True


@jit_in_order
def _center(d, first, m):
    """Take the rounding of their sums from the first weights and from the others."""
    one, other = 0.0, 0.0
    for r in range(m):
        if r < first:
            one += d[r] / first
        else:
            other += d[r] / (m - first)
    for r in range(m):
        d[r] -= one if r < first else other


@jit_in_order
def _go(K, F, weights, index, d, m):
    """Go along ``d`` up to the first bound, unless the objective would fall."""
    beta, lower, upper, _ = weights
    length, first, gain, curvature = 1.0, -1, 0.0, 0.0
    for r in range(m):
        i = index[r]
        end = upper[i] if d[r] > 0.0 else lower[i]
        if abs(d[r]) * length > abs(end - beta[i]):
            length, first = (end - beta[i]) / d[r], r
        gain += d[r] * F[i]
        row = K[i]
        for c in range(m):
            curvature += d[r] * row[index[c]] * d[c]
    if not gain - 0.5 * length * curvature > 0.0:
        return False
    for r in range(m):
        i = index[r]
        if r == first:
            beta[i] = upper[i] if d[r] > 0.0 else lower[i]
        else:
            beta[i] += length * d[r]
        row = K[i]
        for k in range(F.shape[0]):
            F[k] -= length * d[r] * row[k]
    return True
