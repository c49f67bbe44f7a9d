"""Loops over graphs, which come as one: see ``JointGraph`` in mercer/data/graphs.py."""

from typing import NamedTuple

import numpy as np

from mercer._types import Integers
from mercer.loops._jit import jit
from mercer.loops.strings import mix

_SORTED = 2**22


class OneGraph(NamedTuple):
    """A graph of a collection: its nodes, and the neighbours of all nodes."""

    first: int
    last: int
    """The nodes of this graph are those from ``first`` to before ``last``."""
    starts: Integers
    """The neighbours of node v are ``neighbours[starts[v] : starts[v + 1]]``."""
    neighbours: Integers


@jit
def join(one, other):
    """A hash of two hashes, in this order."""
    return mix(mix(one + np.uint64(0x9E3779B97F4A7C15)) ^ (other * np.uint64(0xD1342543DE82EF95) + np.uint64(1)))


@jit
def join_all(some, others):
    """A hash of each two hashes, in this order."""
    out = np.empty(some.shape[0], np.uint64)
    for i in range(some.shape[0]):
        out[i] = join(some[i], others[i])
    return out


@jit
def hash_numbers(numbers):
    """A hash of each number."""
    out = np.empty(numbers.shape[0], np.uint64)
    for i in range(numbers.shape[0]):
        out[i] = join(np.uint64(0x2545F4914F6CDD1D), np.uint64(numbers[i]))
    return out


@jit
def join_each(one, others):
    """A hash of a hash with each of others."""
    out = np.empty(others.shape[0], np.uint64)
    for i in range(others.shape[0]):
        out[i] = join(one, others[i])
    return out


@jit
def hash_bins(bins, out):
    """Join the number of each bin to the hash in its place."""
    for i in range(bins.shape[0]):
        out[i] = join(out[i], np.uint64(bins[i]))


@jit
def refine(labels, starts, neighbours, through, edge_labels, out):
    """A hash of each node's label and the labels of its neighbours, with those of the edges that lead there.

    Which neighbours there are and how often, in no order, is the sum of their hashes.
    """
    for v in range(labels.shape[0]):
        around = np.uint64(0)
        for c in range(starts[v], starts[v + 1]):
            around += join(labels[neighbours[c]], edge_labels[through[c]])
        out[v] = join(join(labels[v], np.uint64(starts[v + 1] - starts[v])), around)


@jit
def count_runs(ids, starts, counts, ends, stop):
    """Put each of a row's ids once, with how often it is there, into the front of the same arrays.

    ``ids[starts[i] : starts[i + 1]]`` are those of row i; ``ends`` receives where the rows then begin and end. Of very
    many ids an id is counted in several parts, since nothing stops a sort.
    """
    at = 0
    ends[0] = 0
    for i in range(starts.shape[0] - 1):
        for begin in range(starts[i], starts[i + 1], _SORTED):
            if stop[0]:
                return
            end = min(begin + _SORTED, starts[i + 1])
            ids[begin:end].sort()
            last = np.uint64(0)
            for c in range(begin, end):
                current = ids[c]
                if c > begin and current == last:
                    counts[at - 1] += 1.0
                else:
                    ids[at] = current
                    counts[at] = 1.0
                    last = current
                    at += 1
        ends[i + 1] = at


@jit
def hash_pairs(labels, edges, edge_labels, out):
    """A hash of the labels of the two ends of each edge, in no order, and of its own."""
    for e in range(edges.shape[0]):
        one, other = labels[edges[e, 0]], labels[edges[e, 1]]
        out[e] = join(join(min(one, other), max(one, other)), edge_labels[e])


@jit
def shortest_paths(graph, labels, ordered, ids, stop):
    """A hash of the labels of two nodes and the edges between them on a shortest path, for each level of labels.

    For all pairs of different nodes of the graph that are joined by a path: ``ordered`` ones,
    or each two nodes once, the lesser label first. Returns how many hashes were written. One search in breadth from
    each node.
    """
    first, last, starts, neighbours = graph
    n = last - first
    distance = np.empty(n, np.int64)
    queue = np.empty(n, np.int64)
    at = 0
    for source in range(n):
        if stop[0]:
            break
        distance[:] = -1
        distance[source] = 0
        queue[0] = source
        tail = 1
        for head in range(n):
            if head == tail:
                break
            v = queue[head]
            for c in range(starts[first + v], starts[first + v + 1]):
                u = neighbours[c] - first
                if distance[u] < 0:
                    distance[u] = distance[v] + 1
                    queue[tail] = u
                    tail += 1
        for level in range(labels.shape[0]):
            label = labels[level, first + source]
            own = mix(label)
            for q in range(1, tail):
                u = queue[q]
                other = labels[level, first + u]
                if ordered or (u > source and label <= other):
                    ids[at] = join(own ^ np.uint64(distance[u]), other)
                elif u > source:
                    ids[at] = join(mix(other) ^ np.uint64(distance[u]), label)
                else:
                    continue
                at += 1
    return at
