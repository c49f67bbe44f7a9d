"""Reading ahead: a thread prepares the next item of an iterator while the caller works on the last one."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from typing import TypeVar

from mercer.engine import settings

Item = TypeVar("Item")


def read_ahead(items: Iterator[Item]) -> Iterator[Item]:
    """Yield the items of an iterator in order, one ahead of the caller.

    When the caller stops early, the thread ends with the item that it is at.

    >>> list(read_ahead(iter("abc")))
    ['a', 'b', 'c']
    """
    end = object()
    caller = settings.current()

    def following() -> Item | object:
        with settings.inherited(caller):
            return next(items, end)

    with ThreadPoolExecutor(1, thread_name_prefix="mercer-blocks") as thread:
        pending: Future[Item | object] = thread.submit(following)
        while True:
            # With short timeouts, because Ctrl-C does not end a wait on every system.
            while wait([pending], timeout=0.2).not_done:
                pass
            item = pending.result()
            if item is end:
                return
            pending = thread.submit(following)
            yield item  # type: ignore[misc]
