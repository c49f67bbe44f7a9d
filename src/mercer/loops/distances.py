"""Tiles of distances and similarities, finished or computed in place.

Every function takes the rows of the left side ``A (r, d)`` and, where it loops over columns of X, the right side
transposed ``B (d, c)``, so that the innermost loop runs over contiguous pairs and vectorises.
"""

import math
from typing import NamedTuple

import numpy as np

from mercer._types import Array
from mercer.loops._jit import jit, prefer_wide_vectors

# Of which function of the differences a distance is the sum.
SQUARED, MANHATTAN, PERIODIC, CHI_SQUARED = range(4)
# Entries of a row that are looked through at once.
_CHUNK = 64
# Products that are finished at once. OpenBLAS has faster ones for up to a million multiplications on processors with
# AVX-512.
_ROWS, _COLUMNS = 64, 512


class NormedRows(NamedTuple):
    """Rows of a tile (r, d)."""

    rows: Array
    squares: Array
    """Their squared norms."""


@jit
def finish_squared_distances(tile, a, b, multiplier, threshold, lost):
    """Turn inner products into ``multiplier * (a_i + b_j - 2 tile_ij)``; ``lost_i`` counts what rounding spoilt.

    An entry is spoilt, and becomes NaN, unless the distance is more than ``threshold`` of the squared norms:
    cancellation has then taken its digits, or the norms are infinite. The caller computes it again.
    """
    prefer_wide_vectors()
    zero, one = tile.dtype.type(0), tile.dtype.type(1)
    two, nothing = tile.dtype.type(2), tile.dtype.type(np.nan)
    for i in range(tile.shape[0]):
        ai = a[i]
        row = tile[i]
        # A number of the same size as the entries takes part in vectors of the same length; exact up to 2^24.
        count = zero
        for j in range(row.shape[0]):
            size = ai + b[j]
            distance = size - two * row[j]
            # With these two apart from the comparisons, the loop is vector code.
            value = multiplier * distance
            limit = threshold * size
            row[j] = value if distance > limit else nothing
            count += zero if distance > limit else one
        lost[i] = np.int64(count)


@jit
def _finish_row(row, size, sizes, multiplier, threshold, out):
    """The same from a row to another array: in place, this loop would not be vector code."""
    zero, one = row.dtype.type(0), row.dtype.type(1)
    two, nothing = row.dtype.type(2), row.dtype.type(np.nan)
    count = zero
    for j in range(row.shape[0]):
        both = size + sizes[j]
        distance = both - two * row[j]
        value = multiplier * distance
        limit = threshold * both
        out[j] = value if distance > limit else nothing
        count += zero if distance > limit else one
    return np.int64(count)


@jit
def squared_distances(left, right, multiplier, threshold, lost, out):
    """``multiplier`` times squared distances of few columns, with ``lost_i`` as in :func:`finish_squared_distances`.

    Products of few rows at a time are finished while they are in a cache, and without Python in between, where one
    thread would wait for another. The right side is not transposed.
    """
    prefer_wide_vectors()
    (A, a), (B, b) = left, right
    n, m = out.shape
    room = np.empty(_ROWS * _COLUMNS, out.dtype)
    lost[:] = 0
    for first in range(0, m, _COLUMNS):
        last = min(first + _COLUMNS, m)
        turned, squares = np.ascontiguousarray(B[first:last].T), b[first:last]
        for start in range(0, n, _ROWS):
            stop = min(start + _ROWS, n)
            products = room[: (stop - start) * (last - first)].reshape(stop - start, last - first)
            np.dot(A[start:stop], turned, products)
            for i in range(start, stop):
                row, part = products[i - start], out[i][first:last]
                lost[i] += _finish_row(row, a[i], squares, multiplier, threshold, part)


@jit
def add_squared_differences(A, B, out):
    """``out_ij += sum_c (A_ic - B_cj)^2``, by four columns, for which the row of ``out`` is read once."""
    prefer_wide_vectors()
    d = A.shape[1]
    for i in range(A.shape[0]):
        row = out[i]
        for c in range(0, d - 3, 4):
            x0, x1, x2, x3 = A[i, c], A[i, c + 1], A[i, c + 2], A[i, c + 3]
            b0, b1, b2, b3 = B[c], B[c + 1], B[c + 2], B[c + 3]
            for j in range(row.shape[0]):
                u0, u1, u2, u3 = x0 - b0[j], x1 - b1[j], x2 - b2[j], x3 - b3[j]
                row[j] += (u0 * u0 + u1 * u1) + (u2 * u2 + u3 * u3)
        for c in range(d // 4 * 4, d):
            x, other = A[i, c], B[c]
            for j in range(row.shape[0]):
                u = x - other[j]
                row[j] += u * u


@jit
def finish_differences(tile, a, b, multiplier, threshold, lost):
    """:func:`finish_squared_distances` of a tile that holds the distances, of rows that were rounded."""
    prefer_wide_vectors()
    zero, one, nothing = tile.dtype.type(0), tile.dtype.type(1), tile.dtype.type(np.nan)
    for i in range(tile.shape[0]):
        ai = a[i]
        row = tile[i]
        count = zero
        for j in range(row.shape[0]):
            distance = row[j]
            value = multiplier * distance
            limit = threshold * (ai + b[j])
            row[j] = value if distance > limit else nothing
            count += zero if distance > limit else one
        lost[i] = np.int64(count)


@jit
def finish_leading_distances(tile, a, b, rest_a, rest_b, multiplier, threshold):
    """Turn inner products of the leading parts of rows into ``multiplier`` times squared distances of whole rows.

    The other parts, of squared norms ``rest``, are taken to be orthogonal, except where the leading ones are equal.
    """
    prefer_wide_vectors()
    zero = tile.dtype.type(0)
    two = tile.dtype.type(2)
    for i in range(tile.shape[0]):
        ai = a[i]
        ri = rest_a[i]
        row = tile[i]
        for j in range(row.shape[0]):
            size = ai + b[j]
            distance = max(size - two * row[j], zero)
            row[j] = multiplier * (distance + (ri + rest_b[j] if distance > threshold * size else zero))


@jit
def repair_distances(tile, A, B, weights, measure, multiplier, lost):
    """Compute the entries that are NaN from differences of rows: ``multiplier * sum_c d(weights_c (A_ic - B_jc))``.

    ``d(u)`` is ``u^2``, ``|u|``, ``sin^2 u`` or, for weights of 1, ``u^2 / (A_ic + B_jc)``, as ``measure`` says.
    """
    for i in range(tile.shape[0]):
        left = lost[i]
        row = tile[i]
        for start in range(0, row.shape[0], _CHUNK):
            if left <= 0:
                break
            # Most chunks have none, which a loop without branches tells at once.
            part = row[start : start + _CHUNK]
            count = 0
            for j in range(part.shape[0]):
                count += part[j] != part[j]
            if count == 0:
                continue
            left -= count
            for j in range(part.shape[0]):
                if part[j] != part[j]:
                    part[j] = multiplier * distance(A[i], B[start + j], weights, measure)


@jit
def distance(x, z, weights, measure):
    total = 0.0
    for c in range(x.shape[0]):
        u = (x[c] - z[c]) * weights[c]
        if measure == SQUARED:
            total += u * u
        elif measure == MANHATTAN:
            total += abs(u)
        elif measure == PERIODIC:
            sine = math.sin(u)
            total += sine * sine
        else:
            size = x[c] + z[c]
            total += u * u / (size if size > 0 else 1.0)
    return total


@jit
def repair_sparse_distances(tile, left, right, weights, multiplier):
    """The same for CSR rows whose columns are in order."""
    for i in range(tile.shape[0]):
        for j in range(tile.shape[1]):
            if tile[i, j] == tile[i, j]:
                continue
            p, p_end = left.starts[i], left.starts[i + 1]
            q, q_end = right.starts[j], right.starts[j + 1]
            total = 0.0
            while p < p_end or q < q_end:
                column = right.columns[q] if q < q_end else left.columns[p]
                if p < p_end:
                    column = min(column, left.columns[p])
                difference = 0.0
                if p < p_end and left.columns[p] == column:
                    difference += left.values[p]
                    p += 1
                if q < q_end and right.columns[q] == column:
                    difference -= right.values[q]
                    q += 1
                difference *= weights[column]
                total += difference * difference
            tile[i, j] = multiplier * total


@jit
def pull_squared_differences(A, B, weights, W, out):
    """``out_c += sum_ij W_ij (weights_c (A_ic - B_cj))^2``."""
    prefer_wide_vectors()
    for i in range(A.shape[0]):
        row = W[i]
        for c in range(A.shape[1]):
            x, weight, other = A[i, c], weights[c], B[c]
            total = 0.0
            for j in range(row.shape[0]):
                u = (x - other[j]) * weight
                total += row[j] * u * u
            out[c] += total


@jit
def add_differences(A, B, out):
    """``out_ij += sum_c |A_ic - B_cj|``."""
    prefer_wide_vectors()
    for i in range(A.shape[0]):
        row = out[i]
        for c in range(A.shape[1]):
            x = A[i, c]
            other = B[c]
            for j in range(row.shape[0]):
                row[j] += abs(x - other[j])


@jit
def pull_differences(A, B, W, out):
    """``out_c += sum_ij W_ij |A_ic - B_cj|``."""
    prefer_wide_vectors()
    for i in range(A.shape[0]):
        for c in range(A.shape[1]):
            x = A[i, c]
            other = B[c]
            total = W.dtype.type(0)
            for j in range(W.shape[1]):
                total += W[i, j] * abs(x - other[j])
            out[c] += total


@jit
def pull_periods(A, B, wound_a, wound_b, W):
    """``sum_ijc W_ij (A_ic - B_cj) sin(2 a_ic - 2 b_cj)`` from rows of ``(cos 2a, sin 2a) / 2``."""
    prefer_wide_vectors()
    d = A.shape[1]
    total = 0.0
    for i in range(A.shape[0]):
        row = W[i]
        for c in range(d):
            x, cosine, sine = A[i, c], wound_a[i, c], wound_a[i, d + c]
            other, cosines, sines = B[c], wound_b[c], wound_b[d + c]
            part = 0.0
            for j in range(row.shape[0]):
                part += row[j] * (x - other[j]) * (sine * cosines[j] - cosine * sines[j])
            total += part
    return 4.0 * total


@jit
def add_chi_squared(A, B, out):
    """``out_ij += sum_c (A_ic - B_cj)^2 / (A_ic + B_cj)``, a term 0/0 counting 0."""
    zero = out.dtype.type(0)
    one = out.dtype.type(1)
    for i in range(A.shape[0]):
        row = out[i]
        for c in range(A.shape[1]):
            x = A[i, c]
            other = B[c]
            for j in range(row.shape[0]):
                total = x + other[j]
                difference = x - other[j]
                row[j] += difference * difference / (total if total > zero else one)


@jit
def intersection(A, B, multiplier, out):
    """``multiplier * sum_c min(A_ic, B_cj)``."""
    for i in range(A.shape[0]):
        row = out[i]
        row[:] = 0
        for c in range(A.shape[1]):
            x = A[i, c]
            other = B[c]
            for j in range(row.shape[0]):
                row[j] += min(x, other[j])
        for j in range(row.shape[0]):
            row[j] *= multiplier


@jit
def agreements(A, B, multiplier, out):
    """``multiplier * #{c: A_ic = B_cj}``."""
    one = out.dtype.type(1)
    zero = out.dtype.type(0)
    for i in range(A.shape[0]):
        row = out[i]
        row[:] = 0
        for c in range(A.shape[1]):
            x = A[i, c]
            other = B[c]
            for j in range(row.shape[0]):
                row[j] += one if x == other[j] else zero
        for j in range(row.shape[0]):
            row[j] *= multiplier


@jit
def all_subsets(A, B, multiplier, out):
    """``multiplier * prod_c (1 + A_ic B_cj)``."""
    one = out.dtype.type(1)
    for i in range(A.shape[0]):
        row = out[i]
        row[:] = multiplier
        for c in range(A.shape[1]):
            x = A[i, c]
            other = B[c]
            for j in range(row.shape[0]):
                row[j] *= one + x * other[j]


@jit
def sparse_products(a_data, a_columns, a_starts, b_data, b_rows, b_starts, out):
    """Inner products of CSR rows (left) with the rows of a matrix in CSC form (right): Gustavson's order."""
    for i in range(out.shape[0]):
        row = out[i]
        row[:] = 0
        for p in range(a_starts[i], a_starts[i + 1]):
            x = a_data[p]
            c = a_columns[p]
            for q in range(b_starts[c], b_starts[c + 1]):
                row[b_rows[q]] += x * b_data[q]


@jit
def match(left, right, value, out):
    """``value`` where the row numbers agree, else 0."""
    for i in range(out.shape[0]):
        for j in range(out.shape[1]):
            out[i, j] = value if left[i] == right[j] else np.float64(0)
