"""Parts of graphs, with the numbers of their nodes."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.sparse.csgraph import breadth_first_order

from mercer.data.graph import Graph
from mercer.data.graphs import JointGraph
from mercer.engine import threads
from mercer.explain.result import Part
from mercer.loops.graphs import OneGraph, shortest_paths


def label_of(graph: Graph, node: int) -> str:
    """Return what a node is called.

    >>> label_of(Graph([(0, 1)], ["C", "O"]), 1), label_of(Graph(n=2), 1)
    ('O', 'node')
    """
    return "node" if graph.labels is None else str(graph.labels[node])


def edges_of(graph: Graph) -> list[Part]:
    """Return a part for each edge.

    >>> str(edges_of(Graph([(0, 1)], ["C", "O"], [2]))[0])
    'C -2- O at 0-1'
    """
    parts = []
    for number, (one, other) in enumerate(graph.edges.tolist()):
        middle = "-" if graph.edge_labels is None else f"-{graph.edge_labels[number]}-"
        name = f"{label_of(graph, one)} {middle} {label_of(graph, other)}"
        parts.append(Part("edge", name, tuple(dict.fromkeys((one, other)))))
    return parts


def neighbourhood(graph: Graph, joint: JointGraph, node: int, steps: int) -> Part:
    """Return a node with all that are at most so many steps away.

    >>> from mercer.data.graphs import Graphs
    >>> rows = Graphs.of([([(0, 1), (1, 2), (2, 3)], list("abcd"))])
    >>> neighbourhood(rows[0], rows.joint(), 0, 2).places
    (0, 1, 2)
    """
    reached: dict[int, None] = {node: None}
    edge = [node]
    for _ in range(steps):
        new = []
        for v in edge:
            for u in joint.neighbours[joint.starts[v] : joint.starts[v + 1]].tolist():
                if u not in reached:
                    reached[u] = None
                    new.append(u)
        edge = new
    around = f" with {steps} step{'s' if steps > 1 else ''} around" if steps else ""
    return Part("neighbourhood", f"{label_of(graph, node)}{around}", tuple(reached))


def graph_paths(
    graph: Graph, joint: JointGraph, levels: NDArray[np.uint64], ordered: bool
) -> tuple[NDArray[np.uint64], list[Part]]:
    """Return the number of each shortest path as :class:`mercer.kernels.ShortestPath` counts it, and its two ends.

    The loop that numbers them goes from each node through all others in the order of a breadth-first search.
    """
    n = graph.n
    ids = np.empty(len(levels) * n * max(n - 1, 0), np.uint64)
    arguments = (OneGraph(0, n, joint.starts, joint.neighbours), levels, ordered, ids)
    count = threads.interruptible(shortest_paths, arguments, float(n) * (len(joint.neighbours) + n * len(levels)))
    ones = np.ones(len(joint.neighbours))
    links = sp.csr_array((ones, joint.neighbours, joint.starts), shape=(n, n))
    parts: list[Part] = []
    for source in range(n):
        order, before = breadth_first_order(links, source)
        distance = np.zeros(n, np.int64)
        for node in order[1:].tolist():
            distance[node] = distance[before[node]] + 1
        ends = [node for node in order[1:].tolist() if ordered or node > source]
        for _ in levels:
            parts += [_path(graph, source, end, int(distance[end])) for end in ends]
    return ids[:count], parts


def _path(graph: Graph, one: int, other: int, length: int) -> Part:
    return Part("path", f"{label_of(graph, one)} to {label_of(graph, other)} in {length}", (one, other))
