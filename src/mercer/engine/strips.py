"""Passes over the rows of a lazy matrix that use each of its entries twice: for ``K V`` and for ``K^T U``."""

from __future__ import annotations

from collections.abc import Callable
from typing import cast

import numpy as np

from mercer._types import Array, Matrix, Vector
from mercer.engine import threads
from mercer.engine.progress import Progress
from mercer.engine.tiles import TILE, Fill, scratch, spans

# Of a strip's values and its answers: what multiplies K^T, and numbers to add up.
Visit = Callable[[slice, Matrix], tuple[Matrix, Vector]]

# The bytes of a strip: it is read again while it is in a cache, and evaluating fewer entries at once takes longer for
# the calls than for the entries, while other threads wait.
_BYTES = 2**23
_LEAST_ROWS = 64
# Each group of strips has its own sums; a fixed number keeps their order, and serves as many threads.
_GROUPS = 64
_PARTIAL_BYTES = 2**27


class FirstRows:
    """A lazy matrix whose first rows stay in memory: the first pass evaluates them, and later ones read them.

    Parameters
    ----------
    fill : callable
        ``(rows, columns, out)`` writes a tile of K.
    values : ndarray of shape (s, m)
        Memory for the first s rows.

    Examples
    --------
    >>> seen = []
    >>> def fill(rows, columns, out):
    ...     seen.append(rows)
    ...     out[...] = rows.start
    >>> first = FirstRows(fill, np.empty((4, 2)))
    >>> for rows in (slice(0, 4), slice(4, 8), slice(0, 4), slice(4, 8)):
    ...     tile = first.tile(rows, slice(0, 2), np.empty((4, 2)))
    >>> seen
    [slice(0, 4, None), slice(4, 8, None), slice(4, 8, None)]
    """

    def __init__(self, fill: Fill, values: Array) -> None:
        self.fill, self.values = fill, values
        self._written: set[tuple[int, int]] = set()

    def tile(self, rows: slice, columns: slice, spare: Array) -> Array:
        """The values of a tile, in the memory for them or, for other rows, in ``spare``."""
        if rows.stop > len(self.values):
            self.fill(rows, columns, spare)
            return spare
        values = self.values[rows, columns]
        if (rows.start, columns.start) not in self._written:
            if values.flags.c_contiguous:
                self.fill(rows, columns, values)
            else:
                # Each pass over rows that lie apart is slow.
                self.fill(rows, columns, spare)
                values[...] = spare
            self._written.add((rows.start, columns.start))
        return values


def entries_at_once(dtype: np.dtype) -> int:
    """Return the entries of a strip, in a precision.

    >>> entries_at_once(np.dtype(np.float32))
    2097152
    """
    return _BYTES // dtype.itemsize


def group_count(strips: int, numbers: int) -> int:
    """Return the number of groups of so many strips, each with so many sums of its own.

    >>> group_count(1000, 2000), group_count(3, 2000)
    (64, 3)
    """
    return max(1, min(_GROUPS, strips, _PARTIAL_BYTES // (8 * max(numbers, 1))))


def sweep(
    entries: Fill | FirstRows | Array,
    shape: tuple[int, int],
    dtype: np.dtype,
    V: Matrix,
    visit: Visit,
    widths: tuple[int, int],
    n_jobs: int | None = None,
) -> tuple[Matrix, Vector]:
    """Return ``K^T U`` and sums, with ``U, numbers = visit(rows, K[rows] @ V)`` for strips of rows.

    The matrix is evaluated once and never stored, except for :class:`FirstRows`. Sums over tiles are in float64 and in
    an order that depends on the shape alone.

    Parameters
    ----------
    entries : callable, FirstRows or ndarray of shape (n, m)
        ``(rows, columns, out)`` writes a tile of K; or all of K in that precision, which is read in place.
    shape : tuple of int
        (n, m).
    dtype : dtype
        Of the tiles.
    V : ndarray of shape (m, k)
    visit : callable
        From a slice of rows and ``K[rows] @ V``, (rows, k), in float64; it is called from any thread.
    widths : tuple of int
        Columns of U, and how many numbers are summed.
    n_jobs : int, optional

    Returns
    -------
    KU : ndarray of shape (m, columns of U)
    sums : ndarray of shape (numbers,)

    Examples
    --------
    >>> K, y = np.arange(6.0).reshape(3, 2), np.ones((3, 1))
    >>> def fill(rows, columns, out):
    ...     out[...] = K[rows, columns]
    >>> def visit(rows, F):
    ...     return y[rows] - F, np.array([((y[rows] - F) ** 2).sum()])
    >>> KU, sums = sweep(fill, K.shape, K.dtype, np.ones((2, 1)), visit, (1, 1))
    >>> KU.ravel().tolist(), sums.tolist()
    ([-40.0, -52.0], [80.0])
    """
    n, m = shape
    columns_of_U, numbers = widths
    V = np.ascontiguousarray(V, dtype=dtype)
    at_once = entries_at_once(dtype)
    strips = spans(n, max(_LEAST_ROWS, min(TILE, at_once // max(m, 1))))
    groups = group_count(len(strips), m * columns_of_U)
    # U^T K takes 30 to 50 % less time than K^T U, which has rows of few entries.
    products, sums = np.zeros((groups, columns_of_U, m)), np.zeros((groups, numbers))
    progress = Progress(len(strips), "kernel pass")
    is_stored = isinstance(entries, np.ndarray)
    blocks = [slice(0, m)] if is_stored else spans(m, at_once // _LEAST_ROWS)

    def strip(rows: slice, store: Array, values: Array, group: int) -> None:
        """One strip, in blocks of columns where a strip of few rows is long."""
        values[...] = 0.0
        parts, start = [], 0
        for columns in blocks:
            if isinstance(entries, np.ndarray):
                tile = entries[rows, columns]
            else:
                size = (rows.stop - rows.start) * (columns.stop - columns.start)
                tile = store[start : start + size].reshape(rows.stop - rows.start, -1)
                start += size
                if isinstance(entries, FirstRows):
                    tile = entries.tile(rows, columns, tile)
                else:
                    entries(rows, columns, tile)
            values += tile @ V[columns]
            parts.append(tile)
        U, strip_sums = visit(rows, cast(Matrix, values))
        sums[group] += strip_sums
        size = _size(U, dtype)
        transposed = np.ascontiguousarray(U.T / size, dtype=dtype)
        for columns, tile in zip(blocks, parts, strict=True):
            products[group, :, columns] += size * (transposed @ tile)

    def work(group: int) -> Callable[[], None]:
        def run() -> None:
            height = strips[0].stop
            room = 0 if is_stored else height * m
            with scratch((room,), dtype) as store, scratch((height, V.shape[1]), np.dtype(float)) as values:
                for rows in strips[group::groups]:
                    threads.checkpoint()
                    strip(rows, store, values[: rows.stop - rows.start], group)
                    progress.advance()

        return run

    threads.run([work(group) for group in range(groups)], n_jobs)
    return np.ascontiguousarray(products.sum(axis=0).T), sums.sum(axis=0)


def _size(U: Matrix, dtype: np.dtype) -> np.float64:
    """What U is divided by, to be in the range of float32 and to be rounded alike in all units; 1 in float64."""
    if dtype == np.float64:
        return np.float64(1.0)
    size = np.abs(U).max(initial=0.0)
    return np.float64(size if 0 < size < np.inf else 1.0)
