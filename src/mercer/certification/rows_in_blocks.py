"""The rows of a fit to blocks, for certificates: read anew for each pass, and a few of them at a time in memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from mercer._errors import DataError, ParameterError
from mercer._types import AnyArray, Matrix, Positions, Vector
from mercer.data.blocks.block import Block, join
from mercer.data.blocks.blocks import Blocks
from mercer.engine import memory
from mercer.gram import Gram


@dataclass(frozen=True, eq=False)
class RowsInBlocks:
    """Some rows of blocks.

    An index by positions reads these rows; :meth:`some` leaves them where they are.

    Parameters
    ----------
    blocks : Blocks
    kept : ndarray of int of shape (n,)
        The positions of the rows, ascending.
    """

    blocks: Blocks
    kept: Positions

    @property
    def shape(self) -> tuple[int, int]:
        """As of an array."""
        return len(self.kept), self.blocks.d

    @property
    def dtype(self) -> np.dtype:
        """As of an array."""
        return self.blocks.dtype

    def __iter__(self) -> Iterator[Any]:
        """Yield the rows, block by block."""
        for X, _ in self._parts(self.kept):
            yield X

    def __getitem__(self, index: Any) -> Any:
        """Rows by positions or a mask, in memory and in this order; one pass."""
        positions = self.kept[index]
        order = np.argsort(positions, kind="stable")
        size = 8 * len(positions) * self.blocks.d
        with memory.reserve(size, f"{len(positions):,} rows of {self.blocks.d:,} columns"):
            rows = join([Block(X) for X, _ in self._parts(positions[order])]).X
        return rows[np.argsort(order, kind="stable")]

    def some(self, mask: Any) -> RowsInBlocks:
        """Part of the rows, where they are."""
        return replace(self, kept=self.kept[mask])

    def of_each(self, function: Callable[[Any], Any]) -> Any:
        """What a function returns for the rows of each block, joined; one pass."""
        return np.concatenate([function(X) for X in self])

    def _parts(self, positions: Positions) -> Iterator[tuple[Any, slice]]:
        """Rows at ascending positions among all, and which of the positions these are."""
        first, done = 0, 0
        for block in self.blocks:
            last = first + block.rows
            stop = int(np.searchsorted(positions, last))
            if stop > done:
                here = positions[done:stop] - first
                yield (block.X if len(here) == block.rows and _in_order(here) else block.X[here]), slice(done, stop)
            first, done = last, stop

    def products(self, kernel: Any, left: Any, C: Matrix, n_jobs: int | None) -> Matrix:
        """Kernel values of the rows ``left`` (r, d) with these rows, times C (n, k): (r, k), by one pass."""
        total = np.zeros((left.shape[0], C.shape[1]))
        for X, part in self._parts(self.kept):
            total += np.asarray(Gram(kernel, left, X, dtype=np.float64, n_jobs=n_jobs) @ C[part], dtype=np.float64)
        return total


def _in_order(positions: Positions) -> bool:
    return bool((positions == np.arange(len(positions))).all())


@dataclass(frozen=True, eq=False)
class GramOfBlocks:
    """The kernel matrix of rows in blocks, of which some rows can be multiplied with columns of numbers."""

    kernel: Any
    rows: RowsInBlocks
    n_jobs: int | None
    chosen: Positions | None = None

    @property
    def shape(self) -> tuple[int, int]:
        """As of any matrix."""
        n = self.rows.shape[0]
        return (n if self.chosen is None else len(self.chosen)), n

    def restrict(self, rows: Positions, columns: None) -> GramOfBlocks:
        """Some rows, and all columns."""
        return replace(self, chosen=rows)

    def __matmul__(self, C: Matrix) -> Matrix:
        """The chosen rows times C, by two passes."""
        assert self.chosen is not None
        return self.rows.products(self.kernel, self.rows[self.chosen], C, self.n_jobs)


def of_blocks(
    blocks: Blocks, y: Any, sample_weight: Any, n_rows: int | None
) -> tuple[RowsInBlocks, AnyArray, Vector | None]:
    """Rows, targets and weights of blocks for a certificate from ``n_rows`` of them.

    Raises
    ------
    ParameterError
        If there is no number of rows: all pairs would take a pass for each block.
    DataError
        If targets or weights are given beside the blocks, or they have no targets.
    """
    n = blocks.n
    if n_rows is None or n_rows >= n:
        raise ParameterError(
            f"n_rows is {n_rows}, and all pairs of {n:,} rows in blocks take a pass over them for each block. Pass "
            "fewer rows, such as n_rows=500, whose pairs with all others take few passes; or arrays."
        )
    if y is not None or sample_weight is not None:
        raise DataError(
            "certify_landmarks takes targets and weights from the blocks, so leave out y and sample_weight: "
            "Blocks(X, target, sample_weight=...)."
        )
    targets: list[AnyArray] = []
    weights: list[Vector] = []
    for block in blocks:
        if block.y is None:
            raise DataError(f"certify_landmarks needs targets, and {blocks!r} has none; name them with target=....")
        targets.append(block.y)
        if block.sample_weight is not None:
            weights.append(block.sample_weight)
    weight = np.concatenate(weights) if weights else None
    return RowsInBlocks(blocks, np.arange(n)), np.concatenate(targets), weight
