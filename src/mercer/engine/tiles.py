"""Cutting a matrix into tiles that stay in the cache, and visiting them in an order that never changes the sums.

A visitor is called as ``visit(rows, columns, out)`` with two slices and a tile to fill. Every result is a sum over
tiles in one fixed order, and no two workers write to the same entries: the bits do not depend on the number of
threads.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mercer._types import Array
from mercer.engine import threads
from mercer.engine.progress import Progress
from mercer.loops.transpose import transpose

# 512 x 512 in float32 is 1 MiB, the L2 cache of a core; measured best in both precisions among sides 128 to 2048.
TILE = 512
# Of fewer rows than these a tile has more columns; of fewer columns than those it has more rows, up to some.
_FEW, _FEW_COLUMNS, _TALLEST = 128, 256, 8
# The symmetric product keeps one set of partial sums a group; the number is fixed so that the sums are, too.
GROUPS = 8
# The partial sums of a symmetric product may take this much; above it, every tile is computed for its row alone.
PARTIAL_BYTES = 2**28
# A strip that is copied: a few milliseconds.
_STRIP_ENTRIES = 2**20

Fill = Callable[[slice, slice, Array], None]

_scratch = threading.local()


def spans(n: int, step: int = TILE) -> list[slice]:
    """Slices of at most ``step`` that cover ``range(n)``.

    >>> spans(5, 2)
    [slice(0, 2, None), slice(2, 4, None), slice(4, 5, None)]
    """
    return [slice(start, min(start + step, n)) for start in range(0, n, step)]


def scratch_tile(slot: Hashable, shape: tuple[int, ...], dtype: np.dtype) -> Array:
    """A contiguous work array of this thread; the same ``slot`` gives the same memory again."""
    store = _scratch.__dict__.setdefault("store", {})
    size = math.prod(shape)
    buffer = store.get((slot, dtype))
    if buffer is None or buffer.size < size:
        buffer = store[slot, dtype] = np.empty(max(size, TILE * TILE), dtype)
    return buffer[:size].reshape(shape)


@contextmanager
def scratch(shape: tuple[int, ...], dtype: np.dtype) -> Iterator[Array]:
    """A work array for the length of the block; blocks within it, also in calls that come back here, get others."""
    depth = getattr(_scratch, "depth", 0)
    _scratch.depth = depth + 1
    try:
        yield scratch_tile(("depth", depth), shape, dtype)
    finally:
        _scratch.depth = depth


def borrow(shape: tuple[int, ...], dtype: np.dtype) -> Array:
    """A contiguous work array of this thread, for as long as its holder likes; see :func:`give_back`."""
    free = _scratch.__dict__.setdefault("free", {}).setdefault(dtype, [])
    size = math.prod(shape)
    buffer = free.pop() if free and size <= TILE * TILE else np.empty(max(size, TILE * TILE), dtype)
    return buffer[:size].reshape(shape)


def give_back(array: Array) -> None:
    """Let this thread use a borrowed array again."""
    buffer = array.base
    if isinstance(buffer, np.ndarray) and buffer.size == TILE * TILE:
        _scratch.__dict__.setdefault("free", {}).setdefault(buffer.dtype, []).append(buffer)


def dense(fill: Fill, out: Array, symmetric: bool, n_jobs: int | None, side: int = TILE) -> None:
    """Write the whole matrix into ``out``; of a symmetric one, half is computed and half is mirrored."""
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
    """A strip of tiles that are the wider the fewer rows it has, each a task of its own."""
    n, m = out.shape

    def tile(columns: slice) -> Callable[[], None]:
        return lambda: _fill_into(fill, slice(0, n), columns, out, mirror=False)

    step = TILE * max(1, _FEW // n)
    threads.run([tile(columns) for columns in spans(m, step)], n_jobs)


def _fill_into(fill: Fill, rows: slice, columns: slice, out: Array, mirror: bool) -> None:
    """Fill one tile in cache, then store it: a strided target would cost every pass over the tile."""
    with scratch((rows.stop - rows.start, columns.stop - columns.start), out.dtype) as tile:
        fill(rows, columns, tile)
        out[rows, columns] = tile
        if mirror:
            transpose(tile, out[columns, rows])


def converted(matrix: Array, dtype: np.dtype, n_jobs: int | None = None) -> NDArray[Any]:
    """A C-ordered copy in some precision; entries that it cannot hold become infinite.

    By strips, on all threads: memory that is touched for the first time costs seconds where machines share it, and
    between two strips Ctrl-C is heard.

    >>> converted(np.array([[1.0, 1e300]]), np.dtype(np.float32)).tolist()
    [[1.0, inf]]
    """
    out = np.empty(matrix.shape, dtype)

    def strip(rows: slice) -> Callable[[], None]:
        def work() -> None:
            # Each thread has its own.
            with np.errstate(over="ignore"):
                out[rows] = matrix[rows]

        return work

    threads.run([strip(rows) for rows in spans(len(matrix), max(_STRIP_ENTRIES // max(matrix.shape[1], 1), 1))], n_jobs)
    return out


def product(
    fill: Fill, shape: tuple[int, int], dtype: np.dtype, V: Array, symmetric: bool, n_jobs: int | None, side: int = TILE
) -> Array:
    """``K @ V`` for ``V`` of shape ``(m, k)``, no tile of K ever leaving the cache; sums over tiles in float64."""
    if symmetric and shape[0] > side and 8 * GROUPS * V.size <= PARTIAL_BYTES:
        return _symmetric_product(fill, spans(shape[0], side), dtype, V, n_jobs)
    out = np.zeros((shape[0], V.shape[1]))
    # Of few columns a tile has more rows.
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


def _symmetric_product(fill: Fill, strips: list[slice], dtype: np.dtype, V: Array, n_jobs: int | None) -> Array:
    """Each tile above the diagonal serves twice, which halves the kernel work.

    Strips are dealt to a fixed number of groups, like cards, so that the groups' shares of the triangle are even.
    A group sums into an array of its own, and the groups are summed in order.
    """
    partial = np.zeros((min(GROUPS, len(strips)), *V.shape))
    progress = Progress(len(strips), "kernel product")

    def group(number: int) -> Callable[[], None]:
        def work() -> None:
            sums = partial[number]
            for rows in strips[number::GROUPS]:
                for columns in strips:
                    if columns.start < rows.start:
                        continue
                    threads.checkpoint()
                    with scratch((rows.stop - rows.start, columns.stop - columns.start), dtype) as tile:
                        fill(rows, columns, tile)
                        sums[rows] += tile @ V[columns]
                        if columns.start > rows.start:
                            sums[columns] += tile.T @ V[rows]
                progress.advance()

        return work

    threads.run([group(number) for number in range(len(partial))], n_jobs)
    return partial.sum(axis=0)


def reduce(
    visit: Callable[[slice, slice], Array],
    shape: tuple[int, int],
    size: int,
    n_jobs: int | None,
    symmetric: bool = False,
    side: int = TILE,
) -> NDArray[np.float64]:
    """The sum of ``visit(rows, columns)``, vectors of length ``size``, over all tiles in a fixed order.

    With ``symmetric``, only over the tiles on the diagonal and above.
    """
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
