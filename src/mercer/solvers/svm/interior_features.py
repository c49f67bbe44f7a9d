"""The interior point method for box problems in the space of explicit features.

Coordinate descent takes as many passes as the condition of the features asks for, which is without bound: columns in
different units, or large penalties. An interior point method takes some tens of factors of p columns, whatever these
are, and leaves weights next to their bounds or inside, on which Newton steps end it.
"""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import replace

import numpy as np

from mercer._errors import MemoryBudgetError
from mercer._types import Vector
from mercer.engine import memory
from mercer.gram.features import ExplicitFeatures, square_work_bytes
from mercer.gram.hold import fits
from mercer.solvers.svm.certify import gradient_rounding
from mercer.solvers.svm.interior import interior_point, interior_point_in_tube
from mercer.solvers.svm.iterate import Iterate
from mercer.solvers.svm.quadratic import DoubledQuadratic, FeatureQuadratic
from mercer.solvers.svm.whole_matrix import on_whole_matrix

# With more features a factor takes longer than the passes that it spares.
_MOST = 1000
# As many passes of coordinate descent take as long as the method, whatever the number of features p is, and for each.
_PASSES, _PASSES_EACH = 20, 0.3
# Products of all columns of sparse features take longer than dense ones where one entry in this many is not zero.
_FULL = 16
# Afterwards: the most rounds; the most free rows, and the worst rows of each side, in a round; and steps for each row.
_ROUNDS, _MOST_FREE, _WORST, _STEPS, _PART = 30, 1500, 128, 500, 0.5
# Steps for each row where rounding may be larger than the tolerance.
_BEYOND = 50
# Square matrices of these rows: their kernel matrix, and a factor with a copy.
_SQUARES = 3
# Vectors of the rows.
_VECTORS = 40


def passes_before(p: int) -> float:
    """After how many passes of coordinate descent the method is worth its time; infinite for too many features.

    >>> passes_before(10), passes_before(10_000)
    (23.0, inf)
    """
    return _PASSES + _PASSES_EACH * p if p <= _MOST else np.inf


def interior_bytes(n: int, p: int, entries: int, *, is_sparse: bool, has_tube: bool) -> int:
    """Memory beside the features, of which ``entries`` are not zero.

    >>> interior_bytes(1000, 10, 10_000, is_sparse=False, has_tube=False)
    322400
    """
    vectors = 2 * _VECTORS if has_tube else _VECTORS
    copy = n * p if _is_full(n, p, entries, is_sparse) else 0
    return 8 * (vectors * n + 3 * p * p + copy) + square_work_bytes(entries, is_sparse)


def go_on_inside(features: ExplicitFeatures, point: Iterate, totals: Vector, tol: float) -> bool:
    """Move to the answer of the interior point method if it is better; the gradient is exact before and after.

    Returns whether it was.
    """
    shape = *features.shape, features.entries
    nbytes = interior_bytes(*shape, is_sparse=features.is_sparse, has_tube=bool(point.tube))
    if (point.tube and not ((point.upper > 0) & (point.lower < 0)).all()) or not fits(nbytes):
        return False
    with ExitStack() as stack:
        try:
            stack.enter_context(memory.reserve(nbytes, "an interior point method on explicit features"))
        except MemoryBudgetError:
            # Another thread was faster.
            return False
        features = ExplicitFeatures(features.dense(), True) if _is_full(*shape, features.is_sparse) else features
        candidate = replace(point, beta=_weights(features, point, totals))
        if not np.isfinite(candidate.beta).all():
            return False
        _renew(features, candidate)
        _end(features, candidate, tol)
    point.steps = candidate.steps + 1
    if not candidate.dual() > point.dual():
        return False
    point.beta, point.F = candidate.beta, candidate.F
    return True


def _is_full(n: int, p: int, entries: int, is_sparse: bool) -> bool:
    """Whether sparse features are faster as dense ones."""
    return is_sparse and n * p <= _FULL * entries


def _weights(features: ExplicitFeatures, point: Iterate, totals: Vector) -> Vector:
    K, box = FeatureQuadratic(features), (point.lower, point.upper, point.membership(), totals)
    if point.tube:
        return interior_point_in_tube(DoubledQuadratic(K), point.linear, point.tube, *box)
    return interior_point(K, point.linear, *box)


def _end(features: ExplicitFeatures, point: Iterate, tol: float) -> None:
    """Solve for the weights inside their bounds and those that violate the conditions most, until few are left."""
    least = np.inf
    each = _BEYOND if gradient_rounding(features.squared_norms(), point) > tol else _STEPS
    for _ in range(_ROUNDS):
        violation = point.violation()
        inside = np.flatnonzero(point.free)
        if violation <= tol or not violation < least or len(inside) > _MOST_FREE:
            return
        least = violation
        sides = [np.argpartition(-side, min(_WORST, len(side) - 1))[:_WORST] for side in point.sides()]
        rows = np.unique(np.concatenate([inside, *sides]))
        nbytes = 8 * len(rows) * (_SQUARES * len(rows) + features.shape[1])
        if not fits(nbytes):
            return
        with memory.reserve(nbytes, f"the kernel matrix of {len(rows)} rows"):
            F, part = features.take(rows).dense(), point.take(rows)
            on_whole_matrix(F @ F.T, part, _PART * tol, point.steps + each * len(rows))
        point.put(rows, part)
        _renew(features, point)


def _renew(features: ExplicitFeatures, point: Iterate) -> None:
    point.F = point.linear - (features @ features.pull(point.beta[:, None]))[:, 0]
