"""The course of a search without a grid: which candidates are evaluated next, how exactly, and when to stop."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import Enum

import numpy as np

from mercer.selection.coarse_to_fine import CoarseToFine
from mercer.selection.evaluated import Evaluated
from mercer.selection.ranges import Point, Space
from mercer.selection.search_log import Evaluates


class Stop(Enum):
    """Why a search ended. The values are the help texts."""

    done = "done: the neighbours of the best candidate were tried at the finest spacing."
    certified = "certified: the best candidate is certain given the folds, and its neighbours were tried."
    budget = "budget: the time budget was over before the search was done; the best candidate so far was taken."
    interrupted = "interrupted: the search was stopped by hand; the best candidate so far was taken."


@dataclass(eq=False)
class SearchPlan:
    """A search in progress.

    Parameters
    ----------
    spaces : list of Space
    evaluator : Evaluator
    budget : float
        Seconds, refit included.
    start : float
        When they began, by ``time.perf_counter``.
    verbose : bool
    """

    spaces: Sequence[Space]
    evaluator: Evaluates
    budget: float
    start: float
    verbose: bool
    candidates: list[Evaluated] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._plans = [CoarseToFine(space.axes) for space in self.spaces]
        self._where: list[tuple[int, Point]] = []
        self._number: dict[tuple[int, Point], int] = {}

    @property
    def best(self) -> int | None:
        """The number of the candidate with the best mean score, the first of equals; None if all failed."""
        means = np.array([one.mean for one in self.candidates])
        return None if not len(means) or np.isnan(means).all() else int(np.nanargmax(means))

    @property
    def is_certified(self) -> bool:
        """Whether the lower bound of the best is at least the upper bounds of all others."""
        best = self.best
        if best is None:
            return False
        upper = [one.interval[1] for number, one in enumerate(self.candidates) if number != best]
        return bool(self.candidates[best].interval[0] >= max(upper, default=-np.inf)) and not np.isnan(upper).any()

    @property
    def sharing(self) -> str:
        """What the fits had in common."""
        return f"{self.evaluator.fits.matrices} kernel matrices evaluated for {self.evaluator.fits.count} fits"

    def run(self) -> Stop:
        """Search until done, or until the budget is over."""
        for number, plan in enumerate(self._plans):
            if not self._evaluate(number, plan.coarse()):
                return Stop.budget
        for number, plan in enumerate(self._plans):
            while points := plan.next(self._scores(number)):
                if not self._evaluate(number, points):
                    return Stop.budget
        return Stop.certified if self.is_certified else Stop.done

    def _scores(self, space: int) -> dict[Point, float]:
        return {point: self.candidates[n].mean for (number, point), n in self._number.items() if number == space}

    def _evaluate(self, space: int, points: Sequence[Point]) -> bool:
        """Evaluate points of a space group by group; return whether the budget sufficed."""
        parameters = [self.spaces[space].parameters(point) for point in points]
        for group in self.evaluator.groups(parameters, None):
            if self.candidates and time.perf_counter() - self.start > self.budget:
                return False
            for number, one in zip(group, self.evaluator.evaluate([parameters[n] for n in group], None)):
                self._record(space, points[number], one)
        return True

    def _record(self, space: int, point: Point, one: Evaluated) -> None:
        self._number[space, point] = len(self.candidates)
        self._where.append((space, point))
        self.candidates.append(one)
