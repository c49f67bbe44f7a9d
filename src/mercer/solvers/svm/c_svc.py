"""The C-SVC of one pair of classes."""

from __future__ import annotations

from dataclasses import dataclass, replace

from mercer.solvers.solution import LARGE_GAP, Status
from mercer.solvers.svm.box_qp import BoxQP, BoxQPValue
from mercer.solvers.svm.certify import gradient_bounds, objectives, violations
from mercer.solvers.svm.iterate import Iterate
from mercer.solvers.svm.pair_answers import Answer
from mercer.solvers.svm.pair_problem import PairMachine, PairProblem
from mercer.solvers.svm.smo import SMO
from mercer.solvers.svm.solver import Start

# Scaling for the worst row of either class makes at most four times the violation.
_FINER = 0.25


@dataclass(frozen=True)
class CSVC(PairMachine):
    """The machine of :meth:`BoxQP.classification`.

    Where no weight reaches its bound, the answer is that of any larger C too, and of the hard margin. Slacks that are
    only rounding, or within the tolerance, then cost C times as much in the primal objective; they are removed if they
    make the gap large: the function is scaled such that no row is inside the margin.

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
                    return self._without_slack(problem, answer)
                start, steps = joined.reached
            start = replace(start, matrix=joined.matrix())
        answer = self._without_slack(problem, self.solver.solve(self.box(problem), start))
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

    def _without_slack(self, problem: PairProblem, answer: Answer) -> Answer:
        """Return an answer without slack, if that has a far smaller gap; else the same."""
        at_bound = (answer.value.alpha >= problem.upper).any()
        if answer.status is not Status.converged or answer.certificate.relative_gap <= LARGE_GAP or at_bound:
            return answer
        box = self.box(problem)
        scaled = _scaled(box, answer)
        if scaled is not None and scaled.certificate.kkt_violation > self.solver.tol:
            steps = answer.certificate.iterations
            finer = replace(self.solver.after(steps), tol=_FINER * self.solver.tol, stop="kkt")
            closer = finer.solve(box, Start(answer.value.beta, answer.value.gradient))
            certificate = replace(closer.certificate, iterations=steps + closer.certificate.iterations)
            scaled = _scaled(box, replace(closer, certificate=certificate))
        if scaled is None or scaled.certificate.kkt_violation > self.solver.tol:
            return answer
        return scaled if scaled.certificate.gap < answer.certificate.gap else answer


def _scaled(box: BoxQP, answer: Answer) -> Answer | None:
    """Return the answer divided by its least ``y_i f(x_i)``; None if that is not positive, or weights leave the box."""
    y, value = box.linear, answer.value
    heights = 1.0 - y * value.gradient
    low = [float(heights[side].min()) for side in (y > 0, y < 0)] if box.totals else [float(heights.min())] * 2
    point = Iterate.begin(box, value.beta)
    margin = 0.5 * sum(low) - float(gradient_bounds(box, point).max())
    beta = value.beta / margin if margin > 0 else value.beta
    if not margin > 0 or (beta < box.lower).any() or (beta > box.upper).any():
        return None
    point.beta, point.F = beta, y - y * heights / margin
    offsets = (0.5 * (low[1] - low[0]) / margin,) if box.totals else ()
    conditions = violations(point, offsets)
    certificate = replace(
        answer.certificate,
        primal=objectives(point, offsets)[0],
        dual=objectives(point, offsets)[1],
        kkt_violation=conditions["stationarity"],
        violations=conditions,
    )
    return replace(answer, value=BoxQPValue(beta, offsets, point.F), certificate=certificate, state=beta)
