"""Steps of an online learner at some rows, for which kernel values with each other and the support are evaluated."""

from __future__ import annotations

from functools import partial

import numpy as np

from mercer._types import Integers, Vector
from mercer.engine import memory, threads
from mercer.engine.tiles import spans
from mercer.gram.protocol import GramMatrix
from mercer.loops import online as loops
from mercer.solvers.online.given import go_through
from mercer.solvers.online.independent import independent_points, project
from mercer.solvers.online.state import OnlineProblem, OnlineState

# Rows whose projections are found in one product of matrices.
_STRIP = 64


class Chunk:
    """Some rows and the support, with K between them."""

    def __init__(
        self,
        problem: OnlineProblem,
        gram: GramMatrix,
        state: OnlineState,
        now: Integers,
        diagonal: Vector,
        n_jobs: int | None,
    ) -> None:
        self.problem, self.gram, self.state, self.now, self.n_jobs = problem, gram, state, now, n_jobs
        self.union = np.concatenate([now, np.setdiff1d(state.rows, now, assume_unique=True)])
        place = np.full(len(diagonal), -1)
        place[self.union] = np.arange(len(self.union))
        self.members = place[state.rows]
        self.diagonal = diagonal[self.union]
        self.theta = np.zeros((len(state.bias), len(self.union)))
        self.theta[:, self.members] = state.theta
        self.born = np.zeros(len(self.union), dtype=np.int64)
        self.born[self.members] = state.born
        self.inside = np.zeros(len(self.union), dtype=bool)
        self.inside[self.members] = True
        self.counts, self.numbers = np.array([len(self.members), 0], dtype=np.int64), np.array([1.0, 0.0])

    def go(self, targets: Vector, rates: Vector, projects: bool) -> float:
        """The steps; returns the sum of the losses."""
        state, n, p = self.state, len(self.now), len(self.union)
        with memory.reserve(8 * n * p, "a block of kernel values"):
            rows = np.empty((n, p))
            self.gram.block(self.now, self.union, out=rows)
            # The inverse is there from the first projection on.
            count = 0 if projects and len(state.inverse) else self._steps(rows, targets[self.now], rates)
            if count < n:
                self._project(rows, targets[self.now], rates, count)
        state.rows, state.born = self.union[self.members], self.born[self.members]
        state.theta = self.theta[:, self.members] * self.numbers[loops.SCALE]
        state.changes += int(self.counts[loops.CHANGES])
        state.steps += n
        return float(self.numbers[loops.LOSS])

    def _steps(self, rows: Vector, targets: Vector, rates: Vector) -> int:
        """Steps without projections, as far as they go; returns how many."""
        problem, state = self.problem, self.state
        state.inverse = np.zeros((0, 0))
        stream = loops.Stream(rows, np.arange(len(rows)), rates, state.steps + 1)
        rule, expansion = problem.rule(), self._expansion()

        def steps(targets: Vector, start: int, end: int) -> int:
            return loops.steps(stream, targets, rule, expansion, start, end)

        count = go_through(problem.loss, steps, lambda s: self._value(rows[s]), targets, self.numbers)
        self.members = np.flatnonzero(self.inside)
        return count

    def _expansion(self) -> loops.Expansion:
        state = self.state
        own = self.born, self.inside, self.diagonal, self.counts, self.numbers
        return loops.Expansion(self.theta, state.bias, state.lost, *own)

    def _value(self, row: Vector) -> Vector:
        """f at a row with these kernel values, (k,)."""
        return np.asarray(self.state.bias + self.numbers[loops.SCALE] * (self.theta @ row))

    def _project(self, rows: Vector, targets: Vector, rates: Vector, start: int) -> None:
        """Steps with projections, from the row ``start`` on."""
        problem, state, n = self.problem, self.state, len(rows)
        assert problem.budget is not None
        budget = problem.budget
        if not len(state.inverse) or state.stale > budget:
            self._refactor()
        with memory.reserve(8 * budget * (budget + n), "the inverse of the support's kernel matrix, and shares"):
            shares, Q, m = np.zeros((n, budget)), state.inverse, len(self.members)
            if m < budget:
                Q = np.zeros((budget, budget))
                Q[:m, :m] = state.inverse

            def strip(part: slice) -> None:
                shares[part, :m] = rows[part, self.members] @ state.inverse

            threads.run([partial(strip, part) for part in spans(n, _STRIP) if part.stop > start], self.n_jobs)
            members = np.zeros(budget, dtype=np.int64)
            members[:m] = self.members
            before, support = int(self.counts[loops.CHANGES]), loops.Support(members, Q, shares, np.zeros(budget))
            stream = loops.Stream(rows, np.arange(n), rates, state.steps + 1)
            rule, expansion = problem.rule(), self._expansion()

            def steps(targets: Vector, start: int, end: int) -> int:
                loops.projected_steps(stream, targets, rule, expansion, support, start, end)
                return end

            go_through(problem.loss, steps, lambda s: self._value(rows[s]), targets, self.numbers, start)
            size = int(self.counts[loops.SIZE])
            state.stale += int(self.counts[loops.CHANGES]) - before
            state.inverse = Q if size == budget else Q[:size, :size].copy()
        self.members = members[:size]

    def _refactor(self) -> None:
        """Compute the inverse anew; points that depend on the others are projected on these."""
        state, members, m = self.state, self.members, len(self.members)
        with memory.reserve(8 * 3 * m * m, "the kernel matrix of the support, its factor and its inverse"):
            rows = self.union[members]
            K = np.empty((m, m))
            self.gram.block(rows, rows, out=K)
            basis, state.inverse = independent_points(K, loops.DEPENDENT)
            state.stale = 0
            theta, lost = project(K, basis, state.inverse, self.theta[:, members])
        state.lost += self.numbers[loops.SCALE] * lost
        self.theta[:, members] = 0.0
        self.inside[members] = False
        self.members = members[basis]
        self.theta[:, self.members] = theta
        self.inside[self.members] = True
        self.counts[loops.SIZE] = len(basis)
        self.counts[loops.CHANGES] += m - len(basis)
