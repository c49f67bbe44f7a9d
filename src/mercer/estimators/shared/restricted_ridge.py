"""Ridge regression over landmarks, for given penalties or those that a criterion chooses."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from mercer._errors import MercerWarning, ParameterError, warn_user
from mercer._types import Matrix, Vector
from mercer.estimators.shared.baseline import no_offset_remedy, warn_if_worse_than_mean
from mercer.estimators.shared.restricted import Restriction, continued
from mercer.solvers.linear.penalty_curves import TIE, PenaltyCurves, best_of, costs_of, default_penalties, rounded
from mercer.solvers.linear.penalty_path import Criterion
from mercer.solvers.restricted.least_squares import RestrictedCG, RestrictedState
from mercer.solvers.restricted.least_squares_problem import RestrictedLeastSquares
from mercer.solvers.restricted.passes import Passes
from mercer.solvers.restricted.penalties import DecomposedRows
from mercer.solvers.restricted.whitening import Whitening
from mercer.solvers.solution import Certificate, Solution, Status

# Penalties between the neighbours of the best one of the grid: for leave-one-out, of which each takes time, and others.
_BETWEEN = {True: 31, False: 95}
# A gap of this share of the objective changes predictions by less than a tenth of the residuals.
_VISIBLE = 1e-2
# Rows on which a fit is compared with the mean.
_SAMPLE = 2000


@dataclass(frozen=True, eq=False)
class RidgeAnswer:
    """The penalty of each target, the solution, and the curves by which a criterion has chosen."""

    alphas: Vector
    solution: Solution[Matrix, RestrictedState]
    curves: PenaltyCurves | None


@dataclass(frozen=True, eq=False)
class RidgeOnLandmarks:
    """Least squares over landmarks with given penalties, or those that a criterion chooses.

    Parameters
    ----------
    criterion : str or None
        That chooses the penalty; None for given ones.
    choices : ndarray or None
        The penalties to choose from; None for any.
    per_target : bool
        Whether each target has its own.
    given : ndarray of shape (k,) or None
        The penalties without a criterion.
    """

    criterion: Criterion | None
    choices: Vector | None
    per_target: bool
    given: Vector | None

    @property
    def settings(self) -> list[object]:
        """What the answer depends on, for JSON."""
        choices, given = (None if part is None else part.tolist() for part in (self.choices, self.given))
        return [given] if self.criterion is None else [self.criterion, choices, self.per_target]

    def solve(self, learner: Any, parts: Restriction, rows: Passes) -> RidgeAnswer:
        """Solve for rows in any form, with warnings where the answer is bad."""
        curves, begin = None, continued(learner, parts)
        start, alphas = None if begin is None else begin[0], self.given
        if alphas is None:
            assert self.criterion is not None
            alphas, curves, start = choose_penalties(
                rows, parts.white, self.criterion, self.choices, per_target=self.per_target
            )
        problem = RestrictedLeastSquares(rows, parts.white, alphas)
        solution = RestrictedCG(learner.tol).solve(problem, start)
        name = type(learner).__name__
        _warn_of_gap(name, solution.certificate, learner.tol)
        _warn_if_worse_than_mean(name, problem, solution.value)
        return RidgeAnswer(alphas, solution, curves)


def choose_penalties(
    rows: Passes, white: Whitening, criterion: Criterion, alphas: Vector | None, *, per_target: bool
) -> tuple[Vector, PenaltyCurves, Matrix]:
    """The penalty of each target (k,), the curves that it was chosen by, and the coordinates of the solution (m, k).

    It takes one pass and one decomposition, and for ``"loo"`` one more pass, or two if the penalties are not given.

    Raises
    ------
    ParameterError
        If a given penalty is 0.
    """
    if alphas is not None and not (alphas > 0).all():
        raise ParameterError(f"an approximation by landmarks needs alphas > 0, but one is {alphas.min():g}.")
    decomposed = DecomposedRows.of(rows, white)
    single = criterion == "loo"
    tried = default_penalties(decomposed.size) if alphas is None else np.unique(alphas)
    curves = _curves(decomposed, tried, single)
    if alphas is None:
        more = _between(curves, criterion, per_target)
        if len(more):
            curves = _joined(curves, _curves(decomposed, more, single))
    costs = costs_of(curves, criterion, per_target)
    if np.isposinf(costs).all(axis=0).any():
        raise ParameterError(
            f"alpha={criterion!r} cannot choose: none of the {len(curves.alphas)} penalties from "
            f"{curves.alphas[0]:.3g} to {curves.alphas[-1]:.3g} has a finite criterion. Give larger alphas, or a "
            "number as alpha."
        )
    best = [_best(cost, criterion, decomposed.total) for cost in costs.T]
    penalties = np.broadcast_to(curves.alphas[best], len(decomposed.squares)).copy()
    return penalties, curves, decomposed.coordinates(penalties)


def _best(cost: Vector, criterion: Criterion, total: float) -> int:
    share, amount = (0.0, 0.5 * total * TIE) if criterion == "evidence" else (TIE, 0.0)
    return best_of(cost, share, amount)


def _between(curves: PenaltyCurves, criterion: Criterion, per_target: bool) -> Vector:
    """Penalties next to the best ones."""
    last, more = len(curves.alphas) - 1, []
    for cost in costs_of(curves, criterion, per_target).T:
        best = int(np.argmin(cost))
        low, high = curves.alphas[max(best - 1, 0)], curves.alphas[min(best + 1, last)]
        if low < high:
            more += [rounded(alpha) for alpha in np.geomspace(low, high, _BETWEEN[criterion == "loo"] + 2)[1:-1]]
    return np.setdiff1d(more, curves.alphas)


def _curves(decomposed: DecomposedRows, alphas: Vector, single: bool) -> PenaltyCurves:
    gcv, evidence = decomposed.of_sums(alphas)
    return PenaltyCurves(alphas, decomposed.left_out_errors(alphas) if single else None, gcv, evidence)


def _joined(one: PenaltyCurves, other: PenaltyCurves) -> PenaltyCurves:
    alphas = np.concatenate([one.alphas, other.alphas])
    order = np.argsort(alphas)
    loo = None if one.loo is None or other.loo is None else np.concatenate([one.loo, other.loo])[order]
    gcv, evidence = np.concatenate([one.gcv, other.gcv]), np.concatenate([one.evidence, other.evidence])
    return PenaltyCurves(alphas[order], loo, gcv[order], evidence[order])


def _warn_if_worse_than_mean(learner: str, problem: RestrictedLeastSquares, coefficients: Matrix) -> None:
    """Warn if a function is worse than the mean of the targets, on a sample of the rows of its fit."""
    K, part = problem.rows.sample(_SAMPLE, np.random.RandomState(0))
    weights = None if (part.weights == 1.0).all() else part.weights[:, 0]
    warn_if_worse_than_mean(learner, part.targets, K @ coefficients, weights, no_offset_remedy(part.targets))


def _warn_of_gap(learner: str, certificate: Certificate, tol: float) -> None:
    """Warn if a solution may be visibly worse than the best one over its landmarks."""
    if certificate.status is Status.interrupted:
        warn_user(f"{learner}: {certificate.status.value}", ConvergenceWarning)
    elif certificate.relative_gap > max(tol, _VISIBLE):
        warn_user(
            f"{learner}: the objective over the landmarks may be {100 * certificate.relative_gap:.2g} % above the "
            f"least one after {certificate.iterations} passes over the rows. Raise alpha, or scale the columns of X.",
            MercerWarning,
        )
