"""Edit distances by words of 64 bits: a column of the table of distances is two bits a symbol."""

from typing import NamedTuple

import numpy as np

from mercer._types import AnyArray, Integers
from mercer.loops._jit import jit
from mercer.loops.strings import longest, string_at

_WORD = 64


class _Symbols(NamedTuple):
    """The symbols of a string, and where they are."""

    table: Integers
    """By hash: the row of each symbol, -1 for none."""
    keys: Integers
    places: AnyArray
    """(symbols, words): a bit for each place."""


@jit
def _place(table, keys, symbol):
    """Where a symbol stands in a table of symbols, or the free place where it belongs."""
    mask = table.shape[0] - 1
    at = (symbol * 40503) & mask
    while table[at] >= 0 and keys[table[at]] != symbol:
        at = (at + 1) & mask
    return at


@jit
def _read(x, symbols):
    """Bits of the places of each symbol of a string; the table says which row is whose."""
    table, keys, places = symbols
    table[:] = -1
    places[:] = np.uint64(0)
    count = 0
    for p in range(x.shape[0]):
        at = _place(table, keys, x[p])
        if table[at] < 0:
            table[at] = count
            keys[count] = x[p]
            count += 1
        places[table[at], p // _WORD] |= np.uint64(1) << np.uint64(p % _WORD)


@jit
def _alphabet(side, table, keys):
    """The most symbols that one of some strings is made of."""
    most = 1
    for a in range(side.index.shape[0]):
        table[:] = -1
        count = 0
        for symbol in string_at(side, a):
            at = _place(table, keys, symbol)
            if table[at] < 0:
                table[at] = count
                keys[count] = symbol
                count += 1
        most = max(most, count)
    return most


@jit
def _distance(size, z, symbols, up, down, stop):
    """The distance of the string that was read, of ``size`` symbols, to ``z``.

    Differences of neighbours in a column of the table are +1 where ``up`` has a bit, and -1 where ``down`` has one.
    """
    table, keys, places = symbols
    words = (size + _WORD - 1) // _WORD
    if words == 0:
        return z.shape[0]
    one, top = np.uint64(1), np.uint64((size - 1) % _WORD)
    for w in range(words):
        up[w], down[w] = ~np.uint64(0), np.uint64(0)
    distance = size
    for t in range(z.shape[0]):
        if stop[0]:
            break
        row = table[_place(table, keys, z[t])]
        # How the top of the column differs from the one before it: by one symbol more.
        rises, falls = one, np.uint64(0)
        for w in range(words):
            same = places[row, w] if row >= 0 else np.uint64(0)
            vertical = same | down[w]
            same |= falls
            horizontal = (((same & up[w]) + up[w]) ^ up[w]) | same
            plus = down[w] | ~(horizontal | up[w])
            minus = up[w] & horizontal
            last = top if w == words - 1 else np.uint64(_WORD - 1)
            next_rises, next_falls = (plus >> last) & one, (minus >> last) & one
            plus = (plus << one) | rises
            minus = (minus << one) | falls
            up[w] = minus | ~(vertical | plus)
            down[w] = plus & vertical
            rises, falls = next_rises, next_falls
        distance += np.int64(rises) - np.int64(falls)
    return distance


@jit
def edit_distances(left, right, symmetric, out, stop):
    """``out[a, b]``: how many symbols are to be put in, left out or changed to make the one string of the other.

    Myers (1999), "A fast bit-vector algorithm for approximate string matching based on dynamic programming", with the
    words of long strings one after the other as Hyyroe (2003) has them. Only ``a <= b`` where ``symmetric``, and
    nothing that is left once ``stop[0]`` is set.
    """
    most = max(longest(left), 1)
    size = 4
    while size < 2 * most + 2:
        size *= 2
    words = (most + _WORD - 1) // _WORD
    table, keys = np.empty(size, np.int64), np.empty(most, np.int64)
    symbols = _Symbols(table, keys, np.empty((_alphabet(left, table, keys), words), np.uint64))
    up, down = np.empty(words, np.uint64), np.empty(words, np.uint64)
    for a in range(left.index.shape[0]):
        x = string_at(left, a)
        _read(x, symbols)
        for b in range(a if symmetric else 0, right.index.shape[0]):
            out[a, b] = _distance(x.shape[0], string_at(right, b), symbols, up, down, stop)
