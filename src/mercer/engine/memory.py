"""The memory budget: an array that would exceed it raises an error before it is allocated.

Matrices are reserved. Vectors, copies of the rows of X and small work arrays of the threads are not.
"""

from __future__ import annotations

import math
import os
import threading
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from mercer._errors import MemoryBudgetError
from mercer.engine import control_groups, settings

# Without a budget set by the user, up to this many bytes are granted without reading the free memory (0.1 ms).
_TRIFLE = 2**22


@dataclass(eq=False)
class Account:
    """Bytes reserved now, and the most that were reserved at once."""

    reserved: int = 0
    peak: int = 0


_lock = threading.RLock()
_process = Account()
_tracked: list[Account] = []


def available() -> int:
    """Bytes of memory that this process can still allocate, as reported by the system."""
    return int(min(_free_on_machine(), control_groups.free_memory()))


def _free_on_machine() -> int:
    try:
        with open("/proc/meminfo", encoding="ascii") as lines:
            for line in lines:
                if line.startswith("MemAvailable:"):
                    return int(line.split()[1]) * 1024
    except OSError:
        # Not Linux: half of the physical memory is the best guess without a further package.
        pass
    if hasattr(os, "sysconf") and "SC_PHYS_PAGES" in os.sysconf_names:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // 2
    return 4 * 2**30


def budget() -> int:
    """Bytes that may still be reserved now."""
    limit = settings.current().memory
    if limit is None:
        return available() // 2
    return max(0, limit - _process.reserved)


def room(nbytes: int) -> float:
    """Bytes that may still be reserved; infinity for a few ``nbytes``, without reading the free memory."""
    return math.inf if nbytes <= _TRIFLE and settings.current().memory is None else budget()


def workers(each: int, n_jobs: int | None = None) -> int:
    """As many of the threads as have ``each`` bytes in the budget, and at least one.

    >>> with settings.inherited(settings.Settings(memory=100)):
    ...     workers(30, n_jobs=8), workers(300, n_jobs=8)
    (3, 1)
    """
    jobs = settings.resolve_jobs(n_jobs)
    return jobs if each <= 0 else max(1, int(min(jobs, room(each * jobs) / each)))


def describe(nbytes: float) -> str:
    """Return a number of bytes in words.

    >>> describe(3 * 2**30)
    '3.0 GiB'
    """
    for unit in ("bytes", "KiB", "MiB", "GiB"):
        if nbytes < 1024:
            return f"{nbytes:.0f} bytes" if unit == "bytes" else f"{nbytes:.1f} {unit}"
        nbytes /= 1024
    return f"{nbytes:.1f} TiB"


def _describe_up(nbytes: int) -> str:
    """Return a number of bytes in words, rounded up.

    >>> describe(1025), _describe_up(1025), _describe_up(1024)
    ('1.0 KiB', '1.1 KiB', '1.0 KiB')
    """
    power = min(max(int(nbytes).bit_length() - 1, 0) // 10, 4)
    unit = 1024**power
    return describe(nbytes if power == 0 else -(-10 * int(nbytes) // unit) * unit / 10)


def require(nbytes: int, what: str, way_out: str = "") -> None:
    """Raise unless ``nbytes`` fit the budget now; the message states the smallest budget that suffices."""
    free = room(nbytes)
    if nbytes > free:
        raise MemoryBudgetError(
            f"{what} would take {describe(nbytes)}, but the memory budget has {describe(free)} left; "
            f"it would have to be at least {_describe_up(_process.reserved + nbytes)}. "
            + (way_out or "Raise the budget with mercer.config(memory=...), or use fewer rows.")
        )


def fitting(need: Callable[[int], int], most: int, least: int = 1) -> int:
    """Return the largest of ``most, most / 2, ...`` whose ``need`` in bytes fits the budget; ``least`` if none does.

    >>> with settings.config(memory=100):
    ...     fitting(lambda rows: 8 * rows, 64)
    8
    """
    size = most
    while size > least and need(size) > budget():
        size = max(size // 2, least)
    return size


@contextmanager
def reserve(nbytes: int, what: str, way_out: str = "") -> Iterator[None]:
    """Reserve ``nbytes`` of the budget for the block; raises MemoryBudgetError before anything is allocated.

    >>> with reserve(1000, "a small example"), track() as account:
    ...     with reserve(24, "another"):
    ...         pass
    >>> account.peak
    24
    """
    with _lock:
        require(nbytes, what, way_out)
        for account in (_process, *_tracked):
            account.reserved += nbytes
            account.peak = max(account.peak, account.reserved)
        charged = [_process, *_tracked]
    try:
        yield
    finally:
        with _lock:
            for account in charged:
                account.reserved -= nbytes


def release_arrays(error: BaseException) -> None:
    """Drop the local variables of the functions that an error came through, and of the errors before it.

    An error that is kept would keep the arrays of its fit in memory, which are not reserved any more. The lines of its
    traceback stay.

    >>> try:
    ...     1 / 0
    ... except ZeroDivisionError as error:
    ...     release_arrays(error)
    """
    left: list[BaseException | None] = [error]
    seen: set[int] = set()
    while left:
        one = left.pop()
        if one is not None and id(one) not in seen:
            seen.add(id(one))
            traceback.clear_frames(one.__traceback__)
            left += [one.__cause__, one.__context__]


@contextmanager
def track() -> Iterator[Account]:
    """Record the peak of the memory reserved inside the block."""
    account = Account()
    with _lock:
        _tracked.append(account)
    try:
        yield account
    finally:
        with _lock:
            _tracked.remove(account)
