"""Problems whose whole matrix is one block: steps on pairs of weights, and second-order methods if these are slow."""

from __future__ import annotations

from functools import partial

import numpy as np

from mercer._types import Array, Vector
from mercer.engine import threads
from mercer.engine.tiles import spans
from mercer.engine.trace import portions
from mercer.loops.stored_rows import subtract_rows
from mercer.solvers.svm.block import Block, Rounding, Stall, padded, resolves
from mercer.solvers.svm.certify import PAIRS, keep_step
from mercer.solvers.svm.free_set import newton_change, solution_by_free_sets
from mercer.solvers.svm.interior import interior_point, interior_point_in_tube
from mercer.solvers.svm.iterate import Iterate
from mercer.solvers.svm.quadratic import DoubledQuadratic, StoredQuadratic

# Steps for each row before Newton steps are tried.
ROUND = 4
# Columns of one task.
_SPAN = 2048
# The most free rows for a Newton step: its cost grows with their cube.
_NEWTON_ROWS = 512
# Steps for each row after which pairs of weights count as too slow.
CRAWL = 100
# After the interior point method the violation has this many steps for each row to fall to this part of its least.
_LAST, _LESS = 1000, 0.9
# In all it has this many times as many: where rounding is above the tolerance, the violation may fall without end.
_LAST_IN_ALL = 4


def on_whole_matrix(K: Array, point: Iterate, tol: float, max_iter: int) -> None:
    """Move ``point`` until its violation is at most ``tol``, the steps are used up, or rounding stops it.

    Where a round of steps does not end it, Newton steps on the free weights follow; where many do not, an interior
    point method (in float64; in float32 the point is left to a solve in float64). Next to rounding the violation goes
    up and down from round to round: where rounding ends the solve, the point of least violation is the answer. Columns
    of very different scales can make pairs crawl without end next to rounding, each round with a gain of the objective:
    after the interior point method, only steps that lessen the violation go on, and only for a limited time.
    """
    on_square(square_of(K, point), point, tol, max_iter)


def square_of(K: Array, point: Iterate) -> Array:
    """Return the matrix as :func:`on_square` takes it: itself, or a padded copy if there is no sum to keep."""
    if point.sums:
        return K
    square, inside = padded(len(K), True, np.empty((len(K) + 1) ** 2, K.dtype))
    inside[...] = K
    return square


def on_square(square: Array, point: Iterate, tol: float, max_iter: int, n_jobs: int | None = 1) -> None:
    """The same for a matrix from :func:`mercer.solvers.svm.block.padded`."""
    K = square[: len(point.beta), : len(point.beta)]
    block, stall = Block(len(K), K.dtype), Stall(K.dtype)
    diagonal = K.diagonal().copy()
    crawls, last, end, aim = point.steps + CRAWL * len(K), np.inf, np.inf, -np.inf
    least, best = np.inf, (point.beta, point.F)
    # With two sums gradients are large beside their differences: the rounding is that of all weights.
    begin = point.beta if point.groups is None else None
    while point.violation() > tol and point.steps < max_iter:
        # In float64 the stall decides when to stop: next to rounding, more steps may still reach the tolerance.
        if K.dtype == np.float32 and not resolves(K.dtype, diagonal, point, tol, begin):
            return
        portion = min(ROUND * len(K), max_iter - point.steps)
        for part in portions(portion, point.steps):
            before = point.steps
            change = block.solve(square, diagonal, point, 0.9 * tol, part)
            moved = np.flatnonzero(change)
            _subtract(point.F, square, moved, change[moved], n_jobs)
            keep_step(PAIRS, point)
            if point.steps - before < part:
                break
        if point.violation() > tol and point.steps < max_iter:
            newton_round(square, point)
        if point.steps >= crawls:
            if K.dtype == np.float32:
                return
            interior_round(K, point)
            crawls, last, aim = max_iter, point.steps + _LAST * len(K), _LESS * least
            end = point.steps + _LAST_IN_ALL * _LAST * len(K)
        violation = point.violation()
        if violation < aim:
            last, aim = point.steps + _LAST * len(K), _LESS * violation
        if violation < least:
            least, best = violation, (point.beta.copy(), point.F.copy())
        if stall.reached(point.dual(), violation, Rounding.of(diagonal, point)) or point.steps >= min(last, end):
            point.beta, point.F = best
            return


def _subtract(F: Vector, K: Array, index: np.ndarray, weights: Vector, n_jobs: int | None) -> None:
    """``F -= K[index].T @ weights``; for many rows on several threads."""
    if len(F) <= _SPAN:
        subtract_rows(F, K, index, weights)
        return
    parts = spans(len(F), _SPAN)
    threads.run([partial(subtract_rows, F[part], K[:, part], index, weights) for part in parts], n_jobs)


def newton_round(K: Array, point: Iterate) -> None:
    """Newton steps on the free weights, each cut at the first bound, if these are not too many."""
    free = np.flatnonzero(point.free)
    if not 2 <= len(free) <= _NEWTON_ROWS:
        return
    before = point.beta[free]
    sign = np.sign(before)
    # With a tube a weight keeps its sign, and its gradient the slope of that side.
    lower = np.where(sign > 0, 0.0, point.lower[free]) if point.tube else point.lower[free]
    upper = np.where(sign < 0, 0.0, point.upper[free]) if point.tube else point.upper[free]
    gradient = point.F[free] - point.tube * sign
    change = newton_change(K[np.ix_(free, free)], gradient, before, lower, upper, point.membership()[free])
    point.beta[free] = np.clip(before + change, lower, upper)
    subtract_rows(point.F, K, free, point.beta[free] - before)
    point.steps += 1


def interior_round(K: Array, point: Iterate, *, free_sets_only: bool = False, free_sets: bool = True) -> bool:
    """Use the answer of a method for all weights at once if it is better; return whether it is.

    Sets of free weights come first, unless ``free_sets`` is False, and the interior point method where they do not
    settle. With a tube, the sets are among the weights that are not zero, which keep their signs there: on these the
    objective is smooth.
    """
    rows = np.flatnonzero(point.beta) if point.tube else np.arange(len(point.beta))
    if not len(rows):
        return False
    before, sign = point.beta[rows], np.sign(point.beta[rows]) * (point.tube > 0)
    block = np.asarray(K[np.ix_(rows, rows)] if point.tube else K, dtype=np.float64)
    slope = point.F[rows] - point.tube * sign
    A, linear = point.membership()[rows], slope + block @ before
    lower, upper = np.where(sign > 0, 0.0, point.lower[rows]), np.where(sign < 0, 0.0, point.upper[rows])
    after = solution_by_free_sets(block, linear, before, lower, upper, A) if free_sets else None
    if after is None and not free_sets_only:
        if point.tube:
            return _interior_round_in_tube(np.asarray(K, dtype=np.float64), point)
        after = interior_point(StoredQuadratic(block), linear, lower, upper, A, A.T @ before)
    point.steps += 1
    if after is None:
        return False
    change = after - before
    better = change @ slope - 0.5 * (change @ block @ change) > 0
    if better:
        point.beta[rows] = after
        subtract_rows(point.F, K, rows, change)
    return bool(better)


def _interior_round_in_tube(K: Array, point: Iterate) -> bool:
    """The interior point method with a tube, in which weights may become zero, leave zero, and change their sign."""
    A, before = point.membership(), point.beta
    # Not from the gradient, in which the rounding of all steps has added up.
    linear = point.linear if point.origin is None else point.linear + K @ point.origin
    after = interior_point_in_tube(
        DoubledQuadratic(StoredQuadratic(K)), linear, point.tube, point.lower, point.upper, A, A.T @ before
    )
    point.steps += 1
    change = after - before
    more = float(np.abs(after).sum() - np.abs(before).sum())
    gain = change @ point.F - 0.5 * (change @ K @ change) - point.tube * more
    if gain > 0:
        point.beta, point.F = after, linear - K @ after
    return bool(gain > 0)
