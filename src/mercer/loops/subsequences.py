"""Gap-weighted subsequences: one string against four at once, which lie side by side, symbol by symbol.

Position ``q`` of an array of lanes is symbol ``q // LANES`` of string ``q % LANES``; a string that is shorter than the
longest of the four ends in a code that no symbol has. The recursion is that of Lodhi et al. (2002), section 3, with
its inner sum carried along, and with ``K'_l`` divided by ``decay^(2 l)``, which saves a product: for each symbol of
the one string, each length l and each symbol t of the others, where the symbols are the same or not,

    carried[t + 1] = decay carried[t] + (inner_l[t] if same else 0)
    inner_{l+1}[t + 1] = decay inner_{l+1}[t + 1] + carried[t + 1]

and what is the same is summed to the kernel's value for subsequences of l + 1 symbols.
"""

from typing import NamedTuple

import numpy as np

from mercer._types import Integers, Matrix, Vector
from mercer.loops._jit import jit
from mercer.loops.strings import length_of, longest

# Four numbers are a word of the vector unit. The compiler cuts the loops below into such words, since what a step
# needs from the step before is four places back.
LANES = 4
_NO_SYMBOL = -1


class SubsequenceWeights(NamedTuple):
    """What a subsequence counts."""

    decay: float
    """For each symbol that it spans."""
    lengths: Vector
    """The weight of each length, from 1 on."""


class _Lanes(NamedTuple):
    """Work arrays for one string against four."""

    lanes: Integers
    """The symbols of the four."""
    inner: Matrix
    """A row for each length; for slopes as many again of derivatives, as in ``hits`` and ``totals``."""
    carried: Matrix
    """One row, or two for slopes."""
    hits: Matrix
    totals: Matrix
    """``totals[l, lane]``: the kernel for subsequences of l + 1 symbols, over ``decay^(2 l + 2)``."""


@jit
def _side_by_side(right, items, lanes):
    """Write up to four strings into ``lanes``; the number of places that the longest takes."""
    most = 0
    for lane in range(items.shape[0]):
        most = max(most, length_of(right, items[lane]))
    lanes[: most * LANES] = _NO_SYMBOL
    for lane in range(items.shape[0]):
        begin = right.starts[right.index[items[lane]]]
        for t in range(length_of(right, items[lane])):
            lanes[t * LANES + lane] = right.symbols[begin + t]
    return most * LANES


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
def _values(left, a, size, decay, room, stop):
    """``totals`` of string number ``a`` against the strings in the lanes, which take ``size`` places."""
    x, begin = left.symbols, left.starts[left.index[a]]
    lanes, inner, carried, hits, totals = room.lanes, room.inner, room.carried[0], room.hits, room.totals
    deepest = totals.shape[0]
    inner[0, :size] = 1.0
    inner[1:, : size + LANES] = 0.0
    hits[:, :size] = 0.0
    for s in range(begin, begin + length_of(left, a)):
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
def _slopes(left, a, size, decay, room, stop):
    """The same, and derivatives by ``decay``: the second halves of the work arrays."""
    x, begin = left.symbols, left.starts[left.index[a]]
    lanes, inner, carried, hits, totals = room
    deepest = totals.shape[0] // 2
    inner[0, :size] = 1.0
    inner[1:deepest, : size + LANES] = 0.0
    inner[deepest:, : size + LANES] = 0.0
    hits[:, :size] = 0.0
    for s in range(begin, begin + length_of(left, a)):
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
    for level in range(2 * deepest):
        _by_lane(hits[level], size, totals[level])


@jit
def _room(right, rows, slopes):
    """Work arrays with a number of ``rows`` for the lengths, and for their derivatives if there are ``slopes``."""
    size = (longest(right) + 1) * LANES
    lanes, totals = np.empty(size, np.int64), np.empty((rows, LANES))
    carried = np.zeros((2 if slopes else 1, size))
    return _Lanes(lanes, np.empty((rows, size)), carried, np.empty((rows, size)), totals)


@jit
def _sum(totals, lane, weights):
    value, power = 0.0, 1.0
    for level in range(weights.lengths.shape[0]):
        power *= weights.decay * weights.decay
        value += weights.lengths[level] * power * totals[level, lane]
    return value


@jit
def subsequences(left, right, order, weights, symmetric, out, stop):
    """``out[a, b] = sum_l weights.lengths[l - 1]`` times the kernel of subsequences of l symbols.

    The right ones are taken in the given ``order``, best by length; with ``symmetric`` what is below the diagonal may
    be left out. What is left once ``stop[0]`` is set is not made.
    """
    room = _room(right, weights.lengths.shape[0], False)
    for start in range(0, order.shape[0], LANES):
        items = order[start : start + LANES]
        size = _side_by_side(right, items, room.lanes)
        last = items.max()
        for a in range(left.index.shape[0]):
            if symmetric and a > last:
                break
            _values(left, a, size, weights.decay, room, stop)
            for lane in range(items.shape[0]):
                out[a, items[lane]] = _sum(room.totals, lane, weights)


@jit
def subsequences_self(rows, weights, out, stop):
    """``out[a]`` is the kernel of a row with itself."""
    room = _room(rows, weights.lengths.shape[0], False)
    for a in range(rows.index.shape[0]):
        size = _side_by_side(rows, np.arange(a, a + 1), room.lanes)
        _values(rows, a, size, weights.decay, room, stop)
        out[a] = _sum(room.totals, 0, weights)


@jit
def _add_slopes(totals, lane, weights, pulled, out):
    power, decay, deepest = 1.0, weights.decay, weights.lengths.shape[0]
    for level in range(deepest):
        value, moved = totals[level, lane], totals[deepest + level, lane]
        power *= decay * decay
        out[0] += pulled * weights.lengths[level] * power * (2 * (level + 1) / decay * value + moved)
        out[1 + level] += pulled * power * value


@jit
def subsequence_slopes(left, right, order, weights, pulled, out, stop):
    """Add ``sum_ab pulled[a, b] d k(x_a, z_b)`` by ``decay`` and by each of the weights of lengths to ``out``."""
    room = _room(right, 2 * weights.lengths.shape[0], True)
    for start in range(0, order.shape[0], LANES):
        items = order[start : start + LANES]
        size = _side_by_side(right, items, room.lanes)
        for a in range(left.index.shape[0]):
            needed = False
            for lane in range(items.shape[0]):
                needed |= pulled[a, items[lane]] != 0.0
            if not needed:
                continue
            _slopes(left, a, size, weights.decay, room, stop)
            for lane in range(items.shape[0]):
                _add_slopes(room.totals, lane, weights, pulled[a, items[lane]], out)
