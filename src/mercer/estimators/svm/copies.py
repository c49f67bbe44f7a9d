"""Duplicate rows, equal in X and in the target: solved as one row, and separated again in the answer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from mercer._types import CheckedRows, Vector
from mercer.data.distinct import row_keys, same_rows
from mercer.kernels import Kernel
from mercer.kernels.vector.columnwise import White
from mercer.loops.copies import share_in_turn

# Rows with more columns are first compared in this many columns.
_COLUMNS = 16


@dataclass(frozen=True, eq=False)
class Copies:
    """Groups of equal rows: the ``first`` row of each, ascending, (m,), and the group of each row, ``owner`` (n,).

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
        """Find the copies among ``rows`` of ``X`` with these ``targets``; None if there are none.

        If ``kernel`` is None, X is a kernel matrix. There are no copies for a kernel that distinguishes equal rows.
        """
        if kernel is not None and tells_rows_apart(kernel):
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
        """Return values of the rows (..., n), summed over the copies (..., m)."""
        order = np.argsort(self.owner, kind="stable")
        begins = np.flatnonzero(np.diff(self.owner[order], prepend=-1))
        return np.asarray(np.add.reduceat(values[..., order], begins, axis=-1))

    def share(self, weights: Vector, lower: Vector, upper: Vector) -> Vector:
        """Return weights (m,) shared among the copies (n,): the first copies take as much as their bounds allow."""
        shares, most = np.empty(len(self.owner)), np.abs(weights)[self.owner]
        share_in_turn(weights.copy(), self.owner, np.maximum(lower, -most), np.minimum(upper, most), shares)
        return shares


def tells_rows_apart(kernel: Any) -> bool:
    """Whether a row has another kernel value with itself than with an equal row.

    >>> from mercer.kernels import RBF
    >>> tells_rows_apart(RBF(1.0)), tells_rows_apart(RBF(1.0) + White(0.1))
    (False, True)
    """
    return isinstance(kernel, White) or any(tells_rows_apart(child) for _, child in kernel.children())


def _differ(values: np.ndarray) -> bool:
    """Whether no two values are equal."""
    ranked = np.sort(values)
    return not (ranked[1:] == ranked[:-1]).any()


def _sample_keys(X: CheckedRows, rows: NDArray[np.intp], *, symmetric: bool) -> NDArray[np.uint64]:
    """Return keys that are the same for equal rows; those of wide arrays come from a few columns."""
    whole = np.array_equal(rows, np.arange(X.shape[0]))
    wide = isinstance(X, np.ndarray) and X.shape[1] > _COLUMNS
    if not wide:
        return row_keys(X if whole else X[rows])
    columns = np.linspace(0, X.shape[1] - 1, _COLUMNS).astype(np.intp)
    if symmetric:
        # By rows instead, which are contiguous in memory.
        return row_keys((X[columns] if whole else X[np.ix_(columns, rows)]).T)
    return row_keys(X[:, columns] if whole else X[np.ix_(rows, columns)])


def _alike(keys: NDArray[np.uint64], targets: np.ndarray) -> NDArray[np.intp]:
    """Return the rows with the same key and target as another row."""
    order = np.empty(0, np.intp) if _differ(keys) else np.lexsort((targets, keys))
    keys, targets = keys[order], targets[order]
    equal = (keys[1:] == keys[:-1]) & (targets[1:] == targets[:-1])
    return order[np.concatenate([equal, [False]]) | np.concatenate([[False], equal])] if len(order) else order
