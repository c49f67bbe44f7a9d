"""Strings compared by subsequences with gaps."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from mercer.data.objects import Objects
from mercer.data.strings import Strings
from mercer.engine.tiles import Array
from mercer.kernels.objects import Packed, PairKernel
from mercer.kernels.parameters import number, whole
from mercer.loops.strings import subsequence_slope, subsequences


@dataclass(frozen=True, repr=False)
class Subsequence(PairKernel):
    """``sum_l sum_u sum_{i: u = x[i]} sum_{j: u = z[j]} decay^(span(i) + span(j))`` over strings u of l symbols.

    The first sum is over ``l = 1, ..., length``; a subsequence of symbols at places ``i_1 < ... < i_l`` spans
    ``i_l - i_1 + 1`` symbols.

    Parameters
    ----------
    length : int, default=4
        Symbols in the longest subsequence.
    decay : float, default=0.5
        What each symbol that is spanned counts.

    Notes
    -----
    Lodhi, Saunders, Shawe-Taylor, Cristianini and Watkins (2002), "Text classification using string kernels".

    Examples
    --------
    >>> float(Subsequence(2, decay=0.5)(["cat", "car"])[0, 1])  # c, a, and ca
    0.5625
    """

    length: int = 4
    decay: float = number(0.5)

    rows_of: ClassVar[type[Objects]] = Strings

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "length", whole("Subsequence", "length", self.length, "a whole number above 0"))

    def _pack(self, objects: Strings) -> tuple[np.ndarray, np.ndarray]:
        return objects.codes()

    def _compare(self, left: Packed, right: Packed, out: Array, symmetric: bool) -> None:
        weights = np.ones(self.length)
        subsequences(*left.store, left.index, *right.store, right.index, self.decay, weights, symmetric, out)

    def _pull_pairs(self, left: Packed, right: Packed, weights: Array) -> Array:
        ones = np.ones(self.length)
        return np.array([
            subsequence_slope(*left.store, left.index, *right.store, right.index, self.decay, ones, weights)
        ])  # fmt: skip
