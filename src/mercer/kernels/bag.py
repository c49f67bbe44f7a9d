"""Kernels on bags: the mean of a kernel over all pairs of their members."""

from __future__ import annotations

import abc
import dataclasses
from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from mercer._errors import DataError, ParameterError
from mercer._types import Array
from mercer.data.bags import Bags, member_vectors
from mercer.data.objects import Anything, Objects
from mercer.engine import tiles
from mercer.engine.threads import checkpoint
from mercer.kernels.base import Definiteness, Expression
from mercer.kernels.inputs import Frame, Operand, Rows, Scope
from mercer.kernels.kernel import Kernel
from mercer.kernels.kinds import rows_of
from mercer.kernels.objects import ObjectKernel
from mercer.kernels.pairs import Pairs, TilePairs
from mercer.kernels.plan import Plan
from mercer.kernels.statistics import Statistic
from mercer.loops.transpose import mirror


class _BagRows:
    """Some bags of a container: their members as rows, and where each bag begins among these."""

    def __init__(self, bags: Bags, members: Rows, index: NDArray[np.int64]) -> None:
        self.bags, self.members, self.index = bags, members, index

    def __len__(self) -> int:
        return len(self.index)

    def __getitem__(self, chosen: Any) -> _BagRows:
        return _BagRows(self.bags, self.members, self.index[chosen])

    def same(self, other: _BagRows) -> bool:
        """Whether both are the same bags in the same order."""
        return self.members is other.members and np.array_equal(self.index, other.index)

    def rows(self) -> tuple[Rows, int, NDArray[np.int64]]:
        """Rows that hold the members, the position of the first, and where the bags begin behind that (and end)."""
        sizes = np.diff(self.bags.starts)[self.index]
        cuts = np.concatenate([np.zeros(1, np.int64), np.cumsum(sizes)])
        if (np.diff(self.index) == 1).all():
            return self.members, int(self.bags.starts[self.index[0]]), cuts
        return self.members.take(self.bags.positions(self.index)), 0, cuts


@dataclass(frozen=True)
class _Mean(Statistic):
    """The mean of the inner kernel over all pairs of members."""

    kernel: MeanKernel

    def prepare(self, side: Rows, frame: Frame, dtype: np.dtype) -> Operand:
        self.kernel._check_sides(frame)
        bags = self.kernel._bags(side)
        # With the side, and not with the bags: what is kept of rows lives as long as the block does.
        members = side.keep(("members", id(bags)), lambda: Rows(bags.rows))
        return (_BagRows(bags, members, np.arange(side.n)),)

    def _visit(self, left: _BagRows, right: _BagRows, visit: Callable[[TilePairs, _Part, _Part], None]) -> None:
        """Call ``visit`` for all pairs of members, by parts, in a fixed order."""
        (one, first, cuts), (other, second, others) = left.rows(), right.rows()
        plan = Plan(self.kernel._inner, one, other, np.dtype(np.float64))
        try:
            for rows in tiles.spans(int(cuts[-1])):
                for columns in tiles.spans(int(others[-1])):
                    checkpoint()
                    pairs = plan.pairs(_moved(rows, first), _moved(columns, second), plan.dtype)
                    visit(pairs, _Part(rows, cuts), _Part(columns, others))
                    pairs.release()
        except DataError as error:
            raise DataError(f"of the members of all rows, counted one row after the other: {error}") from error

    def fill(self, left: Operand, right: Operand, multiplier: float, out: Array) -> None:
        out[...] = 0
        inner = self.kernel._inner

        def add(pairs: TilePairs, rows: _Part, columns: _Part) -> None:
            with tiles.scratch(pairs.shape, pairs.dtype) as values:
                inner._fill(pairs, values)
                sums = np.add.reduceat(np.add.reduceat(values, columns.begins, axis=1), rows.begins, axis=0)
            out[rows.bags, columns.bags] += sums

        self._visit(left[0], right[0], add)
        out *= multiplier / np.outer(_sizes(left[0]), _sizes(right[0]))
        if left[0].same(right[0]):
            mirror(out)

    def diagonal(self, operand: Operand) -> Array:
        values, one = np.empty(len(operand[0])), np.empty((1, 1))
        for number in range(len(values)):
            single = (operand[0][number : number + 1],)
            self.fill(single, single, 1.0, one)
            values[number] = one[0, 0]
        return values

    def pull(self, left: Operand, right: Operand, weights: Array) -> Array:
        inner = self.kernel._inner
        slopes = np.zeros(len(inner.parameters))
        shares = weights / np.outer(_sizes(left[0]), _sizes(right[0]))

        def add(pairs: TilePairs, rows: _Part, columns: _Part) -> None:
            of_members = shares[rows.bags, columns.bags][rows.owners][:, columns.owners]
            inner._pull(pairs, np.ascontiguousarray(of_members), slopes)

        self._visit(left[0], right[0], add)
        return slopes

    def pull_diagonal(self, operand: Operand, weights: Array) -> Array:
        rows = operand[0]
        parts = [self.pull((rows[i : i + 1],), (rows[i : i + 1],), weights[i : i + 1, None]) for i in range(len(rows))]
        return np.sum(parts, axis=0)


class _Part:
    """A part of the members of some bags: which bags it touches, and which member is whose."""

    def __init__(self, part: slice, cuts: NDArray[np.int64]) -> None:
        first = int(np.searchsorted(cuts, part.start, side="right")) - 1
        last = int(np.searchsorted(cuts, part.stop, side="left"))
        self.bags = slice(first, last)
        self.begins = np.maximum(cuts[first:last], part.start) - part.start
        self._size = part.stop - part.start

    @property
    def owners(self) -> NDArray[np.int64]:
        """The bag of each member, counted from the first that the part touches."""
        return np.repeat(np.arange(len(self.begins)), np.diff(np.append(self.begins, self._size)))


def _moved(part: slice, by: int) -> slice:
    return slice(part.start + by, part.stop + by)


def _sizes(chosen: _BagRows) -> NDArray[np.int64]:
    return np.diff(chosen.bags.starts)[chosen.index]


@dataclass(frozen=True, repr=False)
class MeanKernel(ObjectKernel):
    """Base of kernels ``k(A, B) = mean_{a in A, b in B} inner(a, b)`` over the parts into which rows are split."""

    side: ClassVar[int] = 32
    """Rows and columns of a tile: few, since a pair of rows is many pairs of parts."""

    @property
    def tile(self) -> int:
        return self.side

    @property
    @abc.abstractmethod
    def _inner(self) -> Kernel:
        """The kernel between two parts; its numbers are those of this kernel, in their order."""

    @abc.abstractmethod
    def _bags(self, side: Rows) -> Bags:
        """The parts of all rows."""

    def _check_sides(self, frame: Frame) -> None:
        """Raise if the parts of the two sides cannot be compared."""

    @property
    def definiteness(self) -> Definiteness:
        # It is the inner product of means in feature space. Where weights of bags sum to 0, so do those of members.
        return self._inner.definiteness

    def _fill(self, pairs: Pairs, out: Array) -> None:
        pairs.statistic(_Mean(self), 1.0, out)

    def _pull(self, pairs: Pairs, weights: Array, slopes: Array) -> None:
        if slopes.size:
            slopes += pairs.pull(_Mean(self), weights)

    def _uses(self, scope: Scope) -> Iterator[Hashable]:
        yield scope, _Mean(self)


@dataclass(frozen=True, repr=False)
class SetOf(MeanKernel):
    """``k(A, B) = mean_{a in A, b in B} kernel(a, b)`` on bags of anything that ``kernel`` compares.

    It is the inner product of the bags' means in the feature space of ``kernel``. A row is a sequence of at least one
    member: an array (members, d), or a list of vectors, strings, graphs, or of bags for ``SetOf(SetOf(...))``.

    Parameters
    ----------
    kernel : Kernel
        Any kernel on the members.
    tuning : tuple, optional
        Set by :meth:`fixed` and :meth:`bounded`.

    Raises
    ------
    ParameterError
        If ``kernel`` is not a kernel, or is for columns of several kinds.
    DataError
        When evaluated, if a row is not a sequence, or is empty, or a member is not what ``kernel`` compares.

    Notes
    -----
    Gaertner, Flach, Kowalczyk and Smola (2002), "Multi-instance kernels", section 3; Smola, Gretton, Song and
    Schoelkopf (2007), "A Hilbert space embedding for distributions". The cost of a pair of rows is that of
    ``len(A) len(B)`` pairs of members.

    Examples
    --------
    >>> from mercer.kernels import RBF, Spectrum
    >>> SetOf(RBF(1.0))([[[0.0], [1.0]], [[0.0]]]).round(4).tolist()
    [[0.8033, 0.8033], [0.8033, 1.0]]
    >>> SetOf(Spectrum(1))([["ab", "b"], ["a"]]).tolist()
    [[1.25, 0.5], [0.5, 1.0]]
    """

    kernel: Any

    rows_of: ClassVar[type[Objects]] = Bags

    def __post_init__(self) -> None:
        super().__post_init__()
        if not isinstance(self.kernel, Kernel):
            raise ParameterError(f"SetOf takes a kernel, but got {self.kernel!r}.")
        if self.kernel.kind_of_rows() == "table":
            raise ParameterError(
                f"SetOf takes a kernel on members of one kind, but {self.kernel!r} is for columns of several kinds."
            )

    def children(self) -> tuple[tuple[str, Expression], ...]:
        return (("kernel", self.kernel),)

    def with_children(self, kernels: tuple[Any, ...]) -> Any:
        return dataclasses.replace(self, kernel=kernels[0])

    @property
    def _inner(self) -> Kernel:
        inner: Kernel = self.kernel
        return inner

    def _seen_by_parts(self, rows: Rows) -> Rows:
        return Rows(self._bags(rows).rows)

    def _bags(self, side: Rows) -> Bags:
        bags: Bags = side.keep(("bags", self.kernel), lambda: self.read_rows(side.raw))
        return bags

    def read_rows(self, X: Any) -> Bags:
        return Bags.of(X, members=self._members)

    def _members(self, members: Any) -> Any:
        rows = rows_of(self.kernel, members)
        if isinstance(rows, Objects):
            return rows
        if self.kernel.kind_of_rows() == "vectors":
            return rows if isinstance(rows, np.ndarray) else member_vectors(rows)
        return rows if isinstance(rows, np.ndarray) and rows.ndim == 2 else Anything.of(rows)
