"""Newton steps on the free weights of a small problem, where steps on pairs would take hundreds for the last digits."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from mercer._types import Integers, Matrix, Vector
from mercer.loops._jit import jit_in_order

# Sums are taken in the order that is written: otherwise the last bits would depend on whether a function was
# compiled or read from the cache.
# The most free weights: a factor of their matrix takes the cube of their number.
MOST_FREE = 96
# Added to the diagonal, relative to its mean: the matrix of a smooth kernel is singular to rounding.
_RIDGE = 1e-13


class NewtonRoom(NamedTuple):
    """Work arrays for at most m free weights."""

    L: Matrix
    """(m, m)"""
    index: Integers
    d: Vector
    ones: Vector
    """(m,), or (2, m) for steps in groups."""


@jit_in_order
def _factor(L, m):
    """The Cholesky factor of the lower triangle of ``L``, in its place; False if a pivot is not positive."""
    for r in range(m):
        row = L[r]
        for c in range(r):
            other = L[c]
            total = row[c]
            for k in range(c):
                total -= row[k] * other[k]
            row[c] = total / other[c]
        pivot = row[r]
        for k in range(r):
            pivot -= row[k] * row[k]
        if not pivot > 0.0:
            return False
        row[r] = np.sqrt(pivot)
    return True


@jit_in_order
def _solve(L, m, x):
    """``x`` (m,) becomes ``(L L')^-1 x``."""
    for r in range(m):
        total = x[r]
        for k in range(r):
            total -= L[r, k] * x[k]
        x[r] = total / L[r, r]
    for r in range(m - 1, -1, -1):
        x[r] /= L[r, r]
        for k in range(r):
            x[k] -= L[r, k] * x[r]


@jit_in_order
def _free(beta, lower, upper, index):
    """The weights inside their box, in ``index``; their number, or -1 if there is no room for them."""
    m = 0
    for r in range(beta.shape[0]):
        if lower[r] < beta[r] < upper[r]:
            if m == index.shape[0]:
                return -1
            index[m] = r
            m += 1
    return m


@jit_in_order
def _factor_free(K, index, m, L):
    """The Cholesky factor of the matrix of ``m`` free weights in ``L``; False if there is none."""
    mean = 0.0
    for r in range(m):
        row = K[index[r]]
        for c in range(r + 1):
            L[r, c] = row[index[c]]
        mean += L[r, r] / m
    for r in range(m):
        L[r, r] += _RIDGE * mean
    return _factor(L, m)


@jit_in_order
def newton_step(K, F, weights, balanced, room):
    """One Newton step on the weights inside their box, cut at the first bound, in place; whether there was one.

    ``F`` (q,) is the gradient, which follows; the weights have no tube. ``balanced`` keeps the sum of the weights.
    """
    (beta, lower, upper, _), (L, index, d, ones) = weights, room
    m = _free(beta, lower, upper, index)
    if m < (2 if balanced else 1) or not _factor_free(K, index, m, L):
        return False
    for r in range(m):
        d[r] = F[index[r]]
        ones[r] = 1.0
    _solve(L, m, d)
    if balanced:
        _solve(L, m, ones)
        offset = np.sum(d[:m]) / np.sum(ones[:m])
        left = 0.0
        for r in range(m):
            d[r] -= offset * ones[r]
            left += d[r] / m
        for r in range(m):
            d[r] -= left
    return _go(K, F, beta, lower, upper, index[:m], d[:m])


@jit_in_order
def newton_step_in_groups(K, F, weights, a, room):
    """The same where the first ``a`` weights keep their sum, and the others theirs."""
    (beta, lower, upper, _), (L, index, d, ones) = weights, room
    m = _free(beta, lower, upper, index)
    if m < 2 or not _factor_free(K, index, m, L):
        return False
    first = 0
    for r in range(m):
        d[r] = F[index[r]]
        group = 0 if index[r] < a else 1
        ones[0, r], ones[1, r] = 1.0 - group, group
        first += 1 - group
    _solve(L, m, d)
    for group in range(2):
        begin, end = (0, first) if group == 0 else (first, m)
        if begin == end:
            continue
        _solve(L, m, ones[group])
        if group == 1 and first > 0:
            # Of what keeps the sum of the others.
            _take_away(ones[1], ones[0], np.sum(ones[1, :first]) / np.sum(ones[0, :first]), m)
        if group == 0 or first > 0:
            _take_away(d, ones[0], np.sum(d[:first]) / np.sum(ones[0, :first]), m)
        if group == 1:
            _take_away(d, ones[1], np.sum(d[first:m]) / np.sum(ones[1, first:m]), m)
    for group in range(2):
        begin, end = (0, first) if group == 0 else (first, m)
        left = 0.0
        for r in range(begin, end):
            left += d[r] / (end - begin)
        for r in range(begin, end):
            d[r] -= left
    return _go(K, F, beta, lower, upper, index[:m], d[:m])


@jit_in_order
def _take_away(values, direction, times, m):
    for r in range(m):
        values[r] -= times * direction[r]


@jit_in_order
def _go(K, F, beta, lower, upper, index, d):
    """Go along ``d`` up to the first bound, unless the objective would fall."""
    length, first, gain, curvature = 1.0, -1, 0.0, 0.0
    for r in range(index.shape[0]):
        i = index[r]
        end = upper[i] if d[r] > 0.0 else lower[i]
        if abs(d[r]) * length > abs(end - beta[i]):
            length, first = (end - beta[i]) / d[r], r
        gain += d[r] * F[i]
        row = K[i]
        for c in range(index.shape[0]):
            curvature += d[r] * row[index[c]] * d[c]
    if not gain - 0.5 * length * curvature > 0.0:
        return False
    for r in range(index.shape[0]):
        i = index[r]
        if r == first:
            beta[i] = upper[i] if d[r] > 0.0 else lower[i]
        else:
            beta[i] += length * d[r]
        row = K[i]
        for k in range(F.shape[0]):
            F[k] -= length * d[r] * row[k]
    return True
