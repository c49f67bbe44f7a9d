"""The penalty of a kernel system by leave-one-out, generalised cross-validation or evidence."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any, ClassVar

import numpy as np
from scipy.optimize import minimize_scalar

from mercer._errors import NumericalError, ParameterError
from mercer.data.fitted import Fitted
from mercer.data.statements import Either, Floats, Maybe
from mercer.solvers.linear.linear_system import Vector
from mercer.solvers.linear.penalty_path import CRITERIA, Criterion, PenaltyPath

# The penalties that are tried reach from where rounding leaves a residual of 1e-7 to where nothing is learned any more.
_LOWEST, _HIGHEST = 1e-9, 10.0
_PER_DECADE = 2
# No criterion knows a penalty better than to three digits, and what is rounded does not depend on rounding errors.
_DIGITS = ".3g"
_LOG_TOLERANCE = 2e-3
_MOST_STEPS = 12
# Of penalties whose mean squared errors differ by a smaller share, the largest is taken; by the second one where they
# are given. The first is below what data can tell and above what rounding does to small penalties.
_TIE, _GIVEN_TIE = 1e-4, 1e-9


_CURVES = Either(Floats("m", finite=False), Floats("m, t", finite=False))


@dataclass(frozen=True, eq=False)
class PenaltyCurves:
    """What penalties are judged by, for every target.

    Parameters
    ----------
    alphas : ndarray of shape (m,)
        The penalties that were tried, ascending.
    loo : ndarray of shape (m,) or (m, n_targets), or None
        Mean squared error of leave-one-out predictions; None where it was not asked for.
    gcv : ndarray of shape (m,) or (m, n_targets)
        Generalised cross-validation: the same with the mean leverage in place of that of each row.
    evidence : ndarray of shape (m,) or (m, n_targets)
        The log density of the targets under the Gaussian process of this kernel, at the best noise variance.

    Notes
    -----
    Infinitely bad values stand where the matrix plus alpha on its diagonal is singular to working precision.

    Examples
    --------
    >>> curves = PenaltyCurves(np.array([0.1, 1.0]), None, np.array([0.3, 0.2]), np.array([-5.0, -4.0]))
    >>> float(curves.alphas[curves.gcv.argmin()])
    1.0
    """

    alphas: Vector
    loo: Vector | None
    gcv: Vector
    evidence: Vector
    _fitted: ClassVar[Fitted] = Fitted(
        {
            "alphas": Floats("m"), "loo": Maybe(_CURVES), "gcv": _CURVES, "evidence": _CURVES,
        }
    )  # fmt: skip

    def of(self, criterion: Criterion) -> Vector | None:
        """The curve of a criterion by its name."""
        found: Vector | None = getattr(self, criterion)
        return found

    def squeezed(self) -> PenaltyCurves:
        """Without the axis of the targets, for targets of one dimension."""
        values = [getattr(self, field.name) for field in fields(self)]
        return PenaltyCurves(*(v[:, 0] if v is not None and v.ndim == 2 else v for v in values))


_LEAST_SIZE = 1e-290


def default_penalties(size: float) -> Vector:
    """Two a decade, from 1e-9 to 10 times the ``size``, which is the sum of the eigenvalues in size.

    Examples
    --------
    >>> a = default_penalties(100.0)
    >>> len(a), a[[0, 1, -1]].tolist()
    (21, [1e-07, 3.16e-07, 1000.0])
    """
    if not (size > 0 and np.isfinite(size)):
        return np.ones(1)
    if not _LEAST_SIZE < size < 1.0 / _LEAST_SIZE:
        raise NumericalError(
            f"the eigenvalues of the kernel matrix sum to {size:.3g}, so that penalties of their size leave the range "
            "of float64; scale the columns of X (sklearn.preprocessing.StandardScaler)."
        )
    low, high = _PER_DECADE * np.log10(_LOWEST * size), _PER_DECADE * np.log10(_HIGHEST * size)
    steps = np.arange(np.ceil(low - 1e-9), np.floor(high + 1e-9) + 1)
    return np.array([rounded(10.0 ** (step / _PER_DECADE)) for step in steps])


def rounded(alpha: float) -> float:
    """To three digits.

    >>> rounded(0.0123456)
    0.0123
    """
    return float(format(alpha, _DIGITS))


def trace(path: PenaltyPath, alphas: Vector) -> PenaltyCurves:
    """All criteria that the path knows, at ``alphas``."""
    alphas = np.unique(alphas)
    found = [path.criteria(float(alpha)) for alpha in alphas]
    by_name = {name: np.array([f[name] for f in found]) if name in found[0] else None for name in CRITERIA}
    return PenaltyCurves(alphas, **by_name)  # type: ignore[arg-type]


def choose(
    path: PenaltyPath, criterion: Criterion, alphas: Vector | None, *, apart: bool
) -> tuple[Vector, PenaltyCurves]:
    """The best penalty of each target, (k,), and the curves at all that were given or are worth to be kept.

    Parameters
    ----------
    path : PenaltyPath
    criterion : {"loo", "gcv", "evidence"}
    alphas : ndarray or None
        The penalties to choose from; None for any, found by Brent's method next to the best of a grid.
    apart : bool
        Whether every target has a penalty of its own; else one serves all, by the sum of the targets' criteria.

    Raises
    ------
    ParameterError
        If the matrix is singular to working precision with all of the penalties.
    """
    if alphas is None:
        curves = trace(path, default_penalties(path.size))
        costs = _costs(curves, criterion, apart)
        better = [_between(path, criterion, apart, curves.alphas, cost, j) for j, cost in enumerate(costs.T)]
        curves = trace_also(path, curves, [alpha for alpha in better if alpha is not None])
    else:
        curves = trace(path, alphas)
    costs = _costs(curves, criterion, apart)
    if np.isposinf(costs).all(axis=0).any():
        raise ParameterError(
            f"alpha={criterion!r} cannot choose: for none of the {len(curves.alphas)} penalties from "
            f"{curves.alphas[0]:.3g} to {curves.alphas[-1]:.3g} is the kernel matrix plus alpha on its diagonal "
            "positive definite to working precision. Give larger alphas, or a number as alpha."
        )
    tie = _tie(path, criterion, _TIE if alphas is None else _GIVEN_TIE)
    chosen = np.array([curves.alphas[_best(cost, *tie)] for cost in costs.T])
    return np.broadcast_to(chosen, path.system.shape[1]).copy(), curves


def trace_also(path: PenaltyPath, curves: PenaltyCurves, alphas: list[float]) -> PenaltyCurves:
    """The curves with more penalties."""
    new = np.setdiff1d(alphas, curves.alphas)
    if not len(new):
        return curves
    more = trace(path, new)
    order = np.argsort(np.r_[curves.alphas, more.alphas])
    joined: dict[str, Any] = {}
    for name in ("alphas", *CRITERIA):
        old, added = getattr(curves, name), getattr(more, name)
        joined[name] = None if old is None else np.concatenate([old, added])[order]
    return PenaltyCurves(**joined)


def _costs(curves: PenaltyCurves, criterion: Criterion, apart: bool) -> Vector:
    """What is to be small, (m, k), or (m, 1) for all targets together."""
    values = curves.of(criterion)
    if values is None:
        raise ValueError(f"the path does not know {criterion}")
    if np.isnan(values).any():
        raise NumericalError(
            f"alpha={criterion!r} cannot choose: squares of the targets or of the kernel matrix overflow float64. "
            "Scale y and the columns of X (sklearn.preprocessing.StandardScaler)."
        )
    cost = -values if criterion == "evidence" else values
    if apart:
        return cost
    # Targets of zeros have an infinite evidence for any penalty.
    telling = ~np.isneginf(cost).all(axis=0)
    return cost[:, telling].sum(axis=1, keepdims=True) if telling.any() else cost[:, :1]


def _tie(path: PenaltyPath, criterion: Criterion, share: float) -> tuple[float, float]:
    """By what share and by how much costs may differ and count as equal.

    The evidence falls by half the number of observations times the share by which its noise variance grows.
    """
    return (0.0, 0.5 * path.total * share) if criterion == "evidence" else (share, 0.0)


def _best(cost: Vector, share: float, amount: float) -> int:
    """Index of the largest penalty whose cost is the least, but for what counts as equal."""
    least = float(cost.min())
    near = cost <= least + share * abs(least) + amount if np.isfinite(least) else cost == least
    return int(np.flatnonzero(near)[-1])


def _between(
    path: PenaltyPath, criterion: Criterion, apart: bool, alphas: Vector, cost: Vector, target: int
) -> float | None:
    """A better penalty next to the best one on the grid, if there is one on either side."""
    best = _best(cost, *_tie(path, criterion, _TIE))
    if not 0 < best < len(alphas) - 1 or not np.isfinite(cost[best - 1 : best + 2]).all():
        return None

    def value(log_alpha: float) -> float:
        return float(_costs(trace(path, np.array([10.0**log_alpha])), criterion, apart)[0, target])

    bounds = np.log10(alphas[[best - 1, best + 1]])
    found = minimize_scalar(
        value, bounds=tuple(bounds), method="bounded", options={"xatol": _LOG_TOLERANCE, "maxiter": _MOST_STEPS}
    )
    return rounded(10.0 ** float(found.x))
