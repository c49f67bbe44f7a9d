"""One pool of Python threads for code that releases the GIL, each with one BLAS thread."""

from __future__ import annotations

import functools
import inspect
import os
import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_EXCEPTION, Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import OpenBLASController, ThreadpoolController

from mercer.engine import settings

Task = Callable[[], Any]
Flag = NDArray[np.uint8]

# A compiled loop with fewer steps ends without a noticeable delay.
_LONG = 2**24
# Decompositions of matrices with more rows than this may use BLAS's own threads.
_LARGE = 1024

_lock = threading.Lock()
_pool: ThreadPoolExecutor | None = None
_pool_size = 0
_inside = threading.local()


def _forget_pool() -> None:
    """Forget the pool in a forked child, which has no worker threads; it creates its own when needed."""
    global _pool, _pool_size, _lock, _limiter
    _pool, _pool_size, _lock, _limiter = None, 0, threading.Lock(), _BlasLimiter()


class _BlasLimiter:
    """Limits BLAS to one thread for each worker while any tiled work runs in the process.

    The limit is a property of the process, so concurrent callers share it: the first one sets it, and the last one
    restores it. Without the count, the first caller to finish would give the others' tiles several BLAS threads.
    """

    def __init__(self) -> None:
        self._users = 0
        self._limit: Any = None
        self._controller: ThreadpoolController | None = None

    def acquire(self) -> None:
        with _lock:
            if self._users == 0:
                if self._controller is None:
                    self._controller = ThreadpoolController().select(user_api="blas")
                _take_control()
                self._limit = self._controller.limit(limits=1)
            self._users += 1

    def release(self) -> None:
        with _lock:
            self._users -= 1
            if self._users == 0:
                _take_control()
                self._limit.restore_original_limits()
                _take_control()
                self._limit = None

    def enforce(self) -> None:
        """Set the limit in a worker, because OpenMP libraries keep a number of threads for each calling thread."""
        with _lock:
            for library in self._controller.lib_controllers if self._controller else ():
                if library.num_threads != 1:
                    _take_control()
                    library.set_num_threads(1)


def _take_control() -> None:
    """Let this thread set the limit: since threadpoolctl 3.8, calls from all threads but the first have no effect."""
    getattr(OpenBLASController, "clear_controlling_thread", lambda force: None)(force=True)


_limiter = _BlasLimiter()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_pool)


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Limit BLAS to one thread in the block; may be nested and used concurrently."""
    limiter = _limiter
    limiter.acquire()
    _inside.holds = getattr(_inside, "holds", 0) + 1
    try:
        yield
    finally:
        _inside.holds = getattr(_inside, "holds", 1) - 1
        limiter.release()


@contextmanager
def workers(n_jobs: int | None) -> Iterator[None]:
    """Run the block with ``n_jobs`` workers (None: as in the settings), each with one BLAS thread.

    >>> with workers(1):
    ...     settings.resolve_jobs()
    1
    """
    caller = settings.current()
    with one_blas_thread(), settings.inherited(replace(caller, n_jobs=settings.resolve_jobs(n_jobs))):
        yield


@contextmanager
def blas_threads_for(rows: int) -> Iterator[None]:
    """Allow BLAS its own threads for a large decomposition that only LAPACK has, unless other work is running.

    The bits of the result then depend on their number. For small matrices, and with one worker, BLAS has one thread.
    """
    holds = getattr(_inside, "holds", 0)
    if rows <= _LARGE or settings.resolve_jobs() == 1 or getattr(_inside, "worker", False):
        with one_blas_thread():
            yield
        return
    limiter = _limiter
    for _ in range(holds):
        limiter.release()
    try:
        yield
    finally:
        for _ in range(holds):
            limiter.acquire()


class OneBlasThread:
    """Base of learners whose public methods :func:`hold_one_blas_thread` wraps."""

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        hold_one_blas_thread(cls)


def hold_one_blas_thread(cls: type) -> None:
    """Wrap public methods that take rows ``X``, so that they run in :func:`workers` with the ``n_jobs`` of the object.

    OpenBLAS splits sums by the number of its threads, so results would depend on that number and on other calls in the
    process. :func:`run` shares the work instead.
    """
    for name in dir(cls):
        method = inspect.getattr_static(cls, name)
        if name.startswith("_") or not inspect.isfunction(method) or hasattr(method, "_holds_blas"):
            continue
        own = name in vars(cls) or method.__module__.partition(".")[0] == __name__.partition(".")[0]
        if own and "X" in inspect.signature(method).parameters:
            setattr(cls, name, _holding(method))


def _holding(method: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(method)
    def wrapper(*arguments: Any, **options: Any) -> Any:
        with workers(getattr(arguments[0], "n_jobs", None)):
            return method(*arguments, **options)

    wrapper._holds_blas = True  # type: ignore[attr-defined]
    return wrapper


def _submit(work: Task, workers: int, threads: int) -> list[Future[Any]]:
    """Start ``work`` on a number of workers, in a pool with at least ``threads`` threads."""
    global _pool, _pool_size
    # Submit under the lock, so that no other thread shuts the pool down in between.
    with _lock:
        if _pool is None or _pool_size < threads:
            # A smaller pool that is still in use finishes its tasks and then goes away.
            if _pool is not None:
                _pool.shutdown(wait=False)
            _pool = ThreadPoolExecutor(threads, thread_name_prefix="mercer")
            _pool_size = threads
        return [_pool.submit(work) for _ in range(workers)]


class _Cancelled(BaseException):
    """Ends a task whose run is over; it never leaves this module."""


def checkpoint() -> None:
    """End the task if its run has failed or was interrupted; long tasks call this at intervals."""
    stop = getattr(_inside, "stop", None)
    if stop is not None and stop[0]:
        raise _Cancelled


def interruptible(loop: Callable[..., Any], arguments: tuple[Any, ...], steps: float) -> Any:
    """Call a compiled loop of about this many steps, so that Ctrl-C can end it, and return its result.

    The last argument of the loop is an array ``stop``; the loop returns early once ``stop[0]`` is set. Python handles
    Ctrl-C in the main thread only, between calls, so a long loop runs in another thread.

    >>> interruptible(lambda x, stop: x + int(stop[0]), (7,), steps=10)
    7
    """
    stop: Flag | None = getattr(_inside, "stop", None)
    flag = np.zeros(1, np.uint8) if stop is None else stop
    if steps < _LONG or threading.current_thread() is not threading.main_thread():
        value = loop(*arguments, flag)
    else:
        (future,) = _submit(lambda: loop(*arguments, flag), 1, 1)
        try:
            while wait([future], timeout=0.2).not_done:
                pass
        except BaseException:
            flag[0] = 1
            raise
        finally:
            wait([future])
        value = future.result()
    checkpoint()
    return value


def abandonable(call: Task) -> Any:
    """Make a long native call in another thread, so that Ctrl-C works at once, and return its result.

    This is for single calls of LAPACK, which cannot be stopped. The call must release the interpreter's lock and write
    only to arrays that no other code uses: after Ctrl-C it continues until it returns or the process ends, and its
    result is dropped. In threads other than the main one, which alone receives Ctrl-C, the call is made directly.

    >>> abandonable(lambda: 7)
    7
    """
    if threading.current_thread() is not threading.main_thread():
        return call()
    answer: Future[Any] = Future()

    def work() -> None:
        try:
            with settings.inherited(caller):
                answer.set_result(call())
        except BaseException as error:
            answer.set_exception(error)

    caller = settings.current()
    # Not a thread of the pool, because the interpreter waits for those when it exits.
    threading.Thread(target=work, name="mercer-lapack", daemon=True).start()
    while wait([answer], timeout=0.2).not_done:
        pass
    return answer.result()


def run(tasks: Iterable[Task], n_jobs: int | None = None) -> None:
    """Run the tasks on the pool and return when all are done.

    The first error of a task is raised here, after all tasks that have started have ended. Ctrl-C does the same, so no
    work continues after the call. Tasks that call ``run`` themselves run their tasks one after another.

    >>> order = []
    >>> run([lambda: order.append(1), lambda: order.append(2)], n_jobs=1)
    >>> order
    [1, 2]
    """
    todo = list(tasks)
    workers = min(settings.resolve_jobs(n_jobs), len(todo))
    with one_blas_thread():
        if workers <= 1 or getattr(_inside, "worker", False):
            for task in todo:
                # Ctrl-C ends a nested run here, because each of its tasks may take minutes.
                checkpoint()
                task()
            return
        _run_on_pool(todo, workers)


def _run_on_pool(todo: list[Task], workers: int) -> None:
    queue = iter(todo)
    queue_lock = threading.Lock()
    # An array, because compiled loops can read it.
    stop = np.zeros(1, np.uint8)
    caller = settings.current()

    def work() -> None:
        _inside.worker, _inside.stop = True, stop
        try:
            _limiter.enforce()
            with settings.inherited(caller):
                while not stop[0]:
                    with queue_lock:
                        task = next(queue, None)
                    if task is None:
                        return
                    task()
        except _Cancelled:
            return
        except BaseException:
            stop[0] = 1
            raise
        finally:
            _inside.worker, _inside.stop = False, None

    # This thread works too, which saves waking one more. The pool has a spare thread for interruptible loops in the
    # share of this thread.
    futures = _submit(work, workers - 1, workers)
    try:
        work()
        # With short timeouts, because Ctrl-C does not end a wait on every system.
        while wait(futures, timeout=0.2, return_when=FIRST_EXCEPTION).not_done and not stop[0]:
            pass
    finally:
        # Also after Ctrl-C: no task may write into the caller's arrays after this call.
        stop[0] = 1
        wait(futures)
    for future in futures:
        future.result()
