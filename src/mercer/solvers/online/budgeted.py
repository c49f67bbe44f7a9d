"""Online learning with kernels (NORMA) within a budget of support points: truncation, projection or merging."""

from __future__ import annotations

from functools import partial

import numpy as np

from mercer._errors import NumericalError
from mercer._types import Integers, Vector
from mercer.engine import memory, threads
from mercer.gram.protocol import GramMatrix
from mercer.loops import online as loops
from mercer.loops.merging import MergedExpansion, merging_steps
from mercer.solvers.online.chunk import Chunk
from mercer.solvers.online.given import go_through
from mercer.solvers.online.state import OnlineProblem, OnlineState

# Rows taken at a time: K between these and the support is stored, and with projections the shares of each.
_CHUNK, _FEWER = 1024, 256
# Entries of the inverse that the rows of a chunk may change.
_OPERATIONS = 2**29
# The fewest, where the memory budget has no room for that many.
_LEAST = 16


def learn(
    problem: OnlineProblem,
    gram: GramMatrix,
    targets: Vector,
    state: OnlineState,
    order: Integers,
    rates: Vector,
    n_jobs: int | None = None,
) -> float:
    r"""A step at each row in ``order``; changes ``state`` and returns the sum of the losses, each before its step.

    Rows are taken in chunks, for which K with each other and with the support is all that is evaluated: with a budget
    of B, O(B) values a row. Truncation and the scan for the shortest term take O(B) operations a row. A projection on
    the span of the others takes the inverse of their Gram matrix, which is kept up to date: :math:`B^2` operations a
    row in one product of matrices for the whole chunk, and a few :math:`B^2` where the support changes.

    Parameters
    ----------
    problem : OnlineProblem
    gram : GramMatrix
        K, symmetric, over the rows to learn from and those of the support.
    targets : ndarray of shape (n, k)
        For the rows in the order of ``gram``.
    state : OnlineState
    order : ndarray of shape (m,)
        Positions, each once.
    rates : ndarray of shape (m,)
        Sizes of the steps, in this order.
    n_jobs : int, optional
        Threads; the results have the same bits for any number of them.

    Raises
    ------
    MemoryBudgetError
        If not even a few rows of K fit.
    NumericalError
        If values overflow, since steps are too long for the loss.

    References
    ----------
    Kivinen, Smola and Williamson (2004), "Online learning with kernels", IEEE Transactions on Signal Processing 52;
    Csato and Opper (2002), "Sparse on-line Gaussian processes", Neural Computation 14 (on projections); Wang, Crammer
    and Vucetic (2012), "Breaking the curse of kernelization", JMLR 13 (on all three).

    Examples
    --------
    >>> from mercer.gram import PrecomputedGram
    >>> from mercer.losses import Hinge
    >>> x = np.array([1.0, 2.0])
    >>> state = OnlineState.empty(1)
    >>> gram, y = PrecomputedGram(np.outer(x, x)), np.array([[1.0], [1.0]])
    >>> learn(OnlineProblem(Hinge(), intercept=False), gram, y, state, np.arange(2), np.full(2, 0.5))
    1.0
    >>> state.theta.tolist()
    [[0.5]]
    """
    diagonal = np.asarray(gram.diagonal(), dtype=np.float64)
    state.longest = max(state.longest, float(np.sqrt(max(diagonal[order].max(initial=0.0), 0.0))))
    _make_room(problem, state, diagonal)
    projects = problem.strategy == "projection" and problem.budget is not None
    total, position = 0.0, 0
    while position < len(order):
        threads.checkpoint()
        m, left = state.theta.shape[1], len(order) - position
        most = _CHUNK
        if projects and problem.budget is not None:
            # A row takes a multiple of the budget squared, and Ctrl-C works between chunks.
            most = min(max(_OPERATIONS // problem.budget**2, _LEAST), _FEWER)
        capacity = memory.fitting(partial(_bytes_of_rows, problem, m, projects), most, _LEAST)
        chunk = slice(position, position + min(capacity, left))
        total += Chunk(problem, gram, state, order[chunk], diagonal, n_jobs).go(targets, rates[chunk], projects)
        position = chunk.stop
    _finish(problem, state, rates)
    return total


def _bytes_of_rows(problem: OnlineProblem, m: int, projects: bool, n: int) -> int:
    """Bytes that n rows at a time take beside a support of m."""
    budget = problem.budget if projects and problem.budget is not None else 0
    # With projections the inverse and shares, and before them the inverse with two matrices that it is made of.
    return 8 * (n * (n + m) + max(budget * (budget + n), 3 * budget**2))


def learn_by_merging(
    problem: OnlineProblem, points: Vector, targets: Vector, state: OnlineState, order: Integers, rates: Vector
) -> float:
    """The same for the Gaussian kernel, where two terms are merged if there is one too many.

    Of the shortest term and each other, the pair is taken that loses least when it is replaced by one term at the point
    between the two that keeps most, :math:`O(Bd)` operations. ``points`` (n, d) are in units in which
    ``k(x, z) = exp(-|x - z|^2)``.

    References
    ----------
    Wang, Crammer and Vucetic (2012), "Breaking the curse of kernelization", JMLR 13, section 4.3.

    Examples
    --------
    >>> from mercer.losses import Logistic
    >>> state = OnlineState.empty(1, columns=1)
    >>> x, y = np.array([[0.0], [0.2], [5.0]]), np.array([[1.0], [1.0], [-1.0]])
    >>> problem = OnlineProblem(Logistic(), budget=2, strategy="merging")
    >>> round(learn_by_merging(problem, x, y, state, np.arange(3), np.ones(3)), 3)
    2.164
    >>> state.points.round(2).tolist()
    [[0.07], [5.0]]
    """
    assert problem.budget is not None
    state.longest = max(state.longest, 1.0)
    state.truncated = False
    k, d = len(state.bias), points.shape[1]
    with memory.reserve(8 * ((problem.budget + 1) * (d + k + 6) + len(order) * (d + k)), "the support points"):
        _make_room(problem, state, np.ones(0))
        m = state.theta.shape[1]
        theta, support = np.zeros((k, problem.budget + 1)), np.empty((problem.budget + 1, d))
        born = np.zeros(problem.budget + 1, dtype=np.int64)
        theta[:, :m], support[:m], born[:m] = state.theta, state.points, state.born
        counts, numbers = np.array([m, 0], dtype=np.int64), np.array([1.0, 0.0])
        rows, rule = points[order], problem.rule()
        stream = loops.Stream(rows, order, rates, state.steps + 1)
        expansion = MergedExpansion(theta, state.bias, state.lost, support, born, counts, numbers)

        def steps(targets: Vector, start: int, end: int) -> int:
            merging_steps(stream, targets, rule, expansion, start, end)
            return end

        def value(s: int) -> Vector:
            size = int(counts[loops.SIZE])
            kernel_values = np.exp(-np.square(support[:size] - rows[s]).sum(axis=1))
            return np.asarray(state.bias + numbers[loops.SCALE] * (theta[:, :size] @ kernel_values))

        go_through(problem.loss, steps, value, targets[order], numbers)
        m = int(counts[loops.SIZE])
        state.theta, state.points, state.born = theta[:, :m] * numbers[loops.SCALE], support[:m].copy(), born[:m].copy()
    state.changes += int(counts[loops.CHANGES])
    state.steps += len(order)
    _finish(problem, state, rates)
    return float(numbers[loops.LOSS])


def _make_room(problem: OnlineProblem, state: OnlineState, diagonal: Vector) -> None:
    """Forget the oldest terms of a state that is larger than the budget; ``diagonal`` of K, or empty where it is 1."""
    if problem.budget is None:
        return
    state.truncated &= problem.strategy == "truncation"
    state.least = problem.budget if state.least < 0 else min(state.least, problem.budget)
    m = state.theta.shape[1]
    if m <= problem.budget:
        return
    order = np.argsort(state.born, kind="stable")
    oldest, rest = order[: m - problem.budget], np.sort(order[m - problem.budget :])
    lengths = np.sqrt(np.maximum(diagonal[state.rows[oldest]], 0.0)) if len(diagonal) else 1.0
    state.lost = state.lost + (np.abs(state.theta[:, oldest]) * lengths).sum(axis=1)
    state.theta, state.born = state.theta[:, rest], state.born[rest]
    state.rows = state.rows[rest] if len(diagonal) else state.rows
    state.points = state.points if len(diagonal) else state.points[rest]
    state.inverse = np.zeros((0, 0))
    state.changes += len(oldest)


def _finish(problem: OnlineProblem, state: OnlineState, rates: Vector) -> None:
    if not (np.isfinite(state.theta).all() and np.isfinite(state.bias).all()):
        raise NumericalError(
            f"the values of f overflow: steps of up to {rates.max(initial=0.0):g} are too long for the loss "
            f"{problem.loss.name!r} and k(x, x) of up to {state.longest**2:.3g}; pass smaller ones (for a squared "
            "error, less than 2 / k(x, x)), or scale the columns of X."
        )
    if problem.budget is not None:
        factors = np.concatenate([state.shrinkage, 1.0 - problem.alpha * rates])
        state.shrinkage = factors[max(0, len(factors) - problem.budget) :]
