"""The penalty of the least leave-one-out error, from few diagonals of inverses."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from mercer._types import Matrix, Positions, Vector
from mercer.solvers.linear.penalty_curves import (
    TIE,
    PenaltyCurves,
    best_of,
    costs_of,
    default_penalties,
    gathered,
    rounded,
)
from mercer.solvers.linear.penalty_path import Criterion, PenaltyPath

# Every second penalty of the grid is tried first: one a decade.
_STRIDE = 2
# Nodes of the interpolating polynomial: next to a penalty of the grid, and around the best one.
_NEAR, _AROUND = 4, 5
# Interpolated values on the grid are off by less than this share (measured: up to 12 %), training errors by less than
# the second one, also from a matrix that was reduced in float32.
_SLACK, _ROOM = 0.15, 0.01
# Common logarithms of penalties: how well the minimum is to be known, and what it is looked for at.
_LOG_TOLERANCE, _LOG_STEP = 2e-3, 5e-4
_MOST_STEPS = 6


def search_left_out(path: PenaltyPath, *, per_target: bool) -> PenaltyCurves:
    r"""The curves at penalties of a grid that may be the best, and at the least value between them.

    The error :math:`e_i` of a row left out is a smooth function of :math:`t = \log \mu`: its singularities are where
    :math:`-\mu` is an eigenvalue of A without that row, at a distance of :math:`\pi` from the real line. Between the
    penalties :math:`\mu_a` where it was computed, it is interpolated by the polynomial
    :math:`\sum_a \ell_a(t) e_i(\mu_a)`. The sum of squares is then a quadratic form in :math:`\ell(t)`, whose matrix
    has the inner products of the errors at the nodes. Every value that is returned is exact: interpolation only tells
    where to compute the next one.

    Parameters
    ----------
    path : PenaltyPath
        With ``single_rows=True``.
    per_target : bool
        Whether the least value is looked for separately for every target, or for their sum.

    Notes
    -----
    Every diagonal of an inverse takes about :math:`130\, n^2` operations. Penalties are not tried if the mean squared
    error of the fit on its own rows is already larger than the least of leave-one-out, which bounds that from below.
    About ten diagonals are left, where the whole grid and Brent's method take thirty.
    """
    grid = default_penalties(path.size)
    costs = _CriteriaCache(path)
    training = np.array(
        [path.training_errors(float(alpha)) if path.system.convex else np.zeros(path.system.shape[1]) for alpha in grid]
    )
    groups = [np.array([j]) for j in range(path.system.shape[1])] if per_target else [np.arange(path.system.shape[1])]
    penalties: set[float] = set()
    for targets in groups:
        one = _OneChoice(costs, targets, grid, training[:, targets].sum(axis=1))
        penalties.update(one.search())
    return gathered({alpha: costs.criteria[alpha] for alpha in penalties})


class _CriteriaCache:
    """Criteria and errors at the penalties where they were computed, each once."""

    def __init__(self, path: PenaltyPath) -> None:
        self._path = path
        self.criteria: dict[float, dict[Criterion, Vector]] = {}
        self._errors: dict[float, Matrix] = {}

    def cost(self, alpha: float, targets: Positions) -> float:
        """The sum over some targets of the mean squared error of leave-one-out."""
        if alpha not in self.criteria:
            values, errors = self._path.criteria_and_errors(alpha)
            # Raises an error if a value is NaN.
            costs_of(gathered({alpha: values}), "loo", per_target=True)
            self.criteria[alpha], self._errors[alpha] = values, np.asarray(errors)
        return float(self.criteria[alpha]["loo"][targets].sum())

    def interpolated(self, nodes: list[float], targets: Positions, logarithms: Vector) -> Vector:
        """The same between the ``nodes``, for many penalties by their logarithms."""
        errors = np.stack([self._errors[alpha][:, targets].ravel() for alpha in nodes])
        at = np.log10(nodes)
        basis = np.ones((len(nodes), len(logarithms)))
        for a, b in np.argwhere(~np.eye(len(nodes), dtype=bool)):
            basis[a] *= (logarithms - at[b]) / (at[a] - at[b])
        return np.asarray(np.einsum("at,at->t", basis, (errors @ errors.T) @ basis))


class _OneChoice:
    """The search for the targets that share a penalty."""

    def __init__(self, known: _CriteriaCache, targets: Positions, grid: Vector, training: Vector) -> None:
        self._cache, self._targets, self._grid, self._training = known, targets, grid, training
        self._costs = np.full(len(grid), np.nan)

    def search(self) -> list[float]:
        """Penalties of the grid that were tried, and the best one between them."""
        self._try_some()
        while len(more := self._promising()):
            for i in more:
                self._try(i)
        penalties = [float(alpha) for alpha in self._grid[~np.isnan(self._costs)]]
        better = self._between()
        return penalties if better is None else [*penalties, better]

    def _try(self, i: int) -> None:
        self._costs[i] = self._cache.cost(float(self._grid[i]), self._targets)

    def _try_some(self) -> None:
        # Training errors grow with the penalty.
        for i in range(0, len(self._grid), _STRIDE):
            if self._worse_in_training()[i]:
                break
            self._try(i)

    def _worse_in_training(self) -> NDArray[np.bool_]:
        least = np.fmin.reduce(self._costs)
        return np.zeros(len(self._grid), bool) if np.isnan(least) else (1.0 - _ROOM) * self._training > least

    def _promising(self) -> Positions:
        """Those beside the best, and those that interpolation does not rule out."""
        best = self._best()
        worse = self._worse_in_training()
        promising = [
            abs(i - best) == 1 or (not worse[i] and self._estimate(i) <= (1.0 + _SLACK) * self._costs[best])
            for i in range(len(self._grid))
        ]
        return np.flatnonzero(promising & np.isnan(self._costs))

    def _best(self) -> int:
        return best_of(np.where(np.isnan(self._costs), np.inf, self._costs), TIE, 0.0)

    def _estimate(self, i: int) -> float:
        """The value at a penalty of the grid by its neighbours; minus infinity beyond them."""
        nodes = self._nodes(i, _NEAR)
        if len(nodes) < 2 or not nodes[0] < i < nodes[-1]:
            return -np.inf
        at = np.log10(self._grid[[i]])
        return float(self._cache.interpolated(self._grid[nodes].tolist(), self._targets, at)[0])

    def _nodes(self, i: int, count: int) -> Positions:
        """``count`` usable penalties of the grid around one, ascending."""
        usable = np.flatnonzero(np.isfinite(self._costs))
        return np.sort(usable[np.argsort(np.abs(usable - i), kind="stable")[:count]])

    def _between(self) -> float | None:
        """The best penalty between the neighbours of the best one on the grid, if there is one on either side."""
        best = self._best()
        if not 0 < best < len(self._grid) - 1 or not np.isfinite(self._costs[best - 1 : best + 2]).all():
            return None
        low, high = np.log10(self._grid[[best - 1, best + 1]])
        places = np.arange(low, high, _LOG_STEP)
        nodes = self._grid[self._nodes(best, _AROUND)].tolist()
        alpha, before = float(self._grid[best]), np.inf
        for _ in range(_MOST_STEPS):
            at = float(places[self._cache.interpolated(nodes, self._targets, places).argmin()])
            if abs(at - before) <= _LOG_TOLERANCE:
                break
            alpha, before = rounded(10.0**at), at
            self._cache.cost(alpha, self._targets)
            if alpha in nodes:
                break
            nodes.append(alpha)
        return alpha
