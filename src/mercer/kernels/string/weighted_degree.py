"""Strings whose positions correspond, compared by what they share at the same positions."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from mercer._types import Array
from mercer.data.objects import Objects
from mercer.data.strings import Strings
from mercer.engine import threads
from mercer.kernels.base import Searched
from mercer.kernels.objects import Packed, PairKernel
from mercer.kernels.parameters import number, whole
from mercer.kernels.string.pairs import longest, symbols
from mercer.kernels.string.weights import check_weights
from mercer.kernels.string.windows import Symbols, alike, narrow
from mercer.loops.windows import degree_slopes, degrees


@dataclass(frozen=True, repr=False)
class WeightedDegree(PairKernel):
    """``k(x, z) = sum_l w_l sum_i [x[i:i+l] == z[i:i+l]]``: substrings at the same positions of both strings.

    The first sum is over ``l = 1, ..., degree``. With a ``shift``, substrings at positions that differ by
    ``s = 1, ..., shift`` have ``1 / (2 (s + 1))`` times the weight. If the lengths differ, the end of the longer string
    has no counterpart.

    Parameters
    ----------
    degree : int, default=5
        Symbols in the longest substring.
    shift : int, default=0
        The largest difference of the positions.
    weights : list of float, default=()
        The weight ``w_l`` of each length from 1 to ``degree``, at least 0; positive ones are tunable. By default
        ``w_l = 2 (degree - l + 1) / (degree (degree + 1))``, which is fixed.
    tuning : tuple, optional
        Set by :meth:`fixed` and :meth:`bounded`.

    Raises
    ------
    ParameterError
        If ``degree`` is not a whole number above 0, ``shift`` is not a whole number of at least 0, or ``weights`` does
        not have one entry per length.
    DataError
        When evaluated, if a row is not a string.

    Notes
    -----
    Sonnenburg, Raetsch and Schoelkopf (2005), "Large scale genomic sequence SVM classifiers"; with shifts Raetsch,
    Sonnenburg and Schoelkopf (2005), "RASE: recognition of alternatively spliced exons in C. elegans". It is positive
    semi-definite also with shifts, since ``1/2 + sum_{s=1..n} cos(s t) / (s + 1) >= 0`` for every n and t (Rogosinski
    and Szegoe, 1928).

    Examples
    --------
    >>> WeightedDegree(2)(["gattaca", "gattica", "attacag"]).round(3).tolist()
    [[6.667, 5.333, 0.667], [5.333, 6.667, 0.667], [0.667, 0.667, 6.667]]
    >>> WeightedDegree(2, shift=1)(["gattaca", "attacag"]).round(3).tolist()
    [[7.0, 2.25], [2.25, 7.0]]
    """

    degree: int = 5
    shift: int = 0
    weights: tuple[float, ...] = number((), low=0.0, closed=True, per_column=True)

    rows_of: ClassVar[type[Objects]] = Strings
    searched: ClassVar[Searched] = {"degree": (1, 2, 3, 5, 8)}
    side: ClassVar[int] = 128

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "degree", whole("WeightedDegree", "degree", self.degree, "a whole number above 0"))
        shift = whole("WeightedDegree", "shift", self.shift, "a whole number from 0", low=0)
        object.__setattr__(self, "shift", shift)
        check_weights("WeightedDegree", self.weights, self.degree)

    def _packing(self) -> Hashable:
        return "narrow"

    def _pack(self, objects: Strings) -> Symbols:
        return narrow(objects)

    def _weights(self, left: Packed, right: Packed) -> Array:
        """The weights of the lengths that occur on both sides: ``degree`` may be far beyond all strings."""
        count, degree = min(self.degree, longest(left), longest(right)), self.degree
        if self.weights:
            return np.array(self.weights[:count])
        return 2.0 * (degree - np.arange(count)) / (float(degree) * (degree + 1))

    def _shift(self, left: Packed, right: Packed) -> int:
        """The largest shift at which the strings overlap."""
        return min(self.shift, max(longest(left), longest(right)))

    def _steps(self, left: Packed, right: Packed) -> float:
        return symbols(left) * len(right.index) * (2.0 * self._shift(left, right) + 1.0)

    def _compare(self, left: Packed, right: Packed, out: Array, symmetric: bool) -> None:
        settings = self._shift(left, right), self._weights(left, right), symmetric
        threads.interruptible(degrees, (*alike(left, right), *settings, out), self._steps(left, right))

    def _pull_pairs(self, left: Packed, right: Packed, weights: Array) -> Array:
        slopes = np.zeros(len(self._weights(left, right)))
        arguments = (*alike(left, right), self._shift(left, right), weights, slopes)
        threads.interruptible(degree_slopes, arguments, self._steps(left, right))
        by_number = np.zeros(len(self.weights))
        by_number[: len(slopes)] = slopes[: len(by_number)]
        return by_number
