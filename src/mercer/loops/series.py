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

import numpy as np
from numba import uint64

from mercer.loops._jit import jit
from mercer.loops.exponential import exponential_parts

PAD = 16
# Every so many anti-diagonals, sums are brought back to near one: a step makes them at most three times as large, so
# that none leaves the range between.
_EVERY = 64
_HIGH, _LOW = 2.0**300, 2.0**-300
_LOG2 = math.log(2.0)


@jit
def _squares(x, begin_x, step_x, z, begin_z, step_z, channels, width, out):
    """Squared distances of the points along an anti-diagonal; a channel begins ``step`` after the one before."""
    one, other = uint64(begin_x), uint64(begin_z)
    for t in range(uint64(width)):
        out[t] = (x[one + t] - z[other + t]) ** 2
    for _ in range(1, channels):
        one, other = one + uint64(step_x), other + uint64(step_z)
        for t in range(uint64(width)):
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
def _add_alignments(squares, weights, rate, sums, now, before, earlier, width):
    """A cell of Cuturi (2011), equation 3: the local kernel, ``g / (2 - g)``, times the sum of three cells."""
    out, left, above, both = uint64(now + 1), uint64(before + 1), uint64(before), uint64(earlier)
    for t in range(uint64(width)):
        numerator, denominator = exponential_parts(-rate * squares[t])
        numerator *= weights[t]
        local = numerator / (2.0 * denominator - numerator)
        sums[out + t] = local * (sums[left + t] + sums[above + t] + sums[both + t])


@jit
def _add_slopes(squares, weights, rate, sums, slopes, now, before, earlier, width):
    """Derivatives of such cells by the logarithm of sigma."""
    out, left, above, both = uint64(now + 1), uint64(before + 1), uint64(before), uint64(earlier)
    for t in range(uint64(width)):
        numerator, denominator = exponential_parts(-rate * squares[t])
        numerator *= weights[t]
        share = 1.0 / (2.0 * denominator - numerator)
        passed = numerator * share * (slopes[left + t] + slopes[above + t] + slopes[both + t])
        slopes[out + t] = passed + 4.0 * rate * squares[t] * denominator * share * sums[out + t]


@jit
def _rescale(sums, slopes, now, before, first, last, sloped):
    """Bring the sums of the last two anti-diagonals near one; returns the power of two that was taken out."""
    largest = 0.0
    for t in range(first, last + 2):
        largest = max(largest, sums[now + t], sums[before + t])
    if largest == 0.0 or _LOW < largest < _HIGH:
        return 0.0
    power = math.floor(math.log2(largest))
    # In two steps, since 2**-power can be too large for a number.
    half = math.floor(power / 2)
    one, other = 2.0**-half, 2.0 ** -(power - half)
    for t in range(sums.shape[0]):
        sums[t] = sums[t] * one * other
    if sloped:
        for t in range(slopes.shape[0]):
            slopes[t] = slopes[t] * one * other
    return power


@jit
def _alignment(
    x, begin_x, n, step_x, z, begin_z, m, step_z, channels, rate, triangular, sloped, sums, slopes, squares, weights,
    stop,
):
    """The logarithm of the sum over all alignments of two series, and its derivative by log sigma."""
    if triangular > 0 and abs(n - m) >= triangular:
        return -np.inf, 0.0
    size = n + 2 * PAD
    sums[: 3 * size] = 0.0
    if sloped:
        slopes[: 3 * size] = 0.0
    taken = 0.0
    reach = n + m if triangular == 0 else triangular - 1
    now, before, earlier = 0, size, 2 * size
    for s in range(n + m - 1):
        if stop[0]:
            break
        first, last = _span(s, n, m, -reach, reach)
        width = (last - first + PAD) // PAD * PAD
        _squares(x, begin_x + first, step_x, z, begin_z + m - 1 - s + first, step_z, channels, width, squares)
        if triangular > 0:
            _weights(first, s, float(triangular), width, weights)
        # The empty alignment is what the first cell continues.
        sums[earlier] = 1.0 if s == 0 else sums[earlier]
        _add_alignments(squares, weights, rate, sums, now + first, before + first, earlier + first, width)
        sums[earlier] = 0.0 if s == 0 else sums[earlier]
        if sloped:
            _add_slopes(squares, weights, rate, sums, slopes, now + first, before + first, earlier + first, width)
            _clear(slopes, now, first, last, width, 0.0)
        _clear(sums, now, first, last, width, 0.0)
        if s % _EVERY == _EVERY - 1:
            taken += _rescale(sums[: 3 * size], slopes[: 3 * size], now, before, first, last, sloped)
        now, before, earlier = earlier, now, before
    value = sums[before + n]
    if value == 0.0:
        return -np.inf, 0.0
    return math.log(value) + taken * _LOG2, slopes[before + n] / value


@jit
def alignments(x, xs, xn, rows, z, zs, zn, columns, channels, sigma, triangular, symmetric, sloped, out, slope, stop):
    """The logarithm of the global alignment kernel of each pair, and with ``sloped`` its derivative by sigma.

    Channel c of series i of the left side begins at ``x[c * len(x) / channels + xs[i]]`` and has ``xn[i]`` entries;
    those of the right side stand backwards in z. Of a ``symmetric`` block only the upper half is made. Once
    ``stop[0]`` is set, what is left is not made.
    """
    longest, widest = _longest(xn, rows), _longest(zn, columns)
    sums, slopes = np.zeros(3 * (longest + 2 * PAD)), np.zeros(3 * (longest + 2 * PAD))
    squares, weights = np.empty(min(longest, widest) + PAD), np.ones(min(longest, widest) + PAD)
    rate = 0.5 / (sigma * sigma)
    for a in range(rows.shape[0]):
        for b in range(a if symmetric else 0, columns.shape[0]):
            i, j = rows[a], columns[b]
            value, change = _alignment(
                x, xs[i], xn[i], x.shape[0] // channels, z, zs[j], zn[j], z.shape[0] // channels, channels, rate,
                triangular, sloped, sums, slopes, squares, weights, stop,
            )  # fmt: skip
            out[a, b] = value
            if sloped:
                slope[a, b] = change / sigma


@jit
def self_alignments(x, z, starts, lengths, index, channels, sigma, triangular, out, slope, stop):
    """The same of series with themselves, and the derivatives."""
    value, change = np.empty((1, 1)), np.empty((1, 1))
    for i in range(index.shape[0]):
        at = index[i : i + 1]
        alignments(
            x, starts, lengths, at, z, starts, lengths, at, channels, sigma, triangular, False, True, value, change,
            stop,
        )
        out[i], slope[i] = value[0, 0], change[0, 0]


@jit
def _longest(lengths, index):
    longest = 0
    for a in range(index.shape[0]):
        longest = max(longest, lengths[index[a]])
    return longest


@jit
def _add_least(squares, sums, now, before, earlier, width):
    out, left, above, both = uint64(now + 1), uint64(before + 1), uint64(before), uint64(earlier)
    for t in range(uint64(width)):
        one, other, third = sums[left + t], sums[above + t], sums[both + t]
        least = one if one < other else other
        least = third if third < least else least
        sums[out + t] = squares[t] + least


@jit
def _warped(x, begin_x, n, step_x, z, begin_z, m, step_z, channels, window, sums, squares, stop):
    """Least sum of squared distances over all alignments of two series."""
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
        _squares(x, begin_x + first, step_x, z, begin_z + m - 1 - s + first, step_z, channels, width, squares)
        sums[earlier] = 0.0 if s == 0 else sums[earlier]
        _add_least(squares, sums, now + first, before + first, earlier + first, width)
        sums[earlier] = np.inf if s == 0 else sums[earlier]
        _clear(sums, now, first, last, width, np.inf)
        now, before, earlier = earlier, now, before
    return sums[before + n]


@jit
def warped_squares(x, xs, xn, rows, z, zs, zn, columns, channels, window, symmetric, out, stop):
    """Least sum of squared distances over all alignments of each pair; ``window`` < 0 for none.

    Sakoe and Chiba (1978): in a band of that many cells to either side of the corridor between the two diagonals.
    """
    longest, widest = _longest(xn, rows), _longest(zn, columns)
    sums, squares = np.empty(3 * (longest + 2 * PAD)), np.empty(min(longest, widest) + PAD)
    for a in range(rows.shape[0]):
        for b in range(a if symmetric else 0, columns.shape[0]):
            i, j = rows[a], columns[b]
            out[a, b] = _warped(
                x, xs[i], xn[i], x.shape[0] // channels, z, zs[j], zn[j], z.shape[0] // channels, channels, window,
                sums, squares, stop,
            )  # fmt: skip
