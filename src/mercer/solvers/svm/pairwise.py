"""One-vs-one problems over one kernel matrix whose rows are sorted by class.

The block of two different classes belongs to one pair alone; the block of a class with itself is needed by every
pair that the class is in, so it is made once. Tiny pairs go through one compiled loop, small ones run side by side,
one thread each; a large one has all threads to itself.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from mercer._types import Array, Vector
from mercer.engine import memory, settings, threads
from mercer.engine.progress import Progress
from mercer.engine.trace import wanted
from mercer.gram import PrecomputedGram
from mercer.gram.evaluated import compact
from mercer.gram.hold import fits, reserve_whole, whole_matrix
from mercer.gram.protocol import GramMatrix
from mercer.solvers.svm.joined_pair import Blocks, JoinedPair, PairMatrix
from mercer.solvers.svm.pair_answers import Pair, PairAnswers
from mercer.solvers.svm.pair_problem import PairMachine, PairProblem
from mercer.solvers.svm.picked_pair import PickedPair
from mercer.solvers.svm.smo import EXACT, WHOLE
from mercer.solvers.svm.solver import Start
from mercer.solvers.svm.tiny_pairs import solve_tiny_pairs
from mercer.solvers.svm.warm_starts import WarmStarts, outward

# The most rows of a pair whose matrix is joined row by row; its memory is touched for rows that are used only. Fits of
# letter and usps are 2.35 and 1.64 times as fast with it, and fits on given matrices 1.35 times.
JOINED = 3072
# The same for a path on a stored matrix. Of more rows, a copy in float32 for all problems of the path takes less time
# than steps on rows in float64, each picked when it is first needed.
PICKED_ALONG = 2048


class _Pairs:
    """The problems, and the parts of the kernel matrix that they share.

    Each is solved by one machine after the other, with the bounds that belong to it.
    """

    def __init__(
        self, gram: GramMatrix, sizes: np.ndarray, uppers: list[Vector], machines: Sequence[PairMachine], convex: bool
    ) -> None:
        self.gram, self.uppers, self.machines, self.convex = gram, uppers, machines, convex
        self.solver = machines[0].solver
        self.every = [PairAnswers(sizes) for _ in machines]
        self.answers = self.every[0]
        self.starts: Vector | None = None
        self.layout = self.answers.layout
        self.parts = [self.layout.part(group) for group in range(len(sizes))]
        self.left = np.ones(self.layout.pairs, dtype=bool)
        self.first, self.second = self.layout.classes
        self.rows = self.layout.sizes[self.first] + self.layout.sizes[self.second]
        self.joint: Array | None = None
        self.blocks: Blocks | None = None
        self._progress = Progress(self.layout.pairs, "one-vs-one problems", self.solver.verbose)

    def of_size(self, above: int, most: float) -> list[Pair]:
        """Return the remaining pairs with more than ``above`` and at most ``most`` rows."""
        mask = self.left & (self.rows > above) & (self.rows <= most)
        return list(zip(self.first[mask].tolist(), self.second[mask].tolist()))

    def deal(self, pairs: list[Pair]) -> tuple[list[Pair], list[Pair]]:
        """Return the large pairs that use all threads one by one, and those that run in parallel, the largest first.

        Side by side no thread waits for the serial parts of a pair; but the last pairs to end leave threads idle,
        so none may be more than a thread's share of the work, and the kept rows of all must fit the budget.
        """
        if not pairs:
            return [], []
        workers = settings.resolve_jobs(self.solver.n_jobs)
        if not fits(2 * workers * self.solver.kept_bytes):
            return pairs, []
        rows = {pair: int(self.layout.sizes[list(pair)].sum()) for pair in pairs}
        pairs = sorted(pairs, key=lambda pair: -rows[pair])
        left = sum(rows.values())
        for position, pair in enumerate(pairs):
            if rows[pair] * workers <= left:
                return pairs[:position], pairs[position:]
            left -= rows[pair]
        return pairs, []

    def solve_all(self) -> None:
        """Solve every pair: tiny ones in one loop unless traces are requested, small in parallel, large one by one."""
        n_jobs = self.solver.n_jobs
        if len(self.machines) > 1:
            if self.gram.stored() is not None and all(machine.is_compiled(from_zero=True) for machine in self.machines):
                self._solve_tiny_paths()
        elif self.machines[0].is_compiled(from_zero=self.starts is None) and not wanted():
            self.left = ~self._solve_tiny(0, self.answers.beta if self.starts is None else self.starts)
        if not self.left.any():
            return
        tiny, small = self.of_size(0, EXACT), self.of_size(EXACT, JOINED)
        with ExitStack() as stack:
            self.share_joint_matrix(tiny, stack)
            # Each thread has the matrix of its pair; others wait where not all have room.
            threads.run([partial(self.solve, pair) for pair in tiny], self._workers(tiny, 16))
        with ExitStack() as stack:
            self.share_own_blocks(small, stack)
            threads.run([partial(self.solve, pair) for pair in small], self._workers(small, 8))
        alone, together = self.deal(self.of_size(JOINED, np.inf))
        for pair in alone:
            self.solve(pair)
        threads.run([partial(self.solve, pair) for pair in together], n_jobs)

    def _workers(self, pairs: list[Pair], each: int) -> int:
        """Threads for pairs whose matrices have ``each`` bytes an entry, with what is made from them."""
        most = max((int(self.layout.sizes[list(pair)].sum()) for pair in pairs), default=0)
        return memory.workers(each * most**2, self.solver.n_jobs)

    def _solve_tiny(self, number: int, start: Vector) -> NDArray[np.bool_]:
        """Solve all tiny and easy pairs together for one machine; return which pairs are solved."""
        answers, rule = self.every[number], self.machines[number].rule(self.convex)
        advance = self._progress.advance if len(self.machines) == 1 else _ignored
        solved = solve_tiny_pairs(self.gram, self.uppers[number], start, answers, rule, self.solver.n_jobs, advance)
        if rule.nu is None:
            answers.state[...] = answers.beta
        return solved

    def _solve_tiny_paths(self) -> None:
        """Solve tiny pairs for one machine after the other, each from the scaled answer for its neighbour.

        Only on a stored matrix: of a lazy one each machine would compute the entries anew.
        """
        every = np.ones(self.layout.pairs, dtype=bool)
        for number, before in outward(len(self.machines)):
            start = self.every[number].beta
            if before is not None:
                # The same for all rows along C; the smallest is feasible in any case.
                scale = float((self.uppers[number] / self.uppers[before]).min())
                start = scale * self.every[before].beta
            every &= self._solve_tiny(number, start)
        self.left = ~every
        self._progress.advance(int(every.sum()))

    def solve(self, pair: Pair) -> None:
        rows = self.layout.rows(pair)
        y = np.repeat([1.0, -1.0], self.layout.sizes[list(pair)])
        gram = self.gram
        if self.joint is not None:
            gram = PrecomputedGram(self.joint[np.ix_(rows, rows)])
        elif self.layout.pairs > 1:
            gram = gram.restrict(rows, rows)
        problem = PairProblem(gram, y, self.uppers[0][rows], self.convex, self._joined(pair, gram), pair)
        if len(self.machines) == 1:
            start = Start(None if self.starts is None else self.layout.take(self.starts, pair))
            self.answers.put(pair, self.machines[0].solve(problem, start))
        else:
            self._solve_path(problem, rows)
        self._progress.advance()

    def _solve_path(self, problem: PairProblem, rows: np.ndarray) -> None:
        """Solve one pair for each machine in turn, each from the answer of a neighbour."""
        with ExitStack() as stack:
            begin = WarmStarts(stack)
            if problem.joined is None and len(rows) <= EXACT:
                problem = replace(problem, gram=PrecomputedGram(begin.matrix(problem.gram)))
            elif problem.joined is None:
                problem = replace(problem, gram=compact(problem.gram, stack))
            trails: dict[int, WarmStarts] = {}
            for number, before in outward(len(self.machines)):
                machine, problem = self.machines[number], replace(problem, upper=self.uppers[number][rows])
                warm_starts = trails[number] = begin if before is None else copy.copy(trails[before])
                box = machine.box(problem)
                # Weights that must have other sums are scaled by the machine.
                answer = machine.solve(problem, warm_starts.start(box, lambda beta, _: beta))
                warm_starts.keep(box, answer.value)
                self.every[number].put(problem.pair, answer)

    def _joined(self, pair: Pair, gram: GramMatrix) -> PairMatrix | None:
        # Compiled loops for both classes do not report their steps.
        if wanted():
            return None
        parts = [self.parts[group] for group in pair]
        if self.blocks is not None:
            return JoinedPair(self.blocks, pair, parts)
        first, second = (part.stop - part.start for part in parts)
        most = JOINED if len(self.machines) == 1 else PICKED_ALONG
        if gram.stored() is not None and EXACT < first + second <= most:
            return PickedPair(gram, (first, second))
        return None

    def share_joint_matrix(self, pairs: list[Pair], stack: ExitStack) -> None:
        """Compute the whole matrix in float64, if many tiny problems share a small one."""
        n = self.gram.shape[0]
        if len(pairs) < 2 or n > WHOLE:
            return
        what = "the kernel matrix of all classes"
        dtype, _ = reserve_whole((n, n), stack, {np.float64: 8 * n * n}, what=what)
        if dtype is None:
            return
        self.joint = whole_matrix(self.gram, dtype)
        stack.callback(setattr, self, "joint", None)

    def share_own_blocks(self, pairs: list[Pair], stack: ExitStack) -> None:
        """Compute the diagonal blocks of the classes in float32, unless they do not fit or K is stored."""
        if self.gram.stored() is not None:
            return
        needed = sorted({group for pair in pairs for group in pair})
        lengths = {group: self.parts[group].stop - self.parts[group].start for group in needed}
        nbytes = sum(4 * length**2 for length in lengths.values())
        if not fits(2 * nbytes):
            return
        stack.enter_context(memory.reserve(nbytes, "the kernel blocks of the classes"))
        own = {group: np.empty((length, length), np.float32) for group, length in lengths.items()}
        self.blocks = Blocks(self.gram.astype(np.float32), self.gram.astype(np.float64), own)
        stack.callback(setattr, self, "blocks", None)
        single = self.blocks.single

        def make(group: int) -> Callable[[], None]:
            def fill() -> None:
                single.block(self.parts[group], self.parts[group], out=own[group])

            return fill

        threads.run([make(group) for group in needed], self.solver.n_jobs)


def _ignored(count: int) -> None:
    """Progress of one of several machines, which is not counted."""


def solve_pairs(
    gram: GramMatrix,
    sizes: np.ndarray,
    upper: Vector,
    machine: PairMachine,
    *,
    convex: bool = True,
    starts: Vector | None = None,
) -> PairAnswers:
    """Solve the problem of every pair of classes, in the order (0, 1), (0, 2), ..., (1, 2), ...

    Parameters
    ----------
    gram : GramMatrix
        K of all rows, those of the first class first, and so on.
    sizes : ndarray of shape (k,)
        Rows of each class.
    upper : ndarray of shape (n,)
        Bounds of the rows.
    machine : PairMachine
        Solves the problem of a pair.
    convex : bool, default=True
        Whether the problems are convex.
    starts : ndarray of shape (k - 1, n), optional
        A feasible beta for each pair, laid out as in :class:`mercer.solvers.svm.pair_answers.PairLayout`.

    Returns
    -------
    PairAnswers
        The first class of a pair has the signs y = +1, its second y = -1.
    """
    problems = _Pairs(gram, sizes, [upper], [machine], convex)
    problems.starts = starts
    problems.solve_all()
    return problems.answers


def solve_pairs_along(
    gram: GramMatrix, sizes: np.ndarray, uppers: list[Vector], machines: Sequence[PairMachine], *, convex: bool = True
) -> list[PairAnswers]:
    """Solve every pair for each of several ``machines``, whose bounds are ``uppers``, while its matrix is in memory.

    The machines are in ascending order of a parameter, so that the answer for one value starts the next; the other
    parameters are those of :func:`solve_pairs`.
    """
    problems = _Pairs(gram, sizes, uppers, machines, convex)
    problems.solve_all()
    return problems.every
