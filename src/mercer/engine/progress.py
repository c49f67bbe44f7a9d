"""Progress of long jobs: a hook that anybody may set, and one line on standard error when ``verbose``."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

Hook = Callable[[str, int, int | None], None]

_hooks: list[Hook] = []


@contextmanager
def on_progress(hook: Hook) -> Iterator[None]:
    """Call ``hook(what, done, total)`` as work goes on in the block, from whichever thread does it.

    >>> with on_progress(lambda what, done, total: print(what, done, total)):
    ...     Progress(1, "tiles").advance()
    tiles 1 1
    """
    _hooks.append(hook)
    try:
        yield
    finally:
        _hooks.remove(hook)


class Progress:
    """Counts steps done out of ``total`` (None if nobody can say) and tells the hooks.

    With ``verbose`` it also writes a line to standard error, at most twice a second and only for work that lasts
    longer than two seconds: short jobs stay silent.
    """

    def __init__(self, total: int | None, what: str, verbose: bool | int = False) -> None:
        self.total, self.what, self.done = total, what, 0
        self._verbose = bool(verbose)
        self._begun = self._said = time.monotonic()
        self._lock = threading.Lock()

    def advance(self, steps: int = 1) -> None:
        """Count ``steps`` more as done."""
        if not _hooks and not self._verbose:
            return
        with self._lock:
            self.done += steps
            for hook in tuple(_hooks):
                hook(self.what, self.done, self.total)
            now = time.monotonic()
            if self._verbose and now - self._begun > 2.0 and now - self._said > 0.5:
                self._said = now
                sys.stderr.write(f"mercer: {self.what}: {self._standing(now - self._begun)}\n")

    def _standing(self, seconds: float) -> str:
        if self.total is None:
            return f"{self.done} in {seconds:.0f} s"
        left = seconds * (self.total - self.done) / max(self.done, 1)
        return f"{self.done}/{self.total}, about {left:.0f} s left"
