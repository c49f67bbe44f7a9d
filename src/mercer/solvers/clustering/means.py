"""The means of clusters in feature space: what changes when rows go from one to another."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from mercer._types import Positions, Vector
from mercer.engine import threads, tiles

Labels = NDArray[np.int32]


class Assignment(NamedTuple):
    """The nearest means.

    Attributes
    ----------
    labels : ndarray of int of shape (n,)
        A row stays with its own mean where no other is nearer beyond rounding.
    squared : ndarray of shape (n,)
        Squared distances from these means; only of rows that were looked at.
    excess : ndarray of shape (n,)
        By how much the squared distance from the own mean is larger than the smallest; only of rows looked at.
    """

    labels: Labels
    squared: Vector
    excess: Vector


class Means(Protocol):
    """Sums of the rows of each cluster; the mean of cluster c is its sum divided by ``size[c]``.

    Attributes
    ----------
    norms : ndarray of shape (n,)
        ``k(x, x)`` of the rows.
    size : ndarray of shape (k,)
        Weight of the clusters.
    raw : ndarray of shape (k,)
        Squared norms of the sums.
    rounding : float
        Units of rounding of what is evaluated.
    """

    norms: Vector
    size: Vector
    raw: Vector
    rounding: float

    def begin(self, labels: Labels) -> None:
        """Take the means of a partition."""
        ...

    def move(self, rows: Positions, before: Labels, labels: Labels) -> float:
        """Let rows go from where they were to their ``labels``, (n,); the squared shifts of the means, added up."""
        ...

    def nearest(self, labels: Labels, whole: bool) -> Assignment:
        """The nearest mean of every row, for a partition whose means these are."""
        ...

    def to_rows(self, rows: Positions) -> Vector:
        """Squared distances of all rows from some, (n, len(rows))."""
        ...


def squares(means: Means) -> Vector:
    """Squared norms of the means; 0 for a cluster without weight."""
    return np.divide(means.raw, means.size**2, out=np.zeros_like(means.raw), where=means.size > 0)


def inertia(means: Means, weight: Vector) -> float:
    """The weighted sum of squared distances of the rows from the means of their clusters."""
    parts = np.divide(means.raw, means.size, out=np.zeros_like(means.raw), where=means.size > 0)
    # Not by BLAS, which would share so little work among threads, and wait for them.
    return float(np.einsum("i,i->", weight, means.norms) - parts.sum())


# In units of rounding: differences of squared distances that say nothing.
SLACK = 16.0
ROWS = 4096


def in_parts(work: Callable[[slice], None], n: int, step: int, n_jobs: int | None) -> None:
    """Call ``work`` on spans of rows, on all threads."""

    def task(part: slice) -> Callable[[], None]:
        def run() -> None:
            threads.checkpoint()
            work(part)

        return run

    threads.run([task(part) for part in tiles.spans(n, step)], n_jobs)


def totals(labels: Labels, values: Vector, k: int) -> Vector:
    """Sums of the values of each cluster.

    >>> totals(np.array([1, 0, 1], dtype=np.int32), np.array([1.0, 2.0, 3.0]), 2).tolist()
    [2.0, 4.0]
    """
    return np.bincount(labels, weights=values, minlength=k).astype(np.float64)


def indicator(labels: Labels, weight: Vector, k: int) -> Vector:
    """The weights of the rows in the columns of their clusters, (n, k).

    >>> indicator(np.array([1, 0], dtype=np.int32), np.array([2.0, 3.0]), 2).tolist()
    [[0.0, 2.0], [3.0, 0.0]]
    """
    table = np.zeros((len(labels), k))
    table[np.arange(len(labels)), labels] = weight
    return table


def changes(before: Labels, after: Labels, weight: Vector, k: int) -> Vector:
    """What moves add to the weights of rows in clusters, (m, k).

    >>> changes(np.array([0]), np.array([1]), np.array([2.0]), 2).tolist()
    [[-2.0, 2.0]]
    """
    return indicator(after, weight, k) - indicator(before, weight, k)
