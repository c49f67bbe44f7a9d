"""Bounds of the least sum of slacks if two classes are not separable."""

from __future__ import annotations

import numpy as np

from mercer._types import Vector
from mercer.solvers.svm.box_qp import BoxQP, BoxQPValue
from mercer.solvers.svm.hulls import Hulls
from mercer.solvers.svm.rescaled import largest_entry, rounding_of
from mercer.solvers.svm.solver import BoxSolver

# C of two soft margins, in units of 1 / (largest entry of K): slack costs more than the width of the margin, and far
# more, where the steps may not suffice to get there.
_PRICES = (1e2, 1e6)
_MOST_C = 1e30
# The most steps for each row: the bounds hold wherever the solver is stopped.
_STEPS = 200
# The part of the upper bound that is tried as lower bound; then this many times what is in the middle of the two.
_NEARLY = 0.999
_HALVINGS = 3


def least_slack(hulls: Hulls, value: BoxQPValue, solver: BoxSolver) -> tuple[Vector, float, float]:
    r"""Shares of two mixtures that meet, and bounds of the least sum of slacks that they prove.

    With the sum of slacks :math:`\sum_i \xi_i`, :math:`\xi_i = \max(0, 1 - y_i (\langle w, \phi_i \rangle + b))`:
    where the mixtures with shares :math:`\lambda` are one point, :math:`\alpha = \lambda / \max \lambda` is at most 1
    and has :math:`\sum_i \alpha_i y_i \phi_i = 0` and :math:`\sum_i \alpha_i y_i = 0`. So for any (w, b)

    .. math:: \sum_i \xi_i \ge \sum_i \alpha_i \xi_i \ge \sum_i \alpha_i (1 - y_i f(x_i)) = \sum_i \alpha_i.

    The more evenly the shares are spread, the more they prove: mixtures of shares just small enough to prove what the
    upper bound says are looked for, too. The upper bound is what a soft margin at a large C does need.

    Parameters
    ----------
    hulls : Hulls
        The hulls.
    value : BoxQPValue
        Nearest points that are one, to rounding.
    solver : BoxSolver
        Its threads and memory are used; tolerance and limit are chosen here.

    Returns
    -------
    tuple
        Shares, (n,); lower bound (to rounding); upper bound.
    """
    shares = np.abs(value.beta)
    high = _slack_of_soft_margin(hulls, solver)
    total = _NEARLY * high / hulls.sides
    for _ in range(1 + _HALVINGS):
        if total * shares.max() <= 1.01:
            break
        mixtures = _meeting(hulls, total, solver)
        if mixtures is None:
            total = 0.5 * (total + 1.0 / float(shares.max()))
            continue
        shares = mixtures
        break
    # Where the two bounds are equal, rounding may have exchanged them.
    return shares, min(hulls.sides / float(shares.max()), high), high


def _meeting(hulls: Hulls, total: float, solver: BoxSolver) -> Vector | None:
    """Return shares of equal mixtures, none of them above ``1 / total``; None if there seem to be none."""
    wider = Hulls.of(hulls.gram, hulls.y, hulls.sides == 2, total)
    rounding = rounding_of(hulls.gram, largest_entry(hulls.gram))
    value = _solve(wider.problem, 0.1 * total * rounding, solver)
    return np.abs(value.beta) / total if wider.width(value) <= rounding * total**2 else None


def _slack_of_soft_margin(hulls: Hulls, solver: BoxSolver) -> float:
    """Return the sum of slacks of a function fitted at a large C; at most that of a constant function."""
    n, y = len(hulls.y), hulls.y
    entry = largest_entry(hulls.gram)
    least = 2.0 * min(np.count_nonzero(y > 0), np.count_nonzero(y < 0)) if hulls.sides == 2 else float(n)
    for price in _PRICES:
        C = np.full(n, min(price / entry, _MOST_C))
        value = _solve(BoxQP.classification(hulls.gram, y, C, intercept=hulls.sides == 2), 1e-6, solver)
        least = min(least, float(np.maximum(0.0, y * (value.gradient - value.offset)).sum()))
    return least


def _solve(problem: BoxQP, tol: float, solver: BoxSolver) -> BoxQPValue:
    return solver.aiming_at(tol, _STEPS * len(problem.linear)).solve(problem).value
