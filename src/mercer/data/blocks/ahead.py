"""Reading ahead: a thread prepares the next item of an iterator while the caller works on the last one."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeVar

from mercer.engine import settings
from mercer.engine.pool import Pool
from mercer.loops.outcome import Outcome

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

    # One thread reads all items, because some sources, such as SQLite, allow no other.
    pool = Pool("mercer-blocks", threads=1)
    pending = Outcome(following)
    try:
        pool.put(pending)
        while (item := pending.result()) is not end:
            pending = Outcome(following)
            pool.put(pending)
            yield item  # type: ignore[misc]
    finally:
        try:
            pending.settle()
        finally:
            pool.close()
