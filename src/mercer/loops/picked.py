"""Entries picked from a matrix, and whether all are finite."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mercer._types import Array, Integers
from mercer.loops._jit import jit


class PickedRows(NamedTuple):
    """The matrix of a problem, whose rows are picked from ``matrix[at][:, at]`` when they are first needed."""

    K: Array
    """(q, q)"""
    present: NDArray[np.bool_]
    """(q,): which rows are there."""
    matrix: Array
    at: Integers
    """(q,); empty if nothing can be picked, or of length q - 1 if the last row of ``K`` is of zeros."""


@jit
def pick_entries(matrix, rows, columns, out):
    """``out = matrix[rows][:, columns]`` for positions that are valid and not negative, in the precision of ``out``."""
    for i in range(rows.shape[0]):
        source, target = matrix[rows[i]], out[i]
        for j in range(columns.shape[0]):
            target[j] = source[columns[j]]


@jit
def pick_row(matrix, at, i, row):
    """Row ``i`` of ``matrix[at][:, at]``."""
    source = matrix[at[i]]
    for r in range(at.shape[0]):
        row[r] = source[at[r]]


@jit
def has_row(rows, i):
    """Whether row ``i`` of ``K`` is there, after it was picked if it can be."""
    K, present, matrix, at = rows
    q = at.shape[0]
    if not present[i] and q > 0:
        row = K[i]
        if i < q:
            pick_row(matrix, at, i, row)
        for r in range(q if i < q else 0, present.shape[0]):
            row[r] = 0
        present[i] = True
    return present[i]


@jit
def pick_upper(matrix, at, out):
    """The upper triangle of ``out = matrix[at][:, at]``, with the diagonal; the rest of ``out`` is left alone."""
    for i in range(at.shape[0]):
        source, target = matrix[at[i]], out[i]
        for j in range(i, at.shape[0]):
            target[j] = source[at[j]]


@jit
def is_finite(matrix):
    """Whether no entry is NaN or infinite."""
    astray = matrix.dtype.type(0)
    for i in range(matrix.shape[0]):
        row = matrix[i]
        for j in range(row.shape[0]):
            # Zero times what is not finite is NaN. Unlike a test of each entry, sums are vector code.
            astray += row[j] * matrix.dtype.type(0)
    return astray == 0
