"""Many tiny one-vs-one problems in one call."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mercer._types import Integers, Matrix, Vector
from mercer.loops._jit import jit_in_order
from mercer.loops.box import BoxWeights, set_masks
from mercer.loops.newton import MOST_FREE, NewtonRoom, newton_step
from mercer.loops.pair_rows import begin_pair, keep_values, place_of
from mercer.loops.picked import has_row
from mercer.loops.smo import StepLimits, StepRoom, smo_steps

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


class PairRoom(NamedTuple):
    """Work arrays for the problem of one pair."""

    work: Matrix
    free: Matrix
    """(m, m) for m free weights."""
    index: Integers
    """(m,)"""


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
def _solve(rows, linear, weights, balanced, room, rule):
    """SMO from ``weights.beta``, and Newton steps for the last digits.

    ``room.work`` (8, at least q and m) is for m free weights; it begins with the gradient.

    Returns the steps, and whether it came to what float64 can resolve.
    """
    whole, present, matrix, at = rows
    beta, lower, upper, tube = weights
    work, free, index = room
    q, m = beta.shape[0], index.shape[0]
    F, keys, diagonal = work[0, :q], work[3, :q], work[4, :q]
    of_steps = StepRoom(work[1, :q], work[2, :q], keys, keys.view(np.int64))
    of_newton = NewtonRoom(free, index, work[6, :m], work[7, :m])
    largest = 0.0
    for r in range(q):
        if present[r]:
            diagonal[r] = whole[r, r]
        else:
            diagonal[r] = matrix[at[r], at[r]] if r < at.shape[0] else 0.0
            if beta[r] != 0.0 or r == at.shape[0]:
                has_row(rows, r)
        tube[r] = 0.0
        largest = max(largest, abs(diagonal[r]))
    gradient_of(whole, beta, linear, F)
    total, rounding, gap = 0, 0.0, np.inf
    # Steps to the tolerance first: mostly these find which weights are free.
    goal = 0.9 * rule.tol
    for _ in range(ROUNDS):
        aim = 0.9 * min(max(rule.exact, ABOVE * rounding), rule.tol)
        set_masks(weights, of_steps.rise, of_steps.fall)
        limits = StepLimits(max(aim, goal), EPS, min(ROUND * q, rule.limit - total))
        steps, gap, _ = smo_steps(rows, diagonal, F, weights, of_steps, limits)
        total += steps
        if gap <= aim:
            return total, True
        rounding = 0.5 * EPS * largest * norm_of(beta, upper)
        if gap <= goal:
            for _ in range(BOUNDS):
                if total >= rule.limit or not newton_step(whole, F, weights, balanced, of_newton):
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
    low, high = np.array([-np.inf, -np.inf]), np.array([np.inf, np.inf])
    total, free, largest = 0.0, 0, 0.0
    for r in range(F.shape[0]):
        largest = max(largest, abs(beta[r]))
    for r in range(F.shape[0]):
        above, below = upper[r] - beta[r], beta[r] - lower[r]
        rises, falls = above > 0, below > 0
        if rises:
            low[0] = max(low[0], F[r])
        if falls:
            high[0] = min(high[0], F[r])
        rises = rises and above > min(_AT_BOUND * largest, below)
        falls = falls and below > min(_AT_BOUND * largest, above)
        if rises:
            low[1] = max(low[1], F[r])
        if falls:
            high[1] = min(high[1], F[r])
        if rises and falls:
            total += F[r]
            free += 1
    if not intercept:
        return 0.0, max(low[0], 0.0) - min(high[0], 0.0)
    violation = max(low[0] - high[0], 0.0) if np.isfinite(low[0]) and np.isfinite(high[0]) else 0.0
    top, bottom = low[1], high[1]
    if not np.isfinite(top) or not np.isfinite(bottom):
        return (top if np.isfinite(top) else bottom), violation
    return (total / free if free else 0.5 * (top + bottom)), violation


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
    """Signs, start and box of a pair."""
    first_row, second_row, a, first_layer, second_layer = place
    beta, lower, upper, _ = weights
    for r in range(linear.shape[0]):
        first = r < a
        row = first_row + r if first else second_row + r - a
        linear[r] = 1.0 if first else -1.0
        lower[r] = 0.0 if first else -bound[row]
        upper[r] = bound[row] if first else 0.0
        beta[r] = min(max(start[first_layer if first else second_layer, row], lower[r]), upper[r])


@jit_in_order
def solve_with_later(strip, classes, bound, values, answers, intercept, rule):
    """The C-SVC of the class of a strip with each later one, as far as a pair has at most ``rule.most`` rows.

    ``bound`` (n,) and ``values`` are laid out over all rows. Pairs that steps alone do not bring to ``rule.exact``, or
    as near as rounding lets them, are left unsolved.
    """
    offsets, figures, solved = answers
    i, most = strip.first, rule.most
    whole, arrays = np.empty((most + 1) * (most + 1)), np.empty((12, most + 1))
    free, index = np.empty((MOST_FREE, MOST_FREE)), np.empty(min(MOST_FREE, most + 1), np.int64)
    room, present = PairRoom(arrays[:8], free, index), np.ones(most + 1, dtype=np.bool_)
    for t in range(classes.size.shape[0] - i - 1):
        j = i + 1 + t
        q = classes.size[i] + classes.size[j]
        if q > most:
            continue
        size = q if intercept else q + 1
        K = whole[: size * size].reshape(size, size)
        rows = begin_pair(strip, classes, j, not intercept, K, present[:size])
        linear, beta, lower, upper = arrays[8, :size], arrays[9, :size], arrays[10, :size], arrays[11, :size]
        if not intercept:
            linear[q], beta[q], lower[q], upper[q] = 0.0, 0.0, -_WIDE, _WIDE
        weights, tube, place = BoxWeights(beta, lower, upper, arrays[5, :size]), arrays[5, :q], place_of(classes, i, j)
        _pose(place, bound, values.start, linear[:q], BoxWeights(beta[:q], lower[:q], upper[:q], tube))
        steps, good = _solve(rows, linear, weights, intercept, room, rule)
        F = arrays[0, :q]
        gradient_of(K, beta[:q], linear, F)
        offsets[t] = assess(F, linear[:q], beta[:q], lower[:q], upper[:q], intercept, figures[t])
        figures[t, 3] = steps
        # A NaN anywhere in the gradient is in its sum as well.
        solved[t] = good and figures[t, 2] <= rule.tol and np.isfinite(np.sum(F))
        keep_values(beta[:q], place, values.beta)
        keep_values(F, place, values.gradient)
