"""One triangle of a symmetric kernel matrix in float32, kept by tiles: a product reads every entry once."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager

import numpy as np

from mercer._errors import MemoryBudgetError
from mercer._types import Array
from mercer.engine import arrays, memory, threads, tiles
from mercer.engine.progress import Progress
from mercer.gram.protocol import GramMatrix
from mercer.loops.picked import is_finite

# It is kept where it takes at most one of this many parts of the free memory: it only saves time.
SHARE = 2
_SINGLE = np.dtype(np.float32)


def triangle_bytes(n: int) -> int:
    """Return the memory of the tiles on and above the diagonal for n rows.

    >>> triangle_bytes(1000)
    3000576
    """
    # Strips of whole tiles, and the square of the rows below these.
    strips, rest = divmod(n, tiles.TILE)
    return _SINGLE.itemsize * (tiles.TILE * (strips * n - tiles.TILE * strips * (strips - 1) // 2) + rest**2)


class Triangle:
    r"""The tiles of K on and above the diagonal.

    Parameters
    ----------
    n : int
        The order of K.

    Attributes
    ----------
    shape : tuple of int
    nbytes : int

    Examples
    --------
    >>> from mercer.gram import PrecomputedGram
    >>> K = Triangle(2)
    >>> K.evaluate(PrecomputedGram(np.array([[2.0, 1.0], [1.0, 3.0]])))
    True
    >>> (K @ np.array([[1.0], [1.0]])).ravel().tolist()
    [3.0, 4.0]
    """

    def __init__(self, n: int) -> None:
        self.shape, self.nbytes = (n, n), triangle_bytes(n)
        self._strips = tiles.spans(n)
        sizes = [(rows.stop - rows.start) * (n - rows.start) for rows in self._strips]
        self._starts = np.cumsum([0, *sizes[:-1]])
        self._entries = arrays.empty((sum(sizes),), _SINGLE)

    def evaluate(self, gram: GramMatrix, n_jobs: int | None = None) -> bool:
        """Compute every entry once; False if one of them is not finite in float32.

        Parameters
        ----------
        gram : GramMatrix of shape (n, n)
            K in float32.
        n_jobs : int, optional
            Threads.
        """
        progress = Progress(len(self._strips), "Gram matrix")
        finite = [True] * len(self._strips)

        def strip(number: int) -> Callable[[], None]:
            def work() -> None:
                rows = self._strips[number]
                for columns in self._strips[number:]:
                    threads.checkpoint()
                    tile = self._tile(rows, columns)
                    # Each thread has its own error state.
                    with np.errstate(over="ignore", invalid="ignore"):
                        gram.fill(rows, columns, tile)
                    finite[number] = finite[number] and bool(is_finite(tile))
                progress.advance()

            return work

        threads.run([strip(number) for number in range(len(self._strips))], n_jobs)
        return all(finite)

    def _tile(self, rows: slice, columns: slice) -> Array:
        height, width = rows.stop - rows.start, columns.stop - columns.start
        start = int(self._starts[rows.start // tiles.TILE]) + height * (columns.start - rows.start)
        return self._entries[start : start + height * width].reshape(height, width)

    def __matmul__(self, V: Array) -> Array:
        """``K @ V`` for V (n, k), with sums over tiles in float64."""

        @contextmanager
        def tile_at(rows: slice, columns: slice) -> Iterator[Array]:
            yield self._tile(rows, columns)

        return tiles.symmetric_product(tile_at, self._strips, np.ascontiguousarray(V, dtype=_SINGLE), None)


def reserve_triangle(n: int, stack: ExitStack) -> Triangle | None:
    """Reserve memory for a triangle until the stack is closed; None if it takes over half of what is free.

    Examples
    --------
    >>> from mercer import config
    >>> with ExitStack() as stack, config(memory=10**6):
    ...     reserve_triangle(1000, stack) is None
    True
    """
    size = triangle_bytes(n)
    if SHARE * size > memory.room(SHARE * size):
        return None
    try:
        stack.enter_context(memory.reserve(size, f"one triangle of the {n} x {n} kernel matrix in float32"))
    except MemoryBudgetError:
        # Another thread has reserved the memory in the meantime.
        return None
    return Triangle(n)
