"""Rows that come in blocks, and passes over them that go on where they were interrupted."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np

from mercer._types import Matrix, Vector
from mercer.solvers.restricted.passes import Part, StoredRows, Visit

# The blocks from a number on, each as rows in memory for the time of its turn.
Read = Callable[[int], Iterator[StoredRows]]
Draw = Callable[[int, np.random.RandomState], tuple[Matrix, Part]]


class Memory(Protocol):
    """What is remembered of passes, so that the same work after an interruption need not be done again."""

    def recall(self) -> tuple[Matrix, Vector] | None:
        """The answer of the next pass, if it is known."""

    def begun(self) -> tuple[int, Matrix, Vector] | None:
        """How many blocks of the next pass were summed, and their sums; None if there are none."""

    def note(self, blocks: int, products: Matrix, sums: Vector) -> None:
        """Keep the sums of the first blocks of a pass."""

    def keep(self, products: Matrix, sums: Vector) -> None:
        """Keep the answer of a pass."""


@dataclass(frozen=True, eq=False)
class BlockedRows:
    """Rows in blocks that are read anew for each pass; sums over blocks are in their order.

    Parameters
    ----------
    shape : tuple of int
        Rows n, landmarks m, targets t.
    read : callable
        From the number of a block to an iterator over it and those after it.
    draw : callable
        A uniform sample of rows.
    memory : Memory, optional
        Where answers are kept.
    in_single : bool, default=False
        Whether kernel values are in float32.
    """

    shape: tuple[int, int, int]
    read: Read
    draw: Draw
    memory: Memory | None = None
    in_single: bool = False

    def sweep(self, V: Matrix, visit: Visit, widths: tuple[int, int]) -> tuple[Matrix, Vector]:
        """``K^T U`` and sums over blocks."""
        memory = self.memory
        known = None if memory is None else memory.recall()
        if known is not None:
            return known
        begun = None if memory is None else memory.begun()
        first, products, sums = begun or (0, np.zeros((self.shape[1], widths[0])), np.zeros(widths[1]))
        for number, rows in enumerate(self.read(first), first + 1):
            part = (rows.single() or rows) if self.in_single else rows
            found = part.sweep(V, visit, widths)
            products, sums = products + found[0], sums + found[1]
            if memory is not None:
                memory.note(number, products, sums)
        if memory is not None:
            memory.keep(products, sums)
        return products, sums

    def single(self) -> BlockedRows:
        """The same rows with kernel values in float32."""
        return replace(self, in_single=True)

    def sample(self, count: int, random: np.random.RandomState) -> tuple[Matrix, Part]:
        """A uniform sample of rows: their kernel values in float64, targets and weights."""
        return self.draw(count, random)
