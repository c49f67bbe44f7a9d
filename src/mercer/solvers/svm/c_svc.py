"""The C-SVC of one pair of classes."""

from __future__ import annotations

from dataclasses import dataclass, replace

from mercer.solvers.svm.box_qp import BoxQP
from mercer.solvers.svm.pair_answers import Answer
from mercer.solvers.svm.pair_problem import PairMachine, PairProblem
from mercer.solvers.svm.smo import SMO
from mercer.solvers.svm.solver import Start


@dataclass(frozen=True)
class CSVC(PairMachine):
    """The machine of :meth:`BoxQP.classification`.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.gram import PrecomputedGram
    >>> problem = PairProblem(PrecomputedGram(np.eye(2)), np.array([1.0, -1.0]), np.full(2, 10.0))
    >>> CSVC(SMO()).solve(problem).value.beta
    array([ 1., -1.])
    """

    def solve(self, problem: PairProblem, start: Start | None = None) -> Answer:
        """Solve ``problem``; small ones by steps on rows that are computed on demand, unless steps are limited."""
        start, steps, joined = start or Start(), 0, problem.joined
        if joined is not None and isinstance(self.solver, SMO):
            if self.intercept and self.solver.max_iter < 0:
                answer = joined.solve(problem.upper, self.rule(problem.convex), start)
                if answer is not None:
                    return answer
                start, steps = joined.reached
            start = replace(start, matrix=joined.matrix())
        answer = self.solver.solve(self.box(problem), start)
        certificate = replace(answer.certificate, iterations=answer.certificate.iterations + steps)
        return replace(answer, certificate=certificate)

    def box(self, problem: PairProblem) -> BoxQP:
        """Return the problem with ``0 <= y_i beta_i <= upper_i``."""
        return BoxQP.classification(
            problem.gram, problem.y, problem.upper, intercept=self.intercept, convex=problem.convex
        )

    def is_compiled(self, from_zero: bool) -> bool:
        """True for any start."""
        return isinstance(self.solver, SMO)
