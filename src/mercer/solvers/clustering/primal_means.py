"""Means as vectors, where rows have coordinates in feature space."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp

from mercer._types import Positions, Vector
from mercer.engine import tiles
from mercer.loops import kmeans as loops
from mercer.solvers.clustering.bounds import Bounds
from mercer.solvers.clustering.means import SLACK, Assignment, Labels, changes, in_parts, indicator, squares, totals

# Entries of the coordinates that one task takes.
_ENTRIES = 2**20


class Coordinates:
    """Rows of coordinates in float64, taken from an array or a CSR matrix, or computed on demand.

    Parameters
    ----------
    source : ndarray, csr_matrix or callable
        (n, d), or a function from positions of rows to their coordinates.
    shape : tuple of int
        (n, d).
    centre : ndarray of shape (d,), optional
        Taken off every row.
    nbytes : int, default=0
        What the source takes, if it was made for the fit.
    """

    def __init__(self, source: Any, shape: tuple[int, int], centre: Vector | None = None, nbytes: int = 0) -> None:
        self._source, self.shape, self._centre, self.nbytes = source, shape, centre, nbytes

    def take(self, rows: Any) -> Any:
        """Coordinates of rows: a slice, or positions."""
        part = self._source(rows) if callable(self._source) else self._source[rows]
        part = part.astype(np.float64, copy=False)
        return part if self._centre is None else part - self._centre

    def norms(self, n_jobs: int | None = None) -> Vector:
        """Squared norms of all rows."""
        out = np.empty(self.shape[0])

        def work(part: slice) -> None:
            out[part] = squared_norms(self.take(part))

        by_parts(work, self.shape, n_jobs)
        return out


def squared_norms(block: Any) -> Vector:
    """Of the rows of an array or a sparse matrix."""
    if sp.issparse(block):
        return np.asarray(block.multiply(block).sum(axis=1), dtype=np.float64).ravel()
    result: Vector = np.einsum("ij,ij->i", block, block)
    return result


def by_parts(work: Callable[[slice], None], shape: tuple[int, int], n_jobs: int | None) -> None:
    """Call ``work`` on spans of rows of coordinates, on all threads."""
    in_parts(work, shape[0], max(1, _ENTRIES // max(shape[1], 1)), n_jobs)


class PrimalMeans:
    """Sums of the coordinates of the rows of each cluster, and bounds that tell which rows need not be looked at.

    Parameters
    ----------
    coordinates : Coordinates
        (n, d).
    norms : ndarray of shape (n,)
        ``k(x, x)``; larger than the squared norms of coordinates that leave out a part of the feature space.
    weight : ndarray of shape (n,)
    k : int
        Number of clusters.
    n_jobs : int, optional
    """

    def __init__(
        self, coordinates: Coordinates, norms: Vector, weight: Vector, k: int, n_jobs: int | None = None
    ) -> None:
        self.norms, self.rounding = norms, float(np.finfo(np.float64).eps)
        self._coordinates, self._weight, self._k, self._n_jobs = coordinates, weight, k, n_jobs
        self.sums = np.zeros((k, coordinates.shape[1]))
        self.size = self.raw = np.zeros(k)
        self._bounds: Bounds | None = None

    def begin(self, labels: Labels) -> None:
        self.sums = self._sum(np.arange(len(labels)), lambda part: indicator(labels[part], self._weight[part], self._k))
        self.size = totals(labels, self._weight, self._k)
        self.raw = squared_norms(self.sums)
        self._bounds = Bounds(len(labels), self._k)

    def _sum(self, rows: Positions, weights: Callable[[slice], Vector]) -> Vector:
        """``weights' @ coordinates`` of rows, parts added up in order."""
        d = self._coordinates.shape[1]
        step = max(1, _ENTRIES // max(d, 1))
        sums: list[Any] = [None] * len(tiles.spans(len(rows), step))

        def work(part: slice) -> None:
            sums[part.start // step] = np.asarray(weights(part).T @ self._coordinates.take(rows[part]))

        in_parts(work, len(rows), step, self._n_jobs)
        total = np.zeros((self._k, d))
        for partial in sums:
            total += partial
        return total

    def move(self, rows: Positions, before: Labels, labels: Labels) -> float:
        assert self._bounds is not None
        delta = changes(before, labels[rows], self._weight[rows], self._k)
        old, occupied = self.sums / np.where(self.size > 0, self.size, 1.0)[:, None], self.size > 0
        self.size = totals(labels, self._weight, self._k)
        has = self.size > 0
        self.sums = np.where(has[:, None], self.sums + self._sum(rows, lambda part: delta[part]), 0.0)
        self.raw = squared_norms(self.sums)
        new = self.sums / np.where(has, self.size, 1.0)[:, None]
        shifts = np.where(has & occupied, np.sqrt(squared_norms(new - old)), 0.0)
        self._bounds.move(shifts, known=not (has & ~occupied).any())
        return float((shifts**2).sum())

    def nearest(self, labels: Labels, whole: bool) -> Assignment:
        assert self._bounds is not None
        bounds, means, slack = self._bounds, loops.Means(self.size, squares(self)), SLACK * self.rounding
        rows = bounds.undecided(labels, slack * float(np.abs(self.norms).max()), whole, self._n_jobs)
        out = labels.copy()

        def work(part: slice) -> None:
            positions = rows[part]
            norms = self.norms[positions]
            inner = np.ascontiguousarray(np.asarray(self._coordinates.take(positions) @ self.sums.T).T)
            m = len(positions)
            assignment = Assignment(np.empty(m, np.int32), np.empty(m), np.empty(m))
            loops.nearest_sums(inner, norms, means, labels[positions], slack, assignment)
            distances = np.empty((m, self._k))
            loops.all_distances(inner, norms, means, distances)
            out[positions] = assignment.labels
            bounds.keep(positions, distances, assignment)

        by_parts(work, (len(rows), self._coordinates.shape[1]), self._n_jobs)
        return Assignment(out, bounds.squared, bounds.excess)

    def to_rows(self, rows: Positions) -> Vector:
        points = self._coordinates.take(rows)
        points = points.toarray() if sp.issparse(points) else points
        squares = squared_norms(points)
        out = np.empty((self._coordinates.shape[0], len(rows)))

        def work(part: slice) -> None:
            inner = np.asarray(self._coordinates.take(part) @ points.T)
            out[part] = np.maximum(self.norms[part, None] - 2 * inner + squares, 0.0)

        by_parts(work, self._coordinates.shape, self._n_jobs)
        return out
