"""Which rows may change their nearest mean, by the triangle inequality."""

from __future__ import annotations

import numpy as np

from mercer._types import Positions, Vector
from mercer.loops import kmeans
from mercer.solvers.clustering.means import ROWS, Assignment, Labels, in_parts


class Bounds:
    """Distances (n, k) as they were when a row was last looked at, and how far the means have come since.

    References
    ----------
    C. Elkan, "Using the triangle inequality to accelerate k-means" (2003), lemma 1.
    """

    def __init__(self, n: int, k: int) -> None:
        self._distances = np.zeros((n, k))
        self._version = np.zeros(n, np.int32)
        self._travelled = [np.zeros(k)]
        self._known = False
        self.squared, self.excess = np.zeros(n), np.zeros(n)

    def move(self, shifts: Vector, known: bool) -> None:
        """Means have moved; a mean that is there for the first time has distances that are not ``known``."""
        self._travelled.append(self._travelled[-1] + shifts)
        self._known = self._known and known

    def undecided(self, labels: Labels, slack: float, whole: bool, n_jobs: int | None) -> Positions:
        """The rows to look at; all of them if ``whole``, or if nothing is known."""
        n = len(labels)
        if whole or not self._known:
            self._known = True
            return np.arange(n)
        travelled = np.array(self._travelled)
        out = np.zeros(n, np.bool_)

        def work(part: slice) -> None:
            kmeans.undecided(self._distances[part], self._version[part], travelled, labels[part], slack, out[part])

        in_parts(work, n, ROWS, n_jobs)
        return np.flatnonzero(out)

    def keep(self, rows: Positions, distances: Vector, assignment: Assignment) -> None:
        """Store the distances and the assignment of rows; called from any thread."""
        self._distances[rows] = distances
        self._version[rows] = len(self._travelled) - 1
        self.squared[rows], self.excess[rows] = assignment.squared, assignment.excess
