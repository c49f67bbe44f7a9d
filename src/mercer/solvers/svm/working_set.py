"""Decomposition: inner steps on a dense block of the kernel matrix, outer rounds that choose the block.

Source: Joachims (1999), "Making large-scale SVM learning practical"; Wen et al. (2018), "ThunderSVM", JMLR 19, for
large working sets, half of which remain from round to round.
"""

from __future__ import annotations

import math

import numpy as np

from mercer._types import Array
from mercer.engine.progress import Progress
from mercer.gram.protocol import GramMatrix
from mercer.gram.row_store import RowStore
from mercer.loops.stored_rows import subtract_rows
from mercer.solvers.svm.block import Block, Rounding, Stall, padded, resolves
from mercer.solvers.svm.certify import PAIRS, keep_step
from mercer.solvers.svm.iterate import Iterate
from mercer.solvers.svm.whole_matrix import ROUND, on_square

# The block is solved to this part of the violation that it began with.
_INNER = 0.1
# Rows are near copies if their squared distance is at most this part of the sum of their squared norms. With more
# copies of a row than this in a working set, on average, the next one is drawn in part.
_COPY, _COPIES, _SAMPLE = 1e-3, 8, 32
# The first working set, and what is added to it for a free weight is four rows.
_SMALLEST = 512


def select(
    rising: np.ndarray, falling: np.ndarray, size: int, previous: np.ndarray, random: np.random.Generator | None = None
) -> np.ndarray:
    """Return the next working set: up to half from ``previous``, the rest the worst violators of each side.

    With ``random``, half of these violators are drawn from all those that are not the worst.

    ``rising`` and ``falling`` are the sides of the iterate; they are overwritten.
    """
    # Only rows that violate with the best of the other side can take part in a step.
    least_rising, least_falling = -falling.max(), -rising.max()
    part = previous[: size // 2]
    rising[part] = falling[part] = -np.inf
    each = (size - len(part)) // 2
    top = _violators(rising, least_rising, each, random)
    falling[top] = -np.inf
    return np.concatenate([top, _violators(falling, least_falling, each, random), part])


def _violators(values: np.ndarray, least: float, count: int, random: np.random.Generator | None) -> np.ndarray:
    """Return the indices of the ``count`` largest values above ``least``, ascending; with ``random``, half are drawn.

    Without the rows that are masked by -inf: the partition takes quadratic time over many equal values.
    """
    candidates = np.flatnonzero(values > least)
    if len(candidates) <= count:
        return candidates
    worst = count if random is None else count - count // 2
    candidates = candidates[np.argpartition(values[candidates], -worst)]
    picked = candidates[len(candidates) - worst :]
    if random is not None:
        rest = random.choice(len(candidates) - worst, count - worst, replace=False, shuffle=False)
        picked = np.concatenate([picked, candidates[rest]])
    return np.sort(picked)


def _has_copies(K: Array, diagonal: Array) -> bool:
    """Whether, in a sample, the rows of a working set have many near copies in it.

    The worst violators are then the copies of a few rows, and steps among them change next to nothing.
    """
    some = np.linspace(0, len(K) - 1, min(len(K), _SAMPLE)).astype(np.intp)
    scale = diagonal[some][:, None] + diagonal
    close = scale - 2.0 * K[some] <= _COPY * scale
    return bool(np.count_nonzero(close) > (1 + _COPIES) * len(some))


def _select(point: Iterate, size: int, previous: np.ndarray, random: np.random.Generator | None) -> np.ndarray:
    """Return the next working set, divided evenly among the groups of rows; without groups, the offset is 0."""
    rising, falling = point.sides()
    if point.groups is not None:
        sets = []
        for number in (0, 1):
            part = np.flatnonzero(point.groups == number)
            before = np.searchsorted(part, previous[point.groups[previous] == number])
            sets.append(part[select(rising[part], falling[part], size // 2, before, random)])
        return np.concatenate(sets)
    if not point.sums:
        # Zero is the value of the offset: it violates with either side.
        rising, falling = np.append(rising, 0.0), np.append(falling, 0.0)
    rows = select(rising, falling, size, previous, random)
    return rows[rows < len(point.F)]


def by_working_sets(
    gram: GramMatrix, point: Iterate, tol: float, max_iter: int, room: Array, store: RowStore, progress: Progress
) -> None:
    """Move ``point`` until its violation is at most ``tol``, the steps are used up, or rounding stops it.

    The block of a working set has its place in ``room``, a flat array; ``store`` keeps rows of ``gram``.
    """
    dtype, size = np.dtype(gram.dtype), math.isqrt(room.size) - 1
    block, stall = Block(size, dtype), Stall(dtype)
    diagonal = gram.diagonal().astype(dtype, copy=False)
    rows, random, copies = np.empty(0, dtype=np.intp), np.random.default_rng(0), False
    while point.steps < max_iter:
        gap = point.violation()
        if not gap > tol or not resolves(dtype, diagonal, point, tol):
            break
        # A problem with few support vectors shows it early; a block that is too large is thrown away.
        count = min(size, _SMALLEST + 4 * int(np.count_nonzero(point.free)))
        rows = _select(point, count, rows, random if copies else None)
        square, inside = padded(len(rows), point.sums == 0, room)
        gram.block(rows, rows, out=inside)
        copies = _has_copies(inside, diagonal[rows])
        inner = max(_INNER * gap, 0.5 * tol)
        change = _solve(block, square, diagonal[rows], point, rows, inner, max_iter)
        moved = np.flatnonzero(change)
        store.subtract(point.F, rows[moved], change[moved])
        progress.advance()
        keep_step(PAIRS, point)
        if stall.reached(point.dual(), point.violation(), Rounding.typical(diagonal, point)):
            break


def _solve(
    block: Block, square: Array, diagonal: Array, point: Iterate, rows: np.ndarray, tol: float, max_iter: int
) -> np.ndarray:
    """Make steps within the working set ``rows``, and Newton steps if these are slow; return the change of beta."""
    part, portion = point.take(rows), ROUND * len(rows)
    change = block.solve(square, diagonal, part, tol, min(portion, max_iter - point.steps))
    if part.steps >= min(point.steps + portion, max_iter):
        moved = np.flatnonzero(change)
        subtract_rows(part.F, square, moved, change[moved])
        on_square(square, part, tol, max_iter)
        change = part.beta - point.beta[rows]
    point.beta[rows], point.steps = part.beta, part.steps
    if not np.isfinite(part.F).all():
        point.F[rows] = np.nan
    return change
