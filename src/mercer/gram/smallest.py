"""The nearest columns of every row of a lazy matrix, found tile by tile; the matrix is never stored."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mercer._errors import KernelValueError
from mercer._types import Array
from mercer.engine import memory, threads, tiles
from mercer.engine.progress import Progress
from mercer.loops.smallest import keep_smallest, sort_heaps


def smallest(
    gram: Any, count: int, *, offset: Array | None = None, factor: float = 1.0, own: bool = False
) -> tuple[Array, NDArray[np.intp]]:
    """Find for every row the ``count`` columns with the smallest ``offset_j + factor * K_ij``, ascending.

    Ties go to the columns that come first.

    Parameters
    ----------
    gram : Gram or PrecomputedGram
        K, of shape (n, m).
    count : int
        Columns of each row, at most m, or m - 1 with ``own``.
    offset : ndarray of shape (m,), optional
        One number per column; 0 if None.
    factor : float, default=1.0
        Factor of the entries.
    own : bool, default=False
        Whether to exclude column i for row i.

    Returns
    -------
    scores : ndarray of shape (n, count)
    columns : ndarray of int of shape (n, count)

    Raises
    ------
    KernelValueError
        If a score is NaN, or a selected score is infinite.
    MemoryBudgetError
        If the result does not fit; raised before work begins.

    Examples
    --------
    >>> from mercer.gram import PrecomputedGram
    >>> scores, columns = smallest(PrecomputedGram([[3.0, 1.0, 2.0, 1.0]], symmetric=False), 3)
    >>> scores.tolist(), columns.tolist()
    ([[1.0, 1.0, 2.0]], [[1, 3, 2]])
    """
    n, m = gram.shape
    added = np.zeros(m, gram.dtype) if offset is None else np.asarray(offset, dtype=np.float64)
    kind = added.dtype
    with memory.reserve(
        n * count * (kind.itemsize + np.dtype(np.intp).itemsize),
        f"the {count} neighbours of {n} rows",
        "Ask for fewer rows at once, or raise the budget with mercer.config(memory=...).",
    ):
        scores = np.full((n, count), np.inf, kind)
        positions = np.full((n, count), -1, np.intp)
        progress = Progress(len(tiles.spans(n, gram.tile)), "nearest rows")

        def strip(rows: slice) -> Callable[[], None]:
            def work() -> None:
                numbers = np.arange(rows.start, rows.stop) if own else np.full(rows.stop - rows.start, -1)
                if _search(gram, rows, added, kind.type(factor), numbers, scores[rows], positions[rows]):
                    raise KernelValueError(
                        f"{_name(gram)} has entries that are not finite; scale the columns of X "
                        "(sklearn.preprocessing.StandardScaler) or choose a kernel with smaller values."
                    )
                progress.advance()

            return work

        threads.run([strip(rows) for rows in tiles.spans(n, gram.tile)], gram.n_jobs)
    return scores, positions


def _search(
    gram: Any, rows: slice, offset: Array, factor: Any, own: Array, scores: Array, positions: NDArray[np.intp]
) -> bool:
    """Find the nearest columns of some rows; True if an entry cannot be ranked."""
    for columns in tiles.spans(gram.shape[1], gram.tile):
        threads.checkpoint()
        with tiles.scratch((rows.stop - rows.start, columns.stop - columns.start), gram.dtype) as tile:
            gram.fill(rows, columns, tile)
            if keep_smallest(tile, offset[columns], factor, columns.start, own, scores, positions):
                return True
    sort_heaps(scores, positions)
    return not np.isfinite(scores).all()


def _name(gram: Any) -> str:
    return f"the matrix of {gram.kernel!r}" if hasattr(gram, "kernel") else "the kernel matrix"
