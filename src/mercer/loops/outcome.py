"""Calls in other threads, for which the main thread waits such that Ctrl-C can do no harm.

Ctrl-C raises its error in the main thread between any two steps of Python code. A lock that is taken in Python code may
then stay locked for ever. The futures of the standard library have such locks, and so have numba and LLVM, whose
compiler the main thread therefore never enters.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from queue import Empty, SimpleQueue
from typing import Generic, TypeVar

Value = TypeVar("Value")


class Outcome(Generic[Value]):
    """What a call in another thread ends in: a value or an error."""

    def __init__(self, call: Callable[[], Value]) -> None:
        self._call = call
        self._value: Value | None = None
        self._error: BaseException | None = None
        self._is_settled = self._has_begun = self._has_ended = False
        self._process = os.getpid()
        # Its locks are in C, out of the reach of Ctrl-C.
        self._bell: SimpleQueue[None] = SimpleQueue()

    def run(self) -> None:
        """Make the call, in the other thread, unless :meth:`settle` was first."""
        # In this order: settle writes what is read here, and then reads what is written here.
        self._has_begun = True
        if not self._is_settled:
            try:
                self._value = self._call()
            except BaseException as error:
                self._error = error
        self._has_ended = True
        self._bell.put(None)

    def wait(self, look: Callable[[], None] | None = None) -> None:
        """Return after the call has ended, or will never end, and call ``look`` from time to time.

        At the exit of the interpreter, other threads no longer run; a forked process has none of them.
        """
        # With short timeouts, because Ctrl-C does not end a wait on every system, and because it may end this one after
        # the bell and before it is noticed.
        while not (self._has_ended or sys.is_finalizing() or os.getpid() != self._process):
            with suppress(Empty):
                self._bell.get(timeout=0.2)
            if look is not None:
                look()

    def settle(self) -> None:
        """Wait for the end of a call that has begun, and keep any other from beginning."""
        self._is_settled = True
        if self._has_begun:
            self.wait()

    def forget_error(self) -> BaseException | None:
        """The error of the call, which refers to all that the call used and, by its traceback, to this object."""
        error, self._error = self._error, None
        return error

    def raise_error(self) -> None:
        """Raise the error of the call, if it has ended in one."""
        error = self.forget_error()
        if error is not None:
            try:
                raise error
            finally:
                del error

    def result(self) -> Value:
        """Wait for the end of the call; return its value, or raise its error."""
        self.wait()
        if not self._has_ended:
            raise RuntimeError("The thread that was to make this call no longer exists.")
        self.raise_error()
        return self._value  # type: ignore[return-value]


def call_apart(call: Callable[[], Value], name: str) -> Value:
    """Make a call in a thread of its own, if one can be had, and return its value.

    After Ctrl-C the thread continues until the call returns or the process ends.

    >>> call_apart(lambda: 7, name="example")
    7
    """
    outcome = Outcome(call)
    try:
        threading.Thread(target=outcome.run, name=name, daemon=True).start()
    except RuntimeError:
        # The system has no more threads, or the interpreter exits and starts none.
        outcome.run()
    return outcome.result()
