"""The Gaussian process given its rows, at hyper-parameters that are known: problem in, `Solution` out."""

from __future__ import annotations

import time
from contextlib import ExitStack
from dataclasses import dataclass, replace

import numpy as np

from mercer._types import Matrix, Vector
from mercer.engine import memory, threads
from mercer.gram.hold import held_whole, reserve_square
from mercer.solvers.gaussian.factor import Factor
from mercer.solvers.gaussian.posterior import Posterior
from mercer.solvers.gaussian.regression import GaussianRegression, Solved, evidence, solve_at
from mercer.solvers.gaussian.trend import solve
from mercer.solvers.linear.cholesky import relative
from mercer.solvers.solution import Certificate, Solution, Status


@dataclass(frozen=True)
class ConditionState:
    """The log marginal likelihood, and the jitter that the factorisation needed."""

    evidence: float
    jitter: float


def condition(
    problem: GaussianRegression, theta: Vector, *, n_jobs: int | None = None
) -> Solution[Posterior, ConditionState]:
    r"""Factor the covariance and solve for alpha, with one step of refinement.

    Returns
    -------
    Solution
        ``value`` is the :class:`~mercer.solvers.gaussian.posterior.Posterior`. The certificate is that of
        :math:`\min_f (y - f)^\top D^{-1} (y - f) / 2 + f^\top K^{-1} f / 2`, D the noise, whose solution is the mean of
        the process and whose value is the quadratic term of the evidence: its gap is :math:`r^\top A^{-1} r / 2` for
        the residual r of the linear system.

    Raises
    ------
    MemoryBudgetError, IndefiniteKernelError, NumericalError
        If the matrix does not fit, cannot be factored with any jitter, or has entries that are not finite.
    """
    start_time = time.perf_counter()
    n = problem.n
    with memory.track() as account, threads.workers(n_jobs):
        with ExitStack() as stack:
            sentence = reserve_square(stack, n, 8, "the covariance matrix of the rows and its factor")
            solved = solve_at(problem, theta, np.empty((n, n)))
            solved, residual = _refined(problem, solved)
        # Whatever needs the factor where it is comes before its array is cleared of the matrix.
        array = solved.factor.array
        posterior = Posterior(array, solved.alpha, solved.trend)
        solution = _solution(problem, solved, posterior, residual, time.perf_counter() - start_time, account.peak)
        solution = replace(solution, certificate=replace(solution.certificate, storage=sentence))
        solved.factor.lower()
    return solution


def factor_of(problem: GaussianRegression, theta: Vector, *, n_jobs: int | None = None) -> Matrix:
    """The factor of :func:`condition` alone, bit for bit.

    Raises
    ------
    MemoryBudgetError, IndefiniteKernelError, NumericalError
        As there.
    """
    with threads.workers(n_jobs), ExitStack() as stack:
        reserve_square(stack, problem.n, 8, "the covariance matrix of the rows and its factor")
        factored = solve_at(problem, theta, np.empty((problem.n, problem.n))).factor
        factored.lower()
    return factored.array


def resume(problem: GaussianRegression, array: Matrix, jitter: float) -> Solution[Posterior, ConditionState]:
    """The same from a given factor, as :class:`~mercer.solvers.gaussian.posterior.Posterior` holds it."""
    start_time = time.perf_counter()
    factor = Factor(array, array.diagonal(), jitter)
    solved = Solved(factor, *solve(factor, problem.targets, problem.trend))
    residual = problem.targets - array.T @ (array @ solved.alpha)
    if problem.trend is not None and solved.trend is not None:
        residual -= problem.trend.basis @ solved.trend.coefficients
    posterior = Posterior(array, solved.alpha, solved.trend)
    solution = _solution(problem, solved, posterior, residual, time.perf_counter() - start_time, array.nbytes)
    sentence = f"the factor of the covariance matrix {held_whole(array)}"
    return replace(solution, certificate=replace(solution.certificate, storage=sentence))


def _solution(
    problem: GaussianRegression, solved: Solved, posterior: Posterior, residual: Matrix, seconds: float, peak: int
) -> Solution[Posterior, ConditionState]:
    jitter = solved.factor.jitter
    primal, dual = _objectives(problem, solved, residual)
    violation = float(relative(residual, problem.targets).max(initial=0.0))
    violations = {"residual": violation} | ({"jitter": jitter} if jitter else {})
    status = Status.jittered if jitter else Status.direct
    certificate = Certificate(primal, dual, violation, 0, seconds, peak, status, violations, problem.definite)
    return Solution(posterior, status, certificate, ConditionState(evidence(problem, solved), jitter))


def _refined(problem: GaussianRegression, solved: Solved) -> tuple[Solved, Matrix]:
    """One step of iterative refinement, and the residual ``y - H b - A alpha`` after it."""
    residual = _residual(problem, solved)
    more = solve(solved.factor, residual, problem.trend)
    alpha, trend = solved.alpha + more[0], solved.trend
    if trend is not None and more[1] is not None:
        trend = trend.moved(more[1].coefficients)
    better = Solved(solved.factor, alpha, trend)
    left = _residual(problem, better)
    # Where the matrix is nearly singular a step may gain nothing.
    return (better, left) if np.linalg.norm(left) < np.linalg.norm(residual) else (solved, residual)


def _residual(problem: GaussianRegression, solved: Solved) -> Matrix:
    residual = problem.targets - solved.factor.product(solved.alpha)
    if problem.trend is not None and solved.trend is not None:
        residual -= problem.trend.basis @ solved.trend.coefficients
    return residual


def _objectives(problem: GaussianRegression, solved: Solved, residual: Matrix) -> tuple[float, float]:
    """Bounds of ``y^T P y / 2`` above and below, sums over the targets."""
    dual = 0.5 * float(np.vdot(solved.alpha, problem.targets + residual))
    gap = 0.5 * float(np.vdot(residual, solved.factor.solve(residual)))
    return dual + max(gap, 0.0), dual
