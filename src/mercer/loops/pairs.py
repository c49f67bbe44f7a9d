"""Many tiny one-vs-one problems in one call, and their decision values on many rows.

Values of the rows of each pair of classes are held in arrays (k - 1, n) over rows that are sorted by class. Those of
class c against class o are in layer o - 1 if o > c, else in layer o.
"""

from __future__ import annotations

import numpy as np

from mercer.loops._jit import jit_in_order
from mercer.loops.newton import MOST_FREE, newton_step
from mercer.loops.smo import set_masks, smo_steps

# Sums are taken in the order that is written: else the last bits depended on whether a function was compiled or
# read from the cache.
# Steps for each row before it is seen whether float64 can tell the violation from rounding; and the most of them.
_ROUND = 4
_ROUNDS = 20
# Newton steps that end at a bound, before steps on pairs go on; and these to what part of the violation.
_BOUNDS = 4
_NEARER = 0.1
# What is aimed at in units of the rounding of a gradient.
_ABOVE = 4.0
# The box of the row that stands for the offset where that is 0.
_WIDE = 1e150
_EPS = float(np.finfo(np.float64).eps)
_LEAST = _EPS * float(np.finfo(np.float32).tiny)
FIGURES = 7


@jit_in_order
def _copy_block(source, size, width, target, row, column):
    """``target[row:, column:]`` from a flat matrix of ``width`` columns."""
    for r in range(size):
        for c in range(width):
            target[row + r, column + c] = source[r * width + c]


@jit_in_order
def _assemble(K, own_first, own_second, a, b, pad, whole):
    """The matrix of a pair, with a row and a column of zeros if it is padded."""
    q = a + b
    _copy_block(own_first, a, a, whole, 0, 0)
    _copy_block(own_second, b, b, whole, a, a)
    for r in range(a):
        for c in range(b):
            whole[r, a + c] = K[r, c]
            whole[a + c, r] = K[r, c]
    if pad:
        for r in range(q + 1):
            whole[r, q] = 0.0
            whole[q, r] = 0.0


@jit_in_order
def _gradient(whole, beta, linear, F):
    for r in range(F.shape[0]):
        total = 0.0
        row = whole[r]
        for c in range(beta.shape[0]):
            total += row[c] * beta[c]
        F[r] = linear[r] - total


@jit_in_order
def _solve(whole, present, linear, beta, lower, upper, balanced, work, free, index, tol, exact, limit):
    """SMO from ``beta``, and Newton steps for the last digits.

    ``work`` (8, at least q and m), ``free`` (m, m) and ``index`` (m,) are room for m free weights.

    Returns the steps, and whether it came to what float64 can resolve.
    """
    q = beta.shape[0]
    F, rise, fall, keys, diagonal, tube = (
        work[0, :q], work[1, :q], work[2, :q], work[3, :q], work[4, :q], work[5, :q]
    )
    bits, m = keys.view(np.int64), index.shape[0]
    largest = 0.0
    for r in range(q):
        diagonal[r] = whole[r, r]
        tube[r] = 0.0
        largest = max(largest, abs(diagonal[r]))
    _gradient(whole, beta, linear, F)
    done, rounding, gap = 0, 0.0, np.inf
    # Steps to the tolerance first: mostly these find which weights are free.
    near = 0.9 * tol
    for _ in range(_ROUNDS):
        aim = 0.9 * min(max(exact, _ABOVE * rounding), tol)
        set_masks(beta, lower, upper, tube, rise, fall)
        steps, gap, _ = smo_steps(
            whole, present, diagonal, F, beta, lower, upper, tube, rise, fall, keys, bits, max(aim, near),
            max(_EPS * largest, _LEAST), min(_ROUND * q, limit - done),
        )  # fmt: skip
        done += steps
        if gap <= aim:
            return done, True
        rounding = 0.5 * _EPS * largest * _norm(beta, upper)
        if gap <= near:
            for _ in range(_BOUNDS):
                if done >= limit or not newton_step(
                    whole, F, beta, lower, upper, balanced, free, index, work[6, :m], work[7, :m]
                ):
                    break
                done += 1
                gap = _violation(F, beta, lower, upper)
                if gap <= 0.9 * min(max(exact, _ABOVE * rounding), tol):
                    return done, True
            near = _NEARER * gap
    return done, rounding > exact and gap <= tol


@jit_in_order
def _norm(beta, upper):
    total = 0.0
    for r in range(beta.shape[0]):
        if upper[r] < _WIDE:
            total += beta[r] * beta[r]
    return np.sqrt(total)


@jit_in_order
def _violation(F, beta, lower, upper):
    """The largest gradient that may rise less the smallest that may fall."""
    top, bottom = -np.inf, np.inf
    for r in range(F.shape[0]):
        if beta[r] < upper[r]:
            top = max(top, F[r])
        if beta[r] > lower[r]:
            bottom = min(bottom, F[r])
    return top - bottom


@jit_in_order
def _offset(F, beta, lower, upper, intercept):
    """The offset, and the violation of the optimality conditions."""
    top, bottom, total, free = -np.inf, np.inf, 0.0, 0
    for r in range(F.shape[0]):
        rises, falls = beta[r] < upper[r], beta[r] > lower[r]
        if rises:
            top = max(top, F[r])
        if falls:
            bottom = min(bottom, F[r])
        if rises and falls:
            total += F[r]
            free += 1
    if not intercept:
        return 0.0, max(top, 0.0) - min(bottom, 0.0)
    if not np.isfinite(top) or not np.isfinite(bottom):
        return (top if np.isfinite(top) else bottom), 0.0
    return (total / free if free else 0.5 * (top + bottom)), max(top - bottom, 0.0)


@jit_in_order
def assess(F, linear, beta, lower, upper, intercept, figures):
    """Fill the figures of a certificate; returns the offset."""
    offset, violation = _offset(F, beta, lower, upper, intercept)
    dual, gap, worst, box, total = 0.0, 0.0, -np.inf, 0.0, 0.0
    for r in range(F.shape[0]):
        residual = F[r] - offset
        term = max(residual, 0.0) * upper[r] - max(-residual, 0.0) * lower[r] - residual * beta[r]
        gap += term
        worst = max(worst, term)
        dual += 0.5 * beta[r] * (linear[r] + F[r])
        box = max(box, lower[r] - beta[r], beta[r] - upper[r])
        total += beta[r]
    figures[0], figures[1], figures[2] = dual + gap, dual, violation
    figures[4], figures[5], figures[6] = worst, box, abs(total) if intercept else 0.0
    return offset


@jit_in_order
def _pose(first_row, second_row, a, first_layer, second_layer, bound, start, linear, beta, lower, upper):
    """Signs, start and box of a pair."""
    for r in range(linear.shape[0]):
        first = r < a
        row = first_row + r if first else second_row + r - a
        linear[r] = 1.0 if first else -1.0
        lower[r] = 0.0 if first else -bound[row]
        upper[r] = bound[row] if first else 0.0
        beta[r] = min(max(start[first_layer if first else second_layer, row], lower[r]), upper[r])


@jit_in_order
def _keep(values, first_row, second_row, a, first_layer, second_layer, out):
    for r in range(values.shape[0]):
        if r < a:
            out[first_layer, first_row + r] = values[r]
        else:
            out[second_layer, second_row + r - a] = values[r]


@jit_in_order
def solve_with_later(
    i, K, own, classes, sizes, rows, columns, places, bound, start, beta, gradient, offsets, figures, solved, most,
    intercept, tol, exact, limit,
):  # fmt: skip
    """The C-SVC of class ``i`` with each later one, as far as a pair has at most ``most`` rows.

    ``K`` (rows of class i, columns) is a strip of the kernel matrix in float64; ``classes``, ``sizes``, first ``rows``,
    first ``columns`` of the strip and ``places`` in ``own``, which holds the blocks of the classes with themselves,
    describe the classes (c,). ``bound`` (n,), ``start``, ``beta`` and ``gradient`` are laid out over all rows;
    ``offsets``, ``figures`` (primal, dual, violation, steps, complementary slackness, box, sum) and ``solved`` are of
    the pairs (c - i - 1,). Pairs that steps alone do not bring to ``exact``, or as near as rounding lets them, are
    left unsolved.
    """
    room, arrays = np.empty((most + 1) * (most + 1)), np.empty((12, most + 1))
    free, index = np.empty((MOST_FREE, MOST_FREE)), np.empty(min(MOST_FREE, most + 1), np.int64)
    present = np.ones(most + 1, dtype=np.bool_)
    a = sizes[i]
    for t in range(sizes.shape[0] - i - 1):
        j = i + 1 + t
        b = sizes[j]
        q = a + b
        if q > most:
            continue
        size = q if intercept else q + 1
        whole = room[: size * size].reshape(size, size)
        _assemble(
            K[:, columns[j] : columns[j] + b], own[places[i] : places[i] + a * a], own[places[j] : places[j] + b * b],
            a, b, not intercept, whole,
        )  # fmt: skip
        linear, weight, lower, upper = arrays[8, :size], arrays[9, :size], arrays[10, :size], arrays[11, :size]
        if not intercept:
            linear[q], weight[q], lower[q], upper[q] = 0.0, 0.0, -_WIDE, _WIDE
        place = rows[i], rows[j], a, classes[j] - 1, classes[i]
        _pose(*place, bound, start, linear[:q], weight[:q], lower[:q], upper[:q])
        steps, good = _solve(
            whole, present[:size], linear, weight, lower, upper, intercept, arrays[:8], free, index, tol, exact, limit
        )
        F = arrays[0, :q]
        _gradient(whole, weight[:q], linear, F)
        offsets[t] = assess(F, linear[:q], weight[:q], lower[:q], upper[:q], intercept, figures[t])
        figures[t, 3] = steps
        # A NaN anywhere in the gradient is in its sum as well.
        solved[t] = good and figures[t, 2] <= tol and np.isfinite(np.sum(F))
        _keep(weight[:q], *place, beta)
        _keep(F, *place, gradient)


@jit_in_order
def tally_pairs(K, dual, ends, offsets, strict, won, sums):
    """Add the votes of all pairs of classes, and their decision values, up by class.

    ``K`` (n_sv, b) holds kernel values of b rows, ``dual`` (k - 1, n_sv) the weights, ``ends`` where classes end among
    the support vectors; ``won`` and ``sums`` are (k, b). A value of zero is a vote for the second class if ``strict``.
    """
    k, width = won.shape
    value = np.empty(width)
    number = 0
    for i in range(k):
        for j in range(i + 1, k):
            value[:] = offsets[number]
            number += 1
            for s in range(ends[i - 1] if i else 0, ends[i]):
                _add(dual[j - 1, s], K[s], value)
            for s in range(ends[j - 1], ends[j]):
                _add(dual[i, s], K[s], value)
            for r in range(width):
                first = 1.0 if value[r] > 0.0 or (value[r] == 0.0 and not strict) else 0.0
                won[i, r] += first
                won[j, r] += 1.0 - first
                sums[i, r] += value[r]
                sums[j, r] -= value[r]


@jit_in_order
def _add(weight, row, value):
    if weight != 0.0:
        for r in range(value.shape[0]):
            value[r] += weight * row[r]
