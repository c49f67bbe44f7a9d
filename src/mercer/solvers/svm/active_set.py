"""Large problems: work only on rows whose weights may still change, first among a few rows and finally among all.

A round solves the problem over an *active* set of rows, with the weights of all other rows fixed, and then updates the
gradients of the other rows. The first rounds use only a sample of the rows, which is enough to find most support
vectors; each later sample is four times as large.

Source: the idea of shrinking is from Joachims (1999), "Making large-scale SVM learning practical"; growing samples are
as in Bottou, Weston and Bakir (2004), "Breaking SVM complexity with cross-training".
"""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass, replace

import numpy as np

from mercer._types import Array, Vector
from mercer.engine import memory
from mercer.engine.progress import Progress
from mercer.gram.hold import fits, hold_rows, whole_matrix
from mercer.gram.protocol import GramMatrix
from mercer.gram.row_store import RowStore
from mercer.solvers.svm.block import Rounding, Stall, resolves
from mercer.solvers.svm.certify import PAIRS, keep_step
from mercer.solvers.svm.iterate import Iterate
from mercer.solvers.svm.kept_matrix import KeptMatrix
from mercer.solvers.svm.shrinking import active_rows
from mercer.solvers.svm.solver import BoxSolver
from mercer.solvers.svm.whole_matrix import interior_round, on_square
from mercer.solvers.svm.working_set import by_working_sets

# The most rows of a working set.
_WORKING_SET = 1536
# Entries of its kernel matrix, with a border.
BLOCK = (_WORKING_SET + 1) ** 2
FIRST = 2048
GROWTH = 4
# Among part of the rows, the problem is solved to this violation (or to this part of the first one).
_COARSE = 0.3
# Working sets go on to this share of the violation before rows are looked at anew, active sets to this one: to bring
# all the other rows up to date costs more than steps.
_INNER = 0.1
_DEEP = 0.1
# From this multiple of the tolerance on, the active rows are solved to the end.
_LAST = 30
# Where rows are compared by their leading directions, which is what the others come to, or less.
_ROUGH = 0.1
# Rows of the whole matrix are kept in float64, which they then need not be computed in again, where there is room for
# this many times those that have a weight before the exact solve.
_SPARE = 1.25
# With more than this share of the rows active there is nothing to gain from leaving out the others.
_MOST = 0.7
# Where rows of the whole matrix are kept, rows of active sets get this part of the room.
_SHARE = 4
# After this many steps for each row, pairs of weights count as too slow; up to this many rows, an interior point method
# takes over, whose cost grows with their cube.
_CRAWL = 100
_INTERIOR_ROWS = 6000
# Sets of free weights are tried earlier: where some factorisations take as long as this many steps for each row, which
# is in proportion to the square of their number.
_FEWEST, _ROWS_A_STEP = 10, 1e5
# Where more than this share of a sample has a weight, the whole matrix is made.
_NEEDED = 0.5
# Rows of this many columns make the whole matrix worth its memory up to this many rows; expensive ones always do.
_WIDE, _FEW_ROWS = 32, 12288


def scopes(n: int) -> list[np.ndarray]:
    """Return nested sets of rows, evenly spread, each four times as large as the one before; the last is all rows.

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


def by_active_sets(
    gram: GramMatrix, point: Iterate, totals: Vector, rules: BoxSolver, kept: KeptMatrix
) -> tuple[int, bool, str]:
    """Move ``point`` until its violation is at most ``rules.tol``, the steps are used up, or rounding stops it.

    In the last round the gradients of rows that are not active are left as they were; the caller computes all anew.
    ``kept`` is the whole matrix, if an earlier solve made it. Returns the bytes reserved, whether the gradients of all
    rows are those of the weights in float64, and where K was.
    """
    n = len(point.F)
    shared, most = gram.expensive, 0 if gram.cheap else rules.kept_bytes
    with ExitStack() as stack:
        if kept.square is not None and not kept.fits(gram, point.sums == 0):
            kept = KeptMatrix(stack)
        memory_of_rows, sentence = hold_rows(gram, stack, most=most, beside=BLOCK)
        nbytes = memory_of_rows.nbytes
        block, store = np.split(memory_of_rows, [BLOCK])
        store, whole = np.split(store, [len(store) // _SHARE if shared else len(store)])
        room = _Room(block, store, Progress(None, "working sets", rules.verbose))
        solver = _ActiveSets(gram, rules, room, kept)
        if not shared:
            _solve(solver, point, totals)
            return nbytes + kept.nbytes, False, kept.sentence or sentence
        leading = None if point.beta.any() else gram.leading()
        if leading is not None:
            rough = _ActiveSets(leading, replace(rules, tol=max(rules.tol, _ROUGH)), room, KeptMatrix(stack))
            _solve(rough, point, totals)
        exact = leading is not None and _SPARE * 8 * n * len(point.support) <= whole.nbytes
        solver.rows = RowStore(gram.astype(np.float64) if exact else gram, _as_room(whole, exact), rules.n_jobs)
        if leading is not None:
            _renew(solver.rows, point)
        _solve(solver, point, totals)
        if exact:
            _renew(solver.rows, point)
    return nbytes + kept.nbytes, exact, kept.sentence or sentence


def _as_room(room: Array, exact: bool) -> Array:
    """Return the settings for the same memory in float64, if ``exact``."""
    return room[: room.size // 2 * 2].view(np.float64) if exact and room.dtype == np.float32 else room


def _renew(store: RowStore, point: Iterate) -> None:
    """Compute the gradients of all rows from the stored rows alone."""
    support, point.F = point.support, point.linear.copy()
    store.subtract(point.F, support, point.beta[support])


def _solve(solver: _ActiveSets, point: Iterate, totals: Vector) -> None:
    """Solve first among samples of the rows, unless there are initial weights, and then among all."""
    n = len(point.F)
    capacity = _capacity(point, totals)
    previous = np.empty(0, dtype=np.intp)
    for scope in scopes(n)[:-1] if not point.beta.any() else []:
        solver.extend(point, np.setdiff1d(scope, previous, assume_unique=True))
        part = point.take(scope)
        solver.fill(scope, part, totals * _capacity(part, totals) / capacity)
        solver.solve(scope, part, max(solver.tol, _COARSE))
        point.put(scope, part)
        solver.share = len(part.support) / len(scope)
        previous = scope
    everything = np.arange(n)
    if len(previous):
        solver.extend(point, np.setdiff1d(everything, previous, assume_unique=True))
    solver.fill(everything, point, totals)
    solver.solve(everything, point, solver.tol)


def _patience(n: int) -> int:
    """Return how many steps for each of n rows come before methods that move all weights at once.

    >>> [_patience(n) for n in (500, 2000, 5000)]
    [10, 40, 100]
    """
    return int(min(max(_FEWEST, n * n / _ROWS_A_STEP), _CRAWL))


def _capacity(point: Iterate, totals: Vector) -> Vector:
    """Return the largest possible sum of the weights of each group, on the side of its total."""
    parts = zip(point.parts(), totals)
    return np.array([(point.upper if total >= 0 else point.lower)[part].sum() for part, total in parts])


@dataclass(frozen=True)
class _Room:
    """Memory for working sets and for stored rows, reused for each set of active rows.

    Memory that was never touched is paid for at its first use.
    """

    block: Array
    kept: Array
    progress: Progress


class _ActiveSets:
    """The rounds; ``rows`` stores rows of the whole matrix if they are expensive."""

    def __init__(self, gram: GramMatrix, rules: BoxSolver, room: _Room, kept: KeptMatrix) -> None:
        self.gram, self.rules, self.tol, self.max_iter = gram, rules, rules.tol, rules.limit
        self.rows: RowStore | None = None
        self._room = room
        self._diagonal = gram.diagonal()
        self._nothing = np.empty(0, gram.dtype)
        self._last: tuple[np.ndarray, GramMatrix, RowStore] | None = None
        # The share of the last sample of the rows that has a weight, and the whole matrix where that is large.
        self.share, self._kept = 0.0, kept

    def solve(self, rows: np.ndarray, point: Iterate, goal: float) -> None:
        """Solve the problem over ``rows``, with their part ``point``, until its violation is at most ``goal``."""
        stall, may_crawl, patience = Stall(self.gram.dtype), True, _patience(len(rows))
        while point.steps < self.max_iter:
            gap = point.violation()
            keep_step(PAIRS, point)
            if not gap > goal or not resolves(self.gram.dtype, self._diagonal, point, self.tol):
                break
            if stall.reached(point.dual(), gap, Rounding.typical(self._diagonal, point)):
                break
            positions = active_rows(point, gap)
            if len(positions) > _MOST * len(rows):
                before = point.steps
                self._among_all(rows, point, goal, patience * len(rows))
                if may_crawl and point.steps - before >= patience * len(rows):
                    # Once: what it does not end is rounding, which a second time does not end either.
                    may_crawl = not self._inside(rows, point, patience < _CRAWL) and patience < _CRAWL
                    patience = _CRAWL
                continue
            active = point.take(positions)
            last = len(rows) == self.gram.shape[0] and gap <= _LAST * goal
            self.solve(rows[positions], active, 0.5 * goal if last else max(_DEEP * gap, 0.5 * goal))
            if last:
                # The gradients of all rows are about to be computed in float64, which shows what is left to do.
                point.put(positions, active)
                break
            self._keep(rows, point, positions, active)

    def _among_all(self, rows: np.ndarray, point: Iterate, goal: float, most: int) -> None:
        """Reach the goal by steps on the whole matrix, or a fraction of the violation by working sets."""
        steps = min(self.max_iter, point.steps + most)
        if len(rows) == self.gram.shape[0] and self._has_whole(point):
            assert self._kept.square is not None
            # Gradients in float64 take a pass over the whole matrix.
            on_square(self._kept.square, point, goal, steps, self.rules.n_jobs)
            return
        goal = max(_INNER * point.violation(), goal)
        if self._last is None or self._last[0] is not rows:
            if len(rows) == self.gram.shape[0]:
                self._last = rows, self.gram, self.rows or RowStore(self.gram, self._room.kept, self.rules.n_jobs)
            else:
                part = self.gram.restrict(rows, rows)
                self._last = rows, part, RowStore(part, self._room.kept, self.rules.n_jobs)
        _, gram, store = self._last
        by_working_sets(gram, point, goal, steps, self._room.block, store, self._room.progress)

    def _has_whole(self, point: Iterate) -> bool:
        """Whether the whole matrix is stored; it is computed once if a sample shows that most rows are needed.

        Steps then choose among all rows, of which fewer are needed than within working sets, and no entry is computed
        twice. The number of threads does not count, since the bits would then depend on it.
        """
        if self._kept.square is not None:
            return True
        costly = self.gram.expensive or (self.gram.width >= _WIDE and self.gram.shape[0] <= _FEW_ROWS)
        return self.share > _NEEDED and costly and self._kept.make(self.gram, pad=point.sums == 0)

    def _inside(self, rows: np.ndarray, point: Iterate, free_sets_only: bool) -> bool:
        """Move all weights at once if pairs make little progress and two float64 matrices fit; return whether it did.

        Sets of free weights that do not settle early may do so later, and interior points are for when they do not.
        """
        n = len(rows)
        if n > _INTERIOR_ROWS or not fits(32 * n * n):
            return False
        with memory.reserve(16 * n * n, "the kernel matrix of the active rows and a factor"):
            K = whole_matrix(self.gram.restrict(rows, rows), np.float64)
            return interior_round(K, point, free_sets_only=free_sets_only)

    def _keep(self, rows: np.ndarray, point: Iterate, positions: np.ndarray, active: Iterate) -> None:
        """Copy the answer for the active rows, and update the gradients of the other rows."""
        change = active.beta - point.beta[positions]
        moved = np.flatnonzero(change)
        if self.rows is not None and len(rows) == self.gram.shape[0]:
            self.rows.subtract(point.F, positions[moved], change[moved])
        elif len(moved):
            others = np.ones(len(rows), dtype=bool)
            others[positions] = False
            F = point.F[others]
            self._subtract(F, rows[others], rows[positions[moved]], change[moved])
            point.F[others] = F
        point.put(positions, active)

    def fill(self, rows: np.ndarray, point: Iterate, totals: Vector) -> None:
        """Change the weights so that their sums are ``totals``."""
        moved = np.flatnonzero(change := point.fill(totals))
        if len(moved):
            self._subtract(point.F, rows, rows[moved], change[moved])

    def extend(self, point: Iterate, rows: np.ndarray) -> None:
        """Compute the gradients of ``rows``, which have no weight yet, at the weights of the others."""
        F = point.linear[rows]
        support = point.support
        if len(support):
            self._subtract(F, rows, support, point.beta[support])
        point.F[rows] = F

    def _subtract(self, F: np.ndarray, rows: np.ndarray, columns: np.ndarray, weights: np.ndarray) -> None:
        """``F -= K[rows, columns] @ weights``, without storing rows."""
        if len(F):
            part = RowStore(self.gram.restrict(columns, rows), self._nothing, self.rules.n_jobs)
            part.subtract(F, np.arange(len(columns)), weights)
