"""The perceptron in the space of a kernel: passes over the rows with an expansion that grows by one at each mistake."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from mercer._errors import DataError, NumericalError, ParameterError
from mercer.engine import memory, threads
from mercer.engine.progress import Progress
from mercer.engine.tiles import spans
from mercer.loops import perceptron as loops
from mercer.solvers.matrix import GramMatrix, Vector

Indices = NDArray[np.integer]

# How many steps ahead it is found out which rows of K will be needed, the fewest rows that are held, steps between two
# looks for Ctrl-C, and the least chunk with a budget.
_AHEAD, _LEAST, _STEPS, _CHUNK = 512, 16, 1024, 512
# A matrix up to this size is made as a whole, half of it by symmetry.
_WHOLE_BYTES = 2**25


@dataclass(frozen=True, eq=False)
class PerceptronProblem:
    r"""Rows to be told apart by :math:`f(x) = \sum_i \theta_i (k(x_i, x) + c)`, one f for each of k outputs.

    Parameters
    ----------
    gram : GramMatrix
        K, symmetric, (p, p). Its first n rows are visited; the others may be in the expansion.
    codes : ndarray of shape (n,)
        The class of each row that is visited.
    positive : ndarray of shape (k,)
        For each output the class for which y = +1; y = -1 for all others.
    constant : float, default=0.0
        c, 1 for a bias.
    margin : float, default=0.0
        A row is learned from where ``y f(x) <= margin``.
    budget : int, optional
        The most rows in the expansion; the one that entered first makes room for a new one.

    Raises
    ------
    DataError
        If there are more codes than rows.
    ParameterError
        If the margin is negative or the budget below 1.
    """

    gram: GramMatrix
    codes: Indices
    positive: Indices
    constant: float = 0.0
    margin: float = 0.0
    budget: int | None = None

    def __post_init__(self) -> None:
        if len(self.codes) > self.gram.shape[0]:
            raise DataError(f"there are {len(self.codes)} codes, and the matrix has {self.gram.shape[0]} rows.")
        if not 0 <= self.margin < np.inf:
            raise ParameterError(f"margin must be a finite number of 0 or more, and is {self.margin!r}.")
        if self.budget is not None and self.budget < 1:
            raise ParameterError(f"budget must be 1 or more, and is {self.budget!r}.")


@dataclass
class Expansion:
    """What perceptrons have learned so far.

    ``theta`` (k, p) weighs the rows; ``lagged`` (k, p) is the sum of its changes, each times the steps before it;
    ``queue`` holds the rows of the expansion from the oldest on, where there is a budget. ``updates`` (u, 4) are step,
    row, output and sign of each change, if ``record`` is set.
    """

    theta: Vector
    lagged: Vector
    steps: int = 0
    queue: NDArray[np.int64] = field(default_factory=lambda: np.empty(0, dtype=np.int64))
    updates: NDArray[np.int64] = field(default_factory=lambda: np.empty((0, 4), dtype=np.int64))
    record: bool = False

    @classmethod
    def empty(cls, outputs: int, p: int, record: bool = False) -> Expansion:
        """Of functions that are zero."""
        return cls(np.zeros((outputs, p)), np.zeros((outputs, p)), record=record)

    def mean(self) -> Vector:
        """The mean of theta after each of the steps, (k, p)."""
        return self.theta - self.lagged / max(self.steps, 1)


def make_passes(
    problem: PerceptronProblem, expansion: Expansion, max_iter: int, rng: np.random.RandomState | None = None,
    verbose: bool = False,
) -> NDArray[np.int64]:  # fmt: skip
    """Go through the rows up to ``max_iter`` times, until a pass has no mistake; changes ``expansion``.

    Without a budget the values of f at all rows are kept: a step without a mistake costs nothing, and one with a
    mistake adds a row of K to them, (p) operations. Rows of K are made when they are first needed: K between
    the next few hundred rows tells which of them will err, and these are made together. They are held as far as half
    of the memory budget goes. With a budget B the rows are taken in chunks of B or more, and K is
    evaluated between those of a chunk and the support.

    Parameters
    ----------
    problem : PerceptronProblem
    expansion : Expansion
        Where to begin.
    max_iter : int
        The most passes.
    rng : RandomState, optional
        Draws the order of each pass; None keeps the rows in theirs.
    verbose : bool, default=False
        Show progress on standard error.

    Returns
    -------
    ndarray of shape (passes,)
        The updates of each pass, over all outputs.

    Raises
    ------
    MemoryBudgetError
        If not even a few rows of K fit the budget.
    NumericalError
        If values overflow.

    References
    ----------
    Freund and Schapire (1999), "Large margin classification using the perceptron algorithm", Machine Learning 37;
    Daume, "A course in machine learning", algorithm 30.

    Examples
    --------
    >>> from mercer.gram import PrecomputedGram
    >>> x = np.array([1.0, 2.0, -1.0])
    >>> problem = PerceptronProblem(PrecomputedGram(np.outer(x, x)), np.array([1, 1, 0]), np.array([1]))
    >>> found = Expansion.empty(1, 3)
    >>> make_passes(problem, found, 10).tolist(), found.theta.tolist()
    ([1, 0], [[1.0, 0.0, 0.0]])
    """
    progress = Progress(max_iter, "passes", verbose)
    n = len(problem.codes)
    by_chunks = problem.budget is not None and not _fits_whole(problem.gram)
    counts: list[int] = []
    with _opened(problem, expansion, by_chunks) as walk:
        while len(counts) < max_iter and (not counts or counts[-1]):
            order = np.arange(n) if rng is None else rng.permutation(n)
            counts.append(_by_chunks(problem, expansion, order) if walk is None else walk.go(order))
            progress.advance()
    return np.array(counts, dtype=np.int64)


def _fits_whole(gram: GramMatrix) -> bool:
    return gram.shape[0] ** 2 * np.dtype(gram.dtype).itemsize <= min(_WHOLE_BYTES, memory.budget() // 2)


@contextmanager
def _opened(problem: PerceptronProblem, expansion: Expansion, by_chunks: bool) -> Iterator[_Walk | None]:
    """The walk over all rows with memory for their kernel values; none where each chunk has one of its own."""
    if by_chunks:
        yield None
        return
    gram = problem.gram
    p, size = gram.shape[0], np.dtype(gram.dtype).itemsize
    whole = problem.budget is not None or _fits_whole(gram)
    held = p if whole else min(p, max(_LEAST, memory.budget() // 2 // (p * size)))
    with memory.reserve(held * p * size, "the kernel matrix" if held == p else "a block of kernel rows"):
        yield _Walk(problem, expansion, np.empty((held, p), dtype=gram.dtype), whole)


def _by_chunks(problem: PerceptronProblem, expansion: Expansion, order: Indices) -> int:
    """A pass inside a budget, for which only the support and the rows of one chunk matter at a time."""
    assert problem.budget is not None
    count = 0
    for chunk in spans(len(order), max(_CHUNK, problem.budget)):
        now = order[chunk]
        others = expansion.queue[~np.isin(expansion.queue, now)]
        union = np.concatenate([now, others])
        place = np.full(problem.gram.shape[0], -1)
        place[union] = np.arange(len(union))
        part = PerceptronProblem(
            problem.gram.restrict(union, union), problem.codes[now], problem.positive, problem.constant,
            problem.margin, problem.budget,
        )  # fmt: skip
        local = Expansion(
            expansion.theta[:, union], expansion.lagged[:, union], expansion.steps, place[expansion.queue]
        )
        with _opened(part, local, by_chunks=False) as walk:
            assert walk is not None
            count += walk.go(np.arange(len(now)))
        expansion.theta[:, union], expansion.lagged[:, union] = local.theta, local.lagged
        expansion.steps, expansion.queue = local.steps, union[local.queue]
    return count


class _Walk:
    """Steps with the values of f at all rows, and the rows of K that are held."""

    def __init__(self, problem: PerceptronProblem, expansion: Expansion, held: np.ndarray, whole: bool) -> None:
        self.problem, self.expansion, self.held = problem, expansion, held
        p = problem.gram.shape[0]
        self.slot, self.owner, self.next = np.full(p, -1), np.full(len(held), -1), 0
        if whole:
            # One object for both sides: half of a symmetric matrix is enough.
            problem.gram.block(None, None, out=held)
            self.slot[:] = np.arange(p)
        self.values = self._values()
        self.queue = np.zeros(problem.budget or 0, dtype=np.int64)
        self.inside = np.zeros(p, dtype=bool)
        size = len(expansion.queue) if problem.budget else 0
        if size:
            self.queue[:size] = expansion.queue
            self.inside[expansion.queue] = True
        self.state = np.array([0, size, 0], dtype=np.int64)

    def _values(self) -> Vector:
        """f at all rows, (k, p)."""
        theta = self.expansion.theta
        used = np.flatnonzero(theta.any(axis=0))
        if not len(used):
            return np.zeros(theta.shape)
        weights = np.ascontiguousarray(theta[:, used].T)
        values = np.asarray(self.problem.gram.restrict(None, used) @ weights, dtype=np.float64).T
        return np.ascontiguousarray(values + self.problem.constant * weights.sum(axis=0)[:, None])

    def go(self, order: Indices) -> int:
        """One pass; returns the number of updates."""
        problem, expansion = self.problem, self.expansion
        outputs = len(problem.positive)
        erring = np.zeros(outputs, dtype=bool)
        updates = np.empty((min(_STEPS, len(order)) * outputs, 4), dtype=np.int64)
        count = 0
        for chunk in spans(len(order), _STEPS):
            threads.checkpoint()
            rest = order[chunk]
            while len(rest):
                done = loops.steps(
                    self.held, self.slot, problem.codes, problem.positive, rest, self.values, expansion.theta,
                    expansion.lagged, self.queue, self.inside, self.state, float(problem.constant),
                    float(problem.margin), expansion.steps, erring, updates,
                )  # fmt: skip
                made = int(self.state[loops.COUNT])
                count += made
                if expansion.record and made:
                    expansion.updates = np.vstack([expansion.updates, updates[:made]])
                expansion.steps += done
                rest = rest[done:]
                if len(rest):
                    self._fetch(order[chunk.stop - len(rest) :][:_AHEAD])
        if not np.isfinite(self.values).all():
            raise NumericalError("the values of f overflow float64; scale the kernel or the columns of X.")
        if problem.budget:
            head, size = self.state[:2]
            expansion.queue = self.queue[(head + np.arange(size)) % len(self.queue)]
        return count

    def _fetch(self, ahead: Indices) -> None:
        """Make the rows of K that the steps ``ahead`` need; the first of them needs one."""
        wanted = self._to_err(ahead)[: len(self.held)]
        if self.next + len(wanted) > len(self.held):
            self.next = 0
        places = np.arange(self.next, self.next + len(wanted))
        old = self.owner[places]
        self.slot[old[old >= 0]] = -1
        self.problem.gram.block(wanted, None, out=self.held[places[0] : places[-1] + 1])
        self.slot[wanted], self.owner[places] = places, wanted
        self.next += len(wanted)

    def _to_err(self, ahead: Indices) -> Indices:
        """The rows among those ``ahead`` that will err, in order, but for those that are held.

        The same steps are made on a copy, for which K between these rows is all that matters.
        """
        problem, m = self.problem, len(ahead)
        outputs = len(problem.positive)
        nothing = np.zeros(outputs, dtype=bool)
        updates, state = np.empty((m * outputs, 4), dtype=np.int64), np.zeros(3, dtype=np.int64)
        with memory.reserve(m * m * self.held.itemsize, "a block of kernel values"):
            loops.steps(
                problem.gram.block(ahead, ahead), np.arange(m), problem.codes[ahead], problem.positive, np.arange(m),
                self.values[:, ahead], np.zeros((outputs, m)), np.zeros((outputs, m)), np.zeros(0, dtype=np.int64),
                np.zeros(m, dtype=bool), state, float(problem.constant), float(problem.margin), 0, nothing, updates,
            )  # fmt: skip
        erring = ahead[np.unique(updates[: state[loops.COUNT], 1])]
        return erring[self.slot[erring] < 0]
