"""Steps of online learning with the Gaussian kernel, where two support points are merged to stay within a budget.

Points are in units in which ``k(x, z) = exp(-|x - z|^2)``. A merged pair is replaced by the point ``h x + (1 - h) z``
between them with the weights that make the least error there.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from mercer._types import Integers, Matrix, Vector
from mercer.loops._jit import jit
from mercer.loops.exponential import exponential_float64
from mercer.loops.losses import descent
from mercer.loops.online import CHANGES, LOSS, SCALE, SIZE, any_of, shrink

_GOLDEN = 0.6180339887498949
_ROUNDS = 24
_ROUNDING = 1e-15


class MergedExpansion(NamedTuple):
    """Functions whose support points are not rows; other fields as in :class:`mercer.loops.online.Expansion`."""

    theta: Vector
    """(k, budget + 1)"""
    bias: Vector
    lost: Vector
    points: Matrix
    """(budget + 1, d)"""
    born: Integers
    counts: Integers
    numbers: Vector


class _Room(NamedTuple):
    """Work arrays."""

    near: Vector
    """``-|x - z|^2`` of a point and each."""
    from_a: Vector
    """Twice as long: kernel values of the place of merging with the one point, then those of the two points."""
    from_b: Vector
    norms: Vector


@jit
def negative_distances(x, points, size, out):
    """``-|x - z|^2`` for the first ``size`` points z."""
    for j in range(size):
        total = 0.0
        z = points[j]
        for k in range(x.shape[0]):
            total += (x[k] - z[k]) * (x[k] - z[k])
        out[j] = -total


@jit
def merged_length(theta, a, b, exponent, h):
    """The squared length that the terms a and b keep at ``h x_a + (1 - h) x_b``; ``exponent`` is ``-|x_a - x_b|^2``."""
    from_a, from_b, total = np.exp(exponent * (1.0 - h) ** 2), np.exp(exponent * h * h), 0.0
    for c in range(theta.shape[0]):
        weight = theta[c, a] * from_a + theta[c, b] * from_b
        total += weight * weight
    return total


@jit
def best_share(theta, a, b, exponent, guess):
    """The h between 0 and 1 where most is kept, by golden section, or the guess, or one of the two points."""
    low, high = 0.0, 1.0
    left, right = 1.0 - _GOLDEN, _GOLDEN
    at_left, at_right = merged_length(theta, a, b, exponent, left), merged_length(theta, a, b, exponent, right)
    for _ in range(_ROUNDS):
        if at_left < at_right:
            low, left, at_left = left, right, at_right
            right = low + _GOLDEN * (high - low)
            at_right = merged_length(theta, a, b, exponent, right)
        else:
            high, right, at_right = right, left, at_left
            left = high - _GOLDEN * (high - low)
            at_left = merged_length(theta, a, b, exponent, left)
    best, most = 0.0, merged_length(theta, a, b, exponent, 0.0)
    for h in (1.0, guess, 0.5 * (low + high)):
        length = merged_length(theta, a, b, exponent, h)
        if length > most:
            best, most = h, length
    return best


@jit
def partner(theta, a, size, exponents, from_a, from_b, norms):
    """Return the point with the least loss when merged with point a, and where; ``exponents`` (size,) as above.

    Tried are the place that the lengths of the two terms suggest, and the other point itself.
    """
    shift = np.sqrt(norms[a])
    for j in range(size):
        total = shift + np.sqrt(norms[j])
        h = shift / total if total > 0.0 else 0.5
        from_a[j] = exponents[j] * (1.0 - h) * (1.0 - h)
        from_b[j] = exponents[j] * h * h
    exponential_float64(from_a[:size])
    exponential_float64(from_b[:size])
    best, least, guess = -1, np.inf, 0.0
    for j in range(size):
        if j == a:
            continue
        kappa, inner = from_a[size + j], 0.0
        for c in range(theta.shape[0]):
            inner += theta[c, a] * theta[c, j]
        between = norms[a] * from_a[j] * from_a[j] + norms[j] * from_b[j] * from_b[j]
        between += 2.0 * inner * from_a[j] * from_b[j]
        other = norms[a] * kappa * kappa + norms[j] + 2.0 * inner * kappa
        cost = norms[a] + norms[j] + 2.0 * inner * kappa - max(between, other)
        if cost < least:
            total = shift + np.sqrt(norms[j])
            best, least = j, cost
            guess = shift / total if between > other else 0.0
    return best, guess


@jit
def merge(expansion, room):
    """Merge the shortest term with the one that suits it best; the last one takes the empty place."""
    theta, _, lost, points, born, counts, numbers = expansion
    exponents, from_a, from_b, norms = room
    a, size, scale = 0, counts[SIZE], numbers[SCALE]
    for j in range(size):
        total = 0.0
        for c in range(theta.shape[0]):
            total += theta[c, j] * theta[c, j]
        norms[j] = total
        if total < norms[a]:
            a = j
    negative_distances(points[a], points, size, exponents)
    kappa = from_a[size : 2 * size]
    for j in range(size):
        kappa[j] = exponents[j]
    exponential_float64(kappa)
    b, guess = partner(theta, a, size, exponents, from_a, from_b, norms)
    h = best_share(theta, a, b, exponents[b], guess)
    at_a, at_b, k = np.exp(exponents[b] * (1.0 - h) ** 2), np.exp(exponents[b] * h * h), np.exp(exponents[b])
    for c in range(theta.shape[0]):
        u, v = theta[c, a], theta[c, b]
        weight = u * at_a + v * at_b
        # A difference below rounding counts as rounding.
        loss = max(u * u + v * v + 2.0 * u * v * k - weight * weight, _ROUNDING * (u * u + v * v))
        lost[c] += scale * np.sqrt(loss)
        theta[c, b] = weight
    for k in range(points.shape[1]):
        points[b, k] = h * points[a, k] + (1.0 - h) * points[b, k]
    born[b] = max(born[a], born[b])
    last = size - 1
    if a != last:
        for c in range(theta.shape[0]):
            theta[c, a] = theta[c, last]
        for k in range(points.shape[1]):
            points[a, k] = points[last, k]
        born[a] = born[last]


@jit
def merging_steps(stream, targets, rule, expansion, start, end):
    """A step at each row from ``start`` to ``end``, with the targets (n, k); see :mod:`mercer.loops.online`."""
    rows, rates, before = stream.rows, stream.rates, stream.before
    alpha, intercept, loss, parameter = rule.alpha, rule.intercept, rule.loss, rule.parameter
    theta, bias, lost, points, born, counts, numbers = expansion
    outputs, most = theta.shape[0], points.shape[0]
    f, g = np.empty(outputs), np.empty(outputs)
    kernel, room = np.empty(most), _Room(np.empty(most), np.empty(2 * most), np.empty(most), np.empty(most))
    for s in range(start, end):
        x, rate, size = rows[s], rates[s], counts[SIZE]
        negative_distances(x, points, size, kernel)
        same = -1
        for j in range(size):
            if kernel[j] == 0.0:
                same = j
        exponential_float64(kernel[:size])
        for c in range(outputs):
            value = 0.0
            for j in range(size):
                value += theta[c, j] * kernel[j]
            f[c] = bias[c] + numbers[SCALE] * value
        numbers[LOSS] += descent(loss, parameter, targets[s], f, g)
        shrink(1.0 - rate * alpha, theta, lost, numbers)
        if rate == 0.0 or not any_of(g):
            continue
        if same < 0:
            same = size
            for k in range(x.shape[0]):
                points[size, k] = x[k]
            for c in range(outputs):
                theta[c, size] = 0.0
            counts[SIZE] += 1
        born[same] = before + s
        for c in range(outputs):
            theta[c, same] += rate * g[c] / numbers[SCALE]
            if intercept:
                bias[c] += rate * g[c]
        if counts[SIZE] > rule.budget:
            merge(expansion, room)
            counts[SIZE] -= 1
            counts[CHANGES] += 1
