"""The steps of iterative solvers, kept as a table of bounded size where ``mercer.config(trace=True)`` asks for them."""

from __future__ import annotations

import functools
import inspect
import math
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from mercer._optional import optional
from mercer.engine import settings

MOST = 200
Values = Mapping[str, float] | Callable[[], Mapping[str, float]]


@dataclass(frozen=True)
class Step:
    """One step of a solver.

    Parameters
    ----------
    work : str
        What the solver does, as ``"pairs of weights"``.
    problem : int
        Which problem of the fit, from 0 on in the order in which they began.
    iteration : int
        The number of the step, as the solver counts.
    seconds : float
        Since the start of the fit.
    values : dict of str to float
        What the solver knows there, as ``"dual"`` or ``"violation"``.
    """

    work: str
    problem: int
    iteration: int
    seconds: float
    values: Mapping[str, float]


class Trace:
    """The steps of a fit, at most 200: of more, every second, fourth, ... step and the last one of each problem.

    Parameters
    ----------
    steps : iterable of Step

    Examples
    --------
    >>> trace = Trace([Step("passes", 0, 1, 0.1, {"mistakes": 3.0}), Step("passes", 0, 2, 0.2, {"mistakes": 0.0})])
    >>> len(trace), trace.names, trace.column("mistakes")
    (2, ['mistakes'], [3.0, 0.0])
    """

    def __init__(self, steps: Any = ()) -> None:
        self.steps: tuple[Step, ...] = tuple(steps)

    def __len__(self) -> int:
        return len(self.steps)

    def __iter__(self) -> Iterator[Step]:
        return iter(self.steps)

    def __repr__(self) -> str:
        return f"<Trace of {len(self)} steps: {', '.join(self.names)}>"

    @property
    def names(self) -> list[str]:
        """The names of the values, in the order in which they first occur."""
        return list(dict.fromkeys(name for step in self.steps for name in step.values))

    def column(self, name: str) -> list[float]:
        """One value of each step, NaN where the solver did not know it."""
        return [float(step.values.get(name, math.nan)) for step in self.steps]

    def frame(self) -> Any:
        """Return a row for each step.

        Returns
        -------
        pandas.DataFrame
            Columns work, problem, iteration, seconds, and one for each value.

        Raises
        ------
        MissingDependencyError
            If pandas is not installed.
        """
        facts = {name: [getattr(step, name) for step in self.steps] for name in _FACTS}
        return optional("pandas", "Trace.frame").DataFrame(facts | {name: self.column(name) for name in self.names})


_FACTS = ("work", "problem", "iteration", "seconds")


class Recorder:
    """Collects the steps of one fit, from all of its threads."""

    def __init__(self, owner: object) -> None:
        self.owner = owner
        self._start = time.perf_counter()
        self._lock = threading.Lock()
        self._steps: list[Step] = []
        # The last step of each problem, in case it is left out.
        self._last: dict[int, Step] = {}
        self._now: dict[tuple[int, str], tuple[int, int]] = {}
        self._stride, self._count, self._problems = 1, 0, 0

    def add(self, work: str, iteration: int, values: Mapping[str, float]) -> None:
        """Add a step; one that counts less than the last one of this thread begins another problem."""
        with self._lock:
            key = threading.get_ident(), work
            problem, before = self._now.get(key, (-1, math.inf))
            if iteration < before or problem < 0:
                problem, self._problems = self._problems, self._problems + 1
            self._now[key] = problem, iteration
            numbers = {name: float(value) for name, value in values.items()}
            step = Step(work, problem, int(iteration), time.perf_counter() - self._start, numbers)
            self._last[problem] = step
            if self._count % self._stride == 0:
                self._steps.append(step)
            self._count += 1
            if len(self._steps) > MOST // 2:
                self._steps, self._stride = self._steps[::2], 2 * self._stride

    def trace(self) -> Trace:
        """The steps so far."""
        with self._lock:
            ends = [step for _, step in sorted(self._last.items())][: MOST // 2]
            steps = sorted({id(step): step for step in (*self._steps, *ends)}.values(), key=_place)
            return Trace(steps)


def _place(step: Step) -> tuple[int, int]:
    return step.problem, step.iteration


def wanted() -> bool:
    """Whether steps are kept here."""
    return settings.current().recorder is not None


def record(work: str, iteration: int, values: Values) -> None:
    """Keep a step if traces are requested; values that cost something are given as a function, only called then.

    >>> record("passes", 1, {"mistakes": 3})
    """
    recorder = settings.current().recorder
    if recorder is not None:
        recorder.add(work, iteration, values() if callable(values) else values)


def portions(steps: int, done: int) -> Iterator[int]:
    """Split a number of steps, so that these can be kept: into parts that grow with those done before.

    >>> list(portions(100, 0))
    [100]
    """
    if not wanted():
        yield steps
        return
    end = done + steps
    while done < end:
        part = min(max(1, done // 8), end - done)
        yield part
        done += part


def keep_steps(cls: type) -> None:
    """Wrap ``fit``, so that it leaves its steps as ``trace_`` where the settings ask for them."""
    method = inspect.getattr_static(cls, "fit", None)
    if inspect.isfunction(method) and not hasattr(method, "_keeps_steps"):
        setattr(cls, "fit", _keeping(method))  # noqa: B010 - assigned to a class of unknown type


def _keeping(fit: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(fit)
    def wrapper(self: Any, *arguments: Any, **options: Any) -> Any:
        caller = settings.current()
        if caller.recorder is not None and caller.recorder.owner is self:
            # The fit of a class calls that of its base.
            return fit(self, *arguments, **options)
        vars(self).pop("trace_", None)
        if not caller.trace:
            return fit(self, *arguments, **options)
        recorder = Recorder(self)
        with settings.inherited(replace(caller, recorder=recorder)):
            result = fit(self, *arguments, **options)
        self.trace_ = recorder.trace()
        return result

    wrapper._keeps_steps = True  # type: ignore[attr-defined]
    return wrapper
