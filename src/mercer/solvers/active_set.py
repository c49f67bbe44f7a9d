"""Large problems: only rows that may still move are looked at, first among few rows and in the end among all.

A round solves the problem over an *active* set of rows with the weights of all others held, and then brings the
gradients of the others up to date. The first rounds know a part of the rows only, which is enough to find most
support vectors; every later one knows four times as many.

Source: the idea of shrinking is Joachims (1999), "Making large-scale SVM learning practical"; growing samples are as
in Bottou, Weston and Bakir (2004), "Breaking SVM complexity with cross-training".
"""

from __future__ import annotations

import numpy as np

from mercer.engine.progress import Progress
from mercer.solvers.block import Stall, resolves
from mercer.solvers.iterate import Iterate
from mercer.solvers.problems import GramMatrix
from mercer.solvers.row_store import RowStore
from mercer.solvers.working_set import by_working_sets

FIRST = 2048
GROWTH = 4
# Among part of the rows, the problem is solved to this violation (or to this part of the first one).
_COARSE = 0.3
# A round solves its part to this share of the violation that the round began with.
_INNER = 0.1
# Rows that are no further than this share of the violation from taking part take part.
_NEAR = 0.5
_WIDEST = 0.2


def scopes(n: int) -> list[np.ndarray]:
    """Nested sets of rows, each spread evenly over the rows before it is four times larger; the last is all rows.

    >>> [len(scope) for scope in scopes(40_000)]
    [2500, 10000, 40000]
    """
    shares = [1.0]
    while n * shares[0] / GROWTH > FIRST:
        shares.insert(0, shares[0] / GROWTH)
    # Multiples of the golden ratio fill the interval evenly from the first one on.
    key = np.arange(1, n + 1) * 0.6180339887498949 % 1.0
    order = np.argsort(key, kind="stable")
    return [np.sort(order[: round(n * share)]) for share in shares]


def active_rows(point: Iterate, near: float) -> np.ndarray:
    """Rows whose weight is free, or which want to leave their bound at the offset of the free rows, or nearly."""
    rising, falling = point.sides()
    offsets = point.offsets() or (0.0,)
    chosen = point.free.copy()
    for part, offset in zip(point.parts(), offsets):
        chosen[part] |= (rising[part] > offset - near) | (-falling[part] < offset + near)
    return np.flatnonzero(chosen)


def by_active_sets(
    gram: GramMatrix, point: Iterate, tol: float, max_iter: int, size: int, limit: int, n_jobs: int | None,
    verbose: bool,
) -> int:  # fmt: skip
    """Move ``point`` until its violation is at most ``tol``, the steps are used up, or rounding stops it.

    Returns the most bytes held at once.
    """
    dtype = np.dtype(gram.dtype)
    diagonal, stall = gram.diagonal(), Stall(dtype)
    progress = Progress(None, "active sets", verbose)
    held = 0
    fresh = not point.beta.any()
    known = np.empty(0, dtype=np.intp)
    for scope in scopes(len(point.F)) if fresh else [np.arange(len(point.F))]:
        last = len(scope) == len(point.F)
        if fresh:
            extend(gram, point, np.setdiff1d(scope, known, assume_unique=True), n_jobs)
        known = scope
        part = point.take(scope)
        goal = tol
        if not last:
            goal = max(tol, _COARSE)
        while part.steps < max_iter:
            gap = part.violation()
            if not gap > goal or not resolves(dtype, diagonal, part, tol):
                break
            chosen = active_rows(part, min(_NEAR * gap, _WIDEST))
            active = part.take(chosen)
            before = active.beta.copy()
            rows = scope[chosen]
            inner = max(_INNER * gap, 0.5 * goal) if len(rows) < len(scope) else goal
            held = max(held, by_working_sets(
                gram.restrict(rows, rows), active, inner, max_iter, size, limit, n_jobs, False
            ))
            part.steps = active.steps
            moved = np.flatnonzero(active.beta != before)
            others = np.setdiff1d(np.arange(len(scope)), chosen, assume_unique=True)
            if len(others) and len(moved):
                delta = part.F[others]
                subtract(gram, delta, scope[others], rows[moved], (active.beta - before)[moved], n_jobs)
                part.F[others] = delta
            part.F[chosen], part.beta[chosen] = active.F, active.beta
            progress.advance()
            if stall.reached(part.dual()):
                break
        point.beta[scope], point.F[scope], point.steps = part.beta, part.F, part.steps
    return held


def extend(gram: GramMatrix, point: Iterate, rows: np.ndarray, n_jobs: int | None) -> None:
    """The gradients of ``rows``, which have no weight yet, at the weights of the others."""
    F = point.linear[rows]
    support = point.support
    if len(support):
        subtract(gram, F, rows, support, point.beta[support], n_jobs)
    point.F[rows] = F


def subtract(
    gram: GramMatrix, F: np.ndarray, rows: np.ndarray, columns: np.ndarray, weights: np.ndarray, n_jobs: int | None
) -> None:
    """``F -= K[rows, columns] @ weights``; nothing is kept."""
    part = gram.restrict(columns, rows)
    with RowStore(part, 0, n_jobs) as store:
        store.subtract(F, np.arange(len(columns)), weights)
