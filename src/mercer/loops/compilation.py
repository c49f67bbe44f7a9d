"""What the compilation of loops costs: a notice, so that the first run's wait is explained, and its time."""

from __future__ import annotations

import logging
import threading
import time

from numba.core import event


class _Compilations(event.Listener):
    """Says once that loops are being compiled, and adds up the time that this takes."""

    def __init__(self) -> None:
        self._said = False
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
            was_logged, self._said = self._said, True
        if not was_logged:
            logging.getLogger("mercer").warning("mercer: compiling loops for this machine; this happens only once")

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


def _is_own(event: event.Event) -> bool:
    return bool(event.data["dispatcher"].py_func.__module__.startswith("mercer."))


_COMPILATIONS = _Compilations()


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
