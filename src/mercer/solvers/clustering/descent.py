"""Lloyd's iterations: rows to the nearest mean, means of their rows, and only the rows that may change looked at."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from mercer.engine import threads, tiles
from mercer.engine.progress import Progress
from mercer.loops.kmeans import nearest_means, undecided
from mercer.solvers.clustering.means import Index, Labels, Means, inertia, squares
from mercer.solvers.matrix import Vector
from mercer.solvers.solution import Status

_ROWS = 4096
# In units of rounding: differences of squared distances, and of inertias, that say nothing.
_SLACK = 16.0
_RISE = 64.0


@dataclass(frozen=True)
class Rules:
    """When iterations end: the number of assignments, the squared shift of the means, and whether bounds hold.

    ``prune`` says that distances obey the triangle inequality, which those of an indefinite kernel do not.
    """

    max_iter: int
    shift: float
    prune: bool
    n_jobs: int | None


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
        The inertia of each partition about its own means.
    settled : bool
        Whether it ended since the means hardly moved.
    looked_at : int
        Distances that were computed, in rows.
    """

    def __init__(
        self, means: Means, weight: Vector, labels: Labels, steps: int, rules: Rules, progress: Progress
    ) -> None:
        self.means, self.labels, self.steps = means, labels.copy(), steps
        self._weight, self._rules, self._progress = weight, rules, progress
        n, k = len(labels), len(means.size)
        self.distances = np.zeros((n, k))
        self._version = np.zeros(n, np.int32)
        self._excess = np.zeros(n)
        self._begin()
        self.history = [inertia(means, weight)]
        self.settled = False
        self.looked_at = 0

    def _begin(self) -> None:
        self.means.begin(self.labels)
        self._travelled = [np.zeros(len(self.means.size))]

    def run(self, final: bool, last: bool = False) -> tuple[Status, Labels]:
        """Iterate; how it ended, and the nearest means of all rows (only if ``final``).

        With ``last`` the next assignment ends it. A run that is not final ends as soon as the inertia does not fall.
        """
        n = len(self.labels)
        whole = True
        status = Status.converged
        while True:
            rows = np.arange(n) if whole else self._undecided()
            ends = last or self.steps >= self._rules.max_iter
            labels, whole = (self._nearest(rows), whole) if ends else self._assigned(rows)
            moved = np.flatnonzero(labels != self.labels)
            if ends or not len(moved):
                if whole or not final:
                    break
                # The answer is certified: every row is looked at.
                whole = True
                continue
            self.steps += 1
            self._progress.advance()
            fresh = self.means.size == 0
            before = self.labels[moved]
            shifts = self.means.move(moved, before, labels[moved])
            self.labels[moved] = labels[moved]
            self._travelled.append(self._travelled[-1] + shifts)
            value = inertia(self.means, self._weight)
            noise = _RISE * self.means.rounding * float(self._weight @ np.abs(self.means.norms)) if final else 0.0
            if not value < self.history[-1] + noise:
                self.labels[moved] = before
                if not final:
                    return Status.stalled, labels
                status, last, whole = Status.stalled, True, True
                self._begin()
                continue
            self.history.append(value)
            last = self.settled = bool((shifts**2).sum() <= self._rules.shift)
            whole = not self._rules.prune or bool((fresh & (self.means.size > 0)).any())
        if len(moved) and not last:
            status = Status.iteration_limit
        elif not len(moved) and final:
            self.steps = min(self.steps + 1, self._rules.max_iter)
        return status, labels

    def release(self) -> None:
        """Let go of the distances."""
        self.distances = np.zeros((0, 0))

    def _undecided(self) -> Index:
        travelled = np.array(self._travelled)
        n = len(self.labels)
        out = np.zeros(n, dtype=np.bool_)
        slack = _SLACK * self.means.rounding * float(np.abs(self.means.norms).max())

        def work(part: slice) -> None:
            undecided(self.distances[part], self._version[part], travelled, self.labels[part], slack, out[part])

        self._by_parts(work, n)
        return np.flatnonzero(out)

    def _assigned(self, rows: Index) -> tuple[Labels, bool]:
        """Labels after ``rows`` went to their nearest means, empty clusters filled; and whether all were looked at."""
        labels = self._nearest(rows)
        counts = np.bincount(labels, minlength=len(self.means.size))
        if (counts == 0).any():
            if len(rows) < len(labels):
                rows = np.arange(len(labels))
                labels = self._nearest(rows)
                counts = np.bincount(labels, minlength=len(counts))
            self._fill_empty(labels, counts)
        return labels, len(rows) == len(labels)

    def _nearest(self, rows: Index) -> Labels:
        self.means.refresh(rows)
        self.looked_at += len(rows)
        labels = self.labels.copy()
        squared = squares(self.means)
        slack = _SLACK * self.means.rounding
        k = len(self.means.size)

        def work(part: slice) -> None:
            chosen = rows[part]
            found, excess = np.empty(len(chosen), np.int32), np.empty(len(chosen))
            distances = np.empty((len(chosen), k))
            nearest_means(
                self.means.inner(chosen), self.means.norms[chosen], self.means.size, squared, self.labels[chosen],
                slack, distances, found, excess,
            )  # fmt: skip
            labels[chosen], self.distances[chosen], self._excess[chosen] = found, distances, excess

        self._by_parts(work, len(rows))
        self._version[rows] = len(self._travelled) - 1
        return labels

    def _fill_empty(self, labels: Labels, counts: Index) -> None:
        """Give each empty cluster the row that is farthest from its mean, which lowers the inertia."""
        own = self.distances[np.arange(len(labels)), labels]
        empty = np.flatnonzero(counts == 0)
        order = iter(np.argsort(-own, kind="stable"))
        for cluster in empty:
            for row in order:
                if not own[row] > 0:
                    return
                if counts[labels[row]] > 1:
                    counts[labels[row]] -= 1
                    counts[cluster] += 1
                    labels[row] = cluster
                    break

    def _by_parts(self, work: Callable[[slice], None], n: int) -> None:
        def task(part: slice) -> Callable[[], None]:
            def run() -> None:
                threads.checkpoint()
                work(part)

            return run

        threads.run([task(part) for part in tiles.spans(n, _ROWS)], self._rules.n_jobs)

    @property
    def excess(self) -> float:
        """By how much, squared, a row is at most farther from its mean than from another; after a final run."""
        return float(self._excess.max())
