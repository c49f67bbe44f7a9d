"""Loops over pairs of series that are aligned: sums over all alignments, and the best one.

All go by anti-diagonals of the table of prefixes, whose cells do not depend on each other, so that the inner loops are
vector code. Cell (i, j) stands for ``x[: i + 1]`` and ``z[: j + 1]``; anti-diagonal s has the cells with i + j = s, and
its part of a work array holds cell (i, s - i) at i + 1; the last three are kept. One side comes forward and the other
backward, so that both are read in ascending order. Every series is followed by PAD cells that belong to none: loops
run on to a multiple of PAD, which spares them a remainder, and what they write there is overwritten.

Offsets are unsigned, since numba asks of signed ones in every step whether they count from the end; and arrays are not
sliced, since numba counts references to slices: both took longer than the arithmetic.
"""

import math
from typing import NamedTuple

import numpy as np
from numba import uint64

from mercer._types import Integers, Vector
from mercer.loops._jit import jit
from mercer.loops.exponential import exponential_parts

PAD = 16
# exp(-708) is the least that exponential_parts tells from 0.
_FAR = 720.0
# Cells below are 0: arithmetic on subnormal numbers is slow.
_LEAST = 1e-300


class SeriesSide(NamedTuple):
    """Some series of a collection: one side of a block of a kernel matrix."""

    values: Vector
    """All series one after the other, channel by channel; backwards where a loop says so."""
    step: int
    """From the values of a channel to those of the next."""
    channels: int
    starts: Integers
    """Where each series of the collection begins in a channel."""
    lengths: Integers
    index: Integers
    """Which series are meant."""
    shrink: Vector
    """What scales the cells of a point, laid out as one channel; empty where a loop does not scale them."""


class OneSeries(NamedTuple):
    """One of them: its channel c is ``values[begin + c * step :][:length]``."""

    values: Vector
    begin: int
    length: int
    step: int
    channels: int
    shrink: Vector


class LocalKernel(NamedTuple):
    """``g / (2 - g)`` of two points, where ``g = w(i - j) exp(-|x_i - z_j|^2 / (2 sigma^2))``."""

    sigma: float
    triangular: int
    """``w(d) = max(0, 1 - |d| / triangular)``, or 1 where it is 0."""


class _Diagonal(NamedTuple):
    """Where the first cell of an anti-diagonal stands, and how many are made."""

    x: int
    """Its point of the one series."""
    z: int
    """Its point of the other, which is backward."""
    now: int
    before: int
    """The same cell of the anti-diagonal before."""
    earlier: int
    """That of the one before it."""
    width: int


class _Channels(NamedTuple):
    """How many channels two series have, and how far each begins behind the one before."""

    count: int
    step_x: int
    step_z: int


class _Table(NamedTuple):
    """Work arrays for pairs of series: three anti-diagonals of cells, and one of what they are made of."""

    sums: Vector
    slopes: Vector
    squares: Vector
    weights: Vector


class _Row(NamedTuple):
    """Work arrays for a series and itself: a row of cells, and of what they are made of."""

    sums: Vector
    slopes: Vector
    local: Vector
    steepness: Vector


@jit
def series_at(side, a):
    """Series number ``a`` of a side."""
    i = side.index[a]
    return OneSeries(side.values, side.starts[i], side.lengths[i], side.step, side.channels, side.shrink)


@jit
def _squares(x, z, channels, diagonal, out):
    """Squared distances of the points along an anti-diagonal."""
    one, other, width = uint64(diagonal.x), uint64(diagonal.z), uint64(diagonal.width)
    for t in range(width):
        out[t] = (x[one + t] - z[other + t]) ** 2
    for _ in range(1, channels.count):
        one, other = one + uint64(channels.step_x), other + uint64(channels.step_z)
        for t in range(width):
            out[t] += (x[one + t] - z[other + t]) ** 2


@jit
def _clear(cells, begin, first, last, width, value):
    """Set what is beside the cells first to last of an anti-diagonal, of which ``width`` were written."""
    cells[begin + first] = value
    for t in range(begin + last + 2, begin + first + width + 3):
        cells[t] = value


@jit
def _span(s, n, m, low, high):
    """First and last cell of an anti-diagonal, with ``low <= i - j <= high``."""
    first = max(0, s - m + 1, (s + low + 1) >> 1)
    last = min(n - 1, s, (s + high) >> 1)
    return first, last


@jit
def _weights(first, s, triangular, width, out):
    """``1 - |i - j| / triangular``, and 0 beyond."""
    for t in range(width):
        out[t] = max(0.0, 1.0 - abs(2.0 * (first + t) - s) / triangular)


@jit
def _add_alignments(squares, weights, rate, shrink_x, shrink_z, diagonal, sums):
    """A cell of Cuturi (2011), equation 3: the local kernel, ``g / (2 - g)``, times the sum of three cells."""
    out, left = uint64(diagonal.now + 1), uint64(diagonal.before + 1)
    above, both = uint64(diagonal.before), uint64(diagonal.earlier)
    one, other = uint64(diagonal.x), uint64(diagonal.z)
    for t in range(uint64(diagonal.width)):
        numerator, denominator = exponential_parts(-min(rate * squares[t], _FAR))
        numerator *= weights[t]
        local = numerator / (2.0 * denominator - numerator)
        a, b = shrink_x[one + t], shrink_z[other + t]
        value = local * (b * (sums[left + t] + a * sums[both + t]) + a * sums[above + t])
        sums[out + t] = value if value > _LEAST else 0.0


@jit
def _add_slopes(squares, weights, rate, shrink_x, shrink_z, diagonal, cells):
    """Derivatives of such cells by the logarithm of sigma."""
    out, left = uint64(diagonal.now + 1), uint64(diagonal.before + 1)
    above, both = uint64(diagonal.before), uint64(diagonal.earlier)
    one, other = uint64(diagonal.x), uint64(diagonal.z)
    sums, slopes = cells
    for t in range(uint64(diagonal.width)):
        exponent = min(rate * squares[t], _FAR)
        numerator, denominator = exponential_parts(-exponent)
        numerator *= weights[t]
        share = 1.0 / (2.0 * denominator - numerator)
        a, b = shrink_x[one + t], shrink_z[other + t]
        passed = numerator * share * (b * (slopes[left + t] + a * slopes[both + t]) + a * slopes[above + t])
        value = passed + 4.0 * exponent * denominator * share * sums[out + t]
        slopes[out + t] = value if value > _LEAST else 0.0


@jit
def _alignment(x, z, local, sloped, table, stop):
    """The normalised sum over all alignments of two series, and the derivative of the scaled sum by log sigma."""
    n, m, triangular, rate = x.length, z.length, local.triangular, 0.5 / (local.sigma * local.sigma)
    if triangular > 0 and abs(n - m) >= triangular:
        return 0.0, 0.0
    sums, slopes, squares, weights = table
    left, right, shrink_x, shrink_z = x.values, z.values, x.shrink, z.shrink
    channels = _Channels(x.channels, x.step, z.step)
    size = n + 2 * PAD
    sums[: 3 * size] = 0.0
    if sloped:
        slopes[: 3 * size] = 0.0
    reach = n + m if triangular == 0 else triangular - 1
    now, before, earlier = 0, size, 2 * size
    for s in range(n + m - 1):
        if stop[0]:
            break
        first, last = _span(s, n, m, -reach, reach)
        width = (last - first + PAD) // PAD * PAD
        one, other = x.begin + first, z.begin + m - 1 - s + first
        diagonal = _Diagonal(one, other, now + first, before + first, earlier + first, width)
        _squares(left, right, channels, diagonal, squares)
        if triangular > 0:
            _weights(first, s, float(triangular), width, weights)
        # The empty alignment is what the first cell continues.
        sums[earlier] = 1.0 if s == 0 else sums[earlier]
        _add_alignments(squares, weights, rate, shrink_x, shrink_z, diagonal, sums)
        sums[earlier] = 0.0 if s == 0 else sums[earlier]
        if sloped:
            _add_slopes(squares, weights, rate, shrink_x, shrink_z, diagonal, (sums, slopes))
            _clear(slopes, now, first, last, width, 0.0)
        _clear(sums, now, first, last, width, 0.0)
        now, before, earlier = earlier, now, before
    return sums[before + n], slopes[before + n] if sloped else 0.0


@jit
def alignments(left, right, local, symmetric, out, slope, stop):
    """The normalised global alignment kernel of each pair, and its slope where ``slope`` is not empty.

    With ``A(x)`` half the logarithm of the kernel of x with itself, ``out`` is ``k(x, z) exp(-A(x) - A(z))`` and
    ``slope`` is ``dk(x, z) / d sigma exp(-A(x) - A(z))``. Each cell is scaled so by the kernels of its prefixes with
    themselves: the shrinkage of a point is ``exp(A(prefix without it) - A(prefix with it))``. By the inequality of
    Cauchy and Schwarz cells are between 0 and 1, and a cell adds at most three times its own value to the result,
    which is why those that are lost below the least number do not matter.

    The series of the right side stand backwards, and so do their shrinkages. Of a ``symmetric`` block only the upper
    half is made. Once ``stop[0]`` is set, what is left is not made.
    """
    sloped, cells = slope.shape[0] > 0, 3 * (longest(left) + 2 * PAD)
    width = min(longest(left), longest(right)) + PAD
    table = _Table(np.zeros(cells), np.zeros(cells), np.empty(width), np.ones(width))
    for a in range(left.index.shape[0]):
        x = series_at(left, a)
        for b in range(a if symmetric else 0, right.index.shape[0]):
            value, change = _alignment(x, series_at(right, b), local, sloped, table, stop)
            out[a, b] = value
            if sloped:
                slope[a, b] = change / local.sigma


@jit
def _local_row(x, i, rate, triangular, row):
    """The local kernel of point i with itself and those before, and the derivatives of its logarithm by log sigma."""
    values, cells, steepness = x.values, row.local, row.steepness
    cells[: i + 1] = 0.0
    for c in range(x.channels):
        at = x.begin + c * x.step
        for j in range(i + 1):
            cells[j] += (values[at + i] - values[at + j]) ** 2
    for j in range(i + 1):
        exponent = min(rate * cells[j], _FAR)
        weight = max(0.0, 1.0 - (i - j) / triangular) if triangular > 0 else 1.0
        numerator, denominator = exponential_parts(-exponent)
        numerator *= weight
        share = 1.0 / (2.0 * denominator - numerator)
        cells[j] = numerator * share
        steepness[j] = 4.0 * exponent * denominator * share


@jit
def _self_alignment(x, kernel, row, stop):
    """The logarithm of the kernel of a series with itself, and its derivative by log sigma; writes ``x.shrink``.

    Half of the table is enough. ``sums[j]`` is cell (i, j) scaled by the kernels of its prefixes with themselves; that
    of prefix i is known when its row ends, so that a row is made in the scale of the row before.
    """
    sums, slopes, local, steepness = row
    begin, shrink = x.begin, x.shrink
    logarithm = 0.0
    rate = 0.5 / (kernel.sigma * kernel.sigma)
    for i in range(x.length):
        if stop[0]:
            break
        _local_row(x, i, rate, kernel.triangular, row)
        both = left = both_slope = left_slope = 0.0
        for j in range(i):
            above, above_slope = sums[j], slopes[j]
            b = shrink[begin + j]
            left_slope = local[j] * (b * (left_slope + both_slope) + above_slope)
            left = local[j] * (b * (left + both) + above)
            left_slope += steepness[j] * left
            both, both_slope = above, above_slope
            sums[j], slopes[j] = left, left_slope
        # The cell on the diagonal, whose local kernel is 1; the empty alignment comes before the first.
        square = 2.0 * left + both if i > 0 else 1.0
        factor = 1.0 / math.sqrt(square)
        sums[i], slopes[i] = 1.0, (2.0 * left_slope + both_slope) / square
        for j in range(i):
            sums[j] = sums[j] * factor if sums[j] > _LEAST else 0.0
            slopes[j] = slopes[j] * factor if slopes[j] > _LEAST else 0.0
        shrink[begin + i] = factor
        logarithm += math.log(square)
    return logarithm, slopes[x.length - 1]


@jit
def self_alignments(rows, local, out, slope, stop):
    """The logarithm of the kernel of each series with itself, and its derivative by sigma; writes ``rows.shrink``."""
    n = longest(rows)
    row = _Row(np.empty(n), np.empty(n), np.empty(n), np.empty(n))
    for a in range(rows.index.shape[0]):
        value, change = _self_alignment(series_at(rows, a), local, row, stop)
        out[a], slope[a] = value, change / local.sigma


@jit
def longest(side):
    """The length of the longest series of a side; 0 where there is none."""
    most = 0
    for a in range(side.index.shape[0]):
        most = max(most, side.lengths[side.index[a]])
    return most


@jit
def _add_least(diagonal, squares, sums):
    out, left = uint64(diagonal.now + 1), uint64(diagonal.before + 1)
    above, both = uint64(diagonal.before), uint64(diagonal.earlier)
    for t in range(uint64(diagonal.width)):
        one, other, third = sums[left + t], sums[above + t], sums[both + t]
        least = one if one < other else other
        least = third if third < least else least
        sums[out + t] = squares[t] + least


@jit
def _warped(x, z, window, sums, squares, stop):
    """Least sum of squared distances over all alignments of two series."""
    n, m, left, right = x.length, z.length, x.values, z.values
    channels = _Channels(x.channels, x.step, z.step)
    reach = n + m if window < 0 else window
    low, high = min(0, n - m) - reach, max(0, n - m) + reach
    size = n + 2 * PAD
    sums[: 3 * size] = np.inf
    now, before, earlier = 0, size, 2 * size
    for s in range(n + m - 1):
        if stop[0]:
            break
        first, last = _span(s, n, m, low, high)
        width = (last - first + PAD) // PAD * PAD
        one, other = x.begin + first, z.begin + m - 1 - s + first
        diagonal = _Diagonal(one, other, now + first, before + first, earlier + first, width)
        _squares(left, right, channels, diagonal, squares)
        sums[earlier] = 0.0 if s == 0 else sums[earlier]
        _add_least(diagonal, squares, sums)
        sums[earlier] = np.inf if s == 0 else sums[earlier]
        _clear(sums, now, first, last, width, np.inf)
        now, before, earlier = earlier, now, before
    return sums[before + n]


@jit
def warped_squares(left, right, window, symmetric, out, stop):
    """Least sum of squared distances over all alignments of each pair; ``window`` < 0 for none.

    Sakoe and Chiba (1978): in a band of that many cells to either side of the corridor between the two diagonals. The
    series of the right side stand backwards.
    """
    sums = np.empty(3 * (longest(left) + 2 * PAD))
    squares = np.empty(min(longest(left), longest(right)) + PAD)
    for a in range(left.index.shape[0]):
        x = series_at(left, a)
        for b in range(a if symmetric else 0, right.index.shape[0]):
            out[a, b] = _warped(x, series_at(right, b), window, sums, squares, stop)
