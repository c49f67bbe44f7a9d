"""Distances and inner products of long rows, stored for all kernels of a search that are functions of them."""

from __future__ import annotations

import threading
from contextlib import ExitStack
from typing import Any

import numpy as np

from mercer._types import Array
from mercer.data.columns import MixedRows
from mercer.data.objects import Objects
from mercer.gram import Gram
from mercer.gram.hold import fits, reserve_whole
from mercer.kernels.inputs import Rows
from mercer.kernels.stored_parts import Use, all_pairs, vector_statistics

# Distances are stored if so many matrices of them would fit: kernel matrices need the memory more.
_WOULD_FIT = 16


class StoredDistances:
    """Distances of all pairs of rows, evaluated when the second kernel needs them: a single one needs no array.

    Parameters
    ----------
    rows : array, sparse matrix or objects
    n_jobs : int or None
        Threads.
    """

    def __init__(self, rows: Any, n_jobs: int | None) -> None:
        self._rows, self._n_jobs = rows, n_jobs
        self._needed_before: set[Use] = set()
        self._arrays: dict[Use, Array] = {}
        self._stack = ExitStack()
        self._lock = threading.Lock()

    def of(self, gram: Gram) -> dict[Use, Array]:
        """Return stored values of statistics of a kernel matrix, for :meth:`mercer.Gram.from_stored`.

        There are none for short rows, zeros and ones, and objects: their values are computed as fast as they are read.
        """
        if isinstance(self._rows, (Objects, MixedRows)) or not gram.expensive:
            return {}
        with self._lock:
            for use in vector_statistics(gram.kernel):
                if use in self._needed_before and use not in self._arrays:
                    self._store(use)
                self._needed_before.add(use)
            return {use: self._arrays[use] for use in vector_statistics(gram.kernel) if use in self._arrays}

    def close(self) -> None:
        """Drop all arrays."""
        with self._lock:
            self._arrays.clear()
            self._stack.close()

    def _store(self, use: Use) -> None:
        rows = Rows(self._rows)
        if rows.is_binary or not fits(_WOULD_FIT * 8 * rows.n**2):
            return
        if reserve_whole((rows.n, rows.n), self._stack, {np.float64: 0})[0] is not None:
            self._arrays[use] = all_pairs(use[1], rows, self._n_jobs)
