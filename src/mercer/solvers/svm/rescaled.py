"""Problems whose weights are divided by a margin that is part of the answer."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, replace

import numpy as np

from mercer._types import Array, Vector
from mercer.engine import memory
from mercer.gram.hold import fits, whole_matrix
from mercer.gram.protocol import GramMatrix
from mercer.solvers.solution import Status
from mercer.solvers.svm.box_qp import BoxQP, BoxQPValue
from mercer.solvers.svm.interior import interior_point
from mercer.solvers.svm.iterate import Iterate
from mercer.solvers.svm.pair_answers import Answer
from mercer.solvers.svm.quadratic import StoredQuadratic
from mercer.solvers.svm.smo import SMO, small_matrix
from mercer.solvers.svm.solver import BoxSolver, Start

# The first round ends at this part of the largest entry of K.
_FIRST = 1e-2
# Rounding of a float in units of eps, with room for the errors of a kernel and of a sum.
_ROUNDING = 64.0
# Without max_iter, the most steps for each row: where a margin is next to nothing, pairs of weights crawl without end.
_PATIENCE = 2000
# Up to this size the whole matrix is made after fewer steps, and an interior point method goes on from there.
_DENSE = 4000
_DENSE_PATIENCE = 200


@dataclass(frozen=True)
class Rounds:
    """The answer of the last round, the steps and memory of all rounds, and :func:`rounding_of` the problem."""

    solution: Answer
    steps: int
    peak_bytes: int
    rounding: float


def largest_entry(gram: GramMatrix) -> float:
    """Return the largest ``|K_ij|`` on the diagonal and in the first and last row, at least the least normal float."""
    ends = np.unique([0, gram.shape[0] - 1])
    return _largest(gram.diagonal(), gram.block(ends, None))


def rounding_of(gram: GramMatrix, entry: float) -> float:
    """Return the rounding error of ``beta'K beta`` for absolute weights with sum 1, and a largest entry."""
    return _ROUNDING * float(np.finfo(gram.dtype).eps) * entry


def _largest(*parts: Array) -> float:
    return max(float(np.finfo(np.float64).tiny), *(float(np.abs(part).max()) for part in parts))


@dataclass(frozen=True, eq=False)
class Rescaled:
    """A problem whose answer is divided by a margin.

    Parameters
    ----------
    problem : BoxQP
        The problem.
    margin : callable
        From the value to what its weights are to be divided by.
    size : float, default=1.0
        The sum of the sizes of the weights, which gradients are in proportion to.
    gap : callable, optional
        The relative gap, where ``stop="gap"`` asks for one that is at most ``tol``; by default the certificate's.
    first : float, optional
        The tolerance of the first round; by default a hundredth of the largest gradient.
    """

    problem: BoxQP
    margin: Callable[[BoxQPValue], float]
    size: float = 1.0
    gap: Callable[[Answer], float] = lambda answer: answer.certificate.relative_gap
    first: float | None = None


def solve_in_rounds(rescaled: Rescaled, solver: BoxSolver, start: Start) -> Rounds:
    """Solve with decreasing tolerances, until the violation is at most ``tol`` margins.

    Each round starts from the last one, so that the work is about that of a single solve. It ends earlier where the
    steps are used up or rounding stops it, and where the tolerance has come down to rounding. Without ``max_iter``
    there are 2000 steps for each row; up to 4000 rows 200, and an interior point method after them.

    Parameters
    ----------
    rescaled : Rescaled
        The problem.
    solver : BoxSolver
        ``tol`` is in units of the decision function, that is after the division.
    start : Start
        Feasible weights to begin with and K, where they are known.
    """
    problem, matrix = rescaled.problem, start.matrix
    with ExitStack() as stack:
        if matrix is None and isinstance(solver, SMO):
            # Made once for all rounds.
            matrix = small_matrix(problem.gram, stack)
        entry = np.inf if matrix is None else _largest(matrix.diagonal(), matrix[:1], matrix[-1:])
        if not np.isfinite(entry):
            # Also where the matrix overflows float32.
            entry = largest_entry(problem.gram)
        return _rounds(rescaled, solver, Start(start.beta, matrix=matrix), entry)


def _rounds(rescaled: Rescaled, solver: BoxSolver, start: Start, entry: float) -> Rounds:
    problem, n = rescaled.problem, len(rescaled.problem.linear)
    rounding = rounding_of(problem.gram, entry)
    floor = 0.125 * rescaled.size * rounding
    aim = max(floor, _FIRST * rescaled.size * entry if rescaled.first is None else rescaled.first)
    dense = solver.max_iter < 0 and n <= _DENSE and problem.convex
    patience = n * (_DENSE_PATIENCE if dense else _PATIENCE)
    limit = solver.max_iter if solver.max_iter >= 0 else patience
    steps = peak = 0
    while True:
        solution = solver.aiming_at(aim, limit).solve(problem, start)
        count = solution.certificate.iterations
        start, steps, limit = replace(start, beta=solution.state), steps + count, max(limit - count, 0)
        peak = max(peak, solution.certificate.peak_bytes)
        allowed = solver.tol * rescaled.margin(solution.value)
        close = solution.certificate.kkt_violation <= allowed
        done = close and (solver.stop == "kkt" or rescaled.gap(solution) <= solver.tol)
        stopped = solution.status in (Status.iteration_limit, Status.stalled)
        if not done and stopped and dense:
            beta, nbytes = _by_interior_point(problem, solution.state)
            start, peak, limit, dense = replace(start, beta=beta), max(peak, nbytes), patience, False
        elif done or stopped or aim <= floor:
            return Rounds(solution, steps, peak, rounding)
        else:
            aim = max(floor, min(0.1 * aim, 0.9 * allowed))


def _by_interior_point(problem: BoxQP, start: Vector) -> tuple[Vector, int]:
    """Return the answer of the interior point method if it is better than ``start``, else ``start``; and its memory."""
    n = len(start)
    nbytes = 16 * n * n
    if not fits(nbytes):
        return start, 0
    with memory.reserve(nbytes, "the kernel matrix and a factor"):
        K = whole_matrix(problem.gram, np.float64)
        A = Iterate.begin(problem, start).membership()
        weights = interior_point(
            StoredQuadratic(K), problem.linear, problem.lower, problem.upper, A, np.array(problem.totals)
        )
        return (weights if weights @ K @ weights < start @ K @ start else start), nbytes
