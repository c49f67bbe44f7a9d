"""The perceptron in the space of a kernel: passes over the rows with an expansion that grows by one at each mistake."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, nullcontext
from math import isqrt

import numpy as np
from numpy.typing import NDArray

from mercer._types import Array, Integers
from mercer.engine import memory, threads
from mercer.engine.progress import Progress
from mercer.engine.tiles import spans
from mercer.engine.trace import record
from mercer.gram.hold import REMEDY, capacity, hold, is_small
from mercer.gram.protocol import GramMatrix
from mercer.loops import perceptron as loops
from mercer.solvers.online.look_ahead import LookAhead, entries
from mercer.solvers.online.problem import PerceptronProblem, PerceptronState, check_values, values_at_all

# Steps between two checks for Ctrl-C, and the least chunk with a budget, if it fits the memory, and if it does not.
_STEPS, _CHUNK, _SMALLEST = 1024, 512, 16


def make_passes(
    problem: PerceptronProblem,
    expansion: PerceptronState,
    max_iter: int,
    rng: np.random.RandomState | None = None,
    n_jobs: int | None = None,
    verbose: bool = False,
) -> NDArray[np.int64]:
    """Go through the rows up to ``max_iter`` times, until a pass has no mistake; changes ``expansion``.

    Without a budget the values of f at all rows are kept: a step without a mistake costs nothing, and those with a
    mistake add their rows of K to them (:class:`LookAhead`). With a budget B the rows are taken in chunks of B or more,
    and K is evaluated between those of a chunk and the support.

    Parameters
    ----------
    problem : PerceptronProblem
    expansion : PerceptronState
        Where to begin.
    max_iter : int
        The most passes.
    rng : RandomState, optional
        Draws the order of each pass; None keeps the rows in theirs.
    n_jobs : int, optional
        Threads.
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
    >>> state = PerceptronState.empty(1, 3)
    >>> make_passes(problem, state, 10).tolist(), state.theta.tolist()
    ([1, 0], [[1.0, 0.0, 0.0]])
    """
    progress = Progress(max_iter, "passes", verbose)
    n = len(problem.codes)
    by_chunks = problem.budget is not None and not _is_whole(problem.gram)
    counts: list[int] = []
    # Small products are made between the shared ones, and BLAS threads that wait for more would take time from these.
    with threads.one_blas_thread(), nullcontext(None) if by_chunks else _opened(problem, expansion, n_jobs) as walk:
        while len(counts) < max_iter and (not counts or counts[-1]):
            order = np.arange(n) if rng is None else rng.permutation(n)
            counts.append(_by_chunks(problem, expansion, order, n_jobs) if walk is None else walk.go(order))
            progress.advance()
            record("passes", len(counts), {"mistakes": float(counts[-1])})
        expansion.values = None if walk is None else walk.values
    progress.finish()
    return np.array(counts, dtype=np.int64)


def _is_whole(gram: GramMatrix) -> bool:
    """Whether K is taken as one array."""
    return gram.stored_array() is not None or is_small(gram, gram.dtype)


@contextmanager
def _opened(
    problem: PerceptronProblem, expansion: PerceptronState, n_jobs: int | None
) -> Iterator[_WholeWalk | LookAhead]:
    """A walk over all rows, with memory for their kernel values."""
    gram = problem.gram
    p, size = gram.shape[0], np.dtype(gram.dtype).itemsize
    with ExitStack() as stack:
        if problem.budget is not None or _is_whole(gram):
            array = gram.stored_array()
            contiguous = array is not None and array.flags.forc
            K = hold(gram, stack, {gram.dtype: 0}, copy=not contiguous, required=REMEDY).array
            assert K is not None
            # By rows or by columns is the same.
            yield _WholeWalk(problem, expansion, K if K.flags.c_contiguous else K.T)
            return
        whole, between = entries(gram, capacity(size, p * p, parts=4))
        stack.enter_context(memory.reserve((whole + between) * size, "a block of kernel rows"))
        whole_rows, parts = np.empty(whole, dtype=gram.dtype), np.empty(between, dtype=gram.dtype)
        yield LookAhead(problem, expansion, whole_rows, parts, n_jobs)


def _by_chunks(problem: PerceptronProblem, expansion: PerceptronState, order: Integers, n_jobs: int | None) -> int:
    """A pass inside a budget, for which only the support and the rows of one chunk matter at a time."""
    assert problem.budget is not None
    count = 0
    for chunk in spans(len(order), _rows_of_a_chunk(problem)):
        now = order[chunk]
        others = expansion.queue[~np.isin(expansion.queue, now)]
        union = np.concatenate([now, others])
        place = np.full(problem.gram.shape[0], -1)
        place[union] = np.arange(len(union))
        part = PerceptronProblem(
            problem.gram.restrict(union, union),
            problem.codes[now],
            problem.positive,
            problem.constant,
            problem.margin,
            problem.budget,
        )
        local = PerceptronState(
            expansion.theta[:, union], expansion.lagged[:, union], expansion.steps, place[expansion.queue]
        )
        with _opened(part, local, n_jobs) as walk:
            count += walk.go(np.arange(len(now)))
        expansion.theta[:, union], expansion.lagged[:, union] = local.theta, local.lagged
        expansion.steps, expansion.queue = local.steps, union[local.queue]
    return count


def _rows_of_a_chunk(problem: PerceptronProblem) -> int:
    """As many as the budget of the expansion, or some, and fewer where K between them would not fit the memory."""
    assert problem.budget is not None
    most = max(_CHUNK, problem.budget)
    room = capacity(np.dtype(problem.gram.dtype).itemsize, (most + problem.budget) ** 2, parts=2)
    return max(_SMALLEST, isqrt(room) - problem.budget)


class _WholeWalk:
    """Steps with all of K, and the values of f at all rows."""

    def __init__(self, problem: PerceptronProblem, expansion: PerceptronState, K: Array) -> None:
        self.problem, self.expansion, self.K = problem, expansion, K
        self.values = values_at_all(problem, expansion)
        queue, inside = np.zeros(problem.budget or 0, dtype=np.int64), np.zeros(len(K), dtype=bool)
        size = len(expansion.queue) if problem.budget else 0
        if size:
            queue[:size] = expansion.queue
            inside[expansion.queue] = True
        self.support = loops.Support(queue, inside, np.array([0, size, 0], dtype=np.int64))

    def go(self, order: Integers) -> int:
        """One pass; returns the number of updates."""
        problem, expansion = self.problem, self.expansion
        outputs, count = len(problem.positive), 0
        labels, kernel = problem.labels(), loops.KernelValues(self.K, 0, np.arange(len(self.K)))
        functions = loops.Expansion(expansion.theta, expansion.lagged, self.values)
        updates = np.empty((min(_STEPS, len(order)) * outputs, 4), dtype=np.int64)
        for chunk in spans(len(order), _STEPS):
            threads.checkpoint()
            now, before = order[chunk], expansion.steps
            expansion.steps += loops.steps(labels, kernel, now, functions, self.support, before, updates)
            number = int(self.support.state[loops.COUNT])
            count += number
            if expansion.record and number:
                expansion.updates = np.vstack([expansion.updates, updates[:number]])
        check_values(self.values)
        if problem.budget:
            queue, (head, size) = self.support.queue, self.support.state[:2]
            expansion.queue = queue[(head + np.arange(size)) % len(queue)]
        return count
