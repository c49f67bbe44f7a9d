"""Steps of perceptrons with kernel values, and the votes of all that they have been.

Each step at a row i, for every output of its own::

    if y_i f(x_i) <= margin:   theta_i += y_i,   f += y_i (k(x_i, .) + constant)

Arrays: ``theta`` and ``lagged`` (k, p), ``values`` (k, p) of f at the rows, ``codes`` (n,) the class of a row,
``positive`` (k,) the class for which y = +1. ``lagged`` adds up each change times the steps before it.
"""

from __future__ import annotations

from mercer.loops._jit import jit

HEAD, SIZE, COUNT = range(3)
# Values that are added to at a time.
_PART = 1024


@jit
def steps(
    rows,
    first,
    slot,
    codes,
    positive,
    order,
    values,
    theta,
    lagged,
    queue,
    inside,
    state,
    constant,
    margin,
    before,
    erring,
    updates,
):
    """A step at each row in ``order``, up to one that errs and whose kernel values are not there.

    Returns how many steps were made. ``rows[slot[i]]`` holds the kernel values of row i, from that with row ``first``
    on, if ``slot[i]`` is not negative. With a ``queue`` (budget,) of the support, a ring from ``state[HEAD]`` with
    ``state[SIZE]`` in it, a row that enters a full one drives out the oldest; ``inside`` (p,) says who is in it.
    ``updates`` (m, 4) takes step, row, output and sign of the ``state[COUNT]`` updates; ``erring`` (k,) is scratch.
    """
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
def right_ones(values, codes, positive, order, margin):
    """How many rows in ``order`` come before the first that errs."""
    for s in range(order.shape[0]):
        i = order[s]
        for c in range(values.shape[0]):
            y = 1.0 if codes[i] == positive[c] else -1.0
            if y * values[c, i] <= margin:
                return s
    return order.shape[0]


@jit
def guess_errors(values, codes, positive, at, margin, constant, typical, ahead, found):
    """Row ``at``, which errs, and those that would be the next, were all kernel values ``typical``.

    Fills ``found`` as far as it goes and returns how many there are; ``ahead`` (k, m) is scratch.
    """
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
            found[size] = i
            size += 1
            if size == found.shape[0]:
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
