"""Kernel rows kept in memory, made and used tile by tile."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack

import numpy as np

from mercer.engine import memory, threads
from mercer.loops.smo import subtract_rows
from mercer.solvers.problems import GramMatrix, Vector

# Columns that one task handles: long enough for a GEMM, short enough to share the work among threads.
_SPAN = 2048
# Rows are charged to the memory budget in portions of this many bytes.
_PORTION = 64 * 2**20


class RowStore:
    """Rows of ``gram`` that were needed once, kept as long as ``limit`` bytes (and the memory budget) allow.

    Rows are appended and never dropped: those that come when the store is full are computed each time.
    """

    def __init__(self, gram: GramMatrix, limit: int, n_jobs: int | None) -> None:
        self._gram, self._n_jobs = gram, n_jobs
        n = gram.shape[0]
        self._row_bytes = n * np.dtype(gram.dtype).itemsize
        self._capacity = int(min(n, limit // self._row_bytes))
        self._portion = max(1, _PORTION // self._row_bytes)
        self._rows = np.empty((self._capacity, n), gram.dtype)
        self._slot = np.full(n, -1)
        self._used = self._charged = 0
        self._held = ExitStack()
        self.computed = 0

    def __enter__(self) -> RowStore:
        return self

    def __exit__(self, *_: object) -> None:
        self._rows = np.empty((0, 0))
        self._held.close()

    def subtract(self, F: Vector, index: np.ndarray, weights: Vector) -> None:
        """``F -= K[:, index] @ weights``, making the rows that are not there yet."""
        fresh = index[self._slot[index] < 0]
        fits = fresh[: self._room(len(fresh))]
        begin, end = self._used, self._used + len(fits)
        self._slot[fits] = np.arange(begin, end)
        self._used = end
        self.computed += len(fresh)
        slots = self._slot[index]
        kept = slots >= 0
        make = self._gram.restrict(fits, None) if len(fits) else None

        def work(columns: slice) -> Callable[[], None]:
            def task() -> None:
                if make is not None:
                    make.block(None, columns, out=self._rows[begin:end, columns])
                subtract_rows(F, self._rows, slots[kept], weights[kept], columns.start, columns.stop)

            return task

        n = len(F)
        threads.run([work(slice(s, min(s + _SPAN, n))) for s in range(0, n, _SPAN)], self._n_jobs)
        if not kept.all():
            F -= self._gram.restrict(None, index[~kept]) @ weights[~kept]

    def _room(self, wanted: int) -> int:
        """How many of ``wanted`` new rows fit; the budget is charged as the store fills up."""
        while self._used + wanted > self._charged and self._charged < self._capacity:
            portion = min(self._portion, self._capacity - self._charged)
            if portion * self._row_bytes > memory.budget():
                self._capacity = self._charged
                break
            self._held.enter_context(memory.reserve(portion * self._row_bytes, "kept kernel rows"))
            self._charged += portion
        return min(wanted, self._capacity - self._used)
