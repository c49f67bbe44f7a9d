"""Windows of two strings compared by how many symbols agree, and runs of symbols that agree place by place."""

import numpy as np

from mercer.loops._jit import jit

# Counts of windows are kept in bytes for so many windows of the one string.
_FLUSH = 255
# Symbols of strings that are compared at once: their counts stay in the cache nearest to the core.
_JOINED = 4096


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
def _against(x, begin, end, joined, first, length, least, old, new, counts, begins, ends, totals, stop):
    """``totals[b, l]``: the pairs of windows of x and of string b that agree in at least ``least + l`` symbols.

    The strings stand one after the other in ``joined``, so that loops are long; windows across their ends are made,
    and are not counted. Those before ``first`` are left out.
    """
    totals[:] = 0
    windows, others = end - begin - length + 1, joined.shape[0] - length + 1 - first
    if windows <= 0 or others <= 0:
        return
    old, new, these = old[first : first + others], new[first : first + others], counts[:, first : first + others]
    these[:] = 0
    old[:] = 0
    for p in range(length):
        _agree(joined[first + p :], x[begin + p], old)
    for i in range(windows):
        if stop[0]:
            break
        if i > 0:
            at = begin + i
            entering = joined[first + length :]
            _advance(old[: others - 1], new[1:], joined[first:], entering, x[at - 1], x[at + length - 1])
            agreeing = 0
            for p in range(length):
                if x[at + p] == joined[first + p]:
                    agreeing += 1
            new[0] = agreeing
            old, new = new, old
        for level in range(counts.shape[0]):
            _count(old, np.uint8(least + level), these[level])
        if i % _FLUSH == _FLUSH - 1:
            _flush(counts, begins, ends, totals)
    _flush(counts, begins, ends, totals)


@jit
def _join(z, zs, columns, start, length, joined, begins, ends):
    """Write strings from ``start`` on one after the other while they fit; how many, and how many symbols."""
    count, put = 0, 0
    for b in range(start, columns.shape[0]):
        base, stop = zs[columns[b]], zs[columns[b] + 1]
        if count and put + stop - base > joined.shape[0]:
            break
        joined[put : put + stop - base] = z[base:stop]
        begins[count], ends[count] = put, max(put, put + stop - base - length + 1)
        put += stop - base
        count += 1
    return count, put


@jit
def _longest(starts, rows):
    longest = 0
    for b in range(rows.shape[0]):
        longest = max(longest, starts[rows[b] + 1] - starts[rows[b]])
    return longest


@jit
def windows(x, xs, rows, z, zs, columns, length, steps, symmetric, out, stop):
    """``out[a, b]``: the sum of a table of their agreements over all pairs of windows of ``length`` symbols.

    ``steps[l]`` is the table at ``length + 1 - len(steps) + l`` agreements, less the entry before; the table is 0 up to
    there. Only ``a <= b`` where ``symmetric``, and nothing that is left once ``stop[0]`` is set.
    """
    levels, count = steps.shape[0], columns.shape[0]
    room = max(_JOINED, _longest(zs, columns))
    joined, old, new = np.empty(room, z.dtype), np.empty(room, np.uint8), np.empty(room, np.uint8)
    counts, totals = np.zeros((levels, room), np.uint8), np.empty((count, levels), np.int64)
    begins, ends = np.empty(count, np.int64), np.empty(count, np.int64)
    start = 0
    while start < count:
        some, size = _join(z, zs, columns, start, length, joined, begins, ends)
        for a in range(rows.shape[0]):
            skipped = min(max(a - start, 0), some) if symmetric else 0
            if skipped == some:
                continue
            _against(
                x,
                xs[rows[a]],
                xs[rows[a] + 1],
                joined[:size],
                begins[skipped],
                length,
                length + 1 - levels,
                old,
                new,
                counts,
                begins[skipped:some],
                ends[skipped:some],
                totals[skipped:some],
                stop,
            )
            for b in range(skipped, some):
                value = 0.0
                for level in range(levels):
                    value += steps[level] * totals[b, level]
                out[a, start + b] = value
        start += some


@jit
def windows_self(x, xs, rows, length, steps, out, stop):
    """``out[a]`` is the same for row a with itself."""
    one = np.empty((1, 1))
    for a in range(rows.shape[0]):
        row = rows[a : a + 1]
        windows(x, xs, row, x, xs, row, length, steps, True, one, stop)
        out[a] = one[0, 0]


@jit
def _runs(x, begin, end, z, base, last, longest, counts, factor):
    """Add ``factor`` to ``counts[l - 1]`` for each place where at least l symbols in a row agree, up to this place."""
    run = 0
    for p in range(min(end - begin, last - base)):
        run = min(run + 1, longest) if x[begin + p] == z[base + p] else 0
        if run:
            counts[run - 1] += factor


@jit
def agreeing_runs(x, xs, a, z, zs, b, longest, shift, counts, stop):
    """``counts[l - 1]``: places where l symbols in a row agree, those of strings shifted by s for ``1 / (2 s + 2)``."""
    counts[:] = 0.0
    begin, end, base, last = xs[a], xs[a + 1], zs[b], zs[b + 1]
    _runs(x, begin, end, z, base, last, longest, counts, 1.0)
    for s in range(1, shift + 1):
        if stop[0]:
            return
        _runs(x, begin + s, end, z, base, last, longest, counts, 0.5 / (s + 1))
        _runs(x, begin, end, z, base + s, last, longest, counts, 0.5 / (s + 1))
    # A run of l symbols ends runs of all shorter lengths, too.
    for level in range(longest - 2, -1, -1):
        counts[level] += counts[level + 1]


@jit
def degrees(x, xs, rows, z, zs, columns, shift, weights, symmetric, out, stop):
    """``out[a, b] = sum_l weights[l - 1]`` times the places where l symbols in a row agree."""
    counts = np.empty(weights.shape[0])
    for a in range(rows.shape[0]):
        for b in range(a if symmetric else 0, columns.shape[0]):
            agreeing_runs(x, xs, rows[a], z, zs, columns[b], weights.shape[0], shift, counts, stop)
            if stop[0]:
                return
            value = 0.0
            for level in range(weights.shape[0]):
                value += weights[level] * counts[level]
            out[a, b] = value


@jit
def degree_slopes(x, xs, rows, z, zs, columns, shift, pulled, out, stop):
    """Add ``sum_ab pulled[a, b] d k(x_a, z_b)`` by each of the weights to ``out``."""
    counts = np.empty(out.shape[0])
    for a in range(rows.shape[0]):
        for b in range(columns.shape[0]):
            agreeing_runs(x, xs, rows[a], z, zs, columns[b], out.shape[0], shift, counts, stop)
            if stop[0]:
                return
            for level in range(out.shape[0]):
                out[level] += pulled[a, b] * counts[level]
