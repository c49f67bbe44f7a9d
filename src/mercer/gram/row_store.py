"""The gradient update ``F -= K[:, index] @ weights``: rows are computed by tiles, and the latest are stored."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from mercer._types import Array, Vector
from mercer.engine import threads
from mercer.engine.tiles import TILE, scratch_tile, spans
from mercer.gram.protocol import GramMatrix
from mercer.loops.stored_rows import copy_rows, subtract_rows

# Columns of one task: kept rows are read in long runs. The fewer fresh rows there are, the wider are their tiles, up to
# this many columns: a call for a tile costs as much as 100,000 entries.
_SPAN, _WIDEST = 2048, 8192
_SCRATCH = "fresh kernel rows"
# A row is given up when this many rounds have not used it. If the row that was used longest ago were given up for
# each new one, rows that take turns would each be given up just before they are needed.
_IDLE = 30


class RowStore:
    """Stores recently used rows of ``gram``, as many as fit in ``room``, a flat array of its dtype.

    A weight that has just moved is likely to move again. New rows are used while they are in the cache and copied
    into the store afterwards: most of the traffic is reading.
    """

    def __init__(self, gram: GramMatrix, room: Array, n_jobs: int | None) -> None:
        self._gram, self._n_jobs = gram, n_jobs
        n = gram.shape[0]
        self._dtype = np.dtype(gram.dtype)
        capacity = min(n, room.size // n)
        self._rows = room[: capacity * n].reshape(capacity, n)
        self._owner = np.full(capacity, -1)
        self._used = np.full(capacity, -_IDLE - 1)
        self._slot = np.full(n, -1)
        self._round = 0

    def subtract(self, F: Vector, index: np.ndarray, weights: Vector) -> None:
        """``F -= K[:, index] @ weights``, summed in float64."""
        self._round += 1
        slots = self._slot[index]
        present = slots >= 0
        self._used[slots[present]] = self._round
        fresh, of_fresh = index[~present], weights[~present]
        targets = self._make_room(fresh)
        operand = self._gram.restrict(fresh, None)
        width = max(min(TILE * TILE // max(len(fresh), 1), _WIDEST), _SPAN)

        def work(columns: slice) -> Callable[[], None]:
            def task() -> None:
                threads.checkpoint()
                subtract_rows(F[columns], self._rows[:, columns], slots[present], weights[present])
                for piece in spans(len(fresh)):
                    tile = scratch_tile(_SCRATCH, (piece.stop - piece.start, columns.stop - columns.start), self._dtype)
                    operand.fill(piece, columns, tile)
                    subtract_rows(F[columns], tile, np.arange(len(tile)), of_fresh[piece])
                    copy_rows(tile, targets[piece], self._rows[:, columns])

            return task

        threads.run([work(columns) for columns in spans(len(F), width)], self._n_jobs)

    def _make_room(self, fresh: np.ndarray) -> np.ndarray:
        """Return slots for as many ``fresh`` rows as fit: empty ones, then those of the least recently used rows."""
        idle = np.flatnonzero(self._used < self._round - _IDLE)
        count = min(len(fresh), len(idle))
        if count == 0:
            return idle[:0]
        free = idle[np.argsort(self._used[idle], kind="stable")[:count]]
        evicted = self._owner[free]
        self._slot[evicted[evicted >= 0]] = -1
        self._owner[free] = fresh[:count]
        self._slot[fresh[:count]] = free
        self._used[free] = self._round
        return free
