"""Passes of a perceptron for which rows of K are made when they are needed."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from mercer.engine import threads
from mercer.loops import perceptron as loops
from mercer.solvers.matrix import Array, Vector
from mercer.solvers.online.problem import Expansion, Indices, PerceptronProblem, check_values, values_at_all

# The fewest and the most steps of a stretch, and how many mistakes end it.
_FEWEST, _MOST, _MISTAKES = 256, 4096, 64


def entries_between(held: int, p: int) -> int:
    """Kernel values between the rows of a stretch that are held, for K of p rows of which ``held`` are."""
    return min(_MISTAKES, held) * min(_MOST, p)


class LookAhead:
    """Steps with the values of f at all rows, brought up to date after stretches of them.

    Up to the next mistake the values tell all. From there a stretch of steps is made with the values at its own rows
    alone, for which the erring rows of K between these rows will do, one at a time. Then the erring rows of K are made
    in full, all at once, and added to the values. They are held, the oldest giving way, as far as ``held`` (h, p) goes.
    """

    def __init__(self, problem: PerceptronProblem, expansion: Expansion, held: Array) -> None:
        self.problem, self.expansion, self.held = problem, expansion, held
        p = problem.gram.shape[0]
        self.slot, self.owner, self.next = np.full(p, -1), np.full(len(held), -1), 0
        self.values = values_at_all(problem, expansion)
        self.length = _FEWEST
        self.between = np.zeros(entries_between(len(held), p), dtype=held.dtype)

    def go(self, order: Indices) -> int:
        """One pass; returns the number of updates."""
        problem, count, at = self.problem, 0, 0
        while True:
            threads.checkpoint()
            right = loops.right_ones(self.values, problem.codes, problem.positive, order[at:], float(problem.margin))
            self.expansion.steps += right
            at += right
            if at == len(order):
                check_values(self.values)
                return count
            steps, updates = self._stretch(order[at : at + self.length])
            at += steps
            count += updates

    def _stretch(self, rows: Indices) -> tuple[int, int]:
        """Steps at ``rows``, up to some number of mistakes; returns how many, and the number of updates."""
        expansion, outputs, m = self.expansion, len(self.problem.positive), len(rows)
        theta, lagged = np.zeros((outputs, m)), np.zeros((outputs, m))
        steps, erring, updates = self._steps(rows, theta, lagged)
        wrong = rows[erring]
        expansion.theta[:, wrong] += theta[:, erring]
        expansion.lagged[:, wrong] += lagged[:, erring]
        expansion.steps += steps
        if expansion.record:
            updates[:, 1] = rows[updates[:, 1]]
            expansion.updates = np.vstack([expansion.updates, updates])
        self._add(wrong, theta[:, erring])
        # The next stretch should have about as many mistakes as may be.
        if steps < m:
            self.length = min(max(_FEWEST, 2 * steps), _MOST)
        elif 2 * len(erring) <= _MISTAKES:
            self.length = min(2 * self.length, _MOST)
        return steps, len(updates)

    def _steps(self, rows: Indices, theta: Vector, lagged: Vector) -> tuple[int, list[int], NDArray[np.int64]]:
        """The same with what they change in ``theta`` and ``lagged`` (k, m); also which rows err, and the updates."""
        problem, m = self.problem, len(rows)
        outputs, most = len(theta), min(_MISTAKES, len(self.held), m)
        place, state, inside = np.full(m, -1), np.zeros(3, dtype=np.int64), np.zeros(m, dtype=bool)
        queue, wrong = np.empty(0, dtype=np.int64), np.zeros(outputs, dtype=bool)
        values, updates = self.values[:, rows], np.empty((most * outputs, 4), dtype=np.int64)
        order, codes, erring = np.arange(m), problem.codes[rows], list[int]()
        at = count = 0
        part, K = problem.gram.restrict(rows, rows), self.between[: most * m].reshape(most, m)
        while True:
            at += loops.steps(
                K, place, codes, problem.positive, order[at:], values, theta, lagged, queue, inside, state,
                float(problem.constant), float(problem.margin), self.expansion.steps + at, wrong, updates[count:],
            )  # fmt: skip
            count += int(state[loops.COUNT])
            if at == m or len(erring) == most:
                return at, erring, updates[:count]
            # What lies behind is over, and so is this step.
            row, ahead = K[len(erring)], rows[at + 1 :]
            slot = self.slot[rows[at]]
            if slot >= 0:
                row[at + 1 :] = self.held[slot, ahead]
            elif len(ahead):
                part.fill(slice(at, at + 1), slice(at + 1, m), row[None, at + 1 :])
            place[at] = len(erring)
            erring.append(at)

    def _add(self, rows: Indices, weights: Vector) -> None:
        """Add the rows of K, times ``weights`` (k, e), to the values."""
        constant = float(self.problem.constant)
        there = self.slot[rows] >= 0
        # First those that new rows may drive out.
        if there.any():
            loops.add_rows(self.held, self.slot[rows[there]], weights[:, there], constant, self.values)
        new = rows[~there]
        if len(new):
            loops.add_rows(self.held, self._fetch(new), weights[:, ~there], constant, self.values)

    def _fetch(self, rows: Indices) -> NDArray[np.int64]:
        """Make rows of K; returns their slots."""
        if self.next + len(rows) > len(self.held):
            self.next = 0
        slots = np.arange(self.next, self.next + len(rows))
        old = self.owner[slots]
        self.slot[old[old >= 0]] = -1
        self.problem.gram.block(rows, None, out=self.held[slots[0] : slots[-1] + 1])
        self.slot[rows], self.owner[slots] = slots, rows
        self.next += len(rows)
        return slots
