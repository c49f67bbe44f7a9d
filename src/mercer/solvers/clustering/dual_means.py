"""Means as weighted sums of rows in feature space, known by their inner products with the rows."""

from __future__ import annotations

import numpy as np

from mercer.solvers.clustering.entries import Entries
from mercer.solvers.clustering.means import Index, Labels, changes, indicator, totals
from mercer.solvers.matrix import Vector

# In units of rounding, what is added to squared shifts, so that bounds hold.
_SLACK = 16.0


class DualMeans:
    r"""Sums :math:`u_c = \sum_{i \in c} w_i \phi(x_i)` with the products :math:`\langle \phi(x_i), u_c \rangle`.

    When rows move, the products of these rows are brought up to date, which takes entries of K between moved rows
    only and tells how far each mean has moved. The products of any other row wait until somebody asks for them: moves
    of rows that have come back by then never cost anything.

    Parameters
    ----------
    entries : Entries
        Of K.
    norms : ndarray of shape (n,)
        Its diagonal.
    weight : ndarray of shape (n,)
    k : int
        Number of clusters.
    """

    def __init__(self, entries: Entries, norms: Vector, weight: Vector, k: int) -> None:
        self.norms, self.rounding = norms, entries.rounding
        self._entries, self._weight, self._k = entries, weight, k
        self.size = self.raw = np.zeros(k)
        self._products = np.zeros((0, k))
        self._version = np.zeros(0, np.int32)
        self._labels: Labels = np.zeros(0, np.int32)
        self._log: list[tuple[Index, Labels]] = []

    def begin(self, labels: Labels) -> None:
        self._labels = labels.copy()
        self._evaluate()
        self.size = totals(labels, self._weight, self._k)
        own = self._products[np.arange(len(labels)), labels]
        self.raw = totals(labels, self._weight * own, self._k)

    def _evaluate(self) -> None:
        """All products from nothing."""
        self._products = self._entries.product(indicator(self._labels, self._weight, self._k))
        self._version = np.zeros(len(self._labels), np.int32)
        self._log = []

    def move(self, rows: Index, before: Labels, after: Labels) -> Vector:
        weight = self._weight[rows]
        added = self._entries.moves(rows, rows, before, after, weight, self._k)
        delta = changes(before, after, weight, self._k)
        grown = delta.sum(axis=0)
        quadratic = (delta * added).sum(axis=0)
        cross = (delta * self._products[rows]).sum(axis=0)
        size = np.maximum(self.size + grown, 0.0)
        size[np.bincount(after, minlength=self._k) + self._left(rows, before) == 0] = 0.0
        old = np.where(self.size > 0, self.size, 1.0)
        # The new mean less the old one is (change of the sum - grown * old mean) / new size.
        terms = np.array([quadratic, -2 * grown * cross / old, grown**2 * self.raw / old**2])
        squared = terms.sum(axis=0) + _SLACK * self.rounding * np.abs(terms).sum(axis=0)
        far = np.sqrt(np.maximum(squared, 0.0)) / np.where(size > 0, size, np.inf)
        self.raw = np.where(size > 0, self.raw + 2 * cross + quadratic, 0.0)
        self.size = size
        self._products[rows] += added
        self._log.append((rows, before))
        self._labels[rows] = after
        self._version[rows] = len(self._log)
        return far

    def _left(self, rows: Index, before: Labels) -> Index:
        """How many rows of each cluster stay."""
        counts = np.bincount(self._labels, minlength=self._k) - np.bincount(before, minlength=self._k)
        return counts.astype(np.intp)

    def refresh(self, rows: Index) -> None:
        version = self._version[rows]
        stale = rows[version < len(self._log)]
        if not len(stale):
            return
        groups = self._groups(stale)
        if sum(float(len(group)) * len(moved) for group, moved, _ in groups) > self._entries.cost:
            self._evaluate()
            return
        for group, moved, then in groups:
            if len(moved):
                now = self._labels[moved]
                self._products[group] += self._entries.moves(group, moved, then, now, self._weight[moved], self._k)
        self._version[stale] = len(self._log)

    def _groups(self, stale: Index) -> list[tuple[Index, Index, Labels]]:
        """Rows whose products are of the same version, which rows have moved since, and where these were then."""
        order = stale[np.argsort(self._version[stale], kind="stable")]
        versions, starts = np.unique(self._version[order], return_index=True)
        then = self._labels.copy()
        at = len(self._log)
        groups = []
        for version, group in zip(versions[::-1], np.split(order, starts[1:])[::-1], strict=True):
            while at > version:
                at -= 1
                moved, before = self._log[at]
                then[moved] = before
            moved = np.flatnonzero(then != self._labels)
            groups.append((np.sort(group), moved, then[moved]))
        return groups

    def inner(self, rows: Index) -> Vector:
        return self._products[rows]

    def to_rows(self, rows: Index) -> Vector:
        squared = self._entries.columns(rows)
        squared *= -2
        squared += self.norms[:, None]
        squared += self.norms[rows]
        np.maximum(squared, 0.0, out=squared)
        squared[rows, np.arange(len(rows))] = 0.0
        return squared
