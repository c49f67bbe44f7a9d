"""Loops over trees, whose nodes come as numbers, each before its children, one tree after the other."""

import numpy as np

from mercer.loops._jit import jit
from mercer.loops.strings import mix


@jit
def fold(one, other):
    """A hash of two numbers in their order."""
    return np.int64(mix(np.uint64(one) * np.uint64(0x9E3779B97F4A7C15) + np.uint64(other) + np.uint64(1)))


@jit
def fold_nodes(labels, parents, productions, subtrees, sizes, turns):
    """What every node is told by: see :class:`mercer.data.trees.Nodes` for the results."""
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
    starts, keys, _, _, _, runs = nodes
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
def table_size(nodes, trees):
    """A power of two of at least four times the nodes of the largest of some trees."""
    starts = nodes[0]
    largest = 1
    for tree in trees:
        largest = max(largest, starts[tree + 1] - starts[tree])
    size = 4
    while size < 4 * largest:
        size *= 2
    return size


@jit
def widest(nodes, trees):
    """The most children of a node of some trees."""
    starts, first = nodes[0], nodes[3]
    most = 0
    for tree in trees:
        for node in range(starts[tree], starts[tree + 1]):
            most = max(most, first[node + 1] - first[node])
    return most


@jit
def subset_value(children, kid, last, others, other, at, begin, length, stack, decay):
    """``decay prod_j (1 + C(s_j, t_j))`` of two nodes with the same production.

    Their children are ``children[kid:last]`` and those from ``others[other]`` on.
    """
    value = decay
    for j in range(last - kid):
        s = children[kid + j]
        if s >= 0:
            d = others[other + j] - begin[s]
            if 0 <= d < length[s]:
                value *= 1.0 + stack[at[s] + d]
    return value


@jit
def partial_value(children, kid, last, others, other, last_other, at, begin, length, stack, decay, gap, terminal, line):
    """``decay (gap^2 + sum over pairs of subsequences of the children)`` of two nodes with the same label.

    Where one of them is a leaf, it is ``decay gap^2 terminal``.

    Their children are ``children[kid:last]`` and ``others[other:last_other]``. ``line[c]`` is the sum over all pairs of
    subsequences that end before or at the child at work and before child c, times ``gap`` for each child since; the
    sums over all lengths are one, so that a pair of children takes one step.
    """
    m = last_other - other
    if last == kid or m == 0:
        return decay * gap * gap * terminal
    total = 0.0
    for c in range(m + 1):
        line[c] = 0.0
    for i in range(kid, last):
        s = children[i]
        since, before = 0.0, 0.0
        for c in range(m):
            d = others[other + c] - begin[s]
            ends = 0.0
            if 0 <= d < length[s]:
                ends = stack[at[s] + d] * (1.0 + before)
            total += ends
            since = ends + gap * since
            before = line[c + 1]
            line[c + 1] = since + gap * before
    return decay * (gap * gap + total)


@jit
def compare_trees(left, rows, right, columns, partial, decay, gap, terminal, symmetric, room, out, stop):
    """``sum_{s, t} C(s, t)`` over the nodes s and t with the same key, of each pair of trees.

    Nodes of a tree are ordered by key, so that those with one key are a run. C is made for one node of the left tree
    and the whole run of the right one at once: a row. Children come before parents, and the rows of the children are
    the last ones on the stack, where that of their parent takes their place. Returns early once ``stop[0]`` is set.
    """
    starts, keys, visit, first, children, _ = left
    starts2, _, _, first2, others, runs2 = right
    size = table_size(right, columns)
    table_keys, table_begins = np.empty(size, np.int64), np.empty(size, np.int64)
    stack = np.empty(room)
    line = np.empty(widest(right, columns) + 1)
    most = table_size(left, rows)
    at, begin, length = np.zeros(most, np.int64), np.zeros(most, np.int64), np.zeros(most, np.int64)
    for b in range(columns.shape[0]):
        enter(right, columns[b], table_keys, table_begins)
        base2 = starts2[columns[b]]
        for a in range(b + 1 if symmetric else rows.shape[0]):
            base = starts[rows[a]]
            top = 0
            result = 0.0
            for t in range(base, starts[rows[a] + 1]):
                if stop[0]:
                    return
                s = visit[t]
                kid, last = first[base + s], first[base + s + 1]
                low = top
                for c in range(kid, last):
                    if children[c] >= 0:
                        low -= length[children[c]]
                run = begin_of(keys[base + s], table_keys, table_begins)
                count = runs2[base2 + run] if run >= 0 else 0
                for r in range(count):
                    o, p = first2[base2 + run + r], first2[base2 + run + r + 1]
                    if partial:
                        value = partial_value(
                            children, kid, last, others, o, p, at, begin, length, stack, decay, gap, terminal, line
                        )
                    else:
                        value = subset_value(children, kid, last, others, o, at, begin, length, stack, decay)
                    stack[top + r] = value
                    result += value
                for r in range(count if low < top else 0):
                    stack[low + r] = stack[top + r]
                at[s], begin[s], length[s] = low, run, count
                top = low + count
            out[a, b] = result


@jit
def subset_slope(children, kid, last, others, other, at, begin, length, stack, decay, result):
    """The value as above, and its derivative by the decay, into the first two places of ``result``."""
    value, share = decay, 1.0 / decay
    for j in range(last - kid):
        s = children[kid + j]
        if s >= 0:
            d = others[other + j] - begin[s]
            if 0 <= d < length[s]:
                factor = 1.0 + stack[0, at[s] + d]
                value *= factor
                share += stack[1, at[s] + d] / factor
    result[0] = value
    result[1] = value * share
    result[2] = 0.0


@jit
def partial_slope(
    children, kid, last, others, other, last_other, at, begin, length, stack, decay, gap, terminal, line, result
):
    """The value as above, and its derivatives by the decay and by that of gaps, into ``result``."""
    m = last_other - other
    if last == kid or m == 0:
        result[0], result[1] = decay * gap * gap * terminal, gap * gap * terminal
        result[2] = 2.0 * decay * gap * terminal
        return
    total, by_decay, by_gap = 0.0, 0.0, 0.0
    for c in range(m + 1):
        line[0, c], line[1, c], line[2, c] = 0.0, 0.0, 0.0
    for i in range(kid, last):
        s = children[i]
        since, since_1, since_2 = 0.0, 0.0, 0.0
        before, before_1, before_2 = 0.0, 0.0, 0.0
        for c in range(m):
            d = others[other + c] - begin[s]
            ends, ends_1, ends_2 = 0.0, 0.0, 0.0
            if 0 <= d < length[s]:
                here = at[s] + d
                ends = stack[0, here] * (1.0 + before)
                ends_1 = stack[1, here] * (1.0 + before) + stack[0, here] * before_1
                ends_2 = stack[2, here] * (1.0 + before) + stack[0, here] * before_2
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
    result[0] = decay * (gap * gap + total)
    result[1] = gap * gap + total + decay * by_decay
    result[2] = decay * (2.0 * gap + by_gap)


@jit
def tree_slopes(left, rows, right, columns, partial, decay, gap, terminal, room, pulled, slopes, stop):
    """Add ``sum_ab pulled[a, b] d k(x_a, z_b) / d p`` for the decay and that of gaps; see :func:`compare_trees`."""
    starts, keys, visit, first, children, _ = left
    starts2, _, _, first2, others, runs2 = right
    size = table_size(right, columns)
    table_keys, table_begins = np.empty(size, np.int64), np.empty(size, np.int64)
    stack, line, result = np.empty((3, room)), np.empty((3, widest(right, columns) + 1)), np.empty(3)
    most = table_size(left, rows)
    at, begin, length = np.zeros(most, np.int64), np.zeros(most, np.int64), np.zeros(most, np.int64)
    for b in range(columns.shape[0]):
        enter(right, columns[b], table_keys, table_begins)
        base2 = starts2[columns[b]]
        for a in range(rows.shape[0]):
            base = starts[rows[a]]
            top = 0
            for t in range(base, starts[rows[a] + 1] if pulled[a, b] != 0.0 else base):
                if stop[0]:
                    return
                s = visit[t]
                kid, last = first[base + s], first[base + s + 1]
                low = top
                for c in range(kid, last):
                    if children[c] >= 0:
                        low -= length[children[c]]
                run = begin_of(keys[base + s], table_keys, table_begins)
                count = runs2[base2 + run] if run >= 0 else 0
                for r in range(count):
                    o, p = first2[base2 + run + r], first2[base2 + run + r + 1]
                    if partial:
                        partial_slope(
                            children,
                            kid,
                            last,
                            others,
                            o,
                            p,
                            at,
                            begin,
                            length,
                            stack,
                            decay,
                            gap,
                            terminal,
                            line,
                            result,
                        )
                    else:
                        subset_slope(children, kid, last, others, o, at, begin, length, stack, decay, result)
                    for part in range(3):
                        stack[part, top + r] = result[part]
                    slopes[0] += pulled[a, b] * result[1]
                    slopes[1] += pulled[a, b] * result[2]
                for r in range(count if low < top else 0):
                    for part in range(3):
                        stack[part, low + r] = stack[part, top + r]
                at[s], begin[s], length[s] = low, run, count
                top = low + count


@jit
def common_leaves(left, rows, right, columns, out, stop):
    """The pairs of leaves with the same label, of each pair of trees.

    ``left`` and ``right`` are where the leaves of each tree begin, and their labels in ascending order.
    """
    (starts, labels), (starts2, labels2) = left, right
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
