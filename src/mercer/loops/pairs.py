"""Many tiny one-vs-one problems in one call."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mercer._types import Matrix, Vector
from mercer.loops._jit import jit_in_order
from mercer.loops.box import BoxWeights, set_masks
from mercer.loops.newton import newton_step
from mercer.loops.pair_rows import begin_pair, begin_weights, keep_values, place_of
from mercer.loops.smo import Groups, StepLimits, StepRoom, smo_steps

# Sums are taken in the order that is written: otherwise the last bits would depend on whether a function was
# compiled or read from the cache.
# Steps for each row before a test of whether float64 distinguishes the violation from rounding; the most tests.
ROUND = 4
ROUNDS = 20
# Newton steps that end at a bound, before steps on pairs go on; and these to what part of the violation.
BOUNDS = 4
NEARER = 0.1
# What is aimed at in units of the rounding of a gradient.
ABOVE = 4.0
# A weight as close to its bound as this part of the largest weight is at the bound, as for problems of more rows.
_AT_BOUND = 1e-12
# The box of the row that stands for the offset where that is 0.
_WIDE = 1e150
EPS = float(np.finfo(np.float64).eps)
FIGURES = 7


class PairValues(NamedTuple):
    """Values of the rows of all pairs."""

    start: Matrix
    """Weights to begin with."""
    beta: Matrix
    gradient: Matrix


class LaterPairs(NamedTuple):
    """The answers for the pairs of a class with each later one, (p,) each."""

    offset: Vector
    figures: Matrix
    """Primal, dual, violation, steps, complementary slackness, box, sum, (p, 7)."""
    solved: NDArray[np.bool_]


class PairRule(NamedTuple):
    """When a pair is solved."""

    tol: float
    exact: float
    """The violation that is aimed at, unless rounding ends it before."""
    limit: int
    """The most steps."""
    most: int
    """The most rows of a pair."""


@jit_in_order
def gradient_of(whole, beta, linear, F):
    """``F = linear - K beta`` from the rows of the finite, symmetric ``whole`` whose weight is not 0."""
    for r in range(F.shape[0]):
        F[r] = 0.0
    for c in range(beta.shape[0]):
        weight, row = beta[c], whole[c]
        if weight != 0.0:
            for r in range(F.shape[0]):
                F[r] += row[r] * weight
    for r in range(F.shape[0]):
        F[r] = linear[r] - F[r]


@jit_in_order
def parts_of(room, size):
    """The gradient, linear part, weights and diagonal of a pair, and the room for its steps, in the work arrays."""
    work, bits = room.work, room.bits
    weights = BoxWeights(work[2, :size], work[3, :size], work[4, :size], work[5, :size])
    steps = StepRoom(work[7, :size], work[8, :size], bits[9, :size], work[10, :size], bits[10, :size])
    return work[0, :size], work[1, :size], weights, work[6, :size], steps


@jit_in_order
def _solve(rows, parts, balanced, of_newton, rule):
    """SMO from ``weights.beta``, and Newton steps for the last digits.

    Returns the steps, and whether it came to what float64 can resolve.
    """
    F, linear, weights, diagonal, of_steps = parts
    beta, lower, upper, _ = weights
    whole, q = rows.K, beta.shape[0]
    largest = begin_weights(rows, beta, diagonal)
    gradient_of(whole, beta, linear, F)
    total, rounding, gap = 0, 0.0, np.inf
    # Steps to the tolerance first: mostly these find which weights are free.
    goal = 0.9 * rule.tol
    for _ in range(ROUNDS):
        aim = 0.9 * min(max(rule.exact, ABOVE * rounding), rule.tol)
        set_masks(weights, of_steps.rise, of_steps.fall)
        limits = StepLimits(max(aim, goal), EPS, min(ROUND * q, rule.limit - total))
        steps, gap, _ = smo_steps(rows, diagonal, F, weights, Groups((0,), (q,), (0,)), of_steps, limits)
        total += steps
        if gap <= aim:
            return total, True
        rounding = 0.5 * EPS * largest * norm_of(beta, upper)
        if gap <= goal:
            for _ in range(BOUNDS):
                if total >= rule.limit or not newton_step(whole, F, weights, balanced, q, of_newton):
                    break
                total += 1
                gap = violation_of(F, beta, lower, upper)
                if gap <= 0.9 * min(max(rule.exact, ABOVE * rounding), rule.tol):
                    return total, True
            goal = NEARER * gap
    return total, rounding > rule.exact and gap <= rule.tol


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
    """The offset, and the violation of the optimality conditions.

    For the offset, a weight within rounding of a bound is at it: as a free one it would decide between many offsets.
    """
    lowest, highest, top, bottom = -np.inf, np.inf, -np.inf, np.inf
    total, free, largest = 0.0, 0, 0.0
    for r in range(F.shape[0]):
        largest = max(largest, abs(beta[r]))
    for r in range(F.shape[0]):
        above, below = upper[r] - beta[r], beta[r] - lower[r]
        rises, falls = above > 0, below > 0
        if rises:
            lowest = max(lowest, F[r])
        if falls:
            highest = min(highest, F[r])
        rises = rises and above > min(_AT_BOUND * largest, below)
        falls = falls and below > min(_AT_BOUND * largest, above)
        if rises:
            top = max(top, F[r])
        if falls:
            bottom = min(bottom, F[r])
        if rises and falls:
            total += F[r]
            free += 1
    if not intercept:
        return 0.0, max(lowest, 0.0) - min(highest, 0.0)
    if free:
        offset = total / free
    elif top == -np.inf or bottom == np.inf:
        offset = bottom if top == -np.inf else top
    else:
        offset = 0.5 * (top + bottom)
    return offset, max(lowest - highest, 0.0)


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
    # Of weights that have the sum 0.
    dual -= offset * total
    figures[0], figures[1], figures[2] = dual + gap, dual, violation
    figures[4], figures[5], figures[6] = worst, box, abs(total) if intercept else 0.0
    return offset


@jit_in_order
def _pose(place, bound, start, linear, weights):
    """Signs, start and box of a pair, and of the row that stands for the offset if there is one."""
    beta, lower, upper, tube = weights
    for r in range(linear.shape[0]):
        tube[r] = 0.0
        if r == place.q:
            linear[r], beta[r], lower[r], upper[r] = 0.0, 0.0, -_WIDE, _WIDE
            continue
        first = r < place.a
        row = place.first_row + r if first else place.second_row + r - place.a
        linear[r] = 1.0 if first else -1.0
        lower[r] = 0.0 if first else -bound[row]
        upper[r] = bound[row] if first else 0.0
        beta[r] = min(max(start[place.first_layer if first else place.second_layer, row], lower[r]), upper[r])


@jit_in_order
def solve_with_later(strip, classes, bound, kept, intercept, rule, room):
    """The C-SVC of the class of a strip with each later one, as far as a pair has at most ``rule.most`` rows.

    ``bound`` (n,) and the values that are ``kept``, with the answers, are laid out over all rows. Pairs that steps
    alone do not bring to ``rule.exact``, or as near as rounding lets them, are left unsolved.
    """
    values, answers = kept
    offsets, figures, solved = answers
    for t in range(offsets.shape[0]):
        j = strip.first + 1 + t
        place = place_of(classes, strip.first, j)
        if place.q > rule.most:
            continue
        rows = begin_pair(strip, classes, j, not intercept, room)
        parts = parts_of(room, rows.present.shape[0])
        F, linear, weights, _, _ = parts
        beta = weights.beta
        _pose(place, bound, values.start, linear, weights)
        steps, good = _solve(rows, parts, intercept, room.of_newton, rule)
        gradient_of(rows.K, beta, linear, F)
        offsets[t] = assess(F, linear, beta, weights.lower, weights.upper, intercept, figures[t])
        figures[t, 3] = steps
        # A NaN anywhere in the gradient is in the primal objective as well.
        solved[t] = good and figures[t, 2] <= rule.tol and np.isfinite(figures[t, 0])
        keep_values(beta, place, values.beta)
        keep_values(F, place, values.gradient)
