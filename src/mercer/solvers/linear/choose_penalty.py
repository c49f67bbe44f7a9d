"""The penalty of a kernel system by leave-one-out, generalised cross-validation or evidence."""

from __future__ import annotations

from contextlib import ExitStack, suppress

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize_scalar

from mercer._errors import ParameterError
from mercer._types import Vector
from mercer.solvers.linear.cholesky import MIXED_FROM
from mercer.solvers.linear.left_out_search import search_left_out
from mercer.solvers.linear.linear_system import LinearSystem
from mercer.solvers.linear.penalty_curves import (
    LOWEST,
    TIE,
    PenaltyCurves,
    best_of,
    costs_of,
    default_penalties,
    rounded,
    tie_of,
    trace,
    trace_also,
)
from mercer.solvers.linear.penalty_path import Criterion, PenaltyPath, TooRough

_LOG_TOLERANCE = 2e-3
_MOST_STEPS = 12
# What counts as equal among penalties that are given.
_GIVEN_TIE = 1e-9
# Criteria from float32 are to be known to this share of what counts as equal where they count; elsewhere, penalties are
# ruled out by this many times what the criteria are off.
_KNOWN, _MARGIN = 0.5, 4.0
# Sizes of entries that float32 holds with their products.
_SINGLE_RANGE = 1e-15, 1e15


def reduce_and_choose(
    system: LinearSystem,
    stack: ExitStack,
    criterion: Criterion,
    alphas: Vector | None,
    *,
    per_target: bool,
    n_jobs: int | None = None,
) -> tuple[PenaltyPath, Vector, PenaltyCurves]:
    """What :func:`choose` gives, and the path that it was chosen from: in float32 as far as the choice is the same.

    Parameters
    ----------
    system : LinearSystem
    held : ExitStack
        Memory of the path stays reserved until it is closed.
    criterion : {"loo", "gcv", "evidence"}
    alphas : ndarray or None
    per_target : bool
        As for :func:`choose`.
    n_jobs : int, optional

    Notes
    -----
    From 2048 rows on the matrix is reduced in float32, except for its leading part. Its criteria are used if
    measurements on some rows (:meth:`PenaltyPath.doubt`) show that they are off by less than what counts as equal
    wherever a penalty may be the best. Otherwise everything is repeated in float64.

    Raises
    ------
    ParameterError
        As :func:`choose`.
    """
    size = float(np.abs(system.scaled().diagonal()).sum())
    single_for = min(LOWEST * size, np.inf if alphas is None else float(alphas.min()))
    in_range = _SINGLE_RANGE[0] < size / system.shape[0] < _SINGLE_RANGE[1]
    if system.convex and system.shape[0] >= MIXED_FROM and in_range and single_for > 0:
        with ExitStack() as trial:
            path = PenaltyPath(system, trial, single_rows=criterion == "loo", n_jobs=n_jobs, single_for=single_for)
            with suppress(TooRough):
                penalties, curves = choose(path, criterion, alphas, per_target=per_target)
                if not path.single or _is_certain(path, criterion, alphas, curves, per_target=per_target):
                    stack.push(trial.pop_all())
                    return path, penalties, curves
    path = PenaltyPath(system, stack, single_rows=criterion == "loo", n_jobs=n_jobs)
    return path, *choose(path, criterion, alphas, per_target=per_target)


def _is_certain(
    path: PenaltyPath, criterion: Criterion, alphas: Vector | None, curves: PenaltyCurves, *, per_target: bool
) -> bool:
    """Whether curves in float32 choose what those in float64 would, up to what counts as equal."""
    costs = costs_of(curves, criterion, per_target)
    smallest = float(curves.alphas[_rivals(path, criterion, costs, TIE).any(axis=1).argmax()])
    doubt = path.doubt(smallest)
    # Errors of an inverse grow no faster than the penalty falls.
    shares = _MARGIN * doubt * np.maximum(1.0, smallest / curves.alphas)[:, None]
    rival = float(curves.alphas[_rivals(path, criterion, costs, TIE + shares).any(axis=1).argmax()])
    if rival < smallest:
        doubt = path.doubt(rival)
    if doubt > _KNOWN * TIE:
        return False
    # Penalties that the user gave are distinguished to the last digit.
    return alphas is None or bool((_rivals(path, criterion, costs, _MARGIN * doubt).sum(axis=0) == 1).all())


def _rivals(path: PenaltyPath, criterion: Criterion, costs: Vector, share: float | Vector) -> NDArray[np.bool_]:
    """Which penalties may be the best if criteria are off by a share, the same or one for each, (m, 1)."""
    relative, amount = tie_of(path, criterion, 1.0)
    least = costs.min(axis=0)
    close: NDArray[np.bool_] = costs <= least + share * (relative * np.abs(least) + amount)
    return close | ~np.isfinite(costs)


def choose(
    path: PenaltyPath, criterion: Criterion, alphas: Vector | None, *, per_target: bool
) -> tuple[Vector, PenaltyCurves]:
    """The best penalty of each target, (k,), and the curves at all that were given or are worth to be kept.

    Parameters
    ----------
    path : PenaltyPath
    criterion : {"loo", "gcv", "evidence"}
    alphas : ndarray or None
        The penalties to choose from; None for any, found next to the best of a grid: by Brent's method, or for
        leave-one-out by :func:`mercer.solvers.linear.left_out_search.search_left_out`, with fewer values.
    per_target : bool
        Whether every target has a penalty of its own; else one serves all, by the sum of the targets' criteria.

    Raises
    ------
    ParameterError
        If the matrix is singular to working precision with all of the penalties.
    """
    if alphas is None and criterion == "loo":
        curves = search_left_out(path, per_target=per_target)
    elif alphas is None:
        curves = trace(path, default_penalties(path.size))
        costs = costs_of(curves, criterion, per_target)
        better = [_between(path, criterion, per_target, curves.alphas, cost, j) for j, cost in enumerate(costs.T)]
        curves = trace_also(path, curves, [alpha for alpha in better if alpha is not None])
    else:
        curves = trace(path, alphas)
    costs = costs_of(curves, criterion, per_target)
    if np.isposinf(costs).all(axis=0).any():
        raise ParameterError(
            f"alpha={criterion!r} cannot choose: for none of the {len(curves.alphas)} penalties from "
            f"{curves.alphas[0]:.3g} to {curves.alphas[-1]:.3g} is the kernel matrix plus alpha on its diagonal "
            "positive definite to working precision. Give larger alphas, or a number as alpha."
        )
    tie = tie_of(path, criterion, TIE if alphas is None else _GIVEN_TIE)
    penalties = np.array([curves.alphas[best_of(cost, *tie)] for cost in costs.T])
    return np.broadcast_to(penalties, path.system.shape[1]).copy(), curves


def _between(
    path: PenaltyPath, criterion: Criterion, per_target: bool, alphas: Vector, cost: Vector, target: int
) -> float | None:
    """A better penalty next to the best one on the grid, if there is one on either side."""
    best = best_of(cost, *tie_of(path, criterion, TIE))
    if not 0 < best < len(alphas) - 1 or not np.isfinite(cost[best - 1 : best + 2]).all():
        return None

    def value(log_alpha: float) -> float:
        return float(costs_of(trace(path, np.array([10.0**log_alpha])), criterion, per_target)[0, target])

    bounds = np.log10(alphas[[best - 1, best + 1]])
    minimum = minimize_scalar(
        value, bounds=tuple(bounds), method="bounded", options={"xatol": _LOG_TOLERANCE, "maxiter": _MOST_STEPS}
    )
    return rounded(10.0 ** float(minimum.x))
