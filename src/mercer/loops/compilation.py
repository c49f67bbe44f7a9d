"""What the compilation of loops costs: a notice, so that the first run's wait is explained, and its time."""

from __future__ import annotations

import logging
import threading
import time
from pathlib import Path
from typing import Any

from numba.core import event

_WAIT = "1 to 30 seconds"  # with an empty cache: KernelRidge on numbers, SVC on three classes
_REMEDY = f"""so every process compiles them again: {_WAIT} for each kernel and learner. \
To wait only once, set the environment variable NUMBA_CACHE_DIR to a folder that can be written."""


class _Compilations(event.Listener):
    """Says that loops are being compiled, and adds up the time that this takes."""

    def __init__(self) -> None:
        self._said: set[str] = set()
        self._lock = threading.Lock()
        # A loop that calls others is compiled around them, and threads may compile side by side.
        self._open = 0
        self._start = self._total = 0.0

    def on_start(self, event: event.Event) -> None:
        if not _is_own(event):
            return
        with self._lock:
            self._open += 1
            if self._open == 1:
                self._start = time.perf_counter()
        self.say(_notice(event.data["dispatcher"].stats.cache_path))

    def say(self, notice: str) -> None:
        """Log a notice, once in this process."""
        with self._lock:
            is_new = notice not in self._said
            self._said.add(notice)
        if notice and is_new:
            logging.getLogger("mercer").warning("mercer: %s", notice)

    def on_end(self, event: event.Event) -> None:
        if not _is_own(event):
            return
        with self._lock:
            self._open -= 1
            if self._open == 0:
                self._total += time.perf_counter() - self._start

    @property
    def seconds(self) -> float:
        with self._lock:
            return self._total + (time.perf_counter() - self._start if self._open else 0.0)


def _notice(folder: str | None) -> str:
    """Return what to say when a loop is compiled; nothing if the folder has loops of an earlier run, which said it."""
    if folder is None:
        return f"no folder for compiled loops can be written, {_REMEDY}"
    if any(Path(folder).glob("*.nbc")):
        return ""
    return f"""compiling loops for this machine. Each kernel and learner takes {_WAIT} more when it is first used; \
later runs read the loops from {folder}"""


def _is_own(event: event.Event) -> bool:
    return bool(event.data["dispatcher"].py_func.__module__.startswith("mercer."))


_COMPILATIONS = _Compilations()


def note_unusable_cache(loop: Any, error: OSError) -> None:
    """Say that a compiled loop cannot be stored or read, and what this costs."""
    folder, reason = loop.stats.cache_path, error.strerror or error
    _COMPILATIONS.say(f"compiled loops cannot be kept in {folder} ({reason}), {_REMEDY}")


def listen() -> None:
    """Begin to notice compilations."""
    event.register("numba:compile", _COMPILATIONS)


def working_time() -> float:
    """A clock in seconds that stands still while loops are compiled, which happens once on a machine.

    >>> start = working_time()
    >>> working_time() >= start
    True
    """
    return time.perf_counter() - _COMPILATIONS.seconds
