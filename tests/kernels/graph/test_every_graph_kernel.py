"""Kernels on graphs beside naive ones, GraKeL, and what they must not depend on."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable
from typing import Any

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graph_cases import around, drawn, graphs, labels_of, shuffled
from mercer import Graph
from mercer._errors import DataError, ParameterError
from mercer.data.graphs import Graphs
from mercer.kernels import EdgeHistogram, Graphlet, ShortestPath, VertexHistogram, WeisfeilerLehman

Counts = Counter[Any]


def levels_of(graph: Graph, iterations: int, edge_labels: bool = True) -> list[list[Any]]:
    """Labels of every step as nested sorted tuples."""
    levels = [[repr(label) for label in labels_of(graph)]]
    for _ in range(iterations):
        old = levels[-1]
        neighbours = [sorted((old[u], repr(m) if edge_labels else "") for u, m in part) for part in around(graph)]
        levels.append([repr((own, part)) for own, part in zip(old, neighbours, strict=True)])
    return levels


def subtrees(graph: Graph, iterations: int, edge_labels: bool = True) -> Counts:
    return Counter((t, a) for t, level in enumerate(levels_of(graph, iterations, edge_labels)) for a in level)


def labelled_edges(graph: Graph, iterations: int) -> Counts:
    marks = [None] * len(graph.edges) if graph.edge_labels is None else graph.edge_labels.tolist()
    return Counter(
        (t, *sorted((level[u], level[v])), mark)
        for t, level in enumerate(levels_of(graph, iterations))
        for (u, v), mark in zip(graph.edges.tolist(), marks, strict=True)
    )


def paths(graph: Graph, iterations: int = 0, labels: bool = True) -> Counts:
    lengths = dict(nx.all_pairs_shortest_path_length(as_networkx(graph)))
    levels = levels_of(graph, iterations) if labels else [[0] * graph.n]
    return Counter(
        (t, level[u], level[v], d)
        for t, level in enumerate(levels)
        for u, row in lengths.items()
        for v, d in row.items()
        if u != v
    )


def unordered(graph: Graph, labels: bool = True, least: int = 1) -> Counts:
    lengths, own = dict(nx.all_pairs_shortest_path_length(as_networkx(graph))), levels_of(graph, 0)[0]
    return Counter(
        (*(sorted((own[u], own[v])) if labels else ()), d)
        for u, row in lengths.items()
        for v, d in row.items()
        if u <= v and d >= least
    )


def as_networkx(graph: Graph) -> nx.Graph:
    out = nx.Graph()
    for node, label in enumerate(labels_of(graph)):
        out.add_node(node, **({} if label is None else {"label": label}))
    for position, (u, v) in enumerate(graph.edges.tolist()):
        out.add_edge(u, v, **({} if graph.edge_labels is None else {"label": graph.edge_labels[position].item()}))
    return out


def parts(graph: Graph, size: int, connected: bool) -> Counts:
    """Every set of nodes, by the least adjacency matrix of any order."""
    edges = {tuple(edge) for edge in graph.edges.tolist()}
    counts: Counts = Counter()
    for nodes in itertools.combinations(range(graph.n), size):
        inner = [e for e in itertools.combinations(nodes, 2) if e in edges]
        subgraph = nx.Graph(inner)
        if connected and not (len(subgraph) == size and nx.is_connected(subgraph)):
            continue
        orders = itertools.permutations(nodes)
        counts[min(tuple(sorted(tuple(sorted((o.index(u), o.index(v)))) for u, v in inner)) for o in orders)] += 1
    return counts


def common(one: Counts, other: Counts) -> float:
    return float(sum(count * other[key] for key, count in one.items()))


NAIVE: list[tuple[Any, Callable[[Graph], Counts]]] = [
    (VertexHistogram(), lambda g: Counter(labels_of(g))),
    (EdgeHistogram(), lambda g: Counter([None] * len(g.edges) if g.edge_labels is None else g.edge_labels.tolist())),
    (ShortestPath(), paths),
    (ShortestPath(labels=False), lambda g: paths(g, labels=False)),
    (ShortestPath(ordered=False), unordered),
    (ShortestPath(labels=False, ordered=False), lambda g: unordered(g, labels=False)),
    (ShortestPath(ordered=False) + VertexHistogram(), lambda g: unordered(g, least=0)),
    (WeisfeilerLehman(0), lambda g: subtrees(g, 0)),
    (WeisfeilerLehman(3), lambda g: subtrees(g, 3)),
    (WeisfeilerLehman(3, edge_labels=False), lambda g: subtrees(g, 3, False)),
    (WeisfeilerLehman(2, "edge"), lambda g: labelled_edges(g, 2)),
    (WeisfeilerLehman(2, "shortest-path"), lambda g: paths(g, 2)),
    (Graphlet(3), lambda g: parts(g, 3, True)),
    (Graphlet(3, connected=False), lambda g: parts(g, 3, False)),
    (Graphlet(4), lambda g: parts(g, 4, True)),
    (Graphlet(4, connected=False), lambda g: parts(g, 4, False)),
    (Graphlet(5), lambda g: parts(g, 5, True)),
]
_NAMES = [repr(kernel) for kernel, _ in NAIVE]


@pytest.mark.parametrize(("kernel", "counts"), NAIVE, ids=_NAMES)
@given(X=st.lists(graphs(), min_size=1, max_size=4))
@settings(max_examples=15, deadline=None)
def test_counts_what_a_naive_program_counts(kernel: Any, counts: Callable[[Graph], Counts], X: list[Graph]) -> None:
    each = [counts(graph) for graph in X]
    naive = [[common(one, other) for other in each] for one in each]
    assert kernel(X).tolist() == naive
    assert kernel(X[:1], X).tolist() == naive[:1]


@pytest.mark.parametrize("kernel", [kernel for kernel, _ in NAIVE], ids=_NAMES)
@given(graph=graphs(), data=st.data())
@settings(max_examples=8, deadline=None)
def test_the_order_of_nodes_does_not_matter(kernel: Any, graph: Graph, data: st.DataObject) -> None:
    order = np.array(data.draw(st.permutations(range(graph.n))), int)
    K = kernel([graph, shuffled(graph, order)])
    assert (K[0, 0] == K).all()


def test_many_paths_are_hashed_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    X = [*drawn(), Graph(n=0), Graph(n=1)]
    whole = ShortestPath()(X)
    monkeypatch.setattr("mercer.kernels.graph.counting._PAIRS", 20)
    assert np.array_equal(ShortestPath()(X), whole)


def test_labels_are_hashed_alike_in_every_process() -> None:
    joint = Graphs.of([([(0, 1)], [3, -1], ["single"])]).joint()
    text = Graphs.of([([], ["C"])]).joint()
    assert [hex(h) for h in [*joint.labels.tolist(), *joint.edge_labels.tolist(), *text.labels.tolist()]] == HASHES


HASHES = ["0x7440c904759b4713", "0x47c4a1bfa64d20b6", "0x36523437a3e0dd54", "0xb3c46dcf4939a65"]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: WeisfeilerLehman(-1), "iterations must be a whole number of at least 0"),
        (lambda: WeisfeilerLehman(1, "tree"), "base must be one of subtree, edge, shortest-path, but is 'tree'"),
        (lambda: WeisfeilerLehman(1, edge_labels=2), "edge_labels must be True or False"),
        (lambda: ShortestPath("labels"), "labels must be True or False"),
        (lambda: ShortestPath(ordered=1), "ordered must be True or False"),
        (lambda: Graphlet(6), "size must be 3, 4 or 5, but is 6"),
        (lambda: Graphlet(2), "size must be 3, 4 or 5, but is 2"),
        (lambda: Graphlet(5, connected=False), "counting all graphlets of 5 nodes is not supported"),
        (lambda: Graphlet(5, samples=0), "samples must be None or a whole number above 0"),
    ],
)
def test_wrong_parameters_are_refused(make: Callable[[], Any], message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        make()


def test_wrong_rows_are_named() -> None:
    with pytest.raises(DataError, match="row 1 of X: edge 0 joins the nodes 0 and 3"):
        WeisfeilerLehman()([([(0, 1)],), ([(0, 3)], [1, 2])])
