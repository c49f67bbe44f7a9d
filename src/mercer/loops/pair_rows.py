"""The rows and the matrix of each pair of classes, among those of all classes.

Values of the rows of each pair of classes are held in arrays (k - 1, n) over rows that are sorted by class. Those of
class c against class o are in layer o - 1 if o > c, else in layer o.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mercer._types import Array, Integers, Matrix, Vector
from mercer.loops._jit import jit_in_order
from mercer.loops.newton import MOST_FREE, NewtonRoom
from mercer.loops.picked import PickedRows, has_row

# Vectors of the rows of a pair: gradient, linear part, the four of ``BoxWeights``, diagonal, four of ``StepRoom``.
PARTS = 11


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
    q: int
    """Rows of both."""
    first_layer: int
    second_layer: int


class PairRoom(NamedTuple):
    """Work arrays for the problem of one pair of at most q rows, one more for the offset where that is 0."""

    whole: Matrix
    """(q + 1, q + 1), of which smaller pairs use the first rows and columns."""
    work: Matrix
    """(PARTS, q + 1)"""
    bits: Integers
    """Its integer view."""
    present: NDArray[np.bool_]
    """(q + 1,)"""
    at: Integers
    """(q,)"""
    of_newton: NewtonRoom

    @classmethod
    def of(cls, q: int) -> PairRoom:
        """Make work arrays."""
        work, m = np.empty((PARTS, q + 1)), min(MOST_FREE, q + 1)
        newton = NewtonRoom(np.empty((m + 2, m + 3)), np.empty(m, np.int64), np.empty(m + 2))
        present, at = np.empty(q + 1, np.bool_), np.empty(q, np.int64)
        return cls(np.empty((q + 1, q + 1)), work, work.view(np.int64), present, at, newton)


@jit_in_order
def place_of(classes, i, j):
    """The place of the pair of classes i and j."""
    a, b = classes.size[i], classes.size[j]
    return PairPlace(classes.row[i], classes.row[j], a, a + b, classes.number[j] - 1, classes.number[i])


@jit_in_order
def keep_values(values, place, out):
    for r in range(place.q):
        if r < place.a:
            out[place.first_layer, place.first_row + r] = values[r]
        else:
            out[place.second_layer, place.second_row + r - place.a] = values[r]


@jit_in_order
def begin_pair(strip, classes, j, pad, room):
    """The matrix of the class of a strip and class j: assembled, or with rows to be picked from a whole matrix.

    If it is padded, it has one more row and column, of zeros.
    """
    i, K, at, own = strip
    a, b = classes.size[i], classes.size[j]
    first, second = classes.column[i], classes.column[j]
    q = a + b
    size = q + 1 if pad else q
    whole, present = room.whole, room.present[:size]
    is_whole = at.shape[0] == 0
    for r in range(size):
        present[r] = is_whole
    if not is_whole:
        for r in range(q):
            room.at[r] = at[first + r] if r < a else at[second + r - a]
        return PickedRows(whole, present, K, room.at[:q])
    for r in range(a):
        for c in range(a):
            whole[r, c] = own[classes.own[i] + r * a + c]
        for c in range(b):
            entry = K[r, second + c]
            whole[r, a + c] = entry
            whole[a + c, r] = entry
    for r in range(b):
        for c in range(b):
            whole[a + r, a + c] = own[classes.own[j] + r * b + c]
    if pad:
        for r in range(size):
            whole[r, q] = 0.0
            whole[q, r] = 0.0
    return PickedRows(whole, present, K, room.at[:0])


@jit_in_order
def begin_weights(rows, beta, diagonal):
    """The diagonal of the matrix, and its rows where there are weights; returns the largest entry of the diagonal."""
    whole, present, matrix, at = rows
    largest = 0.0
    for r in range(beta.shape[0]):
        if present[r]:
            diagonal[r] = whole[r, r]
        else:
            diagonal[r] = matrix[at[r], at[r]] if r < at.shape[0] else 0.0
            if beta[r] != 0.0 or r == at.shape[0]:
                has_row(rows, r)
        largest = max(largest, abs(diagonal[r]))
    return largest
