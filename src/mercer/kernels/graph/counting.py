"""What the kernels that count parts of graphs have in common."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from mercer.data.graphs import JointGraph
from mercer.engine import memory, threads
from mercer.kernels.features import Features
from mercer.loops.graphs import OneGraph, count_runs, shortest_paths

# Pairs of nodes whose paths are hashed at once.
_PAIRS = 2**21
# Two copies of the hash of a node or an edge, its count, and its entry in the table of features.
_THING_BYTES = 36


def edge_labels_of(joint: JointGraph, labelled: bool) -> NDArray[np.uint64]:
    """The labels of the edges, or as many equal ones."""
    return joint.edge_labels if labelled else np.zeros_like(joint.edge_labels)


def require_steps(what: str, things: int, steps: int) -> None:
    """Raise unless the hashes of all steps fit the memory budget."""
    memory.require(
        _THING_BYTES * things * steps,
        f"the {what} in {steps} steps",
        "Lower iterations, use fewer graphs, or raise the budget with mercer.config(memory=...).",
    )


def ones(ids: NDArray[np.uint64], starts: NDArray[np.int64]) -> Features:
    """Each id with the count 1 for every occurrence."""
    return Features(ids, np.ones(len(ids)), starts)


def counted(ids: NDArray[np.uint64], starts: NDArray[np.int64]) -> Features:
    """Each row's features with their counts; the ids are overwritten."""
    counts, ends = np.empty(len(ids)), np.empty_like(starts)
    # A sort takes tens of steps for each.
    threads.interruptible(count_runs, (ids, starts, counts, ends), 32.0 * len(ids))
    return Features(ids[: ends[-1]].copy(), counts[: ends[-1]].copy(), ends)


def by_rows(levels: NDArray[np.uint64], starts: NDArray[np.int64]) -> tuple[NDArray[np.uint64], NDArray[np.int64]]:
    """Ids that stand in columns, (levels, total), one row of a table after the other: what :func:`counted` takes."""
    depth = len(levels)
    ids = np.empty(levels.size, np.uint64)
    row = np.repeat(np.arange(len(starts) - 1), np.diff(starts))
    # Where the ids of a column go: after all levels of the rows before, within its own row level by level.
    width = np.diff(starts)[row]
    place = depth * starts[:-1][row] + np.arange(starts[-1]) - starts[:-1][row]
    for level in range(depth):
        ids[place + level * width] = levels[level]
    return ids, depth * starts


def path_features(joint: JointGraph, levels: NDArray[np.uint64], ordered: bool) -> Features:
    """Shortest paths by the labels of their ends and their length, for every level of labels, (levels, nodes).

    ``ordered`` ones go from either end to the other.
    """
    sizes = np.diff(joint.nodes)
    pairs = len(levels) * sizes * np.maximum(sizes - 1, 0)
    totals = np.concatenate([np.zeros(1, np.int64), np.cumsum(pairs)])
    # Where rows with as many pairs as are hashed at once begin and end.
    bounds = np.flatnonzero(np.diff(totals[1:] // _PAIRS, prepend=-1, append=-2)).tolist()
    parts: list[Features | None] = [None] * (len(bounds) - 1)

    def task(number: int) -> Callable[[], None]:
        begin, end = bounds[number], bounds[number + 1]

        def work() -> None:
            parts[number] = _paths_of(joint, levels, ordered, (begin, end), int(totals[end] - totals[begin]))

        return work

    # Each thread holds the hashes and counts of its part.
    largest = max(pairs.max(initial=0), min(_PAIRS, totals[-1]))
    each = 16 * int(largest)
    workers = max(1, min(memory.workers(each), len(parts)))
    with memory.reserve(each * workers, "the shortest paths of the largest graphs"):
        threads.run([task(number) for number in range(len(parts))], workers)
    blocks = [part for part in parts if part is not None]
    lengths = np.concatenate([np.diff(part.starts) for part in blocks])
    return Features(
        np.concatenate([part.ids for part in blocks]),
        np.concatenate([part.counts for part in blocks]),
        np.concatenate([np.zeros(1, np.int64), np.cumsum(lengths)]),
    )


def _paths_of(
    joint: JointGraph, levels: NDArray[np.uint64], ordered: bool, rows: tuple[int, int], pairs: int
) -> Features:
    """Those of the graphs from one row to the other, which have at most the given number of pairs of nodes."""
    begin, end = rows
    ids = np.empty(pairs, np.uint64)
    starts = np.zeros(end - begin + 1, np.int64)
    for row in range(begin, end):
        at = starts[row - begin]
        threads.checkpoint()
        first, last = joint.nodes[row], joint.nodes[row + 1]
        arguments = (OneGraph(first, last, joint.starts, joint.neighbours), levels, ordered, ids[at:])
        # Each node looks at all edges, and writes a hash for every other.
        steps = float(last - first) * float(joint.starts[last] - joint.starts[first] + (last - first) * len(levels))
        number = threads.interruptible(shortest_paths, arguments, steps)
        starts[row - begin + 1] = at + number
    return counted(ids[: starts[-1]], starts)
