"""Loops over rows of counted features: a table of which there are, and inner products over those that rows share."""

from typing import NamedTuple

import numpy as np

from mercer._types import AnyArray, Integers
from mercer.loops._jit import jit

_GOLDEN = 0x9E3779B97F4A7C15


@jit
def _slot(table, firsts, ids, feature):
    """Return the slot of ``feature`` in the table, or the free slot for it."""
    mask = table.shape[0] - 1
    hashed = feature * np.uint64(_GOLDEN)
    at = np.int64((hashed ^ (hashed >> np.uint64(32))) & np.uint64(mask))
    while table[at] >= 0 and ids[firsts[table[at]]] != feature:
        at = (at + 1) & mask
    return at


@jit
def _rebuilt(table, firsts, count, ids):
    """A table four times as large of the same features."""
    larger = np.full(4 * table.shape[0], -1, np.int32)
    for column in range(count):
        larger[_slot(larger, firsts, ids, ids[firsts[column]])] = column
    return larger


@jit
def tabulate(ids, counts, starts, columns, values, offsets, stop):
    """Features of rows as a sparse matrix, with a column for each feature by first occurrence; no duplicate entries.

    Fills ``columns`` and ``values``, which are large enough, and ``offsets``, where each row starts in them. Returns
    the position in ``ids`` of the first occurrence of each column's feature.
    """
    table = np.full(1024, -1, np.int32)
    firsts = np.empty(256, np.int64)
    # Where the last entry of each column is: from the start of the row on, it is one of this row.
    last = np.empty(256, np.int64)
    count, put = 0, 0
    offsets[0] = 0
    for i in range(starts.shape[0] - 1):
        begin = put
        for e in range(starts[i], starts[i + 1]):
            if e & 0xFFF == 0 and stop[0]:
                return firsts[:count].copy()
            at = _slot(table, firsts, ids, ids[e])
            column = table[at]
            if column < 0:
                if count == firsts.shape[0]:
                    firsts = np.concatenate((firsts, np.empty(count, np.int64)))
                    last = np.concatenate((last, np.empty(count, np.int64)))
                column = count
                table[at] = column
                firsts[column] = e
                last[column] = -1
                count += 1
                if 2 * count > table.shape[0]:
                    table = _rebuilt(table, firsts, count, ids)
            if last[column] >= begin:
                values[last[column]] += counts[e]
            else:
                last[column] = put
                columns[put] = column
                values[put] = counts[e]
                put += 1
        offsets[i + 1] = put
    return firsts[:count].copy()


@jit
def look_up(ids, features, positions):
    """Fill ``positions`` with the place of each of ``features`` in the distinct ``ids``; -1 for missing ones."""
    size = 1024
    while size < 2 * ids.shape[0]:
        size *= 2
    table = np.full(size, -1, np.int32)
    places = np.arange(ids.shape[0])
    for i in range(ids.shape[0]):
        table[_slot(table, places, ids, ids[i])] = i
    for i in range(features.shape[0]):
        positions[i] = table[_slot(table, places, ids, features[i])]


@jit
def divide(matrix, place, factor, dense, rest):
    """Part a sparse matrix, its columns times ``factor``, into a dense one and the rest, for which there is room.

    ``place`` says where each column goes: the first ``dense.shape[1]`` into ``dense``, -1 nowhere. Returns the number
    of entries of the rest.
    """
    starts, columns, values = matrix
    offsets, kept_columns, kept_values = rest
    width = dense.shape[1]
    put = 0
    offsets[0] = 0
    for i in range(starts.shape[0] - 1):
        for e in range(starts[i], starts[i + 1]):
            to = place[columns[e]]
            if to < 0:
                continue
            value = values[e] * factor[columns[e]]
            if to < width:
                dense[i, to] = value
            else:
                kept_columns[put] = to - width
                kept_values[put] = value
                put += 1
        offsets[i + 1] = put
    return put


@jit
def squared_sums(matrix, level, out):
    """``out[i, l] = sum of values^2`` of row i over the columns of level l."""
    starts, columns, values = matrix
    out[:] = 0.0
    for i in range(starts.shape[0] - 1):
        for e in range(starts[i], starts[i + 1]):
            out[i, level[columns[e]]] += values[e] * values[e]


class _Postings(NamedTuple):
    """The entries of some rows by column; a column has a place among those that occur."""

    members: Integers
    """The column of each place."""
    begins: Integers
    """Where the entries of each place begin."""
    where: Integers
    """The row of each entry, by its position among the rows."""
    entries: AnyArray


@jit
def _postings(side, place):
    """Postings of some rows, and the number of columns that occur.

    ``place`` need not be set before: the place of a column holds if the member there is the column (Briggs and Torczon,
    1993, "An efficient representation for sparse sets").
    """
    starts, columns, values = side.matrix
    rows, total = side.index, 0
    for b in range(rows.shape[0]):
        total += starts[rows[b] + 1] - starts[rows[b]]
    members, begins = np.empty(total, np.int32), np.empty(total + 1, np.int64)
    where, entries = np.empty(total, np.int32), np.empty(total, values.dtype)
    count = 0
    for b in range(rows.shape[0]):
        for e in range(starts[rows[b]], starts[rows[b] + 1]):
            c = columns[e]
            p = place[c]
            if p < 0 or p >= count or members[p] != c:
                p = np.int32(count)
                place[c] = p
                members[p] = c
                begins[p + 1] = 0
                count += 1
            begins[p + 1] += 1
    begins[0] = 0
    for p in range(count):
        begins[p + 1] += begins[p]
    for b in range(rows.shape[0]):
        for e in range(starts[rows[b]], starts[rows[b] + 1]):
            p = place[columns[e]]
            where[begins[p]] = b
            entries[begins[p]] = values[e]
            begins[p] += 1
    # Each begins where the one before it ended.
    for p in range(count, 0, -1):
        begins[p] = begins[p - 1]
    begins[0] = 0
    return _Postings(members, begins, where, entries), count


@jit
def add_products(left, right, place, symmetric, out):
    """Add the inner products of some rows of two sparse matrices; with ``symmetric`` on the diagonal and above only.

    ``place`` has room for a number a column, whose values do not matter.
    """
    x, x_columns, x_values = left.matrix
    rows, (postings, count) = left.index, _postings(right, place)
    members, begins, where, entries = postings
    ends = begins[1 : count + 1].copy()
    for a in range(rows.shape[0]):
        line = out[a]
        for e in range(x[rows[a]], x[rows[a] + 1]):
            p = place[x_columns[e]]
            if p < 0 or p >= count or members[p] != x_columns[e]:
                continue
            value = x_values[e]
            for q in range(begins[p], ends[p]):
                line[where[q]] += value * entries[q]
            if symmetric:
                # The first of what is left is this row itself: rows below it begin after it.
                begins[p] += 1


@jit
def pull_products(left, right, place, level, weights, out):
    """Add ``sum_ab weights[a, b] x_a[c] z_b[c]`` over the columns c of each level to ``out``."""
    x, x_columns, x_values = left.matrix
    rows, (postings, count) = left.index, _postings(right, place)
    members, begins, where, entries = postings
    for a in range(rows.shape[0]):
        line = weights[a]
        for e in range(x[rows[a]], x[rows[a] + 1]):
            c = x_columns[e]
            p = place[c]
            if p < 0 or p >= count or members[p] != c:
                continue
            total = 0.0
            for q in range(begins[p], begins[p + 1]):
                total += line[where[q]] * entries[q]
            out[level[c]] += x_values[e] * total


@jit
def set_same(rows, others, norms, out):
    """Write the norm of a row where it meets itself."""
    for a in range(rows.shape[0]):
        for b in range(others.shape[0]):
            if rows[a] == others[b]:
                out[a, b] = norms[rows[a]]
