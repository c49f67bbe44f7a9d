"""Means as weighted sums of rows in feature space, known by their inner products with the rows."""

from __future__ import annotations

import numpy as np

from mercer._types import Positions, Vector
from mercer.loops import kmeans as loops
from mercer.solvers.clustering.entries import Entries
from mercer.solvers.clustering.means import ROWS, SLACK, Assignment, Labels, in_parts, indicator, squares, totals


class DualMeans:
    r"""Sums :math:`u_c = \sum_{i \in c} w_i \phi(x_i)` with the products :math:`\langle u_c, \phi(x_i) \rangle`.

    When rows move, the products change by the columns of K that belong to these rows; no other entry is looked at.

    Parameters
    ----------
    entries : Entries
        Of K.
    norms : ndarray of shape (n,)
        Its diagonal.
    weight : ndarray of shape (n,)
    k : int
        Number of clusters.
    n_jobs : int, optional
    """

    def __init__(self, entries: Entries, norms: Vector, weight: Vector, k: int, n_jobs: int | None = None) -> None:
        self.norms, self.rounding = norms, entries.rounding
        self._entries, self._weight, self._k, self._n_jobs = entries, weight, k, n_jobs
        self.size = self.raw = np.zeros(k)
        self._products = np.zeros((k, 0))

    def begin(self, labels: Labels) -> None:
        self._products = self._entries.product(indicator(labels, self._weight, self._k))
        self._sum_up(labels)

    def _sum_up(self, labels: Labels) -> None:
        self.size = totals(labels, self._weight, self._k)
        self.raw = self._within(labels)

    def _within(self, labels: Labels) -> Vector:
        """Inner products of the sums of these clusters and of those the products belong to, cluster by cluster."""
        own = self._products[labels, np.arange(len(labels))]
        return totals(labels, self._weight * own, self._k)

    def move(self, rows: Positions, before: Labels, labels: Labels) -> float:
        size, raw, cross = self.size, self.raw, self._within(labels)
        if 2 * len(rows) > len(labels):
            self.begin(labels)
        else:
            self._entries.add(rows, before, labels[rows], self._weight[rows], self._products)
            self._sum_up(labels)
        both = (size > 0) & (self.size > 0)
        old, new = size[both], self.size[both]
        shifts = raw[both] / old**2 - 2 * cross[both] / (old * new) + self.raw[both] / new**2
        return float(np.maximum(shifts, 0.0).sum())

    def nearest(self, labels: Labels, whole: bool) -> Assignment:
        n = len(labels)
        assignment = Assignment(np.empty(n, np.int32), np.empty(n), np.empty(n))
        means = loops.Means(self.size, squares(self))

        def work(part: slice) -> None:
            out = Assignment(assignment.labels[part], assignment.squared[part], assignment.excess[part])
            loops.nearest_sums(
                self._products[:, part], self.norms[part], means, labels[part], SLACK * self.rounding, out
            )

        in_parts(work, n, ROWS, self._n_jobs)
        return assignment

    def to_rows(self, rows: Positions) -> Vector:
        squared = self._entries.columns(rows)
        squared *= -2
        squared += self.norms[:, None]
        squared += self.norms[rows]
        np.maximum(squared, 0.0, out=squared)
        squared[rows, np.arange(len(rows))] = 0.0
        return squared
