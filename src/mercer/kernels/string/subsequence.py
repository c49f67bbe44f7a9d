"""Strings compared by subsequences with gaps."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from mercer._types import Array
from mercer.data.objects import Objects
from mercer.data.strings import Strings
from mercer.engine import threads
from mercer.kernels.base import Searched
from mercer.kernels.objects import Packed, PairKernel
from mercer.kernels.parameters import number, whole
from mercer.kernels.string.pairs import longest, pairs_of_symbols, side
from mercer.kernels.string.weights import check_weights
from mercer.loops.subsequences import SubsequenceWeights, subsequence_slopes, subsequences, subsequences_self


@dataclass(frozen=True, repr=False)
class Subsequence(PairKernel):
    """``sum_l w_l sum_u sum_{i: u = x[i]} sum_{j: u = z[j]} decay^(span(i) + span(j))`` over strings u of l symbols.

    The first sum is over ``l = 1, ..., length``; a subsequence of symbols at places ``i_1 < ... < i_l`` spans
    ``i_l - i_1 + 1`` symbols.

    Parameters
    ----------
    length : int, default=4
        Symbols in the longest subsequence.
    decay : float, default=0.5
        The weight of each spanned symbol.
    weights : list of float, default=()
        The weight ``w_l`` of each length from 1 to ``length``, at least 0; positive ones are tunable. By default all
        are 1. ``[0, 0, 1]`` is the kernel of Lodhi et al. for subsequences of three symbols alone.
    tuning : tuple, optional
        Set by :meth:`fixed` and :meth:`bounded`.

    Raises
    ------
    ParameterError
        If ``length`` is not a whole number above 0, ``decay`` not above 0, or ``weights`` does not have one entry per
        length.
    DataError
        When evaluated, if a row is not a string.

    Notes
    -----
    Lodhi, Saunders, Shawe-Taylor, Cristianini and Watkins (2002), "Text classification using string kernels". A pair
    takes ``length * len(x) * len(z)`` steps.

    Examples
    --------
    >>> float(Subsequence(2, decay=0.5)(["cat", "car"])[0, 1])  # c, a, and ca
    0.5625
    >>> float(Subsequence(2, decay=0.5, weights=[0, 1])(["cat", "car"])[0, 1])  # ca
    0.0625
    """

    length: int = 4
    decay: float = number(0.5)
    weights: tuple[float, ...] = number((), low=0.0, closed=True, per_column=True)

    rows_of: ClassVar[type[Objects]] = Strings
    searched: ClassVar[Searched] = {"length": (2, 3, 4, 5, 6)}

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "length", whole("Subsequence", "length", self.length, "a whole number above 0"))
        check_weights("Subsequence", self.weights, self.length)

    def _pack(self, objects: Strings) -> tuple[np.ndarray, np.ndarray]:
        return objects.codes()

    def _weights(self, left: Packed, right: Packed) -> SubsequenceWeights:
        """The weights of the lengths that occur on both sides: ``length`` may be far beyond all strings."""
        count = min(self.length, longest(left), longest(right))
        return SubsequenceWeights(self.decay, np.array(self.weights[:count]) if self.weights else np.ones(count))

    def _compare(self, left: Packed, right: Packed, out: Array, symmetric: bool) -> None:
        threads.interruptible(subsequences, (*self._both(left, right), symmetric, out), self._steps(left, right))

    def _both(self, left: Packed, right: Packed) -> tuple[Any, ...]:
        return side(left), side(right), _by_length(right), self._weights(left, right)

    def _steps(self, left: Packed, right: Packed) -> float:
        return len(self._weights(left, right).lengths) * pairs_of_symbols(left, right)

    def _compare_self(self, rows: Packed) -> Array:
        out = np.empty(len(rows))
        arguments = side(rows), self._weights(rows, rows), out
        threads.interruptible(subsequences_self, arguments, self._steps(rows, rows))
        return out

    def _pull_pairs(self, left: Packed, right: Packed, weights: Array) -> Array:
        slopes = np.zeros(1 + len(self._weights(left, right).lengths))
        arguments = *self._both(left, right), weights, slopes
        threads.interruptible(subsequence_slopes, arguments, self._steps(left, right))
        by_number = np.zeros(1 + len(self.weights))
        by_number[: len(slopes)] = slopes[: len(by_number)]
        return by_number


def _by_length(rows: Packed) -> np.ndarray:
    """The rows from short to long, so that rows of similar length are compared together."""
    starts = rows.store[1]
    order: np.ndarray = np.argsort(starts[rows.index + 1] - starts[rows.index], kind="stable")
    return order
