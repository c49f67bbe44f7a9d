"""Sides of string comparisons in the form that the loops read, and their sizes."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from mercer.data.objects import Objects
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


def advice_on_short(rows: Objects, length: int, kernel_of: Callable[[int], object]) -> str:
    """Return what to do about strings without a window of ``length`` symbols; ``kernel_of`` makes one of another.

    >>> from mercer.data.strings import Strings
    >>> advice_on_short(Strings.of(["cat", "mouse"]), 8, lambda length: f"Spectrum({length})")
    'Windows have 8 symbols, but such strings have 3 to 5. Pass Spectrum(2), or leave them out.'
    """
    lengths = [len(row) for row in rows if len(row)]
    if not lengths:
        return "They are empty; leave them out."
    # Windows of all symbols are equal in equal strings only.
    half = (min(lengths) + 1) // 2
    return (
        f"Windows have {length} symbols, but such strings have {min(lengths)} to {max(lengths)}. Pass "
        f"{kernel_of(half)}, or leave them out."
    )
