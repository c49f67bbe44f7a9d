"""Regression that learns the width of its tube: the nu-SVR, and what it is where the best width is zero."""

from __future__ import annotations

import time
from dataclasses import replace

import numpy as np

from mercer.solvers.solution import Solution, Status
from mercer.solvers.svm.box_qp import BoxQP
from mercer.solvers.svm.pair_answers import Answer
from mercer.solvers.svm.solver import BoxSolver, Start
from mercer.solvers.svm.warm_starts import feasible

# By this part of their sum the weights of a tube that has a width may differ from it, through rounding.
_ROUNDING = 1e-9


def solve_nu_tube(problem: BoxQP, solver: BoxSolver, start: Start) -> Answer:
    r"""Solve the nu-SVR, whose problem states each row twice: with :math:`\alpha_i`, then with :math:`-\alpha^*_i`.

    With a tube of a width above zero no row has both weights, so that :math:`\sum_i |\alpha_i - \alpha^*_i|` is the sum
    of all. Where it is less, the solution has no tube, and is that of the problem in :math:`\beta = \alpha - \alpha^*`
    alone. That problem is solved then, because the pairs of weights cancel: their sums grow in proportion to C, and
    rounding of a large C would leave no digits of :math:`\beta`.

    Parameters
    ----------
    problem : BoxQP
        With ``once``.
    solver : BoxSolver
        Solves both problems.
    start : Start
        Feasible weights to begin with and K, where they are known.

    Returns
    -------
    Solution
        Of ``problem``. Without a tube ``value.beta`` is :math:`\beta`, (n,), not the weights of the rows stated twice.

    Examples
    --------
    >>> from mercer.gram import PrecomputedGram
    >>> from mercer.solvers.svm.smo import SMO
    >>> twice, x = np.tile(np.arange(3), 2), np.array([0.0, 1.0, 2.0])
    >>> gram, bound, zero = PrecomputedGram(np.outer(x, x)), np.full(3, 1e9), np.zeros(3)
    >>> lower, upper = np.concatenate([zero, -bound]), np.concatenate([bound, zero])
    >>> groups = np.repeat(np.array([0, 1], dtype=np.int8), 3)
    >>> sums = {"totals": (1e9, -1e9), "groups": groups, "once": gram}
    >>> problem = BoxQP(gram.restrict(twice, twice), np.tile(2.0 * x, 2), lower, upper, **sums)
    >>> answer = solve_nu_tube(problem, SMO(), Start())
    >>> answer.value.offsets, round(answer.certificate.dual, 9)
    ((0.0, 0.0), 2.0)
    """
    begin = time.perf_counter()
    solution = solver.solve(problem, start)
    beta, total = solution.value.beta.reshape(2, -1).sum(axis=0), 2.0 * problem.totals[0]
    all_used = np.abs(beta).sum() >= (1.0 - _ROUNDING) * total and solution.status is not Status.stalled
    if problem.once is None or all_used or solution.status is Status.iteration_limit:
        return solution
    n = len(beta)
    narrow = BoxQP(problem.once, problem.linear[:n], problem.lower[n:], problem.upper[:n], convex=problem.convex)
    steps = solution.certificate.iterations
    # From zero: what is left of weights that cancel may be rounding alone.
    closer = solver.after(steps).solve(narrow)
    if np.abs(closer.value.beta).sum() > total:
        # More weight than the tube has room for: its width is above zero.
        return solution
    certificate = replace(
        closer.certificate,
        iterations=steps + closer.certificate.iterations,
        seconds=time.perf_counter() - begin,
        peak_bytes=max(solution.certificate.peak_bytes, closer.certificate.peak_bytes),
    )
    value = replace(closer.value, offsets=2 * closer.value.offsets, gradient=np.tile(closer.value.gradient, 2))
    return Solution(value, closer.status, certificate, feasible(closer.value.beta, problem))
