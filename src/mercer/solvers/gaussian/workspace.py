"""Arrays that evaluations use one after the other: fresh memory of that size costs as much as a factorisation."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray


class Workspace:
    """Arrays by name, made when they are first asked for; what they hold is left over from the last use.

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
