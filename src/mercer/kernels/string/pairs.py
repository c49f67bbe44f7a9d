"""How much there is to compare."""

from __future__ import annotations

import numpy as np

from mercer.kernels.objects import Packed


def pairs_of_symbols(left: Packed, right: Packed) -> float:
    """Of all strings of two sides, whose ``store`` is their symbols and where each begins.

    >>> codes, starts = np.arange(5), np.array([0, 2, 5])
    >>> both = Packed((codes, starts), np.arange(2))
    >>> pairs_of_symbols(both, both[:1])
    10.0
    """
    one, other = (float(np.diff(side.store[1])[side.index].sum()) for side in (left, right))
    return one * other
