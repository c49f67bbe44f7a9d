"""One pool of Python threads for code that releases the GIL, each with one BLAS thread."""

from __future__ import annotations

import functools
import inspect
import os
import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any
from weakref import ref

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import OpenBLASController, ThreadpoolController

from mercer.engine import settings
from mercer.engine.pool import Pool
from mercer.engine.progress import watched
from mercer.loops.compilation import working_time
from mercer.loops.outcome import Outcome, call_apart

Task = Callable[[], Any]
Flag = NDArray[np.uint8]

# A compiled loop with fewer steps ends without a noticeable delay.
_LONG = 2**24
# Decompositions of matrices with more rows than this may use BLAS's own threads.
_LARGE = 1024
# Seconds that a thread which returns from a compiled loop waits for the interpreter's lock, if another thread computes
# in Python; Python's default is 5 ms, fifty times as long as many loops take.
_PATIENCE = 1e-4

_lock = threading.Lock()
_pool: Pool | None = None
_inside = threading.local()


def _forget_pool() -> None:
    """Forget the pool in a forked child, which has no worker threads; it creates its own when needed."""
    global _pool, _lock
    _pool, _lock = None, threading.Lock()
    _limiter.forget_users()


class _User:
    """A block in which the threads of BLAS are limited."""


# A user, its thread, and the threads that BLAS may have.
_Entry = tuple[ref[_User], int, int]


def _lowest(users: list[_Entry]) -> int:
    return min(most for _, _, most in users)


class _BlasLimiter:
    """Limits BLAS to one thread for each worker while any tiled work runs in the process.

    The limit is a property of the process, so concurrent callers share it: the lowest one holds, and the last caller
    restores what was before. Otherwise the first caller to finish would give the others' tiles several BLAS threads.

    So is the time after which Python passes its lock on, which is made shorter: workers need the lock for moments, and
    often.
    """

    def __init__(self) -> None:
        self._users: list[_Entry] = []
        self._libraries: list[Any] | None = None
        # To be restored.
        self._numbers: list[int] | None = None
        self._interval = 0.0

    def acquire(self, user: _User, most: int = 1) -> None:
        with _lock:
            if self._libraries is None:
                self._libraries = ThreadpoolController().select(user_api="blas").lib_controllers
            self._numbers = self._numbers or [library.num_threads for library in self._libraries]
            before = self._without(None)
            if (interval := sys.getswitchinterval()) > _PATIENCE:
                self._interval = interval
                sys.setswitchinterval(_PATIENCE)
            # After Ctrl-C, what was set last is not known: a first user sets it in any case.
            if not before or most < _lowest(before):
                self._set([min(most, number) for number in self._numbers])
            self._users = [*before, (ref(user), threading.get_ident(), most)]

    def release(self, user: _User) -> None:
        with _lock:
            before = self._without(None)
            self._users = self._without(user)
            if self._numbers is None:
                return
            if not self._users:
                self._set(self._numbers)
                self._numbers = None
                self._restore_interval()
            elif _lowest(self._users) > _lowest(before):
                self._set([min(_lowest(self._users), number) for number in self._numbers])

    def _restore_interval(self) -> None:
        """Unless it was changed meanwhile, or was as short before."""
        if self._interval and sys.getswitchinterval() < 1.1 * _PATIENCE:
            sys.setswitchinterval(self._interval)
        self._interval = 0.0

    def forget_users(self) -> None:
        """In a forked child, which has no other threads; its first user restores the numbers of threads."""
        self._users = []
        self._restore_interval()

    def users_of_this_thread(self) -> list[_User]:
        """Those that limit BLAS to one thread."""
        own = threading.get_ident()
        return [user for link, thread, most in self._users if thread == own and most == 1 and (user := link())]

    def _without(self, user: _User | None) -> list[_Entry]:
        # Those that Ctrl-C has kept from their release no longer exist.
        return [entry for entry in self._users if entry[0]() not in (None, user)]

    def _set(self, numbers: list[int]) -> None:
        for library, number in zip(self._libraries or (), numbers, strict=True):
            _take_control()
            library.set_num_threads(number)
        _take_control()

    def enforce(self) -> None:
        """Set the limit in a worker, because OpenMP libraries keep a number of threads for each calling thread."""
        with _lock:
            for library in self._libraries or ():
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
    limiter, user = _limiter, _User()
    if limiter.users_of_this_thread():
        # A block around this one lasts longer.
        yield
        return
    try:
        limiter.acquire(user)
        yield
    finally:
        limiter.release(user)


@contextmanager
def workers(n_jobs: int | None) -> Iterator[None]:
    """Run the block with ``n_jobs`` workers (None: as in the settings), each with one BLAS thread.

    >>> with workers(1):
    ...     settings.resolve_jobs()
    1
    """
    caller, jobs = settings.current(), settings.resolve_jobs(n_jobs)
    with one_blas_thread(), settings.inherited(caller if jobs == caller.n_jobs else replace(caller, n_jobs=jobs)):
        yield


@contextmanager
def blas_threads_for(rows: int) -> Iterator[None]:
    """Allow BLAS as many threads as there are workers for a large decomposition that only LAPACK has.

    It keeps one thread while other work is running, for small matrices, and with one worker. The bits of the result
    depend on the number.
    """
    jobs = settings.resolve_jobs()
    if rows <= _LARGE or jobs == 1 or getattr(_inside, "worker", False):
        with one_blas_thread():
            yield
        return
    # OpenBLAS counts the processors of the machine, of which a container may have been granted a few.
    limiter, several = _limiter, _User()
    users = limiter.users_of_this_thread()
    try:
        limiter.acquire(several, jobs)
        for user in users:
            limiter.release(user)
        yield
    finally:
        for user in users:
            limiter.acquire(user)
        limiter.release(several)


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


def _pool_of(threads: int) -> Pool:
    """The pool, with at least this many threads."""
    global _pool
    with _lock:
        _pool = _pool or Pool("mercer", threads)
        _pool.grow(threads)
        return _pool


class _Cancelled(BaseException):
    """Ends a task whose run is over; it never leaves this module."""


def checkpoint() -> None:
    """End the task if its run has failed, was interrupted, or is overdue; long tasks call this at intervals."""
    stop = getattr(_inside, "stop", None)
    if stop is not None and stop[0]:
        raise _Cancelled


class _Deadline:
    """The flags of the runs that are to end at some time."""

    def __init__(self) -> None:
        self.flag: Flag = np.zeros(1, np.uint8)
        self._flags: list[Flag] = []

    def add(self, flag: Flag) -> None:
        """Set this flag, too, when the time comes, or now if it has come."""
        self._flags.append(flag)
        flag[0] = self.flag[0]

    def remove(self, flag: Flag) -> None:
        self._flags = [other for other in self._flags if other is not flag]

    def watch(self, seconds: float, done: threading.Event) -> None:
        end = working_time() + seconds
        while not done.wait(min(max(end - working_time(), 0.0), threading.TIMEOUT_MAX)):
            if working_time() >= end:
                # First that of the block, which a run reads after it has added its own.
                self.flag[0] = 1
                for flag in self._flags.copy():
                    flag[0] = 1
                return


@contextmanager
def until(seconds: float) -> Iterator[None]:
    """Give the block so many seconds, without those in which loops are compiled.

    What runs in it then ends at its next :func:`checkpoint` or step of progress, in compiled loops too.

    Raises
    ------
    TimeoutError
        If the time did not suffice.

    Examples
    --------
    >>> with until(60.0):
    ...     run([lambda: print("done")])
    done
    """
    if seconds == np.inf:
        yield
        return
    deadline, done, before = _Deadline(), threading.Event(), vars(_inside).copy()
    threading.Thread(target=deadline.watch, args=(seconds, done), name="mercer-deadline", daemon=True).start()
    _inside.deadline, _inside.stop = deadline, deadline.flag
    try:
        with watched(lambda progress: checkpoint()):
            yield
    except _Cancelled:
        raise TimeoutError(f"{seconds:.3g} s did not suffice") from None
    finally:
        done.set()
        _inside.deadline, _inside.stop = before.get("deadline"), before.get("stop")


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
        pool, outcome = _pool_of(1), Outcome(lambda: loop(*arguments, flag))
        try:
            pool.put(outcome)
            outcome.wait()
        except BaseException:
            flag[0] = 1
            outcome.settle()
            raise
        value = outcome.result()
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
    caller = settings.current()

    def work() -> Any:
        with settings.inherited(caller):
            return call()

    # Not a thread of the pool, which would wait for it.
    return call_apart(work, name="mercer-lapack")


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


def share(loop: Callable[[Flag], Any], workers: int, steps: float, look: Task) -> None:
    """Call ``loop(stop)`` on several threads, which take their tasks from memory that they share.

    The compiled loop returns early once ``stop[0]`` is set. Of a long one, all calls are made by other threads, and
    this one looks at them: for Ctrl-C, and to call ``look``, a few times in a second.

    >>> share(lambda stop: print(int(stop[0])), workers=1, steps=10, look=lambda: None)
    0
    """
    apart = steps >= _LONG and threading.current_thread() is threading.main_thread()
    with one_blas_thread():
        if getattr(_inside, "worker", False):

            def alone(stop: Flag) -> None:
                _limiter.enforce()
                loop(stop)

            interruptible(alone, (), steps)
        elif workers <= 1 and not apart:
            interruptible(loop, (), 0)
        else:
            _run_on_pool([lambda: loop(_inside.stop)] * max(workers, 1), max(workers, 1), look if apart else None)
    look()


def _run_on_pool(todo: list[Task], workers: int, look: Task | None = None) -> None:
    """Run the tasks on so many threads, of which this is one unless it is to look at the others."""
    queue = iter(todo)
    queue_lock = threading.Lock()
    # An array, because compiled loops can read it.
    stop = np.zeros(1, np.uint8)
    caller = settings.current()
    outer, deadline = getattr(_inside, "stop", None), getattr(_inside, "deadline", None)
    if deadline is not None:
        deadline.add(stop)

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
    pool = _pool_of(workers)
    outcomes = [Outcome(work) for _ in range(workers - (look is None))]
    try:
        for outcome in outcomes:
            pool.put(outcome)
        if look is None:
            work()
        else:
            for outcome in outcomes:
                outcome.wait(look)
        # A worker that has not begun finds no more tasks.
        for outcome in outcomes:
            outcome.settle()
            outcome.raise_error()
    except BaseException:
        # Also after Ctrl-C: no task may write into the caller's arrays after this call.
        stop[0] = 1
        for outcome in outcomes:
            outcome.settle()
            outcome.forget_error()
        raise
    finally:
        _inside.stop = outer
        if deadline is not None:
            deadline.remove(stop)
    checkpoint()
