"""The step of sequential minimal optimisation, for every problem of a support vector machine, on one dense block.

The problem::

    max  c'beta - sum_i tube_i |beta_i| - beta' K beta / 2
    subject to  lower <= beta <= upper,  sum(beta) = constant over each group of weights

with the gradient ``F = c - K beta`` of its smooth part. A pair ``(i, j)`` of one group with
``F_i + rise_i > F_j - fall_j`` can be improved by moving weight from ``j`` to ``i``, where ``rise`` and ``fall`` hold
the slope of ``tube |beta|`` in the direction of the move, and minus infinity at a bound.

What a problem adds is data: a box, a tube, groups, rows of K that are not there yet. Where no sum must be kept, K has a
row of zeros whose weight is unbounded.

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
from mercer.loops.box import shift
from mercer.loops.picked import has_row

# The least curvature of a pair, where K is zero in both of its rows, in units of the rounding.
TINY = float(np.finfo(np.float32).tiny)
CHUNK = 64
CHECK_EVERY = 8
# Groups whose violations differ by more than this factor do not take turns.
_NEAR = 0.5


class Groups(NamedTuple):
    """The groups of weights that keep a sum each: one, or two of them one behind the other."""

    begin: tuple[int, ...]
    end: tuple[int, ...]
    row: tuple[int, ...]
    """The row of K of the first weight; both groups may have the same rows, as in nu-SVR."""


class StepRoom(NamedTuple):
    """Work arrays of steps on pairs, one entry a weight."""

    rise: Array
    fall: Array
    keys: Integers
    """``F + rise``, as integers in the same order."""
    work: Array
    bits: Integers
    """The integer view of ``work``."""

    @classmethod
    def of(cls, arrays: Array) -> StepRoom:
        """In an array (4, q) of floats."""
        integers = arrays.view(f"i{arrays.itemsize}")
        return cls(arrays[0], arrays[1], integers[2], arrays[3], integers[3])


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
def _gap(F, rise, fall, keys, bits):
    """The largest value that may rise less the smallest that may fall; minus infinity without rows."""
    if F.shape[0] == 0:
        return -np.inf
    i = first_largest(keys)
    return np.float64(F[i] + rise[i]) - np.float64(lowest(F, fall, bits))


@jit
def _worst(F, groups, room):
    """The largest violation of a group, its number, and whether the groups take turns."""
    rise, fall, keys, _, bits = room
    gap, least, worst = -np.inf, np.inf, 0
    for g in range(len(groups.begin)):
        own = slice(groups.begin[g], groups.end[g])
        of_group = _gap(F[own], rise[own], fall[own], keys[own], bits[own])
        least = min(least, of_group)
        # A NaN counts.
        if not of_group <= gap:
            gap, worst = of_group, g
    return gap, worst, len(groups.begin) > 1 and least > _NEAR * gap


@jit
def smo_steps(rows, diagonal, F, weights, groups, room, limits):
    """Take steps of second-order SMO on ``rows.K``, in place; return (steps, gap, missing).

    They end when the largest violation of a group, ``max (F + rise) - min (F - fall)``, is at most the tolerance, or
    before they would use a row of K that is not there and cannot be picked: its number is ``missing``, which else is
    -1. Two groups take turns, unless one of them is much nearer to its end. ``K`` (q, q), ``diagonal`` (q,), ``F`` and
    the work arrays, with an entry for each weight, are of one float type; ``room.rise`` and ``room.fall`` are as
    ``set_masks`` sets them.

    Sources: Fan, Chen and Lin (2005), "Working set selection using second order information for training support
    vector machines", JMLR 6, WSS 2; for groups Chang and Lin (2001), "Training nu-support vector classifiers", Neural
    Computation 13.
    """
    K, present = rows.K, rows.present
    begin, end, row = groups
    rise, fall, keys, work, bits = room
    tolerance, least, max_steps = limits
    real = F.dtype.type
    floor = real(least)
    move(F, F, F, real(0), rise, keys)
    gap, g, turns = np.inf, 0, False
    check_every = CHECK_EVERY // len(begin)
    for step in range(max_steps):
        if step % check_every == 0:
            gap, g, turns = _worst(F, groups, room)
            # Written so that a NaN ends the loop as well.
            if not gap > tolerance:
                return step, gap, -1
        elif turns:
            g = 1 - g
        # Weights i and j have the rows a and b of K.
        own, to_row = slice(begin[g], end[g]), row[g] - begin[g]
        columns = slice(row[g], end[g] + to_row)
        i = begin[g] + first_largest(keys[own])
        a = i + to_row
        top = F[i] + rise[i]
        if not present[a] and not has_row(rows, a):
            return step, gap, a
        second_order_gains(
            F[own], fall[own], diagonal[columns], floor, Candidate(top, K[a, columns], diagonal[a], work[own])
        )
        # With a tube and a vanishing diagonal, rounding can make a row the best partner of itself.
        work[i] = real(0)
        j = begin[g] + first_largest(bits[own])
        b = j + to_row
        if not work[j] > 0:
            # A NaN in the row is passed on in F, where the caller looks for it.
            if np.isnan(work[j]):
                F[i] = work[j]
            return step, 0.0, -1
        if not present[b] and not has_row(rows, b):
            return step, gap, b
        curvature = np.float64(curvature_of(diagonal[a], diagonal[b], K[a, b], floor, floor * real(TINY)))
        moved = shift(weights, rise, fall, i, j, (np.float64(top) - np.float64(F[j] - fall[j])) / curvature)
        for h in range(len(begin)):
            part, columns = slice(begin[h], end[h]), slice(row[h], row[h] + end[h] - begin[h])
            move(F[part], K[a, columns], K[b, columns], real(moved), rise[part], keys[part])
    return max_steps, gap, -1
