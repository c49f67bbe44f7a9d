"""Strings compared by the substrings that they share."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from mercer.data.objects import Objects
from mercer.data.strings import Strings
from mercer.kernels.features import FeatureKernel, Features
from mercer.kernels.parameters import whole
from mercer.loops.strings import hash_windows


@dataclass(frozen=True, repr=False)
class Spectrum(FeatureKernel):
    """``k(x, z) = sum_u count_u(x) count_u(z)`` over all strings ``u`` of ``length`` symbols.

    Strings that are shorter have no features, so that the kernel is 0 there.

    Parameters
    ----------
    length : int, default=3
        Symbols in a substring.

    Raises
    ------
    ParameterError
        If ``length`` is no whole number above 0.
    DataError
        When evaluated, if a row is no string.

    Notes
    -----
    Leslie, Eskin and Noble (2002), "The spectrum kernel: a string kernel for SVM protein classification". Substrings
    are told apart by hashes of 64 bits: two of a million different ones collide with a probability of 3e-8.

    Examples
    --------
    >>> Spectrum(2)(["abab", "ab", "b"]).tolist()
    [[5.0, 2.0, 0.0], [2.0, 1.0, 0.0], [0.0, 0.0, 0.0]]
    """

    length: int = 3

    rows_of: ClassVar[type[Objects]] = Strings

    def __post_init__(self) -> None:
        super().__post_init__()
        length = whole("Spectrum", "length", self.length, "a whole number above 0")
        object.__setattr__(self, "length", length)

    def _features(self, objects: Strings) -> Features:
        codes, starts = objects.codes()
        windows = np.maximum(np.diff(starts) - self.length + 1, 0)
        begins = np.concatenate([np.zeros(1, np.int64), np.cumsum(windows)])
        ids = np.empty(begins[-1], np.uint64)
        hash_windows(codes, starts, self.length, ids)
        return Features(ids, np.ones(len(ids)), begins)
