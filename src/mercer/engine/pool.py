"""Threads that wait for calls to make; those of :mod:`mercer.engine.threads`, and one that reads ahead."""

from __future__ import annotations

import threading
from queue import SimpleQueue
from typing import Any

from mercer.loops.outcome import Outcome


class Pool:
    """A number of threads that make calls in the order in which they were asked for.

    It is not the pool of the standard library, which Ctrl-C can leave locked (see :mod:`mercer.loops.outcome`). The
    interpreter does not wait for these threads when it exits: whoever asks for a call must wait for its end.

    >>> pool, outcome = Pool("example", threads=1), Outcome(lambda: 7)
    >>> pool.put(outcome)
    >>> outcome.result()
    7
    >>> pool.close()
    """

    def __init__(self, name: str, threads: int) -> None:
        self._name = name
        self._size = 0
        self._calls: SimpleQueue[Outcome[Any] | None] = SimpleQueue()
        self.grow(threads)

    def grow(self, threads: int) -> None:
        """Add threads until there are this many."""
        while self._size < threads:
            threading.Thread(target=self._work, name=f"{self._name}_{self._size}", daemon=True).start()
            # Afterwards: after Ctrl-C in between there may be a thread more than counted, but none less.
            self._size += 1

    def put(self, outcome: Outcome[Any]) -> None:
        """Have one of the threads make the call of an outcome, as soon as one is free."""
        self._calls.put(outcome)

    def close(self) -> None:
        """Let the threads end after the calls that have been asked for."""
        self._calls.put(None)

    def _work(self) -> None:
        while (outcome := self._calls.get()) is not None:
            outcome.run()
            # Otherwise the arrays of this call would live until the next one.
            del outcome
        # For the next thread.
        self._calls.put(None)
