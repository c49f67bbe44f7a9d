"""Steps of sequential minimal optimisation where two groups of weights keep a sum each.

Both weights of a step are of one group. A row of K may have a weight in each of them, as in nu-SVR, where there is one
gradient for both; in nu-SVC a group has the rows of a class.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from mercer._types import Integers
from mercer.loops._jit import jit
from mercer.loops.box import shift
from mercer.loops.picked import has_row
from mercer.loops.smo import TINY, Candidate, curvature_of, first_largest, lowest, ordered, second_order_gains

_CHECK_EVERY = 4
_NEAR = 0.5


class TwoGroups(NamedTuple):
    """Where the rows of either group begin and end, (2,) each."""

    begin: Integers
    end: Integers


@jit
def _descend(F, row_i, row_j, step):
    for k in range(F.shape[0]):
        F[k] -= step * (row_i[k] - row_j[k])


@jit
def _order(F, mask, keys):
    for k in range(F.shape[0]):
        keys[k] = ordered(F[k] + mask[k])


@jit
def smo_steps_of_groups(rows, diagonal, F, weights, groups, room, limits):
    """Take steps, in place; return (steps, gap), as :func:`mercer.loops.smo.smo_steps`.

    The groups take turns, unless one of them is much nearer to its end. The rows of group g are ``begin[g]`` to
    ``end[g]`` of ``F`` and of ``K`` (q, q); ``weights``, which have no tube, and ``room`` hold the first group and
    behind it the second.

    Source: Chang and Lin (2001), "Training nu-support vector classifiers", Neural Computation 13.
    """
    K, present = rows.K, rows.present
    (begin, end), (rise, fall, work, bits), (tolerance, least, max_steps) = groups, room, limits
    real = F.dtype.type
    floor = real(least)
    m = end[0] - begin[0]
    gap, turns, group = np.inf, False, 0
    for step in range(max_steps):
        if step % _CHECK_EVERY == 0:
            first = _gap(F[begin[0] : end[0]], rise[:m], fall[:m], bits[:m])
            second = _gap(F[begin[1] : end[1]], rise[m:], fall[m:], bits[m:])
            gap = max(first, second)
            # Written so that a NaN ends the loop as well.
            if not gap > tolerance:
                return step, gap
            # In turn, but for a group that is much nearer to its end.
            turns, group = min(first, second) > _NEAR * gap, 0 if first > second else 1
        elif turns:
            group = 1 - group
        # ``a`` and ``b`` are rows of K, ``i`` and ``j`` the places of their weights.
        begins, place = begin[group], group * m
        own = slice(place, place + end[group] - begins)
        _order(F[begins : end[group]], rise[own], bits[own])
        i = first_largest(bits[own])
        a, i = begins + i, place + i
        if not present[a]:
            has_row(rows, a)
        part, top = slice(begins, end[group]), F[a] + rise[i]
        candidate = Candidate(top, K[a, part], diagonal[a], work[own])
        second_order_gains(F[part], fall[own], diagonal[part], floor, candidate)
        work[i] = real(0)
        j = first_largest(bits[own])
        b, j = begins + j, place + j
        if not work[j] > 0:
            # A NaN in the row is passed on in F, where the caller looks for it.
            if np.isnan(work[j]):
                F[a] = work[j]
            return step, 0.0
        if not present[b]:
            has_row(rows, b)
        curvature = np.float64(curvature_of(diagonal[a], diagonal[b], K[a, b], floor, floor * real(TINY)))
        moved = shift(weights, rise, fall, i, j, (np.float64(top) - np.float64(F[b] - fall[j])) / curvature)
        _descend(F, K[a], K[b], real(moved))
    return max_steps, gap


@jit
def _gap(F, rise, fall, bits):
    """The largest value that may rise less the smallest that may fall."""
    _order(F, rise, bits)
    i = first_largest(bits)
    return np.float64(F[i] + rise[i]) - np.float64(lowest(F, fall, bits))
