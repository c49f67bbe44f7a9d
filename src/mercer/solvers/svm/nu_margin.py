"""nu-SVM: the width of the margin is a variable, and nu its price."""

from __future__ import annotations

import time
from dataclasses import dataclass, field, replace
from typing import Self

import numpy as np
from numpy.typing import NDArray

from mercer._types import Integers, Vector
from mercer.gram.protocol import GramMatrix
from mercer.solvers.solution import Solution, Status
from mercer.solvers.svm.box_qp import BoxQP, BoxQPValue
from mercer.solvers.svm.pair_answers import Answer, Pair
from mercer.solvers.svm.pair_problem import PairMachine, PairProblem
from mercer.solvers.svm.rescaled import Rescaled, Rounds, solve_in_rounds
from mercer.solvers.svm.smo import SMO
from mercer.solvers.svm.solver import BoxSolver, Start
from mercer.solvers.svm.step_rule import StepRule
from mercer.solvers.svm.warm_starts import feasible

# A weight as close to its bound as this part of it is at the bound: as a free one it would decide an offset.
_AT_BOUND = 1e-9


def nu_problem(gram: GramMatrix, y: Vector, upper: Vector, total: float, *, convex: bool = True) -> BoxQP:
    r"""The dual of ``min |w|^2 / 2 - 2 total rho + sum_i upper_i max(0, rho - y_i (<w, phi_i> + b))``.

    The weights of either class sum to ``total``. Without the upper bounds this is the distance of two convex hulls;
    the bounds make the hulls smaller.

    Examples
    --------
    >>> from mercer.gram import PrecomputedGram
    >>> nu_problem(PrecomputedGram(np.eye(2)), np.array([1.0, -1.0]), np.ones(2), 0.5).totals
    (0.5, -0.5)
    """
    first = y > 0
    # Where all weights are at their bounds, rounding must not ask for more than that.
    total = min(total, float(upper[first].sum()), float(upper[~first].sum()))
    return BoxQP(
        gram,
        np.zeros(len(y)),
        np.where(first, 0.0, -upper),
        np.where(first, upper, 0.0),
        totals=(total, -total),
        groups=(~first).astype(np.int8),
        convex=convex,
    )


def solve_nu_margin(problem: BoxQP, solver: BoxSolver, start: Start | None = None) -> tuple[Answer, float]:
    r"""Solve a :func:`nu_problem`, and divide by the margin :math:`\rho` of its answer.

    With the multipliers :math:`b_0, b_1` of the two sums, :math:`\rho = (b_1 - b_0) / 2`, and the decision function
    is :math:`(\langle w, \phi \rangle + (b_0 + b_1) / 2) / \rho`: plus and minus one on the margin, as for the C-SVC
    with :math:`C = 1 / \rho`, of which it is the solution.

    Parameters
    ----------
    problem : BoxQP
        The problem.
    solver : BoxSolver
        ``tol`` is in units of the decision function.
    start : Start, optional
        Feasible weights to begin with and K, where they are known.

    Returns
    -------
    Solution
        ``value`` after the division; ``state`` before it. The objectives of the certificate are those of the problem.
    float
        rho; 0 where it is no more than rounding. Then the smaller hulls meet, ``w`` is zero to rounding, and nothing
        has been divided.

    References
    ----------
    Schoelkopf, Smola, Williamson and Bartlett (2000), "New support vector algorithms", Neural Computation 12,
    equations 32 to 41; Crisp and Burges (1999), "A geometric interpretation of nu-SVM classifiers", NIPS 12.

    Examples
    --------
    >>> from mercer.gram import PrecomputedGram
    >>> from mercer.solvers.svm.smo import SMO
    >>> problem = nu_problem(PrecomputedGram(np.eye(2)), np.array([1.0, -1.0]), np.ones(2), 0.5)
    >>> answer, rho = solve_nu_margin(problem, SMO())
    >>> answer.value.beta, rho
    (array([ 1., -1.]), 0.5)
    """
    begin = time.perf_counter()
    total = problem.totals[0]
    rescaled = Rescaled(problem, lambda value: _rho(offsets(problem, value)), size=2.0 * total)
    rounds = solve_in_rounds(rescaled, solver, start or Start())
    solution = rounds.solution
    multipliers = offsets(problem, solution.value)
    rho = _rho(multipliers)
    resolved = rho > total * rounds.rounding
    scale = 1.0 / rho if resolved else 1.0
    y = np.where(problem.upper > 0, 1.0, -1.0)
    beta, gradient = scale * solution.value.beta, y + scale * solution.value.gradient
    parts = solution.certificate
    violation = scale * parts.kkt_violation
    certificate = replace(
        parts,
        kkt_violation=violation,
        iterations=rounds.steps,
        seconds=time.perf_counter() - begin,
        peak_bytes=rounds.peak_bytes,
        violations={**parts.violations, "stationarity": violation},
        status=_status(problem, rounds, solver, violation),
    )
    value = BoxQPValue(beta, (scale * 0.5 * sum(multipliers),), gradient)
    return Solution(value, certificate.status, certificate, solution.state), rho if resolved else 0.0


@dataclass(frozen=True)
class NuMargin(PairMachine):
    """The nu-SVM of two classes; with ``factors``, the C-SVC at ``C = 1 / rho`` times the factors of the classes.

    Parameters
    ----------
    solver : BoxSolver
        ``tol`` is in units of the decision function.
    nu : float
        The share of the rows.
    factors : ndarray of shape (k,), optional
        Of all classes, among which those of a pair are; the bounds of a :class:`PairProblem` are multiplied by them.
    flat : list of tuple
        Takes the pairs whose margin is zero, to rounding: warnings of them are for the caller's thread.
    """

    nu: float = 0.5
    factors: Vector | None = field(default=None, compare=False)
    flat: list[Pair] = field(default_factory=list, compare=False)

    def solve(self, problem: PairProblem, start: Start | None = None) -> Answer:
        """Solve ``problem``; the weights of ``start`` are scaled to the required sums."""
        box = self.box(problem)
        matrix = None
        if problem.joined is not None and isinstance(self.solver, SMO):
            matrix = problem.joined.matrix()
        last = None if start is None else start.beta
        beta = None if last is None else feasible(_summing(last, box), box)
        answer, rho = solve_nu_margin(box, self.solver, Start(beta, matrix=matrix))
        first, second = self._of_pair(problem.pair)
        if rho == 0.0:
            self.flat.append(problem.pair)
        elif not first == second == 1.0:
            at = replace(problem, upper=problem.upper / rho)
            return self._reweighted(answer, rho, at, Start(min(1.0, first, second) * answer.value.beta, matrix=matrix))
        return answer

    def box(self, problem: PairProblem) -> BoxQP:
        """The :func:`nu_problem`."""
        weight = problem.upper / np.where(problem.y > 0, *self._of_pair(problem.pair))
        return nu_problem(problem.gram, problem.y, weight, 0.5 * self.nu * float(weight.sum()), convex=problem.convex)

    def is_compiled(self, from_zero: bool) -> bool:
        """True from zero, if no second problem follows the nu-SVM."""
        plain = self.factors is None or bool((self.factors == 1.0).all())
        return plain and from_zero and isinstance(self.solver, SMO)

    def of_classes(self, numbers: Integers) -> Self:
        """Return the machine with the factors of these classes."""
        return self if self.factors is None else replace(self, factors=self.factors[numbers])

    def rule(self, convex: bool) -> StepRule:
        """With ``nu``."""
        return replace(super().rule(convex), nu=self.nu)

    def _of_pair(self, pair: Pair) -> tuple[float, float]:
        first, second = (1.0, 1.0) if self.factors is None else self.factors[list(pair)].tolist()
        return first, second

    def _reweighted(self, answer: Answer, rho: float, problem: PairProblem, start: Start) -> Answer:
        """Solve the C-SVC at ``C = 1 / rho`` times the factors of the classes, from the answer without them."""
        steps = answer.certificate.iterations
        box = BoxQP.classification(problem.gram, problem.y, problem.upper, convex=problem.convex)
        weighted = self.solver.after(steps).solve(box, start)
        certificate = replace(weighted.certificate, iterations=weighted.certificate.iterations + steps)
        return replace(weighted, certificate=certificate, state=rho * weighted.state)


def _summing(beta: Vector, problem: BoxQP) -> Vector:
    """Return the weights of the last fit, which were divided by its rho, scaled to the required sum for each class."""
    beta = beta.copy()
    for part in (problem.upper > 0, problem.lower < 0):
        size = float(np.abs(beta[part]).sum())
        beta[part] *= problem.totals[0] / size if size > 0 else 0.0
    return beta


def offsets(problem: BoxQP, value: BoxQPValue) -> tuple[float, float]:
    """Return the multipliers of the two sums; the middle of the optimal interval if no weight is free, a common case.

    They do not depend on how copies of a row share its weight.
    """
    rounding = _AT_BOUND * (problem.upper - problem.lower)
    rising, falling = value.beta < problem.upper - rounding, value.beta > problem.lower + rounding
    first, second = (_offset(value.gradient[part], rising[part], falling[part]) for part in _groups(problem))
    return first, second


def _groups(problem: BoxQP) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    return problem.upper > 0, problem.lower < 0


def _offset(F: Vector, rising: NDArray[np.bool_], falling: NDArray[np.bool_]) -> float:
    free = rising & falling
    if free.any():
        return float(F[free].mean())
    ends = [float(end) for end in (F[rising].max(initial=-np.inf), F[falling].min(initial=np.inf)) if np.isfinite(end)]
    return sum(ends) / len(ends)


def _rho(multipliers: tuple[float, float]) -> float:
    return 0.5 * (multipliers[1] - multipliers[0])


def _status(problem: BoxQP, rounds: Rounds, solver: BoxSolver, violation: float) -> Status:
    gap = rounds.solution.certificate.relative_gap
    if violation <= solver.tol and (solver.stop == "kkt" or gap <= solver.tol):
        return Status.converged if problem.convex else Status.stationary
    limited = rounds.solution.status is Status.iteration_limit
    return Status.iteration_limit if limited else Status.stalled
