"""The statistics of which kernels on vectors are functions: inner products and distances, in tiles.

A statistic is a small hashable object. ``prepare`` turns one side into arrays (the operand), ``fill`` writes
``multiplier * statistic`` of a tile, ``diagonal`` gives it for the pairs ``(x_i, x_i)``, and ``pull`` contracts its
derivative by the scales with weights.
"""

from __future__ import annotations

import abc
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp

from mercer._errors import DataError
from mercer._types import Array
from mercer.kernels.inputs import Frame, Operand, Rows
from mercer.kernels.operands import (
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
from mercer.loops import bits, distances
from mercer.loops.angles import repair_angles

# Up to so many columns, and from so many rows on, distances are finished a few at a time while these are in a cache.
_FEW, _SEVERAL = 24, 16
# Below this share of the squared norms, cancellation has eaten the digits of a squared distance.
CANCELLED = {np.dtype(np.float32): 1e-5, np.dtype(np.float64): 1e-10}


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

    def largest_count(self, operand: Operand) -> int | None:
        return largest_word_count(operand)

    def look_up(self, left: Operand, right: Operand, table: Array, out: Array) -> None:
        bits.common_ones(left[0], np.ascontiguousarray(right[0].T), np.empty(len(right[0]), np.int64), table, out)

    def diagonal(self, operand: Operand) -> Array:
        return operand[1]


def _few_columns(A: Any, B: Any, out: Array) -> bool:
    """Whether one loop multiplies and finishes distances in less time than two."""
    few = not sp.issparse(A) and 0 < A.shape[1] <= _FEW and len(A) >= _SEVERAL and A.dtype == B.dtype == out.dtype
    return few and not same(A, B) and all(array.flags.c_contiguous for array in (A, B, out))


def _distances(left: Operand, right: Operand, multiplier: float, out: Array) -> None:
    """``multiplier`` times squared distances, from operands that begin with rows and their squared norms."""
    (A, a, *_), (B, b, *_) = left, right
    threshold, factor = out.dtype.type(CANCELLED[out.dtype]), out.dtype.type(multiplier)
    lost = np.empty(len(out), np.int64)
    one, other = distances.NormedRows(A, a), distances.NormedRows(B, b)
    if _few_columns(A, B, out):
        distances.squared_distances(one, other, factor, threshold, lost, out)
    else:
        products(A, B, out)
        distances.finish_squared_distances(out, a, b, factor, threshold, lost)
    # Sparse rows are not repaired: what cancellation leaves of the distance of equal rows is rounding.
    if lost.any() and not sp.issparse(A):
        distances.repair_squared_distances(out, one, other, factor, threshold, lost)


@dataclass(frozen=True)
class SquaredDistance(Statistic):
    """``sum_c ((x_c - z_c) / scale_c)^2``; no scales means all are 1."""

    is_distance = True

    scales: tuple[float, ...] = ()

    def prepare(self, side: Rows, frame: Frame, dtype: np.dtype) -> Operand:
        frame.check_columns()
        if not self.scales and frame.layout == "bits":
            return words(side), np.zeros(side.n, dtype)
        A = held(side, frame)
        if sp.issparse(A):
            A = scaled(A, self.scales).astype(dtype)
            norms = squared_norms(A, dtype)
        else:
            A, norms = centred(A, frame, self.scales, dtype)
        if not np.isfinite(norms).all():
            raise DataError(
                f"the squared distances overflow {dtype}: row {int(np.argmin(np.isfinite(norms)))} is too far from "
                "the mean in units of the length scale; scale the columns (sklearn.preprocessing.StandardScaler)."
            )
        return A, norms

    def fill(self, left: Operand, right: Operand, multiplier: float, out: Array) -> None:
        if left[0].dtype == np.uint64:
            self.look_up(left, right, multiples(left, multiplier, out.dtype), out)
            return
        _distances(left, right, multiplier, out)

    def largest_count(self, operand: Operand) -> int | None:
        return largest_word_count(operand)

    def look_up(self, left: Operand, right: Operand, table: Array, out: Array) -> None:
        bits.differing_bits(left[0], np.ascontiguousarray(right[0].T), np.empty(len(right[0]), np.int64), table, out)

    def diagonal(self, operand: Operand) -> Array:
        return np.zeros_like(operand[1])

    def pull(self, left: Operand, right: Operand, weights: Array) -> Array:
        if not self.scales:
            return np.zeros(0)
        A, B = (side[0].toarray() if sp.issparse(side[0]) else side[0] for side in (left, right))
        squares = weights.sum(axis=1) @ (A * A) + weights.sum(axis=0) @ (B * B)
        mixed = np.einsum("ic,ic->c", A, weights @ B)
        return -2.0 * (squares - 2.0 * mixed) / np.asarray(self.scales)

    def pull_diagonal(self, operand: Operand, weights: Array) -> Array:
        return np.zeros(len(self.scales))


@dataclass(frozen=True)
class PeriodicDistance(Statistic):
    """``sum_c sin^2(pi (x_c - z_c) / period)``.

    With every column wound around a circle, ``x -> (cos 2 pi x / period, sin 2 pi x / period)``, this is a quarter
    of the squared distance there, so that it is a matrix product.
    """

    is_distance = True

    period: float = 1.0

    def prepare(self, side: Rows, frame: Frame, dtype: np.dtype) -> Operand:
        frame.check_columns()
        X = side.vectors
        if sp.issparse(X):
            raise DataError("Periodic needs dense rows; pass X.toarray().")
        X = X - frame.center
        angle = X * (2 * np.pi / self.period)
        wound = np.concatenate([np.cos(angle), np.sin(angle)], axis=1).astype(dtype)
        return wound, np.full(len(X), X.shape[1], dtype), X.astype(dtype)

    def fill(self, left: Operand, right: Operand, multiplier: float, out: Array) -> None:
        _distances(left, right, 0.25 * multiplier, out)

    def diagonal(self, operand: Operand) -> Array:
        return np.zeros_like(operand[1])

    def pull(self, left: Operand, right: Operand, weights: Array) -> Array:
        """``d/dp sin^2(pi u / p) = -sin(2 pi u / p) pi u / p^2``, its sine expanded into products of the sides."""
        (A, _, X), (B, _, Z) = left, right
        d = X.shape[1]
        (cos_x, sin_x), (cos_z, sin_z) = (A[:, :d], A[:, d:]), (B[:, :d], B[:, d:])
        total = np.vdot(X * sin_x, weights @ cos_z) - np.vdot(X * cos_x, weights @ sin_z)
        total += np.vdot(cos_x, weights @ (Z * sin_z)) - np.vdot(sin_x, weights @ (Z * cos_z))
        return np.array([-np.pi / self.period**2 * total])

    def pull_diagonal(self, operand: Operand, weights: Array) -> Array:
        return np.zeros(1)


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
            # Sparse rows are not repaired, as distances are not.
            A = B = np.empty((0, 0), out.dtype)
        repair_angles(out, A, B, rows, columns)
        if multiplier != 1.0:
            out *= out.dtype.type(multiplier)

    def diagonal(self, operand: Operand) -> Array:
        return np.where(np.isnan(operand[1]), np.pi / 2, 0.0)


class ColumnWise(Statistic):
    """A sum or product over columns that has no matrix product in it; dense input only."""

    def prepare(self, side: Rows, frame: Frame, dtype: np.dtype) -> Operand:
        frame.check_columns()
        X = side.vectors
        if sp.issparse(X):
            raise DataError(
                f"{type(self).__name__} is not an inner product or a distance, so it needs dense rows; "
                "pass X.toarray()."
            )
        self.check(X)
        return (np.ascontiguousarray(self.scaled(X), dtype=dtype),)

    def check(self, X: np.ndarray) -> None:
        """Raise if the statistic is not defined on these rows."""

    def scaled(self, X: np.ndarray) -> np.ndarray:
        """The rows in the units of the statistic."""
        return X

    def fill(self, left: Operand, right: Operand, multiplier: float, out: Array) -> None:
        self.loop(left[0], np.ascontiguousarray(right[0].T), out.dtype.type(multiplier), out)

    @abc.abstractmethod
    def loop(self, A: Array, B: Array, multiplier: Any, out: Array) -> None:
        """Fill a tile from rows ``A (r, d)`` and transposed rows ``B (d, c)``."""

    def diagonal(self, operand: Operand) -> Array:
        return np.zeros(len(operand[0]), operand[0].dtype)


def _refuse_negative(X: np.ndarray, what: str) -> None:
    if X.min() < 0:
        row, column = np.argwhere(X < 0)[0]
        raise DataError(
            f"{what} is defined for values of at least 0, but X has {X.min():g} (first in row {row}, column "
            f"{column}); scale the columns to [0, 1] first (sklearn.preprocessing.MinMaxScaler)."
        )


@dataclass(frozen=True)
class ManhattanDistance(ColumnWise):
    """``sum_c |x_c - z_c| / scale_c``."""

    is_distance = True

    scales: tuple[float, ...] = ()

    def scaled(self, X: np.ndarray) -> np.ndarray:
        return scaled(X, self.scales)

    def loop(self, A: Array, B: Array, multiplier: Any, out: Array) -> None:
        distances.manhattan(A, B, multiplier, out)

    def pull(self, left: Operand, right: Operand, weights: Array) -> Array:
        if not self.scales:
            return np.zeros(0)
        sums = np.zeros(len(self.scales))
        distances.pull_manhattan(left[0], np.ascontiguousarray(right[0].T), weights, sums)
        return -sums / np.asarray(self.scales)

    def pull_diagonal(self, operand: Operand, weights: Array) -> Array:
        return np.zeros(len(self.scales))


@dataclass(frozen=True)
class ChiSquaredDistance(ColumnWise):
    """``sum_c (x_c - z_c)^2 / (x_c + z_c)`` on values of at least 0."""

    is_distance = True

    def check(self, X: np.ndarray) -> None:
        _refuse_negative(X, "ChiSquared")

    def loop(self, A: Array, B: Array, multiplier: Any, out: Array) -> None:
        distances.chi_squared(A, B, multiplier, out)


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
        # Codes are compared in full: rounded to float32, different ones may become equal.
        return super().prepare(side, frame, np.dtype(np.float64))

    def loop(self, A: Array, B: Array, multiplier: Any, out: Array) -> None:
        distances.agreements(A, B, out.dtype.type(multiplier / A.shape[1]), out)

    def diagonal(self, operand: Operand) -> Array:
        return np.ones(len(operand[0]), operand[0].dtype)


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
