"""Many tiny one-vs-one problems in one call, and their decision values on many rows.

Values of the rows of each pair of classes are held in arrays (k - 1, n) over rows that are sorted by class. Those of
class c against class o are in layer o - 1 if o > c, else in layer o.
"""

from __future__ import annotations

import numpy as np

from mercer.loops._jit import jit_in_order
from mercer.loops.newton import MOST_FREE, BoxWeights, NewtonRoom, newton_step
from mercer.loops.picked import pick_row
from mercer.loops.smo import set_masks, smo_steps_picking

# Sums are taken in the order that is written: else the last bits depended on whether a function was compiled or
# read from the cache.
# Steps for each row before it is seen whether float64 can tell the violation from rounding; and the most of them.
ROUND = 4
ROUNDS = 20
# Newton steps that end at a bound, before steps on pairs go on; and these to what part of the violation.
BOUNDS = 4
NEARER = 0.1
# What is aimed at in units of the rounding of a gradient.
ABOVE = 4.0
# The box of the row that stands for the offset where that is 0.
_WIDE = 1e150
EPS = float(np.finfo(np.float64).eps)
LEAST = EPS * float(np.finfo(np.float32).tiny)
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
def pick(matrix, at, i, whole, present):
    """Row ``i`` of the matrix of a pair from ``matrix[at][:, at]``, with a zero behind it if it is padded."""
    q = at.shape[0]
    whole[i, q:] = 0.0
    if i < q:
        pick_row(matrix, at, i, whole[i, :q])
    else:
        whole[i, :q] = 0.0
    present[i] = True


@jit_in_order
def gradient_of(whole, beta, linear, F):
    """``F = linear - K beta`` from the rows of the finite, symmetric ``whole`` whose weight is not 0."""
    F[:] = 0.0
    for c in range(beta.shape[0]):
        weight, row = beta[c], whole[c]
        if weight != 0.0:
            for r in range(F.shape[0]):
                F[r] += row[r] * weight
    for r in range(F.shape[0]):
        F[r] = linear[r] - F[r]


@jit_in_order
def _solve(matrix, at, whole, present, linear, beta, lower, upper, balanced, work, free, index, tol, exact, limit):
    """SMO from ``beta``, and Newton steps for the last digits.

    Rows of ``whole`` that are not ``present`` are picked from ``matrix[at][:, at]`` when they are first needed.

    ``work`` (8, at least q and m), ``free`` (m, m) and ``index`` (m,) are room for m free weights.

    Returns the steps, and whether it came to what float64 can resolve.
    """
    q = beta.shape[0]
    F, rise, fall, keys, diagonal, tube = (work[0, :q], work[1, :q], work[2, :q], work[3, :q], work[4, :q], work[5, :q])
    bits, m = keys.view(np.int64), index.shape[0]
    largest = 0.0
    for r in range(q):
        if present[r]:
            diagonal[r] = whole[r, r]
        else:
            diagonal[r] = matrix[at[r], at[r]] if r < at.shape[0] else 0.0
            if beta[r] != 0.0 or r == at.shape[0]:
                pick(matrix, at, r, whole, present)
        tube[r] = 0.0
        largest = max(largest, abs(diagonal[r]))
    gradient_of(whole, beta, linear, F)
    done, rounding, gap = 0, 0.0, np.inf
    weights, room = BoxWeights(beta, lower, upper), NewtonRoom(free, index, work[6, :m], work[7, :m])
    # Steps to the tolerance first: mostly these find which weights are free.
    near = 0.9 * tol
    for _ in range(ROUNDS):
        aim = 0.9 * min(max(exact, ABOVE * rounding), tol)
        set_masks(beta, lower, upper, tube, rise, fall)
        steps, gap, _ = smo_steps_picking(
            matrix,
            at,
            whole,
            present,
            diagonal,
            F,
            beta,
            lower,
            upper,
            tube,
            rise,
            fall,
            keys,
            bits,
            max(aim, near),
            max(EPS * largest, LEAST),
            min(ROUND * q, limit - done),
        )
        done += steps
        if gap <= aim:
            return done, True
        rounding = 0.5 * EPS * largest * norm_of(beta, upper)
        if gap <= near:
            for _ in range(BOUNDS):
                if done >= limit or not newton_step(whole, F, weights, balanced, room):
                    break
                done += 1
                gap = violation_of(F, beta, lower, upper)
                if gap <= 0.9 * min(max(exact, ABOVE * rounding), tol):
                    return done, True
            near = NEARER * gap
    return done, rounding > exact and gap <= tol


@jit_in_order
def norm_of(beta, upper):
    total = 0.0
    for r in range(beta.shape[0]):
        if upper[r] < _WIDE:
            total += beta[r] * beta[r]
    return np.sqrt(total)


@jit_in_order
def violation_of(F, beta, lower, upper):
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
def keep_values(values, first_row, second_row, a, first_layer, second_layer, out):
    for r in range(values.shape[0]):
        if r < a:
            out[first_layer, first_row + r] = values[r]
        else:
            out[second_layer, second_row + r - a] = values[r]


@jit_in_order
def begin_pair(K, at, own, i, j, sizes, columns, places, pad, whole, present):
    """Where the rows of a pair of classes are in ``K`` if that is a whole matrix; else its matrix is assembled."""
    a, b = sizes[i], sizes[j]
    present[:] = not at.shape[0]
    where = np.empty(a + b if at.shape[0] else 0, np.int64)
    if at.shape[0]:
        where[:a] = at[columns[i] : columns[i] + a]
        where[a:] = at[columns[j] : columns[j] + b]
    else:
        _assemble(
            K[:, columns[j] : columns[j] + b],
            own[places[i] : places[i] + a * a],
            own[places[j] : places[j] + b * b],
            a,
            b,
            pad,
            whole,
        )
    return where


@jit_in_order
def solve_with_later(
    i,
    K,
    at,
    own,
    classes,
    sizes,
    rows,
    columns,
    places,
    bound,
    start,
    beta,
    gradient,
    offsets,
    figures,
    solved,
    most,
    intercept,
    tol,
    exact,
    limit,
):
    """The C-SVC of class ``i`` with each later one, as far as a pair has at most ``most`` rows.

    ``K`` (rows of class i, columns) is a strip of the kernel matrix in float64; ``classes``, ``sizes``, first ``rows``,
    first ``columns`` of the strip and ``places`` in ``own``, which holds the blocks of the classes with themselves,
    describe the classes (c,). ``bound`` (n,), ``start``, ``beta`` and ``gradient`` are laid out over all rows;
    ``offsets``, ``figures`` (primal, dual, violation, steps, complementary slackness, box, sum) and ``solved`` are of
    the pairs (c - i - 1,). Pairs that steps alone do not bring to ``exact``, or as near as rounding lets them, are
    left unsolved.

    Where ``at`` is not empty, ``K`` is a whole matrix instead, of which the columns of the strip are at these
    positions. Few rows of a pair ever have a weight: only these are picked from it, and ``own`` is not read.
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
        where = begin_pair(K, at, own, i, j, sizes, columns, places, not intercept, whole, present)
        linear, weight, lower, upper = arrays[8, :size], arrays[9, :size], arrays[10, :size], arrays[11, :size]
        if not intercept:
            linear[q], weight[q], lower[q], upper[q] = 0.0, 0.0, -_WIDE, _WIDE
        place = rows[i], rows[j], a, classes[j] - 1, classes[i]
        _pose(*place, bound, start, linear[:q], weight[:q], lower[:q], upper[:q])
        steps, good = _solve(
            K,
            where,
            whole,
            present[:size],
            linear,
            weight,
            lower,
            upper,
            intercept,
            arrays[:8],
            free,
            index,
            tol,
            exact,
            limit,
        )
        F = arrays[0, :q]
        gradient_of(whole, weight[:q], linear, F)
        offsets[t] = assess(F, linear[:q], weight[:q], lower[:q], upper[:q], intercept, figures[t])
        figures[t, 3] = steps
        # A NaN anywhere in the gradient is in its sum as well.
        solved[t] = good and figures[t, 2] <= tol and np.isfinite(np.sum(F))
        keep_values(weight[:q], *place, beta)
        keep_values(F, *place, gradient)


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
