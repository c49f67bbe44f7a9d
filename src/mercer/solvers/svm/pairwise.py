"""One-vs-one problems over one kernel matrix whose rows are sorted by class.

The block of two different classes belongs to one pair alone; the block of a class with itself is needed by every
pair that the class is in, so it is made once. Tiny pairs go through one compiled loop, small ones run side by side,
one thread each; a large one has all threads to itself.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, replace
from typing import Literal, Protocol

import numpy as np

from mercer._types import Array, Vector
from mercer.engine import memory, settings, threads
from mercer.engine.progress import Progress
from mercer.gram import PrecomputedGram
from mercer.gram.hold import whole_matrix
from mercer.gram.protocol import GramMatrix
from mercer.solvers.svm.box_qp import BoxQP
from mercer.solvers.svm.joined_pair import Blocks, JoinedPair, PairMatrix
from mercer.solvers.svm.pair_answers import Answer, Pair, PairAnswers
from mercer.solvers.svm.picked_pair import PickedPair
from mercer.solvers.svm.smo import EXACT, WHOLE, solve_box_qp
from mercer.solvers.svm.step_rule import StepRule
from mercer.solvers.svm.tiny_pairs import solve_tiny_pairs

__all__ = ["Answer", "Controls", "Method", "Pair", "PairAnswers", "c_svc", "solve_pairs"]

# The most rows of a pair whose matrix is joined row by row; its memory is touched for rows that are used only.
JOINED = 3072


class Method(Protocol):
    """Solves the problem of one pair, of which ``joined`` has the matrix where that is small."""

    def __call__(
        self,
        gram: GramMatrix,
        y: Vector,
        upper: Vector,
        *,
        controls: Controls,
        start: Vector | None,
        joined: PairMatrix | None,
        pair: Pair,
    ) -> Answer: ...


def c_svc(
    gram: GramMatrix,
    y: Vector,
    upper: Vector,
    *,
    controls: Controls,
    start: Vector | None,
    joined: PairMatrix | None,
    pair: Pair,
    start_gradient: Vector | None = None,
) -> Answer:
    """The C-SVC of one pair of classes, by sequential minimal optimisation."""
    steps = 0
    if joined is not None and controls.intercept and controls.max_iter < 0:
        answer = joined.solve(upper, controls.rule, start, start_gradient)
        if answer is not None:
            return answer
        start, start_gradient, steps = joined.reached
    answer = solve_box_qp(
        BoxQP.classification(gram, y, upper, intercept=controls.intercept, convex=controls.convex),
        tol=controls.tol,
        stop=controls.stop,
        max_iter=controls.max_iter,
        cache_bytes=controls.cache_bytes,
        n_jobs=controls.n_jobs,
        start=start,
        start_gradient=start_gradient,
        matrix=None if joined is None else joined.matrix(),
        verbose=controls.verbose,
    )
    certificate = replace(answer.certificate, iterations=answer.certificate.iterations + steps)
    return replace(answer, certificate=certificate)


@dataclass(frozen=True)
class Controls:
    """How the problems are solved; see :func:`mercer.solvers.svm.smo.solve_box_qp`.

    ``starts`` (k - 1, n) holds a feasible beta for each pair, laid out as in
    :class:`mercer.solvers.svm.pair_answers.PairLayout`; ``method`` solves the problem of a pair. With ``nu`` it is the
    nu-SVM with ``upper`` for the weights of the rows, which tiny pairs are then solved as in one compiled loop.
    """

    tol: float
    max_iter: int
    cache_bytes: int
    n_jobs: int | None
    convex: bool
    verbose: bool = False
    stop: Literal["kkt", "gap"] = "kkt"
    intercept: bool = True
    starts: Vector | None = None
    method: Method = c_svc
    nu: float | None = None

    @property
    def rule(self) -> StepRule:
        """The same for compiled loops."""
        limit = self.max_iter if self.max_iter >= 0 else np.iinfo(np.int64).max
        return StepRule(self.tol, self.stop, limit, self.intercept, self.convex)


class _Pairs:
    """The problems, and the parts of the kernel matrix that they share."""

    def __init__(self, gram: GramMatrix, sizes: np.ndarray, upper: Vector, controls: Controls) -> None:
        self.gram, self.upper, self.controls = gram, upper, controls
        self.answers = PairAnswers(sizes)
        self.layout = self.answers.layout
        self.parts = [self.layout.part(group) for group in range(len(sizes))]
        self.left = np.ones(self.layout.pairs, dtype=bool)
        self.first, self.second = np.triu_indices(self.layout.k, 1)
        self.rows = self.layout.sizes[self.first] + self.layout.sizes[self.second]
        self.joint: Array | None = None
        self.blocks: Blocks | None = None
        self._progress = Progress(self.layout.pairs, "one-vs-one problems", controls.verbose)

    def of_size(self, above: int, most: float) -> list[Pair]:
        """The pairs that are left with more than ``above`` and at most ``most`` rows."""
        chosen = self.left & (self.rows > above) & (self.rows <= most)
        return list(zip(self.first[chosen].tolist(), self.second[chosen].tolist()))

    def deal(self, pairs: list[Pair]) -> tuple[list[Pair], list[Pair]]:
        """Large pairs that are to have all threads, and those that run side by side, the largest first.

        Side by side no thread waits for the serial parts of a pair; but the last pairs to end leave threads idle,
        so none may be more than a thread's share of the work, and the kept rows of all must fit the budget.
        """
        if not pairs:
            return [], []
        workers = settings.resolve_jobs(self.controls.n_jobs)
        if workers * self.controls.cache_bytes > memory.budget() // 2:
            return pairs, []
        rows = {pair: int(self.layout.sizes[list(pair)].sum()) for pair in pairs}
        pairs = sorted(pairs, key=lambda pair: -rows[pair])
        left = sum(rows.values())
        for position, pair in enumerate(pairs):
            if rows[pair] * workers <= left:
                return pairs[:position], pairs[position:]
            left -= rows[pair]
        return pairs, []

    def solve_tiny(self) -> None:
        """All at once what pairs are tiny and easy."""
        controls = self.controls
        # The compiled loops know these two; that of the nu-SVM begins anew.
        known = controls.method is c_svc if controls.nu is None else controls.starts is None
        if not known:
            return
        start = self.answers.beta if controls.starts is None else controls.starts
        self.left = ~solve_tiny_pairs(
            self.gram,
            self.upper,
            start,
            self.answers,
            controls.rule,
            controls.n_jobs,
            self._progress.advance,
            controls.nu,
        )
        if controls.nu is None:
            self.answers.state[...] = self.answers.beta

    def task(self, pair: Pair) -> Callable[[], None]:
        return lambda: self.solve(pair)

    def solve(self, pair: Pair) -> None:
        rows, controls = self.layout.rows(pair), self.controls
        y = np.repeat([1.0, -1.0], self.layout.sizes[list(pair)])
        gram = self.gram
        if self.joint is not None:
            gram = PrecomputedGram(self.joint[np.ix_(rows, rows)])
        elif self.layout.pairs > 1:
            gram = gram.restrict(rows, rows)
        answer = controls.method(
            gram,
            y,
            self.upper[rows],
            pair=pair,
            controls=controls,
            start=None if controls.starts is None else self.layout.take(controls.starts, pair),
            joined=self._joined(pair, gram),
        )
        self.answers.put(pair, answer)
        self._progress.advance()

    def _joined(self, pair: Pair, gram: GramMatrix) -> PairMatrix | None:
        parts = [self.parts[group] for group in pair]
        if self.blocks is not None:
            return JoinedPair(self.blocks, pair, parts)
        first, second = (part.stop - part.start for part in parts)
        if isinstance(gram, PrecomputedGram) and EXACT < first + second <= JOINED:
            return PickedPair(gram, (first, second))
        return None

    def share_joint_matrix(self, pairs: list[Pair], held: ExitStack) -> None:
        """Make the whole matrix, in float64, where many tiny problems share a small one."""
        n = self.gram.shape[0]
        if len(pairs) < 2 or n > WHOLE or 8 * n * n > memory.budget() // 2:
            return
        held.enter_context(memory.reserve(8 * n * n, "the kernel matrix of all classes"))
        self.joint = whole_matrix(self.gram, np.float64)
        held.callback(setattr, self, "joint", None)

    def share_own_blocks(self, pairs: list[Pair], held: ExitStack) -> None:
        """Make the blocks of the classes with themselves, in float32, unless they do not fit or K is there already."""
        if isinstance(self.gram, PrecomputedGram):
            return
        needed = sorted({group for pair in pairs for group in pair})
        lengths = {group: self.parts[group].stop - self.parts[group].start for group in needed}
        nbytes = sum(4 * length**2 for length in lengths.values())
        if nbytes > memory.budget() // 2:
            return
        held.enter_context(memory.reserve(nbytes, "the kernel blocks of the classes"))
        own = {group: np.empty((length, length), np.float32) for group, length in lengths.items()}
        self.blocks = Blocks(self.gram.astype(np.float32), self.gram.astype(np.float64), own)
        held.callback(setattr, self, "blocks", None)
        single = self.blocks.single

        def make(group: int) -> Callable[[], None]:
            def fill() -> None:
                single.block(self.parts[group], self.parts[group], out=own[group])

            return fill

        threads.run([make(group) for group in needed], self.controls.n_jobs)


def solve_pairs(gram: GramMatrix, sizes: np.ndarray, upper: Vector, controls: Controls) -> PairAnswers:
    """Solve the C-SVC of every pair of classes, in the order (0, 1), (0, 2), ..., (1, 2), ...

    Parameters
    ----------
    gram : GramMatrix
        K of all rows, those of the first class first, and so on.
    sizes : ndarray of shape (k,)
        Rows of each class.
    upper : ndarray of shape (n,)
        Bounds of the rows.
    controls : Controls
        Tolerance, limits, threads.

    Returns
    -------
    PairAnswers
        The first class of a pair has the signs y = +1, its second y = -1.
    """
    problems = _Pairs(gram, sizes, upper, controls)
    problems.solve_tiny()
    if not problems.left.any():
        return problems.answers
    tiny, small = problems.of_size(0, EXACT), problems.of_size(EXACT, JOINED)
    with ExitStack() as held:
        problems.share_joint_matrix(tiny, held)
        threads.run([problems.task(pair) for pair in tiny], controls.n_jobs)
    with ExitStack() as held:
        problems.share_own_blocks(small, held)
        threads.run([problems.task(pair) for pair in small], controls.n_jobs)
    alone, together = problems.deal(problems.of_size(JOINED, np.inf))
    for pair in alone:
        problems.solve(pair)
    threads.run([problems.task(pair) for pair in together], controls.n_jobs)
    return problems.answers
