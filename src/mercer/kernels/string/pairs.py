"""How much there is to compare."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from mercer.kernels.objects import Packed


def pairs_of_symbols(left: Packed, right: Packed) -> float:
    """Of all strings of two sides, whose ``store`` is their symbols and where each begins.

    >>> codes, starts = np.arange(5), np.array([0, 2, 5])
    >>> both = Packed((codes, starts), np.arange(2))
    >>> pairs_of_symbols(both, both[:1])
    10.0
    """
    one, other = (_symbols(side.store[1], side.index) for side in (left, right))
    return one * other


def _symbols(starts: NDArray[np.int64], index: NDArray[np.int64]) -> float:
    return float((starts[index + 1] - starts[index]).sum())
