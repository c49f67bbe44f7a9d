"""Angles between rows of unit length."""

import math

from mercer.loops._jit import jit

# Nearer to 0 or pi than this, the arc cosine has lost six bits; it loses half of the digits at the ends.
NEAR = 0.015


@jit
def repair_angles(tile, A, B, rows, columns):
    """Compute again the angles near 0 and pi, from the lengths of differences and sums of unit rows ``A`` and ``B``.

    A row meets itself where ``rows_i`` equals ``columns_j``. Without columns only these angles are set.
    """
    zero = tile.dtype.type(0)
    far = math.pi - NEAR
    for i in range(tile.shape[0]):
        row = tile[i]
        for j in range(row.shape[0]):
            if rows[i] == columns[j]:
                row[j] = zero
            elif A.shape[1] > 0 and (row[j] < NEAR or row[j] > far):
                sign = 1.0 if row[j] < NEAR else -1.0
                total = 0.0
                for c in range(A.shape[1]):
                    difference = A[i, c] - sign * B[j, c]
                    total += difference * difference
                small = 2.0 * math.asin(min(0.5 * math.sqrt(total), 1.0))
                row[j] = small if sign > 0 else math.pi - small
