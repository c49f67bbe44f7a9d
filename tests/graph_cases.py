"""Graphs for tests, drawn at random, and naive ways to look at them."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import strategies as st

from mercer import Graph


@st.composite
def graphs(draw: st.DrawFn) -> Graph:
    """Any graph of up to 6 nodes, with loops, with and without labels."""
    n = draw(st.integers(0, 6))
    pairs = [(u, v) for u in range(n) for v in range(u, n)]
    edges = draw(st.lists(st.sampled_from(pairs), unique=True)) if pairs else []
    labels = draw(st.none() | st.lists(st.sampled_from(["C", "O"]), min_size=n, max_size=n))
    edge_labels = draw(st.none() | st.lists(st.integers(1, 2), min_size=len(edges), max_size=len(edges)))
    return Graph(edges, labels, edge_labels, n=n)


def drawn(seed: int = 0, count: int = 12) -> list[Graph]:
    rng = np.random.default_rng(seed)
    graphs = []
    for n in rng.integers(1, 9, count):
        edges = rng.integers(0, n, (rng.integers(0, 12), 2))
        edges = np.unique(np.sort(edges, axis=1), axis=0)
        graphs.append(Graph(edges, rng.integers(0, 3, n), rng.integers(0, 2, len(edges))))
    return graphs


def labels_of(graph: Graph) -> list[Any]:
    return [None] * graph.n if graph.labels is None else graph.labels.tolist()


def around(graph: Graph) -> list[list[tuple[int, Any]]]:
    """The neighbours of each node and the labels of the edges to them."""
    neighbours: list[list[tuple[int, Any]]] = [[] for _ in range(graph.n)]
    marks = [None] * len(graph.edges) if graph.edge_labels is None else graph.edge_labels.tolist()
    for (u, v), mark in zip(graph.edges.tolist(), marks, strict=True):
        neighbours[u].append((v, mark))
        if u != v:
            neighbours[v].append((u, mark))
    return neighbours


def shuffled(graph: Graph, order: np.ndarray) -> Graph:
    """The same graph with its nodes numbered in another order."""
    place = np.argsort(order)
    labels = None if graph.labels is None else graph.labels[order]
    attributes = None if graph.attributes is None else graph.attributes[order]
    return Graph(
        place[graph.edges][::-1],
        labels,
        None if graph.edge_labels is None else graph.edge_labels[::-1],
        attributes,
        graph.n,
    )
