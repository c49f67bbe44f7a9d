"""The base of kernels on objects that count features: ``k(x, z) = sum_f weight_f count_f(x) count_f(z)``.

Features are numbers of 64 bits, usually hashes, and a row has few of them. A block is a product of matrices over
the features that both sides have: a dense one for those that many rows have, and a sparse one for the others.
"""

from __future__ import annotations

import abc
from collections.abc import Hashable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from mercer._types import Array
from mercer.data.objects import Objects
from mercer.engine import memory, threads
from mercer.engine.tiles import scratch_tile
from mercer.kernels.inputs import Frame, Operand, Rows, Scope
from mercer.kernels.objects import ObjectKernel
from mercer.kernels.operands import products
from mercer.kernels.pairs import Pairs
from mercer.kernels.statistics import Statistic
from mercer.loops import counts as loops
from mercer.loops.sparse_rows import SparseRows, SparseSide
from mercer.loops.transpose import mirror

# A feature is stored dense if at least this share of all pairs of rows share it: a pair costs a sparse product 0.8 ns
# where it shares the feature, and a dense one 0.05 ns in any case.
_DENSE_SHARE = 0.06
# Of the memory that is left, what the dense part may take.
_DENSE_MEMORY = 0.125


class Features(NamedTuple):
    """Which features the rows have, and how often: those of row i from ``starts[i]`` to ``starts[i + 1]``.

    A feature may occur several times; its counts are then added. ``levels`` are for kernels that weight features by
    level: a whole number from 0 for each entry, the same wherever the feature is the same.
    """

    ids: NDArray[np.uint64]
    counts: NDArray[np.float64]
    starts: NDArray[np.int64]
    levels: NDArray[np.integer] | None = None


class _Table(NamedTuple):
    """The features of a container as a sparse matrix: rows are objects, columns features by first occurrence."""

    ids: NDArray[np.uint64]
    levels: NDArray[np.int64]
    matrix: SparseRows

    @classmethod
    def of(cls, features: Features) -> _Table:
        ids, counts, starts, levels = features
        columns, values = np.empty(len(ids), np.int32), np.empty(len(ids))
        offsets = np.empty_like(starts)
        # A look into the table takes tens of steps.
        steps = 32.0 * len(ids)
        firsts = threads.interruptible(loops.tabulate, (ids, counts, starts, columns, values, offsets), steps)
        of_columns = np.zeros(len(firsts), np.int64) if levels is None else levels[firsts].astype(np.int64)
        # Copies, so that what was merged gives its memory back.
        matrix = SparseRows(offsets, columns[: offsets[-1]].copy(), values[: offsets[-1]].copy())
        return cls(ids[firsts], of_columns, matrix)

    @property
    def frequencies(self) -> NDArray[np.int64]:
        """The number of rows that contain each feature."""
        return np.bincount(self.matrix.columns, minlength=len(self.ids))


class _Store(NamedTuple):
    """One side of a block: rows of the shared features, in the order of columns that both sides have."""

    matrix: SparseRows
    norms: Array
    # Of each level, (n, levels); levels of the columns of the dense part and then of the sparse one.
    parts: Array
    levels: NDArray[np.int64]
    width: int
    symmetric: bool


class _StoreRows:
    """Some rows of a store."""

    def __init__(self, store: _Store, index: NDArray[np.int64], dense: Array) -> None:
        self.store, self.index, self.dense = store, index, dense

    def __getitem__(self, positions: Any) -> _StoreRows:
        return _StoreRows(self.store, self.index[positions], self.dense[positions])

    def __len__(self) -> int:
        return len(self.index)

    def _sparse(self) -> SparseSide:
        return SparseSide(self.store.matrix, self.index)

    def multiply(self, other: _StoreRows, out: Array) -> None:
        """Inner products of the rows."""
        if self.dense.shape[1]:
            products(self.dense, other.dense, out)
        else:
            out[...] = 0
        same = self.store is other.store
        if self.store.width:
            place = scratch_tile("columns", (self.store.width,), np.dtype(np.int32))
            symmetric = same and np.array_equal(self.index, other.index) and _ascending(self.index)
            loops.add_products(self._sparse(), other._sparse(), place, symmetric, out)
            if symmetric:
                mirror(out)
        if same and self.store.symmetric and _meet(self.index, other.index):
            loops.set_same(self.index, other.index, self.store.norms, out)

    def pull(self, other: _StoreRows, weights: Array) -> Array:
        """``sum_ij weights_ij`` times the inner product over the features of a level, for each level."""
        levels, dense = self.store.levels, self.dense.shape[1]
        out = np.zeros(self.store.parts.shape[1])
        if self.store.width:
            place = scratch_tile("columns", (self.store.width,), np.dtype(np.int32))
            loops.pull_products(self._sparse(), other._sparse(), place, levels[dense:], weights, out)
        if dense:
            by_column = np.einsum("ij,ij->j", self.dense, weights @ other.dense)
            out += np.bincount(levels[:dense], by_column, len(out))
        return out


def _ascending(index: NDArray[np.int64]) -> bool:
    return bool((np.diff(index) > 0).all())


def _meet(index: NDArray[np.int64], other: NDArray[np.int64]) -> bool:
    """Whether a row may be in both: tiles off the diagonal share no rows."""
    return len(index) > 0 and len(other) > 0 and bool(index.min() <= other.max() and other.min() <= index.max())


@dataclass(frozen=True)
class _Common(Statistic):
    """The inner product of the counts, or for slopes that of each level, whatever it weighs."""

    kernel: FeatureKernel
    by_level: bool = False

    def _table(self, side: Rows) -> _Table:
        objects = side.objects(self.kernel.rows_of)
        return self.kernel._table(objects)

    def _columns(self, frame: Frame) -> tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.int64], int]:
        """Where the columns of either side go (-1 for nowhere), the levels there, and how many columns are dense."""
        left, right = self._table(frame.left), self._table(frame.right)
        if frame.left is frame.right or left is right:
            places = np.arange(len(left.ids), dtype=np.int32)
            # What no two rows share is in norms alone; slopes ask for those of each level.
            least = 1 if self.by_level or frame.left is not frame.right else 2
            shared = np.flatnonzero(left.frequencies >= least)
        else:
            places = np.empty(len(left.ids), np.int32)
            loops.look_up(right.ids, left.ids, places)
            shared = np.flatnonzero(places >= 0)
        pairs = left.frequencies[shared].astype(np.float64) * right.frequencies[places[shared]]
        order = np.argsort(-pairs, kind="stable")
        dense = int(np.count_nonzero(pairs >= _DENSE_SHARE * frame.left.n * frame.right.n))
        dense = min(dense, int(_DENSE_MEMORY * memory.budget() / (8 * max(frame.left.n + frame.right.n, 1))))
        shared = shared[order]
        place, other = np.full(len(left.ids), -1, np.int32), np.full(len(right.ids), -1, np.int32)
        place[shared] = other[places[shared]] = np.arange(len(shared), dtype=np.int32)
        return place, other, left.levels[shared], dense

    def prepare(self, side: Rows, frame: Frame, dtype: np.dtype) -> Operand:
        table = self._table(side)
        place, other, levels, dense = frame.right.keep((self, frame.key), lambda: self._columns(frame))
        place = place if side is frame.left else other
        weights = self.kernel._level_weights()
        factor = np.sqrt(np.ones_like(weights) if self.by_level else weights)[table.levels]
        starts, size, front = table.matrix.starts, len(table.matrix.columns), np.zeros((side.n, dense), dtype)
        matrix = SparseRows(np.empty_like(starts), np.empty(size, np.int32), np.empty(size, dtype))
        size = loops.divide(table.matrix, place, factor, front, matrix)
        parts = np.empty((side.n, len(weights)))
        loops.squared_sums(table.matrix, table.levels, parts)
        norms = parts @ weights
        store = _Store(
            SparseRows(matrix.starts, matrix.columns[:size].copy(), matrix.values[:size].copy()),
            norms.astype(dtype),
            parts,
            levels,
            len(levels) - dense,
            frame.left is frame.right and not self.by_level,
        )
        return _StoreRows(store, np.arange(side.n), front), norms

    def fill(self, left: Operand, right: Operand, multiplier: float, out: Array) -> None:
        left[0].multiply(right[0], out)
        if multiplier != 1.0:
            out *= out.dtype.type(multiplier)

    def diagonal(self, operand: Operand) -> Array:
        return operand[1]

    def pull(self, left: Operand, right: Operand, weights: Array) -> Array:
        return self.kernel._level_slopes() @ left[0].pull(right[0], weights)

    def pull_diagonal(self, operand: Operand, weights: Array) -> Array:
        part = operand[0]
        return self.kernel._level_slopes() @ (weights @ part.store.parts[part.index])


@dataclass(frozen=True, repr=False)
class FeatureKernel(ObjectKernel):
    """Base of kernels that are inner products of counts of features."""

    @abc.abstractmethod
    def _features(self, objects: Any) -> Features:
        """The features of all rows."""

    def _packing(self) -> Hashable:
        """What the features depend on; kernels with equal values share the features."""
        return self

    def _level_weights(self) -> Array:
        """The weights of the products of features of each level, at least 0."""
        return np.ones(1)

    def _level_slopes(self) -> Array:
        """Derivatives of these weights, a row for each of the kernel's numbers."""
        return np.zeros((0, 1))

    def _table(self, objects: Objects) -> _Table:
        key = ("features", self._packing())
        table: _Table = objects.keep(key, lambda: _Table.of(self._features(objects)))
        return table

    def _fill(self, pairs: Pairs, out: Array) -> None:
        pairs.statistic(_Common(self), 1.0, out)

    def _pull(self, pairs: Pairs, weights: Array, slopes: Array) -> None:
        if slopes.size:
            slopes += pairs.pull(_Common(self, by_level=True), weights)

    def _explicit_features(self, rows: Rows, most: int) -> Any | None:
        table = self._table(rows.objects(self.rows_of))
        if len(table.ids) > most:
            return None
        starts, columns, values = table.matrix
        roots = np.sqrt(self._level_weights())[table.levels]
        shape = (len(starts) - 1, len(table.ids))
        return sp.csr_matrix((values * roots[columns], columns, starts), shape=shape)

    def _uses(self, scope: Scope) -> Iterator[Hashable]:
        yield scope, _Common(self)
