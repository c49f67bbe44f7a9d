"""Lloyd's iterations: rows to the nearest mean, means of their rows, until no row moves."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mercer._types import Vector
from mercer.engine.progress import Progress
from mercer.engine.trace import record
from mercer.solvers.clustering.means import SLACK, Assignment, Labels, Means, inertia
from mercer.solvers.solution import Status

# Differences of inertias that may be rounding alone, in units of rounding.
_RISE = 64.0


@dataclass(frozen=True)
class Rules:
    """When iterations end: the most assignments, and the squared shift of the means that is small enough."""

    max_iter: int
    shift: float


class Descent:
    """One run from one start.

    Parameters
    ----------
    means : Means
    weight : ndarray of shape (n,)
    labels : ndarray of int of shape (n,)
        The first partition.
    steps : int
        Assignments that were made to find it.
    rules : Rules
    progress : Progress

    Attributes
    ----------
    labels : ndarray of shape (n,)
        The partition whose means these are.
    history : list of float
        The inertia of each partition about its own means. It never rises: a step that would raise it beyond rounding
        is taken back and ends the run.
    settled : bool
        Whether it ended since the means hardly moved.
    """

    def __init__(
        self, means: Means, weight: Vector, labels: Labels, steps: int, rules: Rules, progress: Progress
    ) -> None:
        self.means, self.labels, self.steps = means, labels.copy(), steps
        self._weight, self._rules, self._progress = weight, rules, progress
        means.begin(self.labels)
        self.history = [inertia(means, weight)]
        self.settled = False

    def explore(self) -> None:
        """Iterate until the inertia does not fall, or a rule ends it."""
        while not self.settled and self.steps < self._rules.max_iter:
            assignment = self._filled(self.means.nearest(self.labels, whole=False))
            if (assignment.labels == self.labels).all() or not self._step(assignment.labels, 0.0):
                return

    def finish(self, last: bool) -> tuple[Status, Assignment]:
        """Iterate until every row is nearest to its own mean; how it ended, and the nearest means of all rows.

        With ``last`` the next assignment ends it.
        """
        noise = _RISE * self.means.rounding * float(self._weight @ np.abs(self.means.norms))
        status, whole = Status.converged, True
        while not last and self.steps < self._rules.max_iter:
            assignment = self._filled(self.means.nearest(self.labels, whole))
            if (assignment.labels == self.labels).all():
                if whole:
                    self.steps += 1
                    return status, assignment
                # Every row is looked at in the end, whatever bounds say.
                whole = True
                continue
            whole = False
            if not self._step(assignment.labels, noise):
                status = Status.stalled
                break
            last = self.settled
        assignment = self.means.nearest(self.labels, whole=True)
        if status is Status.converged and not last and (assignment.labels != self.labels).any():
            status = Status.iteration_limit
        return status, assignment

    def _step(self, labels: Labels, noise: float) -> bool:
        """Take a partition, unless it is no better; whether it was taken."""
        moved = np.flatnonzero(labels != self.labels)
        shift = self.means.move(moved, self.labels[moved], labels)
        value = inertia(self.means, self._weight)
        if not value < self.history[-1] + noise:
            self.means.begin(self.labels)
            return False
        self.labels = labels.copy()
        self.history.append(value)
        self.steps += 1
        self.settled = shift <= self._rules.shift
        self._progress.advance()
        record("steps of k-means", self.steps, {"inertia": value})
        return True

    def _filled(self, assignment: Assignment) -> Assignment:
        """Each empty cluster given the row that is farthest from its mean, which lowers the inertia."""
        k = len(self.means.size)
        if np.bincount(assignment.labels, minlength=k).all():
            return assignment
        assignment = self.means.nearest(self.labels, whole=True)
        labels = assignment.labels.copy()
        counts = np.bincount(labels, minlength=k)
        rounding = SLACK * self.means.rounding * float(np.abs(self.means.norms).max())
        order = iter(np.argsort(-assignment.squared, kind="stable"))
        for cluster in np.flatnonzero(counts == 0):
            for row in order:
                if not assignment.squared[row] > rounding:
                    # All rows lie on their means, to rounding.
                    break
                if counts[labels[row]] > 1:
                    counts[labels[row]] -= 1
                    counts[cluster] += 1
                    labels[row] = cluster
                    break
        return Assignment(labels, assignment.squared, assignment.excess)
