"""Online learning with kernels (NORMA) within a budget of support points: truncation, projection or merging."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial

import numpy as np
import scipy.linalg
from numpy.typing import NDArray

from mercer._errors import NumericalError
from mercer.engine import memory, threads
from mercer.engine.tiles import spans
from mercer.loops import online as loops
from mercer.loops.merging import merging_steps
from mercer.solvers.matrix import GramMatrix, Vector

Indices = NDArray[np.integer]

LOSSES = {
    "hinge": loops.HINGE, "squared_hinge": loops.SQUARED_HINGE, "log_loss": loops.LOG,
    "modified_huber": loops.MODIFIED_HUBER, "softmax": loops.SOFTMAX, "squared_error": loops.SQUARED,
    "epsilon_insensitive": loops.EPSILON_INSENSITIVE, "huber": loops.HUBER,
}  # fmt: skip
STEEPNESS = {
    "hinge": 1.0, "squared_hinge": 2.0, "log_loss": 0.5, "modified_huber": 2.0, "softmax": 0.5, "squared_error": 1.0,
    "epsilon_insensitive": 1.0, "huber": 1.0,
}  # fmt: skip
"""Of a step of length s at x that overshoots, this times s k(x, x) is above 1: the largest second derivative, or 1."""
STRATEGIES = {"truncation": loops.OLDEST, "smallest": loops.SMALLEST, "projection": loops.PROJECTION, "merging": -1}
# Rows taken at a time: K between these and the support is held, and with projections the shares of each.
_CHUNK, _FEWER, _STRIP = 1024, 256, 64
# The fewest, where the memory budget has no room for so many.
_LEAST = 16
_WHOLE_BYTES = 2**25


@dataclass(frozen=True, eq=False)
class OnlineProblem:
    r"""What a row teaches: :math:`f \leftarrow (1 - \eta \alpha) f - \eta\, \partial_f \ell(y, f(x))\, k(x, \cdot)`.

    Parameters
    ----------
    loss : str
        One of ``LOSSES``.
    epsilon : float, default=0.1
        Of the epsilon-insensitive and of Huber's loss.
    alpha : float, default=0.0
        The regulariser.
    intercept : bool, default=True
        Whether there is an offset, which is neither shrunk nor forgotten.
    budget : int, optional
        The most support points.
    strategy : {"truncation", "smallest", "projection", "merging"}, default="truncation"
        What happens to one too many.
    """

    loss: str
    epsilon: float = 0.1
    alpha: float = 0.0
    intercept: bool = True
    budget: int | None = None
    strategy: str = "truncation"

    @property
    def slope(self) -> float:
        """The largest derivative of the loss by one value."""
        limits = {"squared_hinge": np.inf, "squared_error": np.inf, "modified_huber": 4.0, "huber": self.epsilon}
        return float(limits.get(self.loss, 1.0))


@dataclass
class OnlineState:
    """What has been learned: ``f = sum_i theta_i k(x_i, .) + bias`` over the rows ``rows`` of a matrix, or ``points``.

    ``born`` (m,) is the step that last changed each term; ``lost`` (k,) bounds the length of what f would be without
    the budget less what it is; ``shrinkage`` are the factors of the last steps, no more than the budget; ``least`` is
    the least budget so far; ``truncated`` says that nothing but the oldest term has ever been dropped. ``inverse``
    (m, m) belongs to the Gram matrix of the rows, and has been changed ``stale`` times since it was computed.
    """

    theta: Vector
    bias: Vector
    lost: Vector
    born: NDArray[np.int64]
    rows: Indices
    points: Vector
    inverse: Vector
    shrinkage: Vector = field(default_factory=lambda: np.empty(0))
    steps: int = 0
    changes: int = 0
    stale: int = 0
    longest: float = 0.0
    least: int = -1
    truncated: bool = True

    @classmethod
    def empty(cls, outputs: int, columns: int = 0) -> OnlineState:
        """Of functions that are zero."""
        whole = np.empty(0, dtype=np.int64)
        return cls(
            np.zeros((outputs, 0)), np.zeros(outputs), np.zeros(outputs), whole, whole.copy(), np.zeros((0, columns)),
            np.zeros((0, 0)),
        )  # fmt: skip

    def truncation_bound(self, problem: OnlineProblem) -> float:
        r"""A bound of ``lost`` that is known without looking: :math:`\frac{CR}{\alpha} \prod (1 - \eta_t \alpha)`.

        The product is over the last B steps, B the budget; C is the largest slope of the loss, R the largest
        :math:`\sqrt{k(x, x)}`. What is dropped was learned at least B steps ago, and in all of the steps before those
        no more than :math:`CR \sum_i \eta_i \prod_{j > i} (1 - \eta_j \alpha)`, where
        :math:`\alpha \sum_i \eta_i \prod_{j > i} (1 - \eta_j \alpha) \le 1`. For steps of one size it is the bound of
        Kivinen, Smola and Williamson (2004), proposition 1. Infinite where it does not hold.
        """
        if self.least < 0 or self.steps <= self.least:
            return 0.0
        if not self.truncated or problem.alpha == 0.0 or not np.isfinite(problem.slope):
            return float("inf")
        decay = float(np.prod(self.shrinkage[-self.least :]))
        return problem.slope * self.longest / problem.alpha * decay


def learn(
    problem: OnlineProblem, gram: GramMatrix, targets: Vector, state: OnlineState, order: Indices, rates: Vector,
    n_jobs: int | None = None,
) -> float:  # fmt: skip
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
    >>> x = np.array([1.0, 2.0])
    >>> state = OnlineState.empty(1)
    >>> gram, y = PrecomputedGram(np.outer(x, x)), np.array([[1.0], [1.0]])
    >>> learn(OnlineProblem("hinge", intercept=False), gram, y, state, np.arange(2), np.full(2, 0.5))
    1.0
    >>> state.theta.tolist()
    [[0.5]]
    """
    diagonal = np.asarray(gram.diagonal(), dtype=np.float64)
    state.longest = max(state.longest, float(np.sqrt(max(diagonal[order].max(initial=0.0), 0.0))))
    _make_room(problem, state, diagonal)
    projects = problem.strategy == "projection" and problem.budget is not None
    total, begun = 0.0, 0
    while begun < len(order):
        threads.checkpoint()
        m, left = state.theta.shape[1], len(order) - begun
        held = memory.fitting(partial(_held, problem, m, projects), _FEWER if projects else _CHUNK, _LEAST)
        chunk = slice(begun, begun + min(held, left))
        total += _Chunk(problem, gram, state, order[chunk], diagonal, n_jobs).go(targets, rates[chunk], projects)
        begun = chunk.stop
    _finish(problem, state, rates)
    return total


def _held(problem: OnlineProblem, m: int, projects: bool, n: int) -> int:
    """Bytes that n rows at a time take beside a support of m."""
    budget = (problem.budget or 0) if projects else 0
    # With projections the inverse, which is made from another matrix now and then, and shares.
    return 8 * (n * (n + m) + budget * (budget + n) + (m * m if projects else 0))


def learn_by_merging(
    problem: OnlineProblem, points: Vector, targets: Vector, state: OnlineState, order: Indices, rates: Vector
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
    >>> state = OnlineState.empty(1, columns=1)
    >>> x, y = np.array([[0.0], [0.2], [5.0]]), np.array([[1.0], [1.0], [-1.0]])
    >>> problem = OnlineProblem("log_loss", budget=2, strategy="merging")
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
        theta, held = np.zeros((k, problem.budget + 1)), np.empty((problem.budget + 1, d))
        born = np.zeros(problem.budget + 1, dtype=np.int64)
        theta[:, :m], held[:m], born[:m] = state.theta, state.points, state.born
        counts, numbers = np.array([m, 0], dtype=np.int64), np.array([1.0, 0.0])
        for chunk in spans(len(order), _CHUNK):
            threads.checkpoint()
            merging_steps(
                points[order[chunk]], targets[order[chunk]], rates[chunk], problem.alpha, problem.intercept,
                LOSSES[problem.loss], problem.epsilon, problem.budget, state.steps + 1 + chunk.start, theta,
                state.bias, state.lost, held, born, counts, numbers,
            )  # fmt: skip
        m = int(counts[loops.SIZE])
        state.theta, state.points, state.born = theta[:, :m] * numbers[loops.SCALE], held[:m].copy(), born[:m].copy()
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
    gone, kept = order[: m - problem.budget], np.sort(order[m - problem.budget :])
    lengths = np.sqrt(np.maximum(diagonal[state.rows[gone]], 0.0)) if len(diagonal) else 1.0
    state.lost = state.lost + (np.abs(state.theta[:, gone]) * lengths).sum(axis=1)
    state.theta, state.born = state.theta[:, kept], state.born[kept]
    state.rows = state.rows[kept] if len(diagonal) else state.rows
    state.points = state.points if len(diagonal) else state.points[kept]
    state.inverse = np.zeros((0, 0))
    state.changes += len(gone)


def _finish(problem: OnlineProblem, state: OnlineState, rates: Vector) -> None:
    if not (np.isfinite(state.theta).all() and np.isfinite(state.bias).all()):
        raise NumericalError(
            f"the values of f overflow: steps of up to {rates.max(initial=0.0):g} are too long for the loss "
            f"{problem.loss!r} and k(x, x) of up to {state.longest**2:.3g}; pass smaller ones (for a squared error, "
            "less than 2 / k(x, x)), or scale the columns of X."
        )
    if problem.budget is not None:
        factors = np.concatenate([state.shrinkage, 1.0 - problem.alpha * rates])
        state.shrinkage = factors[max(0, len(factors) - problem.budget) :]


class _Chunk:
    """Some rows and the support, with K between them."""

    def __init__(
        self, problem: OnlineProblem, gram: GramMatrix, state: OnlineState, now: Indices, diagonal: Vector,
        n_jobs: int | None,
    ) -> None:  # fmt: skip
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

    def go(self, targets: Vector, rates: Vector, projects: bool) -> float:
        """The steps; returns the sum of the losses."""
        state, n, p = self.state, len(self.now), len(self.union)
        counts, numbers = np.array([len(self.members), 0], dtype=np.int64), np.array([1.0, 0.0])
        with memory.reserve(8 * n * p, "a block of kernel values"):
            rows = np.empty((n, p))
            self.gram.block(self.now, self.union, out=rows)
            if projects:
                members = self._project(rows, targets[self.now], rates, counts, numbers)
            else:
                self._steps(rows, targets[self.now], rates, counts, numbers)
                members = np.flatnonzero(self.inside)
        state.rows, state.born = self.union[members], self.born[members]
        state.theta = self.theta[:, members] * numbers[loops.SCALE]
        state.changes += int(counts[loops.CHANGES])
        state.steps += n
        return float(numbers[loops.LOSS])

    def _steps(self, rows: Vector, targets: Vector, rates: Vector, counts: Indices, numbers: Vector) -> None:
        problem, state = self.problem, self.state
        budget = -1 if problem.budget is None else problem.budget
        state.inverse = np.zeros((0, 0))
        loops.steps(
            rows, np.arange(len(rows)), targets, rates, problem.alpha, problem.intercept, LOSSES[problem.loss],
            problem.epsilon, STRATEGIES[problem.strategy], budget, state.steps + 1, self.theta, state.bias, state.lost,
            self.diagonal, self.born, self.inside, counts, numbers,
        )  # fmt: skip

    def _project(self, rows: Vector, targets: Vector, rates: Vector, counts: Indices, numbers: Vector) -> Indices:
        """The steps with projections; returns the support, in the order of the inverse."""
        problem, state = self.problem, self.state
        assert problem.budget is not None
        budget, m, n = problem.budget, len(self.members), len(rows)
        with memory.reserve(8 * budget * (budget + n), "the inverse of the support's kernel matrix, and shares"):
            if len(state.inverse) != m or state.stale > budget:
                state.inverse, state.stale = self._inverse(), 0
            shares, Q = np.zeros((n, budget)), state.inverse
            if m < budget:
                Q = np.zeros((budget, budget))
                Q[:m, :m] = state.inverse

            def strip(part: slice) -> None:
                shares[part, :m] = rows[part, self.members] @ state.inverse

            threads.run([partial(strip, part) for part in spans(n, _STRIP)], self.n_jobs)
            members = np.zeros(budget, dtype=np.int64)
            members[:m] = self.members
            loops.projected_steps(
                rows, np.arange(n), targets, rates, problem.alpha, problem.intercept, LOSSES[problem.loss],
                problem.epsilon, budget, state.steps + 1, self.theta, state.bias, state.lost, self.diagonal, self.born,
                self.inside, counts, numbers, members, Q, shares,
            )  # fmt: skip
            size = int(counts[loops.SIZE])
            state.stale += int(counts[loops.CHANGES])
            state.inverse = Q if size == budget else Q[:size, :size].copy()
        return members[:size]

    def _inverse(self) -> Vector:
        """Of the Gram matrix of the support, on the span of its eigenvectors that are not rounding."""
        K = np.asarray(self.gram.block(self.state.rows, self.state.rows), dtype=np.float64)
        with threads.one_blas_thread():
            values, vectors = scipy.linalg.eigh(K)
            kept = values > loops.DEPENDENT * max(float(values[-1]), 0.0) if len(values) else values > 0
            return np.ascontiguousarray((vectors[:, kept] / values[kept]) @ vectors[:, kept].T)


def whole_fits(gram: GramMatrix) -> bool:
    """Whether a matrix is so small that several passes had better make it once."""
    size = 8 * gram.shape[0] ** 2
    return size <= min(_WHOLE_BYTES, memory.budget() // 2)
