"""The nu-SVM of many tiny pairs of classes in one call.

The weights of either class keep their sum, so that both weights of a step are of one class. The answer is divided by
the margin rho that it finds, which makes it that of the C-SVC with ``C = 1 / rho``.
"""

from __future__ import annotations

import numpy as np

from mercer.loops._jit import jit_in_order
from mercer.loops.group_steps import smo_steps_of_groups
from mercer.loops.newton import MOST_FREE, BoxWeights, NewtonRoom, newton_step_in_groups
from mercer.loops.pairs import (
    ABOVE,
    BOUNDS,
    EPS,
    FIGURES,
    LEAST,
    NEARER,
    ROUND,
    ROUNDS,
    assess,
    begin_pair,
    gradient_of,
    keep_values,
    norm_of,
    pick,
    violation_of,
)
from mercer.loops.smo import set_masks

# The first round ends at this part of the largest entry of K.
_FIRST = 1e-2
# A weight as close to its bound as this part of it is at the bound: as a free one it would decide an offset.
_AT_BOUND = 1e-9
# Rounding of beta'K beta in units of eps, below which there is no margin.
_ROUNDING = 64.0


@jit_in_order
def _fill(upper, total, beta):
    """Weights up to their bounds, from the first row on, until their sum is ``total``."""
    left = total
    for r in range(beta.shape[0]):
        beta[r] = min(upper[r], left)
        left -= beta[r]


@jit_in_order
def _offset(F, beta, lower, upper):
    """The multiplier of a sum: the mean gradient of its free rows; where there are none, the middle of the optimal."""
    top, bottom, total, free = -np.inf, np.inf, 0.0, 0
    for r in range(F.shape[0]):
        near = _AT_BOUND * (upper[r] - lower[r])
        rises, falls = beta[r] < upper[r] - near, beta[r] > lower[r] + near
        if rises:
            top = max(top, F[r])
        if falls:
            bottom = min(bottom, F[r])
        if rises and falls:
            total += F[r]
            free += 1
    if free:
        return total / free
    if np.isfinite(top) and np.isfinite(bottom):
        return 0.5 * (top + bottom)
    return top if np.isfinite(top) else bottom


@jit_in_order
def _margin(F, beta, lower, upper, a):
    """rho, and the multipliers of the two sums."""
    first = _offset(F[:a], beta[:a], lower[:a], upper[:a])
    second = _offset(F[a:], beta[a:], lower[a:], upper[a:])
    return 0.5 * (second - first), first, second


@jit_in_order
def _worst(F, beta, lower, upper, a):
    """The larger violation of the two groups."""
    first = violation_of(F[:a], beta[:a], lower[:a], upper[:a])
    return max(first, violation_of(F[a:], beta[a:], lower[a:], upper[a:]), 0.0)


@jit_in_order
def _steps(matrix, at, whole, present, diagonal, F, beta, lower, upper, tube, masks, keys, a, aim, least, most):
    """At most ``most`` steps until the violation of either group is at most ``aim``; their number."""
    bits = keys.view(np.int64)
    set_masks(beta, lower, upper, tube, masks[0], masks[1])
    begin, end = np.array([0, a]), np.array([a, beta.shape[0]])
    steps, _ = smo_steps_of_groups(
        matrix,
        at,
        whole,
        present,
        diagonal,
        F,
        beta,
        lower,
        upper,
        begin,
        end,
        masks[0],
        masks[1],
        keys,
        bits,
        aim,
        least,
        most,
    )
    return steps


@jit_in_order
def _solve(
    matrix, at, whole, present, linear, beta, lower, upper, a, total, work, masks, free, index, tol, exact, limit
):
    """Steps and Newton steps from ``beta``; the steps, and whether it came to what float64 can resolve."""
    q = beta.shape[0]
    F, keys, diagonal, tube = work[0, :q], work[1, :q], work[2, :q], work[3, :q]
    m = index.shape[0]
    weights, room = BoxWeights(beta, lower, upper), NewtonRoom(free, index, work[4, :m], work[5:7, :m])
    largest = 0.0
    for r in range(q):
        diagonal[r] = whole[r, r] if present[r] else matrix[at[r], at[r]]
        if beta[r] != 0.0 and not present[r]:
            pick(matrix, at, r, whole, present)
        tube[r] = 0.0
        largest = max(largest, abs(diagonal[r]))
    gradient_of(whole, beta, linear, F)
    done, least = 0, max(EPS * largest, LEAST)
    aim = _FIRST * 2.0 * total * largest
    for _ in range(ROUNDS):
        done += _steps(
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
            masks,
            keys,
            a,
            aim,
            least,
            min(ROUND * q, limit - done),
        )
        gap = _worst(F, beta, lower, upper, a)
        rounding = 0.5 * EPS * largest * norm_of(beta, upper)
        resolved = 0.9 * max(exact, ABOVE * rounding)
        allowed = tol * _margin(F, beta, lower, upper, a)[0]
        if gap <= allowed:
            for _ in range(BOUNDS):
                if gap <= resolved or done >= limit:
                    break
                if not newton_step_in_groups(whole, F, weights, a, room):
                    break
                done += 1
                gap = _worst(F, beta, lower, upper, a)
        if gap <= resolved and gap <= allowed:
            return done, True
        aim = max(NEARER * min(gap, aim) if gap <= allowed else min(0.1 * aim, 0.9 * allowed), resolved)
        if done >= limit or not np.isfinite(gap):
            break
    return done, rounding > exact and gap <= allowed


@jit_in_order
def solve_nu_with_later(
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
    share,
    eps,
    beta,
    gradient,
    state,
    offsets,
    figures,
    solved,
    most,
    tol,
    exact,
    limit,
):
    """The nu-SVM of class ``i`` with each later one, as far as a pair has at most ``most`` rows.

    The same as :func:`mercer.loops.pairs.solve_with_later`, where the weights of either class add up to ``share`` of
    all bounds of the pair. ``beta``, ``gradient``, ``offsets`` and the violation among the ``figures`` are those after
    the division by rho, ``state`` is beta before it. Pairs whose margin is no more than rounding, for a matrix whose
    entries are rounded by ``eps``, are left unsolved.
    """
    room, arrays = np.empty((most + 1) * (most + 1)), np.empty((13, most + 1))
    free, index = np.empty((MOST_FREE, MOST_FREE)), np.empty(min(MOST_FREE, most + 1), np.int64)
    present, parts = np.ones(most + 1, dtype=np.bool_), np.empty((2, FIGURES))
    a = sizes[i]
    for t in range(sizes.shape[0] - i - 1):
        j = i + 1 + t
        b = sizes[j]
        q = a + b
        if q > most:
            continue
        whole = room[: q * q].reshape(q, q)
        where = begin_pair(K, at, own, i, j, sizes, columns, places, False, whole, present)
        linear, weight, lower, upper = arrays[9, :q], arrays[10, :q], arrays[11, :q], arrays[12, :q]
        linear[:], lower[:], upper[:] = 0.0, 0.0, 0.0
        upper[:a] = bound[rows[i] : rows[i] + a]
        lower[a:] = -bound[rows[j] : rows[j] + b]
        # Where all weights are at their bounds, rounding must not ask for more than that.
        total = min(share * (np.sum(upper) - np.sum(lower)), np.sum(upper), -np.sum(lower))
        _fill(upper[:a], total, weight[:a])
        _fill(-lower[a:], total, weight[a:])
        weight[a:] *= -1.0
        steps, good = _solve(
            K,
            where,
            whole,
            present[:q],
            linear,
            weight,
            lower,
            upper,
            a,
            total,
            arrays[:7],
            arrays[7:9, :q],
            free,
            index,
            tol,
            exact,
            limit,
        )
        F = arrays[0, :q]
        gradient_of(whole, weight, linear, F)
        rho, first, second = _margin(F, weight, lower, upper, a)
        largest = np.max(np.abs(arrays[2, :q]))
        # A NaN anywhere in the gradient is in its sum as well.
        solved[t] = good and np.isfinite(np.sum(F)) and rho > total * _ROUNDING * eps * largest
        if not solved[t]:
            continue
        assess(F[:a], linear[:a], weight[:a], lower[:a], upper[:a], True, parts[0])
        assess(F[a:], linear[a:], weight[a:], lower[a:], upper[a:], True, parts[1])
        figures[t, :2] = parts[0, :2] + parts[1, :2]
        figures[t, 2], figures[t, 3] = max(parts[0, 2], parts[1, 2]) / rho, steps
        figures[t, 4], figures[t, 5] = max(parts[0, 4], parts[1, 4]), max(parts[0, 5], parts[1, 5])
        figures[t, 6] = max(abs(parts[0, 6] - total), abs(parts[1, 6] - total))
        solved[t] = figures[t, 2] <= tol
        place = rows[i], rows[j], a, classes[j] - 1, classes[i]
        keep_values(weight, *place, state)
        offsets[t] = 0.5 * (first + second) / rho
        for r in range(q):
            weight[r] /= rho
            F[r] = (1.0 if r < a else -1.0) + F[r] / rho
        keep_values(weight, *place, beta)
        keep_values(F, *place, gradient)
