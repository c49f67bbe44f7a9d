"""The base of kernels on objects that count features: ``k(x, z) = sum_f count_f(x) count_f(z)``.

Features are numbers of 64 bits, most often hashes, and a row has few of them. A block is a product of sparse matrices
over the features that both sides have; matrices that are not sparse are multiplied as dense ones.
"""

from __future__ import annotations

import abc
from collections.abc import Hashable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from mercer.engine.tiles import Array
from mercer.kernels.inputs import Frame, Operand, Pairs, Rows, Scope
from mercer.kernels.objects import ObjectKernel
from mercer.kernels.operands import products
from mercer.kernels.statistics import Statistic

# From this share of entries that are not zero on, the product of dense matrices is the faster one: a sparse one takes
# share^2 operations of 1 ns a column, a dense one 2 at 30 GFLOP/s.
_DENSE_SHARE = 0.25


class Features(NamedTuple):
    """Which features the rows have, and how often: those of row i from ``starts[i]`` to ``starts[i + 1]``.

    A feature may be there several times; its counts are then added.
    """

    ids: NDArray[np.uint64]
    counts: NDArray[np.float64]
    starts: NDArray[np.int64]


@dataclass(frozen=True)
class _Common(Statistic):
    """The inner product of the counts."""

    kernel: FeatureKernel

    def _features(self, side: Rows) -> Features:
        objects = side.objects(self.kernel.rows_of)
        found: Features = objects.keep(("features", self.kernel), lambda: self.kernel._features(objects))
        return found

    def _distinct(self, side: Rows) -> NDArray[np.uint64]:
        objects = side.objects(self.kernel.rows_of)
        found: NDArray[np.uint64] = objects.keep(
            ("distinct features", self.kernel), lambda: np.unique(self._features(side).ids)
        )
        return found

    def _shared(self, frame: Frame) -> NDArray[np.uint64]:
        """The features that both sides have, ascending."""
        if frame.left is frame.right:
            return self._distinct(frame.left)
        return np.intersect1d(self._distinct(frame.left), self._distinct(frame.right), assume_unique=True)

    def prepare(self, side: Rows, frame: Frame, dtype: np.dtype) -> Operand:
        ids, counts, starts = self._features(side)
        shared = self._shared(frame)
        whole = _matrix(ids, counts, starts, self._distinct(side), dtype)
        norms = np.asarray(whole.multiply(whole).sum(axis=1)).ravel()
        A = whole if frame.left is frame.right else _matrix(ids, counts, starts, shared, dtype)
        return _held(A, self._share(frame, shared)), norms

    def _share(self, frame: Frame, shared: NDArray[np.uint64]) -> float:
        """The larger share of entries that are not zero, of the two sides."""
        sizes = [len(self._features(side).ids) / max(side.n * len(shared), 1) for side in (frame.left, frame.right)]
        return max(sizes)

    def fill(self, left: Operand, right: Operand, multiplier: float, out: Array) -> None:
        products(left[0], right[0], out)
        if multiplier != 1.0:
            out *= out.dtype.type(multiplier)

    def diagonal(self, operand: Operand) -> Array:
        return operand[1]


def _matrix(ids: Any, counts: Any, starts: Any, shared: Any, dtype: np.dtype) -> sp.csr_matrix:
    """Counts of the shared features as a sparse matrix, a row an object."""
    if not len(shared):
        return sp.csr_matrix((len(starts) - 1, 1), dtype=dtype)
    at = np.minimum(np.searchsorted(shared, ids), len(shared) - 1)
    there = shared[at] == ids
    kept = np.concatenate([np.zeros(1, np.int64), np.cumsum(there)])[starts]
    matrix = sp.csr_matrix((counts[there].astype(dtype), at[there], kept), shape=(len(starts) - 1, len(shared)))
    matrix.sum_duplicates()
    return matrix


def _held(A: sp.csr_matrix, share: float) -> Any:
    return A.toarray() if share >= _DENSE_SHARE else A


@dataclass(frozen=True, repr=False)
class FeatureKernel(ObjectKernel):
    """Base of kernels that are inner products of counts of features."""

    @abc.abstractmethod
    def _features(self, objects: Any) -> Features:
        """The features of all rows."""

    def _fill(self, pairs: Pairs, out: Array) -> None:
        pairs.statistic(_Common(self), 1.0, out)

    def _pull(self, pairs: Pairs, weights: Array, slopes: Array) -> None:
        """Counts have no parameters, so there are no slopes."""

    def _uses(self, scope: Scope) -> Iterator[Hashable]:
        yield scope, _Common(self)
