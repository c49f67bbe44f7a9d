"""Strings compared by the substrings that they share."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from mercer._types import Array
from mercer.data.objects import Objects
from mercer.data.strings import Strings
from mercer.engine import memory, threads
from mercer.kernels.base import Searched
from mercer.kernels.features import FeatureKernel, Features
from mercer.kernels.parameters import number, whole
from mercer.kernels.string.pairs import advice_on_short
from mercer.kernels.string.weights import check_weights
from mercer.loops.strings import hash_windows

# Hash, level and count of a substring, and its entry in the table of features.
_WINDOW_BYTES = 40
# Each length has a weight of its own, whether there are strings that long or not.
_MOST_LENGTHS = 10**6


@dataclass(frozen=True, repr=False)
class Spectrum(FeatureKernel):
    """``k(x, z) = sum_u count_u(x) count_u(z)`` over all strings ``u`` of ``length`` symbols.

    Shorter strings have no features, so the kernel is 0 there.

    Parameters
    ----------
    length : int, default=3
        Symbols in a substring.
    tuning : tuple, optional
        Set by :meth:`fixed` and :meth:`bounded`.

    Raises
    ------
    ParameterError
        If ``length`` is not a whole number above 0.
    DataError
        When evaluated, if a row is not a string.

    Notes
    -----
    Leslie, Eskin and Noble (2002), "The spectrum kernel: a string kernel for SVM protein classification". Substrings
    are identified by hashes of 64 bits: two of a million different ones collide with a probability of 3e-8.

    Examples
    --------
    >>> Spectrum(2)(["abab", "ab", "b"]).tolist()
    [[5.0, 2.0, 0.0], [2.0, 1.0, 0.0], [0.0, 0.0, 0.0]]
    """

    length: int = 3

    rows_of: ClassVar[type[Objects]] = Strings
    searched: ClassVar[Searched] = {"length": (1, 2, 3, 4, 5, 6)}

    def __post_init__(self) -> None:
        super().__post_init__()
        length = whole("Spectrum", "length", self.length, "a whole number above 0")
        object.__setattr__(self, "length", length)

    def advice_on_zeros(self, rows: Objects) -> str:
        return advice_on_short(rows, self.length, Spectrum)

    def _features(self, objects: Strings) -> Features:
        return _windows(objects, self.length, self.length)


@dataclass(frozen=True, repr=False)
class BlendedSpectrum(FeatureKernel):
    """``k(x, z) = sum_l w_l decay^(2 l) sum_u count_u(x) count_u(z)`` over the strings ``u`` of l symbols.

    The first sum is over ``l = 1, ..., length``.

    Parameters
    ----------
    length : int, default=3
        Symbols in the longest substring.
    decay : float, default=1.0
        The weight of each symbol of a substring.
    weights : list of float, default=()
        The weight ``w_l`` of each length from 1 to ``length``, at least 0; positive ones are tunable. By default all
        are 1. Weights and ``decay`` are redundant: to learn weights, fix the other with ``.fixed("decay")``.
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
    Shawe-Taylor and Cristianini (2004), "Kernel methods for pattern analysis", section 11.2.

    Examples
    --------
    >>> BlendedSpectrum(2)(["abab", "ab", "b"]).tolist()
    [[13.0, 6.0, 2.0], [6.0, 3.0, 1.0], [2.0, 1.0, 1.0]]
    >>> BlendedSpectrum(2, weights=[0, 4])(["abab", "ab"]).tolist()
    [[20.0, 8.0], [8.0, 4.0]]
    """

    length: int = 3
    decay: float = number(1.0)
    weights: tuple[float, ...] = number((), low=0.0, closed=True, per_column=True)

    rows_of: ClassVar[type[Objects]] = Strings
    searched: ClassVar[Searched] = {"length": (1, 2, 3, 4, 5, 6)}

    def __post_init__(self) -> None:
        super().__post_init__()
        length = whole("BlendedSpectrum", "length", self.length, "a whole number above 0", high=_MOST_LENGTHS)
        object.__setattr__(self, "length", length)
        check_weights("BlendedSpectrum", self.weights, self.length)

    def _packing(self) -> Hashable:
        return type(self), self.length

    @property
    def _powers(self) -> Array:
        return self.decay ** (2.0 * np.arange(1, self.length + 1))

    def _level_weights(self) -> Array:
        return self._powers * self.weights if self.weights else self._powers

    def _level_slopes(self) -> Array:
        by_decay = self._level_weights() * 2.0 * np.arange(1, self.length + 1) / self.decay
        return np.vstack([by_decay, np.diag(self._powers)]) if self.weights else by_decay[None, :]

    def _features(self, objects: Strings) -> Features:
        return _windows(objects, 1, self.length)


def _windows(objects: Strings, shortest: int, longest: int) -> Features:
    """Hashes of all substrings of ``shortest`` to ``longest`` symbols."""
    codes, starts = objects.codes()
    sizes = np.diff(starts)
    windows = np.zeros_like(sizes)
    # No substring is longer than the longest string.
    longest = max(min(longest, int(sizes.max())), shortest)
    for length in range(shortest, longest + 1):
        windows += np.maximum(sizes - length + 1, 0)
    begins = np.concatenate([np.zeros(1, np.int64), np.cumsum(windows)])
    memory.require(
        _WINDOW_BYTES * int(begins[-1]),
        f"the {begins[-1]} substrings of {len(objects)} strings",
        "Raise the budget with mercer.config(memory=...), take a shorter length or fewer strings.",
    )
    ids, levels = np.empty(begins[-1], np.uint64), np.empty(begins[-1], np.int64)
    steps = float(longest) * len(ids)
    threads.interruptible(hash_windows, (codes, starts, shortest, longest, ids, levels), steps)
    return Features(ids, np.ones(len(ids)), begins, levels if longest > shortest else None)
