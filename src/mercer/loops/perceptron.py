"""Steps of perceptrons with kernel values, and the votes of all that they have been.

Each step at a row i, for every output of its own::

    if y_i f(x_i) <= margin:   theta_i += y_i,   f += y_i (k(x_i, .) + constant)

"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from mercer._types import Array, Integers, Vector
from mercer.loops._jit import jit

HEAD, SIZE, COUNT = range(3)
# Values that are added to at a time.
_PART = 1024


class Labels(NamedTuple):
    """The classes to separate, and the rule of a step."""

    codes: Integers
    """The class of each row."""
    positive: Integers
    """For each output the class for which y = +1."""
    constant: float
    margin: float


class KernelValues(NamedTuple):
    """Rows of the kernel matrix: ``rows[slot[i]]`` is row i, from column ``first`` on, if ``slot[i]`` >= 0."""

    rows: Array
    first: int
    slot: Integers


class Expansion(NamedTuple):
    """The functions, one for each of k outputs."""

    theta: Vector
    """(k, p)"""
    lagged: Vector
    """Each change of ``theta`` times the steps before it, added up."""
    values: Vector
    """Of the functions at the rows, (k, p)."""


class Support(NamedTuple):
    """The rows of an expansion within a budget, and counters."""

    queue: Integers
    """(budget,): a ring from ``state[HEAD]`` with ``state[SIZE]`` rows in it; empty where there is no budget."""
    inside: Integers
    """(p,): which rows are in it."""
    state: Integers
    """``state[COUNT]`` is the number of updates of the last call."""


@jit
def steps(labels, kernel, order, expansion, support, before, updates):
    """A step at each row in ``order``, up to one that errs and whose kernel values are not there.

    Returns how many steps were made. A row that enters a full queue drives out the oldest. ``updates`` (m, 4) takes
    step, row, output and sign of the updates; ``before`` is the number of steps before these.
    """
    codes, positive, constant, margin = labels
    rows, first, slot = kernel
    theta, lagged, values = expansion
    queue, inside, state = support
    erring = np.empty(theta.shape[0], np.bool_)
    state[COUNT] = 0
    outputs, width, budget = theta.shape[0], rows.shape[1], queue.shape[0]
    for s in range(order.shape[0]):
        i = order[s]
        wrong = False
        for c in range(outputs):
            y = 1.0 if codes[i] == positive[c] else -1.0
            erring[c] = y * values[c, i] <= margin
            wrong = wrong or erring[c]
        if not wrong:
            continue
        if slot[i] < 0:
            return s
        if budget > 0 and not inside[i]:
            if state[SIZE] == budget:
                oldest = queue[state[HEAD]]
                row = rows[slot[oldest]]
                for c in range(outputs):
                    lost = theta[c, oldest]
                    if lost != 0.0:
                        for j in range(width):
                            values[c, first + j] -= lost * (row[j] + constant)
                        theta[c, oldest] = 0.0
                inside[oldest] = False
                state[HEAD] = (state[HEAD] + 1) % budget
                state[SIZE] -= 1
            queue[(state[HEAD] + state[SIZE]) % budget] = i
            state[SIZE] += 1
            inside[i] = True
        row = rows[slot[i]]
        for c in range(outputs):
            if erring[c]:
                y = 1.0 if codes[i] == positive[c] else -1.0
                theta[c, i] += y
                lagged[c, i] += y * (before + s)
                for j in range(width):
                    values[c, first + j] += y * (row[j] + constant)
                count = state[COUNT]
                updates[count, 0] = before + s
                updates[count, 1] = i
                updates[count, 2] = c
                updates[count, 3] = 1 if y > 0.0 else -1
                state[COUNT] += 1
    return order.shape[0]


@jit
def right_ones(labels, values, order):
    """How many rows in ``order`` come before the first that errs."""
    codes, positive, _, margin = labels
    for s in range(order.shape[0]):
        i = order[s]
        for c in range(values.shape[0]):
            y = 1.0 if codes[i] == positive[c] else -1.0
            if y * values[c, i] <= margin:
                return s
    return order.shape[0]


@jit
def guess_errors(labels, values, at, typical, ahead, errors):
    """Find row ``at``, which is misclassified, and the next ones if all kernel values were ``typical``.

    Fills ``errors`` up to its length and returns their number; ``ahead`` (k, m) is scratch.
    """
    codes, positive, constant, margin = labels
    size, change = 0, typical + constant
    for i in range(at, values.shape[1]):
        for c in range(values.shape[0]):
            ahead[c, i] = values[c, i]
    for i in range(at, values.shape[1]):
        wrong = False
        for c in range(values.shape[0]):
            y = 1.0 if codes[i] == positive[c] else -1.0
            if y * ahead[c, i] <= margin:
                wrong = True
                for j in range(i + 1, values.shape[1]):
                    ahead[c, j] += y * change
        if wrong:
            errors[size] = i
            size += 1
            if size == errors.shape[0]:
                break
    return size


@jit
def add_rows(rows, slots, weights, constant, values):
    """``values[c, j] += sum_e weights[c, e] (rows[slots[e], j] + constant)``, by parts that stay in the cache."""
    for start in range(0, values.shape[1], _PART):
        for c in range(values.shape[0]):
            part = values[c, start : start + _PART]
            for e in range(slots.shape[0]):
                weight = weights[c, e]
                if weight != 0.0:
                    row = rows[slots[e], start : start + _PART]
                    for j in range(part.shape[0]):
                        part[j] += weight * (row[j] + constant)


@jit
def votes(rows, updates, total, constant, out):
    """Votes of every function that updates made, weighed by the steps that it lasted: ``out`` (m, k).

    ``rows`` (m, p) are the kernel values between new rows and those of the expansion, ``total`` the number of steps.
    """
    outputs = out.shape[1]
    for r in range(rows.shape[0]):
        for c in range(outputs):
            value, vote, since = 0.0, 0, 0
            for u in range(updates.shape[0]):
                if updates[u, 2] == c:
                    lasted = updates[u, 0] - since
                    if value > 0.0:
                        vote += lasted
                    elif value < 0.0:
                        vote -= lasted
                    since = updates[u, 0]
                    value += updates[u, 3] * (rows[r, updates[u, 1]] + constant)
            lasted = total - since
            if value > 0.0:
                vote += lasted
            elif value < 0.0:
                vote -= lasted
            out[r, c] = vote / total
