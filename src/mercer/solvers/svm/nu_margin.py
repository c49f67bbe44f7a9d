"""nu-SVM: the width of the margin is a variable, and nu its price."""

from __future__ import annotations

import time
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from mercer._types import Array, Vector
from mercer.gram.protocol import GramMatrix
from mercer.solvers.solution import Solution, Status
from mercer.solvers.svm.box_qp import BoxQP, BoxQPValue
from mercer.solvers.svm.pairwise import Answer, Controls
from mercer.solvers.svm.rescaled import Rounds, solve_in_rounds

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


def solve_nu_margin(
    problem: BoxQP, *, controls: Controls, start: Vector | None = None, matrix: Array | None = None
) -> tuple[Answer, float]:
    r"""Solve a :func:`nu_problem`, and divide by the margin :math:`\rho` that it finds.

    With the multipliers :math:`b_0, b_1` of the two sums, :math:`\rho = (b_1 - b_0) / 2`, and the decision function
    is :math:`(\langle w, \phi \rangle + (b_0 + b_1) / 2) / \rho`: plus and minus one on the margin, as for the C-SVC
    with :math:`C = 1 / \rho`, of which it is the solution.

    Parameters
    ----------
    problem : BoxQP
        The problem.
    controls : Controls
        ``tol`` is in units of the decision function.
    start : ndarray of shape (n,), optional
        Feasible weights to begin with.
    matrix : ndarray of shape (n, n), optional
        K, where the caller has it already.

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
    >>> problem = nu_problem(PrecomputedGram(np.eye(2)), np.array([1.0, -1.0]), np.ones(2), 0.5)
    >>> controls = Controls(tol=1e-3, max_iter=-1, cache_bytes=2**20, n_jobs=1, convex=True)
    >>> answer, rho = solve_nu_margin(problem, controls=controls)
    >>> answer.value.beta, rho
    (array([ 1., -1.]), 0.5)
    """
    begun = time.perf_counter()
    total = problem.totals[0]
    rounds = solve_in_rounds(
        problem,
        lambda value: _rho(offsets(problem, value)),
        controls=controls,
        start=start,
        matrix=matrix,
        size=2.0 * total,
    )
    found = rounds.solution
    multipliers = offsets(problem, found.value)
    rho = _rho(multipliers)
    resolved = rho > total * rounds.rounding
    scale = 1.0 / rho if resolved else 1.0
    y = np.where(problem.upper > 0, 1.0, -1.0)
    value = BoxQPValue(scale * found.value.beta, (scale * 0.5 * sum(multipliers),), y + scale * found.value.gradient)
    parts = found.certificate
    violation = scale * parts.kkt_violation
    certificate = replace(
        parts,
        kkt_violation=violation,
        iterations=rounds.steps,
        seconds=time.perf_counter() - begun,
        peak_bytes=rounds.peak_bytes,
        violations={**parts.violations, "stationarity": violation},
        status=_status(problem, rounds, controls, violation),
    )
    return Solution(value, certificate.status, certificate, found.state), rho if resolved else 0.0


def offsets(problem: BoxQP, value: BoxQPValue) -> tuple[float, float]:
    """The multipliers of the two sums; the middle of the optimal ones where no weight is free, as often with this nu.

    They do not depend on how copies of a row share its weight.
    """
    near = _AT_BOUND * (problem.upper - problem.lower)
    rising, falling = value.beta < problem.upper - near, value.beta > problem.lower + near
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


def _status(problem: BoxQP, rounds: Rounds, controls: Controls, violation: float) -> Status:
    gap = rounds.solution.certificate.relative_gap
    if violation <= controls.tol and (controls.stop == "kkt" or gap <= controls.tol):
        return Status.converged if problem.convex else Status.stationary
    limited = rounds.solution.status is Status.iteration_limit
    return Status.iteration_limit if limited else Status.stalled
