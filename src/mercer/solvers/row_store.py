"""The gradient update ``F -= K[:, index] @ weights``: rows are made tile by tile, and the latest are kept."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack

import numpy as np

from mercer.engine import memory, threads
from mercer.engine.tiles import scratch_tile
from mercer.loops.smo import subtract_rows
from mercer.solvers.problems import GramMatrix, Vector

# Columns and rows of what one task makes at a time: it stays in the cache until the gradient has used it.
_SPAN = 4096
_HEIGHT = 512
_SCRATCH = "fresh kernel rows"


class RowStore:
    """Keeps the rows of ``gram`` that were used last, in at most ``limit`` bytes.

    A weight that has just moved is likely to move again, so the row that was used longest ago makes room. New rows
    are used while they are in the cache and copied into the store afterwards: most of the traffic is reading.
    """

    def __init__(self, gram: GramMatrix, limit: int, n_jobs: int | None) -> None:
        self._gram, self._n_jobs = gram, n_jobs
        n = gram.shape[0]
        self._dtype = np.dtype(gram.dtype)
        row_bytes = n * self._dtype.itemsize
        capacity = int(min(n, min(limit, memory.budget()) // row_bytes))
        self._held = ExitStack()
        self._held.enter_context(memory.reserve(capacity * row_bytes, "kept kernel rows"))
        self._rows = np.empty((capacity, n), self._dtype)
        self._owner = np.full(capacity, -1)
        self._used = np.zeros(capacity, dtype=np.int64)
        self._slot = np.full(n, -1)
        self._round = 0

    @property
    def nbytes(self) -> int:
        """What the kept rows take at most."""
        return self._rows.nbytes

    def __enter__(self) -> RowStore:
        return self

    def __exit__(self, *_: object) -> None:
        del self._rows
        self._held.close()

    def subtract(self, F: Vector, index: np.ndarray, weights: Vector) -> None:
        """``F -= K[:, index] @ weights``, summed in float64."""
        self._round += 1
        slots = self._slot[index]
        there = slots >= 0
        self._used[slots[there]] = self._round
        fresh = index[~there]
        pieces = [slice(s, min(s + _HEIGHT, len(fresh))) for s in range(0, len(fresh), _HEIGHT)]
        targets = self._make_room(fresh)
        operands = [self._gram.restrict(fresh[piece], None) for piece in pieces]

        def work(columns: slice) -> Callable[[], None]:
            def task() -> None:
                subtract_rows(F[columns], self._rows[:, columns], slots[there], weights[there])
                for piece, operand in zip(pieces, operands):
                    count = piece.stop - piece.start
                    tile = scratch_tile(_SCRATCH, (count, columns.stop - columns.start), self._dtype)
                    operand.block(None, columns, out=tile)
                    subtract_rows(F[columns], tile, np.arange(count), weights[~there][piece])
                    keep = targets[piece]
                    self._rows[keep, columns] = tile[: len(keep)]

            return task

        n = len(F)
        threads.run([work(slice(s, min(s + _SPAN, n))) for s in range(0, n, _SPAN)], self._n_jobs)

    def _make_room(self, fresh: np.ndarray) -> np.ndarray:
        """Slots for as many of the ``fresh`` rows as fit, taken from the rows that were used longest ago."""
        idle = np.flatnonzero(self._used < self._round)
        count = min(len(fresh), len(idle))
        if count == 0:
            return idle[:0]
        chosen = idle[np.argsort(self._used[idle], kind="stable")[:count]]
        evicted = self._owner[chosen]
        self._slot[evicted[evicted >= 0]] = -1
        self._owner[chosen] = fresh[:count]
        self._slot[fresh[:count]] = chosen
        self._used[chosen] = self._round
        return chosen
