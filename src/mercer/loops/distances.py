"""Tiles of distances and similarities, finished or computed in place.

Every function takes the rows of the left side ``A (r, d)`` and, where it loops over columns of X, the right side
transposed ``B (d, c)``, so that the innermost loop runs over contiguous pairs and vectorises.
"""

from typing import NamedTuple

import numpy as np

from mercer._types import Array
from mercer.loops._jit import jit, prefer_wide_vectors

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
    """Turn inner products into ``multiplier * max(a_i + b_j - 2 tile_ij, 0)``; ``lost_i`` counts what rounding spoilt.

    An entry is spoilt where the distance is less than ``threshold`` of the squared norms: cancellation has then
    eaten its digits. The caller repairs those rows.
    """
    prefer_wide_vectors()
    zero, one = tile.dtype.type(0), tile.dtype.type(1)
    two = tile.dtype.type(2)
    for i in range(tile.shape[0]):
        ai = a[i]
        row = tile[i]
        # A number of the same size as the entries takes part in vectors of the same length; exact up to 2^24.
        count = zero
        for j in range(row.shape[0]):
            size = ai + b[j]
            distance = size - two * row[j]
            count += one if distance <= threshold * size else zero
            row[j] = multiplier * max(distance, zero)
        lost[i] = np.int64(count)


@jit
def squared_distances(left, right, multiplier, threshold, lost, out):
    """``multiplier`` times squared distances of few columns, with ``lost_i`` as in :func:`finish_squared_distances`.

    Products of few rows at a time are finished while they are in a cache, and without Python in between, where one
    thread would wait for another. The right side is not transposed.
    """
    prefer_wide_vectors()
    (A, a), (B, b) = left, right
    zero, one = out.dtype.type(0), out.dtype.type(1)
    two = out.dtype.type(2)
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
                ai = a[i]
                row, part = products[i - start], out[i][first:last]
                count = zero
                for j in range(row.shape[0]):
                    size = ai + squares[j]
                    distance = size - two * row[j]
                    count += one if distance <= threshold * size else zero
                    part[j] = multiplier * max(distance, zero)
                lost[i] += np.int64(count)


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
def repair_squared_distances(tile, left, right, multiplier, threshold, lost):
    """Compute again, by differences, the entries that cancellation has spoilt."""
    (A, a), (B, b) = left, right
    limit = abs(multiplier) * threshold
    for i in range(tile.shape[0]):
        left = lost[i]
        row = tile[i]
        for start in range(0, row.shape[0], _CHUNK):
            if left <= 0:
                break
            # Most chunks have none, which a loop without branches tells at once.
            part, size = row[start : start + _CHUNK], b[start : start + _CHUNK]
            count = 0
            for j in range(part.shape[0]):
                count += abs(part[j]) <= limit * (a[i] + size[j])
            if count == 0:
                continue
            left -= count
            for j in range(part.shape[0]):
                if abs(part[j]) <= limit * (a[i] + size[j]):
                    total = tile.dtype.type(0)
                    for c in range(A.shape[1]):
                        difference = A[i, c] - B[start + j, c]
                        total += difference * difference
                    part[j] = multiplier * total


@jit
def manhattan(A, B, multiplier, out):
    """``multiplier * sum_c |A_ic - B_cj|``."""
    prefer_wide_vectors()
    for i in range(A.shape[0]):
        row = out[i]
        row[:] = 0
        for c in range(A.shape[1]):
            x = A[i, c]
            other = B[c]
            for j in range(row.shape[0]):
                row[j] += abs(x - other[j])
        for j in range(row.shape[0]):
            row[j] *= multiplier


@jit
def pull_manhattan(A, B, W, out):
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
def chi_squared(A, B, multiplier, out):
    """``multiplier * sum_c (A_ic - B_cj)^2 / (A_ic + B_cj)``, a term 0/0 counting 0."""
    zero = out.dtype.type(0)
    one = out.dtype.type(1)
    for i in range(A.shape[0]):
        row = out[i]
        row[:] = 0
        for c in range(A.shape[1]):
            x = A[i, c]
            other = B[c]
            for j in range(row.shape[0]):
                total = x + other[j]
                difference = x - other[j]
                row[j] += difference * difference / (total if total > zero else one)
        for j in range(row.shape[0]):
            row[j] *= multiplier


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
