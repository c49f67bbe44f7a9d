"""Loops over trees, whose nodes come as numbers, each before its children, one tree after the other."""

from typing import NamedTuple

import numpy as np

from mercer._types import Integers
from mercer.loops._jit import jit
from mercer.loops.strings import mix


class TreeNodes(NamedTuple):
    """The nodes that are compared, ordered by tree and key; nodes are numbered by their place in their tree."""

    starts: Integers
    """Where each tree begins."""
    keys: Integers
    visit: Integers
    """The nodes of each tree, with children before parents."""
    first: Integers
    """The children of node i are ``children[first[i] : first[i + 1]]``, -1 for one that is not compared."""
    children: Integers
    runs: Integers
    """At the first node of a key, how many nodes have it."""


class Leaves(NamedTuple):
    """The leaves of trees."""

    starts: Integers
    """Where those of each tree begin."""
    labels: Integers
    """In ascending order within a tree."""


class TreeSide(NamedTuple):
    """Some trees of a collection: one side of a block of a kernel matrix."""

    nodes: TreeNodes | Leaves
    index: Integers
    """Which trees are meant."""


class _Children(NamedTuple):
    """Where the children of two nodes stand: ``children[first:last]`` and ``others[other:last_other]``."""

    first: int
    last: int
    other: int
    last_other: int


class NodeKernel(NamedTuple):
    """How two nodes are compared."""

    partial: bool
    """By subsequences of their children; else children correspond one by one, since productions are equal."""
    decay: float
    """What a level counts."""
    gap: float
    """What a child between or beside those of a subsequence counts."""
    terminal: float
    """The factor of leaves."""


@jit
def fold(one, other):
    """A hash of two numbers in their order."""
    return np.int64(mix(np.uint64(one) * np.uint64(0x9E3779B97F4A7C15) + np.uint64(other) + np.uint64(1)))


@jit
def fold_nodes(labels, parents, productions, subtrees, sizes, turns):
    """What identifies every node: see :class:`mercer.data.trees.Nodes` for the results."""
    n = labels.shape[0]
    heaviest = np.full(n, -1, np.int64)
    for i in range(n):
        productions[i] = fold(labels[i], 1)
        subtrees[i] = productions[i]
        sizes[i] = 1
        if parents[i] >= 0:
            productions[parents[i]] = fold(productions[parents[i]], labels[i])
    # Backwards every node comes after all that is below it.
    for i in range(n - 1, -1, -1):
        p = parents[i]
        if p >= 0:
            subtrees[p] = fold(subtrees[p], subtrees[i])
            sizes[p] += sizes[i]
            if heaviest[p] < 0 or sizes[i] >= sizes[heaviest[p]]:
                heaviest[p] = i
    # A subtree takes the turns from begin on, the heaviest child the first of them, and its root the last.
    begin = np.zeros(n, np.int64)
    free = np.zeros(n, np.int64)
    for i in range(n):
        p = parents[i]
        if p >= 0:
            if heaviest[p] == i:
                begin[i] = begin[p]
            else:
                begin[i] = free[p]
                free[p] += sizes[i]
        if heaviest[i] >= 0:
            free[i] = begin[i] + sizes[heaviest[i]]
        turns[i] = begin[i] + sizes[i] - 1


@jit
def most_rows(starts, visit, first, children, out):
    """How many nodes of each tree are waiting for their parent at once at the most, with the one at work."""
    for tree in range(starts.shape[0] - 1):
        base = starts[tree]
        waiting = 0
        out[tree] = 0
        for t in range(base, starts[tree + 1]):
            out[tree] = max(out[tree], waiting + 1)
            for c in range(first[base + visit[t]], first[base + visit[t] + 1]):
                if children[c] >= 0:
                    waiting -= 1
            waiting += 1


@jit
def enter(nodes, tree, table_keys, table_begins):
    """Note where the nodes of each key begin in a tree; the table is three quarters empty."""
    starts, keys, runs = nodes.starts, nodes.keys, nodes.runs
    mask = table_keys.shape[0] - 1
    table_begins[:] = -1
    base = starts[tree]
    at = 0
    while base + at < starts[tree + 1]:
        place = keys[base + at] & mask
        while table_begins[place] >= 0:
            place = (place + 1) & mask
        table_keys[place] = keys[base + at]
        table_begins[place] = at
        at += runs[base + at]


@jit
def begin_of(key, table_keys, table_begins):
    """Where the nodes of this key begin; -1 where there are none."""
    mask = table_keys.shape[0] - 1
    place = key & mask
    while table_begins[place] >= 0:
        if table_keys[place] == key:
            return table_begins[place]
        place = (place + 1) & mask
    return -1


@jit
def table_size(side):
    """A power of two of at least four times the nodes of the largest of some trees."""
    starts = side.nodes.starts
    largest = 1
    for tree in side.index:
        largest = max(largest, starts[tree + 1] - starts[tree])
    size = 4
    while size < 4 * largest:
        size *= 2
    return size


@jit
def widest(side):
    """The most children of a node of some trees."""
    starts, first = side.nodes.starts, side.nodes.first
    most = 0
    for tree in side.index:
        for node in range(starts[tree], starts[tree + 1]):
            most = max(most, first[node + 1] - first[node])
    return most


@jit
def subset_value(children, others, span, rows, stack, decay):
    """``decay prod_j (1 + C(s_j, t_j))`` of two nodes with the same production.

    ``span`` says where their children stand. Where ``rows[s]`` is (at, begin, length),
    ``stack[at + d]`` is C(s, t) for the node t of number ``begin + d``, if ``d < length``; else it is 0.
    """
    value = decay
    for j in range(span.last - span.first):
        s = children[span.first + j]
        if s >= 0:
            d = others[span.other + j] - rows[s, 1]
            if 0 <= d < rows[s, 2]:
                value *= 1.0 + stack[rows[s, 0] + d]
    return value


@jit
def partial_value(children, others, span, rows, stack, kernel, line):
    """``decay (gap^2 + sum over pairs of subsequences of the children)`` of two nodes with the same label.

    Where one of them is a leaf, it is ``decay gap^2 terminal``. ``line[c]`` is the sum over all pairs of subsequences
    that end before or at the child at work and before child c, times ``gap`` for each child since; the sums over all
    lengths are one, so that a pair of children takes one step.
    """
    decay, gap, other, m = kernel.decay, kernel.gap, span.other, span.last_other - span.other
    if span.last == span.first or m == 0:
        return decay * gap * gap * kernel.terminal
    total = 0.0
    for c in range(m + 1):
        line[c] = 0.0
    for i in range(span.first, span.last):
        s = children[i]
        since, before = 0.0, 0.0
        for c in range(m):
            d = others[other + c] - rows[s, 1]
            ends = 0.0
            if 0 <= d < rows[s, 2]:
                ends = stack[rows[s, 0] + d] * (1.0 + before)
            total += ends
            since = ends + gap * since
            before = line[c + 1]
            line[c + 1] = since + gap * before
    return decay * (gap * gap + total)


@jit
def compare_trees(left, right, kernel, symmetric, room, out, stop):
    """``sum_{s, t} C(s, t)`` over the nodes s and t with the same key, of each pair of trees.

    Nodes of a tree are ordered by key, so that those with one key are a run. C is made for one node of the left tree
    and the whole run of the right one at once: a row. Children come before parents, and the rows of the children are
    the last ones on the stack, which has ``room`` values; there that of their parent takes their place. Returns early
    once ``stop[0]`` is set.
    """
    starts, keys, visit, first, children, _ = left.nodes
    starts2, _, _, first2, others, runs2 = right.nodes
    size = table_size(right)
    table_keys, table_begins = np.empty(size, np.int64), np.empty(size, np.int64)
    stack, line, rows = np.empty(room), np.empty(widest(right) + 1), np.zeros((table_size(left), 3), np.int64)
    for b in range(right.index.shape[0]):
        enter(right.nodes, right.index[b], table_keys, table_begins)
        base2 = starts2[right.index[b]]
        for a in range(b + 1 if symmetric else left.index.shape[0]):
            base = starts[left.index[a]]
            top = 0
            result = 0.0
            for t in range(base, starts[left.index[a] + 1]):
                if stop[0]:
                    return
                s = visit[t]
                kid, last = first[base + s], first[base + s + 1]
                low = top
                for c in range(kid, last):
                    if children[c] >= 0:
                        low -= rows[children[c], 2]
                run = begin_of(keys[base + s], table_keys, table_begins)
                count = runs2[base2 + run] if run >= 0 else 0
                for r in range(count):
                    span = _Children(kid, last, first2[base2 + run + r], first2[base2 + run + r + 1])
                    if kernel.partial:
                        value = partial_value(children, others, span, rows, stack, kernel, line)
                    else:
                        value = subset_value(children, others, span, rows, stack, kernel.decay)
                    stack[top + r] = value
                    result += value
                for r in range(count if low < top else 0):
                    stack[low + r] = stack[top + r]
                rows[s, 0], rows[s, 1], rows[s, 2] = low, run, count
                top = low + count
            out[a, b] = result


@jit
def subset_slope(children, others, span, rows, stack, decay):
    """The value as above, and its derivatives by the decay and by that of gaps."""
    value, share = decay, 1.0 / decay
    for j in range(span.last - span.first):
        s = children[span.first + j]
        if s >= 0:
            d = others[span.other + j] - rows[s, 1]
            if 0 <= d < rows[s, 2]:
                factor = 1.0 + stack[0, rows[s, 0] + d]
                value *= factor
                share += stack[1, rows[s, 0] + d] / factor
    return value, value * share, 0.0


@jit
def partial_slope(children, others, span, rows, stack, kernel, line):
    """The value as above, and its derivatives by the decay and by that of gaps."""
    decay, gap, other, m = kernel.decay, kernel.gap, span.other, span.last_other - span.other
    if span.last == span.first or m == 0:
        leaf = gap * gap * kernel.terminal
        return decay * gap * gap * kernel.terminal, leaf, 2.0 * decay * gap * kernel.terminal
    total, by_decay, by_gap = 0.0, 0.0, 0.0
    for c in range(m + 1):
        line[0, c], line[1, c], line[2, c] = 0.0, 0.0, 0.0
    for i in range(span.first, span.last):
        s = children[i]
        since, since_1, since_2 = 0.0, 0.0, 0.0
        before, before_1, before_2 = 0.0, 0.0, 0.0
        for c in range(m):
            d = others[other + c] - rows[s, 1]
            ends, ends_1, ends_2 = 0.0, 0.0, 0.0
            if 0 <= d < rows[s, 2]:
                value = rows[s, 0] + d
                ends = stack[0, value] * (1.0 + before)
                ends_1 = stack[1, value] * (1.0 + before) + stack[0, value] * before_1
                ends_2 = stack[2, value] * (1.0 + before) + stack[0, value] * before_2
            total += ends
            by_decay += ends_1
            by_gap += ends_2
            since_2 = ends_2 + since + gap * since_2
            since_1 = ends_1 + gap * since_1
            since = ends + gap * since
            before, before_1, before_2 = line[0, c + 1], line[1, c + 1], line[2, c + 1]
            line[2, c + 1] = since_2 + before + gap * before_2
            line[1, c + 1] = since_1 + gap * before_1
            line[0, c + 1] = since + gap * before
    return decay * (gap * gap + total), gap * gap + total + decay * by_decay, decay * (2.0 * gap + by_gap)


@jit
def tree_slopes(left, right, kernel, room, pulled, slopes, stop):
    """Add ``sum_ab pulled[a, b] d k(x_a, z_b) / d p`` for the decay and that of gaps; see :func:`compare_trees`."""
    starts, keys, visit, first, children, _ = left.nodes
    starts2, _, _, first2, others, runs2 = right.nodes
    size = table_size(right)
    table_keys, table_begins = np.empty(size, np.int64), np.empty(size, np.int64)
    stack, line = np.empty((3, room)), np.empty((3, widest(right) + 1))
    rows = np.zeros((table_size(left), 3), np.int64)
    for b in range(right.index.shape[0]):
        enter(right.nodes, right.index[b], table_keys, table_begins)
        base2 = starts2[right.index[b]]
        for a in range(left.index.shape[0]):
            base = starts[left.index[a]]
            top = 0
            for t in range(base, starts[left.index[a] + 1] if pulled[a, b] != 0.0 else base):
                if stop[0]:
                    return
                s = visit[t]
                kid, last = first[base + s], first[base + s + 1]
                low = top
                for c in range(kid, last):
                    if children[c] >= 0:
                        low -= rows[children[c], 2]
                run = begin_of(keys[base + s], table_keys, table_begins)
                count = runs2[base2 + run] if run >= 0 else 0
                for r in range(count):
                    span = _Children(kid, last, first2[base2 + run + r], first2[base2 + run + r + 1])
                    if kernel.partial:
                        value, by_decay, by_gap = partial_slope(children, others, span, rows, stack, kernel, line)
                    else:
                        value, by_decay, by_gap = subset_slope(children, others, span, rows, stack, kernel.decay)
                    stack[0, top + r], stack[1, top + r], stack[2, top + r] = value, by_decay, by_gap
                    slopes[0] += pulled[a, b] * by_decay
                    slopes[1] += pulled[a, b] * by_gap
                for r in range(count if low < top else 0):
                    for part in range(3):
                        stack[part, low + r] = stack[part, top + r]
                rows[s, 0], rows[s, 1], rows[s, 2] = low, run, count
                top = low + count


@jit
def common_leaves(left, right, out, stop):
    """The pairs of leaves with the same label, of each pair of trees."""
    (starts, labels), (starts2, labels2) = left.nodes, right.nodes
    rows, columns = left.index, right.index
    for a in range(rows.shape[0]):
        if stop[0]:
            return
        for b in range(columns.shape[0]):
            i, last = starts[rows[a]], starts[rows[a] + 1]
            j, end = starts2[columns[b]], starts2[columns[b] + 1]
            total = 0
            while i < last and j < end:
                if labels[i] < labels2[j]:
                    i += 1
                elif labels[i] > labels2[j]:
                    j += 1
                else:
                    label, count, other = labels[i], 0, 0
                    while i < last and labels[i] == label:
                        i, count = i + 1, count + 1
                    while j < end and labels2[j] == label:
                        j, other = j + 1, other + 1
                    total += count * other
            out[a, b] = total
