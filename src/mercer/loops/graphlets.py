"""Small parts of graphs: all connected ones, or some nodes drawn at random.

The edges between the nodes of a part are the bits of its code: bit ``j (j - 1) / 2 + i`` joins its nodes i < j.
"""

import numpy as np

from mercer.loops._jit import jit
from mercer.loops.strings import mix


@jit
def _bits(starts, neighbours, members, count, w):
    """The bits of the edges that join ``w``, as node number ``count``, to the nodes before it."""
    code = 0
    for c in range(starts[w], starts[w + 1]):
        for j in range(count):
            if neighbours[c] == members[j]:
                code |= 1 << (count * (count - 1) // 2 + j)
    return code


@jit
def connected_parts(graph, size, counts, stop):
    """Add one to ``counts[code]`` for each connected set of ``size`` nodes of the graph.

    Each set is met once (Wernicke, 2006, "Efficient detection of network motifs", algorithm ESU). Returns early once
    ``stop[0]`` is set.
    """
    first, last, starts, neighbours = graph
    n = last - first
    adjacent = np.zeros(n, np.bool_)
    members = np.empty(size, np.int64)
    codes = np.zeros(size, np.int64)
    # At each depth, the nodes that may join next; the last ones of these were not adjacent before.
    waiting = np.empty((size, n), np.int64)
    lengths = np.zeros(size, np.int64)
    fresh = np.empty((size, n), np.int64)
    freshly = np.zeros(size, np.int64)
    for root in range(first, last):
        depth = 0
        members[0] = root
        lengths[0] = 0
        freshly[0] = 0
        for c in range(starts[root], starts[root + 1]):
            u = neighbours[c]
            if u > root:
                adjacent[u - first] = True
                waiting[0, lengths[0]] = u
                fresh[0, lengths[0]] = u
                lengths[0] += 1
        freshly[0] = lengths[0]
        while depth >= 0:
            if lengths[depth] == 0:
                for c in range(freshly[depth]):
                    adjacent[fresh[depth, c] - first] = False
                depth -= 1
                continue
            lengths[depth] -= 1
            w = waiting[depth, lengths[depth]]
            code = codes[depth] | _bits(starts, neighbours, members, depth + 1, w)
            if depth + 2 == size:
                counts[code] += 1.0
                continue
            if stop[0]:
                return
            members[depth + 1] = w
            codes[depth + 1] = code
            for c in range(lengths[depth]):
                waiting[depth + 1, c] = waiting[depth, c]
            lengths[depth + 1] = lengths[depth]
            freshly[depth + 1] = 0
            for c in range(starts[w], starts[w + 1]):
                u = neighbours[c]
                if u > root and not adjacent[u - first]:
                    adjacent[u - first] = True
                    waiting[depth + 1, lengths[depth + 1]] = u
                    lengths[depth + 1] += 1
                    fresh[depth + 1, freshly[depth + 1]] = u
                    freshly[depth + 1] += 1
            depth += 1


@jit
def drawn_parts(graph, size, samples, seed, counts, stop):
    """Add one to ``counts[code]`` for each of ``samples`` sets of ``size`` nodes, each drawn from all such sets.

    Returns early once ``stop[0]`` is set.
    """
    first, last, starts, neighbours = graph
    n = last - first
    members = np.empty(size, np.int64)
    state = seed
    for _ in range(samples):
        if stop[0]:
            return
        code = 0
        count = 0
        while count < size:
            state += np.uint64(0x9E3779B97F4A7C15)
            # The upper 32 bits, times n, over 2^32: even to n / 2^32.
            w = first + np.int64(((mix(state) >> np.uint64(32)) * np.uint64(n)) >> np.uint64(32))
            again = False
            for j in range(count):
                again = again or members[j] == w
            if not again:
                code |= _bits(starts, neighbours, members, count, w)
                members[count] = w
                count += 1
        counts[code] += 1.0
