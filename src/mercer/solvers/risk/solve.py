"""Solving a :class:`RegularizedRisk`: which method takes it, and the certificate of what comes out."""

from __future__ import annotations

import math
import time
from contextlib import ExitStack
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from mercer._errors import ParameterError
from mercer._types import Vector
from mercer.engine import memory, threads
from mercer.engine.progress import Progress
from mercer.gram.hold import hold_exact
from mercer.gram.protocol import GramMatrix
from mercer.losses import HalfSquare
from mercer.solvers.risk.certify import Bounds, with_rounding, zero_value
from mercer.solvers.risk.kernel_products import KernelProducts
from mercer.solvers.risk.quadratic import Aim, Answer, AsBox, ByMultipliers, ByNewton, QuadraticSolver
from mercer.solvers.risk.regularized_risk import RegularizedRisk
from mercer.solvers.risk.search import first_factor, search_factor
from mercer.solvers.risk.values import RiskValue
from mercer.solvers.solution import Certificate, Solution, Status
from mercer.solvers.svm.smo import EXACT, SMO, WHOLE

Method = Literal["auto", "newton", "newton-cg", "multipliers", "box"]
METHODS: tuple[Method, ...] = ("auto", "newton", "newton-cg", "multipliers", "box")

# Steps of Newton's method where no limit is given.
_LIMIT = 10_000
# Up to EXACT rows these shares of the objective are aimed at, which is next to rounding.
_ROUNDING = {"auto": 1e-16, "multipliers": 1e-12, "box": 1e-9}
# The share of the objective at zero below which a gap counts as nothing, in units of the tolerance.
_NOTHING = 1e-6


@dataclass(frozen=True)
class RiskSolver:
    """Solve the general problem of kernel methods, with a certificate by duality.

    Parameters
    ----------
    tol : float, default=1e-6
        The relative duality gap at which the solver stops. Where the optimum is about 0, a gap of ``1e-6 tol`` of the
        objective at zero is. Up to 512 rows the gap is made as small as rounding allows.
    max_iter : int, default=-1
        The most steps of Newton's method or of the box solver; -1 for no limit.
    method : {"auto", "newton", "newton-cg", "multipliers", "box"}, default="auto"
        Newton's method for smooth losses, with K in memory or as lazy products; the method of multipliers for any; the
        box solver for losses of straight pieces. "auto" takes the first that applies of box, newton (newton-cg where
        the budget has no room for K) and multipliers.
    cache_bytes : int, default=200 MiB
        The most memory for kept kernel rows of the box solver.
    n_jobs : int, optional
        Worker threads.
    verbose : bool, default=False
        Show progress on standard error.

    Examples
    --------
    >>> from mercer.gram import PrecomputedGram
    >>> from mercer.losses import Squared
    >>> solution = RiskSolver().solve(RegularizedRisk(PrecomputedGram(np.eye(2)), Squared(), [3.0, 6.0], alpha=0.5))
    >>> solution.value.c.round(12).tolist(), solution.status.name
    ([2.0, 4.0], 'converged')
    """

    tol: float = 1e-6
    max_iter: int = -1
    method: Method = "auto"
    cache_bytes: int = 200 * 2**20
    n_jobs: int | None = None
    verbose: bool = False

    def solve(self, problem: RegularizedRisk, start: RiskValue | None = None) -> Solution[RiskValue, Vector]:
        """Solve ``problem``.

        Parameters
        ----------
        problem : RegularizedRisk
            A convex one; see :func:`mercer.solvers.risk.stationary.StationarySolver` for others.
        start : RiskValue, optional
            The solution for another factor of the penalty, with the same K.

        Returns
        -------
        Solution
            ``value`` is a :class:`RiskValue`.

        Raises
        ------
        ParameterError
            If the method does not apply to the loss.
        MemoryBudgetError
            If the problem does not fit the memory budget.
        """
        start_time = time.perf_counter()
        n = len(problem.targets)
        limit = self.max_iter if self.max_iter >= 0 else _LIMIT
        size = abs(zero_value(problem))
        aim = Aim(self.tol, self.tol * _NOTHING * size)
        choice = _choose(problem, self.method)
        exact = _ROUNDING[choice if choice in _ROUNDING else "auto" if problem.loss.smooth else "multipliers"]
        tight = Aim(min(self.tol, exact), min(aim.absolute, exact * size)) if n <= EXACT else aim
        with ExitStack() as stack, memory.track() as account, threads.workers(self.n_jobs):
            solver: QuadraticSolver
            sentence = ""
            if choice == "box":
                if n <= WHOLE or not isinstance(problem.penalty, HalfSquare):
                    # For one factor or tolerance after the other.
                    storage = hold_exact(problem.gram, stack, beside=12 * n * n)
                    problem, sentence = replace(problem, gram=storage.gram), storage.sentence
                solver = AsBox(
                    problem,
                    SMO(max_iter=self.max_iter, cache_bytes=self.cache_bytes, n_jobs=self.n_jobs, verbose=self.verbose),
                )
            else:
                lazy = True if choice == "newton-cg" else None if choice == "auto" else False
                K = KernelProducts(problem.gram, stack, lazy)
                sentence = K.sentence
                progress = Progress(limit, "Newton steps", self.verbose)
                by = ByMultipliers if choice == "multipliers" or not problem.loss.smooth else ByNewton
                solver = by(problem, K, progress, limit)
            if start is not None:
                solver.begin(start)
            answer, lam = _minimise(problem, solver, tight, n <= EXACT and not isinstance(solver, ByMultipliers))
        status = _status(aim, answer, solver.steps >= limit)
        found = with_rounding(problem, answer.bounds, answer.c, answer.t, answer.u, answer.s)
        if status is Status.converged and not aim.allows(Bounds(found.primal, found.gap - answer.bounds.gap, 0.0, 0.0)):
            status = Status.stalled
        certificate = Certificate(
            found.primal,
            found.dual,
            answer.worst,
            solver.steps,
            time.perf_counter() - start_time,
            account.peak,
            status,
            {"stationarity": answer.worst, "complementary slackness": answer.bounds.worst_row},
            problem.convex,
            sentence,
        )
        return Solution(RiskValue(answer.c, answer.b, answer.Kc, answer.u, lam), status, certificate, answer.c)


def _choose(problem: RegularizedRisk, method: Method) -> Method:
    straight = problem.loss.tube(problem.targets) is not None
    if method == "auto":
        return "box" if straight else "auto" if problem.loss.smooth else "multipliers"
    if method == "box" and not straight:
        raise ParameterError(f"the {problem.loss.name} loss is not made of straight pieces; choose another method.")
    if method in ("newton", "newton-cg") and not problem.loss.smooth:
        raise ParameterError(f"the {problem.loss.name} loss is not smooth, which method={method!r} needs.")
    return method


def _minimise(problem: RegularizedRisk, solver: QuadraticSolver, aim: Aim, exact: bool) -> tuple[Answer, float]:
    if isinstance(problem.penalty, HalfSquare):
        return solver.solve(problem.alpha, aim), problem.alpha
    u = problem.weight * problem.loss.gradient(problem.targets, np.zeros(len(problem.targets)))
    s = math.sqrt(max(float(u @ np.asarray(problem.gram @ u)), 0.0))
    return search_factor(problem, solver, first_factor(problem, s), aim, exact)


def _status(aim: Aim, answer: Answer, out_of_steps: bool) -> Status:
    if aim.allows(answer.bounds):
        return Status.converged
    return Status.iteration_limit if out_of_steps else Status.stalled


def shared_gram(gram: GramMatrix, stack: ExitStack) -> GramMatrix:
    """K for several problems: in float64 where the budget has room for that and for a factor."""
    return hold_exact(gram, stack, beside=16 * gram.shape[0] ** 2).gram
