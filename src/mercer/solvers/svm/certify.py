"""The certificate of a support vector machine, computed in float64 over all rows."""

from __future__ import annotations

from functools import partial

import numpy as np

from mercer._errors import NumericalError
from mercer._types import Positions, Vector
from mercer.engine import threads
from mercer.engine.tiles import spans
from mercer.engine.trace import record
from mercer.gram.protocol import GramMatrix
from mercer.loops.stored_rows import subtract_rows
from mercer.solvers.svm.iterate import Iterate

# From so many support vectors on, their own block is a product of its own: a symmetric one costs half.
_APART = 512
# Whole rows are read for a part of a stored matrix with at least this share of its rows, by so many columns a task.
_MOST_OF_IT = 0.5
_SPAN = 2048
# What traces call the steps of SMO at all of its levels.
PAIRS = "steps on pairs of weights"


def renew_gradient(gram: GramMatrix, point: Iterate, earlier: tuple[Vector, Vector] | None = None) -> None:
    """Replace ``point.F`` by ``linear - K beta`` in float64 on all rows.

    ``earlier`` is some beta with its gradient in float64: if that is less work, only the change since then is added.
    """
    support = point.support
    gram = gram if gram.dtype == np.float64 else gram.astype(np.float64)
    change = None if earlier is None else point.beta - earlier[0]
    n, m = len(point.F), len(support)
    if earlier is not None and change is not None and np.count_nonzero(change) * n <= m * (n - 0.5 * m):
        moved = np.flatnonzero(change)
        point.F = earlier[1].copy()
        if len(moved) and not _by_whole_rows(gram, point.F, moved, change[moved]):
            point.F -= gram.restrict(None, moved) @ change[moved]
        check_gradient(point)
        return
    point.F = point.linear.copy()
    stored = gram.stored_as(np.float64)
    if stored is not None:
        # Rows as they lie.
        subtract_rows(point.F, stored, support, point.beta[support])
    elif len(support) and not _by_whole_rows(gram, point.F, support, point.beta[support]):
        beta = point.beta[support]
        if len(support) < _APART:
            point.F -= gram.restrict(None, support) @ beta
        else:
            others = np.flatnonzero(point.beta == 0)
            point.F[support] -= gram.restrict(support, support) @ beta
            if len(others):
                point.F[others] -= gram.restrict(others, support) @ beta
    check_gradient(point)


def _by_whole_rows(gram: GramMatrix, F: Vector, index: Positions, weights: Vector) -> bool:
    """``F -= K[:, index] @ weights`` by whole rows of the stored matrix that K is a large part of, if it is.

    Reading a whole row takes less time than picking most of its entries.
    """
    part = gram.stored()
    if part is None or part[0].dtype != np.float64 or len(F) < _MOST_OF_IT * len(part[0]):
        return False
    whole, positions = part
    product = np.zeros(len(whole))
    rows = positions[index]
    columns = spans(len(whole), _SPAN)
    threads.run([partial(subtract_rows, product[some], whole[:, some], rows, weights) for some in columns])
    F += product[positions]
    return True


def check_gradient(point: Iterate) -> None:
    """Raise if the kernel returned values that are not finite."""
    if not np.isfinite(point.F).all():
        raise NumericalError(
            f"the kernel matrix gave NaN or infinity in {int((~np.isfinite(point.F)).sum())} of {len(point.F)} rows. "
            "Check the kernel for values that overflow, and scale the columns of X."
        )


def _terms(point: Iterate, offsets: tuple[float, ...] | None = None) -> Vector:
    """Return the contribution of each row to the duality gap: its primal loss minus its part of the dual, >= 0.

    With the residual ``r = F - b`` it is ``h(r) - r beta + tube |beta|``, where h is the loss times its price.
    """
    r = point.residual(offsets)
    over, under = np.maximum(r - point.tube, 0.0), np.maximum(-r - point.tube, 0.0)
    # Bounds next to the end of float64 overflow: then there is no bound of the gap.
    with np.errstate(over="ignore", invalid="ignore"):
        terms = over * point.upper - under * point.lower - r * point.beta + point.tube * np.abs(point.beta)
    return np.where(np.isnan(terms), np.inf, terms)


def objectives(point: Iterate) -> tuple[float, float]:
    """Return the primal and dual objective at ``point``, whose gradient must be exact."""
    with np.errstate(over="ignore", invalid="ignore"):
        dual = point.dual()
        return dual + float(_terms(point).sum()), dual


def keep_step(work: str, point: Iterate) -> None:
    """Keep the objectives and the violation at ``point`` where traces are asked for, if it is the whole problem."""
    if point.origin is None:
        record(work, point.steps, lambda: figures(point))


def figures(point: Iterate) -> dict[str, float]:
    """Return the objectives and the violation at ``point``, as its gradient has them."""
    primal, dual = objectives(point)
    return {"primal": primal, "dual": dual, "violation": point.violation()}


def violations(point: Iterate, totals: tuple[float, ...], offsets: tuple[float, ...] | None = None) -> dict[str, float]:
    """Return the worst violation of each optimality condition.

    ``"stationarity"`` is in units of the decision function, ``"complementary slackness"`` the largest share of one
    row in the duality gap, ``"box"`` and ``"sum"`` how far weights and their sums are from where they must be.
    """
    sums = [point.beta[part].sum() - total for part, total in zip(point.parts(), totals)]
    outside = np.maximum(point.lower - point.beta, point.beta - point.upper)
    return {
        "stationarity": point.violation(),
        "complementary slackness": float(_terms(point, offsets).max()),
        "box": max(float(outside.max()), 0.0),
        "sum": float(np.abs(sums).max(initial=0.0)),
    }
