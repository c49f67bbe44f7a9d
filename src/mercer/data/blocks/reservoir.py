"""A uniform sample of rows in one pass."""

from __future__ import annotations

import numpy as np

from mercer._types import Positions, Vector
from mercer.data.blocks.block import Block, join


class Reservoir:
    """A sample of ``size`` rows without replacement; each set of so many rows has the same probability.

    Every row gets a uniform random number, in the order of the rows, and the rows with the smallest numbers stay. So
    the sample depends on the rows and the generator alone, not on how the rows are cut into blocks. Rows of weight zero
    are never drawn.

    >>> reservoir = Reservoir(2, np.random.RandomState(0))
    >>> reservoir.add(Block(np.arange(4.0)[:, None])); reservoir.add(Block(np.arange(4.0, 9.0)[:, None]))
    >>> reservoir.sample.X.ravel().tolist()
    [4.0, 6.0]
    """

    def __init__(self, size: int, random: np.random.RandomState) -> None:
        self._size = size
        self._random = random
        self._kept: Block | None = None
        self._keys: Vector = np.zeros(0)
        self._positions: Positions = np.zeros(0, dtype=np.intp)
        self._offered = 0

    def add(self, block: Block) -> None:
        """Offer the rows of a block."""
        keys = self._random.random_sample(block.rows)
        if block.sample_weight is not None:
            keys[block.sample_weight == 0] = np.inf
        limit = self._keys.max() if len(self._keys) == self._size else np.inf
        chosen, first = np.flatnonzero(keys < limit), self._offered
        self._offered += block.rows
        if not len(chosen):
            return
        new = block.take(chosen)
        rows = new if self._kept is None else join([self._kept, new])
        keys = np.concatenate([self._keys, keys[chosen]])
        positions = np.concatenate([self._positions, chosen + first])
        # In the order of the rows; a stable sort lets the earlier of equal numbers stay.
        stay = np.sort(np.argsort(keys, kind="stable")[: self._size])
        self._kept, self._keys, self._positions = rows.take(stay), keys[stay], positions[stay]

    @property
    def sample(self) -> Block | None:
        """The rows that were drawn, in their order; None if there were none to draw."""
        return self._kept

    @property
    def positions(self) -> Positions:
        """Where they are among all rows that were offered."""
        return self._positions
