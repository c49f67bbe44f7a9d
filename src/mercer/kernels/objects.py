"""The bases of kernels on objects other than vectors, and of those that compare them pair by pair.

A leaf declares the kind of its rows (``rows_of``), packs them once into arrays, and compares two packed sides in a
compiled loop. Everything else (tiles, symmetry, threads, algebra, normalisation, gradients of composites) is the
engine's.
"""

from __future__ import annotations

import abc
from collections.abc import Hashable, Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from mercer._types import Array
from mercer.data.objects import Objects
from mercer.engine.tiles import scratch
from mercer.kernels.base import Definiteness
from mercer.kernels.inputs import Frame, Operand, Rows, Scope
from mercer.kernels.kernel import Kernel
from mercer.kernels.pairs import Pairs
from mercer.kernels.plan import check_finite
from mercer.kernels.statistics import Statistic
from mercer.loops.transpose import mirror


class Packed:
    """Some rows of a store, which holds all rows of a container as arrays.

    Examples
    --------
    >>> packed = Packed({"any": "thing"}, np.arange(5))
    >>> packed[1:4][[2, 0]].index.tolist()
    [3, 1]
    """

    def __init__(self, store: Any, index: NDArray[np.int64]) -> None:
        self.store, self.index = store, index

    def __len__(self) -> int:
        return len(self.index)

    def __getitem__(self, positions: Any) -> Packed:
        return Packed(self.store, self.index[positions])

    def same(self, other: Packed) -> bool:
        """Whether both are the same rows in the same order."""
        return self.store is other.store and np.array_equal(self.index, other.index)


@dataclass(frozen=True, repr=False)
class ObjectKernel(Kernel):
    """Base of kernels on objects other than vectors."""

    rows_of: ClassVar[type[Objects]]
    """What a row is."""

    def kind_of_rows(self) -> type[Objects]:
        return self.rows_of

    def read_rows(self, X: Any) -> Objects:
        """Read the rows of a sequence.

        Parameters
        ----------
        X : sequence
            One object a row, of the kind ``rows_of``.

        Returns
        -------
        Objects

        Raises
        ------
        DataError
            If a row is not of that kind; the message contains its number.
        """
        return self.rows_of.of(X)

    @property
    def definiteness(self) -> Definiteness:
        return "positive"

    def advice_on_zeros(self, rows: Objects) -> str:
        """Return what to do about rows whose values are 0, also with themselves.

        Parameters
        ----------
        rows : Objects
            Such rows.

        Returns
        -------
        str
            A sentence.
        """
        return "Change the kernel's arguments, or choose another kernel."


@dataclass(frozen=True)
class Compared(Statistic):
    """The kernel itself: only the packed rows are shared with other kernels."""

    kernel: PairKernel

    def prepare(self, side: Rows, frame: Frame, dtype: np.dtype) -> Operand:
        objects = side.objects(self.kernel.rows_of)
        store = objects.keep(self.kernel._packing(), lambda: self.kernel._pack(objects))
        return (Packed(store, np.arange(side.n)),)

    def fill(self, left: Operand, right: Operand, multiplier: float, out: Array) -> None:
        (one,), (other,) = left, right
        symmetric = one.same(other)
        with scratch(out.shape, np.dtype(np.float64)) as values:
            self.kernel._compare(one, other, values, symmetric)
            if symmetric:
                mirror(values)
            # What is beyond float32 is an error below.
            with np.errstate(over="ignore"):
                np.multiply(values, multiplier, out=out, casting="same_kind")
        check_finite(out, self.kernel)

    def diagonal(self, operand: Operand) -> Array:
        values = self.kernel._compare_self(operand[0])
        check_finite(values, self.kernel)
        return values

    def pull(self, left: Operand, right: Operand, weights: Array) -> Array:
        return self.kernel._pull_pairs(left[0], right[0], weights)

    def pull_diagonal(self, operand: Operand, weights: Array) -> Array:
        return self.kernel._pull_self(operand[0], weights)


@dataclass(frozen=True, repr=False)
class PairKernel(ObjectKernel):
    """Base of kernels that compare two objects in a compiled loop."""

    side: ClassVar[int] = 32
    """Rows and columns of a tile: few, since a pair takes long, so that threads share the work evenly."""

    @property
    def tile(self) -> int:
        return self.side

    def _packing(self) -> Hashable:
        """What the packed form depends on; kernels with equal values share it."""
        return type(self).__name__

    @abc.abstractmethod
    def _pack(self, objects: Any) -> Any:
        """The rows as arrays, in the form that the loops read."""

    @abc.abstractmethod
    def _compare(self, left: Packed, right: Packed, out: Array, symmetric: bool) -> None:
        """Write ``k(x_i, z_j)`` into ``out``, float64; entries below the diagonal may be left out if symmetric."""

    def _compare_self(self, rows: Packed) -> Array:
        """``k(x_i, x_i)``."""
        values, one = np.empty(len(rows)), np.empty((1, 1))
        for number in range(len(rows)):
            single = rows[number : number + 1]
            self._compare(single, single, one, True)
            values[number] = one[0, 0]
        return values

    def _pull_pairs(self, left: Packed, right: Packed, weights: Array) -> Array:
        """``sum_ij weights_ij d k(x_i, z_j) / d p`` for each of the kernel's numbers, in their order."""
        return np.zeros(0)

    def _pull_self(self, rows: Packed, weights: Array) -> Array:
        """The same over the pairs ``(x_i, x_i)``."""
        parts = [
            self._pull_pairs(rows[i : i + 1], rows[i : i + 1], np.full((1, 1), weight))
            for i, weight in enumerate(weights)
        ]
        return np.sum(parts, axis=0)

    def _fill(self, pairs: Pairs, out: Array) -> None:
        pairs.statistic(Compared(self), 1.0, out)

    def _pull(self, pairs: Pairs, weights: Array, slopes: Array) -> None:
        if slopes.size:
            slopes += pairs.pull(Compared(self), weights)

    def _uses(self, scope: Scope) -> Iterator[Hashable]:
        yield scope, Compared(self)
