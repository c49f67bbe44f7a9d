"""Progress of long jobs: hooks for callers, and lines on standard error with ``verbose``."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

Hook = Callable[[str, int, int | None], None]
Watcher = Callable[["Progress"], None]

_watchers: list[Watcher] = []
# An attribute of errors.
_RAISED_BY_HOOK = "_mercer_raised_by_hook"


def is_raised_by_hook(error: BaseException) -> bool:
    """Whether a function that follows the progress raised the error: it ends all work, not only the current part.

    >>> is_raised_by_hook(ValueError("of the work itself"))
    False
    """
    return hasattr(error, _RAISED_BY_HOOK)


@contextmanager
def on_progress(hook: Hook) -> Iterator[None]:
    """Call a function as work goes on in the block.

    Parameters
    ----------
    hook : callable
        Called as ``hook(what, done, total)``, from whichever thread does the work.

    Examples
    --------
    >>> with on_progress(lambda what, done, total: print(what, done, total)):
    ...     Progress(1, "tiles").advance()
    tiles 1 1
    """
    with watched(lambda progress: hook(progress.what, progress.done, progress.total)):
        yield


@contextmanager
def watched(watcher: Watcher) -> Iterator[None]:
    """Call ``watcher(progress)``, which can also read the note, at each step of any work in the block.

    >>> with watched(lambda progress: print(progress.count)):
    ...     Progress(None, "evidence").advance(note="evaluations, highest -3.1")
    ...     Progress(4, "tiles").advance()
    1 evaluations, highest -3.1
    1/4
    """
    _watchers.append(watcher)
    try:
        yield
    finally:
        _watchers.remove(watcher)


class Progress:
    """Counts finished steps out of ``total`` (None if unknown) and calls the hooks.

    ``note`` follows the count and says what was counted and what the result is so far; most work has none.

    With ``verbose`` it also writes a line to standard error, at most twice a second and only for work that lasts
    longer than two seconds, and with :meth:`finish` a last one for work of any length.
    """

    def __init__(self, total: int | None, what: str, verbose: bool | int = False) -> None:
        self.total, self.what, self.done, self.note = total, what, 0, ""
        self._verbose = bool(verbose)
        self._start = self._last_report = time.monotonic()
        self._lock = threading.Lock()

    def advance(self, steps: int = 1, note: str = "") -> None:
        """Count ``steps`` more, with a new note."""
        if not _watchers and not self._verbose:
            return
        with self._lock:
            self.done += steps
            self.note = note
            for watcher in tuple(_watchers):
                try:
                    watcher(self)
                except Exception as error:
                    setattr(error, _RAISED_BY_HOOK, True)
                    raise
            now = time.monotonic()
            if self._verbose and now - self._start > 2.0 and now - self._last_report > 0.5:
                self._last_report = now
                sys.stderr.write(f"mercer: {self.what}: {self._standing(now - self._start)}\n")

    def finish(self) -> None:
        """With ``verbose``, write how much was done in which time."""
        if self._verbose:
            sys.stderr.write(f"mercer: {self.what}: {self.count} in {time.monotonic() - self._start:.1f} s\n")

    @property
    def count(self) -> str:
        """The number of finished steps, the total, and the note."""
        total = "" if self.total is None else f"/{self.total}"
        return f"{self.done}{total} {self.note}".rstrip()

    def _standing(self, seconds: float) -> str:
        if self.total is None:
            return f"{self.count} in {seconds:.0f} s"
        left = seconds * (self.total - self.done) / max(self.done, 1)
        return f"{self.count}, about {left:.0f} s left"
