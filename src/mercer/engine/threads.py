"""One pool of plain Python threads over code that releases the GIL, each worker on one BLAS thread."""

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

# A compiled loop of fewer steps ends before anybody waits for it.
_LONG = 2**24
# Decompositions of matrices with more rows than this may use BLAS's own threads.
_LARGE = 1024

_lock = threading.Lock()
_pool: ThreadPoolExecutor | None = None
_pool_size = 0
_inside = threading.local()


def _forget_pool() -> None:
    """After a fork the child has no worker threads: it makes its own pool when it needs one."""
    global _pool, _pool_size, _lock, _limiter
    _pool, _pool_size, _lock, _limiter = None, 0, threading.Lock(), _BlasLimiter()


class _BlasLimiter:
    """One BLAS thread a worker while any tiled work runs anywhere in the process.

    The limit is a property of the process, so concurrent callers share it: the first one sets it, the last one
    gives it back. Without the count, the first to finish would hand several BLAS threads to the others' tiles.
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
        """In a worker: libraries over OpenMP keep a number of threads for each thread that calls them."""
        with _lock:
            for library in self._controller.lib_controllers if self._controller else ():
                if library.num_threads != 1:
                    _take_control()
                    library.set_num_threads(1)


def _take_control() -> None:
    """Let this thread set the limit: since threadpoolctl 3.8, calls of any but the first thread do nothing."""
    getattr(OpenBLASController, "clear_controlling_thread", lambda force: None)(force=True)


_limiter = _BlasLimiter()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_pool)


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Hold BLAS at one thread in the block; nested and concurrent use is fine."""
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
    """Do the work of the block on ``n_jobs`` threads, by default those of the settings, each with one BLAS thread.

    >>> with workers(1):
    ...     settings.resolve_jobs()
    1
    """
    caller = settings.current()
    with one_blas_thread(), settings.inherited(replace(caller, n_jobs=settings.resolve_jobs(n_jobs))):
        yield


@contextmanager
def blas_threads_for(rows: int) -> Iterator[None]:
    """For a decomposition that only LAPACK has: BLAS's own threads if the matrix is large and nobody else is at work.

    Its bits then depend on their number. For small matrices, and where one worker is asked for, BLAS has one thread.
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
    """Let public methods that take rows ``X`` work on the ``n_jobs`` threads of the object, each with one of BLAS.

    OpenBLAS cuts sums by the number of its threads, so that results would depend on it, and on which other calls are at
    work in the process. Work is shared by :func:`run` instead.
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
    def held(*arguments: Any, **options: Any) -> Any:
        with workers(getattr(arguments[0], "n_jobs", None)):
            return method(*arguments, **options)

    held._holds_blas = True  # type: ignore[attr-defined]
    return held


def _submit(work: Task, workers: int, threads: int) -> list[Future[Any]]:
    """Start ``work`` on as many workers, in a pool that has at least so many threads."""
    global _pool, _pool_size
    # Submitting under the lock: nobody may shut the pool down between its choice and its use.
    with _lock:
        if _pool is None or _pool_size < threads:
            # A smaller pool that is still in use finishes its tasks and then goes away.
            if _pool is not None:
                _pool.shutdown(wait=False)
            _pool = ThreadPoolExecutor(threads, thread_name_prefix="mercer")
            _pool_size = threads
        return [_pool.submit(work) for _ in range(workers)]


class _Cancelled(BaseException):
    """Ends a task whose run is over; nobody outside this module sees it."""


def checkpoint() -> None:
    """To be called now and then by a task that takes long: ends it if the run has failed or was interrupted."""
    stop = getattr(_inside, "stop", None)
    if stop is not None and stop[0]:
        raise _Cancelled


def interruptible(loop: Callable[..., Any], arguments: tuple[Any, ...], steps: float) -> Any:
    """What a compiled loop of about so many steps returns.

    Its last argument is ``stop``, an array, and once ``stop[0]`` is set it returns early. Python hears of Ctrl-C in its
    main thread only, and there between calls: a long loop is run beside it.

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
    """What a long native call returns, in a thread beside the main one, so that Ctrl-C is heard at once.

    For a single call of LAPACK, which cannot be stopped. It must release the interpreter's lock, and write to arrays
    that nobody else uses: after Ctrl-C it goes on to its end with them, or to that of the process, and its result is
    dropped. Outside the main thread, which alone hears of Ctrl-C, the call is made in place.

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
    # Not of the pool, for whose threads the interpreter waits at its end.
    threading.Thread(target=work, name="mercer-lapack", daemon=True).start()
    while wait([answer], timeout=0.2).not_done:
        pass
    return answer.result()


def run(tasks: Iterable[Task], n_jobs: int | None = None) -> None:
    """Run the tasks on the pool and return when all are done.

    The first error raised by a task is raised here, after the tasks that had begun have ended. Ctrl-C does the
    same, so a call never leaves work behind. Tasks that call ``run`` themselves run their tasks in place.

    >>> seen = []
    >>> run([lambda: seen.append(1), lambda: seen.append(2)], n_jobs=1)
    >>> seen
    [1, 2]
    """
    todo = list(tasks)
    workers = min(settings.resolve_jobs(n_jobs), len(todo))
    with one_blas_thread():
        if workers <= 1 or getattr(_inside, "worker", False):
            for task in todo:
                # A worker hears of Ctrl-C here: the tasks of its run may take minutes each.
                checkpoint()
                task()
            return
        _run_on_pool(todo, workers)


def _run_on_pool(todo: list[Task], workers: int) -> None:
    queue = iter(todo)
    queue_lock = threading.Lock()
    # An array, which compiled loops can look at.
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

    # This thread takes part: to wake one fewer costs less. The pool keeps one to spare, for what is interruptible in
    # this thread's own share.
    futures = _submit(work, workers - 1, workers)
    try:
        work()
        # In short turns: not on every system does Ctrl-C end a wait.
        while wait(futures, timeout=0.2, return_when=FIRST_EXCEPTION).not_done and not stop[0]:
            pass
    finally:
        # Also on Ctrl-C: nobody may write into the caller's arrays after the call has ended.
        stop[0] = 1
        wait(futures)
    for future in futures:
        future.result()
