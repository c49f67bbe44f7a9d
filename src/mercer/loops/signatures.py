"""Loops over paths: their signatures, and the equation whose solution is the inner product of whole signatures.

A path goes in straight lines through the points of a series; ``timed`` adds the time, from 0 to 1, as a last channel.
"""

import math
from typing import NamedTuple

import numpy as np

from mercer._types import Matrix, Vector
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


class _Grid(NamedTuple):
    """The cells that an equation is solved on: ``parts`` by ``parts`` for each pair of pieces."""

    n: int
    m: int
    parts: int
    orders: int
    """Terms of the power series along a side of a cell."""


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
def _cross(u, v, cell, room):
    """Take a solution across one cell: from its values on two sides to those on the other two.

    On the cell, the unit square, the equation is ``d^2 k / ds dt = a k``. ``u`` holds the derivatives of k by s at the
    corner, along the side t = 0, and ``v`` those by t; they become those along t = 1 and s = 1. The coefficients of
    ``k = sum c_mn s^m t^n`` are ``c_mn = a c_{m-1,n-1} / (m n)``, so that they follow from those on the sides.
    """
    a, terms, inverse, work = cell.a, cell.terms, room.inverse, room.work
    size = u.shape[0]
    for m in range(terms):
        by_v, by_u = 0.0, 0.0
        for n in range(1, size):
            by_v += v[n] * inverse[m + n]
            by_u += u[n] * inverse[m + n]
        work[0, m], work[1, m] = by_v, by_u
    # Downwards, since the derivatives of lower order are read as they were.
    for m in range(size - 1, -1, -1):
        new_u, new_v, power = u[m], v[m], 1.0
        for k in range(1, min(m + 1, terms)):
            power *= a
            new_u += u[m - k] * power * inverse[k]
            new_v += v[m - k] * power * inverse[k]
        u[m], v[m] = new_u, new_v
    power = 1.0
    for m in range(terms):
        u[m] += power * work[0, m]
        v[m] += power * work[1, m]
        power *= a


@jit
def _cross_slope(u, v, du, dv, cell, room):
    """The derivative of that: ``du`` and ``dv`` become those of what ``u`` and ``v`` are to become."""
    a, da, terms, inverse, work = cell.a, cell.slope, cell.terms, room.inverse, room.work
    size = u.shape[0]
    for m in range(terms):
        work[0, m] = work[1, m] = work[2, m] = work[3, m] = 0.0
        for n in range(1, size):
            work[0, m] += v[n] * inverse[m + n]
            work[1, m] += u[n] * inverse[m + n]
            work[2, m] += dv[n] * inverse[m + n]
            work[3, m] += du[n] * inverse[m + n]
    for m in range(size - 1, -1, -1):
        new_u, new_v, power = du[m], dv[m], 1.0
        for k in range(1, min(m + 1, terms)):
            turned = da * power * k
            power *= a
            new_u += (du[m - k] * power + u[m - k] * turned) * inverse[k]
            new_v += (dv[m - k] * power + v[m - k] * turned) * inverse[k]
        du[m], dv[m] = new_u, new_v
    power, turned = 1.0, 0.0
    for m in range(terms):
        du[m] += power * work[2, m] + turned * work[0, m]
        dv[m] += power * work[3, m] + turned * work[1, m]
        turned = turned * a + power * da
        power *= a


@jit
def _terms(size):
    """How many terms of ``sum_k size^k / k!`` matter."""
    k, term = 1, abs(size)
    while term > _BOUND:
        k += 1
        term *= abs(size) / k
    return k + 1


@jit
def _longest_piece(x, paths):
    longest, values = 0.0, x.values
    for i in range(x.length - 1):
        square = (paths.time / (x.length - 1)) ** 2
        for c in range(x.channels):
            at = x.begin + c * x.step + i
            square += (values[at + 1] - values[at]) ** 2
        if paths.length_scale > 0.0:
            square = 2.0 - 2.0 * math.exp(-0.5 * square / (paths.length_scale * paths.length_scale))
        longest = max(longest, math.sqrt(square))
    return paths.scale * longest


@jit
def _solve(grid, sloped, room, along, moved, stop):
    """The last value of ``d^2 k / ds dt = <x', z'> k``, 1 on both axes, or of ``sloped`` its derivative.

    ``along`` and ``moved`` are room for derivatives along the sides of a row of cells.
    """
    parts, orders, pieces, slopes = grid.parts, grid.orders, room.pieces, room.slopes
    columns = (grid.m - 1) * parts
    along[: columns + 1, :orders] = 0.0
    along[: columns + 1, 0] = 1.0
    moved[: columns + 1, :orders] = 0.0
    share = 1.0 / (parts * parts)
    u, du = along[columns, :orders], moved[columns, :orders]
    for i in range(grid.n - 1):
        for _ in range(parts):
            if stop[0]:
                return 0.0
            u[:], du[:] = 0.0, 0.0
            u[0] = 1.0
            for at in range(columns):
                a = pieces[i, at // parts] * share
                by = slopes[i, at // parts] * share if sloped else 0.0
                cell = _Cell(a, by, min(_terms(a), orders))
                v = along[at, :orders]
                if sloped:
                    _cross_slope(u, v, du, moved[at, :orders], cell, room)
                _cross(u, v, cell, room)
    if grid.n == 1 or grid.m == 1:
        return 0.0 if sloped else 1.0
    value = 0.0
    for k in range(orders):
        value += (du[k] if sloped else u[k]) * room.inverse[k]
    return value


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
    along, moved = np.empty((wide + 1, most)), np.empty((wide + 1, most))
    for a in range(left.index.shape[0]):
        x = series_at(left, a)
        piece_x = _longest_piece(x, paths)
        for b in range(a if symmetric else 0, right.index.shape[0]):
            z = series_at(right, b)
            piece = max(piece_x, _longest_piece(z, paths))
            if piece > _MOST_PARTS * _LONGEST:
                out[a, b] = np.nan
                continue
            parts = int(max(1, math.ceil(piece / _LONGEST)))
            if z.length * parts + 1 > along.shape[0]:
                along, moved = np.empty((z.length * parts + 1, most)), np.empty((z.length * parts + 1, most))
            for by in range(-1, slope + 1):
                # The inner products, and what they change by.
                if by == -1 or by == slope:
                    _pieces(x, z, paths, by, room.points, room.pieces if by == -1 else room.slopes)
            grid = _Grid(x.length, z.length, parts, _terms(piece / parts))
            out[a, b] = _solve(grid, slope >= 0, room, along, moved, stop)
