"""The rows and the matrix of each pair of classes, among those of all classes.

Values of the rows of each pair of classes are held in arrays (k - 1, n) over rows that are sorted by class. Those of
class c against class o are in layer o - 1 if o > c, else in layer o.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from mercer._types import Array, Integers, Vector
from mercer.loops._jit import jit_in_order
from mercer.loops.picked import PickedRows


class Strip(NamedTuple):
    """The kernel matrix of a class and all later ones, in float64.

    Where ``at`` is not empty, ``K`` is a whole matrix instead, and the columns of the strip are at these positions of
    it. Few rows of a pair ever have a weight: only these are picked from it, and ``own`` is not read.
    """

    first: int
    """The class, by its position among those of ``ClassRows``."""
    K: Array
    """(rows of the class, columns)"""
    at: Integers
    own: Vector
    """The blocks of the classes with themselves, one behind the other."""


class ClassRows(NamedTuple):
    """Where the classes are, (c,) each."""

    number: Integers
    """Of each class among all, also of those that are not in tiny pairs."""
    size: Integers
    row: Integers
    """The first one among all rows."""
    column: Integers
    """The first one of the strip."""
    own: Integers
    """The first entry of ``Strip.own``."""


class PairPlace(NamedTuple):
    """Where values of the rows of a pair are in an array of all pairs."""

    first_row: int
    second_row: int
    a: int
    """Rows of the first class."""
    first_layer: int
    second_layer: int


@jit_in_order
def _copy_block(source, size, width, target, row, column):
    """``target[row:, column:]`` from a flat matrix of ``width`` columns."""
    for r in range(size):
        for c in range(width):
            target[row + r, column + c] = source[r * width + c]


@jit_in_order
def _assemble(K, own_first, own_second, a, b, pad, whole):
    """The matrix of a pair, with a row and a column of zeros if it is padded."""
    q = a + b
    _copy_block(own_first, a, a, whole, 0, 0)
    _copy_block(own_second, b, b, whole, a, a)
    for r in range(a):
        for c in range(b):
            whole[r, a + c] = K[r, c]
            whole[a + c, r] = K[r, c]
    if pad:
        for r in range(q + 1):
            whole[r, q] = 0.0
            whole[q, r] = 0.0


@jit_in_order
def place_of(classes, i, j):
    """The place of the pair of classes i and j."""
    return PairPlace(classes.row[i], classes.row[j], classes.size[i], classes.number[j] - 1, classes.number[i])


@jit_in_order
def keep_values(values, place, out):
    first_row, second_row, a, first_layer, second_layer = place
    for r in range(values.shape[0]):
        if r < a:
            out[first_layer, first_row + r] = values[r]
        else:
            out[second_layer, second_row + r - a] = values[r]


@jit_in_order
def begin_pair(strip, classes, j, pad, whole, present):
    """The matrix of class j and the class of a strip: assembled, or with rows to be picked from a whole matrix."""
    i, K, at, own = strip
    a, b = classes.size[i], classes.size[j]
    first, second = classes.column[i], classes.column[j]
    is_whole = at.shape[0] == 0
    for r in range(present.shape[0]):
        present[r] = is_whole
    where = np.empty(0 if is_whole else a + b, np.int64)
    if not is_whole:
        for r in range(a + b):
            where[r] = at[first + r] if r < a else at[second + r - a]
    else:
        own_first, own_second = classes.own[i], classes.own[j]
        _assemble(
            K[:, second : second + b],
            own[own_first : own_first + a * a],
            own[own_second : own_second + b * b],
            a,
            b,
            pad,
            whole,
        )
    return PickedRows(whole, present, K, where)
