"""Products of columns: all monomials up to a degree, and the products over all subsets.

Monomials of degree ``t`` in ``d`` columns stand in the order of their columns, ``aaa, aab, aac, abb, ...``. Those in
which column ``i`` is the first and has the power ``r`` are ``x_i^r`` times those of degree ``t - r`` in the columns
behind ``i``, which are the end of the block of that degree: so a block is made of ends of the blocks before it. With
``x_i^r / sqrt(r!)`` for ``x_i^r`` each monomial comes out divided by the root of the factorials of its powers.
``counts[t, m]`` is the number of monomials of degree ``t`` in ``m`` columns.
"""

from typing import NamedTuple

import numpy as np

from mercer.loops._jit import jit


@jit
def _powers(x, weight, powers):
    """``powers[i, r] = x_i^r / sqrt(r!)``; zeros where the weight of the row is zero, which else may meet infinity."""
    for i in range(x.shape[0]):
        powers[i, 0] = 1
        for r in range(1, powers.shape[1]):
            powers[i, r] = 0 if weight == 0 else powers[i, r - 1] * x[i] / np.sqrt(r)


@jit
def _bases(counts, m, base):
    """Where the blocks of each degree begin, one behind the other, for ``m`` columns."""
    base[0] = 0
    for t in range(1, base.shape[0]):
        base[t] = base[t - 1] + counts[t - 1, m]


@jit
def _block(powers, counts, base, low, t, factor, out):
    """The monomials of degree ``t``, times ``factor``."""
    d = powers.shape[0]
    position = 0
    for i in range(d):
        for r in range(t, 0, -1):
            by = factor * powers[i, r]
            length = counts[t - r, d - i - 1]
            tail = low[base[t - r] + counts[t - r, d] - length : base[t - r] + counts[t - r, d]]
            part = out[position : position + length]
            for j in range(length):
                part[j] = by * tail[j]
            position += length


@jit
def monomials(X, weights, factors, counts, lowest, out):
    """Row ``i``: ``weights[i] * factors[t]`` times its monomials of degrees ``t`` from ``lowest``, 0 or the top."""
    n, d = X.shape
    degree = factors.shape[0] - 1
    base = np.empty(degree + 1, np.int64)
    _bases(counts, d, base)
    low = np.empty(base[degree], X.dtype)
    powers = np.empty((d, degree + 1), X.dtype)
    one = X.dtype.type(1)
    for row in range(n):
        target = out[row]
        _powers(X[row], weights[row], powers)
        low[0] = weights[row]
        for t in range(1, degree):
            _block(powers, counts, base, low, t, one, low[base[t] : base[t + 1]])
        _block(powers, counts, base, low, degree, factors[degree], target[0 if lowest else base[degree] :])
        if lowest == 0:
            for t in range(degree):
                for j in range(base[t], base[t + 1]):
                    target[j] = factors[t] * low[j]


class _Block(NamedTuple):
    """The monomials of degree ``t`` in ``d`` columns, times ``factor``, which are numbered from ``shift`` on."""

    d: int
    t: int
    factor: float
    shift: int


@jit
def _sparse_block(powers, columns, counts, base, before, block, after):
    """The monomials of degree ``t`` of the entries of a sparse row, and their numbers among those of all columns.

    ``before`` are those of lower degrees, with their numbers, and ``after`` where these go.
    """
    (low, place), (out, out_place) = before, after
    d, t, factor, shift = block
    m = powers.shape[0]
    position = 0
    for a in range(m):
        i = np.int64(columns[a])
        for r in range(t, 0, -1):
            q = t - r
            by = factor * powers[a, r]
            length = counts[q, m - a - 1]
            begin = base[q] + counts[q, m] - length
            # Those with column i first, less those of higher powers, less where the end of the block q begins.
            higher = counts[q - 1, d - i] if q > 0 else 0
            move = shift + counts[t, d] - counts[t, d - i] + higher - (counts[q, d] - counts[q, d - i - 1])
            for j in range(length):
                out[position + j] = by * low[begin + j]
                out_place[position + j] = move + place[begin + j]
            position += length


@jit
def sparse_monomials(rows, d, weights, factors, counts, lowest, out):
    """The same for rows of a CSR matrix with sorted columns; ``out.starts`` says where each row goes."""
    indptr, columns, data = rows
    out_indptr, out_columns, out_values = out
    degree = factors.shape[0] - 1
    widest = 0
    for row in range(indptr.shape[0] - 1):
        widest = max(widest, indptr[row + 1] - indptr[row])
    base, whole = np.empty(degree + 1, np.int64), np.empty(degree + 1, np.int64)
    _bases(counts, d, whole)
    _bases(counts, widest, base)
    low, place = np.empty(base[degree], data.dtype), np.empty(base[degree], np.int64)
    all_powers = np.empty((widest, degree + 1), data.dtype)
    one = data.dtype.type(1)
    for row in range(indptr.shape[0] - 1):
        x, own = data[indptr[row] : indptr[row + 1]], columns[indptr[row] : indptr[row + 1]]
        m = x.shape[0]
        powers = all_powers[:m]
        _powers(x, weights[row], powers)
        _bases(counts, m, base)
        low[0], place[0] = weights[row], 0
        target, names = out_values[out_indptr[row] :], out_columns[out_indptr[row] :]
        for t in range(1, degree):
            index = slice(base[t], base[t + 1])
            _sparse_block(powers, own, counts, base, (low, place), _Block(d, t, one, 0), (low[index], place[index]))
        start, shift = (0, 0) if lowest else (base[degree], whole[degree])
        block = _Block(d, degree, factors[degree], shift)
        _sparse_block(powers, own, counts, base, (low, place), block, (target[start:], names[start:]))
        if lowest == 0:
            for t in range(degree):
                for j in range(base[t], base[t + 1]):
                    target[j] = factors[t] * low[j]
                    names[j] = whole[t] + place[j]


@jit
def subset_products(X, out):
    """Column ``sum_{c in S} 2^c`` is the product of the columns in ``S``."""
    for row in range(X.shape[0]):
        target = out[row]
        target[0] = 1
        for c in range(X.shape[1]):
            for j in range(1 << c):
                target[(1 << c) + j] = X[row, c] * target[j]


@jit
def sparse_subset_products(data, columns, indptr, out, out_columns, out_indptr):
    """The same for rows of a CSR matrix with sorted columns."""
    for row in range(indptr.shape[0] - 1):
        target, names = out[out_indptr[row] :], out_columns[out_indptr[row] :]
        target[0], names[0] = 1, 0
        for c in range(indptr[row + 1] - indptr[row]):
            value, bit = data[indptr[row] + c], np.int64(1) << np.int64(columns[indptr[row] + c])
            for j in range(1 << c):
                target[(1 << c) + j] = value * target[j]
                names[(1 << c) + j] = bit + names[j]
