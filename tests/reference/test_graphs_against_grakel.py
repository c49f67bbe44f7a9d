"""Kernels on graphs beside GraKeL 0.1.11: matrices that it gave, and its own where it is installed."""

from __future__ import annotations

from typing import Any

import networkx as nx
import numpy as np
import pytest

from mercer import Graph
from mercer.kernels import EdgeHistogram, Kernel, RandomWalk, ShortestPath, VertexHistogram, WeisfeilerLehman

RING = [(0, 1), (1, 2), (2, 3), (3, 4), (4, 5), (0, 5)]
FEW = [
    Graph(RING, [0, 0, 0, 0, 0, 1], [1, 2, 1, 2, 1, 2]),
    Graph([*RING, (0, 6)], [0, 0, 0, 0, 0, 0, 2], [1, 2, 1, 2, 1, 2, 1]),
    Graph(RING[:3], [0, 0, 0, 2], [1, 1, 2]),
]


def _many() -> list[Graph]:
    rng = np.random.default_rng(0)
    graphs = []
    for n in rng.integers(3, 9, 12):
        edges = list(nx.connected_watts_strogatz_graph(int(n), 2, 0.5, seed=int(n)).edges)
        graphs.append(Graph(edges, rng.integers(0, 3, n), rng.integers(0, 2, len(edges))))
    return graphs


def _for_grakel(graphs: list[Graph]) -> list[list[Any]]:
    results = []
    for graph in graphs:
        both = [(tuple(pair), mark) for pair, mark in zip(graph.edges.tolist(), graph.edge_labels.tolist())]
        both += [((v, u), mark) for (u, v), mark in both]
        results.append([{pair: 1 for pair, _ in both}, dict(enumerate(graph.labels.tolist())), dict(both)])
    return results


def _peers() -> dict[str, tuple[Kernel, Any]]:
    grakel = pytest.importorskip("grakel.kernels")
    wl = grakel.WeisfeilerLehman
    return {
        "vertices": (VertexHistogram(), grakel.VertexHistogram()),
        "edges": (EdgeHistogram(), grakel.EdgeHistogram()),
        "subtrees": (WeisfeilerLehman(3, edge_labels=False), wl(n_iter=3, base_graph_kernel=grakel.VertexHistogram)),
        "refined paths": (
            WeisfeilerLehman(2, "shortest-path", edge_labels=False),
            wl(n_iter=2, base_graph_kernel=grakel.ShortestPath),
        ),
        "paths": (ShortestPath(), grakel.ShortestPath()),
        "unlabelled paths": (ShortestPath(labels=False), grakel.ShortestPath(with_labels=False)),
        "walks": (RandomWalk(0.05, edge_labels=False), grakel.RandomWalkLabeled(lamda=0.05, method_type="baseline")),
    }


# As GraKeL 0.1.11 gave them for FEW.
GIVEN: dict[str, list[list[float]]] = {
    "vertices": [[26.0, 30.0, 15.0], [30.0, 37.0, 19.0], [15.0, 19.0, 10.0]],
    "edges": [[72.0, 84.0, 36.0], [84.0, 100.0, 44.0], [36.0, 44.0, 20.0]],
    "subtrees": [[60.0, 48.0, 18.0], [48.0, 90.0, 25.0], [18.0, 25.0, 22.0]],
    "refined paths": [[286.0, 264.0, 48.0], [264.0, 612.0, 86.0], [48.0, 86.0, 50.0]],
    "paths": [[162.0, 216.0, 48.0], [216.0, 344.0, 82.0], [48.0, 82.0, 26.0]],
    "unlabelled paths": [[324.0, 420.0, 132.0], [420.0, 556.0, 168.0], [132.0, 168.0, 56.0]],
    "walks": [
        [40.2594326146, 47.8144329897, 25.8375634518],
        [47.8144329897, 58.1317646145, 30.9345308598],
        [25.8375634518, 30.9345308598, 17.0106488836],
    ],
}


def _unlike(graphs: list[Graph]) -> np.ndarray:
    """Pairs of nodes with unequal labels, which GraKeL counts as common walks of length 0."""
    return np.array([[(g.labels[:, None] != h.labels).sum() for h in graphs] for g in graphs])


def _as_grakel_counts(name: str, kernel: Kernel, graphs: list[Graph]) -> np.ndarray:
    K = kernel(graphs)
    # GraKeL counts an edge once for each direction.
    return 4.0 * K if name == "edges" else K + _unlike(graphs) if name == "walks" else K


@pytest.mark.parametrize(
    "name", ["vertices", "edges", "subtrees", "refined paths", "paths", "unlabelled paths", "walks"]
)
def test_same_as_grakel(name: str) -> None:
    kernel, peer = _peers()[name]
    many = _many()
    np.testing.assert_allclose(_as_grakel_counts(name, kernel, many), peer.fit_transform(_for_grakel(many)), atol=1e-8)


@pytest.mark.parametrize(
    ("name", "kernel"),
    [
        ("vertices", VertexHistogram()),
        ("edges", EdgeHistogram()),
        ("subtrees", WeisfeilerLehman(3, edge_labels=False)),
        ("refined paths", WeisfeilerLehman(2, "shortest-path", edge_labels=False)),
        ("paths", ShortestPath()),
        ("unlabelled paths", ShortestPath(labels=False)),
        ("walks", RandomWalk(0.05, edge_labels=False)),
    ],
)
def test_same_as_grakel_gave(name: str, kernel: Kernel) -> None:
    np.testing.assert_allclose(_as_grakel_counts(name, kernel, FEW), GIVEN[name], atol=1e-8)
