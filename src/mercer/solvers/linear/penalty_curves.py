"""The criteria by which penalties of a kernel system are judged, and which penalties count as equally good."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any, ClassVar

import numpy as np

from mercer._errors import NumericalError
from mercer._types import Vector
from mercer.data.fitted import Fitted
from mercer.data.statements import Either, Floats, Maybe
from mercer.solvers.linear.penalty_path import CRITERIA, Criterion, PenaltyPath

# The penalties that are tried reach from where rounding leaves a residual of 1e-7 to where nothing is learned any more.
LOWEST, HIGHEST = 1e-9, 10.0
_PER_DECADE = 2
# No criterion knows a penalty better than to three digits, and what is rounded does not depend on rounding errors.
_DIGITS = ".3g"
# Of penalties whose mean squared errors differ by a smaller share, the largest is taken. It is below what data can tell
# and above what rounding does to small penalties.
TIE = 1e-4

_CURVES = Either(Floats("m", finite=False), Floats("m, t", finite=False))


@dataclass(frozen=True, eq=False)
class PenaltyCurves:
    """The criteria by which penalties are judged, for every target.

    Parameters
    ----------
    alphas : ndarray of shape (m,)
        The penalties that were tried, ascending.
    loo : ndarray of shape (m,) or (m, n_targets), or None
        Mean squared error of leave-one-out predictions; None if it was not requested.
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
        {"alphas": Floats("m"), "loo": Maybe(_CURVES), "gcv": _CURVES, "evidence": _CURVES}
    )

    def of(self, criterion: Criterion) -> Vector | None:
        """The curve of a criterion by its name."""
        curve: Vector | None = getattr(self, criterion)
        return curve

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
            f"the eigenvalues of the kernel matrix sum to {size:.3g}, so penalties of this size leave the range of "
            "float64; scale the columns of X (sklearn.preprocessing.StandardScaler)."
        )
    low, high = _PER_DECADE * np.log10(LOWEST * size), _PER_DECADE * np.log10(HIGHEST * size)
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
    return gathered({float(alpha): path.criteria(float(alpha)) for alpha in np.unique(alphas)})


def gathered(criteria: dict[float, dict[Criterion, Vector]]) -> PenaltyCurves:
    """The curves of what is known by penalty."""
    alphas = np.sort(list(criteria))
    entries = [criteria[alpha] for alpha in alphas]
    by_name = {name: np.array([f[name] for f in entries]) if name in entries[0] else None for name in CRITERIA}
    return PenaltyCurves(alphas, **by_name)  # type: ignore[arg-type]


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


def costs_of(curves: PenaltyCurves, criterion: Criterion, per_target: bool) -> Vector:
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
    if per_target:
        return cost
    # Targets of zeros have an infinite evidence for any penalty.
    telling = ~np.isneginf(cost).all(axis=0)
    return cost[:, telling].sum(axis=1, keepdims=True) if telling.any() else cost[:, :1]


def tie_of(path: PenaltyPath, criterion: Criterion, share: float) -> tuple[float, float]:
    """By what share and by how much costs may differ and count as equal.

    The evidence falls by half the number of observations times the share by which its noise variance grows.
    """
    return (0.0, 0.5 * path.total * share) if criterion == "evidence" else (share, 0.0)


def best_of(cost: Vector, share: float, amount: float) -> int:
    """Index of the largest penalty whose cost is the least, up to what counts as equal."""
    least = float(cost.min())
    near = cost <= least + share * abs(least) + amount if np.isfinite(least) else cost == least
    return int(np.flatnonzero(near)[-1])
