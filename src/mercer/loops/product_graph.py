"""Loops over the direct product of two graphs, whose nodes are pairs of nodes with equal labels.

A side is ``nodes`` (where each graph's nodes begin), ``labels``, ``firsts`` (where each graph's steps begin), and the
steps ``begins``, ``ends`` (nodes within the graph) and ``marks`` (labels of edges, ascending within a graph).
"""

import numpy as np

from mercer.loops._jit import jit


@jit
def _step(begins, ends, marks, p, p_end, others, targets, signs, q, q_end, mask, v, between, out):
    """``out = W v``, where W joins two pairs of nodes if both graphs do so, by edges of one label.

    The product is never made: for each label of edges, v is first moved along the edges of the left graph and then
    along those of the right one.
    """
    n, m = v.shape
    out[:, :] = 0.0
    while p < p_end and q < q_end:
        mark = max(marks[p], signs[q])
        if marks[p] < mark:
            p += 1
            continue
        if signs[q] < mark:
            q += 1
            continue
        between[:, :] = 0.0
        while p < p_end and marks[p] == mark:
            to, source = between[begins[p]], v[ends[p]]
            for c in range(m):
                to[c] += source[c]
            p += 1
        run = q
        while q < q_end and signs[q] == mark:
            q += 1
        for a in range(n):
            to, source = out[a], between[a]
            for e in range(run, q):
                to[others[e]] += source[targets[e]]
    for a in range(n):
        for c in range(m):
            out[a, c] *= mask[a, c]


@jit
def _dot(a, b):
    total = 0.0
    for i in range(a.shape[0]):
        for j in range(a.shape[1]):
            total += a[i, j] * b[i, j]
    return total


@jit
def walks(
    nodes,
    labels,
    firsts,
    begins,
    ends,
    marks,
    rows,
    z_nodes,
    z_labels,
    z_firsts,
    z_begins,
    z_ends,
    z_marks,
    columns,
    decay,
    tolerance,
    symmetric,
    pulled,
    out,
    stop,
):
    """``1' (I - decay W)^-1 1`` for each pair of graphs, by conjugate gradients.

    Where ``pulled`` has entries, nothing is written to ``out``, and the sum of ``pulled`` times the derivatives by
    ``decay`` is found: ``x' W x`` for the solution x. Returns the sum and the place of a pair for which I - decay W is
    not positive definite, so that the sum over walks diverges; (-1, -1) if there is none, or once ``stop[0]`` is set.
    """
    n, m = 0, 0
    for a in range(rows.shape[0]):
        n = max(n, nodes[rows[a] + 1] - nodes[rows[a]])
    for b in range(columns.shape[0]):
        m = max(m, z_nodes[columns[b] + 1] - z_nodes[columns[b]])
    store = np.empty((6, n * m))
    slope = 0.0
    for a in range(rows.shape[0]):
        g = rows[a]
        x_labels = labels[nodes[g] : nodes[g + 1]]
        for b in range(a if symmetric else 0, columns.shape[0]):
            h = columns[b]
            if pulled.shape[0] and pulled[a, b] == 0.0:
                continue
            n, m = x_labels.shape[0], z_nodes[h + 1] - z_nodes[h]
            mask = store[0, : n * m].reshape(n, m)
            x = store[1, : n * m].reshape(n, m)
            r = store[2, : n * m].reshape(n, m)
            d = store[3, : n * m].reshape(n, m)
            moved = store[4, : n * m].reshape(n, m)
            between = store[5, : n * m].reshape(n, m)
            size = 0.0
            for i in range(n):
                for j in range(m):
                    same = 1.0 if x_labels[i] == z_labels[z_nodes[h] + j] else 0.0
                    mask[i, j] = r[i, j] = d[i, j] = same
                    x[i, j] = 0.0
                    size += same
            left, steps = size, 0
            while left > tolerance * tolerance * size:
                if stop[0]:
                    return slope, -1, -1
                _step(
                    begins,
                    ends,
                    marks,
                    firsts[g],
                    firsts[g + 1],
                    z_begins,
                    z_ends,
                    z_marks,
                    z_firsts[h],
                    z_firsts[h + 1],
                    mask,
                    d,
                    between,
                    moved,
                )
                bend = _dot(d, d) - decay * _dot(d, moved)
                steps += 1
                # What takes so long is at the border, and rounding hides on which side of it.
                if bend <= 0.0 or steps > 1000 + 2 * n * m:
                    return slope, a, b
                length = left / bend
                before = left
                left = 0.0
                for i in range(n):
                    for j in range(m):
                        x[i, j] += length * d[i, j]
                        r[i, j] -= length * (d[i, j] - decay * moved[i, j])
                        left += r[i, j] * r[i, j]
                turn = left / before
                for i in range(n):
                    for j in range(m):
                        d[i, j] = r[i, j] + turn * d[i, j]
            if pulled.shape[0]:
                _step(
                    begins,
                    ends,
                    marks,
                    firsts[g],
                    firsts[g + 1],
                    z_begins,
                    z_ends,
                    z_marks,
                    z_firsts[h],
                    z_firsts[h + 1],
                    mask,
                    x,
                    between,
                    moved,
                )
                slope += pulled[a, b] * _dot(x, moved)
            else:
                out[a, b] = _dot(x, mask)
    return slope, -1, -1
