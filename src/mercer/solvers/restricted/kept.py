"""Kernel values of a partition that stay beside its rows from pass to pass, while the process there has memory."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import replace
from typing import Any

from mercer._errors import MemoryBudgetError
from mercer.engine import memory
from mercer.gram.hold import HELD_SHARE, evaluated_in_single, held_bytes
from mercer.solvers.restricted.passes import StoredRows

# What all partitions of this process keep.
_lock = threading.RLock()
_kept: weakref.WeakSet[KeptRows] = weakref.WeakSet()


class KeptRows:
    """Rows of a partition with kernel values in float32, which stay in memory if a quarter of it suffices for all.

    Values are never written to disk or sent elsewhere with the rows: a copy evaluates them in each pass. So a process
    that puts results aside when its memory runs short gets back all of theirs.

    Parameters
    ----------
    rows : object
        Where the rows are before anything is known of a kernel.
    stored : callable
        From these to rows with kernel values.
    limit : float, default=0
        Memory of this process, in bytes; the budget of Mercer applies as well.

    Attributes
    ----------
    nbytes : int
        Memory of the values; 0 where they are not kept.

    Examples
    --------
    >>> import copy
    >>> import numpy as np
    >>> from mercer.gram import Gram
    >>> from mercer.kernels import Linear
    >>> def stored(X):
    ...     return StoredRows(Gram(Linear(), X, X[:1], dtype=np.float64), X, np.ones(len(X)))
    >>> kept = KeptRows(np.ones((3, 1)), stored, limit=1e9)
    >>> kept.nbytes, KeptRows(np.ones((3, 1)), stored, limit=10.0).nbytes, copy.copy(kept).nbytes
    (12, 0, 0)
    """

    def __init__(self, rows: Any, stored: Callable[[Any], StoredRows], limit: float = 0.0) -> None:
        self.rows, self.stored = rows, stored
        self.nbytes = 0
        self._single = self._evaluated(limit) if limit > 0 else None

    @property
    def double(self) -> StoredRows:
        """The rows with kernel values in float64."""
        return self.stored(self.rows)

    @property
    def single(self) -> StoredRows:
        """The rows with kernel values in float32, or in float64 where those are not cheaper."""
        if self._single is not None:
            return self._single
        rows = self.double
        return rows.single() or rows

    def _evaluated(self, limit: float) -> StoredRows | None:
        """All values, if there is memory for them."""
        lazy = self.double.single()
        if lazy is None:
            return None
        size, stack = held_bytes(lazy.gram.shape), ExitStack()
        with _lock:
            before = sum(one.nbytes for one in _kept)
            if size + before > (min(memory.budget(), limit - before) + before) / HELD_SHARE:
                return None
            try:
                stack.enter_context(memory.reserve(size, "kernel values of a partition"))
            except MemoryBudgetError:
                # Something else was reserved in the meantime.
                return None
            self.nbytes = size
            _kept.add(self)
        weakref.finalize(self, stack.close)
        return replace(lazy, gram=evaluated_in_single(lazy.gram))

    def __sizeof__(self) -> int:
        return object.__sizeof__(self) + self.nbytes

    def __reduce__(self) -> tuple[Any, ...]:
        return KeptRows, (self.rows, self.stored)
