"""A program that interrupts a piece of work at each step of the main thread in turn; no test, see the one beside it."""

from __future__ import annotations

import sys
import threading
import weakref
from collections.abc import Callable
from types import FrameType
from typing import Any

import numpy as np
from threadpoolctl import ThreadpoolController, threadpool_limits

from mercer.data.blocks.ahead import read_ahead
from mercer.engine import threads
from mercer.loops._jit import jit


def small(x, stop):
    """The result of a loop."""
    return x + stop[0]


# The start and the end of a thread have steps at which another error is raised, or none.
NOT_OURS = {threading.__file__, weakref.WeakSet.__init__.__code__.co_filename}
# Each is read from the cache once. Numba's finalizers of loops do not say when Ctrl-C ends them.
LOOPS = [jit(small) for _ in range(3_000)]
USED: list[Any] = []


def interrupted_at(step: int, work: Callable[[], object]) -> bool:
    """Whether the work has that many steps; in that one, an error like that of Ctrl-C is raised.

    Python looks for Ctrl-C where a function in Python begins and where one in C has returned.
    """
    count = 0

    def profile(frame: FrameType, event: str, argument: Any) -> None:
        nonlocal count
        if event in ("call", "c_return") and frame.f_code.co_filename not in NOT_OURS:
            count += 1
            if count == step:
                raise KeyboardInterrupt

    sys.setprofile(profile)
    try:
        work()
    except KeyboardInterrupt:
        return True
    finally:
        sys.setprofile(None)
    return False


def blas_threads() -> set[tuple[str, int]]:
    """The BLAS libraries that have been loaded so far, each with its number of threads."""
    libraries = ThreadpoolController().select(user_api="blas").lib_controllers
    return {(library.filepath, library.num_threads) for library in libraries}


def sweep(work: Callable[[], object]) -> int:
    """Interrupt the work everywhere, do it once more each time, and return the number of steps."""
    step, before = 1, blas_threads()
    while interrupted_at(step, work):
        work()
        assert blas_threads() >= before, step
        step += 1
    return step - 1


def run() -> None:
    """Tasks in the pool, a long loop in each."""
    results: list[int] = []
    stop_soon = [lambda: results.append(threads.interruptible(lambda x, stop: x, (7,), steps=1e9))] * 4
    threads.run(stop_soon, n_jobs=3)
    assert results == [7] * 4, results


def load() -> None:
    """Load a loop in the main thread, and the same in two others."""
    loops = [LOOPS.pop() for _ in range(3)]
    USED.extend(loops)
    flag = np.zeros(1, np.uint8)
    assert loops[0](7, flag) == 7
    threads.run([lambda: loops[1](7, flag), lambda: loops[2](7, flag)], n_jobs=2)


def read() -> None:
    """Read ahead to the end."""
    assert list(read_ahead(iter(range(5)))) == list(range(5))


def numbers() -> set[int]:
    """The threads of the BLAS libraries that are limited."""
    return {library.num_threads for library in threads._limiter._libraries}


def limit() -> None:
    """One thread of BLAS, several for a decomposition, and one again."""
    with threads.workers(3):
        assert numbers() == {1}, numbers()
        with threads.blas_threads_for(2000):
            assert numbers() == {3}, numbers()
        assert numbers() == {1}, numbers()


if __name__ == "__main__":
    # More than one on any machine.
    threadpool_limits(4, user_api="blas")
    for work in (run, load, read, limit):
        print(work.__name__, sweep(work), flush=True)
