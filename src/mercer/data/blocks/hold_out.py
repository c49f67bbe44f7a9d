"""Rows that are held out of blocks: drawn in one pass, and left out of later ones."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass

import numpy as np

from mercer._errors import DataError
from mercer._types import Positions
from mercer.data.blocks.block import Block
from mercer.data.blocks.blocks import Blocks
from mercer.data.blocks.moments import Labels
from mercer.data.blocks.reservoir import Reservoir
from mercer.engine import memory

# A class keeps at least this share of its rows.
_MOST_OF_CLASS = 0.5


@dataclass(frozen=True, eq=False)
class HeldOutRows:
    """Some rows of blocks, and the others.

    Parameters
    ----------
    blocks : Blocks
        All rows.
    used : int
        How many have a weight.
    positions : ndarray of shape (h,)
        Those of the rows held out, ascending.
    sample : Block
        The rows held out.
    """

    blocks: Blocks
    used: int
    positions: Positions
    sample: Block

    @classmethod
    def of(cls, blocks: Blocks, share: float, most: int, random: np.random.RandomState, *, labels: bool) -> HeldOutRows:
        """Draw a share of the rows with a weight, uniformly, and at most so many; one pass.

        Parameters
        ----------
        blocks : Blocks
            With targets.
        share : float
        most : int
        random : RandomState
        labels : bool
            Whether targets are labels: a class of which more than half would be drawn keeps its rows.

        Raises
        ------
        DataError
            If all weights are zero.
        """
        reservoir, counts, used = Reservoir(most, random), Labels(), 0
        with ExitStack() as stack:
            for number, block in enumerate(blocks):
                if not number and isinstance(block.X, np.ndarray):
                    # How many entries sparse rows have is not known.
                    size = 2 * min(most, blocks.n) * blocks.d * 8
                    stack.enter_context(memory.reserve(size, "rows that are held out"))
                reservoir.add(block)
                weighted = np.ones(block.rows) if block.sample_weight is None else np.sign(block.sample_weight)
                used += int(np.count_nonzero(weighted))
                if labels and block.y is not None:
                    counts.add(block.y[weighted > 0], weighted[weighted > 0])
        sample, positions = reservoir.sample, reservoir.positions
        if sample is None:
            raise DataError(f"{blocks!r}: all sample weights are zero, so no row can be drawn.")
        chosen = np.sort(random.permutation(len(positions))[: int(share * used)])
        if labels and sample.y is not None:
            chosen = _leaving_classes(sample, chosen, counts)
        return cls(blocks, used, positions[chosen], sample.take(chosen))

    def others(self) -> Blocks:
        """The rows that are not held out, in blocks of the same size."""
        if not len(self.positions):
            return self.blocks

        def rows_not_held_out() -> Iterator[Block]:
            first = 0
            for block in self.blocks:
                begin, end = np.searchsorted(self.positions, [first, first + block.rows])
                kept = np.delete(np.arange(block.rows), self.positions[begin:end] - first)
                first += block.rows
                yield block.take(kept)

        return Blocks.from_function(rows_not_held_out, rows_per_block=self.blocks.rows_per_block)


def _leaving_classes(sample: Block, chosen: Positions, counts: Labels) -> Positions:
    """Those of the chosen rows of the sample whose classes keep most of their rows."""
    assert sample.y is not None
    classes, totals = counts.result(sample.y.dtype)
    if classes is None or totals is None:
        return chosen
    codes = np.searchsorted(classes, sample.y)
    drawn = np.bincount(codes[chosen], minlength=len(classes))
    return chosen[(drawn <= _MOST_OF_CLASS * totals)[codes[chosen]]]
