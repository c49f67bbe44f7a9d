"""Loops over the direct product of two graphs, whose nodes are pairs of nodes with equal labels."""

from typing import NamedTuple

import numpy as np

from mercer._types import AnyArray, Integers
from mercer.loops._jit import jit

# Of the residual, relative to the right-hand side; the error of a value is its square.
_TOLERANCE = 1e-11


class WalkGraphs(NamedTuple):
    """Graphs by their steps, which go from a node to a neighbour."""

    nodes: Integers
    """Where the nodes of each graph begin."""
    labels: AnyArray
    firsts: Integers
    """Where the steps of each graph begin."""
    begins: Integers
    """The node that a step goes from, within its graph."""
    ends: Integers
    marks: AnyArray
    """Labels of edges, ascending within a graph."""


class WalkSide(NamedTuple):
    """Some graphs of a collection: one side of a block of a kernel matrix."""

    graphs: WalkGraphs
    index: Integers
    """Which graphs are meant."""


class _Steps(NamedTuple):
    """The steps of one graph."""

    begins: Integers
    ends: Integers
    marks: AnyArray


@jit
def _steps_of(graphs, g):
    first, last = graphs.firsts[g], graphs.firsts[g + 1]
    return _Steps(graphs.begins[first:last], graphs.ends[first:last], graphs.marks[first:last])


@jit
def _most_nodes(side):
    most = 0
    for g in side.index:
        most = max(most, side.graphs.nodes[g + 1] - side.graphs.nodes[g])
    return most


@jit
def _step(left, right, mask, v, between, out):
    """``out = W v``, where W joins two pairs of nodes if both graphs do so, by edges of one label.

    The product is never made: for each label of edges, v is first moved along the edges of the left graph and then
    along those of the right one.
    """
    begins, ends, marks = left
    others, targets, signs = right
    n, m = v.shape
    out[:, :] = 0.0
    p, q, p_end, q_end = 0, 0, marks.shape[0], signs.shape[0]
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
def walks(left, right, decay, symmetric, pulled, out, stop):
    """``1' (I - decay W)^-1 1`` for each pair of graphs, by conjugate gradients.

    Where ``pulled`` has entries, nothing is written to ``out``, and the sum of ``pulled`` times the derivatives by
    ``decay`` is found: ``x' W x`` for the solution x. Returns the sum and the place of a pair for which I - decay W is
    not positive definite, so that the sum over walks diverges; (-1, -1) if there is none, or once ``stop[0]`` is set.
    """
    nodes, labels, z_nodes, z_labels = left.graphs.nodes, left.graphs.labels, right.graphs.nodes, right.graphs.labels
    store = np.empty((6, _most_nodes(left) * _most_nodes(right)))
    slope = 0.0
    for a in range(left.index.shape[0]):
        g = left.index[a]
        x_labels, own = labels[nodes[g] : nodes[g + 1]], _steps_of(left.graphs, g)
        for b in range(a if symmetric else 0, right.index.shape[0]):
            h = right.index[b]
            if pulled.shape[0] and pulled[a, b] == 0.0:
                continue
            n, m, other = x_labels.shape[0], z_nodes[h + 1] - z_nodes[h], _steps_of(right.graphs, h)
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
            rest, steps = size, 0
            while rest > _TOLERANCE * _TOLERANCE * size:
                if stop[0]:
                    return slope, -1, -1
                _step(own, other, mask, d, between, moved)
                bend = _dot(d, d) - decay * _dot(d, moved)
                steps += 1
                # What takes so long is at the border, and rounding hides on which side of it.
                if bend <= 0.0 or steps > 1000 + 2 * n * m:
                    return slope, a, b
                length = rest / bend
                before = rest
                rest = 0.0
                for i in range(n):
                    for j in range(m):
                        x[i, j] += length * d[i, j]
                        r[i, j] -= length * (d[i, j] - decay * moved[i, j])
                        rest += r[i, j] * r[i, j]
                turn = rest / before
                for i in range(n):
                    for j in range(m):
                        d[i, j] = r[i, j] + turn * d[i, j]
            if pulled.shape[0]:
                _step(own, other, mask, x, between, moved)
                slope += pulled[a, b] * _dot(x, moved)
            else:
                out[a, b] = _dot(x, mask)
    return slope, -1, -1
