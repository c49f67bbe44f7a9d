"""Passes of a perceptron that compute rows of K when they are needed."""

from __future__ import annotations

from functools import partial
from math import ceil

import numpy as np
from numpy.typing import NDArray

from mercer._types import Array, Integers, Vector
from mercer.engine import threads, tiles
from mercer.gram.protocol import GramMatrix
from mercer.loops import perceptron as loops
from mercer.solvers.online.problem import PerceptronProblem, PerceptronState, check_values, values_at_all

# The fewest and the most steps of a stretch, the mistakes that end it, and the fewest whole rows that are stored.
_FEWEST, _MOST, _MISTAKES, _LEAST = 256, 4096, 64, 16
# Rows of a stretch that are computed together: the misclassified one, and guesses of the next ones.
_GUESSES = 8
# Kernel values in a task.
_ENTRIES = 2**18


def entries(gram: GramMatrix, most: int) -> tuple[int, int]:
    """Split ``most`` kernel values into those of whole rows and those between the rows of a stretch.

    Whole rows are stored if computing them takes much longer than reading them.
    """
    p, width = gram.shape[0], min(_MOST, gram.shape[0])
    capacity = min(p, max(_LEAST, most // p)) if gram.expensive else 0
    return capacity * p, max(1, min(_GUESSES, capacity // 2 if capacity else p, most // width)) * width


class LookAhead:
    """Steps with the values of f at all rows, which are updated after each stretch of steps.

    Up to the next mistake the values suffice. A stretch begins there, and updates the values at its own rows alone.
    This needs only the part of K between the misclassified rows and the rows of the stretch. Together with a row that
    is needed, it computes the rows that would be misclassified next if all kernel values were like the last ones. After
    the stretch, the rows of K of all mistakes, times their weights, are added to the values at once. Where K is
    expensive, these rows are computed as a whole and stored in place of the oldest.

    ``rows`` and ``between`` are the memory for it, with as many entries as :func:`entries` returns.
    """

    def __init__(
        self, problem: PerceptronProblem, expansion: PerceptronState, rows: Array, between: Array, n_jobs: int | None
    ) -> None:
        p = problem.gram.shape[0]
        self.problem, self.expansion, self.n_jobs = problem, expansion, n_jobs
        self.stored, self.between = rows.reshape(-1, p), between
        self.guesses, self.typical = len(between) // min(_MOST, p), 0.0
        # Guesses may take a stretch beyond its mistakes, whose rows must fit among the stored ones.
        self.mistakes = max(1, min(_MISTAKES, len(self.stored) - self.guesses)) if len(self.stored) else _MISTAKES
        self.slot, self.owner, self.next = np.full(p, -1), np.full(len(self.stored), -1), 0
        self.values = values_at_all(problem, expansion)
        self.length = _FEWEST

    def go(self, order: Integers) -> int:
        """One pass; returns the number of updates."""
        problem, count, at = self.problem, 0, 0
        while True:
            threads.checkpoint()
            right = loops.right_ones(problem.labels(), self.values, order[at:])
            self.expansion.steps += right
            at += right
            if at == len(order):
                check_values(self.values)
                return count
            steps, updates = self._stretch(order[at : at + self.length])
            at += steps
            count += updates

    def _stretch(self, rows: Integers) -> tuple[int, int]:
        """Steps at ``rows``, up to some number of mistakes; returns how many, and the number of updates."""
        expansion, outputs, m = self.expansion, len(self.problem.positive), len(rows)
        theta, lagged = np.zeros((outputs, m)), np.zeros((outputs, m))
        steps, updates = self._steps(rows, theta, lagged)
        erring = np.flatnonzero(theta.any(axis=0))
        wrong = rows[erring]
        expansion.theta[:, wrong] += theta[:, erring]
        expansion.lagged[:, wrong] += lagged[:, erring]
        expansion.steps += steps
        if expansion.record:
            updates[:, 1] = rows[updates[:, 1]]
            expansion.updates = np.vstack([expansion.updates, updates])
        if len(self.stored):
            self._add_stored(wrong, theta[:, erring])
        else:
            self._add(wrong, theta[:, erring])
        # The next stretch should have about as many mistakes as may be.
        if steps < m:
            self.length = min(max(_FEWEST, 2 * steps), _MOST)
        elif 2 * len(updates) <= self.mistakes:
            self.length = min(2 * self.length, _MOST)
        return steps, len(updates)

    def _steps(self, rows: Integers, theta: Vector, lagged: Vector) -> tuple[int, NDArray[np.int64]]:
        """The same with what they change in ``theta`` and ``lagged`` (k, m); also the updates."""
        problem, m, outputs = self.problem, len(rows), len(theta)
        place, state = np.full(m, -1), np.zeros(3, dtype=np.int64)
        support = loops.Support(np.empty(0, dtype=np.int64), np.zeros(m, dtype=bool), state)
        values, updates = self.values[:, rows], np.empty((self.mistakes + self.guesses * outputs, 4), dtype=np.int64)
        labels, functions = problem.labels(rows), loops.Expansion(theta, lagged, values)
        order, ahead = np.arange(m), np.empty((outputs, m))
        part, K = problem.gram.restrict(rows, rows), self.between.reshape(1, -1)
        errors = np.empty(self.guesses, dtype=np.int64)
        at = count = first = size = 0
        while True:
            kernel, before = loops.KernelValues(K, first, place), self.expansion.steps + at
            at += loops.steps(labels, kernel, order[at:], functions, support, before, updates[count:])
            count += int(state[loops.COUNT])
            if at == m or count >= self.mistakes:
                return at, updates[:count]
            place[errors[:size]] = -1
            size = loops.guess_errors(labels, values, at, self.typical, ahead, errors)
            # The steps before this one are done.
            first, guessed = at, errors[:size]
            K = self.between[: size * (m - at)].reshape(size, m - at)
            self._between(part, rows, guessed, at, K)
            place[guessed] = np.arange(size)
            if not count:
                self.typical = float(K[0].mean())

    def _between(self, part: GramMatrix, rows: Integers, positions: Integers, start: int, out: Array) -> None:
        """K between the rows at the ``positions`` of a stretch and those from ``start`` on."""
        slots = self.slot[rows[positions]]
        if (slots < 0).all():
            part.fill(positions, slice(start, len(rows)), out)
            return
        for row, position, slot in zip(out, positions, slots, strict=True):
            if slot >= 0:
                row[:] = self.stored[slot, rows[start:]]
            else:
                part.fill(slice(position, position + 1), slice(start, len(rows)), row[None])

    def _add(self, rows: Integers, weights: Vector) -> None:
        """Add the rows of K, times ``weights`` (k, e), to the values, no row of K ever leaving the cache."""
        if not len(rows):
            return
        gram, shift = self.problem.gram, self.problem.constant * weights.sum(axis=1)[:, None]

        def strip(columns: slice) -> None:
            threads.checkpoint()
            with tiles.scratch((len(rows), columns.stop - columns.start), self.between.dtype) as tile:
                gram.fill(rows, columns, tile)
                self.values[:, columns] += weights @ tile + shift

        p = self.values.shape[1]
        # Evenly dealt to two threads, however few they are.
        step = ceil(p / (2 * ceil(p * len(rows) / (2 * _ENTRIES))))
        threads.run([partial(strip, columns) for columns in tiles.spans(p, step)], self.n_jobs)

    def _add_stored(self, rows: Integers, weights: Vector) -> None:
        """The same with rows of K that are stored, or computed and stored now."""
        in_store = self.slot[rows] >= 0
        # First those that new rows may drive out.
        if in_store.any():
            loops.add_rows(
                self.stored, self.slot[rows[in_store]], weights[:, in_store], self.problem.constant, self.values
            )
        new = rows[~in_store]
        if len(new):
            loops.add_rows(self.stored, self._fetch(new), weights[:, ~in_store], self.problem.constant, self.values)

    def _fetch(self, rows: Integers) -> NDArray[np.int64]:
        """Make rows of K; returns their slots."""
        if self.next + len(rows) > len(self.stored):
            self.next = 0
        slots = np.arange(self.next, self.next + len(rows))
        old = self.owner[slots]
        self.slot[old[old >= 0]] = -1
        self.problem.gram.block(rows, None, out=self.stored[slots[0] : slots[-1] + 1])
        self.slot[rows], self.owner[slots] = slots, rows
        self.next += len(rows)
        return slots
