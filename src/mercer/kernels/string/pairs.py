"""Sides of string comparisons in the form that the loops read, and their sizes."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from mercer.kernels.objects import Packed
from mercer.loops.strings import StringSide


def side(rows: Packed) -> StringSide:
    """Strings whose ``store`` is their symbols and where each begins.

    >>> side(Packed((np.arange(5), np.array([0, 2, 5])), np.arange(2))).starts.tolist()
    [0, 2, 5]
    """
    codes, starts = rows.store
    return StringSide(codes, starts, rows.index)


def pairs_of_symbols(left: Packed, right: Packed) -> float:
    """Of all strings of two sides, whose ``store`` is their symbols and where each begins.

    >>> codes, starts = np.arange(5), np.array([0, 2, 5])
    >>> both = Packed((codes, starts), np.arange(2))
    >>> pairs_of_symbols(both, both[:1])
    10.0
    """
    return symbols(left) * symbols(right)


def symbols(side: Packed) -> float:
    """Of all strings of one side.

    >>> symbols(Packed((np.arange(5), np.array([0, 2, 5])), np.arange(2)))
    5.0
    """
    return float(_lengths(side).sum())


def longest(side: Packed) -> int:
    """The symbols of the longest string of one side, at least 1: longer substrings do not occur.

    >>> longest(Packed((np.arange(5), np.array([0, 2, 5])), np.arange(2)))
    3
    """
    return max(int(_lengths(side).max()), 1)


def _lengths(side: Packed) -> NDArray[np.int64]:
    starts: NDArray[np.int64] = side.store[1]
    return starts[side.index + 1] - starts[side.index]
