"""The search for hyper-parameters: an objective with a gradient is maximised over a box, from several starts.

max   objective(theta) + log_prior(theta)    s.t.   low <= theta <= high

by L-BFGS-B (Byrd, Lu, Nocedal and Zhu, "A limited memory algorithm for bound constrained optimization", SIAM J. Sci.
Comput. 16, 1995). Objectives of Gaussian processes have several local maxima, so that starts drawn from the box follow
the given one; the draws, and with them the answer, depend on the seed alone.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state

from mercer._errors import IndefiniteKernelError, MercerWarning, NumericalError, ParameterError, warn_user
from mercer._types import Vector
from mercer.data.fitted import Fitted
from mercer.data.statements import Count, Each, Number
from mercer.engine import memory, settings, threads
from mercer.engine.progress import Progress
from mercer.engine.trace import record

Objective = Callable[[Vector], tuple[float, Vector]]
# scikit-learn's protocol: optimizer(function to minimise, start, bounds=bounds) -> (theta, smallest value).
Optimizer = Callable[..., tuple[Any, Any]]

# What an objective may end in where its matrix cannot be factored; the search steps back from there.
FAILURES = (np.linalg.LinAlgError, NumericalError, IndefiniteKernelError)
# The gradient counts as zero below this; progress, by default, below this share of the objective.
_FLAT = 1e-5
_PROGRESS = 2.2e-9
# Progress of an ascent whose end is compared with others.
_ROUGH = 1e-6
# Iterations over which the gain of an ascent is summed.
_WINDOW = 5
# On this share of its range, a parameter counts as at the bound.
_AT_BOUND = 1e-3

CONVERGED = "converged"
FAILED = "the objective could not be computed at the start"
LIMIT = "the limit of iterations was reached"
SETTLED = "the last iterations gained next to nothing"
STALLED = "rounding stopped the line search"
CHOSEN = "by the optimizer that was passed"
EVALUATED = "nothing to search for"


@dataclass(frozen=True)
class Trial:
    """One ascent.

    Parameters
    ----------
    start, theta : tuple of float
        Where it began, and the best point it saw.
    value : float
        The objective at ``theta``, with the log prior; ``-inf`` if it could not be computed.
    evaluations : int
        How often the objective was computed, or tried to be.
    failures : int
        How many of them failed.
    ended : str
        How it ended, in words.
    """

    start: tuple[float, ...]
    theta: tuple[float, ...]
    value: float
    evaluations: int
    failures: int
    ended: str
    _fitted: ClassVar[Fitted] = Fitted(
        {"start": Each(Number(), "p"), "theta": Each(Number(), "p"), "evaluations": Count(), "failures": Count()}
    )


@dataclass(frozen=True, repr=False)
class Search:
    """All ascents, in the order of their starts; the given start is the first.

    Examples
    --------
    >>> low, high = Trial((0.0,), (1.0,), -2.0, 9, 0, "converged"), Trial((3.0,), (2.0,), -1.0, 7, 0, "converged")
    >>> search = Search((low, high))
    >>> search.best.theta, search.value, search.evaluations
    ((2.0,), -1.0, 16)
    >>> search
    Search(trials=2, evaluations=16, value=-1.0)
    """

    trials: tuple[Trial, ...]
    _fitted: ClassVar[Fitted] = Fitted(
        rules=(("its ascents are not in one space", lambda s: len({len(trial.theta) for trial in s.trials}) == 1),)
    )

    def __repr__(self) -> str:
        return f"Search(trials={len(self.trials)}, evaluations={self.evaluations}, value={self.value:.6})"

    @property
    def best(self) -> Trial:
        """The ascent that reached the most; the first of equals."""
        return max(self.trials, key=lambda trial: trial.value)

    @property
    def theta(self) -> Vector:
        return np.array(self.best.theta)

    @property
    def value(self) -> float:
        return self.best.value

    @property
    def evaluations(self) -> int:
        return sum(trial.evaluations for trial in self.trials)


@dataclass(frozen=True, kw_only=True)
class MultiStart:
    """Ascents from a start and from more points of a box, by L-BFGS-B.

    Parameters
    ----------
    restarts : int, default=0
        More starts, uniform in the box.
    more : sequence of array-like of shape (p,)
        Further starts, after the draws.
    random_state : int, RandomState or None
        Of the draws; all are made before work starts, so that a seed gives the starts that scikit-learn's estimators
        begin from.
    optimizer : callable, optional
        In the place of L-BFGS-B: ``optimizer(f, start, bounds) -> (theta, least)`` with ``f(theta)`` the *negative*
        objective and its gradient, or the value alone with ``eval_gradient=False``.
    max_iter : int, default=15000
        Iterations of one ascent.
    gain : float, default=0.0
        An ascent also ends when five iterations together have gained less than this. Of a log evidence, a gain of 1 is
        a nat: as much as one row says of a parameter.
    n_jobs : int, optional
        Ascents that run side by side, each on one thread; None for as many as there are cores. One ascent alone has
        all threads to itself.
    bytes_each : int, default=0
        What an evaluation holds: ascents run side by side only as far as the memory budget has room for them.
    what : str
        The name of the work in messages of progress.
    tolerance : float, default=2.2e-9
        An ascent ends when a step raises the objective by less than this share of it, or of 1 if that is more.
    until : float, optional
        One ascent follows another, only until the highest two values differ by no more than this; all but
        the first have a tolerance of at least 1e-6. None for ascents from all starts, side by side.

    Examples
    --------
    >>> hill = lambda t: (-float((t - 1.0) @ (t - 1.0)), -2.0 * (t - 1.0))
    >>> search = MultiStart().maximise(hill, [5.0], [(-9.0, 9.0)])
    >>> search.theta.round(4).tolist(), search.best.ended
    ([1.0], 'converged')
    """

    restarts: int = 0
    more: Sequence[Any] = ()
    random_state: Any = None
    optimizer: Optimizer | None = None
    max_iter: int = 15_000
    gain: float = 0.0
    n_jobs: int | None = None
    bytes_each: int = 0
    what: str = "evidence"
    tolerance: float = _PROGRESS
    until: float | None = None

    def maximise(self, objective: Objective, start: Any, bounds: Any, log_prior: Objective | None = None) -> Search:
        """Maximise ``objective`` from ``start`` and from ``restarts`` more points of the box.

        Parameters
        ----------
        objective : callable
            ``theta -> (value, gradient)``; may be called from several threads at once. Where it raises one of
            ``FAILURES``, or returns what is not finite, its value counts as minus infinity. One that begins where its
            last evaluation ended has a method ``fresh``, by which each ascent gets its own: the answer depends on no
            other ascent.
        start : array-like of shape (p,)
            Moved to the nearest point of the box.
        bounds : array-like of shape (p, 2)
        log_prior : callable, optional
            ``theta -> (value, gradient)``, added to the objective; see :func:`mercer.priors.bind_priors`.

        Returns
        -------
        Search
            With a trial for each start.

        Raises
        ------
        ParameterError
            If there are restarts and a bound is infinite.
        MercerError
            What the objective raised at its first start, if it could not be computed at any of them.
        """
        box = np.asarray(bounds, dtype=np.float64).reshape(-1, 2)
        starts = _starts(np.asarray(start, dtype=np.float64), box, self.restarts, self.random_state)
        starts += [np.clip(point, box[:, 0], box[:, 1]) for point in self.more]
        count = _Count(self.what)
        own = getattr(objective, "fresh", lambda: objective)
        ascents = [_Ascent(own(), log_prior, point, box, count) for point in starts]
        trials: list[Trial | None] = [None] * len(ascents)

        def task(number: int) -> Callable[[], None]:
            def work() -> None:
                rough = number > 0 and self.until is not None
                tolerance = max(_ROUGH, self.tolerance) if rough else self.tolerance
                trials[number] = ascents[number].run(self.optimizer, self.max_iter, tolerance, self.gain)

            return work

        tasks = [task(number) for number in range(len(ascents))]
        at_once = len(tasks) if self.until is None else 1
        for first in range(0, len(tasks), at_once):
            _run(tasks[first : first + at_once], self.n_jobs, self.bytes_each)
            values = sorted(trial.value for trial in trials if trial is not None)
            if self.until is not None and len(values) > 1 and values[-1] - values[-2] <= self.until:
                break
        search = Search(tuple(trial for trial in trials if trial is not None))
        first_error = ascents[0].error
        if search.value == -math.inf and first_error is not None:
            raise first_error
        return search


def _starts(start: Vector, box: NDArray[np.float64], restarts: int, random_state: Any) -> list[Vector]:
    """The given start, moved into the box, and draws from it."""
    first = np.clip(start, box[:, 0], box[:, 1])
    if restarts <= 0 or not len(box):
        return [first]
    if not np.isfinite(box).all():
        raise ParameterError("restarts are drawn between the bounds, so all of them must be finite; give such bounds.")
    random = check_random_state(random_state)
    return [first, *(random.uniform(box[:, 0], box[:, 1]) for _ in range(restarts))]


def _run(tasks: list[Callable[[], None]], n_jobs: int | None, bytes_each: int) -> None:
    jobs = min(memory.workers(bytes_each, n_jobs), len(tasks))
    if len(tasks) > 1 and (jobs > 1 or settings.resolve_jobs(n_jobs) == 1):
        # The pool is used from here rather than BLAS from there: the number of BLAS threads, once set in this thread,
        # is not lowered by the request of another thread.
        threads.run(tasks, jobs)
        return
    for task in tasks:
        task()


class _Count:
    """Counts the evaluations of all ascents, and reports the highest value among them."""

    def __init__(self, what: str) -> None:
        self._progress = Progress(None, what)
        self._highest, self._count = -math.inf, 0

    def add(self, value: float) -> None:
        # Not locked: if two ascents end an evaluation at once, one value may be missing in a line of progress.
        self._highest = max(self._highest, value)
        self._count += 1
        record("evaluations", self._count, {"evidence": value, "highest": self._highest})
        self._progress.advance(note=f"evaluations, highest {self._highest:.6g}")


class _Ascent:
    """From one start upwards; remembers the best point, and what failed."""

    def __init__(
        self, objective: Objective, log_prior: Objective | None, start: Vector, box: NDArray[np.float64], count: _Count
    ) -> None:
        self._objective, self._log_prior, self._box, self._count = objective, log_prior, box, count
        self.start = self.best = start
        self.value = self._worst = -math.inf
        self.evaluations = self.failures = 0
        self.error: Exception | None = None
        self._last: tuple[bytes, float, Vector] | None = None

    def run(self, optimizer: Optimizer | None, max_iter: int, tolerance: float, gain: float) -> Trial:
        value, gradient = self._evaluate(self.start)
        if not math.isfinite(value):
            return self._trial(FAILED)
        if not len(self.start):
            return self._trial(EVALUATED)
        if optimizer is not None:
            self._by_function(optimizer)
            return self._trial(CHOSEN)
        # Where all variables have bounds the first step of L-BFGS-B is the whole gradient. With slopes of hundreds it
        # ends in a corner of the box, where the objective is often flat: so does the search. Scaled, it is of length 1.
        scale = max(1.0, float(np.linalg.norm(gradient)))
        values = deque([value], maxlen=_WINDOW + 1)

        def has_settled() -> bool:
            return len(values) > _WINDOW and values[-1] - values[0] < gain

        def stop_if_settled(intermediate_result: Any) -> None:
            values.append(self.value)
            if has_settled():
                raise StopIteration

        result = minimize(
            lambda theta: self._descent(theta, scale),
            self.start,
            jac=True,
            method="L-BFGS-B",
            bounds=self._box,
            options={"gtol": _FLAT / scale, "ftol": tolerance, "maxiter": max_iter},
            callback=stop_if_settled if gain > 0 else None,
        )
        if has_settled():
            return self._trial(SETTLED)
        return self._trial({0: CONVERGED, 1: LIMIT}.get(int(result.status), STALLED))

    def _by_function(self, optimizer: Optimizer) -> None:
        """By a user-defined optimizer; its result counts, even if it saw better points on its way."""

        def negative(theta: Any, eval_gradient: bool = True) -> Any:
            value, gradient = self._evaluate(np.asarray(theta, dtype=np.float64))
            return (-value, -gradient) if eval_gradient else -value

        result = optimizer(negative, self.start.copy(), bounds=self._box)
        try:
            theta, least = result
            best, value = np.asarray(theta, dtype=np.float64).ravel(), -float(least)
        except (TypeError, ValueError):
            best, value = np.zeros(0), math.nan
        if best.shape != self.start.shape or not np.isfinite(best).all() or math.isnan(value):
            raise ParameterError(
                f"the optimizer must return the best theta, {len(self.start)} finite numbers, and the least value, and "
                f"returned {result!r}."
            )
        self.best, self.value = best, value

    def _descent(self, theta: Vector, scale: float) -> tuple[float, Vector]:
        """What L-BFGS-B minimises: a failure is a finite value above all that were seen, for its interpolation."""
        value, gradient = self._evaluate(theta)
        if math.isfinite(value):
            return -value / scale, -gradient / scale
        height = max(1.0, self.value - self._worst)
        return (height - self._worst) / scale, np.zeros_like(theta)

    def _evaluate(self, theta: Vector) -> tuple[float, Vector]:
        key = theta.tobytes()
        if self._last is not None and self._last[0] == key:
            return self._last[1], self._last[2].copy()
        threads.checkpoint()
        self.evaluations += 1
        value, gradient = self._attempt(theta.copy())
        self._last = key, value, gradient.copy()
        if math.isfinite(value):
            self._worst = value if self._worst == -math.inf else min(value, self._worst)
            if value > self.value:
                self.value, self.best = value, theta.copy()
        else:
            self.failures += 1
        self._count.add(value)
        return value, gradient

    def _attempt(self, theta: Vector) -> tuple[float, Vector]:
        nothing = -math.inf, np.zeros_like(theta)
        try:
            value, gradient = self._objective(theta)
        except FAILURES as error:
            self.error = self.error or error
            return nothing
        if self._log_prior is not None:
            more, slope = self._log_prior(theta)
            value, gradient = value + more, gradient + slope
        value, gradient = float(value), np.asarray(gradient, dtype=np.float64)
        if not (math.isfinite(value) and np.isfinite(gradient).all()):
            self.error = self.error or NumericalError(
                f"the objective of the search is {value} at {theta.tolist()}, or its gradient is not finite; check the "
                "kernel for values that overflow, and scale y and the columns of X."
            )
            return nothing
        return value, gradient

    def _trial(self, ended: str) -> Trial:
        start, best = tuple(self.start.tolist()), tuple(self.best.tolist())
        return Trial(start, best, self.value, self.evaluations, self.failures, ended)


class BoundWarning(MercerWarning, ConvergenceWarning):
    """A search ended at a bound of a hyper-parameter; scikit-learn gives a ``ConvergenceWarning`` there."""


def warn_of_bounds(search: Search, bounds: Any, names: Iterable[str]) -> None:
    """Warn of the first parameters, which have names, if they ended at a bound: a wider one could be better."""
    box = np.asarray(bounds, dtype=np.float64).reshape(-1, 2)
    for name, value, (low, high) in zip(names, search.best.theta, box, strict=False):
        close = _AT_BOUND * (high - low)
        if min(value - low, high - value) <= close:
            which = "lower" if value - low < high - value else "upper"
            warn_user(
                f"the search left {name} at its {which} bound; give it other bounds (kernel.bounded) to look further, "
                "or fix it (kernel.fixed).",
                BoundWarning,
            )
