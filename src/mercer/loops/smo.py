"""Steps of sequential minimal optimisation on one dense block.

The problem::

    max  c'beta - sum_i tube_i |beta_i| - beta' K beta / 2   subject to  lower <= beta <= upper,  sum(beta) = constant

with the gradient ``F = c - K beta`` of its smooth part. A pair ``(i, j)`` with ``F_i + rise_i > F_j - fall_j`` can be
improved by moving weight from ``j`` to ``i``, where ``rise`` and ``fall`` hold the slope of ``tube |beta|`` in the
direction of the move, and minus infinity at a bound.

Every pass over the block is a loop of its own because only simple loops become vector code. The largest value is
sought among the bits of the floats read as integers, as a ``float`` reduction is not vectorised.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from llvmlite import ir
from numba import float32, int32, int64
from numba.extending import intrinsic

from mercer._types import Array, Integers
from mercer.loops._jit import jit, vector_jit
from mercer.loops.box import set_masks, shift
from mercer.loops.picked import has_row

# The least curvature of a pair, where K is zero in both of its rows, in units of the rounding.
TINY = float(np.finfo(np.float32).tiny)
CHUNK = 64
CHECK_EVERY = 8


class StepRoom(NamedTuple):
    """Work arrays of steps on pairs, (q,) each."""

    rise: Array
    fall: Array
    work: Array
    bits: Integers
    """The integer view of ``work``."""


class StepLimits(NamedTuple):
    """When steps end, and the least curvature of a pair as a part of ``|K_ii + K_jj|``: its rounding."""

    tolerance: float
    least: float
    max_steps: int


class Candidate(NamedTuple):
    """A row that is to rise, and the gain of pairing each row with it."""

    top: float
    """Its ``F + rise``."""
    row: Array
    """Its row of K, (q,)."""
    own: float
    """Its entry of the diagonal."""
    gains: Array
    """(q,), written."""


@vector_jit
def largest(keys):
    top = keys[0]
    for k in range(keys.shape[0]):
        top = max(top, keys[k])
    return top


@vector_jit
def first_largest(keys):
    """Index of the first largest integer: the maximum of every chunk first, then a search in one chunk."""
    best = largest(keys[:CHUNK])
    start = 0
    for begin in range(CHUNK, keys.shape[0], CHUNK):
        top = largest(keys[begin : begin + CHUNK])
        if top > best:
            best = top
            start = begin
    for k in range(start, keys.shape[0]):
        if keys[k] == best:
            return k
    return start


@intrinsic
def ordered(typing_context, x):
    """An integer with as many bits as the float x, in the same order as the floats."""

    def generate(context, builder, signature, arguments):
        size = 32 if signature.args[0] == float32 else 64
        word = ir.IntType(size)
        bits = builder.bitcast(arguments[0], word)
        sign = builder.ashr(bits, ir.Constant(word, size - 1))
        return builder.xor(bits, builder.and_(sign, ir.Constant(word, 2 ** (size - 1) - 1)))

    return (int32 if x == float32 else int64)(x), generate


@vector_jit
def move(F, row_i, row_j, step, mask, keys):
    """``F -= step (row_i - row_j)``, and the keys of ``F + mask``."""
    for k in range(F.shape[0]):
        f = F[k] - step * (row_i[k] - row_j[k])
        F[k] = f
        keys[k] = ordered(f + mask[k])


@jit
def curvature_of(own, other, entry, least, tiny):
    """``K_ii + K_jj - 2 K_ij``, at least its rounding: that of the pair, whatever the size of other rows."""
    total = own + other
    return max(max(total - entry - entry, least * abs(total)), tiny)


@vector_jit
def second_order_gains(F, mask, diagonal, least, candidate):
    """Second-order gain of pairing each row with the candidate; zero where there is none."""
    top, row, own, gains = candidate
    real = F.dtype.type
    tiny = least * real(TINY)
    for k in range(F.shape[0]):
        b = max(top - F[k] + mask[k], real(0))
        gains[k] = b * b / curvature_of(own, diagonal[k], row[k], least, tiny)


@vector_jit
def lowest(F, mask, keys):
    """The smallest value among the rows that may fall."""
    for k in range(F.shape[0]):
        keys[k] = ordered(mask[k] - F[k])
    k = first_largest(keys)
    return F[k] - mask[k]


@jit
def smo_steps(rows, diagonal, F, weights, room, limits):
    """Take steps of second-order SMO on ``rows.K`` (q, q), in place; return (steps, gap, missing).

    They end when the largest violation ``max (F + rise) - min (F - fall)`` is at most the tolerance, or before they
    would use a row of K that is not there and cannot be picked: its number is ``missing``, which else is -1. ``K``,
    ``diagonal`` and ``F`` (q,) and the work arrays are of one float type; ``room.rise`` and ``room.fall`` are as
    ``set_masks`` sets them.

    Source: Fan, Chen and Lin (2005), "Working set selection using second order information for training support
    vector machines", JMLR 6, WSS 2.
    """
    K, present = rows.K, rows.present
    beta, upper = weights.beta, weights.upper
    rise, fall, work, bits = room
    tolerance, least, max_steps = limits
    real = F.dtype.type
    floor = real(least)
    move(F, F, F, real(0), rise, bits)
    gap = np.inf
    for step in range(max_steps):
        i = first_largest(bits)
        top = F[i] + rise[i]
        if step % CHECK_EVERY == 0:
            gap = np.float64(top) - np.float64(lowest(F, fall, bits))
            # Written so that a NaN ends the loop as well.
            if not gap > tolerance or beta[i] >= upper[i]:
                return step, gap, -1
        if not present[i] and not has_row(rows, i):
            return step, gap, i
        second_order_gains(F, fall, diagonal, floor, Candidate(top, K[i], diagonal[i], work))
        # With a tube and a vanishing diagonal, rounding can make a row the best partner of itself.
        work[i] = real(0)
        j = first_largest(bits)
        if not work[j] > 0:
            # A NaN in the row is passed on in F, where the caller looks for it.
            if np.isnan(work[j]):
                F[i] = work[j]
            return step, 0.0, -1
        if not present[j] and not has_row(rows, j):
            return step, gap, j
        curvature = np.float64(curvature_of(diagonal[i], diagonal[j], K[i, j], floor, floor * real(TINY)))
        length = (np.float64(top) - np.float64(F[j] - fall[j])) / curvature
        moved = shift(weights, rise, fall, i, j, length)
        move(F, K[i], K[j], real(moved), rise, bits)
    return max_steps, gap, -1


@jit
def _keep_group(groups, group, rise, fall):
    """Rule out the rows of all other groups."""
    for k in range(groups.shape[0]):
        if groups[k] != group:
            rise[k] = -np.inf
            fall[k] = -np.inf


@jit
def _gap(F, rise, fall, bits):
    move(F, F, F, F.dtype.type(0), rise, bits)
    i = first_largest(bits)
    return np.float64(F[i] + rise[i]) - np.float64(lowest(F, fall, bits))


@jit
def smo_steps_in_groups(rows, diagonal, F, weights, groups, room, limits):
    """The same where both rows of a pair must be of one of two ``groups`` (q,): steps go to the worse group.

    All rows must be present. Returns (steps, gap).

    Source of the rule: Chang and Lin (2001), "Training nu-support vector classifiers", Neural Computation 13.
    """
    rise, fall, bits = room.rise, room.fall, room.bits
    tolerance, least, max_steps = limits
    total = 0
    worst = np.inf
    while total < max_steps:
        worst = -np.inf
        worse = 0
        for group in range(2):
            set_masks(weights, rise, fall)
            _keep_group(groups, group, rise, fall)
            gap = _gap(F, rise, fall, bits)
            if gap > worst:
                worst = gap
                worse = group
        if not worst > tolerance:
            break
        set_masks(weights, rise, fall)
        _keep_group(groups, worse, rise, fall)
        portion = StepLimits(tolerance, least, min(CHECK_EVERY, max_steps - total))
        steps, _, _ = smo_steps(rows, diagonal, F, weights, room, portion)
        if steps == 0:
            break
        total += steps
    return total, worst
