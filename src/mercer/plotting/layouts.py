"""Where the nodes of a tree or graph are drawn."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import shortest_path

from mercer._types import Matrix
from mercer.data.graph import Graph
from mercer.explain.graphs import label_of

_ROUNDS = 200
_LARGEST, _SMALLEST = 420.0, 60.0


class Places(NamedTuple):
    """Points, edges and labels of nodes."""

    points: Matrix
    edges: list[tuple[int, int]]
    labels: list[str]
    xlabel: str
    ylabel: str

    @property
    def size(self) -> float:
        """The area of a node in square points: smaller, if there are many."""
        return float(np.clip(_LARGEST * 20.0 / max(len(self.points), 1), _SMALLEST, _LARGEST))


def of_tree(labels: Sequence[str], parents: Sequence[int]) -> Places:
    """Return a tree with its root on top: leaves side by side, and every other node above the middle of its children.

    >>> of_tree(["S", "N", "V"], [-1, 0, 0]).points.tolist()
    [[0.5, 0.0], [0.0, -1.0], [1.0, -1.0]]
    """
    n = len(labels)
    points = np.zeros((n, 2))
    children: list[list[int]] = [[] for _ in range(n)]
    for node, parent in enumerate(parents):
        if parent >= 0:
            children[parent].append(node)
            points[node, 1] = points[parent, 1] - 1.0
    leaves = (node for node in range(n) if not children[node])
    for place, node in enumerate(leaves):
        points[node, 0] = place
    # Children come after their parents.
    for node in range(n - 1, -1, -1):
        if children[node]:
            points[node, 0] = points[children[node], 0].mean()
    edges = [(parent, node) for node, parent in enumerate(parents) if parent >= 0]
    return Places(points, edges, list(labels), "leaves, from left to right", "depth, from the root down")


def of_graph(graph: Graph) -> Places:
    """Return a graph with distances near the numbers of edges on shortest paths.

    Notes
    -----
    Stress majorisation from a circle: Gansner, Koren and North (2005), "Graph drawing by stress majorization".

    Examples
    --------
    >>> path = of_graph(Graph([(0, 1), (1, 2)])).points
    >>> np.linalg.norm(path[[0, 1]] - path[[1, 2]], axis=1).round(1).tolist()
    [1.0, 1.0]
    """
    n = graph.n
    ones = np.ones(len(graph.edges))
    links = sp.csr_array((ones, (graph.edges[:, 0], graph.edges[:, 1])), shape=(n, n))
    distances = shortest_path(links, directed=False, unweighted=True)
    known = np.isfinite(distances)
    # Parts that are not joined stand beside each other.
    distances = np.where(known, distances, distances[known].max(initial=1.0) + 1.0)
    labels = [label_of(graph, node) if graph.labels is not None else str(node) for node in range(n)]
    edges = [(int(i), int(j)) for i, j in graph.edges.tolist()]
    return Places(_majorised(distances), edges, labels, "x of the layout, in edges", "y of the layout, in edges")


def _majorised(distances: Matrix) -> Matrix:
    """Points with about these distances, by the weights ``1 / distance^2``."""
    n = len(distances)
    angle = 2.0 * np.pi * np.arange(n) / max(n, 1)
    # Not quite a circle: in symmetric places opposite forces would balance.
    radius = (1.0 + 0.01 * np.arange(n)) * distances.max(initial=1.0) / 2
    points = radius[:, None] * np.column_stack([np.cos(angle), np.sin(angle)])
    if n < 2:
        return points
    weights = np.divide(1.0, distances**2, out=np.zeros_like(distances), where=distances > 0)
    laplacian = np.diag(weights.sum(axis=1)) - weights
    inverse = np.linalg.pinv(laplacian)
    for _ in range(_ROUNDS):
        gaps = np.linalg.norm(points[:, None] - points[None], axis=2)
        pulls = np.divide(weights * distances, gaps, out=np.zeros_like(gaps), where=gaps > 0)
        points = inverse @ ((np.diag(pulls.sum(axis=1)) - pulls) @ points)
    return points
