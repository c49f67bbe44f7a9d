"""Blocks of rows in which an evidence over landmarks is summed, and what its evaluation stores."""

from __future__ import annotations

# Entries of a block of rows, and its least height.
_ENTRIES, _LEAST_ROWS = 2**21, 256
# Matrices of the landmarks that an evaluation with gradient stores at the same time, and blocks of rows.
_SQUARES, _BLOCKS = 7, 3


def block_rows(n: int, m: int) -> int:
    """Return the rows of a block.

    >>> block_rows(100_000, 1000), block_rows(100, 10)
    (2097, 100)
    """
    return min(n, max(_LEAST_ROWS, _ENTRIES // max(m, 1)))


def evaluation_bytes(n: int, m: int) -> int:
    """What an evaluation with gradient stores for n rows and m landmarks, in bytes.

    >>> evaluation_bytes(100_000, 100)
    50890400
    """
    return 8 * m * (_SQUARES * m + _BLOCKS * block_rows(n, m))
