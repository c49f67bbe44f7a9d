"""Steps of online learning with kernels, within a budget of support points.

Each step at a row with the target y (one for each of k outputs, f with an offset b)::

    g = -d loss(y, f(x)) / df,   f = (1 - rate alpha) f + rate g k(x, .),   b += rate g
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from mercer._types import Integers, Matrix, Vector
from mercer.loops._jit import jit
from mercer.loops.losses import descent

OLDEST, SMALLEST, PROJECTION = range(3)
SIZE, CHANGES = range(2)
SCALE, LOSS = range(2)

# Below this the scale is multiplied into the weights.
_SMALL = 1e-100
# Where there are projections, each support point keeps at least this share of k(x, x) outside the span of the others.
# The inverse of their Gram matrix then has entries of up to one over it; what an exchange adds to its errors is the
# rounding unit times their square. With 1e-7 errors of a projected length reached 1e-2, with this 2e-6.
DEPENDENT = 1e-5
_ROUNDING = 1e-15


class Rule(NamedTuple):
    """What a step does."""

    alpha: float
    intercept: bool
    loss: int
    parameter: float
    """Of the loss."""
    strategy: int
    """What happens to one support point too many."""
    budget: int
    """The most support points; negative for any number."""


class Stream(NamedTuple):
    """The rows to learn from, in their order."""

    rows: Matrix
    """Their kernel values with all p rows, (n, p); where points are merged, the rows (n, d) themselves."""
    own: Integers
    """The place of each among the p."""
    rates: Vector
    before: int
    """The number of the first step."""


class Expansion(NamedTuple):
    """The functions, one for each of k outputs."""

    theta: Vector
    """(k, p): the weights of the rows, to be multiplied by ``numbers[SCALE]``."""
    bias: Vector
    lost: Vector
    """(k,): a bound of the length of what the budget has taken from f."""
    born: Integers
    """(p,): the step that last changed a row."""
    inside: Integers
    """(p,): which rows are in the expansion."""
    diagonal: Vector
    """``k(x, x)`` of the p rows."""
    counts: Integers
    """``counts[SIZE]`` rows are in the expansion, and ``counts[CHANGES]`` were driven out."""
    numbers: Vector
    """``numbers[LOSS]`` adds up the losses before each step."""


class Support(NamedTuple):
    """The inverse of the Gram matrix of the expansion."""

    members: Integers
    """(budget,): the rows of the expansion."""
    Q: Matrix
    """(budget, budget): the inverse of their Gram matrix."""
    shares: Matrix
    """(n, budget): its products with their kernel values with each row, which are the weights of its projection."""
    u: Vector
    """(budget,): room for a column of Q over its entry on the diagonal."""


class _Entry(NamedTuple):
    """The row that enters: its place among the p, and its step."""

    new: int
    s: int


@jit
def shrink(decay, theta, lost, numbers):
    """Multiply f by ``decay``, most often by its scale alone."""
    numbers[SCALE] *= decay
    for c in range(lost.shape[0]):
        lost[c] *= decay
    if numbers[SCALE] < _SMALL:
        for c in range(theta.shape[0]):
            for j in range(theta.shape[1]):
                theta[c, j] *= numbers[SCALE]
        numbers[SCALE] = 1.0


@jit
def any_of(g):
    """Whether an entry is not zero; NaN counts as not zero."""
    result = False
    for c in range(g.shape[0]):
        result = result or g[c] != 0.0
    return result


@jit
def victim(strategy, theta, diagonal, born, inside):
    """The row of the expansion to be forgotten: the one that was changed first, or the shortest term."""
    worst, least = -1, np.inf
    for j in range(inside.shape[0]):
        if inside[j]:
            if strategy == OLDEST:
                score = float(born[j])
            else:
                score = 0.0
                for c in range(theta.shape[0]):
                    score += theta[c, j] * theta[c, j]
                score *= diagonal[j]
            if worst < 0 or score < least:
                worst, least = j, score
    return worst


@jit
def steps(stream, targets, rule, expansion, start, end):
    """A step at each row from ``start`` to ``end``, with the targets (n, k).

    Returns where the steps ended: at ``end``, or where the strategy is ``PROJECTION`` before the first row that needs
    one.
    """
    rows, own, rates, before = stream
    alpha, intercept, loss, parameter, strategy, budget = rule
    theta, bias, lost, born, inside, diagonal, counts, numbers = expansion
    outputs = theta.shape[0]
    f, g = np.empty(outputs), np.empty(outputs)
    for s in range(start, end):
        row, i, rate = rows[s], own[s], rates[s]
        for c in range(outputs):
            value = 0.0
            for j in range(row.shape[0]):
                value += theta[c, j] * row[j]
            f[c] = bias[c] + numbers[SCALE] * value
        value = descent(loss, parameter, targets[s], f, g)
        learns = rate != 0.0 and any_of(g)
        if learns and not inside[i] and counts[SIZE] == budget and strategy == PROJECTION:
            return s
        numbers[LOSS] += value
        shrink(1.0 - rate * alpha, theta, lost, numbers)
        if not learns:
            continue
        if not inside[i]:
            if counts[SIZE] == budget:
                old = victim(strategy, theta, diagonal, born, inside)
                for c in range(outputs):
                    lost[c] += numbers[SCALE] * abs(theta[c, old]) * np.sqrt(max(diagonal[old], 0.0))
                    theta[c, old] = 0.0
                inside[old] = False
                counts[SIZE] -= 1
                counts[CHANGES] += 1
            inside[i] = True
            counts[SIZE] += 1
        born[i] = before + s
        for c in range(outputs):
            theta[c, i] += rate * g[c] / numbers[SCALE]
            if intercept:
                bias[c] += rate * g[c]
    return end


@jit
def _exchange(support, rows, residual, j, size, entry):
    """Put a row into the place ``j`` of the support: the inverse, and the shares of the rows behind it.

    ``residual`` is its squared distance from the span of the support, without the point at ``j``; ``shares[s]`` becomes
    its shares of that span. With ``j == size`` the support grows; else ``u`` (size,) becomes ``Q[:, j] / Q[j, j]``. The
    old point leaves before the new one enters: with both, the inverse would have entries of any size where one is close
    to the other, and their difference no digits.
    """
    members, Q, shares, u = support
    d = shares[entry.s]
    if j < size:
        share = d[j]
        for m in range(size):
            u[m] = Q[m, j] / Q[j, j]
        for m in range(size):
            d[m] -= share * u[m]
        d[j] = 0.0
    else:
        for m in range(size):
            u[m] = 0.0
    for i in range(size):
        a, b = d[i] / residual, Q[i, j] if j < size else 0.0
        for m in range(size):
            Q[i, m] += a * d[m] - b * u[m]
    for i in range(size):
        Q[i, j] = -d[i] / residual
        Q[j, i] = Q[i, j]
    Q[j, j] = 1.0 / residual
    for x in range(entry.s + 1, rows.shape[0]):
        row, e = rows[x], shares[x]
        share, old = row[entry.new], e[j]
        for i in range(size):
            share -= d[i] * row[members[i]]
        share /= residual
        for i in range(size):
            e[i] -= d[i] * share + u[i] * old
        e[j] = share


@jit
def _cheapest(theta, change, Q, d, residual, size, members):
    """Whose projection on the others changes f least, size for the new row; ``change`` (k,) is what it adds."""
    least = 0.0
    for c in range(change.shape[0]):
        least += change[c] * change[c] * residual
    best = size
    for j in range(size):
        cost = 0.0
        for c in range(change.shape[0]):
            cost += theta[c, members[j]] * theta[c, members[j]]
        cost /= Q[j, j] + d[j] * d[j] / residual
        if cost < least:
            best, least = j, cost
    return best


@jit
def _is_dependent(Q, d, residual, places, new, members, diagonal):
    """Whether the row ``new`` would make a support point depend on the others, or depend on them itself.

    ``places`` are the place that is given up and the number of points, the same for none. 1 over the diagonal of an
    inverse is a squared distance.
    """
    goes, size = places
    left, share = 1.0, 0.0
    if goes < size:
        left, share = Q[goes, goes], d[goes]
    distance = residual + share * share / left
    if distance < DEPENDENT * diagonal[new]:
        return True
    for m in range(size):
        if m == goes:
            continue
        q = Q[m, goes] if goes < size else 0.0
        own = d[m] - share * q / left
        if (Q[m, m] - q * q / left + own * own / distance) * DEPENDENT * diagonal[members[m]] > 1.0:
            return True
    return False


@jit
def _who_goes(expansion, change, support, d, residual, new):
    """The place to be given up to a row: the number of points where it is projected itself, -1 where there is room.

    The support stays independent: no point of it comes within a share ``DEPENDENT`` of the span of the others.
    """
    size, diagonal, members, Q = expansion.counts[SIZE], expansion.diagonal, support.members, support.Q
    if residual <= DEPENDENT * diagonal[new]:
        return size
    if size < members.shape[0] and not _is_dependent(Q, d, residual, (size, size), new, members, diagonal):
        return -1
    goes = _cheapest(expansion.theta, change, Q, d, residual, size, members)
    if goes < size and _is_dependent(Q, d, residual, (goes, size), new, members, diagonal):
        return size
    return goes


@jit
def _take_in(expansion, change, support, rows, residual, goes, entry):
    """Put a row into the support, in the place ``goes``, or where that is -1 behind the others.

    The point that gives up its place is projected on the others with the new one among them; ``change`` (k,) are the
    weights of the new one.
    """
    size, scale = expansion.counts[SIZE], expansion.numbers[SCALE]
    if goes < 0:
        _exchange(support, rows, residual, size, size, entry)
        return
    members, Q, shares, u = support
    theta, lost, s = expansion.theta, expansion.lost, entry.s
    old, top, share = members[goes], Q[goes, goes], shares[s, goes]
    distance = residual + share * share / top
    _exchange(support, rows, distance, goes, size, entry)
    for c in range(change.shape[0]):
        weight = theta[c, old]
        lost[c] += scale * abs(weight) * np.sqrt(residual / (top * distance))
        for m in range(size):
            theta[c, members[m]] -= weight * (u[m] + share * shares[s, m] / (top * distance))
        theta[c, old] = 0.0
        change[c] += weight * share / (top * distance)


@jit
def projected_steps(stream, targets, rule, expansion, support, start, end):
    """The same where a row that has to go is projected on the span of the others.

    No member of the support comes within a share ``DEPENDENT`` of the span of the others.
    """
    rows, own, rates, before = stream
    alpha, intercept, loss, parameter = rule.alpha, rule.intercept, rule.loss, rule.parameter
    theta, bias, lost, born, inside, diagonal, counts, numbers = expansion
    members, shares = support.members, support.shares
    outputs = theta.shape[0]
    f, g, change = np.empty(outputs), np.empty(outputs), np.empty(outputs)
    for s in range(start, end):
        row, i, rate = rows[s], own[s], rates[s]
        for c in range(outputs):
            value = 0.0
            for j in range(row.shape[0]):
                value += theta[c, j] * row[j]
            f[c] = bias[c] + numbers[SCALE] * value
        numbers[LOSS] += descent(loss, parameter, targets[s], f, g)
        shrink(1.0 - rate * alpha, theta, lost, numbers)
        if rate == 0.0 or not any_of(g):
            continue
        for c in range(outputs):
            change[c] = rate * g[c] / numbers[SCALE]
            if intercept:
                bias[c] += rate * g[c]
        if inside[i]:
            born[i] = before + s
            for c in range(outputs):
                theta[c, i] += change[c]
            continue
        size, d = counts[SIZE], shares[s]
        residual = diagonal[i]
        for m in range(size):
            residual -= d[m] * row[members[m]]
        goes = _who_goes(expansion, change, support, d, residual, i)
        if goes == size:
            distance = np.sqrt(max(residual, _ROUNDING * diagonal[i]))
            for c in range(outputs):
                lost[c] += numbers[SCALE] * abs(change[c]) * distance
                for m in range(size):
                    theta[c, members[m]] += change[c] * d[m]
            continue
        _take_in(expansion, change, support, rows, residual, goes, _Entry(i, s))
        if goes < 0:
            goes = size
            counts[SIZE] += 1
        else:
            inside[members[goes]] = False
            counts[CHANGES] += 1
        members[goes] = i
        inside[i] = True
        born[i] = before + s
        for c in range(outputs):
            theta[c, i] += change[c]
