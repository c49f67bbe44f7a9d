"""Means as vectors, where rows have coordinates in feature space."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp

from mercer.engine import threads, tiles
from mercer.solvers.clustering.means import Index, Labels, changes, indicator, totals
from mercer.solvers.matrix import Vector

# Entries of the coordinates that one task takes.
_ENTRIES = 2**20


class Coordinates:
    """Rows of coordinates in float64, taken from an array or a CSR matrix, or made when they are asked for.

    Parameters
    ----------
    source : ndarray, csr_matrix or callable
        (n, d), or a function from positions of rows to their coordinates.
    shape : tuple of int
        (n, d).
    centre : ndarray of shape (d,), optional
        Taken off every row.
    """

    def __init__(self, source: Any, shape: tuple[int, int], centre: Vector | None = None) -> None:
        self._source, self.shape, self._centre = source, shape, centre

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
    """Call ``work`` on spans of rows, on all threads."""
    parts = tiles.spans(shape[0], max(1, _ENTRIES // max(shape[1], 1)))

    def task(part: slice) -> Callable[[], None]:
        def run() -> None:
            threads.checkpoint()
            work(part)

        return run

    threads.run([task(part) for part in parts], n_jobs)


class PrimalMeans:
    """Sums of the coordinates of the rows of each cluster.

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
        self._count = np.zeros(k, np.intp)

    def begin(self, labels: Labels) -> None:
        self.sums = self._sum(np.arange(len(labels)), lambda part: indicator(labels[part], self._weight[part], self._k))
        self.size = totals(labels, self._weight, self._k)
        self._count = np.bincount(labels, minlength=self._k)
        self.raw = squared_norms(self.sums)

    def _sum(self, rows: Index, weights: Callable[[slice], Vector]) -> Vector:
        """``weights' @ coordinates`` of rows, parts added up in order."""
        d = self._coordinates.shape[1]
        parts = tiles.spans(len(rows), max(1, _ENTRIES // max(d, 1)))
        sums: list[Any] = [None] * len(parts)

        def task(number: int) -> Callable[[], None]:
            def run() -> None:
                threads.checkpoint()
                part = parts[number]
                sums[number] = np.asarray(weights(part).T @ self._coordinates.take(rows[part]))

            return run

        threads.run([task(number) for number in range(len(parts))], self._n_jobs)
        total = np.zeros((self._k, d))
        for partial in sums:
            total += partial
        return total

    def move(self, rows: Index, before: Labels, after: Labels) -> Vector:
        weight = self._weight[rows]
        delta = changes(before, after, weight, self._k)
        old = self.sums / np.where(self.size > 0, self.size, 1.0)[:, None]
        self._count = self._count + np.bincount(after, minlength=self._k) - np.bincount(before, minlength=self._k)
        self.size = np.where(self._count > 0, self.size + delta.sum(axis=0), 0.0)
        self.sums = np.where((self._count > 0)[:, None], self.sums + self._sum(rows, lambda part: delta[part]), 0.0)
        self.raw = squared_norms(self.sums)
        new = self.sums / np.where(self.size > 0, self.size, np.inf)[:, None]
        return np.where(self.size > 0, np.sqrt(squared_norms(new - old)), 0.0)

    def refresh(self, rows: Index) -> None:
        """Products are made when they are asked for."""

    def inner(self, rows: Index) -> Vector:
        return np.asarray(self._coordinates.take(rows) @ self.sums.T)

    def to_rows(self, rows: Index) -> Vector:
        chosen = self._coordinates.take(rows)
        chosen = chosen.toarray() if sp.issparse(chosen) else chosen
        squares = squared_norms(chosen)
        out = np.empty((self._coordinates.shape[0], len(rows)))

        def work(part: slice) -> None:
            inner = np.asarray(self._coordinates.take(part) @ chosen.T)
            out[part] = np.maximum(self.norms[part, None] - 2 * inner + squares, 0.0)

        by_parts(work, self._coordinates.shape, self._n_jobs)
        return out
