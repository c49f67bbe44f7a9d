"""Passes of coordinate descent over the weights of a box problem whose matrix is ``K = F F^T``.

The problem::

    min  |v|^2 / 2 - c'beta + tube |beta| + b excess + rho excess^2 / 2   with  v = F^T beta,  excess = sum(beta) - s

subject to ``lower <= beta <= upper``. Each step solves it for one weight, from ``g = c_i - <f_i, v> - b - rho excess``,
and moves v. Rows are visited in random order; chunks of neighbours, which are read faster, need several times as many
passes. Those at a bound whose ``g`` is beyond what any other row's was in the pass before are left out of the next
passes.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from mercer._types import Array, Integers, Vector
from mercer.loops._jit import jit
from mercer.loops.prefetch import prefetch

# Rows ahead of their turn that are fetched from memory, by lines of this many float64.
AHEAD, LINE = 2, 8


class Box(NamedTuple):
    """The problem, (n,) each: c, the bounds, ``|f_i|^2 + rho``; and the tube and rho."""

    linear: Vector
    lower: Vector
    upper: Vector
    curvature: Vector
    tube: float
    rho: float


class Descent(NamedTuple):
    """What a pass changes: beta (n,), v (p,), the order of the rows (n,), and room for a queue and marks.

    ``numbers`` holds excess, b, the limits beyond which rows at a bound are left out, and then the smallest and the
    largest projected gradient that the pass has seen. ``seed`` is the state of the random numbers.
    """

    beta: Vector
    v: Array
    order: Integers
    queue: Integers
    left_out: Integers
    numbers: Vector
    seed: Integers


@jit
def _random(seed, below):
    x = seed[0]
    x ^= x << np.uint64(13)
    x ^= x >> np.uint64(7)
    x ^= x << np.uint64(17)
    seed[0] = x
    return np.int64(x % np.uint64(below))


@jit
def _move(box, numbers, g, beta, i):
    """The weight that is best for row ``i``, and whether the row is left out from now on."""
    low, high = box.lower[i], box.upper[i]
    rise = g - (box.tube if beta >= 0 else -box.tube)
    fall = g - (box.tube if beta > 0 else -box.tube)
    # The projected gradient: what is left of the slope in directions that the bounds, and the tube at 0, allow.
    slope = 0.0
    if beta < high and rise > 0:
        slope = rise
    elif beta > low and fall < 0:
        slope = fall
    out = (beta >= high or rise < numbers[2]) and (beta <= low or fall > numbers[3])
    numbers[4], numbers[5] = min(numbers[4], slope), max(numbers[5], slope)
    if slope == 0.0 or out:
        return beta, out
    best = beta + g / box.curvature[i]
    if box.tube > 0.0:
        width = box.tube / box.curvature[i]
        best = best - width if best > width else best + width if best < -width else 0.0
    return min(max(best, low), high), False


@jit
def _shuffle(order, active, queue, seed):
    """Write the first ``active`` rows of the order to the queue, in random order."""
    for s in range(active):
        j = _random(seed, s + 1)
        queue[s] = queue[j]
        queue[j] = order[s]


@jit
def _keep(order, active, left_out):
    """Close the gaps of rows that are left out; returns how many rows stay, in the order of before."""
    kept = 0
    for s in range(active):
        i = order[s]
        if not left_out[i]:
            order[kept] = i
            kept += 1
    return kept


@jit
def _prefetch_row(rows, i):
    begin, end = rows.starts[i], rows.starts[i + 1]
    for a in range(begin, end, LINE):
        prefetch(rows.values, np.int64(a))
    for a in range(begin, end, 2 * LINE):
        prefetch(rows.columns, np.int64(a))


@jit
def sparse_pass(rows, box, descent, active):
    """Visit the first ``active`` rows of the order; returns how many of them stay."""
    beta, v, order, queue, left_out, numbers, seed = descent
    numbers[4] = numbers[5] = 0.0
    _shuffle(order, active, queue, seed)
    for s in range(active):
        i = queue[s]
        _prefetch_row(rows, queue[min(s + AHEAD, active - 1)])
        begin, end = rows.starts[i], rows.starts[i + 1]
        total = 0.0
        for a in range(begin, end):
            total += rows.values[a] * v[rows.columns[a]]
        g = box.linear[i] - total - numbers[1] - box.rho * numbers[0]
        best, left_out[i] = _move(box, numbers, g, beta[i], i)
        change = best - beta[i]
        if change != 0.0:
            beta[i] = best
            numbers[0] += change
            for a in range(begin, end):
                v[rows.columns[a]] += change * rows.values[a]
    return _keep(order, active, left_out)


@jit
def dense_pass(F, box, descent, active):
    """The same for an array F (n, p)."""
    beta, v, order, queue, left_out, numbers, seed = descent
    numbers[4] = numbers[5] = 0.0
    _shuffle(order, active, queue, seed)
    for s in range(active):
        i = queue[s]
        row = F[i]
        total = 0.0
        for a in range(row.shape[0]):
            total += row[a] * v[a]
        g = box.linear[i] - total - numbers[1] - box.rho * numbers[0]
        best, left_out[i] = _move(box, numbers, g, beta[i], i)
        change = best - beta[i]
        if change != 0.0:
            beta[i] = best
            numbers[0] += change
            for a in range(row.shape[0]):
                v[a] += change * row[a]
    return _keep(order, active, left_out)
