"""Series compared as paths, by their signatures: all words up to a length, or all words."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mercer._errors import DataError, KernelValueError
from mercer._types import Array
from mercer.data.objects import Objects
from mercer.data.series import Series
from mercer.engine import memory, settings, threads
from mercer.engine.tiles import TILE
from mercer.kernels.base import Searched
from mercer.kernels.inputs import Rows
from mercer.kernels.objects import Packed, PairKernel
from mercer.kernels.parameters import number, whole
from mercer.kernels.series.packed import PackedSeries, channels_differ, compare, packed, side
from mercer.kernels.series.width import known, median_distance
from mercer.loops.signatures import Paths, Products, signatures, whole_signatures

# Of a loop, for two pieces of paths; more where pieces are long.
_STEPS = 4096.0
_ROUNDING = float(np.finfo(float).eps)
# The largest relative error that is accepted.
_ERROR = 1e-6


class _Words(NamedTuple):
    """Signatures at scale 1, (n, words), and of each word its length and how often it holds the time."""

    values: NDArray[np.float64]
    lengths: NDArray[np.float64]
    times: NDArray[np.float64]
    channels: int


@dataclass(frozen=True, repr=False)
class Signature(PairKernel):
    """``k(x, z) = sum_{w: |w| <= level} scale^(2 |w|) S_w(x) S_w(z)`` over words w of channels.

    ``S_w(x)`` is the iterated integral ``int_{t_1 < ... < t_k} dx_{w_1}(t_1) ... dx_{w_k}(t_k)`` along the path in
    straight lines through the points of x; that of the empty word is 1. It depends on the shape of the path, and not on
    its starting point. With ``time=0`` it does not depend on the speed either: a repeated value changes nothing.

    Parameters
    ----------
    level : int, default=3
        Length of the longest word. There are about ``channels^level`` words, and each series takes a number for each.
    scale : float, default=1.0
        The factor of the values. Paths should then be of size near one: words of length k are of size
        ``(length of the path)^k / k!``.
    time : float, default=1.0
        The time, from 0 at the first point to ``time`` at the last, is an additional channel. With 0 there is none;
        a path in one channel then has no shape, because its words depend only on its two ends.
    tuning : tuple, optional
        Set by :meth:`fixed` and :meth:`bounded`.

    Raises
    ------
    ParameterError
        If ``level`` is not a whole number above 0, ``scale`` is not above 0, or ``time`` is below 0.
    DataError
        When evaluated, if a row is not a series, or the numbers of channels differ.
    MemoryBudgetError
        When evaluated, if there are too many words.
    KernelValueError
        When evaluated, if values overflow.

    Notes
    -----
    Kiraly and Oberhauser (2019), "Kernels for sequentially ordered data"; Lyons (1998), "Differential equations driven
    by rough signals". Chevyrev and Kormilitzin (2016), "A primer on the signature method in machine learning", on time
    as a channel.

    Examples
    --------
    The signature of a straight line is an exponential: ``k = sum_n <v, w>^n / n!^2``.

    >>> float(Signature(2, time=0.0)([[[0.0, 0.0], [1.0, 2.0]]], [[[5.0, 5.0], [6.0, 6.0]]])[0, 0])
    6.25
    """

    level: int = 3
    scale: float = number(1.0)
    time: float = number(1.0, closed=True)

    rows_of: ClassVar[type[Objects]] = Series
    searched: ClassVar[Searched] = {"level": (2, 3, 4)}
    side: ClassVar[int] = TILE

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "level", whole("Signature", "level", self.level, "a whole number above 0"))

    def _packing(self) -> Hashable:
        return "signature", self.level, self.time > 0

    def _pack(self, objects: Series) -> _Words:
        store, timed = packed(objects), self.time > 0
        d = store.channels + timed
        words = _count_words(d, self.level)
        # Each thread has a copy of those of a tile.
        n_rows = len(objects) + (len(objects) if len(objects) <= TILE else settings.resolve_jobs(None) * TILE)
        memory.require(
            8 * words * n_rows,
            f"the signatures of {len(objects)} series, {words} words each,",
            "Lower the level, or use mercer.kernels.SignaturePDE, which includes words of every length and stores "
            "none.",
        )
        values = np.empty((len(objects), words))
        rows = side(Packed(store, np.arange(len(objects))), store)
        threads.interruptible(
            signatures, (rows, timed, self.level, values), float(store.lengths.sum()) * self.level * words
        )
        lengths = np.repeat(np.arange(self.level + 1.0), [d**k for k in range(self.level + 1)])
        times = np.concatenate([_times(d, k) if timed else np.zeros(d**k) for k in range(self.level + 1)])
        return _Words(values, lengths, times, store.channels)

    def _weights(self, words: _Words) -> Array:
        return np.square(self.scale**words.lengths * np.where(words.times > 0, self.time, 1.0) ** words.times)

    def _compare(self, left: Packed, right: Packed, out: Array, symmetric: bool) -> None:
        one, other = left.store, right.store
        if one.channels != other.channels:
            raise DataError(channels_differ(one.channels, other.channels))
        # Values that overflow are infinite, which raises an error later.
        with np.errstate(over="ignore", invalid="ignore"):
            np.matmul(_picked(one, left) * self._weights(one), _picked(other, right).T, out=out)

    def _compare_self(self, rows: Packed) -> Array:
        with np.errstate(over="ignore", invalid="ignore"):
            return np.square(rows.store.values[rows.index]) @ self._weights(rows.store)

    def _pull_pairs(self, left: Packed, right: Packed, weights: Array) -> Array:
        pulled = weights @ right.store.values[right.index]
        return self._slopes(left.store, np.einsum("iw,iw->w", left.store.values[left.index], pulled))

    def _pull_self(self, rows: Packed, weights: Array) -> Array:
        return self._slopes(rows.store, weights @ np.square(rows.store.values[rows.index]))

    def _slopes(self, words: _Words, by_word: Array) -> Array:
        """From the derivatives by the weights of the words."""
        weighted = 2.0 * by_word * self._weights(words)
        by_time = weighted @ words.times / self.time if self.time > 0 else 0.0
        return np.array([weighted @ words.lengths / self.scale, by_time])


def _picked(words: _Words, rows: Packed) -> NDArray[np.float64]:
    """The signatures of some rows; no copy of those that stand one after the other."""
    index = rows.index
    if len(index) and (np.diff(index) == 1).all():
        return words.values[index[0] : index[-1] + 1]
    return words.values[index]


def _count_words(d: int, level: int) -> int:
    """How many words there are; beyond 2^60 some number above it.

    >>> _count_words(2, 3), _count_words(1, 10**6), _count_words(3, 10**6) > 2**60
    (15, 1000001, True)
    """
    if d == 1:
        return level + 1
    words = size = 1
    for _ in range(level):
        size *= d
        words += size
        if words > 2**60:
            break
    return words


def _times(d: int, length: int) -> NDArray[np.float64]:
    """How often the last channel is in each word."""
    counts = np.zeros(1)
    for _ in range(length):
        counts = (counts[:, None] + np.r_[np.zeros(d - 1), 1.0]).ravel()
    return counts


@dataclass(frozen=True, repr=False)
class SignaturePDE(PairKernel):
    """The inner product of whole signatures, words of every length: ``Signature(level)`` with level to infinity.

    It is the last value of the solution of ``d^2 k / ds dt = scale^2 <x'(s), z'(t)> k`` with 1 on both axes. With
    ``length_scale`` the paths go through the feature space of a Gaussian, straight from point to point. For paths in
    straight lines the solution is a power series in every cell, and is computed to rounding.

    Parameters
    ----------
    scale : float, default=1.0
        The factor of the values or, with ``length_scale``, of the features.
    length_scale : float or "median", default=0.0
        That of the Gaussian ``exp(-|x_i - z_j|^2 / (2 length_scale^2))`` between points, with 0 the points themselves.
        ``"median"`` is the median distance between points of the series, without the time, of the training rows of a
        learner, or of the rows passed to ``with_data``.
    time : float, default=1.0
        The time, from 0 to ``time``, is an additional channel; see :class:`Signature`. With 0 there is no such channel.
    tuning : tuple, optional
        Set by :meth:`fixed` and :meth:`bounded`.

    Raises
    ------
    ParameterError
        If ``scale`` is not above 0, or ``length_scale`` or ``time`` is below 0.
    DataError
        When evaluated, if a row is not a series, or the numbers of channels differ.
    KernelValueError
        When evaluated, if a path has a step longer than 40, or goes so far that rounding may change values by more
        than 1e-6 of the sizes of the signatures: those grow like the exponential of the lengths of paths.

    Notes
    -----
    Salvi, Cass, Foster, Lyons and Yang (2021), "The signature kernel is the solution of a Goursat PDE".
    Their finite differences are not used: with pieces cut into up to eight, Gram matrices had negative eigenvalues
    of the size of the largest. The equation itself magnifies rounding for a path that goes far and returns. Where
    values on the way are so large that this may matter, the products of the paths with themselves are computed again
    on finer cells, and must agree.

    Examples
    --------
    >>> line = [[[0.0, 0.0], [1.0, 2.0]]], [[[5.0, 5.0], [6.0, 6.0]]]
    >>> float(SignaturePDE(time=0.0)(*line)[0, 0].round(9)), float(Signature(12, time=0.0)(*line)[0, 0].round(9))
    (7.158996537, 7.158996537)
    """

    scale: float = number(1.0)
    length_scale: float | str = number(0.0, closed=True, rules=("median",))
    time: float = number(1.0, closed=True)

    rows_of: ClassVar[type[Objects]] = Series

    @property
    def _width(self) -> float:
        return known("SignaturePDE", "length_scale", self.length_scale)

    def _numbers_of(self, rows: Rows) -> dict[str, float]:
        return {"length_scale": median_distance(rows.objects(Series))}

    def _packing(self) -> Hashable:
        return "series"

    def _pack(self, objects: Series) -> PackedSeries:
        return packed(objects)

    def _run(self, left: Packed, right: Packed, symmetric: bool, slope: int = -1, refinement: int = 0) -> Products:
        paths = Paths(self.scale, self._width, self.time, refinement)
        one, other = side(left, left.store), side(right, right.store)
        n, m = (int(rows.lengths[rows.index].max(initial=0)) for rows in (one, other))
        # The part below the diagonal of a symmetric block is not written.
        products = Products(*np.zeros((2, len(left), len(right))))
        with memory.reserve(24 * n * m, f"the pieces of paths of {n} and {m} points"):
            compare(whole_signatures, one, other, paths, symmetric, slope, products, steps_each=_STEPS)
        return products

    def _compare(self, left: Packed, right: Packed, out: Array, symmetric: bool) -> None:
        out[...], largest = self._run(left, right, symmetric)
        # What rounding does to the largest value may grow by as much again on the rest of the way.
        with np.errstate(over="ignore", invalid="ignore"):
            doubtful = ~(_ROUNDING * largest**2 <= _ERROR * np.maximum(1.0, np.abs(out)))
        if not (self._converges(left[doubtful.any(axis=1)]) and self._converges(right[doubtful.any(axis=0)])):
            raise KernelValueError(
                f"the paths are too long for {self!r}: values grow exponentially with their lengths, and rounding with "
                "them. Lower scale; it is surely low enough if scale times the length of a path (the sum of its steps) "
                "is near one."
            )

    def _converges(self, rows: Packed) -> bool:
        """Whether the products of paths with themselves are the same on finer cells, which are rounded differently.

        If they are, so are those with others, relative to the sizes of signatures: ``k(x, z)^2 <= k(x, x) k(z, z)``
        holds on the way too.
        """
        for i in range(len(rows)):
            row = rows[i : i + 1]
            value, finer = (self._run(row, row, True, refinement=more).values[0, 0] for more in (0, 1))
            if not abs(value - finer) <= _ERROR * value:
                return False
        return True

    def _pull_pairs(self, left: Packed, right: Packed, weights: Array) -> Array:
        pulled = np.zeros(3)
        used = [True, self._width > 0, self.time > 0]
        for slope in np.flatnonzero(used):
            pulled[slope] = np.vdot(weights, self._run(left, right, False, int(slope)).values)
        return pulled
