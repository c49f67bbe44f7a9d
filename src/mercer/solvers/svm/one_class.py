"""The one-class SVM: a tolerance in proportion to its decision values, which are as small as the kernel's values."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace

import numpy as np

from mercer.solvers.solution import Status
from mercer.solvers.svm.box_qp import BoxQP, BoxQPValue
from mercer.solvers.svm.pair_answers import Answer
from mercer.solvers.svm.rescaled import Rescaled, solve_in_rounds
from mercer.solvers.svm.solver import BoxSolver, Start, ended

# The first round after the first answer aims at this part of the violation that is allowed there.
_PART = 0.9


def solve_one_class(problem: BoxQP, solver: BoxSolver, start: Start) -> Answer:
    r"""Solve the problem of a one-class SVM, whose linear term is zero, to a violation of ``tol`` times its scale.

    All gradients of ``beta'K beta / 2`` are in proportion to K. No unit of the decision function is then given by the
    problem itself, as it is by labels of plus and minus one, and a violation of ``tol`` can be larger than all
    decision values. The scale is :math:`\min(1, \max(|\rho|, \mathrm{tol} \sum_i \beta_i\, m))` with the offset
    :math:`\rho` and the median m of the diagonal of K. The second term is for rows around the origin, for which w and
    :math:`\rho` are zero, so that no violation is small beside them. With a scale of 1 one solve is all.

    Parameters
    ----------
    problem : BoxQP
        The problem, with one sum.
    solver : BoxSolver
        ``tol`` is in units of the decision function if that is above 1, else relative to it.
    start : Start
        What is known before the solve.

    Returns
    -------
    Solution
        With the steps, time and memory of all rounds, and a status that is about the scaled tolerance.

    Examples
    --------
    >>> from mercer.gram import PrecomputedGram
    >>> from mercer.solvers.svm.smo import SMO
    >>> gram = PrecomputedGram(1e-6 * np.diag([1.0, 2.0]))
    >>> problem = BoxQP(gram, np.zeros(2), np.zeros(2), np.ones(2), totals=(1.0,))
    >>> solve_one_class(problem, SMO(), Start()).value.beta.round(6)
    array([0.666667, 0.333333])
    """
    begin = time.perf_counter()
    first = solver.solve(problem, start)
    scale = _Scale.of(problem, solver)
    if first.status not in (Status.converged, Status.stationary) or scale.is_met(first):
        return first
    allowed = _PART * solver.tol * scale(first.value)
    rescaled = Rescaled(problem, scale, size=problem.totals[0], gap=scale.gap, first=allowed)
    steps = first.certificate.iterations
    rounds = solve_in_rounds(rescaled, solver.after(steps), Start(first.state, matrix=start.matrix))
    last, steps = rounds.solution, rounds.steps + steps
    out_of_steps = last.status is Status.iteration_limit
    certificate = replace(
        last.certificate,
        iterations=steps,
        seconds=time.perf_counter() - begin,
        peak_bytes=max(first.certificate.peak_bytes, rounds.peak_bytes),
        status=ended(problem.convex, scale.is_met(last), out_of_steps),
    )
    return replace(last, status=certificate.status, certificate=certificate)


@dataclass(frozen=True)
class _Scale:
    """The unit of the tolerance at an answer; ``least`` is the smallest one, ``largest`` the largest ``|K_ii|``."""

    solver: BoxSolver
    least: float
    largest: float

    @classmethod
    def of(cls, problem: BoxQP, solver: BoxSolver) -> _Scale:
        diagonal = np.abs(problem.gram.diagonal())
        return cls(solver, solver.tol * problem.totals[0] * float(np.median(diagonal)), float(diagonal.max()))

    def __call__(self, value: BoxQPValue) -> float:
        return min(1.0, max(abs(value.offsets[0]), self.least))

    def is_met(self, answer: Answer) -> bool:
        """Whether the stopping rule is met in these units."""
        tol = self.solver.tol
        if answer.certificate.kkt_violation > tol * self(answer.value):
            return False
        return self.solver.stop == "kkt" or self.gap(answer) <= tol

    def gap(self, answer: Answer) -> float:
        """The gap relative to the objective or, if that is about 0, to where all scores are within ``tol``."""
        primal, dual = answer.certificate.primal, answer.certificate.dual
        least = 0.5 * self.solver.tol * self(answer.value) ** 2 / self.largest if self.largest > 0 else 0.0
        unit = max(abs(primal), abs(dual), least)
        return (primal - dual) / unit if unit > 0 else 0.0
