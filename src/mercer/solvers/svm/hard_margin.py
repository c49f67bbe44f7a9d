r"""Hard margin: the widest slab between two classes, or the proof that there is none.

With an intercept, the widest slab lies between the nearest points of the convex hulls of the two classes; without
one, half its width is the distance between the origin and the hull of the points :math:`y_i \phi(x_i)`. In the usual
dual, the weights grow without bound if the classes are not separable. This problem always has an answer: a distance of
zero proves that no hard margin exists.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

import numpy as np

from mercer._errors import InfeasibleError, ParameterError
from mercer.solvers.solution import Certificate, Solution, Status
from mercer.solvers.svm.box_qp import BoxQP, BoxQPValue
from mercer.solvers.svm.hulls import Hulls
from mercer.solvers.svm.pair_answers import Answer
from mercer.solvers.svm.pair_problem import PairMachine, PairProblem
from mercer.solvers.svm.rescaled import Rescaled, Rounds, solve_in_rounds
from mercer.solvers.svm.slack import least_slack
from mercer.solvers.svm.solver import BoxSolver, Start


@dataclass(frozen=True)
class HardMargin(PairMachine):
    r"""``min |w|^2 / 2`` subject to ``y_i (<w, phi_i> + b) >= 1``, or the proof that no (w, b) satisfies it.

    .. math:: d^2 = \min_\lambda \Bigl\| \sum_i \lambda_i y_i \phi(x_i) \Bigr\|^2 \quad\text{s.t.}\quad
              \lambda \ge 0,\; \sum_{y_i = +1} \lambda_i = \sum_{y_i = -1} \lambda_i = 1

    is the squared distance of the hulls, and :math:`\alpha = 2 \lambda / d^2` solves the dual of the hard margin.
    Without an intercept there is one sum, over all rows, and :math:`\alpha = \lambda / d^2`.

    With ``m`` the width of the slab that this w has among the rows (``m <= d^2``, equal at the solution),
    :math:`2 \lambda / m` belongs to a function that keeps to every constraint. The objective of that function is
    the ``primal`` of the certificate, so that it is infinite until a separating function has been found.

    Parameters
    ----------
    solver : BoxSolver
        ``tol`` is the most by which a row may be inside the slab, in units of the decision function.
    intercept : bool, default=True
        Whether there is an offset b.

    References
    ----------
    Bennett and Bredensteiner (2000), "Duality and geometry in SVM classifiers", ICML, section 2.

    Examples
    --------
    >>> from mercer.gram import PrecomputedGram
    >>> from mercer.solvers.svm.smo import SMO
    >>> x = np.array([[0.0], [1.0], [3.0], [5.0]])
    >>> problem = PairProblem(PrecomputedGram(x @ x.T), np.array([1.0, 1.0, -1.0, -1.0]), np.full(4, np.inf))
    >>> answer = HardMargin(SMO()).solve(problem)
    >>> answer.value.alpha.round(6), round(answer.value.offset, 6)
    (array([0. , 0.5, 0.5, 0. ]), 2.0)
    """

    def solve(self, problem: PairProblem, start: Start | None = None) -> Answer:
        """Solve ``problem``, whose bounds count as infinite, from weights of any scale.

        Returns
        -------
        Solution
            ``value`` is a ``BoxQPValue`` with ``beta = y alpha``; ``state`` holds the shares ``y lambda``.

        Raises
        ------
        InfeasibleError
            If float64 cannot tell the hulls apart: with mixtures that meet to rounding, and bounds of the least slack.
        ParameterError
            If the problem is not convex.
        """
        begin = time.perf_counter()
        if not problem.convex:
            raise ParameterError(
                "a hard margin (C=inf) needs a positive semi-definite kernel: with an indefinite one, a stationary "
                "point proves neither that the classes are separable nor that they are not. Choose a finite C or "
                "another kernel."
            )
        y, hulls = problem.y, Hulls.of(problem.gram, problem.y, self.intercept)
        matrix = None if problem.joined is None else problem.joined.matrix()
        if matrix is not None and not self.intercept:
            matrix = matrix * np.outer(y, y).astype(matrix.dtype)
        rescaled = Rescaled(
            hulls.problem,
            lambda value: hulls.width(value) / hulls.sides,
            gap=lambda answer: hulls.relative_gap(answer.value),
        )
        shares = None if start is None or start.beta is None else hulls.shares(start.beta)
        rounds = solve_in_rounds(rescaled, self.solver, Start(shares, matrix=matrix))
        value = rounds.solution.value
        # Where no step helps any more, what is left is the rounding of a sum over many weights.
        room = 100.0 if rounds.solution.status is Status.stalled else 1.0
        if hulls.meet(value, room * rounds.rounding):
            error = _not_separable(hulls, value, self.solver, room * rounds.rounding)
            error.pair = problem.pair
            raise error
        return _answer(hulls, rounds, self.solver, time.perf_counter() - begin)

    def box(self, problem: PairProblem) -> BoxQP:
        """Find the nearest points of the hulls."""
        return Hulls.of(problem.gram, problem.y, self.intercept).problem


def _answer(hulls: Hulls, rounds: Rounds, solver: BoxSolver, seconds: float) -> Answer:
    """Return the weights of the hard margin, and its certificate."""
    value, parts = rounds.solution.value, rounds.solution.certificate
    width, slab, ends = hulls.width(value), hulls.slab(value), hulls.ends(value)
    factor = hulls.sides / width
    signed = value.beta if hulls.sides == 2 else hulls.y * value.beta
    beta = factor * signed
    # In the middle: the row nearest to the other class is as far inside on either side.
    offset = factor * 0.5 * (ends[1] - ends[0]) if hulls.sides == 2 else 0.0
    heights = factor * hulls.heights(value)
    dual = 0.5 * hulls.sides * factor
    violation = factor * parts.kkt_violation
    excess = heights + hulls.y * offset - 1.0
    close = violation <= solver.tol and (solver.stop == "kkt" or hulls.relative_gap(value) <= solver.tol)
    status = Status.converged if close else _unfinished(rounds)
    certificate = Certificate(
        dual * (width / slab) ** 2 if slab > 0 else np.inf,
        dual,
        violation,
        rounds.steps,
        seconds,
        rounds.peak_bytes,
        status,
        {
            "stationarity": violation,
            "margin": max(0.0, -float(excess.min())),
            "complementary slackness": float((np.abs(beta) * excess).max()),
            "sum": parts.violations.get("sum", 0.0),
        },
    )
    gradient = hulls.y - hulls.y * heights
    return Solution(BoxQPValue(beta, (offset,), gradient), status, certificate, signed)


def _unfinished(rounds: Rounds) -> Status:
    """Return why the rounds ended, if the answer is not precise enough."""
    return Status.iteration_limit if rounds.solution.status is Status.iteration_limit else Status.stalled


def _not_separable(hulls: Hulls, value: BoxQPValue, solver: BoxSolver, rounding: float) -> InfeasibleError:
    """Return the error that states what was proved; ``rounding`` is that of the squared distance."""
    distance, bound = float(np.sqrt(max(hulls.width(value), 0.0))), float(np.sqrt(rounding))
    shares, low, high = least_slack(hulls, value, solver)
    same = (
        f"A mixture of {np.count_nonzero(shares[hulls.y > 0])} rows of the one and a mixture of "
        f"{np.count_nonzero(shares[hulls.y < 0])} rows of the other are the same point of it"
        if hulls.sides == 2
        else f"A mixture of {np.count_nonzero(shares)} points y_i phi(x_i) is zero"
    )
    return InfeasibleError(
        "the classes cannot be separated in the feature space of this kernel: not by a margin that float64 can resolve"
        f"{'' if hulls.sides == 2 else ', without an intercept'}. {same}, to the {bound:.1e} that rounding may make "
        f"of a distance (the least found is {distance:.1e}). So any function with |w| far below {1 / bound:.1e} needs "
        f"slacks that add up to {low:.4g} or more; {high:.4g} are enough. Choose a finite C, or another kernel.",
        multipliers=shares,
        distance=distance,
        least_slack=(low, high),
    )
