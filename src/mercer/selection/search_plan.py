"""The course of a search without a grid: which candidates are evaluated next, how exactly, and when to stop."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

import numpy as np

from mercer._types import Vector
from mercer.engine import threads
from mercer.engine.progress import Progress
from mercer.loops.compilation import working_time
from mercer.selection.coarse_to_fine import CoarseToFine
from mercer.selection.evaluated import DEFERRED, Evaluated
from mercer.selection.ranges import Point, Space
from mercer.selection.search_log import Evaluates
from mercer.selection.time_budget import TimeBudget

# Candidates that are tightened together: those that share a kernel share its matrix.
_TOGETHER = 4
# Tightening that narrows an interval by less than this share is only rounding.
_GAIN = 0.1
# Below this share of the own tolerance nothing is tightened.
_TIGHTEST = 1e-7
_TEN = 10.0


class Stop(Enum):
    """Why a search ended. The values are the help texts."""

    done = (
        "done: the neighbours of the best candidate were tried at the finest spacing, and more exact fits would change "
        "the scores by rounding alone, or the scores have no bounds that they could narrow."
    )
    certified = (
        "certified: the neighbours of the best candidate were tried at the finest spacing, and given the folds no "
        "other candidate that could be fitted can have a higher score."
    )
    budget = "budget: the time budget ended before the search was done; this is the best candidate so far."
    exceeded = (
        "budget: after the first candidate, the time left did not suffice for another one and the fit to all rows, as "
        "far as the time of the first one tells, so nothing was compared; raise time_budget."
    )
    unscored = (
        "budget: it ended before the first candidate had a score. The cheapest candidate is taken, so nothing was "
        "compared; raise time_budget."
    )
    interrupted = "interrupted: the search was stopped by hand; this is the best candidate so far."


class _OutOfTimeError(Exception):
    """The next candidates do not fit the budget."""


@dataclass(frozen=True)
class Pace:
    """How exactly candidates are fitted, and how many at a time.

    Attributes
    ----------
    own, loose : float or None
        The tolerance of the learner, None where it has none that could be changed; and the one to begin with, None for
        the learner's own.
    threads : int
        So many folds are fitted at a time.
    folds : int
    bounds_first : bool
        Whether each score has its interval from the start, and not only when all others are known.
    """

    own: float | None
    loose: float | None
    threads: int
    folds: int
    bounds_first: bool


@dataclass(eq=False)
class SearchPlan:
    """A search in progress.

    Parameters
    ----------
    spaces : list of Space
    evaluator : Evaluator
    budget : TimeBudget
    pace : Pace
    verbose : bool
    """

    spaces: Sequence[Space]
    evaluator: Evaluates
    budget: TimeBudget
    pace: Pace
    verbose: bool
    candidates: list[Evaluated] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._plans = [CoarseToFine(space.axes) for space in self.spaces]
        self._where: list[tuple[int, Point]] = []
        self._number: dict[tuple[int, Point], int] = {}
        # Candidates whose interval has become as narrow as rounding allows.
        self._exhausted: set[int] = set()
        # Seconds of what the folds share, such as the kernel matrix, by space and place of the kernel in it.
        self._shared: dict[tuple[int, Point], float] = {}
        self._bounded = self.pace.bounds_first
        self._progress = Progress(None, "search", self.verbose)

    @property
    def best(self) -> int | None:
        """The candidate with the best mean score; None if all failed. Of equals that nearest to the middle."""
        means = self._means()
        if not len(means) or np.isnan(means).all():
            return None
        equal = np.flatnonzero(means == np.nanmax(means))
        space = self._where[equal[0]][0]
        points = {self._where[n][1]: means[n] for n in equal if self._where[n][0] == space}
        return self._number[space, self._plans[space].best(points)]

    @property
    def is_certified(self) -> bool:
        """Whether the lower bound of the best is at least the upper bounds of all others that could be fitted."""
        best = self.best
        # Which of the candidates can be fitted does not depend on how exactly the others are.
        others = [n for n, one in enumerate(self.candidates) if n != best and not one.error]
        if best is None or not others:
            return False
        lower, upper = self._bounds()
        return bool(np.isfinite(lower[best]) and (upper[others] <= lower[best]).all())

    def run(self) -> Stop:
        """Search until nothing is left to do, the budget is spent, or the user stops it."""
        try:
            self._begin()
            for space, plan in enumerate(self._plans):
                self._evaluate(space, plan.coarse(), self.pace.loose)
            self._refine()
            self._bound()
            while self._settle():
                self._refine()
            self._tighten()
        except _OutOfTimeError:
            if self.best is None and not self.candidates[-1].error:
                return Stop.unscored
            return Stop.budget if len(self.candidates) > 1 else Stop.exceeded
        except KeyboardInterrupt:
            if self.best is None:
                raise
            return Stop.interrupted
        return Stop.certified if self.is_certified else Stop.done

    def _begin(self) -> None:
        """One candidate alone, which tells how long the others take."""
        plan = self._plans[0]
        self._evaluate(0, [min(plan.coarse(), key=plan.order)], self.pace.loose)

    def _refine(self) -> None:
        """Go on around the best candidate of each space that may have the best of all, the most promising first."""
        while True:
            todo = [(space, points) for space in self._promising() if (points := self._next(space))]
            if not todo:
                return
            self._evaluate(*todo[0], self.pace.loose)

    def _bound(self) -> None:
        """Fit the candidates again whose intervals were left for later."""
        self._bounded = True
        for space in range(len(self.spaces)):
            points = [self._where[n][1] for n, one in enumerate(self.candidates) if one.why == DEFERRED]
            self._evaluate(space, [point for point in points if (space, point) in self._number], self.pace.loose)

    def _next(self, space: int) -> list[Point]:
        scores = {point: self.candidates[n].mean for (number, point), n in self._number.items() if number == space}
        return self._plans[space].next(scores)

    def _promising(self) -> list[int]:
        """The spaces whose best candidate is within a standard error of the best of all, the best first."""
        means, best = self._means(), self.best
        if best is None:
            return []
        scores = self.candidates[best].scores
        least = means[best] - float(np.std(scores)) / np.sqrt(len(scores))
        tops = {}
        for space in range(len(self.spaces)):
            own = [means[n] for n, (number, _) in enumerate(self._where) if number == space]
            top = np.nanmax(own) if own and not np.isnan(own).all() else -np.inf
            if top >= least:
                tops[space] = top
        return sorted(tops, key=lambda space: -tops[space])

    def _settle(self) -> bool:
        """Evaluate contenders at the learner's own tolerance, by promise; whether the best is another one then."""
        before = self.best
        while self.pace.loose is not None:
            rough = [n for n in self._contenders() if self.candidates[n].tol is not None]
            if not rough:
                break
            self._again(rough, None)
        return self.best != before

    def _tighten(self) -> None:
        """Tighten contenders beyond the learner's own tolerance, until the best is certain or only rounding is left."""
        if self.pace.own is None:
            return
        level = self.pace.own
        while level > self.pace.own * _TIGHTEST and not self.is_certified:
            level /= _TEN
            while not self.is_certified:
                left = [n for n in self._contenders() if self._may_narrow(n) and self._level(n) > 1.5 * level]
                if not left:
                    break
                self._again(left, level)

    def _may_narrow(self, number: int) -> bool:
        lower, upper = self.candidates[number].interval
        return bool(upper > lower) and number not in self._exhausted

    def _level(self, number: int) -> float:
        tol = self.candidates[number].tol
        return float(self.pace.own or 0.0) if tol is None else tol

    def _again(self, numbers: list[int], tol: float | None) -> None:
        """Evaluate the first of some candidates at another tolerance, those of one space together."""
        space = self._where[numbers[0]][0]
        some = [n for n in numbers if self._where[n][0] == space][:_TOGETHER]
        widths = {n: self._width(n) for n in some}
        self._evaluate(space, [self._where[n][1] for n in some], tol)
        for n in some:
            if tol is not None and not self._width(n) < (1.0 - _GAIN) * widths[n]:
                self._exhausted.add(n)

    def _width(self, number: int) -> float:
        lower, upper = self.candidates[number].interval
        return upper - lower

    def _contenders(self) -> list[int]:
        """The candidates that may be the best as far as their bounds say, the most promising first."""
        best = self.best
        if best is None:
            return []
        lower, upper = self._bounds()
        least = np.nanmax(np.append(lower, -np.inf))
        means = self._means()
        able = [n for n in range(len(means)) if not np.isnan(means[n]) and not upper[n] < least]
        return sorted(able, key=lambda n: (n != best, -means[n]))

    def _means(self) -> Vector:
        return np.array([one.mean for one in self.candidates])

    def _bounds(self) -> tuple[Vector, Vector]:
        intervals = np.array([one.interval for one in self.candidates]).reshape(-1, 2)
        return intervals[:, 0], intervals[:, 1]

    def _evaluate(self, space: int, points: Sequence[Point], tol: float | None) -> None:
        """Evaluate points of a space, those with the same kernel together, as long as the budget suffices."""
        fresh = [point for point in points if not self._is_known(space, point, tol)]
        parameters = {
            point: self.spaces[space].parameters(point) for point in sorted(fresh, key=self._plans[space].order)
        }
        ordered = list(parameters)
        for group in self.evaluator.groups(list(parameters.values()), tol):
            left = [ordered[n] for n in group]
            while left:
                some = self._affordable(space, left, tol)
                self._evaluate_together(space, {point: parameters[point] for point in some}, tol)
                left = left[len(some) :]

    def _is_known(self, space: int, point: Point, tol: float | None) -> bool:
        number = self._number.get((space, point))
        one = None if number is None else self.candidates[number]
        return one is not None and one.tol == tol and not (self._bounded and one.why == DEFERRED)

    def _affordable(self, space: int, points: list[Point], tol: float | None) -> list[Point]:
        """As many of the first points as the budget suffices for."""
        if not self.candidates:
            return points
        count = len(points)
        while count and not self.budget.suffices(space, points[:count], tol):
            count //= 2
        if not count:
            raise _OutOfTimeError
        return points[:count]

    def _evaluate_together(self, space: int, parameters: dict[Point, dict[str, Any]], tol: float | None) -> None:
        begin = working_time()
        try:
            with threads.until(max(self.budget.left - self.budget.refit, 0.0)):
                made = self.evaluator.evaluate(list(parameters.values()), tol, self._bounded)
        except TimeoutError:
            if self.best is None:
                # Without a candidate there would be no result.
                point, first = next(iter(parameters.items()))
                self._record(space, point, Evaluated.unscored(first, tol, self.pace.folds))
            raise _OutOfTimeError from None
        # Those from a log took no time now.
        known = sum(float(np.nansum(one.seconds)) for one in made) / self.pace.threads
        seconds = working_time() - begin
        self.budget.learn(space, list(parameters), tol, max(seconds, known))
        for point, one in zip(parameters, made):
            kernel = self._kernel(space, point)
            self._shared[kernel] = max(seconds - known, self._shared.get(kernel, 0.0))
            self._record(space, point, one)

    def _record(self, space: int, point: Point, one: Evaluated) -> None:
        """Keep what was evaluated; every candidate passes here, at each of its tolerances."""
        number = self._number.setdefault((space, point), len(self.candidates))
        if number == len(self.candidates):
            self.candidates.append(one)
            self._where.append((space, point))
        else:
            self.candidates[number] = one
        best = self.best
        if best is not None:
            self.budget.refit = self._seconds_of_refit(best)
            what = "candidates" if self._progress.done else "candidate"
            note = f"{what}, best score {self.candidates[best].mean:.5g}"
            self._progress.advance(note=note)

    def _kernel(self, space: int, point: Point) -> tuple[int, Point]:
        return space, point[: len(self.spaces[space].scales)]

    def _seconds_of_refit(self, number: int) -> float:
        """A fit to all rows evaluates its own matrix, and has more rows than a fold."""
        one, shared = self.candidates[number], self._shared.get(self._kernel(*self._where[number]), 0.0)
        return shared + 2.0 * float(np.nanmax(one.seconds)) * (1.0 if one.tol is None else 2.0)
