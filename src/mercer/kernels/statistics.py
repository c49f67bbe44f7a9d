"""The statistics of which kernels on vectors are functions: inner products and distances, in tiles.

A statistic is a small hashable object. ``prepare`` turns one side into arrays (the operand), ``fill`` writes
``multiplier * statistic`` of a tile, ``diagonal`` gives it for the pairs ``(x_i, x_i)``, and ``pull`` contracts its
derivative by the scales with weights.
"""

from __future__ import annotations

import abc
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import scipy.sparse as sp

from mercer._errors import DataError
from mercer._types import Array
from mercer.kernels.inputs import Frame, Operand, Rows
from mercer.kernels.operands import (
    GivenRows,
    centred,
    held,
    largest_word_count,
    multiples,
    products,
    same,
    scaled,
    squared_norms,
    unit_rows,
    words,
)
from mercer.loops import bits, distances, programs, steps
from mercer.loops.angles import repair_angles

if TYPE_CHECKING:
    from mercer.kernels.program import Lowering

# Up to so many columns, and from so many rows on, distances are finished a few at a time while these are in a cache.
_FEW, _SEVERAL = 24, 16
# Up to so many columns, differences take no longer than products.
_FEWEST = 8
# At this share of the squared norms, cancellation has taken two digits of a squared distance.
_CANCELLED = 1e-2
# Whole numbers below the first are floats, and up to the second signed integers.
_EXACT, _LARGEST = 2**53, 2**63 - 1
# The root of the smallest number: the multipliers above it and below its inverse leave room for squares.
_LEAST = {np.dtype(dtype): float(np.sqrt(np.finfo(dtype).tiny)) for dtype in (np.float32, np.float64)}


class Statistic(abc.ABC):
    """One number for a pair of rows."""

    is_distance: ClassVar[bool] = False
    """Whether it is 0 for equal rows and more for others."""

    @abc.abstractmethod
    def prepare(self, side: Rows, frame: Frame, dtype: np.dtype) -> Operand:
        """Arrays with one entry a row, from which tiles are filled."""

    @abc.abstractmethod
    def fill(self, left: Operand, right: Operand, multiplier: float, out: Array) -> None:
        """Write ``multiplier * statistic`` of all pairs into ``out``."""

    def largest_count(self, operand: Operand) -> int | None:
        """If the statistic is a whole number between 0 and a bound, the bound: a function of it is a table."""
        return None

    def lower(self, left: Operand, right: Operand, table: Array, program: Lowering) -> bool:
        """Write what compiled programs need of it into a table; False where no compiled loop computes it."""
        return False

    def is_in_range(self, multiplier: float, dtype: np.dtype) -> bool:
        """Whether multiples are computed to all digits in a precision."""
        return True

    def look_up(self, left: Operand, right: Operand, table: Array, out: Array) -> None:
        """Write ``table[statistic]`` of all pairs; only where :meth:`largest_count` gives a bound."""
        raise NotImplementedError(f"{type(self).__name__} is not a count.")

    @abc.abstractmethod
    def diagonal(self, operand: Operand) -> Array:
        """The statistic of every row with itself."""

    def pull(self, left: Operand, right: Operand, weights: Array) -> Array:
        """``sum_ij weights_ij d statistic_ij / d scale_c``; empty where there are no scales."""
        return np.zeros(0)

    def pull_diagonal(self, operand: Operand, weights: Array) -> Array:
        """The same over the pairs ``(x_i, x_i)``."""
        return np.zeros(0)


@dataclass(frozen=True)
class Dot(Statistic):
    """The inner product ``<x, z>``."""

    def prepare(self, side: Rows, frame: Frame, dtype: np.dtype) -> Operand:
        frame.check_columns()
        if frame.layout == "bits":
            return words(side), np.asarray(side.vectors.sum(axis=1), dtype).ravel()
        A = held(side, frame).astype(dtype, copy=False)
        return A, squared_norms(A, dtype)

    def fill(self, left: Operand, right: Operand, multiplier: float, out: Array) -> None:
        if left[0].dtype == np.uint64:
            self.look_up(left, right, multiples(left, multiplier, out.dtype), out)
            return
        products(left[0], right[0], out)
        if multiplier != 1.0:
            out *= out.dtype.type(multiplier)

    def lower(self, left: Operand, right: Operand, table: Array, program: Lowering) -> bool:
        if not are_plain(left[0], right[0]):
            return False
        table[programs.LOOP], table[programs.WIDTH] = program.address_of(steps.products, "statistic"), left[0].shape[1]
        table[programs.LEFT], table[programs.RIGHT] = left[0].ctypes.data, right[0].ctypes.data
        table[programs.THRESHOLD] = 1
        return True

    def largest_count(self, operand: Operand) -> int | None:
        return largest_word_count(operand)

    def look_up(self, left: Operand, right: Operand, table: Array, out: Array) -> None:
        bits.common_ones(left[0], np.ascontiguousarray(right[0].T), np.empty(len(right[0]), np.int64), table, out)

    def diagonal(self, operand: Operand) -> Array:
        return operand[1]


def are_plain(*arrays: Any) -> bool:
    """Whether compiled loops can read arrays of one kind of floats by their addresses."""
    kind = arrays[0].dtype
    plain = (isinstance(a, np.ndarray) and a.dtype == kind and a.flags.c_contiguous and a.size for a in arrays)
    return kind.kind == "f" and all(plain)


def _few_columns(A: Any, B: Any, out: Array) -> bool:
    """Whether one loop multiplies and finishes distances in less time than two."""
    few = not sp.issparse(A) and 0 < A.shape[1] <= _FEW and len(A) >= _SEVERAL and A.dtype == B.dtype == out.dtype
    return few and not same(A, B) and all(array.flags.c_contiguous for array in (A, B, out))


class Distance(Statistic):
    """A sum over columns of a function of differences.

    Most entries are computed from rows about their centre, rounded to the precision of the tile. Where this would lose
    more than two digits, because rows are near one another and far from the centre, an entry is computed from
    differences of the rows as they were passed, and so are slopes. No row then takes digits from the distances of
    others.

    Operands begin with rounded rows, their norms and the rows that differences are taken of.
    """

    is_distance = True
    measure: ClassVar[int]
    """What is summed, in the terms of ``loops.distances``."""

    def loop(self, columns: int) -> tuple[Callable[..., Any], float]:
        """The compiled loop from rounded rows to a tile, and the share below which digits are lost."""
        return steps.squared_by_products, _CANCELLED

    def lower(self, left: Operand, right: Operand, table: Array, program: Lowering) -> bool:
        at, size, alive = programs.GIVEN, steps.GIVEN, program.alive
        if not are_plain(*left[:2], *right[:2]) or not (
            left[2].lower(table, at, alive) and right[2].lower(table, at + size, alive)
        ):
            return False
        loop, threshold = self.loop(left[0].shape[1])
        weights = np.array(self.weights(left[2].width))
        alive.append(weights)
        program.turned |= loop is not steps.squared_by_products
        table[:2] = program.address_of(loop, "statistic"), program.address_of(steps.repair, "repair")
        table[2:7] = left[0].shape[1], *(side[i].ctypes.data for side in (left, right) for i in (0, 1))
        table[7:10] = round(1 / threshold), left[2].width, weights.ctypes.data
        table[programs.MEASURE] = self.measure
        return True

    def is_in_range(self, multiplier: float, dtype: np.dtype) -> bool:
        return _LEAST[dtype] < abs(multiplier) < 1 / _LEAST[dtype]

    @abc.abstractmethod
    def first(self, left: Operand, right: Operand, factor: Any, lost: Array, out: Array) -> None:
        """Fill a tile from the rounded rows; an entry of few digits is NaN, and counted in ``lost`` of its row."""

    def fill(self, left: Operand, right: Operand, multiplier: float, out: Array) -> None:
        factor, lost = out.dtype.type(multiplier), np.full(len(out), out.shape[1])
        if self.is_in_range(float(factor), out.dtype):
            self.first(left, right, factor, lost, out)
        else:
            # Distances near the unit of the kernel, or their squares, are beyond the numbers of this precision.
            out.fill(np.nan)
        if lost.any():
            self.repair(left[2], right[2], multiplier, lost, out)

    def repair(self, left: GivenRows, right: GivenRows, multiplier: float, lost: Array, out: Array) -> None:
        """Compute the entries that are NaN from differences."""
        weights = self.weights(left.width)
        distances.repair_distances(out, left.dense(), right.dense(), weights, self.measure, multiplier, lost)

    def weights(self, columns: int) -> Array:
        """What the differences of each column are multiplied by."""
        return np.ones(columns)

    def diagonal(self, operand: Operand) -> Array:
        return np.zeros_like(operand[1])


def _by_differences(add: Any, left: Operand, right: Operand, out: Array) -> None:
    out.fill(0)
    add(left[0], np.ascontiguousarray(right[0].T), out)


def _finish(left: Operand, right: Operand, factor: Any, threshold: float, lost: Array, out: Array) -> None:
    distances.finish_differences(out, left[1], right[1], factor, out.dtype.type(threshold), lost)


class ScaledDistance(Distance):
    """A distance with a scale for each column; no scales means all are 1."""

    scales: tuple[float, ...]

    def prepare(self, side: Rows, frame: Frame, dtype: np.dtype) -> Operand:
        A, norms = centred(held(side, frame), frame, self.scales, dtype, self.norms)
        if dtype == np.float64 and not np.isfinite(norms).all():
            raise DataError(
                f"the distances overflow float64: row {int(np.argmin(np.isfinite(norms)))} is too far from the others "
                "in units of the length scale; scale the columns (sklearn.preprocessing.StandardScaler)."
            )
        return A, norms, GivenRows.of(side)

    @abc.abstractmethod
    def norms(self, A: Array) -> Array:
        """How large rounded rows are, to compare their distances with."""

    def weights(self, columns: int) -> Array:
        return 1 / np.asarray(self.scales) if self.scales else np.ones(columns)

    def pull(self, left: Operand, right: Operand, weights: Array) -> Array:
        if not self.scales:
            return np.zeros(0)
        sums, (A, B) = np.zeros(len(self.scales)), (side[2].dense() for side in (left, right))
        self.add_slopes(A, np.ascontiguousarray(B.T), weights, sums)
        return sums / np.asarray(self.scales)

    @abc.abstractmethod
    def add_slopes(self, A: Array, B: Array, weights: Array, sums: Array) -> None:
        """Add to ``sums`` the weighted slopes by the logarithms of the scales."""

    def pull_diagonal(self, operand: Operand, weights: Array) -> Array:
        return np.zeros(len(self.scales))


@dataclass(frozen=True)
class SquaredDistance(ScaledDistance):
    """``sum_c ((x_c - z_c) / scale_c)^2``."""

    measure = distances.SQUARED

    scales: tuple[float, ...] = ()

    def prepare(self, side: Rows, frame: Frame, dtype: np.dtype) -> Operand:
        frame.check_columns()
        if not self.scales and frame.layout == "bits":
            return words(side), np.zeros(side.n, dtype)
        if frame.layout != "sparse":
            return super().prepare(side, frame, dtype)
        with np.errstate(over="ignore"):
            A = scaled(held(side, frame), self.scales).astype(dtype)
            return A, squared_norms(A, dtype), GivenRows.of(side)

    def norms(self, A: Array) -> Array:
        return squared_norms(A, A.dtype)

    def loop(self, columns: int) -> tuple[Callable[..., Any], float]:
        # Of differences only the rounding of the rows counts, which is relative to their norms and not to the squares.
        few = columns <= _FEWEST
        return (steps.squared_by_differences, _CANCELLED**2) if few else (steps.squared_by_products, _CANCELLED)

    def fill(self, left: Operand, right: Operand, multiplier: float, out: Array) -> None:
        if left[0].dtype == np.uint64:
            self.look_up(left, right, multiples(left, multiplier, out.dtype), out)
        else:
            super().fill(left, right, multiplier, out)

    def first(self, left: Operand, right: Operand, factor: Any, lost: Array, out: Array) -> None:
        (A, a, _), (B, b, _) = left, right
        threshold = out.dtype.type(_CANCELLED)
        if not sp.issparse(A) and A.shape[1] <= _FEWEST:
            _by_differences(distances.add_squared_differences, left, right, out)
            # Only the rounding of the rows counts, which is relative to their norms and not to the squares of these.
            _finish(left, right, factor, _CANCELLED**2, lost, out)
        elif _few_columns(A, B, out):
            one, other = distances.NormedRows(A, a), distances.NormedRows(B, b)
            distances.squared_distances(one, other, factor, threshold, lost, out)
        else:
            products(A, B, out)
            distances.finish_squared_distances(out, a, b, factor, threshold, lost)

    def repair(self, left: GivenRows, right: GivenRows, multiplier: float, lost: Array, out: Array) -> None:
        if left.is_sparse and right.is_sparse:
            weights = self.weights(left.width)
            distances.repair_sparse_distances(out, left.sparse(), right.sparse(), weights, multiplier)
        else:
            super().repair(left, right, multiplier, lost, out)

    def largest_count(self, operand: Operand) -> int | None:
        return largest_word_count(operand)

    def look_up(self, left: Operand, right: Operand, table: Array, out: Array) -> None:
        bits.differing_bits(left[0], np.ascontiguousarray(right[0].T), np.empty(len(right[0]), np.int64), table, out)

    def add_slopes(self, A: Array, B: Array, weights: Array, sums: Array) -> None:
        distances.pull_squared_differences(A, B, self.weights(len(sums)), weights, sums)
        sums *= -2


@dataclass(frozen=True)
class ManhattanDistance(ScaledDistance):
    """``sum_c |x_c - z_c| / scale_c``."""

    measure = distances.MANHATTAN

    scales: tuple[float, ...] = ()

    def prepare(self, side: Rows, frame: Frame, dtype: np.dtype) -> Operand:
        check_dense(self, side, frame)
        return super().prepare(side, frame, dtype)

    def norms(self, A: Array) -> Array:
        return np.abs(A).sum(axis=1)

    def loop(self, columns: int) -> tuple[Callable[..., Any], float]:
        return steps.manhattan, _CANCELLED

    def first(self, left: Operand, right: Operand, factor: Any, lost: Array, out: Array) -> None:
        _by_differences(distances.add_differences, left, right, out)
        _finish(left, right, factor, _CANCELLED, lost, out)

    def add_slopes(self, A: Array, B: Array, weights: Array, sums: Array) -> None:
        distances.pull_differences(A, B, weights, sums)
        sums /= -np.asarray(self.scales)


def check_dense(statistic: Statistic, side: Rows, frame: Frame) -> None:
    """Raise unless the sides agree in their columns, and this one is dense."""
    frame.check_columns()
    if sp.issparse(side.vectors):
        raise DataError(
            f"{type(statistic).__name__} is not computed by inner products, so it needs dense rows; pass X.toarray()."
        )


@dataclass(frozen=True)
class PeriodicDistance(Distance):
    """``sum_c sin^2(pi (x_c - z_c) / period)``.

    With every column wound around a circle, ``x -> (cos 2 pi x / period, sin 2 pi x / period) / 2``, this is the
    squared distance there, so that it is a matrix product.
    """

    measure = distances.PERIODIC

    period: float = 1.0

    def prepare(self, side: Rows, frame: Frame, dtype: np.dtype) -> Operand:
        check_dense(self, side, frame)
        # The remainder is exact.
        rest = np.fmod(side.vectors.astype(np.float64), self.period)
        angle = rest * (2 * np.pi / self.period)
        wound = np.concatenate([np.cos(angle), np.sin(angle)], axis=1) / 2
        return (
            wound.astype(dtype),
            squared_norms(wound, dtype).astype(dtype),
            GivenRows(rest, range(side.n)),
            GivenRows.of(side),
        )

    def first(self, left: Operand, right: Operand, factor: Any, lost: Array, out: Array) -> None:
        products(left[0], right[0], out)
        distances.finish_squared_distances(out, left[1], right[1], factor, out.dtype.type(_CANCELLED), lost)

    def weights(self, columns: int) -> Array:
        return np.full(columns, np.pi / self.period)

    def pull(self, left: Operand, right: Operand, weights: Array) -> Array:
        """``d/dp sin^2(pi u / p) = -sin(2 pi u / p) pi u / p^2``, its sine expanded into products of the sides."""
        (X, Z), (wound, other) = (side[3].dense() for side in (left, right)), (side[0] for side in (left, right))
        total = distances.pull_periods(X, np.ascontiguousarray(Z.T), wound, np.ascontiguousarray(other.T), weights)
        return np.array([-np.pi / self.period**2 * total])

    def pull_diagonal(self, operand: Operand, weights: Array) -> Array:
        return np.zeros(1)


def _refuse_negative(X: np.ndarray, what: str) -> None:
    if X.min() < 0:
        row, column = np.argwhere(X < 0)[0]
        raise DataError(
            f"{what} is defined for values of at least 0, but X has {X.min():g} (first in row {row}, column "
            f"{column}); scale the columns to [0, 1] first (sklearn.preprocessing.MinMaxScaler)."
        )


@dataclass(frozen=True)
class ChiSquaredDistance(Distance):
    """``sum_c (x_c - z_c)^2 / (x_c + z_c)`` on values of at least 0."""

    measure = distances.CHI_SQUARED

    def loop(self, columns: int) -> tuple[Callable[..., Any], float]:
        return steps.chi_squared, _CANCELLED**2

    def prepare(self, side: Rows, frame: Frame, dtype: np.dtype) -> Operand:
        check_dense(self, side, frame)
        _refuse_negative(side.vectors, "ChiSquared")
        A = side.vectors.astype(dtype)
        return A, A.sum(axis=1), GivenRows.of(side)

    def first(self, left: Operand, right: Operand, factor: Any, lost: Array, out: Array) -> None:
        _by_differences(distances.add_chi_squared, left, right, out)
        _finish(left, right, factor, _CANCELLED**2, lost, out)


@dataclass(frozen=True)
class Angle(Statistic):
    """The angle between two rows, of a row of zeros with any other pi / 2."""

    def prepare(self, side: Rows, frame: Frame, dtype: np.dtype) -> Operand:
        frame.check_columns()
        A = unit_rows(held(side, frame))
        # Rows of two inputs are never the same row, and a row of zeros has no angle of 0 with itself.
        numbers = np.where(squared_norms(A, np.dtype(float)) > 0, np.asarray(side.numbers, float), np.nan)
        return A.astype(dtype, copy=False), numbers if side.root is frame.right else -1 - numbers

    def fill(self, left: Operand, right: Operand, multiplier: float, out: Array) -> None:
        (A, rows), (B, columns) = left, right
        products(A, B, out)
        np.clip(out, -1, 1, out=out)
        np.arccos(out, out=out)
        if sp.issparse(A):
            # Sparse rows are not repaired.
            A = B = np.empty((0, 0), out.dtype)
        repair_angles(out, A, B, rows, columns)
        if multiplier != 1.0:
            out *= out.dtype.type(multiplier)

    def diagonal(self, operand: Operand) -> Array:
        return np.where(np.isnan(operand[1]), np.pi / 2, 0.0)


class ColumnWise(Statistic):
    """A sum or product over columns that has no matrix product in it; dense input only."""

    def prepare(self, side: Rows, frame: Frame, dtype: np.dtype) -> Operand:
        check_dense(self, side, frame)
        self.check(side.vectors)
        return (np.ascontiguousarray(side.vectors, dtype=dtype),)

    def check(self, X: np.ndarray) -> None:
        """Raise if the statistic is not defined on these rows."""

    def fill(self, left: Operand, right: Operand, multiplier: float, out: Array) -> None:
        self.loop(left[0], np.ascontiguousarray(right[0].T), out.dtype.type(multiplier), out)

    @abc.abstractmethod
    def loop(self, A: Array, B: Array, multiplier: Any, out: Array) -> None:
        """Fill a tile from rows ``A (r, d)`` and transposed rows ``B (d, c)``."""

    def diagonal(self, operand: Operand) -> Array:
        return np.zeros(len(operand[0]), operand[0].dtype)


@dataclass(frozen=True)
class Intersection(ColumnWise):
    """``sum_c min(x_c, z_c)`` on values of at least 0."""

    def check(self, X: np.ndarray) -> None:
        _refuse_negative(X, "HistogramIntersection")

    def loop(self, A: Array, B: Array, multiplier: Any, out: Array) -> None:
        distances.intersection(A, B, multiplier, out)

    def diagonal(self, operand: Operand) -> Array:
        return operand[0].sum(axis=1)


@dataclass(frozen=True)
class Agreement(ColumnWise):
    """The fraction of the columns in which ``x`` and ``z`` are equal."""

    def prepare(self, side: Rows, frame: Frame, dtype: np.dtype) -> Operand:
        check_dense(self, side, frame)
        # Codes are compared in full: rounded to float32, or to float64 above 2^53, different ones may become equal.
        raw = side.raw.to_numpy() if hasattr(side.raw, "to_numpy") else side.raw
        if isinstance(raw, np.ndarray) and raw.dtype.kind in "iu" and _EXACT <= np.abs(raw).max() <= _LARGEST:
            return (np.ascontiguousarray(raw, dtype=np.int64),)
        return (np.ascontiguousarray(side.vectors, dtype=np.float64),)

    def loop(self, A: Array, B: Array, multiplier: Any, out: Array) -> None:
        distances.agreements(A, B, out.dtype.type(multiplier / A.shape[1]), out)

    def diagonal(self, operand: Operand) -> Array:
        return np.ones(len(operand[0]))


@dataclass(frozen=True)
class SubsetProduct(ColumnWise):
    """``prod_c (1 + x_c z_c)``."""

    def loop(self, A: Array, B: Array, multiplier: Any, out: Array) -> None:
        distances.all_subsets(A, B, multiplier, out)

    def diagonal(self, operand: Operand) -> Array:
        return np.prod(1 + operand[0] ** 2, axis=1)


@dataclass(frozen=True)
class SameRow(Statistic):
    """1 for a row with itself, else 0; equal rows of different number are different rows."""

    def prepare(self, side: Rows, frame: Frame, dtype: np.dtype) -> Operand:
        # Rows of two different inputs are never the same row.
        return (side.numbers if side.root is frame.right else -1 - side.numbers,)

    def fill(self, left: Operand, right: Operand, multiplier: float, out: Array) -> None:
        # Most tiles are off the diagonal, where there is nothing to find.
        if left[0].max() < right[0].min() or right[0].max() < left[0].min():
            out.fill(0)
            return
        distances.match(left[0], right[0], out.dtype.type(multiplier), out)

    def diagonal(self, operand: Operand) -> Array:
        return np.ones(len(operand[0]))
