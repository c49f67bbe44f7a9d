"""Rows that are equal in X and in the target: solved as one row, and told apart again in the answer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from mercer._types import CheckedRows, Vector
from mercer.estimators.shared.distinct import row_keys, same_rows
from mercer.kernels import Kernel
from mercer.kernels.vector.columnwise import White
from mercer.loops.copies import share_in_turn

# Rows of many columns are first compared in so many of them.
_COLUMNS = 16


@dataclass(frozen=True, eq=False)
class Copies:
    """The ``first`` (m,) of all rows that are equal, ascending, and which of these every row equals: ``owner`` (n,).

    Examples
    --------
    >>> copies = Copies.find(np.array([[1.0], [2.0], [1.0]]), np.arange(3), np.array([0, 1, 0]), None)
    >>> copies.first, copies.owner, copies.summed(np.array([1.0, 1.0, 2.0]))
    (array([0, 1]), array([0, 1, 0]), array([3., 1.]))
    >>> copies.share(np.array([1.5, 0.0]), np.zeros(3), np.array([1.0, 1.0, 2.0]))
    array([1. , 0. , 0.5])
    """

    first: NDArray[np.intp]
    owner: NDArray[np.intp]

    @classmethod
    def find(cls, X: CheckedRows, rows: NDArray[np.intp], targets: np.ndarray, kernel: Kernel | None) -> Self | None:
        """The copies among ``rows`` of ``X``, whose targets are ``targets``; None if there are none.

        ``kernel`` None stands for a kernel matrix X. A kernel that tells equal rows apart has no copies.
        """
        if kernel is not None and _tells_rows_apart(kernel):
            return None
        if kernel is None and _differ(X[rows, 0]):
            return None
        alike = _alike(_sample_keys(X, rows, symmetric=kernel is None and X.shape[0] == X.shape[1]), targets)
        if len(alike):
            keys = row_keys(X[rows[alike]])
            order = np.lexsort((alike, targets[alike], keys))
            alike, keys = alike[order], keys[order]
            equal = (keys[1:] == keys[:-1]) & (targets[alike[1:]] == targets[alike[:-1]])
            at = np.flatnonzero(equal)
            equal[at] = same_rows(X[rows[alike[at]]], X[rows[alike[at + 1]]])
        if not len(alike) or not equal.any():
            return None
        owner = np.arange(len(rows))
        # Where a run of equal rows begins; within a run rows ascend.
        begins = np.maximum.accumulate(np.where(np.concatenate([[True], ~equal]), np.arange(len(alike)), 0))
        owner[alike] = alike[begins]
        first = owner == np.arange(len(rows))
        return cls(np.flatnonzero(first), (np.cumsum(first) - 1)[owner])

    def summed(self, values: np.ndarray) -> Vector:
        """Values of the rows (..., n), added up over the copies (..., m)."""
        order = np.argsort(self.owner, kind="stable")
        begins = np.flatnonzero(np.diff(self.owner[order], prepend=-1))
        return np.asarray(np.add.reduceat(values[..., order], begins, axis=-1))

    def share(self, weights: Vector, lower: Vector, upper: Vector) -> Vector:
        """Weights (m,) shared among the copies (n,): the first ones of each row take the most that their box allows."""
        shares, most = np.empty(len(self.owner)), np.abs(weights)[self.owner]
        share_in_turn(weights.copy(), self.owner, np.maximum(lower, -most), np.minimum(upper, most), shares)
        return shares


def _tells_rows_apart(kernel: Any) -> bool:
    return isinstance(kernel, White) or any(_tells_rows_apart(child) for _, child in kernel.children())


def _differ(values: np.ndarray) -> bool:
    """Whether no two values are equal."""
    ranked = np.sort(values)
    return not (ranked[1:] == ranked[:-1]).any()


def _sample_keys(X: CheckedRows, rows: NDArray[np.intp], *, symmetric: bool) -> NDArray[np.uint64]:
    """Keys that equal rows share; of wide arrays, from a few columns."""
    whole = np.array_equal(rows, np.arange(X.shape[0]))
    wide = isinstance(X, np.ndarray) and X.shape[1] > _COLUMNS
    if not wide:
        return row_keys(X if whole else X[rows])
    columns = np.linspace(0, X.shape[1] - 1, _COLUMNS).astype(np.intp)
    if symmetric:
        # The same as rows, which are read line by line.
        return row_keys((X[columns] if whole else X[np.ix_(columns, rows)]).T)
    return row_keys(X[:, columns] if whole else X[np.ix_(rows, columns)])


def _alike(keys: NDArray[np.uint64], targets: np.ndarray) -> NDArray[np.intp]:
    """Rows that share key and target with another one."""
    order = np.empty(0, np.intp) if _differ(keys) else np.lexsort((targets, keys))
    keys, targets = keys[order], targets[order]
    equal = (keys[1:] == keys[:-1]) & (targets[1:] == targets[:-1])
    return order[np.concatenate([equal, [False]]) | np.concatenate([[False], equal])] if len(order) else order
