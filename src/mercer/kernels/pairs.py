"""The pairs of rows in one tile of a block of kernel values, as a kernel receives them.

``TilePairs`` is what a kernel receives to fill a tile; ``MatchedPairs`` stands for the pairs ``(x_i, x_i)`` of a
diagonal. A kernel requests *statistics* from both (inner products, distances), which terms on the same columns share.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Hashable, Mapping
from contextlib import AbstractContextManager
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mercer._types import Array
from mercer.engine import tiles
from mercer.kernels.inputs import Frame, Index, Operand, Rows, Scope


def scratch(like: Array) -> AbstractContextManager[Array]:
    """A work array of the shape of ``like``, returned at the end of the block."""
    return tiles.scratch(like.shape, like.dtype)


class TilePairs:
    """The pairs ``(x_i, z_j)`` of one tile, as a kernel receives them.

    ``operands`` stores the operands of the sides, for all tiles of a block. ``repeated`` names the statistics that more
    than one term uses: those are computed once per tile. ``instead`` names substitutes for statistics, each with the
    maps and choices of columns that come before it.
    """

    def __init__(
        self,
        left: Rows,
        right: Rows,
        tile: tuple[Index, slice],
        dtype: np.dtype,
        operands: dict[Hashable, tuple[Operand, Operand]],
        repeated: frozenset[Hashable] = frozenset(),
        instead: Mapping[Any, Any] = MappingProxyType({}),
    ) -> None:
        self.left, self.right, (self.rows, self.columns) = left, right, tile
        self.dtype, self.repeated, self.instead = dtype, repeated, instead
        self.scope: Scope = ()
        self._operand_cache = operands
        self._cache: dict[Hashable, Array] = {}
        self._last: tuple[Any, tuple[Operand, Operand]] | None = None

    @property
    def shape(self) -> tuple[int, ...]:
        rows, columns = self.rows, self.columns
        height = rows.stop - rows.start if isinstance(rows, slice) else len(rows)
        return height, columns.stop - columns.start

    def _operands(self, statistic: Any) -> tuple[Operand, Operand]:
        if self._last is not None and self._last[0] is statistic:
            return self._last[1]
        key = (id(self.left), id(self.right), statistic, self.dtype)
        both = self._operand_cache.get(key)
        if both is None:
            frame, dtype = Frame(self.left.root, self.right.root), self.dtype
            both = self.left.operand(statistic, frame, dtype), self.right.operand(statistic, frame, dtype)
            self._operand_cache[key] = both
        self._last = statistic, (tuple([a[self.rows] for a in both[0]]), tuple([a[self.columns] for a in both[1]]))
        return self._last[1]

    def _substitute(self, statistic: Any) -> Any:
        return self.instead.get((self.scope, statistic), statistic) if self.instead else statistic

    def statistic(self, statistic: Any, multiplier: float, out: Array) -> None:
        """Write ``multiplier * statistic`` into ``out``."""
        if self.repeated and (self.scope, statistic) in self.repeated:
            np.multiply(self.values(statistic), out.dtype.type(multiplier), out=out)
        else:
            statistic = self._substitute(statistic)
            statistic.fill(*self._operands(statistic), multiplier, out)

    def by_table(self, statistic: Any, multiplier: float, finish: Callable[[Array], None], out: Array) -> bool:
        """Write ``finish(multiplier * statistic)`` from a table if the statistic is a count; otherwise return False.

        A count has few values, and looking one up costs less than most functions.
        """
        if self.repeated and (self.scope, statistic) in self.repeated:
            return False
        statistic = self._substitute(statistic)
        left, right = self._operands(statistic)
        largest = statistic.largest_count(left)
        if largest is None or out.size < largest:
            return False
        table = (multiplier * np.arange(largest + 1)).astype(out.dtype)
        finish(table)
        statistic.look_up(left, right, table, out)
        return True

    def values(self, statistic: Any) -> Array:
        """The statistic itself, stored for the life of the tile; read-only."""
        statistic = self._substitute(statistic)
        key = (self.scope, statistic)
        if key not in self._cache:
            out = tiles.borrow(self.shape, self.dtype)
            statistic.fill(*self._operands(statistic), 1.0, out)
            self._cache[key] = out
        return self._cache[key]

    def release(self) -> None:
        """Return the arrays of the statistics: the tile is finished."""
        for array in self._cache.values():
            tiles.give_back(array)
        self._cache.clear()

    def pull(self, statistic: Any, weights: Array) -> Array:
        """``sum_ij weights_ij d statistic_ij / d scale_c`` for every scale of the statistic."""
        return statistic.pull(*self._operands(statistic), weights)

    def seen(self, left: Rows, right: Rows, step: Hashable) -> TilePairs:
        """The same pairs through a map or a choice of columns."""
        pairs = copy.copy(self)
        pairs.left, pairs.right, pairs.scope, pairs._last = left, right, (*self.scope, step), None
        return pairs

    def vectors(self, key: Hashable, make: Callable[[Rows], Array]) -> tuple[Array, Array]:
        """One number a row of either side, in the precision that ``make`` gives."""
        return self.left.vector(key, make)[self.rows], self.right.vector(key, make)[self.columns]

    def numbers(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The numbers of the rows of either side, which are equal only where a row meets itself."""
        left, right = self.left.numbers[self.rows], self.right.numbers[self.columns]
        return (left, right) if self.left.root is self.right.root else (left, -2 - right)

    def sides(self) -> tuple[MatchedPairs, MatchedPairs]:
        """The diagonals' pairs of the rows of either side."""
        dtype = np.dtype(np.float64)
        return (MatchedPairs(self.left.take(self.rows), dtype), MatchedPairs(self.right.take(self.columns), dtype))

    def sums(self, weights: Array) -> tuple[Array, Array]:
        """Sums of the weights of the pairs of every row of either side."""
        return weights.sum(axis=1, dtype=np.float64), weights.sum(axis=0, dtype=np.float64)


class MatchedPairs:
    """The pairs ``(x_i, x_i)``: everything is one number a row."""

    def __init__(self, side: Rows, dtype: np.dtype, scope: Scope = ()) -> None:
        self.left = self.right = side
        self.dtype, self.scope = dtype, scope

    @property
    def shape(self) -> tuple[int, ...]:
        return (self.left.n,)

    def _operand(self, statistic: Any) -> Operand:
        return self.left.operand(statistic, Frame(self.left.root, self.left.root), self.dtype)

    def statistic(self, statistic: Any, multiplier: float, out: Array) -> None:
        np.multiply(self.values(statistic), multiplier, out=out)

    def by_table(self, statistic: Any, multiplier: float, finish: Callable[[Array], None], out: Array) -> bool:
        """A table does not pay for one number a row."""
        return False

    def values(self, statistic: Any) -> Array:
        return statistic.diagonal(self._operand(statistic))

    def pull(self, statistic: Any, weights: Array) -> Array:
        return statistic.pull_diagonal(self._operand(statistic), weights)

    def seen(self, left: Rows, right: Rows, step: Hashable) -> MatchedPairs:
        return MatchedPairs(left, self.dtype, (*self.scope, step))

    def vectors(self, key: Hashable, make: Callable[[Rows], Array]) -> tuple[Array, Array]:
        vector = self.left.vector(key, make)
        return vector, vector

    def sides(self) -> tuple[MatchedPairs, MatchedPairs]:
        return self, self

    def sums(self, weights: Array) -> tuple[Array, Array]:
        return weights, weights


Pairs = TilePairs | MatchedPairs
