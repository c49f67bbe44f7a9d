"""The C-SVC or nu-SVM of many pairs of small classes: one compiled loop over strips of the kernel matrix.

Pair by pair, Python would take a hundred times longer than the steps on six rows. A strip has the rows of some classes
and the columns of these and all later classes. The strips are visited from the last to the first, so that the diagonal
blocks of the later classes are available when they are needed, and only one strip is stored at a time. From a stored
matrix, only the rows that a pair uses are copied.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from mercer._types import Array, Vector
from mercer.engine import memory, threads
from mercer.gram.hold import capacity
from mercer.gram.protocol import GramMatrix
from mercer.loops.nu_pairs import NuParameters, NuValues, solve_nu_with_later
from mercer.loops.pair_rows import ClassRows, PairRoom, Strip
from mercer.loops.pairs import FIGURES, LaterPairs, PairRule, PairValues, solve_with_later
from mercer.loops.picked import is_finite
from mercer.solvers.svm.pair_answers import PairAnswers
from mercer.solvers.svm.smo import EXACT_TOL
from mercer.solvers.svm.step_rule import StepRule

# The most rows of a pair for which this is faster than one problem at a time; as large a pair is solved exactly.
MOST = 512
# What a strip may take; so may the blocks of the classes with themselves.
_STRIP = 256 * 2**20
_NOWHERE = np.empty(0, dtype=np.intp)


def solve_tiny_pairs(
    gram: GramMatrix,
    upper: Vector,
    start: Vector,
    answers: PairAnswers,
    rule: StepRule,
    n_jobs: int | None,
    advance: Callable[[int], None],
) -> NDArray[np.bool_]:
    """Solve the easy pairs with at most ``MOST`` rows; return which pairs are solved, (p,).

    Parameters
    ----------
    gram : GramMatrix
        K of all rows, sorted by class.
    upper : ndarray of shape (n,)
        Bounds of the absolute weights.
    start : ndarray of shape (k - 1, n)
        Initial weights in the layout of ``answers.beta``; may be the same array.
    answers : PairAnswers
        Receives the answers.
    rule : StepRule
        When a pair counts as solved, and the machine; the nu-SVM uses no ``start``.
    n_jobs : int or None
        Worker threads.
    advance : callable
        Called with the number of newly solved pairs.
    """
    solved = np.zeros(answers.layout.pairs, dtype=bool)
    if np.sort(answers.layout.sizes)[:2].sum() <= MOST:
        _TinyPairs(gram, upper, start, answers, rule, solved).solve(n_jobs, advance)
    return solved


class _TinyPairs:
    """The classes in tiny pairs, and their part of the kernel matrix."""

    def __init__(
        self,
        gram: GramMatrix,
        upper: Vector,
        start: Vector,
        answers: PairAnswers,
        rule: StepRule,
        solved: NDArray[np.bool_],
    ) -> None:
        self.eps = float(np.finfo(gram.dtype).eps)
        self.upper, self.start, self.answers, self.rule, self.solved = upper, start, answers, rule, solved
        layout = answers.layout
        self.classes = np.flatnonzero(layout.sizes + layout.sizes.min() <= MOST)
        self.sizes, self.rows = layout.sizes[self.classes], layout.starts[self.classes]
        self.columns = np.concatenate([[0], np.cumsum(self.sizes)])
        self.places = np.concatenate([[0], np.cumsum(self.sizes**2)])
        rows = np.flatnonzero(np.repeat(layout.sizes + layout.sizes.min() <= MOST, layout.sizes))
        exact = gram if gram.dtype == np.float64 else gram.astype(np.float64)
        self.gram: GramMatrix = exact if len(rows) == layout.n else exact.restrict(rows, rows)
        stored = self.gram.stored()
        usable = stored is not None and stored[0].flags.c_contiguous and self.gram.stored_is_finite()
        self.stored = stored if usable else None
        self.own = np.empty(0 if self.stored else self.places[-1])

    def solve(self, n_jobs: int | None, advance: Callable[[int], None]) -> None:
        """Solve all pairs, unless the strip of a single class does not fit."""
        if self.stored:
            # Nothing is copied but the rows that a pair uses.
            matrix, at = self.stored
            threads.run([self._task(i, matrix, at, 0, advance) for i in range(len(self.classes) - 1)], n_jobs)
            return
        room = capacity(1, _STRIP, parts=4)
        n, last = self.gram.shape[0], len(self.classes)
        if max(8 * n * int(self.sizes.max()), self.own.nbytes) > room:
            return
        with memory.reserve(self.own.nbytes, "the kernel blocks of the classes"):
            while last > 0:
                # As many classes before ``last`` as there is room for.
                least = self.columns[last] - room // (8 * n)
                first = min(int(np.searchsorted(self.columns, least)), last - 1)
                self._solve_strip(first, last, n_jobs, advance)
                last = first

    def _solve_strip(self, first: int, last: int, n_jobs: int | None, advance: Callable[[int], None]) -> None:
        begin, end, n = int(self.columns[first]), int(self.columns[last]), self.gram.shape[0]
        rows = slice(begin, end)
        with memory.reserve(8 * (end - begin) * (n - begin), "a strip of the kernel matrix"):
            K = self.gram.block(rows, rows if end == n else slice(begin, n))
            # What is not finite is for the solver of single pairs, which raises the error.
            if not is_finite(K):
                return
            for i in range(first, last):
                part = slice(int(self.columns[i]) - begin, int(self.columns[i + 1]) - begin)
                self.own[self.places[i] : self.places[i + 1]] = K[part, part].ravel()
            of_strip = [K[self.columns[i] - begin : self.columns[i + 1] - begin] for i in range(first, last)]
            tasks = [
                self._task(i, of_strip[i - first], _NOWHERE, begin, advance)
                for i in range(first, min(last, len(self.classes) - 1))
            ]
            threads.run(tasks, n_jobs)

    def _task(
        self, i: int, K: Array, at: NDArray[np.intp], begin: int, advance: Callable[[int], None]
    ) -> Callable[[], None]:
        def solve() -> None:
            start_time = time.perf_counter()
            rule, count, whole = self.rule, len(self.classes) - i - 1, self.answers
            offsets, figures, solved = np.empty(count), np.empty((count, FIGURES)), np.zeros(count, dtype=bool)
            classes = ClassRows(self.classes, self.sizes, self.rows, self.columns - begin, self.places)
            strip, answers = Strip(i, K, at, self.own), LaterPairs(offsets, figures, solved)
            limits, rows = PairRule(rule.tol, EXACT_TOL, rule.limit, MOST), self.sizes[i] + self.sizes[i + 1 :]
            room = PairRoom.of(int(rows[rows <= MOST].max(initial=0)))
            if rule.nu is None:
                values = PairValues(self.start, whole.beta, whole.gradient)
                solve_with_later(strip, classes, self.upper, (values, answers), rule.intercept, limits, room)
            else:
                parts, nu = NuValues(whole.state, whole.beta, whole.gradient), NuParameters(0.5 * rule.nu, self.eps)
                solve_nu_with_later(strip, classes, self.upper, (parts, answers), nu, limits, room)
            # Slacks of rounding are removed where pairs are solved alone.
            solved &= rule.accepts(figures) & ~rule.has_slack(figures)
            if solved.any():
                self._keep(i, offsets, figures, solved, (time.perf_counter() - start_time) / solved.sum())
            advance(int(solved.sum()))

        return solve

    def _keep(self, i: int, offsets: Vector, figures: Vector, solved: NDArray[np.bool_], seconds: float) -> None:
        later = np.flatnonzero(solved) + i + 1
        numbers = self.answers.layout.number(self.classes[i], self.classes[later])
        self.solved[numbers] = True
        nbytes = 8 * (self.sizes[i] + self.sizes[later]) ** 2
        self.rule.keep(self.answers, numbers, offsets[solved], figures[solved], seconds, nbytes)
