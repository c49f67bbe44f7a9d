"""Passes over a tile with one number for each row of either side, symmetric in the two sides to the last bit.

Sums and products are taken in an order that does not depend on which side is the left one.
"""

from mercer.loops._jit import jit_in_order


@jit_in_order
def _scaled(value, one, other):
    """``value * one * other`` without an overflow or underflow on the way, unless the result is one."""
    first = abs(one) < abs(other)
    smaller = one if first else other
    larger = other if first else one
    small = abs(value) < 1.0
    return value * (larger if small else smaller) * (smaller if small else larger)


@jit_in_order
def scale(tile, left, right):
    """``tile_ij * left_i * right_j``, computed in float64."""
    for i in range(tile.shape[0]):
        row = tile[i]
        for j in range(row.shape[0]):
            row[j] = _scaled(float(row[j]), left[i], right[j])


@jit_in_order
def cosines(tile, left, right, rows, columns):
    """Inner products as cosines, from inverse norms; 1 where a row (by number) meets itself and its norm is not 0."""
    for i in range(tile.shape[0]):
        row = tile[i]
        itself = rows[i] if left[i] > 0 else -1
        for j in range(row.shape[0]):
            cosine = _scaled(float(row[j]), left[i], right[j])
            row[j] = 1.0 if columns[j] == itself else cosine


@jit_in_order
def center(tile, left, right, grand):
    """``tile_ij - left_i - right_j + grand``, computed in float64."""
    for i in range(tile.shape[0]):
        row = tile[i]
        for j in range(row.shape[0]):
            row[j] = row[j] - (left[i] + right[j]) + grand
