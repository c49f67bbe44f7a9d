"""The certificate of a support vector machine, computed in float64 over all rows."""

from __future__ import annotations

from functools import partial

import numpy as np

from mercer._errors import DataError, NumericalError
from mercer._types import Positions, Vector
from mercer.engine import threads
from mercer.engine.tiles import spans
from mercer.engine.trace import record
from mercer.gram.protocol import GramMatrix
from mercer.loops.stored_rows import subtract_rows
from mercer.solvers.svm.box_qp import BoxQP
from mercer.solvers.svm.iterate import Iterate

# From this many support vectors on, their own block is a product of its own: a symmetric one costs half.
_APART = 512
# Whole rows are read for a part of a stored matrix with at least this share of its rows, by this many columns a task.
_MOST_OF_IT = 0.5
_SPAN = 2048
# What traces call the steps of SMO at all of its levels.
PAIRS = "steps on pairs of weights"
# The rounding of a sum of products, in units of the sum of their sizes.
_ROUNDING = 8.0 * float(np.finfo(np.float64).eps)
# Rounding below this share of the objectives is not seen in their figures.
_SMALL = 1e-9


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


def objectives(point: Iterate, offsets: tuple[float, ...] | None = None) -> tuple[float, float]:
    """Return the primal and dual objective at ``point``, whose gradient must be exact.

    Where rounding has left the sums off their totals, the dual objective is that of weights which have these: the
    offsets are what it changes by.
    """
    offsets = point.offsets() if offsets is None else offsets
    with np.errstate(over="ignore", invalid="ignore"):
        dual = point.dual() - float(np.asarray(offsets) @ point.off())
        return dual + float(_terms(point, offsets).sum()), dual


def keep_step(work: str, point: Iterate) -> None:
    """Keep the objectives and the violation at ``point`` if traces are requested and it is the whole problem."""
    if point.origin is None:
        record(work, point.steps, lambda: figures(point))


def figures(point: Iterate) -> dict[str, float]:
    """Return the objectives and the violation at ``point``, as its gradient has them."""
    primal, dual = objectives(point)
    return {"primal": primal, "dual": dual, "violation": point.violation()}


def bounds(problem: BoxQP, point: Iterate, values: tuple[float, float]) -> tuple[float, float]:
    r"""The objectives as bounds of the optimum: farther apart by rounding, where that is not small beside them.

    An entry of :math:`K \beta` is a sum of products, whose rounding is at most about
    :math:`e_i = 8 \varepsilon \|x_i\| \sum_j |\beta_j| \|x_j\|` with the lengths in the space of the kernel. The dual
    objective is off by up to :math:`\sum_i |\beta_i| e_i / 2`, and the losses by up to the sum of the prices times
    :math:`e_i`. Rows far from 0, or weights of very different sizes, have objectives without digits. These are the
    worst errors, and those of a solve that met its tolerance are far smaller.
    """
    primal, dual = values
    if not np.isfinite(values).all():
        return values
    errors = gradient_bounds(problem, point)
    with np.errstate(over="ignore", invalid="ignore"):
        of_dual = 0.5 * float(errors @ np.abs(point.beta))
        of_losses = float(errors @ np.maximum(point.upper, -point.lower))
    if not np.isfinite(of_losses) or of_dual + of_losses <= _SMALL * max(abs(primal), abs(dual)):
        return values
    # Weights of 0, where these are allowed, have a dual objective of 0 without rounding.
    has_zero = not np.any(problem.totals) and bool(((point.lower <= 0) & (point.upper >= 0)).all())
    return primal + of_losses, max(dual - of_dual, 0.0 if has_zero else -np.inf)


def gradient_bounds(problem: BoxQP, point: Iterate) -> Vector:
    """Bounds of the rounding of each entry of ``K beta``, (n,); 0 where the diagonal of K is not known."""
    squares = squares_of(problem.gram, problem.once)
    if squares is None:
        return np.zeros(len(point.beta))
    lengths = np.sqrt(np.maximum(squares, 0.0))
    with np.errstate(over="ignore"):
        return _ROUNDING * lengths * float(lengths @ np.abs(point.beta))


def squares_of(gram: GramMatrix, once: GramMatrix | None) -> Vector | None:
    """The diagonal of K in float64, of rows that ``once`` states fewer times; None for a part, which has none."""
    try:
        squares = np.asarray((gram if once is None else once).diagonal(), dtype=np.float64)
    except DataError:
        return None
    return np.tile(squares, gram.shape[0] // len(squares))


def gradient_rounding(squares: Vector | None, point: Iterate) -> float:
    """A typical rounding error of ``K beta`` if many weights are at their bounds; 0 where it is not known.

    That of the entries of K in float64, whose errors are independent, by its diagonal ``squares`` (n,). Where it is
    above the tolerance, steps on pairs of weights may go on without end and without a gain.
    """
    if squares is None:
        return 0.0
    lengths = np.sqrt(np.maximum(squares, 0.0))
    with np.errstate(over="ignore", invalid="ignore"):
        size = float(np.linalg.norm(lengths * np.maximum(point.upper, -point.lower)))
        rounding = float(np.finfo(np.float64).eps) * float(lengths.max(initial=0.0)) * size
    return rounding if np.isfinite(rounding) else 0.0


def violations(point: Iterate, offsets: tuple[float, ...] | None = None) -> dict[str, float]:
    """Return the worst violation of each optimality condition.

    ``"stationarity"`` is in units of the decision function, ``"complementary slackness"`` the largest share of one
    row in the duality gap, ``"box"`` and ``"sum"`` how far weights and their sums are from where they must be.
    """
    outside = np.maximum(point.lower - point.beta, point.beta - point.upper)
    return {
        "stationarity": point.violation(),
        "complementary slackness": float(_terms(point, offsets).max()),
        "box": max(float(outside.max()), 0.0),
        "sum": float(np.abs(point.off()).max(initial=0.0)),
    }
