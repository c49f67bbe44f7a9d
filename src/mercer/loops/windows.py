"""Windows of two strings compared by how many symbols agree, and runs of symbols that agree place by place."""

from typing import NamedTuple

import numpy as np

from mercer._types import AnyArray, Integers, Vector
from mercer.loops._jit import jit
from mercer.loops.strings import StringSide, length_of, longest, string_at

# Counts of windows are kept in bytes for this many windows of the one string.
_FLUSH = 255
# Symbols of strings that are compared at once: their counts stay in the cache nearest to the core.
_JOINED = 4096


class WindowTable(NamedTuple):
    """What a pair of windows counts, by how many of their symbols agree."""

    length: int
    """Symbols in a window."""
    steps: Vector
    """``steps[l]``: the entry at ``length + 1 - len(steps) + l`` agreements, less the one before; up to there 0."""


class _Joined(NamedTuple):
    """Strings that stand one after the other, so that loops are long, and work arrays for them."""

    symbols: AnyArray
    old: Integers
    """Agreements of the windows with one window of another string, and with the next one."""
    new: Integers
    counts: Integers
    begins: Integers
    """Where the windows of each string begin and end."""
    ends: Integers
    totals: Integers
    """``totals[b, l]``: the pairs of windows that agree in at least ``length + 1 - len(steps) + l`` symbols."""


@jit
def _agree(z, symbol, agreements):
    for j in range(agreements.shape[0]):
        agreements[j] += np.uint8(z[j] == symbol)


@jit
def _advance(old, new, first, last, left, entered):
    """The same for the next window of x, each from the windows before both: one symbol leaves and one enters."""
    for j in range(old.shape[0]):
        new[j] = old[j] + np.uint8(last[j] == entered) - np.uint8(first[j] == left)


@jit
def _count(agreements, least, counts):
    for j in range(agreements.shape[0]):
        counts[j] += np.uint8(agreements[j] >= least)


@jit
def _flush(counts, begins, ends, totals):
    """Add the counts of the windows of each string to its totals, and start again from 0."""
    for level in range(counts.shape[0]):
        for b in range(begins.shape[0]):
            total = 0
            for count in counts[level, begins[b] : ends[b]]:
                total += count
            totals[b, level] += total
        counts[level] = 0


@jit
def _against(left, a, joined, length, some, stop):
    """Fill ``totals`` for string number ``a`` and the joined strings ``some``.

    Windows across the ends of joined strings are made, and are not counted. Those before the first are left out.
    """
    x, begin, windows = left.symbols, left.starts[left.index[a]], length_of(left, a) - length + 1
    begins, ends, totals = joined.begins[some], joined.ends[some], joined.totals[some]
    totals[:] = 0
    first, levels = begins[0], joined.counts.shape[0]
    others = joined.symbols.shape[0] - length + 1 - first
    if windows <= 0 or others <= 0:
        return
    symbols, counts = joined.symbols[first:], joined.counts
    these = counts[:, first : first + others]
    old, new = joined.old[first : first + others], joined.new[first : first + others]
    these[:] = 0
    old[:] = 0
    for p in range(length):
        _agree(symbols[p:], x[begin + p], old)
    for i in range(windows):
        if stop[0]:
            break
        if i > 0:
            at = begin + i
            _advance(old[: others - 1], new[1:], symbols, symbols[length:], x[at - 1], x[at + length - 1])
            agreeing = 0
            for p in range(length):
                if x[at + p] == symbols[p]:
                    agreeing += 1
            new[0] = agreeing
            old, new = new, old
        for level in range(levels):
            _count(old, np.uint8(length + 1 - levels + level), these[level])
        if i % _FLUSH == _FLUSH - 1:
            _flush(counts, begins, ends, totals)
    _flush(counts, begins, ends, totals)


@jit
def _join(right, start, length, joined):
    """Write strings from ``start`` on one after the other while they fit; how many, and how many symbols."""
    count, put = 0, 0
    source, target = right.symbols, joined.symbols
    for b in range(start, right.index.shape[0]):
        base, size = right.starts[right.index[b]], length_of(right, b)
        if count and put + size > target.shape[0]:
            break
        for k in range(size):
            target[put + k] = source[base + k]
        joined.begins[count], joined.ends[count] = put, max(put, put + size - length + 1)
        put += size
        count += 1
    return count, put


@jit
def windows(left, right, table, symmetric, out, stop):
    """``out[a, b]``: the sum of a table of their agreements over all pairs of windows.

    Only ``a <= b`` where ``symmetric``, and nothing that is left once ``stop[0]`` is set.
    """
    levels, count, room = table.steps.shape[0], right.index.shape[0], max(_JOINED, longest(right))
    symbols, old, new = np.empty(room, right.symbols.dtype), np.empty(room, np.uint8), np.empty(room, np.uint8)
    begins, ends = np.empty(count, np.int64), np.empty(count, np.int64)
    totals = np.empty((count, levels), np.int64)
    joined = _Joined(symbols, old, new, np.zeros((levels, room), np.uint8), begins, ends, totals)
    start = 0
    while start < count:
        some, size = _join(right, start, table.length, joined)
        written = _Joined(symbols[:size], old, new, joined.counts, begins, ends, totals)
        for a in range(left.index.shape[0]):
            skipped = min(max(a - start, 0), some) if symmetric else 0
            if skipped == some:
                continue
            _against(left, a, written, table.length, slice(skipped, some), stop)
            for b in range(skipped, some):
                value = 0.0
                for level in range(levels):
                    value += table.steps[level] * totals[b, level]
                out[a, start + b] = value
        start += some


@jit
def windows_self(rows, table, out, stop):
    """``out[a]`` is the same for row a with itself."""
    one = np.empty((1, 1))
    # The constant True has a type of its own, for which all would be compiled a second time.
    symmetric = one.size == 1
    for a in range(rows.index.shape[0]):
        row = StringSide(rows.symbols, rows.starts, rows.index[a : a + 1])
        windows(row, row, table, symmetric, one, stop)
        out[a] = one[0, 0]


@jit
def _runs(x, z, most, counts, factor):
    """Add ``factor`` to ``counts[l - 1]`` for each place where at least l symbols in a row agree, up to this place."""
    run = 0
    for p in range(min(x.shape[0], z.shape[0])):
        run = min(run + 1, most) if x[p] == z[p] else 0
        if run:
            counts[run - 1] += factor


@jit
def agreeing_runs(x, z, shift, counts, stop):
    """``counts[l - 1]``: places where l symbols in a row agree, those of strings shifted by s for ``1 / (2 s + 2)``."""
    most = counts.shape[0]
    counts[:] = 0.0
    _runs(x, z, most, counts, 1.0)
    for s in range(1, shift + 1):
        if stop[0]:
            return
        _runs(x[s:], z, most, counts, 0.5 / (s + 1))
        _runs(x, z[s:], most, counts, 0.5 / (s + 1))
    # A run of l symbols ends runs of all shorter lengths, too.
    for level in range(most - 2, -1, -1):
        counts[level] += counts[level + 1]


@jit
def degrees(left, right, shift, weights, symmetric, out, stop):
    """``out[a, b] = sum_l weights[l - 1]`` times the places where l symbols in a row agree."""
    counts = np.empty(weights.shape[0])
    for a in range(left.index.shape[0]):
        x = string_at(left, a)
        for b in range(a if symmetric else 0, right.index.shape[0]):
            agreeing_runs(x, string_at(right, b), shift, counts, stop)
            if stop[0]:
                return
            value = 0.0
            for level in range(weights.shape[0]):
                value += weights[level] * counts[level]
            out[a, b] = value


@jit
def degree_slopes(left, right, shift, pulled, out, stop):
    """Add ``sum_ab pulled[a, b] d k(x_a, z_b)`` by each of the weights to ``out``."""
    counts = np.empty(out.shape[0])
    for a in range(left.index.shape[0]):
        x = string_at(left, a)
        for b in range(right.index.shape[0]):
            agreeing_runs(x, string_at(right, b), shift, counts, stop)
            if stop[0]:
                return
            for level in range(out.shape[0]):
                out[level] += pulled[a, b] * counts[level]
