"""Settings of the process: memory budget, number of threads, Ctrl-C and traces, global or for a ``with`` block."""

from __future__ import annotations

import numbers
import os
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

from mercer._errors import ParameterError
from mercer.engine import control_groups

_UNITS = {"": 1, "B": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12,
          "KIB": 2**10, "MIB": 2**20, "GIB": 2**30, "TIB": 2**40}  # fmt: skip
_ON_INTERRUPT = ("raise", "keep")


@dataclass(frozen=True)
class Settings:
    """The settings of ``mercer.config``: ``memory`` in bytes (None: half of what is free), ``n_jobs`` (None: all)."""

    memory: int | None = None
    n_jobs: int | None = None
    on_interrupt: str = "raise"
    trace: bool = False
    # Where the fit that goes on keeps its steps, a mercer.engine.trace.Recorder.
    recorder: Any = None


_local = threading.local()
_global = Settings()


def current() -> Settings:
    """The settings in force for this thread."""
    return getattr(_local, "settings", None) or _global


def parse_bytes(size: int | float | str) -> int:
    """Bytes from a number or from text such as ``"4GiB"``, ``"500 MB"``.

    >>> parse_bytes("1.5KiB")
    1536
    """
    if isinstance(size, str):
        match = re.fullmatch(r"\s*([0-9]*\.?[0-9]+(?:e[0-9]+)?)\s*([a-zA-Z]*)\s*", size)
        if match is None or match[2].upper() not in _UNITS:
            raise ParameterError(f"memory={size!r} is not a size; write for example '4GiB' or '500MB'.")
        size = float(match[1]) * _UNITS[match[2].upper()]
    if isinstance(size, bool) or not isinstance(size, numbers.Real) or not 0 < size < 2**63:
        raise ParameterError(f"memory={size!r} is not a positive number of bytes; write for example '4GiB'.")
    return int(size)


def resolve_jobs(n_jobs: int | None = None) -> int:
    """Number of worker threads: ``None`` takes the setting (all cores by default), negatives count from the end.

    >>> resolve_jobs(3)
    3
    """
    if n_jobs is None:
        n_jobs = current().n_jobs
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else (os.cpu_count() or 1)
    # More threads than a container has processors' time for would wait for each other.
    cores = min(cores, control_groups.processors() or cores)
    if n_jobs is None:
        return cores
    if isinstance(n_jobs, bool) or not isinstance(n_jobs, numbers.Integral) or n_jobs == 0:
        raise ParameterError(f"n_jobs={n_jobs!r} is not a number of threads; use a whole number, -1 for all cores.")
    return int(n_jobs) if n_jobs > 0 else max(1, cores + 1 + int(n_jobs))


def _updated(
    memory: int | float | str | None, n_jobs: int | None, on_interrupt: str | None, trace: bool | None
) -> Settings:
    settings = current()
    if memory is not None:
        settings = replace(settings, memory=parse_bytes(memory))
    if n_jobs is not None:
        settings = replace(settings, n_jobs=resolve_jobs(n_jobs))
    if on_interrupt is not None:
        if not isinstance(on_interrupt, str) or on_interrupt not in _ON_INTERRUPT:
            allowed = " or ".join(map(repr, _ON_INTERRUPT))
            raise ParameterError(f"on_interrupt must be {allowed}, but is {on_interrupt!r}.")
        settings = replace(settings, on_interrupt=on_interrupt)
    if trace is not None:
        if trace not in (True, False):
            raise ParameterError(f"trace must be True or False, but is {trace!r}.")
        settings = replace(settings, trace=bool(trace))
    return settings


class _Applied:
    """Returned by :func:`config`, which has already set the values; as a context manager, it restores the old ones."""

    def __init__(self, before: Settings) -> None:
        self._before = before
        self._here = current()

    def __enter__(self) -> Settings:
        return self._here

    def __exit__(self, *_: object) -> None:
        global _global
        _global = self._before


def config(
    memory: int | float | str | None = None,
    n_jobs: int | None = None,
    on_interrupt: str | None = None,
    trace: bool | None = None,
) -> _Applied:
    """Set the memory budget, threads, what Ctrl-C does and what fits keep, for good or for a ``with`` block.

    Parameters
    ----------
    memory : int or str, optional
        The most that Mercer may hold at once, in bytes or as text (``"4GiB"``). Default: half of the memory
        that is available when a job starts, to the machine or under the limit of a container or batch job.
    n_jobs : int, optional
        Worker threads; -1 for all cores (the default) that the process may run on, or fewer where a container
        grants the time of fewer.
    on_interrupt : {"raise", "keep"}, optional
        What Ctrl-C does to a fit over landmarks. ``"raise"`` (the default) ends it with a KeyboardInterrupt, as any
        other work. ``"keep"`` ends it with the best function so far, if there is one, and a warning; the status of its
        certificate is ``interrupted``, and the gap is true. This may take one more pass over the rows, which a second
        Ctrl-C ends. Fits with a checkpoint always raise, since they can resume from it. So do the fits of a search,
        also that of its best candidate to all rows: Ctrl-C ends the search as a whole.
    trace : bool, optional
        Whether iterative learners keep their steps as ``trace_``, a table of at most 200
        (:class:`mercer.engine.trace.Trace`; ``trace_.frame()`` is a DataFrame). Default: no. Values are those that the
        solver has at a step, in its precision; they are not part of model files.

    Raises
    ------
    ParameterError
        If a value is not a size, a number of threads, one of the allowed words, or a bool, respectively.

    Examples
    --------
    >>> import mercer
    >>> with mercer.config(memory="2GiB", n_jobs=1) as settings:
    ...     settings.memory
    2147483648
    """
    global _global
    before = _global
    _global = _updated(memory, n_jobs, on_interrupt, trace)
    return _Applied(before)


@contextmanager
def inherited(settings: Settings) -> Iterator[None]:
    """Apply ``settings`` in this thread, so that worker threads have those of the caller."""
    before = getattr(_local, "settings", None)
    _local.settings = settings
    try:
        yield
    finally:
        _local.settings = before


@contextmanager
def interrupts_raise() -> Iterator[None]:
    """Let Ctrl-C raise KeyboardInterrupt, whatever the setting: for fits that are parts of other work."""
    with inherited(replace(current(), on_interrupt="raise")):
        yield
