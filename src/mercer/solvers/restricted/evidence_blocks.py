"""Blocks of rows in which an evidence over landmarks is summed, and what its evaluation stores."""

from __future__ import annotations

# Entries of a block of rows, and its least height.
_ENTRIES, _LEAST_ROWS = 2**21, 256
# Matrices of the landmarks that an evaluation with gradient stores at the same time, and blocks of rows.
_SQUARES, _BLOCKS = 7, 3
# For classes: matrices of the landmarks, of all classes together, blocks of rows, and columns of all rows for each
# class, which are stored at the same time.
_CLASS_SQUARES, _SYSTEMS, _CLASS_BLOCKS, _COLUMNS = 4, 3, 5, 8


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


def class_evidence_bytes(n: int, m: int, classes: int) -> int:
    """What an evaluation with gradient stores for classes, with n rows and m landmarks, in bytes.

    >>> class_evidence_bytes(100_000, 500, 2), class_evidence_bytes(100_000, 500, 3)
    (107880000, 172680000)
    """
    c = 1 if classes == 2 else classes
    pairs = max(c * (c - 1) // 2, 1)
    squares = m * m * (_CLASS_SQUARES + _SYSTEMS * c * c + pairs)
    return 8 * (squares + _CLASS_BLOCKS * m * block_rows(n, m) + n * (_COLUMNS * c + 2))
