"""Rows that come in blocks, and passes over them that go on where they were interrupted."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Protocol

import numpy as np

from mercer._errors import NumericalError
from mercer._types import Matrix, Vector
from mercer.solvers.restricted.passes import Part, Revise, StoredRows, Visit
from mercer.solvers.restricted.revised import RevisedRows

# The blocks from a number on, each as rows in memory for the time of its turn.
Read = Callable[[int], Iterator[StoredRows]]
Note = Callable[[int, Matrix, Vector], None]
Draw = Callable[[int, np.random.RandomState], tuple[Matrix, Part]]


# What is kept of a pass that ended in an error: all others have a row for each landmark.
_ERROR = np.empty((0, 0)), np.empty(0)


class Memory(Protocol):
    """What is remembered of passes, so that the same work after an interruption need not be done again.

    A pass has a key, which identifies its request, so that no answer goes to another pass.
    """

    def recall(self, key: str) -> tuple[Matrix, Vector] | None:
        """The answer of the next pass, if it is known and has this key."""

    def begun(self, key: str) -> tuple[int, Matrix, Vector] | None:
        """How many blocks of the pass with this key were summed, and their sums; None if there are none."""

    def note(self, key: str, blocks: int, products: Matrix, sums: Vector) -> None:
        """Keep the sums of the first blocks of a pass."""

    def keep(self, key: str, products: Matrix, sums: Vector) -> None:
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
        memory, start = self.memory, (0, np.zeros((self.shape[1], widths[0])), np.zeros(widths[1]))
        if memory is None:
            return self._summed(V, visit, widths, start, lambda *sums: None)
        key = hashlib.sha256(repr((V.shape, widths, self.in_single)).encode() + V.tobytes()).hexdigest()
        known = memory.recall(key)
        if known is None:
            try:
                known = self._summed(V, visit, widths, memory.begun(key) or start, partial(memory.note, key))
            except NumericalError:
                memory.keep(key, *_ERROR)
                raise
            memory.keep(key, *known)
        if not len(known[0]):
            raise NumericalError("kernel values are out of range; scale the columns of X.")
        return known

    def _summed(
        self, V: Matrix, visit: Visit, widths: tuple[int, int], start: tuple[int, Matrix, Vector], note: Note
    ) -> tuple[Matrix, Vector]:
        """Add the sums of further blocks to those of the first ones."""
        first, products, sums = start
        for number, rows in enumerate(self.read(first), first + 1):
            part = (rows.single() or rows) if self.in_single else rows
            more_products, more_sums = part.sweep(V, visit, widths)
            products, sums = products + more_products, sums + more_sums
            note(number, products, sums)
        return products, sums

    def revised(
        self, V: Matrix, revise: Revise, visit: Visit, widths: tuple[int, int]
    ) -> tuple[RevisedRows, Matrix, Vector]:
        """The rows with the targets ``revise(part, K[part] @ V)``, and what a sweep over these returns; one pass."""
        return RevisedRows(self, ()).revised(V, revise, visit, widths)

    def single(self) -> BlockedRows:
        """The same rows with kernel values in float32."""
        return replace(self, in_single=True)

    def sample(self, count: int, random: np.random.RandomState) -> tuple[Matrix, Part]:
        """A uniform sample of rows: their kernel values in float64, targets and weights."""
        return self.draw(count, random)
