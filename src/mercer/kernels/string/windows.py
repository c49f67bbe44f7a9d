"""Strings compared by windows that agree in most of their symbols."""

from __future__ import annotations

import abc
import functools
import itertools
import math
from collections.abc import Hashable
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from mercer._errors import DataError, ParameterError
from mercer._types import Array
from mercer.data.objects import Objects, short
from mercer.data.strings import Strings
from mercer.engine import threads
from mercer.kernels.base import Searched
from mercer.kernels.objects import Packed, PairKernel
from mercer.kernels.pairs import Pairs
from mercer.kernels.parameters import as_float, whole
from mercer.kernels.string.pairs import advice_on_short, pairs_of_symbols, side
from mercer.loops.strings import StringSide
from mercer.loops.windows import WindowTable, windows, windows_self

# Agreements are counted in bytes.
_LONGEST = 255

Symbols = tuple[NDArray[np.integer], NDArray[np.int64]]


def narrow(objects: Strings) -> Symbols:
    """The symbols as bytes where they fit, for which loops are four times as fast, else in 32 bits."""
    codes, starts = objects.codes()
    fits = codes.max(initial=0) < 256
    return codes.astype(np.uint8 if fits else np.int32), starts


def alike(left: Packed, right: Packed) -> tuple[StringSide, StringSide]:
    """Both sides, with the same number of bits for a symbol."""
    one, other = side(left), side(right)
    wide = np.promote_types(one.symbols.dtype, other.symbols.dtype)
    return (
        one._replace(symbols=one.symbols.astype(wide, copy=False)),
        other._replace(symbols=other.symbols.astype(wide, copy=False)),
    )


@dataclass(frozen=True, repr=False)
class _Windows(PairKernel):
    """Base of sums over all pairs of windows of a number that only depends on how many of their symbols agree."""

    length: int = 8

    rows_of: ClassVar[type[Objects]] = Strings

    def __post_init__(self) -> None:
        super().__post_init__()
        name, allowed = type(self).__name__, f"a whole number from 1 to {_LONGEST}"
        length = whole(name, "length", self.length, allowed)
        if length > _LONGEST:
            raise ParameterError(f"{name}: length must be {allowed}, but is {length}.")
        object.__setattr__(self, "length", length)

    @abc.abstractmethod
    def _table(self) -> list[int]:
        """The contribution of a pair of windows, from the fewest agreements where it is not 0 to all."""

    @abc.abstractmethod
    def _of_length(self, length: int) -> _Windows:
        """The same kernel with other windows, of which about the same share may differ."""

    def advice_on_zeros(self, rows: Objects) -> str:
        return advice_on_short(rows, self.length, self._of_length)

    def _packing(self) -> Hashable:
        return "narrow"

    def _pack(self, objects: Strings) -> Symbols:
        return narrow(objects)

    @property
    def _counts(self) -> WindowTable:
        # Counts beyond all floats are infinite, and so values that are an error.
        with np.errstate(invalid="ignore"):
            return WindowTable(self.length, np.diff([as_float(count) for count in self._table()], prepend=0.0))

    def _compare(self, left: Packed, right: Packed, out: Array, symmetric: bool) -> None:
        arguments = *alike(left, right), self._counts, symmetric, out
        threads.interruptible(windows, arguments, pairs_of_symbols(left, right))

    def _compare_self(self, rows: Packed) -> Array:
        out = np.empty(len(rows))
        arguments = side(rows), self._counts, out
        threads.interruptible(windows_self, arguments, pairs_of_symbols(rows, rows))
        return out


@dataclass(frozen=True, repr=False)
class GappyKmers(_Windows):
    """``k(x, z) = sum_P sum_u count_{u,P}(x) count_{u,P}(z)`` over windows in which ``wildcards`` positions may differ.

    ``P`` runs over all choices of ``length - wildcards`` of the ``length`` positions of a window, and
    ``count_{u,P}`` counts the windows with the symbols ``u`` at these positions.

    Parameters
    ----------
    length : int, default=8
        Symbols in a window, up to 255.
    wildcards : int, default=4
        Positions that are ignored in each choice, from 0 to ``length - 1``.
    tuning : tuple, optional
        Set by :meth:`fixed` and :meth:`bounded`.

    Raises
    ------
    ParameterError
        If ``length`` or ``wildcards`` is not a whole number in its range.
    DataError
        When evaluated, if a row is not a string.

    Notes
    -----
    The gapped k-mers of Ghandi, Lee, Mohammad-Noori and Beer (2014), with all pairs of windows exactly; the kernel of
    Blakely et al. (2020), "FastSK: fast sequence analysis with gapped string kernels", where ``length`` is g and
    ``wildcards`` is m. A pair of windows with a agreements counts ``a`` over ``length - wildcards``, so that a pair of
    strings takes ``len(x) * len(z)`` steps for every number of wildcards.

    Examples
    --------
    >>> GappyKmers(3, wildcards=1)(["cat", "car", "dog"]).tolist()
    [[3.0, 1.0, 0.0], [1.0, 3.0, 0.0], [0.0, 0.0, 3.0]]
    """

    wildcards: int = 4

    searched: ClassVar[Searched] = {"length": (5, 6, 8, 10, 12)}

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "wildcards", _below("GappyKmers", "wildcards", self.wildcards, self.length))

    def _of_length(self, length: int) -> GappyKmers:
        return replace(self, length=length, wildcards=self.wildcards * length // self.length)

    def _table(self) -> list[int]:
        positions = self.length - self.wildcards
        return [math.comb(agreements, positions) for agreements in range(positions, self.length + 1)]


@dataclass(frozen=True, repr=False)
class Mismatch(_Windows):
    """``k(x, z) = sum_u count_u(x) count_u(z)`` where a window counts for all ``u`` that differ in a few symbols.

    A window of ``length`` symbols counts once for each string of ``length`` symbols of the alphabet that differs
    from it in at most ``mismatches`` positions.

    Parameters
    ----------
    length : int, default=8
        Symbols in a window, up to 255.
    mismatches : int, default=1
        Positions where a window may differ, from 0 to ``length - 1``.
    alphabet : int, default=20
        Number of symbols: 20 for proteins, 4 for DNA.
    tuning : tuple, optional
        Set by :meth:`fixed` and :meth:`bounded`.

    Raises
    ------
    ParameterError
        If ``length`` or ``mismatches`` is not a whole number in its range, or ``alphabet`` is below 2.
    DataError
        When evaluated, if a row is not a string, or there are more symbols than ``alphabet``.

    Notes
    -----
    Leslie, Eskin, Cohen, Weston and Noble (2004), "Mismatch string kernels for discriminative protein
    classification". The contribution of a pair of windows depends on the number of positions where they agree, and is
    summed over all pairs, so that a pair of strings takes ``len(x) * len(z)`` steps for every number of mismatches.

    Examples
    --------
    >>> Mismatch(2, mismatches=1, alphabet=3)(["ab", "ac", "ca"]).tolist()  # aa, ab, ac, bb, cb count for ab
    [[5.0, 3.0, 2.0], [3.0, 5.0, 2.0], [2.0, 2.0, 5.0]]
    """

    mismatches: int = 1
    alphabet: int = 20

    searched: ClassVar[Searched] = {"length": (3, 4, 5, 6, 8)}

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "mismatches", _below("Mismatch", "mismatches", self.mismatches, self.length))
        alphabet = whole("Mismatch", "alphabet", self.alphabet, "a whole number above 1", low=2)
        object.__setattr__(self, "alphabet", alphabet)

    def _packing(self) -> Hashable:
        return "narrow", self.alphabet

    def _pack(self, objects: Strings) -> Symbols:
        self._check(len(_distinct(objects)), "the strings have")
        return narrow(objects)

    def _fill(self, pairs: Pairs, out: Array) -> None:
        one, other = (_distinct(side.root.objects(Strings)) for side in (pairs.left, pairs.right))
        if one is not other:
            self._check(len(np.union1d(one, other)), "the strings of both sides together have")
        super()._fill(pairs, out)

    def _check(self, symbols: int, what: str) -> None:
        if symbols > self.alphabet:
            raise DataError(f"{what} {symbols} different symbols, but {self!r} is for an alphabet of {self.alphabet}.")

    def _of_length(self, length: int) -> Mismatch:
        return replace(self, length=length, mismatches=self.mismatches * length // self.length)

    def _table(self) -> list[int]:
        return _shared_neighbours(self.length, self.mismatches, self.alphabet)


def _distinct(objects: Any) -> NDArray[np.int64]:
    """The symbols that occur in the strings."""
    symbols: NDArray[np.int64] = objects.keep("distinct", lambda: np.unique(objects.codes()[0]))
    return symbols


def _below(kernel: str, name: str, value: int, length: int) -> int:
    allowed = f"a whole number from 0 to length - 1 = {length - 1}"
    checked = whole(kernel, name, value, allowed, low=0)
    if checked >= length:
        raise ParameterError(f"{kernel}: {name} must be {allowed}, but is {short(value)}.")
    return checked


@functools.lru_cache
def _shared_neighbours(length: int, mismatches: int, alphabet: int) -> list[int]:
    """Strings within ``mismatches`` of both of two strings, by how many of their places agree.

    From the fewest places where there are any, ``length - 2 * mismatches``, to all.
    """
    tails = [_tails(m, alphabet - 2) for m in range(mismatches + 1)]
    return [
        _neighbours(length - other, other, mismatches, alphabet, tails)
        for other in range(min(length, 2 * mismatches), -1, -1)
    ]


def _tails(m: int, weight: int) -> list[int]:
    """``sum_{j >= k} C(m, j) weight^(m - j)`` for k from 0 to m + 1."""
    terms = [math.comb(m, j) * weight ** (m - j) for j in range(m, -1, -1)]
    return [*reversed([*itertools.accumulate(terms)]), 0]


def _neighbours(same: int, other: int, mismatches: int, alphabet: int, tails: list[list[int]]) -> int:
    """Strings within ``mismatches`` of both of two strings that agree in ``same`` places and differ in ``other``.

    Where they agree, t places differ from both. Where they do not, let m places differ from the string that is further
    away: other - m are as in it, and at least as many, j, as in the nearer one. Sums over j are tails of binomial ones.
    """
    within: list[int] = []
    for m in range(min(other, mismatches) + 1):
        i = other - m
        exactly = math.comb(other, i) * (tails[m][i] + tails[m][i + 1]) if i <= m else 0
        within.append(exactly + (within[-1] if within else 0))
    return sum(
        math.comb(same, t) * (alphabet - 1) ** t * within[min(mismatches - t, other)]
        for t in range(min(same, mismatches) + 1)
    )
