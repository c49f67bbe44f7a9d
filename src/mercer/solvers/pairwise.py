"""One-vs-one problems over one kernel matrix whose rows are sorted by class.

The block of two different classes belongs to one pair alone; the block of a class with itself is needed by every
pair that the class is in, so it is made once. Small pairs run side by side, one thread each; a large one has all
threads to itself.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from itertools import combinations

import numpy as np

from mercer.engine import memory, threads
from mercer.engine.progress import Progress
from mercer.engine.tiles import scratch_tile
from mercer.solvers.problems import Array, BoxQP, BoxQPValue, GramMatrix, Vector
from mercer.solvers.smo import EXACT, WHOLE, solve_box_qp
from mercer.solvers.solution import Solution

Answer = Solution[BoxQPValue, Vector]
_SCRATCH = 8


def solve_pairs(
    gram: GramMatrix,
    sizes: np.ndarray,
    upper: Vector,
    *,
    tol: float,
    max_iter: int,
    cache_bytes: int,
    n_jobs: int | None,
    convex: bool,
    verbose: bool,
) -> list[Answer]:
    """Solve the C-SVC of every pair of classes, in the order (0, 1), (0, 2), ..., (1, 2), ...

    Parameters
    ----------
    gram : GramMatrix
        K of all rows, those of the first class first, and so on.
    sizes : ndarray of shape (k,)
        Rows of each class.
    upper : ndarray of shape (n,)
        Bounds of the rows.
    tol, max_iter, cache_bytes, n_jobs : float, int, int, int
        As for :func:`mercer.solvers.smo.solve_box_qp`.
    convex : bool
        Whether K is positive semi-definite on vectors that sum to zero.
    verbose : bool
        Whether to show progress.

    Returns
    -------
    list of Solution
        ``value.alpha`` has the rows of the pair's first class (y = +1), then those of its second (y = -1).
    """
    ends = np.cumsum(sizes)
    parts = [slice(int(end - size), int(end)) for end, size in zip(ends, sizes)]
    pairs = list(combinations(range(len(sizes)), 2))
    answers: dict[tuple[int, int], Answer] = {}
    progress = Progress(len(pairs), "one-vs-one problems", verbose)

    def solve(pair: tuple[int, int], blocks: dict[int, Array]) -> None:
        first, second = parts[pair[0]], parts[pair[1]]
        rows = np.r_[first, second]
        part = gram if len(pairs) == 1 else gram.restrict(rows, rows)
        y = np.repeat([1.0, -1.0], sizes[list(pair)])
        problem = BoxQP(part, y, upper[rows], convex=convex)
        matrix = _assemble(gram, first, second, blocks[pair[0]], blocks[pair[1]]) if blocks else None
        answers[pair] = solve_box_qp(
            problem, tol=tol, max_iter=max_iter, cache_bytes=cache_bytes, n_jobs=n_jobs, matrix=matrix
        )
        progress.advance()

    def task(pair: tuple[int, int], blocks: dict[int, Array]) -> Callable[[], None]:
        return lambda: solve(pair, blocks)

    def size(pair: tuple[int, int]) -> int:
        return int(sizes[pair[0]] + sizes[pair[1]])

    tiny = [pair for pair in pairs if size(pair) <= EXACT]
    small = [pair for pair in pairs if EXACT < size(pair) <= WHOLE]
    threads.run([task(pair, {}) for pair in tiny], n_jobs)
    with ExitStack() as held:
        blocks = _own_blocks(gram, parts, small, n_jobs, held)
        threads.run([task(pair, blocks) for pair in small], n_jobs)
    for pair in pairs:
        if size(pair) > WHOLE:
            solve(pair, {})
    return [answers[pair] for pair in pairs]


def _own_blocks(
    gram: GramMatrix, parts: list[slice], pairs: list[tuple[int, int]], n_jobs: int | None, held: ExitStack
) -> dict[int, Array]:
    """The blocks of the classes with themselves; none if they do not fit the memory budget or serve once only."""
    if len(pairs) < 2:
        return {}
    work = gram.astype(np.float32)
    needed = sorted({group for pair in pairs for group in pair})
    lengths = {group: parts[group].stop - parts[group].start for group in needed}
    nbytes = sum(4 * length**2 for length in lengths.values())
    if nbytes > memory.budget() // 2:
        return {}
    held.enter_context(memory.reserve(nbytes, "the kernel blocks of the classes"))
    blocks = {group: np.empty((lengths[group], lengths[group]), np.float32) for group in needed}

    def make(group: int) -> Callable[[], None]:
        def fill() -> None:
            work.block(parts[group], parts[group], out=blocks[group])

        return fill

    threads.run([make(group) for group in needed], n_jobs)
    return blocks


def _assemble(gram: GramMatrix, first: slice, second: slice, own_first: Array, own_second: Array) -> Array:
    """The matrix of one pair, in this thread's work memory."""
    a, b = len(own_first), len(own_second)
    K = scratch_tile(_SCRATCH, (a + b, a + b), np.dtype(np.float32))
    K[:a, :a] = own_first
    K[a:, a:] = own_second
    gram.astype(np.float32).block(first, second, out=K[:a, a:])
    K[a:, :a] = K[:a, a:].T
    return K
