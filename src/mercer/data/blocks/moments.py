"""Means, standard deviations and label counts of rows, whose bits do not depend on how the rows are cut."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from mercer._types import AnyArray, Matrix, Vector
from mercer.data.blocks.block import Block, Cutter

# Rows that are summed at a time; the strips are the same for blocks of any size. Each costs time in proportion to the
# number of columns, of which sparse rows have many.
_STRIP, _SPARSE_STRIP = 1024, 16384
# With more different labels, a target is not one of classes.
_MOST_LABELS = 1000


class Moments:
    r"""Weighted mean and deviation of columns, merged strip by strip.

    For parts a and b with weights W, means μ and sums of squared deviations S (Chan, Golub and LeVeque, 1983):
    :math:`\mu = \mu_a + \delta W_b / W` and :math:`S = S_a + S_b + \delta^2 W_a W_b / W`, where
    :math:`\delta = \mu_b - \mu_a`.

    >>> moments = Moments()
    >>> moments.add(np.array([[1.0], [3.0]]), np.ones(2)); moments.add(np.array([[8.0]]), np.ones(1))
    >>> moments.mean.item(), (moments.deviation**2).round(6).item()
    (4.0, 8.666667)
    """

    def __init__(self) -> None:
        self.weight = 0.0
        self.mean: Vector = np.zeros(0)
        self._squares: Vector = np.zeros(0)

    def add(self, X: Any, weights: Vector) -> None:
        """Add rows (r, d), an array or CSR, with their weights (r,)."""
        added = float(weights.sum())
        if added == 0.0:
            return
        mean, squares = _sparse_moments(X, weights, added) if sp.issparse(X) else _dense_moments(X, weights, added)
        if self.weight == 0.0:
            self.weight, self.mean, self._squares = added, mean, squares
            return
        whole = self.weight + added
        difference = mean - self.mean
        self.mean = self.mean + difference * (added / whole)
        self._squares = self._squares + squares + difference**2 * (self.weight * (added / whole))
        self.weight = whole

    @property
    def deviation(self) -> Vector:
        """Standard deviations, with the sum of the weights as divisor."""
        return np.sqrt(self._squares / self.weight)


class Labels:
    """The different values of a target, and the sum of the weights of each."""

    def __init__(self) -> None:
        self._weights: dict[Any, float] | None = {}

    def add(self, y: AnyArray, weights: Vector) -> None:
        """Add targets (r,); numbers with fractions are not labels."""
        if self._weights is None or (y.dtype.kind == "f" and (y != np.round(y)).any()):
            self._weights = None
            return
        different, place = np.unique(y, return_inverse=True)
        for label, weight in zip(different.tolist(), np.bincount(place, weights).tolist(), strict=True):
            self._weights[label] = self._weights.get(label, 0.0) + weight
        if len(self._weights) > _MOST_LABELS:
            self._weights = None

    def result(self, dtype: np.dtype) -> tuple[AnyArray | None, Vector | None]:
        """The labels in ascending order and their weights; None if the target is not one of classes."""
        if not self._weights:
            return None, None
        labels = sorted(self._weights)
        return np.array(labels, dtype=dtype), np.array([self._weights[label] for label in labels])


class Statistics:
    """Moments of X and y, and labels, of rows in blocks of any size."""

    def __init__(self, sparse: bool = False) -> None:
        self.X, self.y, self.labels = Moments(), Moments(), Labels()
        self._strips = Cutter(_SPARSE_STRIP if sparse else _STRIP)
        self._dtype: np.dtype | None = None

    def add(self, block: Block) -> None:
        """Add the rows of a block."""
        for strip, _ in self._strips.push(block):
            self._add(strip)

    def finish(self) -> None:
        """Add the last rows, which fill no strip."""
        for strip, _ in self._strips.rest():
            self._add(strip)

    def classes(self) -> tuple[AnyArray | None, Vector | None]:
        """The labels and their weights; None if the target is not one of classes."""
        return (None, None) if self._dtype is None else self.labels.result(self._dtype)

    def _add(self, strip: Block) -> None:
        weights = np.ones(strip.rows) if strip.sample_weight is None else strip.sample_weight
        self.X.add(strip.X, weights)
        if strip.y is None:
            return
        if strip.y.ndim == 1:
            self._dtype = strip.y.dtype
            counted = weights > 0
            self.labels.add(strip.y[counted], weights[counted])
        if strip.y.dtype.kind != "O":
            self.y.add(strip.y.reshape(strip.rows, -1).astype(np.float64), weights)


def _dense_moments(X: Matrix, weights: Vector, total: float) -> tuple[Vector, Vector]:
    X = X.astype(np.float64, copy=False)
    mean = (weights[:, None] * X).sum(axis=0) / total
    return mean, (weights[:, None] * (X - mean) ** 2).sum(axis=0)


def _sparse_moments(X: Any, weights: Vector, total: float) -> tuple[Vector, Vector]:
    """As of a dense array; the entries that are not stored are zeros."""
    d, of_entry = X.shape[1], np.repeat(weights, np.diff(X.indptr))
    data = X.data.astype(np.float64, copy=False)
    mean = np.bincount(X.indices, of_entry * data, d) / total
    stored = np.bincount(X.indices, of_entry, d)
    squares = np.bincount(X.indices, of_entry * (data - mean[X.indices]) ** 2, d)
    return mean, squares + np.maximum(total - stored, 0.0) * mean**2
