"""Arrays that evaluations use one after the other: fresh memory of that size costs as much as a factorisation."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mercer._types import Matrix
from mercer.gram.hold import reserve_square


class Workspace:
    """Arrays by name, made at their first use; they then hold what the last use left.

    Examples
    --------
    >>> work = Workspace()
    >>> work.array("K", (2, 2)) is work.array("K", (2, 2))
    True
    """

    def __init__(self) -> None:
        self._arrays: dict[str, NDArray[Any]] = {}

    def array(self, name: str, shape: tuple[int, ...], dtype: Any = np.float64) -> NDArray[Any]:
        """The array of that name, shape and type."""
        array = self._arrays.get(name)
        if array is None or array.shape != shape or array.dtype != dtype:
            array = self._arrays[name] = np.empty(shape, dtype)
        return array

    def give_away(self, name: str) -> None:
        """Forget an array, which the caller keeps."""
        self._arrays.pop(name, None)


class Workspaces:
    """As many workspaces as evaluations go on at the same time."""

    def __init__(self) -> None:
        self._idle: list[Workspace] = []
        self._lock = threading.Lock()

    @contextmanager
    def one(self) -> Iterator[Workspace]:
        """A workspace for the length of the block."""
        with self._lock:
            work = self._idle.pop() if self._idle else Workspace()
        try:
            yield work
        finally:
            with self._lock:
                self._idle.append(work)


class SquareArrays:
    """Arrays of n x n in float64, as many as evaluations go on at the same time, within the memory budget.

    ``what`` describes the array in the message of a MemoryBudgetError.
    """

    def __init__(self, n: int, what: str) -> None:
        self._n, self._what = n, what
        self._idle: list[Matrix] = []
        self._lock = threading.Lock()

    @contextmanager
    def one(self) -> Iterator[Matrix]:
        """An array for the length of the block."""
        with ExitStack() as stack:
            reserve_square(stack, self._n, 8, self._what)
            with self._lock:
                matrix = self._idle.pop() if self._idle else np.empty((self._n, self._n))
            try:
                yield matrix
            finally:
                with self._lock:
                    self._idle.append(matrix)
