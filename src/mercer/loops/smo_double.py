"""Steps of sequential minimal optimisation by two pairs at a time, where rows come from memory and not from a cache.

Two rows that are read side by side take less time than one after the other, and the gradient is passed over once for
both pairs.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from mercer._types import Array, Integers
from mercer.loops._jit import jit
from mercer.loops.box import shift
from mercer.loops.smo import (
    CHECK_EVERY,
    CHUNK,
    TINY,
    Candidate,
    curvature_of,
    first_largest,
    largest,
    lowest,
    move,
    ordered,
)


class SecondKeys(NamedTuple):
    """A further work array for the gains of the second pair, and its integer view, (q,) each."""

    work: Array
    bits: Integers


class PairStep(NamedTuple):
    """How much weight moves between two rows, and their rows of K."""

    row_i: Array
    row_j: Array
    step: float


@jit
def two_largest(keys):
    """Index of the first largest integer, and of the largest in another chunk; the same twice if there is no other."""
    best = largest(keys[:CHUNK])
    start = 0
    other = -1
    second = best
    for begin in range(CHUNK, keys.shape[0], CHUNK):
        top = largest(keys[begin : begin + CHUNK])
        if top > best:
            second = best
            other = start
            best = top
            start = begin
        elif other < 0 or top > second:
            second = top
            other = begin
    first = first_largest(keys[start : start + CHUNK]) + start
    if other < 0:
        return first, first
    return first, first_largest(keys[other : other + CHUNK]) + other


@jit
def _gains_of_two(F, mask, diagonal, least, first, second):
    """Second-order gains of pairing each row with either candidate; zero where there is none."""
    top, row, own, gains = first
    other_top, other_row, others, other_gains = second
    real = F.dtype.type
    tiny = least * real(TINY)
    for k in range(F.shape[0]):
        f = F[k] - mask[k]
        b = max(top - f, real(0))
        c = max(other_top - f, real(0))
        gains[k] = b * b / curvature_of(own, diagonal[k], row[k], least, tiny)
        other_gains[k] = c * c / curvature_of(others, diagonal[k], other_row[k], least, tiny)


@jit
def _move_two(F, first, second, mask, keys):
    """``F -= step (row_i - row_j) + other_step (row_k - row_m)``, and the keys of ``F + mask``."""
    row_i, row_j, step = first
    row_k, row_m, other_step = second
    for k in range(F.shape[0]):
        f = F[k] - (step * (row_i[k] - row_j[k]) + other_step * (row_k[k] - row_m[k]))
        F[k] = f
        keys[k] = ordered(f + mask[k])


@jit
def smo_double_steps(K, diagonal, F, weights, room, second_keys, limits):
    """The same as :func:`mercer.loops.smo.smo_steps`, of which two steps go on at a time; returns (steps, gap).

    The second pair is chosen by the gradient before the first one moves, and moves by the gradient after it: every
    step raises the objective. All rows must be present. ``second_keys`` are further arrays like ``work`` and ``bits``.
    """
    beta, upper = weights.beta, weights.upper
    rise, fall, work, bits = room
    second_work, second_bits = second_keys
    tolerance, least, max_steps = limits
    real = F.dtype.type
    floor = real(least)
    move(F, F, F, real(0), rise, bits)
    gap = np.inf
    steps = 0
    rounds = 0
    while steps < max_steps:
        i, k = two_largest(bits)
        top, second = F[i] + rise[i], F[k] + rise[k]
        if rounds % CHECK_EVERY == 0:
            gap = np.float64(top) - np.float64(lowest(F, fall, bits))
            # Written so that a NaN ends the loop as well.
            if not gap > tolerance or beta[i] >= upper[i]:
                return steps, gap
        rounds += 1
        one, two = Candidate(top, K[i], diagonal[i], work), Candidate(second, K[k], diagonal[k], second_work)
        _gains_of_two(F, fall, diagonal, floor, one, two)
        # With a tube and a vanishing diagonal, rounding can make a row the best partner of itself.
        work[i] = real(0)
        j = first_largest(bits)
        if not work[j] > 0:
            # A NaN in the row is passed on in F, where the caller looks for it.
            if np.isnan(work[j]):
                F[i] = work[j]
            return steps, 0.0
        # No row is used twice.
        second_work[i] = real(0)
        second_work[j] = real(0)
        second_work[k] = real(0)
        curvature = np.float64(curvature_of(diagonal[i], diagonal[j], K[i, j], floor, floor * real(TINY)))
        length = (np.float64(top) - np.float64(F[j] - fall[j])) / curvature
        moved = shift(weights, rise, fall, i, j, length)
        steps += 1
        m = first_largest(second_bits)
        if k != i and k != j and steps < max_steps and second_work[m] > 0:
            up = np.float64(second) - moved * np.float64(K[i, k] - K[j, k])
            down = np.float64(F[m] - fall[m]) - moved * np.float64(K[i, m] - K[j, m])
            curvature = np.float64(curvature_of(diagonal[k], diagonal[m], K[k, m], floor, floor * real(TINY)))
            if up > down:
                other = shift(weights, rise, fall, k, m, (up - down) / curvature)
                steps += 1
                _move_two(F, PairStep(K[i], K[j], real(moved)), PairStep(K[k], K[m], real(other)), rise, bits)
                continue
        move(F, K[i], K[j], real(moved), rise, bits)
    return steps, gap
