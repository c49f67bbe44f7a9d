"""Loops over symbols, which come as numbers, one string after the other."""

from typing import NamedTuple

import numpy as np

from mercer._types import Integers
from mercer.loops._jit import jit


class StringSide(NamedTuple):
    """Some strings of a collection: one side of a block of a kernel matrix."""

    symbols: Integers
    """All strings one after the other."""
    starts: Integers
    """String i is ``symbols[starts[i] : starts[i + 1]]``."""
    index: Integers
    """Which strings are meant."""


@jit
def string_at(side, a):
    """The symbols of string number ``a`` of a side."""
    return side.symbols[side.starts[side.index[a]] : side.starts[side.index[a] + 1]]


@jit
def length_of(side, a):
    """How many symbols string number ``a`` of a side has."""
    return side.starts[side.index[a] + 1] - side.starts[side.index[a]]


@jit
def longest(side):
    """How many symbols the longest string of a side has; 0 where there is none."""
    most = 0
    for a in range(side.index.shape[0]):
        most = max(most, length_of(side, a))
    return most


@jit
def mix(bits):
    """The finaliser of SplitMix64 (Steele, Lea and Flood, 2014): every bit decides about every other."""
    bits = (bits ^ (bits >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    bits = (bits ^ (bits >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return bits ^ (bits >> np.uint64(31))


@jit
def hash_windows(codes, starts, shortest, longest, ids, levels, stop):
    """A hash of every ``shortest`` to ``longest`` symbols in a row, string after string; arrays have room for these.

    The level of a hash is how much longer than ``shortest`` its window is.
    """
    at = 0
    for i in range(starts.shape[0] - 1):
        for begin in range(starts[i], starts[i + 1] - shortest + 1):
            if begin & 0xFFF == 0 and stop[0]:
                return
            h = np.uint64(0)
            end = min(begin + longest, starts[i + 1])
            for c in range(begin, end):
                h = mix((h ^ np.uint64(codes[c])) * np.uint64(0x9E3779B97F4A7C15) + np.uint64(1))
                if c - begin + 1 >= shortest:
                    ids[at] = h
                    levels[at] = c - begin + 1 - shortest
                    at += 1
