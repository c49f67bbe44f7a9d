"""Split a matrix into tiles that fit in the cache, and visit them so that sums always have the same order.

A visitor is called as ``visit(rows, columns, out)`` with two slices and a tile to fill. Every result is a sum over
tiles in a fixed order, and no two workers write to the same entries, so the bits do not depend on the number of
threads.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Hashable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mercer._types import Array
from mercer.engine import arrays, threads
from mercer.engine.progress import Progress
from mercer.loops.transpose import transpose

# 512 x 512 in float32 is 1 MiB, the L2 cache of a core; the fastest of the sides 128 to 2048 in both precisions.
TILE = 512
# With fewer rows than _FEW, tiles are wider; with fewer columns than _FEW_COLUMNS, up to _TALLEST times taller.
_FEW, _FEW_COLUMNS, _TALLEST = 128, 256, 8
# Sums over one triangle of more rows than the first and fewer than the second are over tiles of half the side: of
# 1000 rows, two tiles of three would be one thread's. Filling a matrix gains as often as it loses.
_FEW_SYMMETRIC, _MANY_SYMMETRIC = TILE * 3 // 4, 4 * TILE
# Entries of a strip that is copied in one go: a few milliseconds.
_STRIP_ENTRIES = 2**20

Fill = Callable[[slice, slice, Array], None]

_scratch = threading.local()


def spans(n: int, step: int = TILE) -> list[slice]:
    """Return slices of at most ``step`` that cover ``range(n)``.

    >>> spans(5, 2)
    [slice(0, 2, None), slice(2, 4, None), slice(4, 5, None)]
    """
    return [slice(start, min(start + step, n)) for start in range(0, n, step)]


def scratch_tile(slot: Hashable, shape: tuple[int, ...], dtype: np.dtype) -> Array:
    """Return a contiguous work array of this thread; the same ``slot`` returns the same memory."""
    store = _scratch.__dict__.setdefault("store", {})
    size = math.prod(shape)
    buffer = store.get((slot, dtype))
    if buffer is None or buffer.size < size:
        buffer = store[slot, dtype] = np.empty(max(size, TILE * TILE), dtype)
    return buffer[:size].reshape(shape)


@contextmanager
def scratch(shape: tuple[int, ...], dtype: np.dtype) -> Iterator[Array]:
    """Provide a work array for the block; nested blocks, also in nested calls, get other arrays."""
    depth = getattr(_scratch, "depth", 0)
    _scratch.depth = depth + 1
    try:
        yield scratch_tile(("depth", depth), shape, dtype)
    finally:
        _scratch.depth = depth


def borrow(shape: tuple[int, ...], dtype: np.dtype) -> Array:
    """Return a contiguous work array of this thread for use until :func:`give_back`."""
    free = _scratch.__dict__.setdefault("free", {}).setdefault(dtype, [])
    size = math.prod(shape)
    buffer = free.pop() if free and size <= TILE * TILE else np.empty(max(size, TILE * TILE), dtype)
    return buffer[:size].reshape(shape)


def give_back(array: Array) -> None:
    """Return a borrowed array to this thread."""
    buffer = array.base
    if isinstance(buffer, np.ndarray) and buffer.size == TILE * TILE:
        _scratch.__dict__.setdefault("free", {}).setdefault(buffer.dtype, []).append(buffer)


def dense(fill: Fill, out: Array, symmetric: bool, n_jobs: int | None, side: int = TILE) -> None:
    """Write the whole matrix into ``out``; half of a symmetric one is computed and mirrored."""
    n, m = out.shape
    if side == TILE and 0 < n <= TILE and not symmetric:
        _few_rows(fill, out, n_jobs)
        return
    progress = Progress(len(spans(n, side)), "Gram matrix")

    def strip(rows: slice) -> Callable[[], None]:
        def work() -> None:
            for columns in spans(m, side):
                if symmetric and columns.start < rows.start:
                    continue
                threads.checkpoint()
                _fill_into(fill, rows, columns, out, mirror=symmetric and columns.start > rows.start)
            progress.advance()

        return work

    threads.run([strip(rows) for rows in spans(n, side)], n_jobs)


def _few_rows(fill: Fill, out: Array, n_jobs: int | None) -> None:
    """Fill one strip of few rows, by tiles that are wider the fewer rows there are, each a task."""
    n, m = out.shape

    def tile(columns: slice) -> Callable[[], None]:
        return lambda: _fill_into(fill, slice(0, n), columns, out, mirror=False)

    step = TILE * max(1, _FEW // n)
    threads.run([tile(columns) for columns in spans(m, step)], n_jobs)


def _fill_into(fill: Fill, rows: slice, columns: slice, out: Array, mirror: bool) -> None:
    """Fill a contiguous tile in the cache, then store it, because each pass over a strided target is slow."""
    target = out[rows, columns]
    if target.flags.c_contiguous and not mirror:
        fill(rows, columns, target)
        return
    with scratch((rows.stop - rows.start, columns.stop - columns.start), out.dtype) as tile:
        fill(rows, columns, tile)
        target[...] = tile
        if mirror:
            transpose(tile, out[columns, rows])


def converted(matrix: Array, dtype: np.dtype, n_jobs: int | None = None) -> NDArray[Any]:
    """Return a C-ordered copy in another precision; entries out of its range become infinite.

    The copy is made by strips on all threads, because first access to new memory can take seconds on shared machines.
    Ctrl-C works between two strips.

    >>> converted(np.array([[1.0, 1e300]]), np.dtype(np.float32)).tolist()
    [[1.0, inf]]
    """
    out = arrays.empty(matrix.shape, dtype)

    def strip(rows: slice) -> Callable[[], None]:
        def work() -> None:
            # Each thread has its own error state.
            with np.errstate(over="ignore"):
                out[rows] = matrix[rows]

        return work

    threads.run([strip(rows) for rows in spans(len(matrix), max(_STRIP_ENTRIES // max(matrix.shape[1], 1), 1))], n_jobs)
    return out


def product(
    fill: Fill, shape: tuple[int, int], dtype: np.dtype, V: Array, symmetric: bool, n_jobs: int | None, side: int = TILE
) -> Array:
    """Return ``K @ V`` for ``V`` (m, k), with the tiles of K in the cache and sums over tiles in float64."""
    if symmetric and shape[0] > side:

        @contextmanager
        def evaluated(rows: slice, columns: slice) -> Iterator[Array]:
            with scratch((rows.stop - rows.start, columns.stop - columns.start), dtype) as tile:
                fill(rows, columns, tile)
                yield tile

        return symmetric_product(evaluated, spans(shape[0], side), V, n_jobs)
    out = np.zeros((shape[0], V.shape[1]))
    # With few columns, a tile has more rows.
    few = min(_FEW_COLUMNS // max(shape[1], 1), _TALLEST) if side == TILE else 1
    strips = spans(shape[0], side * max(1, few))
    progress = Progress(len(strips), "kernel product")

    def strip(rows: slice) -> Callable[[], None]:
        def work() -> None:
            for columns in spans(shape[1], side):
                threads.checkpoint()
                with scratch((rows.stop - rows.start, columns.stop - columns.start), dtype) as tile:
                    fill(rows, columns, tile)
                    out[rows] += tile @ V[columns]
            progress.advance()

        return work

    threads.run([strip(rows) for rows in strips], n_jobs)
    return out


def symmetric_product(
    tile_at: Callable[[slice, slice], AbstractContextManager[Array]], strips: list[slice], V: Array, n_jobs: int | None
) -> Array:
    """Return the product with a symmetric K, where each tile on and above the diagonal is taken once and used twice.

    In each round a strip meets one other, or itself: no two tasks write to the same rows, and sums are in the order of
    the rounds.

    Parameters
    ----------
    tile_at : callable
        From rows and columns to a context with the tile.
    strips : list of slice
        Sides of the tiles.
    V : ndarray of shape (n, k)
    n_jobs : int or None
    """
    out, count = np.zeros(V.shape), len(strips)
    progress = Progress(count, "kernel product")

    def meeting(rows: slice, columns: slice) -> Callable[[], None]:
        def work() -> None:
            threads.checkpoint()
            with tile_at(rows, columns) as tile:
                out[rows] += tile @ V[columns]
                if columns.start > rows.start:
                    out[columns] += tile.T @ V[rows]

        return work

    for number in range(count):
        pairs = ((one, (number - one) % count) for one in range(count))
        threads.run([meeting(strips[one], strips[other]) for one, other in pairs if one <= other], n_jobs)
        progress.advance()
    return out


def reduce(
    visit: Callable[[slice, slice], Array],
    shape: tuple[int, int],
    size: int,
    n_jobs: int | None,
    symmetric: bool = False,
    side: int = TILE,
) -> NDArray[np.float64]:
    """Return the sum of ``visit(rows, columns)``, vectors of length ``size``, over all tiles in a fixed order.

    With ``symmetric``, the sum is over the tiles on and above the diagonal only.
    """
    if symmetric and side == TILE and _FEW_SYMMETRIC < shape[0] < _MANY_SYMMETRIC:
        side = TILE // 2
    strips = spans(shape[0], side)
    partial = np.zeros((len(strips), size))
    progress = Progress(len(strips), "kernel gradient")

    def strip(number: int) -> Callable[[], None]:
        def work() -> None:
            for columns in spans(shape[1], side):
                if symmetric and columns.start < strips[number].start:
                    continue
                threads.checkpoint()
                partial[number] += visit(strips[number], columns)
            progress.advance()

        return work

    threads.run([strip(number) for number in range(len(strips))], n_jobs)
    return partial.sum(axis=0)
