"""Steps of sequential minimal optimisation on one dense block, and the gradient update from stored rows.

The problem::

    max  c'beta - sum_i tube_i |beta_i| - beta' K beta / 2   subject to  lower <= beta <= upper,  sum(beta) = constant

with the gradient ``F = c - K beta`` of its smooth part. A pair ``(i, j)`` with ``F_i + rise_i > F_j - fall_j`` can be
improved by moving weight from ``j`` to ``i``, where ``rise`` and ``fall`` hold the slope of ``tube |beta|`` in the
direction of the move, and minus infinity at a bound.

Every pass over the block is a loop of its own because only simple loops become vector code. The largest value is
sought among the bits of the floats read as integers, as a ``float`` reduction is not vectorised.
"""

from __future__ import annotations

import numpy as np
from llvmlite import ir
from numba import float32, int32, int64
from numba.extending import intrinsic

from mercer.loops._jit import jit
from mercer.loops.picked import pick_row

CHUNK = 64
CHECK_EVERY = 8
_COLUMNS = 2048
AT_BOUND = 1e-13


@jit
def largest(keys):
    top = keys[0]
    for k in range(keys.shape[0]):
        top = max(top, keys[k])
    return top


@jit
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


@jit
def move(F, row_i, row_j, step, mask, keys):
    """``F -= step (row_i - row_j)``, and the keys of ``F + mask``."""
    for k in range(F.shape[0]):
        f = F[k] - step * (row_i[k] - row_j[k])
        F[k] = f
        keys[k] = ordered(f + mask[k])


@jit
def second_order_gains(F, top, mask, row, diagonal, own, least, out):
    """Second-order gain of pairing each row with the row at the top; zero where there is none."""
    real = F.dtype.type
    for k in range(F.shape[0]):
        b = max(top - F[k] + mask[k], real(0))
        out[k] = b * b / max(own + diagonal[k] - real(2) * row[k], least)


@jit
def lowest(F, mask, keys):
    """The smallest value among the rows that may fall."""
    for k in range(F.shape[0]):
        keys[k] = ordered(mask[k] - F[k])
    k = first_largest(keys)
    return F[k] - mask[k]


@jit
def _slope_up(beta, upper, tube):
    """What a rise of ``beta`` does to ``-tube |beta|``; minus infinity at the bound."""
    if beta >= upper:
        return -np.inf
    return -tube if beta >= 0 else tube


@jit
def _slope_down(beta, lower, tube):
    """What a fall of ``beta`` does to ``-tube |beta|``; minus infinity at the bound."""
    if beta <= lower:
        return -np.inf
    return tube if beta > 0 else -tube


@jit
def set_masks(beta, lower, upper, tube, rise, fall):
    """The slopes of ``-tube |beta|`` for a rise and for a fall; minus infinity where ``beta`` is at its bound."""
    for k in range(beta.shape[0]):
        rise[k] = _slope_up(beta[k], upper[k], tube[k])
        fall[k] = _slope_down(beta[k], lower[k], tube[k])


@jit
def shift(beta, lower, upper, tube, rise, fall, i, j, wanted):
    """Move weight from j to i, as much as is ``wanted`` and there is room for; returns how much."""
    # With a tube a weight stops at zero, where the slope changes.
    end_i = 0.0 if tube[i] > 0 and beta[i] < 0 else upper[i]
    end_j = 0.0 if tube[j] > 0 and beta[j] > 0 else lower[j]
    room_i = end_i - beta[i]
    room_j = beta[j] - end_j
    moved = min(wanted, room_i, room_j)
    # A weight within rounding of its bound is at its bound: as a free one it would decide the offset.
    beta[i] = end_i if room_i - moved <= AT_BOUND * (upper[i] - lower[i]) else beta[i] + moved
    beta[j] = end_j if room_j - moved <= AT_BOUND * (upper[j] - lower[j]) else beta[j] - moved
    rise[i] = _slope_up(beta[i], upper[i], tube[i])
    fall[i] = _slope_down(beta[i], lower[i], tube[i])
    rise[j] = _slope_up(beta[j], upper[j], tube[j])
    fall[j] = _slope_down(beta[j], lower[j], tube[j])
    return moved


@jit
def smo_steps(K, present, diagonal, F, beta, lower, upper, tube, rise, fall, work, bits, tolerance, least, max_steps):
    """At most ``max_steps`` steps of second-order SMO on the block ``K``, in place; returns (steps, gap, missing).

    It ends before it would use a row of ``K`` that is not ``present``, and returns that as ``missing``, else -1; see
    :func:`smo_steps_picking` for rows that a stored matrix has.
    ``K`` (q, q), ``diagonal``, ``F``, ``rise``, ``fall`` (see ``set_masks``) and ``work`` (q,) are of one float
    type, ``bits`` is the integer view of ``work``; ``beta``, ``lower``, ``upper`` and ``tube`` (q,) are float64. It
    ends when the largest violation ``max (F + rise) - min (F - fall)`` is at most ``tolerance``.

    Source: Fan, Chen and Lin (2005), "Working set selection using second order information for training support
    vector machines", JMLR 6, WSS 2.
    """
    return smo_steps_picking(
        K,
        np.empty(0, np.int64),
        K,
        present,
        diagonal,
        F,
        beta,
        lower,
        upper,
        tube,
        rise,
        fall,
        work,
        bits,
        tolerance,
        least,
        max_steps,
    )


@jit
def _has_row(matrix, at, i, K, present):
    """Whether row ``i`` of ``K`` is there, after it was picked from ``matrix[at][:, at]`` if ``at`` is not empty."""
    if not present[i] and i < at.shape[0]:
        row = K[i]
        row[at.shape[0] :] = 0
        pick_row(matrix, at, i, row[: at.shape[0]])
        present[i] = True
    return present[i]


@jit
def smo_steps_picking(
    matrix, at, K, present, diagonal, F, beta, lower, upper, tube, rise, fall, work, bits, tolerance, least, max_steps
):
    """The same, where rows of ``K`` that are not ``present`` are picked from ``matrix[at][:, at]`` when steps ask for
    them. ``at`` may be empty, or shorter than K, whose last row is the zeros that stand for an offset of 0.
    """
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
        if not _has_row(matrix, at, i, K, present):
            return step, gap, i
        second_order_gains(F, top, fall, K[i], diagonal, diagonal[i], floor, work)
        # With a tube and a vanishing diagonal, rounding can make a row the best partner of itself.
        work[i] = real(0)
        j = first_largest(bits)
        if not work[j] > 0:
            # A NaN in the row is passed on in F, where the caller looks for it.
            if np.isnan(work[j]):
                F[i] = work[j]
            return step, 0.0, -1
        if not _has_row(matrix, at, j, K, present):
            return step, gap, j
        curvature = np.float64(max(diagonal[i] + diagonal[j] - real(2) * K[i, j], floor))
        wanted = (np.float64(top) - np.float64(F[j] - fall[j])) / curvature
        moved = shift(beta, lower, upper, tube, rise, fall, i, j, wanted)
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
def smo_steps_in_groups(
    K, present, diagonal, F, beta, lower, upper, tube, groups, rise, fall, work, bits, tolerance, least, max_steps
):
    """The same where both rows of a pair must be of one of two ``groups`` (q,): steps go to the worse group.

    All rows must be present. Returns (steps, gap).

    Source of the rule: Chang and Lin (2001), "Training nu-support vector classifiers", Neural Computation 13.
    """
    done = 0
    worst = np.inf
    while done < max_steps:
        worst = -np.inf
        worse = 0
        for group in range(2):
            set_masks(beta, lower, upper, tube, rise, fall)
            _keep_group(groups, group, rise, fall)
            gap = _gap(F, rise, fall, bits)
            if gap > worst:
                worst = gap
                worse = group
        if not worst > tolerance:
            break
        set_masks(beta, lower, upper, tube, rise, fall)
        _keep_group(groups, worse, rise, fall)
        steps, _, _ = smo_steps(
            K,
            present,
            diagonal,
            F,
            beta,
            lower,
            upper,
            tube,
            rise,
            fall,
            work,
            bits,
            tolerance,
            least,
            min(CHECK_EVERY, max_steps - done),
        )
        if steps == 0:
            break
        done += steps
    return done, worst


@jit
def subtract_rows(F, rows, index, weights):
    """``F -= sum_s weights[s] * rows[index[s]]``, summed in float64 over columns that stay in the cache.

    Four rows at a time: one pass over F for the four, and four streams from memory side by side.
    """
    fours = index.shape[0] - index.shape[0] % 4
    for begin in range(0, F.shape[0], _COLUMNS):
        end = min(begin + _COLUMNS, F.shape[0])
        target = F[begin:end]
        for s in range(0, fours, 4):
            a, b = rows[index[s], begin:end], rows[index[s + 1], begin:end]
            c, d = rows[index[s + 2], begin:end], rows[index[s + 3], begin:end]
            u, v, x, y = weights[s], weights[s + 1], weights[s + 2], weights[s + 3]
            for k in range(end - begin):
                target[k] -= (u * a[k] + v * b[k]) + (x * c[k] + y * d[k])
        for s in range(fours, index.shape[0]):
            row = rows[index[s], begin:end]
            weight = weights[s]
            for k in range(end - begin):
                target[k] -= weight * row[k]


@jit
def copy_rows(tile, targets, rows):
    """``rows[targets[s]] = tile[s]`` for as many rows of the tile as there are targets."""
    for s in range(targets.shape[0]):
        row = rows[targets[s]]
        source = tile[s]
        for k in range(source.shape[0]):
            row[k] = source[k]
