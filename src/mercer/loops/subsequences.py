"""Gap-weighted subsequences: one string against four at once, which lie side by side, symbol by symbol.

Position ``q`` of an array of lanes is symbol ``q // LANES`` of string ``q % LANES``; a string that is shorter than the
longest of the four ends in a code that no symbol has. The recursion is that of Lodhi et al. (2002), section 3, with
its inner sum carried along, and with ``K'_l`` divided by ``decay^(2 l)``, which saves a product: for each symbol of
the one string, each length l and each symbol t of the others, where the symbols are the same or not,

    carried[t + 1] = decay carried[t] + (inner_l[t] if same else 0)
    inner_{l+1}[t + 1] = decay inner_{l+1}[t + 1] + carried[t + 1]

and what is the same is summed to the kernel's value for subsequences of l + 1 symbols.
"""

import numpy as np

from mercer.loops._jit import jit

# Four numbers are a word of the vector unit. The compiler cuts the loops below into such words, since what a step
# needs from the step before is four places back.
LANES = 4
_NO_SYMBOL = -1


@jit
def _side_by_side(z, zs, columns, chosen, lanes):
    """Write up to four strings into ``lanes``; the number of places that the longest takes."""
    longest = 0
    for lane in range(chosen.shape[0]):
        longest = max(longest, zs[columns[chosen[lane]] + 1] - zs[columns[chosen[lane]]])
    lanes[: longest * LANES] = _NO_SYMBOL
    for lane in range(chosen.shape[0]):
        begin = zs[columns[chosen[lane]]]
        for t in range(zs[columns[chosen[lane]] + 1] - begin):
            lanes[t * LANES + lane] = z[begin + t]
    return longest * LANES


@jit
def _step(above, below, carried, hits, lanes, symbol, decay):
    """One symbol of the one string, one length."""
    for q in range(above.shape[0]):
        value = above[q]
        hit = value if lanes[q] == symbol else 0.0
        hits[q] += hit
        after = decay * carried[q] + hit
        carried[q + LANES] = after
        below[q] = decay * below[q] + after


@jit
def _hits(above, hits, lanes, symbol):
    """The same for the last length, which none follows."""
    for q in range(above.shape[0]):
        value = above[q]
        hits[q] += value if lanes[q] == symbol else 0.0


@jit
def _carry(above, carried, lanes, symbol, decay):
    for q in range(above.shape[0]):
        value = above[q]
        hit = value if lanes[q] == symbol else 0.0
        carried[q + LANES] = decay * carried[q] + hit


@jit
def _moved_carry(above, carried, moved, lanes, symbol, decay):
    """The derivative of ``carried`` by ``decay``; ``above`` is that of the length before."""
    for q in range(above.shape[0]):
        value = above[q]
        hit = value if lanes[q] == symbol else 0.0
        moved[q + LANES] = carried[q] + decay * moved[q] + hit


@jit
def _moved_below(below, moved_below, moved, decay):
    for q in range(below.shape[0]):
        moved_below[q] = below[q] + decay * moved_below[q] + moved[q + LANES]


@jit
def _below(below, carried, decay):
    for q in range(below.shape[0]):
        below[q] = decay * below[q] + carried[q + LANES]


@jit
def _by_lane(hits, size, out):
    for lane in range(LANES):
        out[lane] = 0.0
    for q in range(0, size, LANES):
        for lane in range(LANES):
            out[lane] += hits[q + lane]


@jit
def _values(x, begin, end, lanes, size, decay, inner, carried, hits, totals, stop):
    """``totals[l, lane]`` is the kernel for subsequences of l + 1 symbols, over ``decay^(2 l + 2)``."""
    deepest = totals.shape[0]
    inner[0, :size] = 1.0
    inner[1:, : size + LANES] = 0.0
    hits[:, :size] = 0.0
    for s in range(begin, end):
        if stop[0]:
            break
        # From the longest down, since each reads the length before as it was without this symbol.
        above = inner[deepest - 1, :size]
        _hits(above, hits[deepest - 1], lanes, x[s])
        for level in range(deepest - 2, -1, -1):
            above, below = inner[level, :size], inner[level + 1, LANES:]
            _step(above, below, carried, hits[level], lanes, x[s], decay)
    for level in range(deepest):
        _by_lane(hits[level], size, totals[level])


@jit
def _slopes(x, begin, end, lanes, size, decay, inner, carried, hits, totals, moved_totals, stop):
    """The same, and derivatives by ``decay``. The second halves of the work arrays are for these."""
    deepest = totals.shape[0]
    inner[0, :size] = 1.0
    inner[1:deepest, : size + LANES] = 0.0
    inner[deepest:, : size + LANES] = 0.0
    hits[:, :size] = 0.0
    for s in range(begin, end):
        if stop[0]:
            break
        for level in range(deepest - 1, -1, -1):
            above, moved = inner[level, :size], inner[deepest + level, :size]
            _hits(above, hits[level], lanes, x[s])
            _hits(moved, hits[deepest + level], lanes, x[s])
            if level + 1 < deepest:
                below, moved_below = inner[level + 1, LANES : size + LANES], inner[deepest + level + 1, LANES:]
                _carry(above, carried[0], lanes, x[s], decay)
                _moved_carry(moved, carried[0], carried[1], lanes, x[s], decay)
                _moved_below(below, moved_below, carried[1], decay)
                _below(below, carried[0], decay)
    for level in range(deepest):
        _by_lane(hits[level], size, totals[level])
        _by_lane(hits[deepest + level], size, moved_totals[level])


@jit
def _longest(zs, columns):
    longest = 0
    for b in range(columns.shape[0]):
        longest = max(longest, zs[columns[b] + 1] - zs[columns[b]])
    return longest


@jit
def _sum(totals, lane, decay, weights):
    value, power = 0.0, 1.0
    for level in range(weights.shape[0]):
        power *= decay * decay
        value += weights[level] * power * totals[level, lane]
    return value


@jit
def subsequences(x, xs, rows, z, zs, columns, order, decay, weights, symmetric, out, stop):
    """``out[a, b] = sum_l weights[l - 1]`` times the kernel of subsequences of l symbols.

    ``x[xs[i]:xs[i + 1]]`` is string i of the left side. The right ones are taken in the given ``order``, best by
    length; with ``symmetric`` what is below the diagonal may be left out. What is left once ``stop[0]`` is set is not
    made.
    """
    deepest, room = weights.shape[0], (_longest(zs, columns) + 1) * LANES
    inner, hits, carried = np.empty((deepest, room)), np.empty((deepest, room)), np.zeros(room)
    lanes, totals = np.empty(room, np.int64), np.empty((deepest, LANES))
    for start in range(0, order.shape[0], LANES):
        chosen = order[start : start + LANES]
        size = _side_by_side(z, zs, columns, chosen, lanes)
        last = chosen.max()
        for a in range(rows.shape[0]):
            if symmetric and a > last:
                break
            _values(x, xs[rows[a]], xs[rows[a] + 1], lanes, size, decay, inner, carried, hits, totals, stop)
            for lane in range(chosen.shape[0]):
                out[a, chosen[lane]] = _sum(totals, lane, decay, weights)


@jit
def subsequences_self(x, xs, rows, decay, weights, out, stop):
    """``out[a]`` is the kernel of a row with itself."""
    deepest, room = weights.shape[0], (_longest(xs, rows) + 1) * LANES
    inner, hits, carried = np.empty((deepest, room)), np.empty((deepest, room)), np.zeros(room)
    lanes, totals = np.empty(room, np.int64), np.empty((deepest, LANES))
    for a in range(rows.shape[0]):
        size = _side_by_side(x, xs, rows, np.arange(a, a + 1), lanes)
        _values(x, xs[rows[a]], xs[rows[a] + 1], lanes, size, decay, inner, carried, hits, totals, stop)
        out[a] = _sum(totals, 0, decay, weights)


@jit
def _add_slopes(totals, moved_totals, lane, decay, weights, pulled, out):
    power = 1.0
    for level in range(weights.shape[0]):
        value, moved = totals[level, lane], moved_totals[level, lane]
        power *= decay * decay
        out[0] += pulled * weights[level] * power * (2 * (level + 1) / decay * value + moved)
        out[1 + level] += pulled * power * value


@jit
def subsequence_slopes(x, xs, rows, z, zs, columns, order, decay, weights, pulled, out, stop):
    """Add ``sum_ab pulled[a, b] d k(x_a, z_b)`` by ``decay`` and by each of ``weights`` to ``out``."""
    deepest, room = weights.shape[0], (_longest(zs, columns) + 1) * LANES
    inner, hits, carried = np.empty((2 * deepest, room)), np.empty((2 * deepest, room)), np.zeros((2, room))
    lanes, totals, moved_totals = np.empty(room, np.int64), np.empty((deepest, LANES)), np.empty((deepest, LANES))
    for start in range(0, order.shape[0], LANES):
        chosen = order[start : start + LANES]
        size = _side_by_side(z, zs, columns, chosen, lanes)
        for a in range(rows.shape[0]):
            asked = False
            for lane in range(chosen.shape[0]):
                asked |= pulled[a, chosen[lane]] != 0.0
            if not asked:
                continue
            begin, end = xs[rows[a]], xs[rows[a] + 1]
            _slopes(x, begin, end, lanes, size, decay, inner, carried, hits, totals, moved_totals, stop)
            for lane in range(chosen.shape[0]):
                _add_slopes(totals, moved_totals, lane, decay, weights, pulled[a, chosen[lane]], out)
