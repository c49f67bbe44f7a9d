"""The nu-SVM of many tiny pairs of classes in one call.

The weights of either class keep their sum, so that both weights of a step are of one class. The answer is divided by
the margin rho that it finds, which makes it that of the C-SVC with ``C = 1 / rho``.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from mercer._types import Matrix
from mercer.loops._jit import jit_in_order
from mercer.loops.box import set_masks
from mercer.loops.newton import newton_step
from mercer.loops.pair_rows import begin_pair, begin_weights, keep_values, place_of
from mercer.loops.pairs import (
    ABOVE,
    BOUNDS,
    EPS,
    FIGURES,
    NEARER,
    ROUND,
    ROUNDS,
    assess,
    gradient_of,
    norm_of,
    parts_of,
    violation_of,
)
from mercer.loops.smo import Groups, StepLimits, smo_steps

# The first round ends at this part of the largest entry of K.
_FIRST = 1e-2
# A weight as close to its bound as this part of it is at the bound: as a free one it would decide an offset.
_AT_BOUND = 1e-9
# Rounding of beta'K beta in units of eps, below which there is no margin.
_ROUNDING = 64.0


class NuValues(NamedTuple):
    """Values of the rows of all pairs."""

    state: Matrix
    """The weights before the division by rho."""
    beta: Matrix
    gradient: Matrix


class NuParameters(NamedTuple):
    """What the nu-SVM has beside a C-SVC."""

    share: float
    """The sum of the weights of either class, as a part of all bounds of the pair."""
    eps: float
    """What entries of the matrix are rounded by, relative to the largest."""


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
        rounding = _AT_BOUND * (upper[r] - lower[r])
        rises, falls = beta[r] < upper[r] - rounding, beta[r] > lower[r] + rounding
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
def _margin(F, weights, a):
    """rho, and the multipliers of the two sums."""
    beta, lower, upper, _ = weights
    first = _offset(F[:a], beta[:a], lower[:a], upper[:a])
    second = _offset(F[a:], beta[a:], lower[a:], upper[a:])
    return 0.5 * (second - first), first, second


@jit_in_order
def _worst(F, weights, a):
    """The larger violation of the two groups."""
    beta, lower, upper, _ = weights
    first = violation_of(F[:a], beta[:a], lower[:a], upper[:a])
    return max(first, violation_of(F[a:], beta[a:], lower[a:], upper[a:]), 0.0)


@jit_in_order
def _solve(rows, parts, a, total, of_newton, rule):
    """Steps and Newton steps from ``weights.beta``; the steps, and whether it came to what float64 can resolve."""
    F, linear, weights, diagonal, of_steps = parts
    whole, beta = rows.K, weights.beta
    q = beta.shape[0]
    groups = Groups((0, a), (a, q), (0, a))
    largest = begin_weights(rows, beta, diagonal)
    gradient_of(whole, beta, linear, F)
    total_steps = 0
    aim = _FIRST * 2.0 * total * largest
    for _ in range(ROUNDS):
        set_masks(weights, of_steps.rise, of_steps.fall)
        limits = StepLimits(aim, EPS, min(ROUND * q, rule.limit - total_steps))
        steps, _, _ = smo_steps(rows, diagonal, F, weights, groups, of_steps, limits)
        total_steps += steps
        gap = _worst(F, weights, a)
        rounding = 0.5 * EPS * largest * norm_of(beta, weights.upper)
        resolved = 0.9 * max(rule.exact, ABOVE * rounding)
        allowed = rule.tol * _margin(F, weights, a)[0]
        if gap <= allowed:
            for _ in range(BOUNDS):
                if gap <= resolved or total_steps >= rule.limit:
                    break
                if not newton_step(whole, F, weights, True, a, of_newton):
                    break
                total_steps += 1
                gap = _worst(F, weights, a)
        if gap <= resolved and gap <= allowed:
            return total_steps, True
        aim = max(NEARER * min(gap, aim) if gap <= allowed else min(0.1 * aim, 0.9 * allowed), resolved)
        if total_steps >= rule.limit or not np.isfinite(gap):
            break
    return total_steps, rounding > rule.exact and gap <= allowed


@jit_in_order
def _begin(weights, bound, place, share):
    """Weights that add up to a share of all bounds of the pair, and their box; returns the sum of either class."""
    beta, lower, upper, tube = weights
    a, b = place.a, beta.shape[0] - place.a
    first, second = 0.0, 0.0
    for r in range(a + b):
        lower[r], tube[r] = 0.0, 0.0
        upper[r] = bound[place.first_row + r] if r < a else bound[place.second_row + r - a]
        first += upper[r] if r < a else 0.0
        second += 0.0 if r < a else upper[r]
    # Where all weights are at their bounds, rounding must not ask for more than that.
    total = min(share * (first + second), first, second)
    _fill(upper[:a], total, beta[:a])
    _fill(upper[a:], total, beta[a:])
    for r in range(a, a + b):
        beta[r], lower[r], upper[r] = -beta[r], -upper[r], 0.0
    return total


@jit_in_order
def _assess_both(F, linear, weights, a, total, figures):
    """Fill the figures of a certificate: what :func:`mercer.loops.pairs.assess` says of each group, in one."""
    beta, lower, upper, _ = weights
    parts = np.empty((2, FIGURES))
    first = assess(F[:a], linear[:a], beta[:a], lower[:a], upper[:a], True, parts[0])
    second = assess(F[a:], linear[a:], beta[a:], lower[a:], upper[a:], True, parts[1])
    for column in range(2):
        # Of weights that have the sums ``total`` and ``-total``.
        figures[column] = parts[0, column] + parts[1, column] + (first - second) * total
    for column in (2, 4, 5):
        figures[column] = max(parts[0, column], parts[1, column])
    figures[6] = max(abs(parts[0, 6] - total), abs(parts[1, 6] - total))


@jit_in_order
def solve_nu_with_later(strip, classes, bound, kept, nu, rule, room):
    """The nu-SVM of the class of a strip with each later one, as far as a pair has at most ``rule.most`` rows.

    The same as :func:`mercer.loops.pairs.solve_with_later`; ``values.beta`` and its gradient, the offsets and the
    violation among the figures are those after the division by rho. Pairs whose margin is no more than rounding are
    left unsolved.
    """
    values, answers = kept
    offsets, figures, solved = answers
    for t in range(offsets.shape[0]):
        j = strip.first + 1 + t
        place = place_of(classes, strip.first, j)
        a, q = place.a, place.q
        if q > rule.most:
            continue
        rows, parts = begin_pair(strip, classes, j, False, room), parts_of(room, q)
        F, linear, weights, diagonal, _ = parts
        linear[:] = 0.0
        total = _begin(weights, bound, place, nu.share)
        steps, good = _solve(rows, parts, a, total, room.of_newton, rule)
        gradient_of(rows.K, weights.beta, linear, F)
        rho, first, second = _margin(F, weights, a)
        largest, astray = 0.0, 0.0
        for r in range(q):
            largest = max(largest, abs(diagonal[r]))
            # NaN for what is not finite.
            astray += 0.0 * F[r]
        solved[t] = good and astray == 0.0 and rho > total * _ROUNDING * nu.eps * largest
        if not solved[t]:
            continue
        _assess_both(F, linear, weights, a, total, figures[t])
        figures[t, 2], figures[t, 3] = figures[t, 2] / rho, steps
        solved[t] = figures[t, 2] <= rule.tol
        keep_values(weights.beta, place, values.state)
        offsets[t] = 0.5 * (first + second) / rho
        for r in range(q):
            weights.beta[r] /= rho
            F[r] = (1.0 if r < a else -1.0) + F[r] / rho
        keep_values(weights.beta, place, values.beta)
        keep_values(F, place, values.gradient)
