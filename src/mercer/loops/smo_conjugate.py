"""Steps of sequential minimal optimisation along directions that are conjugate to the last one.

A step of :mod:`mercer.loops.smo` moves weight from one row to another, and undoes part of what the last step has
gained. Here the direction is ``p = e_i - e_j + g p_last`` with ``p'K p_last = 0``, so that the last step stays the best
one along its own direction. Where many weights are inside their bounds, that takes about half as many steps. Each reads
one more vector of the length of F, ``K p``, which is in a cache where two rows of a large K are not.

Source: Torres-Barran, Alaiz and Dorronsoro (2021), "Faster SVM training via conjugate SMO", Pattern Recognition 111.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from mercer._types import Array, Integers, Vector
from mercer.loops._jit import jit
from mercer.loops.box import AT_BOUND, slope_down, slope_up
from mercer.loops.smo import CHECK_EVERY, TINY, Candidate, curvature_of, first_largest, lowest, move, ordered

# A pair is taken alone if no more than this part of its curvature is left: rounding of ``K p`` counts there.
_LEAST_LEFT = 0.01
# Weights of the last direction in the choice of a pair stay finite in float32.
_HEAVIEST = 1e30


class PairStep(NamedTuple):
    """How much weight moves between two rows, and their rows of K."""

    row_i: Array
    row_j: Array
    step: float


class Direction(NamedTuple):
    """Room for the direction p of a step. It begins anew with the pair of a step where its rows would not fit."""

    product: Array
    """``K p``, (q,)."""
    rows: Integers
    """Rows whose share is not zero, (s,) with s of at least 2."""
    shares: Vector
    """p at these rows, (s,)."""


class _Last(NamedTuple):
    """The last direction, as gains take it: ``K p``, its entry at the candidate, and ``1 / p'K p`` or zero."""

    product: Array
    own: float
    weight: float


@jit
def _gains(F, mask, diagonal, least, candidate, last):
    """Second-order gain of pairing each row with the candidate, conjugate to the last direction."""
    top, row, own, gains = candidate
    product, of_candidate, weight = last
    real = F.dtype.type
    tiny = least * real(TINY)
    for k in range(F.shape[0]):
        b = max(top - F[k] + mask[k], real(0))
        curvature = curvature_of(own, diagonal[k], row[k], least, tiny)
        shared = of_candidate - product[k]
        gains[k] = b * b / max(curvature - shared * shared * weight, real(_LEAST_LEFT) * curvature)


@jit
def _turned(direction, count, factor, i, j):
    """``p = e_i - e_j + factor p`` at its ``count`` rows; return how many it then has."""
    rows, shares = direction.rows, direction.shares
    if factor == 0:
        count = 0
    at_i = at_j = -1
    for s in range(count):
        shares[s] *= factor
        if rows[s] == i:
            at_i = s
        if rows[s] == j:
            at_j = s
    if at_i < 0:
        at_i = count
        rows[at_i] = i
        shares[at_i] = 0.0
        count += 1
    if at_j < 0:
        at_j = count
        rows[at_j] = j
        shares[at_j] = 0.0
        count += 1
    shares[at_i] += 1.0
    shares[at_j] -= 1.0
    return count


@jit
def _end(beta, lower, upper, tube, share):
    """Where a weight that moves in the direction of ``share`` is stopped; with a tube also at zero."""
    if share > 0:
        return 0.0 if tube > 0 and beta < 0 else upper
    return 0.0 if tube > 0 and beta > 0 else lower


@jit
def _shift(weights, rise, fall, direction, count, length):
    """Move the weights by ``length p``, or as far as the bounds allow; return how far, and whether one was met."""
    # Taken apart once: parts of a tuple are counted references.
    beta, lower, upper, tube = weights
    _, rows, shares = direction
    first = -1
    for s in range(count):
        k, share = rows[s], shares[s]
        if share != 0:
            room = (_end(beta[k], lower[k], upper[k], tube[k], share) - beta[k]) / share
            if room < length:
                length = room
                first = s
    largest = 0.0
    for s in range(count):
        largest = max(largest, abs(beta[rows[s]]), abs(length * shares[s]))
    for s in range(count):
        k, share = rows[s], shares[s]
        if share != 0:
            end = _end(beta[k], lower[k], upper[k], tube[k], share)
            moved = beta[k] + length * share
            # A weight within rounding of its bound is at its bound: as a free one it would decide the offset.
            at_end = s == first or abs(end - moved) <= AT_BOUND * largest
            beta[k] = end if at_end else moved
            # A row that was there before is inside its bounds, and was; new ones are the last.
            if at_end or first >= 0 or s >= count - 2:
                rise[k] = slope_up(beta[k], upper[k], tube[k])
                fall[k] = slope_down(beta[k], lower[k], tube[k])
    return length, first >= 0


@jit
def _move(F, pair, factor, product, mask, keys):
    """``K p = row_i - row_j + factor K p``, ``F -= step K p``, and the keys of ``F + mask``."""
    row_i, row_j, step = pair
    for k in range(F.shape[0]):
        v = row_i[k] - row_j[k] + factor * product[k]
        product[k] = v
        f = F[k] - step * v
        F[k] = f
        keys[k] = ordered(f + mask[k])


@jit
def conjugate_steps(K, diagonal, F, weights, room, direction, limits):
    """Take steps as :func:`mercer.loops.smo.smo_steps` does, where all of K is there; return (steps, gap)."""
    beta, upper = weights.beta, weights.upper
    rise, fall, work, bits = room
    product = direction.product
    tolerance, least, max_steps = limits
    real = F.dtype.type
    floor = real(least)
    product[:] = 0
    move(F, F, F, real(0), rise, bits)
    gap = np.inf
    # p'K p of the last direction, zero where there is none, and in how many rows it is not zero.
    last, count = 0.0, 0
    for step in range(max_steps):
        i = first_largest(bits)
        top = F[i] + rise[i]
        if step % CHECK_EVERY == 0:
            gap = np.float64(top) - np.float64(lowest(F, fall, bits))
            # Written so that a NaN ends the loop as well.
            if not gap > tolerance or beta[i] >= upper[i]:
                return step, gap
        if count + 2 > direction.rows.shape[0]:
            last = 0.0
        before = _Last(product, product[i], real(min(1.0 / last, _HEAVIEST)) if last > 0 else real(0))
        _gains(F, fall, diagonal, floor, Candidate(top, K[i], diagonal[i], work), before)
        # With a tube and a vanishing diagonal, rounding can make a row the best partner of itself.
        work[i] = real(0)
        j = first_largest(bits)
        if not work[j] > 0:
            # A NaN in the row is passed on in F, where the caller looks for it.
            if np.isnan(work[j]):
                F[i] = work[j]
            return step, 0.0
        curvature = np.float64(curvature_of(diagonal[i], diagonal[j], K[i, j], floor, floor * real(TINY)))
        factor = 0.0
        if last > 0:
            shared = np.float64(product[i]) - np.float64(product[j])
            left = curvature - shared * shared / last
            if left > _LEAST_LEFT * curvature:
                curvature = left
                factor = -shared / last
        count = _turned(direction, count, factor, i, j)
        length = (np.float64(top) - np.float64(F[j] - fall[j])) / curvature
        length, is_cut = _shift(weights, rise, fall, direction, count, length)
        _move(F, PairStep(K[i], K[j], real(length)), real(factor), product, rise, bits)
        # After a step that was cut, the last direction still has something to gain.
        last = 0.0 if is_cut else curvature
    return max_steps, gap
