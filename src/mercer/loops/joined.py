"""One-vs-one problems whose matrix is joined row by row, as steps ask for rows.

Rows come from the blocks of the classes, or are picked from a matrix of all rows.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mercer._types import Array
from mercer.loops._jit import jit
from mercer.loops.box import set_masks
from mercer.loops.picked import PickedRows, has_row
from mercer.loops.smo import Groups, StepLimits, smo_steps

# Steps for each row after which the problem is left to methods that do more than steps.
_ROUND = 4


class ClassBlocks(NamedTuple):
    """The kernel matrix of two classes, ``[[own_first, cross], [cross.T, own_second]]``."""

    own_first: Array
    """(a, a)"""
    own_second: Array
    """(b, b)"""
    cross: Array
    """(a, b)"""


class KeptRows(NamedTuple):
    """The rows of the matrix of the problem that are there."""

    K: Array
    """(q, q)"""
    present: NDArray[np.bool_]
    """(q,): which rows are there."""


@jit
def _join_row(blocks, i, row):
    """Row ``i`` of the matrix of two classes."""
    own_first, own_second, cross = blocks
    a = cross.shape[0]
    if i < a:
        for r in range(a):
            row[r] = own_first[i, r]
        for r in range(cross.shape[1]):
            row[a + r] = cross[i, r]
        return
    for r in range(a):
        row[r] = cross[r, i - a]
    for r in range(cross.shape[1]):
        row[a + r] = own_second[i - a, r]


@jit
def solve_joined(blocks, store, work, room, weights, tol):
    """C-SVC of two classes from ``beta``, in place, on blocks of the kernel matrix in float32; returns the steps.

    ``work`` (2, q) begins with the gradient, and ``room`` is that of steps. A step needs two rows of K, and few rows
    have a weight that ever moves: most rows are never joined.
    """
    own_first, own_second, cross = blocks
    K, present = store
    a, q = cross.shape[0], K.shape[0]
    F, diagonal = work[0], work[1]
    rows = PickedRows(K, present, K, np.empty(0, np.int64))
    for r in range(q):
        diagonal[r] = own_first[r, r] if r < a else own_second[r - a, r - a]
    least = np.float64(np.finfo(np.float32).eps)
    set_masks(weights, room.rise, room.fall)
    total, missing = 0, 0
    while missing >= 0 and total < _ROUND * q:
        limits = StepLimits(tol, least, _ROUND * q - total)
        steps, _, missing = smo_steps(rows, diagonal, F, weights, Groups((0,), (q,), (0,)), room, limits)
        total += steps
        if missing >= 0:
            _join_row(blocks, missing, K[missing])
            present[missing] = True
    return total


@jit
def pick_rows(rows, index):
    """Pick the rows ``index``, as far as they are not there."""
    for i in index:
        has_row(rows, i)


@jit
def solve_picked(rows, work, room, weights, tol):
    """The same as :func:`solve_joined` in float64, on rows that are picked from a matrix."""
    matrix, at = rows.matrix, rows.at
    q = at.shape[0]
    F, diagonal = work[0], work[1]
    for r in range(q):
        diagonal[r] = matrix[at[r], at[r]]
    least = np.float64(np.finfo(np.float64).eps)
    set_masks(weights, room.rise, room.fall)
    limits = StepLimits(tol, least, _ROUND * q)
    steps, _, _ = smo_steps(rows, diagonal, F, weights, Groups((0,), (q,), (0,)), room, limits)
    return steps
