"""Decomposition: inner steps on a dense block of the kernel matrix, outer rounds that choose the block.

Source: Joachims (1999), "Making large-scale SVM learning practical"; Wen et al. (2018), "ThunderSVM", JMLR 19, for
large working sets of which half is kept from round to round.
"""

from __future__ import annotations

import math

import numpy as np

from mercer.engine.progress import Progress
from mercer.solvers.matrix import Array, GramMatrix
from mercer.solvers.svm.block import Block, Rounding, Stall, padded, resolves
from mercer.solvers.svm.iterate import Iterate
from mercer.solvers.svm.row_store import RowStore

# The block is solved to this part of the violation that it began with.
_INNER = 0.1
# The first working set, and what is added to it for a free weight is four rows.
_SMALLEST = 512


def select(rising: np.ndarray, falling: np.ndarray, size: int, previous: np.ndarray) -> np.ndarray:
    """The next working set: up to half from ``previous``, the rest the worst violators of either side.

    ``rising`` and ``falling`` are the sides of the iterate; they are overwritten.
    """
    # Only rows that violate with the best of the other side can take part in a step.
    least_rising, least_falling = -falling.max(), -rising.max()
    kept = previous[: size // 2]
    rising[kept] = falling[kept] = -np.inf
    each = (size - len(kept)) // 2
    top = _largest(rising, least_rising, each)
    falling[top] = -np.inf
    return np.concatenate([top, _largest(falling, least_falling, each), kept])


def _largest(values: np.ndarray, least: float, count: int) -> np.ndarray:
    """Indices of the ``count`` largest values above ``least``, in ascending order of the index.

    Without the rows that are masked by -inf: the partition takes quadratic time over many equal values.
    """
    found = np.flatnonzero(values > least)
    if len(found) > count:
        found = np.sort(found[np.argpartition(values[found], -count)[-count:]])
    return found


def _select(point: Iterate, size: int, previous: np.ndarray) -> np.ndarray:
    """The next working set, shared evenly by the groups of rows, or by the rows and the offset that is 0."""
    rising, falling = point.sides()
    if point.groups is not None:
        sets = []
        for number in (0, 1):
            part = np.flatnonzero(point.groups == number)
            before = np.searchsorted(part, previous[point.groups[previous] == number])
            sets.append(part[select(rising[part], falling[part], size // 2, before)])
        return np.concatenate(sets)
    if not point.sums:
        # Zero is the value of the offset: it violates with either side.
        rising, falling = np.append(rising, 0.0), np.append(falling, 0.0)
    chosen = select(rising, falling, size, previous)
    return chosen[chosen < len(point.F)]


def by_working_sets(
    gram: GramMatrix, point: Iterate, tol: float, max_iter: int, room: Array, store: RowStore, progress: Progress
) -> None:
    """Move ``point`` until its violation is at most ``tol``, the steps are used up, or rounding stops it.

    The block of a working set has its place in ``room``, a flat array; ``store`` keeps rows of ``gram``.
    """
    dtype, size = np.dtype(gram.dtype), math.isqrt(room.size) - 1
    block, stall = Block(size, dtype), Stall(dtype)
    diagonal = gram.diagonal().astype(dtype, copy=False)
    rows = np.empty(0, dtype=np.intp)
    while point.steps < max_iter:
        gap = point.violation()
        if not gap > tol or not resolves(dtype, diagonal, point, tol):
            break
        # A problem with few support vectors shows it early; a block that is too large is thrown away.
        wanted = min(size, _SMALLEST + 4 * int(np.count_nonzero(point.free)))
        rows = _select(point, wanted, rows)
        square, inside = padded(len(rows), point.sums == 0, room)
        gram.block(rows, rows, out=inside)
        inner = max(_INNER * gap, 0.5 * tol)
        change = block.solve(square, diagonal[rows], point, rows, inner, max_iter - point.steps)
        moved = np.flatnonzero(change)
        store.subtract(point.F, rows[moved], change[moved])
        progress.advance()
        if stall.reached(point.dual(), point.violation(), Rounding.typical(diagonal, point)):
            break
