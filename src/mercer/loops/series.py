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
# exp(-708) is the least that exponential_parts tells from 0.
_FAR = 720.0
# Cells below are 0: arithmetic on subnormal numbers is slow.
_LEAST = 1e-300


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
def _add_alignments(squares, weights, rate, shrink_x, begin_x, shrink_z, begin_z, sums, now, before, earlier, width):
    """A cell of Cuturi (2011), equation 3: the local kernel, ``g / (2 - g)``, times the sum of three cells."""
    out, left, above, both = uint64(now + 1), uint64(before + 1), uint64(before), uint64(earlier)
    one, other = uint64(begin_x), uint64(begin_z)
    for t in range(uint64(width)):
        numerator, denominator = exponential_parts(-min(rate * squares[t], _FAR))
        numerator *= weights[t]
        local = numerator / (2.0 * denominator - numerator)
        a, b = shrink_x[one + t], shrink_z[other + t]
        value = local * (b * (sums[left + t] + a * sums[both + t]) + a * sums[above + t])
        sums[out + t] = value if value > _LEAST else 0.0


@jit
def _add_slopes(
    squares, weights, rate, shrink_x, begin_x, shrink_z, begin_z, sums, slopes, now, before, earlier, width
):
    """Derivatives of such cells by the logarithm of sigma."""
    out, left, above, both = uint64(now + 1), uint64(before + 1), uint64(before), uint64(earlier)
    one, other = uint64(begin_x), uint64(begin_z)
    for t in range(uint64(width)):
        exponent = min(rate * squares[t], _FAR)
        numerator, denominator = exponential_parts(-exponent)
        numerator *= weights[t]
        share = 1.0 / (2.0 * denominator - numerator)
        a, b = shrink_x[one + t], shrink_z[other + t]
        passed = numerator * share * (b * (slopes[left + t] + a * slopes[both + t]) + a * slopes[above + t])
        value = passed + 4.0 * exponent * denominator * share * sums[out + t]
        slopes[out + t] = value if value > _LEAST else 0.0


@jit
def _alignment(
    x,
    begin_x,
    n,
    step_x,
    shrink_x,
    z,
    begin_z,
    m,
    step_z,
    shrink_z,
    channels,
    rate,
    triangular,
    sloped,
    sums,
    slopes,
    squares,
    weights,
    stop,
):
    """The normalised sum over all alignments of two series, and the derivative of the scaled sum by log sigma."""
    if triangular > 0 and abs(n - m) >= triangular:
        return 0.0, 0.0
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
        one, other = begin_x + first, begin_z + m - 1 - s + first
        _squares(x, one, step_x, z, other, step_z, channels, width, squares)
        if triangular > 0:
            _weights(first, s, float(triangular), width, weights)
        # The empty alignment is what the first cell continues.
        sums[earlier] = 1.0 if s == 0 else sums[earlier]
        _add_alignments(
            squares,
            weights,
            rate,
            shrink_x,
            one,
            shrink_z,
            other,
            sums,
            now + first,
            before + first,
            earlier + first,
            width,
        )
        sums[earlier] = 0.0 if s == 0 else sums[earlier]
        if sloped:
            _add_slopes(
                squares,
                weights,
                rate,
                shrink_x,
                one,
                shrink_z,
                other,
                sums,
                slopes,
                now + first,
                before + first,
                earlier + first,
                width,
            )
            _clear(slopes, now, first, last, width, 0.0)
        _clear(sums, now, first, last, width, 0.0)
        now, before, earlier = earlier, now, before
    return sums[before + n], slopes[before + n] if sloped else 0.0


@jit
def alignments(
    x,
    xs,
    xn,
    rows,
    z,
    zs,
    zn,
    columns,
    channels,
    shrink_x,
    shrink_z,
    sigma,
    triangular,
    symmetric,
    sloped,
    out,
    slope,
    stop,
):
    """The normalised global alignment kernel of each pair, and with ``sloped`` the derivative of the scaled sum.

    With ``A(x)`` half the logarithm of the kernel of x with itself, ``out`` is ``k(x, z) exp(-A(x) - A(z))`` and
    ``slope`` is ``dk(x, z) / d sigma exp(-A(x) - A(z))``. Each cell is scaled so by the kernels of its prefixes with
    themselves: the shrinkage of a point is ``exp(A(prefix without it) - A(prefix with it))``. By the inequality of
    Cauchy and Schwarz cells are between 0 and 1, and a cell adds at most three times its own value to the result,
    which is why those that are lost below the least number do not matter.

    Channel c of series i of the left side begins at ``x[c * len(x) / channels + xs[i]]`` and has ``xn[i]`` entries;
    those of the right side stand backwards in z, and so do their shrinkages. Of a ``symmetric`` block only the upper
    half is made. Once ``stop[0]`` is set, what is left is not made.
    """
    longest, widest = _longest(xn, rows), _longest(zn, columns)
    sums, slopes = np.zeros(3 * (longest + 2 * PAD)), np.zeros(3 * (longest + 2 * PAD))
    squares, weights = np.empty(min(longest, widest) + PAD), np.ones(min(longest, widest) + PAD)
    rate = 0.5 / (sigma * sigma)
    for a in range(rows.shape[0]):
        for b in range(a if symmetric else 0, columns.shape[0]):
            i, j = rows[a], columns[b]
            value, change = _alignment(
                x,
                xs[i],
                xn[i],
                x.shape[0] // channels,
                shrink_x,
                z,
                zs[j],
                zn[j],
                z.shape[0] // channels,
                shrink_z,
                channels,
                rate,
                triangular,
                sloped,
                sums,
                slopes,
                squares,
                weights,
                stop,
            )
            out[a, b] = value
            if sloped:
                slope[a, b] = change / sigma


@jit
def _local_row(x, begin, i, step, channels, rate, triangular, local, steepness):
    """The local kernel of point i with itself and those before, and the derivatives of its logarithm by log sigma."""
    local[: i + 1] = 0.0
    for c in range(channels):
        at = begin + c * step
        for j in range(i + 1):
            local[j] += (x[at + i] - x[at + j]) ** 2
    for j in range(i + 1):
        exponent = min(rate * local[j], _FAR)
        weight = max(0.0, 1.0 - (i - j) / triangular) if triangular > 0 else 1.0
        numerator, denominator = exponential_parts(-exponent)
        numerator *= weight
        share = 1.0 / (2.0 * denominator - numerator)
        local[j] = numerator * share
        steepness[j] = 4.0 * exponent * denominator * share


@jit
def _self_alignment(x, begin, n, step, channels, rate, triangular, shrink, sums, slopes, local, steepness, stop):
    """The logarithm of the kernel of a series with itself, and its derivative by log sigma; writes ``shrink``.

    Half of the table is enough. ``sums[j]`` is cell (i, j) scaled by the kernels of its prefixes with themselves; that
    of prefix i is known when its row ends, so that a row is made in the scale of the row before.
    """
    logarithm = 0.0
    for i in range(n):
        if stop[0]:
            break
        _local_row(x, begin, i, step, channels, rate, triangular, local, steepness)
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
    return logarithm, slopes[n - 1]


@jit
def self_alignments(x, starts, lengths, index, channels, sigma, triangular, out, slope, shrink, stop):
    """The logarithm of the kernel of each series with itself, its derivative by sigma, and the shrinkage of each point.

    ``shrink`` is laid out as one channel of x.
    """
    longest = _longest(lengths, index)
    sums, slopes = np.empty(longest), np.empty(longest)
    local, steepness = np.empty(longest), np.empty(longest)
    rate = 0.5 / (sigma * sigma)
    for k in range(index.shape[0]):
        i = index[k]
        value, change = _self_alignment(
            x,
            starts[i],
            lengths[i],
            x.shape[0] // channels,
            channels,
            rate,
            triangular,
            shrink,
            sums,
            slopes,
            local,
            steepness,
            stop,
        )
        out[k], slope[k] = value, change / sigma


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
                x,
                xs[i],
                xn[i],
                x.shape[0] // channels,
                z,
                zs[j],
                zn[j],
                z.shape[0] // channels,
                channels,
                window,
                sums,
                squares,
                stop,
            )
