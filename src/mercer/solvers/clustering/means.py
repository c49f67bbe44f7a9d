"""The means of clusters in feature space: what changes when rows go from one to another."""

from __future__ import annotations

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from mercer.solvers.matrix import Vector

Labels = NDArray[np.int32]
Index = NDArray[np.intp]


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

    def move(self, rows: Index, before: Labels, after: Labels) -> Vector:
        """Let rows go to other clusters; how far each mean has moved."""
        ...

    def refresh(self, rows: Index) -> None:
        """Make sure that :meth:`inner` can be asked for these rows."""
        ...

    def inner(self, rows: Index) -> Vector:
        """Inner products of rows and sums, (len(rows), k); called from any thread."""
        ...

    def to_rows(self, rows: Index) -> Vector:
        """Squared distances of all rows from some, (n, len(rows))."""
        ...


def squares(means: Means) -> Vector:
    """Squared norms of the means; 0 for a cluster without weight."""
    return np.divide(means.raw, means.size**2, out=np.zeros_like(means.raw), where=means.size > 0)


def inertia(means: Means, weight: Vector) -> float:
    """The weighted sum of squared distances of the rows from the means of their clusters."""
    parts = np.divide(means.raw, means.size, out=np.zeros_like(means.raw), where=means.size > 0)
    return float(weight @ means.norms - parts.sum())


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
