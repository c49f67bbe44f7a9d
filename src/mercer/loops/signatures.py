"""Loops over paths: their signatures, and the equation whose solution is the inner product of whole signatures.

A path goes in straight lines through the points of a series; ``timed`` adds the time, from 0 to 1, as a last channel.
"""

import math
from typing import NamedTuple

import numpy as np

from mercer._types import Integers, Matrix, Vector
from mercer.loops._jit import jit, jit_in_order
from mercer.loops.series import longest, series_at

# What is left out of sums, relative to the size of the signatures.
_BOUND = 1e-15
# Longer pieces of paths are cut; with more than this many parts the result is NaN.
_LONGEST = 2.0
_MOST_PARTS = 20


class Paths(NamedTuple):
    """What paths are made of series."""

    scale: float
    """What their points are multiplied by."""
    length_scale: float
    """That of the Gaussian between points, 0 for the points themselves."""
    time: float
    """The last channel goes from 0 to ``time``; 0 for none."""
    refinement: int
    """How many more parts each piece is cut into."""


class Products(NamedTuple):
    """What is found for each pair."""

    values: Matrix
    largest: Matrix
    """The largest magnitude of the solution on the way to its last value."""


class _Parts(NamedTuple):
    """Each piece of a path is cut into equal parts."""

    counts: Integers
    orders: Integers
    """Terms of the power series along a part."""


class _Grid(NamedTuple):
    """The cells that an equation is solved on."""

    n: int
    m: int
    x: _Parts
    z: _Parts


class _Room(NamedTuple):
    """Work arrays."""

    points: Matrix
    pieces: Matrix
    slopes: Matrix
    inverse: Vector
    """``1 / k!``."""
    work: Matrix


class _Cell(NamedTuple):
    """The number a of a cell, what it changes by, and how many terms of the power series matter."""

    a: float
    slope: float
    terms: int


@jit
def signatures(rows, timed, level, out, stop):
    """Iterated integrals of each path, word after word, short words first; (n, sum over k <= level of d^k).

    By Chen's identity a straight piece with the increment v takes S to ``S (x) exp(v)``; its words of length k are
    summed by Horner's rule, ``(((v / k + S_1) (x) v / (k - 1) + S_2) (x) ... + S_{k-1}) (x) v + S_k``. A path in one
    channel has the signature of the straight line between its ends. Once ``stop[0]`` is set, what is left is not made.
    """
    x, channels, step, starts, lengths = rows.values, rows.channels, rows.step, rows.starts, rows.lengths
    d = channels + (1 if timed else 0)
    begins = np.zeros(level + 2, np.int64)
    for k in range(level + 1):
        begins[k + 1] = begins[k] + d**k
    change, work = np.empty(d), np.empty((2, d**level))
    for i in range(starts.shape[0]):
        S = out[i]
        S[:] = 0.0
        S[0] = 1.0
        if d == 1:
            whole = x[starts[i] + lengths[i] - 1] - x[starts[i]]
            for k in range(1, level + 1):
                S[k] = S[k - 1] * whole / k
            continue
        for t in range(1, lengths[i]):
            for c in range(channels):
                at = c * step + starts[i] + t
                change[c] = x[at] - x[at - 1]
            if timed:
                change[channels] = 1.0 / (lengths[i] - 1)
            for k in range(level, 0, -1):
                if stop[0]:
                    return
                work[0, 0] = 1.0
                size = 1
                for j in range(1, k + 1):
                    source, target = work[(j - 1) % 2], work[j % 2]
                    for w in range(size):
                        part = source[w] / (k - j + 1)
                        for c in range(d):
                            target[w * d + c] = part * change[c] + S[begins[j] + w * d + c]
                    size *= d
                for w in range(size):
                    S[begins[k] + w] = work[k % 2, w]


# In order: the quotients below must not become one by the cube of the length scale, which may be 0.
@jit_in_order
def _points(x, z, paths, slope, out):
    """The Gaussian between all points of two paths, or its derivative by the length scale (1) or the time (2)."""
    n, m, length_scale, time = x.length, z.length, paths.length_scale, paths.time
    left, right = x.values, z.values
    for i in range(n):
        for j in range(m):
            gap = 0.0
            if time > 0.0 and n > 1 and m > 1:
                gap = (i / (n - 1) - j / (m - 1)) ** 2
            square = time * time * gap
            for c in range(x.channels):
                square += (left[x.begin + c * x.step + i] - right[z.begin + c * z.step + j]) ** 2
            square /= length_scale * length_scale
            value = math.exp(-0.5 * square)
            # Where the Gaussian is 0, the factors of its derivatives may be infinite.
            if slope == 1 and value > 0.0:
                value *= square / length_scale
            elif slope == 2 and value > 0.0:
                value *= -time * gap / (length_scale * length_scale)
            out[i, j] = value


@jit
def _pieces(x, z, paths, slope, points, out):
    """Inner products of the pieces of two paths, or their derivative by scale (0), length scale (1) or time (2)."""
    n, m, scale, time = x.length, z.length, paths.scale, paths.time
    left, right = x.values, z.values
    factor = 2.0 * scale if slope == 0 else scale * scale
    if paths.length_scale > 0.0:
        _points(x, z, paths, slope, points)
        for i in range(n - 1):
            for j in range(m - 1):
                change = (points[i + 1, j + 1] - points[i + 1, j]) - (points[i, j + 1] - points[i, j])
                out[i, j] = factor * change
        return
    steps = 0.0
    if time > 0.0 and n > 1 and m > 1:
        steps = (2.0 * time if slope == 2 else time * time) / ((n - 1) * (m - 1))
    for i in range(n - 1):
        for j in range(m - 1):
            out[i, j] = factor * steps
        for c in range(x.channels if slope < 1 else 0):
            at_x, at_z = x.begin + c * x.step + i, z.begin + c * z.step
            change = factor * (left[at_x + 1] - left[at_x])
            for j in range(m - 1):
                out[i, j] += change * (right[at_z + j + 1] - right[at_z + j])


@jit
def _sums(u, terms, inverse, out):
    """What a side adds to the derivatives along the other: ``sum_{n >= 1} u[n] / (m + n)!`` for each m."""
    for m in range(terms):
        total = 0.0
        for n in range(1, u.shape[0]):
            total += u[n] * inverse[m + n]
        out[m] = total


@jit
def _advance(u, sums, cell, inverse):
    """Take the derivatives u along a side of a cell to those along the opposite side."""
    a, terms = cell.a, cell.terms
    # Downwards, since the derivatives of lower order are read as they were.
    for m in range(u.shape[0] - 1, -1, -1):
        value, power = u[m], 1.0
        for k in range(1, min(m + 1, terms)):
            power *= a
            value += u[m - k] * power * inverse[k]
        u[m] = value
    power = 1.0
    for m in range(min(terms, u.shape[0])):
        u[m] += power * sums[m]
        power *= a


@jit
def _advance_slope(u, du, sums, slopes, cell, inverse):
    """The derivative of that: ``du`` becomes that of what ``u`` is to become."""
    a, da, terms = cell.a, cell.slope, cell.terms
    for m in range(u.shape[0] - 1, -1, -1):
        value, power = du[m], 1.0
        for k in range(1, min(m + 1, terms)):
            turned = da * power * k
            power *= a
            value += (du[m - k] * power + u[m - k] * turned) * inverse[k]
        du[m] = value
    power, turned = 1.0, 0.0
    for m in range(min(terms, u.shape[0])):
        du[m] += power * slopes[m] + turned * sums[m]
        turned = turned * a + power * da
        power *= a


@jit
def _cross(u, v, cell, room):
    """Take a solution across one cell: from its values on two sides to those on the other two.

    On the cell, the unit square, the equation is ``d^2 k / ds dt = a k``. ``u`` holds the derivatives of k by s at the
    corner, along the side t = 0, and ``v`` those by t; they become those along t = 1 and s = 1. The coefficients of
    ``k = sum c_mn s^m t^n`` are ``c_mn = a c_{m-1,n-1} / (m n)``, so that they follow from those on the sides.
    """
    _sums(v, min(cell.terms, u.shape[0]), room.inverse, room.work[0])
    _sums(u, min(cell.terms, v.shape[0]), room.inverse, room.work[1])
    _advance(u, room.work[0], cell, room.inverse)
    _advance(v, room.work[1], cell, room.inverse)


@jit
def _cross_slope(u, v, du, dv, cell, room):
    """The derivative of that: ``du`` and ``dv`` become those of what ``u`` and ``v`` are to become."""
    by_u, by_v = min(cell.terms, v.shape[0]), min(cell.terms, u.shape[0])
    _sums(v, by_v, room.inverse, room.work[0])
    _sums(u, by_u, room.inverse, room.work[1])
    _sums(dv, by_v, room.inverse, room.work[2])
    _sums(du, by_u, room.inverse, room.work[3])
    _advance_slope(u, du, room.work[0], room.work[2], cell, room.inverse)
    _advance_slope(v, dv, room.work[1], room.work[3], cell, room.inverse)


@jit
def _terms(size):
    """How many terms of ``sum_k size^k / k!`` matter."""
    k, term = 1, abs(size)
    while term > _BOUND:
        k += 1
        term *= abs(size) / k
    return k + 1


@jit
def _cut(x, paths, parts):
    """Cut the pieces of a path into parts; return how many there are together, or -1 where a piece is too long."""
    values, n, total = x.values, x.length, 0
    for i in range(n - 1):
        square = (paths.time / (n - 1)) ** 2
        for c in range(x.channels):
            at = x.begin + c * x.step + i
            square += (values[at + 1] - values[at]) ** 2
        if paths.length_scale > 0.0:
            square = 2.0 - 2.0 * math.exp(-0.5 * square / (paths.length_scale * paths.length_scale))
        piece = paths.scale * math.sqrt(square)
        # NaN is refused, too.
        if not piece <= _MOST_PARTS * _LONGEST:
            return -1
        count = max(1, math.ceil(piece / _LONGEST)) + paths.refinement
        parts.counts[i], parts.orders[i] = count, _terms(piece / count)
        total += count
    return total


@jit
def _solve(grid, sloped, room, along, moved, stop):
    """The last value of ``d^2 k / ds dt = <x', z'> k``, 1 on both axes, or of ``sloped`` its derivative.

    Also the largest value on the way. ``along`` and ``moved`` are room for derivatives along the sides of a row of
    cells.
    """
    if grid.n == 1 or grid.m == 1:
        return 0.0 if sloped else 1.0, 1.0
    last, largest, size = along.shape[0] - 1, 1.0, 0
    along[:, :] = 0.0
    along[:, 0] = 1.0
    moved[:, :] = 0.0
    for i in range(grid.n - 1):
        size = grid.x.orders[i]
        u, du = along[last, :size], moved[last, :size]
        for _ in range(grid.x.counts[i]):
            if stop[0]:
                return 0.0, largest
            u[:], du[:] = 0.0, 0.0
            u[0] = 1.0
            at = 0
            for j in range(grid.m - 1):
                share = 1.0 / (grid.x.counts[i] * grid.z.counts[j])
                a = room.pieces[i, j] * share
                by = room.slopes[i, j] * share if sloped else 0.0
                cell = _Cell(a, by, _terms(a))
                for _ in range(grid.z.counts[j]):
                    v, dv = along[at, : grid.z.orders[j]], moved[at, : grid.z.orders[j]]
                    at += 1
                    # The value at the corner comes along both sides. If rounding made two of it, the jump between them
                    # would grow exponentially with the number of pieces.
                    u[0] = v[0] = 0.5 * (u[0] + v[0])
                    if sloped:
                        du[0] = dv[0] = 0.5 * (du[0] + dv[0])
                        _cross_slope(u, v, du, dv, cell, room)
                    _cross(u, v, cell, room)
                    largest = max(largest, abs(u[0]))
    value = 0.0
    for k in range(size):
        value += (moved[last, k] if sloped else along[last, k]) * room.inverse[k]
    return value, largest


@jit
def whole_signatures(left, right, paths, symmetric, slope, out, stop):
    """Inner products of whole signatures of each pair, or of ``slope`` >= 0 their derivatives, as above.

    The k-th derivative by the place s in a piece v of one path, ``<S (x) v^k, S'>``, is at most ``|v|^k`` times the
    sizes of the two signatures. Long pieces are cut into parts; where there would be too many, the result is NaN.
    """
    long, wide = max(longest(left), 1), max(longest(right), 1)
    most = _terms(_LONGEST)
    inverse = np.ones(2 * most)
    for k in range(1, 2 * most):
        inverse[k] = inverse[k - 1] / k
    points, pieces, slopes = np.empty((long, wide)), np.empty((long, wide)), np.empty((long, wide))
    room = _Room(points, pieces, slopes, inverse, np.empty((4, most)))
    x_parts = _Parts(np.empty(long, np.int64), np.empty(long, np.int64))
    z_parts = _Parts(np.empty(wide, np.int64), np.empty(wide, np.int64))
    along, moved = np.empty((wide + 1, most)), np.empty((wide + 1, most))
    for a in range(left.index.shape[0]):
        x = series_at(left, a)
        cells_x = _cut(x, paths, x_parts)
        for b in range(a if symmetric else 0, right.index.shape[0]):
            z = series_at(right, b)
            cells_z = _cut(z, paths, z_parts)
            if cells_x < 0 or cells_z < 0:
                out.values[a, b] = np.nan
                continue
            if cells_z + 1 > along.shape[0]:
                along, moved = np.empty((cells_z + 1, most)), np.empty((cells_z + 1, most))
            for by in range(-1, slope + 1):
                # The inner products, and what they change by.
                if by == -1 or by == slope:
                    _pieces(x, z, paths, by, room.points, room.pieces if by == -1 else room.slopes)
            grid = _Grid(x.length, z.length, x_parts, z_parts)
            sides, turned = along[: cells_z + 1], moved[: cells_z + 1]
            out.values[a, b], out.largest[a, b] = _solve(grid, slope >= 0, room, sides, turned, stop)
