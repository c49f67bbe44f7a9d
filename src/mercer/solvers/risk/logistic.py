"""Kernel logistic regression: Newton steps in float32, judged and corrected in float64."""

from __future__ import annotations

import time
from contextlib import ExitStack
from dataclasses import dataclass

import numpy as np

from mercer._types import Matrix, Vector
from mercer.engine import memory, threads
from mercer.engine.progress import Progress
from mercer.solvers.curvature import lowest_quotient
from mercer.solvers.risk.logistic_problem import LogisticPoint, LogisticRisk, Quality, gap_of, inner
from mercer.solvers.risk.newton import Controls, Multiply, descend, replace_offset
from mercer.solvers.risk.products import Products
from mercer.solvers.solution import Certificate, Solution, Status

# Up to this many rows the answer is as exact as float64 allows, whatever the tolerance.
EXACT = 512
_EXACT_GOAL = 1e-11
# What rounding does to the objective, as a share of it.
_SINGLE, _DOUBLE = 1e-6, 1e-14
# Corrections from a float64 residual before the products themselves are made in float64.
_ROUNDS = 4
# Arrays of n x m in float64 that the solver holds at once.
_VECTORS = 24
# What 24 Lanczos products may miss of the lowest eigenvalue, as a share of it.
_MISSED = 1.1
_INNER_STEPS = 5
# Steps with quick products aim at this share of the goal, so that exact products confirm it.
_CLOSER = 0.7


def vector_bytes(n: int, m: int) -> int:
    """Memory of the solver beside K for n rows with m columns of decision values, in bytes.

    >>> vector_bytes(1000, 1)
    192000
    """
    return 8 * _VECTORS * n * m


@dataclass(frozen=True)
class LogisticWork:
    """What a solve has cost: Newton steps, and products with K."""

    steps: int
    products: int


@dataclass(frozen=True)
class LogisticSolver:
    r"""Solve a :class:`LogisticRisk`.

    Parameters
    ----------
    tol : float, default=1e-4
        The relative error :math:`\|w - w^*\| / \|w\|` that is good enough. Its bound is :math:`\sqrt{2
        \,\text{gap}} / \|w\|`, since the penalty alone bends the objective by 1. Where rounding forbids it, as for
        a w that is next to nothing, a gap of ``tol**2`` times the objective will do. Up to 512 rows the solve goes on
        to the precision of float64.
    max_iter : int, default=100
        Maximum number of Newton steps.
    n_jobs : int, optional
        Threads. The results have the same bits for any number of them.
    verbose : bool, default=False
        Show progress on standard error.

    Notes
    -----
    Memory: see :class:`mercer.solvers.risk.products.Products`.

    An indefinite K is lifted by :math:`\tau I` with its lowest eigenvalue :math:`-\tau`, and the decision values are
    held back by :math:`-\tau A` of the point before: each problem is convex, and where they end A is stationary. In
    the dual this is the convex-concave procedure.

    References
    ----------
    J. Zhu and T. Hastie, "Kernel logistic regression and the import vector machine", J. Comput. Graph. Statist. 14
    (2005); S. S. Keerthi et al., "A fast dual algorithm for kernel logistic regression", Machine Learning 61 (2005),
    for the dual; A. L. Yuille and A. Rangarajan, "The concave-convex procedure", Neural Computation 15 (2003).

    Examples
    --------
    >>> from mercer.gram import PrecomputedGram
    >>> from mercer.losses.log_loss import log_loss
    >>> loss = log_loss(np.array([0, 1]), np.ones(2), 2)
    >>> solution = LogisticSolver().solve(LogisticRisk(PrecomputedGram(4.0 * np.eye(2)), loss))
    >>> a = solution.value.weights.ravel()
    >>> a.round(3).tolist(), np.allclose(a[1], 1 / (1 + np.exp(4 * a[1])))
    ([-0.261, 0.261], True)
    """

    tol: float = 1e-4
    max_iter: int = 100
    n_jobs: int | None = None
    verbose: bool = False

    def solve(self, problem: LogisticRisk, start: LogisticPoint | None = None) -> Solution[LogisticPoint, LogisticWork]:
        """Solve ``problem``.

        Parameters
        ----------
        problem : LogisticRisk
        start : LogisticPoint, optional
            Where to begin, if that is better than zero; its products are not looked at.

        Returns
        -------
        Solution
            Its certificate is computed in float64 over all rows; see
            :func:`mercer.solvers.risk.logistic_problem.gap_of` for the dual solution.

        Raises
        ------
        MemoryBudgetError
            If not even the vectors fit the memory budget.
        NumericalError
            If K has entries that are NaN or infinite, or products overflow.
        """
        start_time = time.perf_counter()
        n, m = problem.shape
        with memory.track() as account, ExitStack() as stack, threads.workers(self.n_jobs):
            stack.enter_context(memory.reserve(vector_bytes(n, m), f"the work of {m} columns of {n} decision values"))
            products = Products(problem.gram, stack)
            goal = min(self.tol, _EXACT_GOAL) if n <= EXACT else self.tol
            controls = Controls(
                goal, int(self.max_iter), _DOUBLE, Progress(int(self.max_iter), "Newton steps", self.verbose)
            )
            point = _begin(problem, start, products)
            lift = 0.0 if problem.convex else _lift(problem)
            if lift > 0:
                point, quality = _settle(problem, point, products, controls, lift)
            else:
                point, quality = _refine(problem, point, products, controls)
        rounding = problem.rounding(point)
        status = _status(problem, quality, self.tol, controls)
        if status is Status.converged and rounding > self.tol * quality.primal:
            status = Status.stalled
        steps = int(self.max_iter) - controls.left
        certificate = Certificate(
            quality.primal + rounding,
            quality.primal - quality.gap - rounding,
            quality.violation,
            steps,
            time.perf_counter() - start_time,
            account.peak,
            status,
            {"error": quality.violation},
            problem.convex,
            products.sentence,
        )
        return Solution(point, status, certificate, LogisticWork(steps, controls.products))


def _begin(problem: LogisticRisk, start: LogisticPoint | None, products: Products) -> LogisticPoint:
    """The start, with weights that sum to zero where they must, or zero where that has the smaller objective."""
    zero = LogisticPoint.zero(problem.shape)
    if problem.intercept:
        zero = replace_offset(problem.loss, zero)
    if start is None:
        return zero
    weights = start.weights - start.weights.mean(axis=0) if problem.intercept else start.weights
    point = LogisticPoint(weights, products.exact(weights), start.offset if problem.intercept else zero.offset)
    if problem.intercept:
        point = replace_offset(problem.loss, point)
    return point if point.objective(problem.loss) < zero.objective(problem.loss) else zero


def _status(problem: LogisticRisk, quality: Quality, tol: float, controls: Controls) -> Status:
    if quality.violation <= tol or (controls.left > 0 and quality.gap <= tol**2 * quality.primal):
        return Status.converged if problem.convex else Status.stationary
    return Status.iteration_limit if controls.left == 0 else Status.stalled


def _judge(
    problem: LogisticRisk, weights: Matrix, offset: Vector, products: Products, lift: float = 0.0
) -> tuple[LogisticPoint, Quality]:
    """A point and its quality, in float64 over all rows; lengths are those for ``K + lift I``."""
    point = LogisticPoint(weights, products.exact(weights), offset)
    if problem.intercept:
        point = replace_offset(problem.loss, point)
    slope = problem.loss.slope(point.decision)
    gradient = slope.pull - weights
    squared = inner(gradient, products.exact(gradient)) + lift * inner(gradient, gradient)
    size = point.squared_norm + lift * inner(weights, weights)
    return point, Quality(point.objective(problem.loss), gap_of(slope, gradient, squared), size)


def _refine(
    problem: LogisticRisk, point: LogisticPoint, products: Products, controls: Controls
) -> tuple[LogisticPoint, Quality]:
    """Newton steps by quick products, from exact ones, until the exact ones confirm the goal."""
    multiply: Multiply = products.quick
    goal, last = controls.goal, np.inf
    controls.goal, controls.rounding = _CLOSER * goal, _SINGLE if products.mixed else _DOUBLE
    for number in range(2 * _ROUNDS):
        point, _ = descend(problem.loss, problem.intercept, point, multiply, controls)
        point, quality = _judge(problem, point.weights, point.offset, products)
        if quality.violation <= goal or controls.left == 0:
            break
        slow, last = quality.violation > 0.25 * last, quality.violation
        if slow and controls.rounding == _DOUBLE:
            break
        if slow or number >= _ROUNDS:
            multiply, controls.rounding = products.exact, _DOUBLE
    return point, quality


def _lift(problem: LogisticRisk) -> float:
    """What makes K positive when it is added to the diagonal; 0 if it is already, as far as is seen."""
    return _MISSED * max(0.0, -lowest_quotient(problem.gram, balanced=problem.intercept))


def _settle(
    problem: LogisticRisk, point: LogisticPoint, products: Products, controls: Controls, lift: float
) -> tuple[LogisticPoint, Quality]:
    """A stationary point of an indefinite problem, by convex ones."""

    def multiply(V: Matrix) -> Matrix:
        return products.exact(V) + lift * V

    while True:
        point, quality = _judge(problem, point.weights, point.offset, products, lift)
        if quality.violation <= controls.goal or controls.left == 0:
            return point, quality
        anchor = -lift * point.weights
        goal, steps = max(controls.goal, 0.1 * quality.violation), min(_INNER_STEPS, controls.left)
        part = Controls(goal, steps, _DOUBLE, controls.progress)
        start = LogisticPoint(point.weights, point.products - anchor, point.offset)
        point, _ = descend(problem.loss, problem.intercept, start, multiply, part, anchor)
        # A problem that is solved already by its first point counts as a step, so that there is an end.
        controls.left -= max(1, steps - part.left)
        controls.products += part.products
