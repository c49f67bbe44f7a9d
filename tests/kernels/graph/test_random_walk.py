"""Random walks on graphs beside naive programs."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graph_cases import around, drawn, graphs, labels_of, shuffled
from mercer import Gram, Graph, config
from mercer._errors import MemoryBudgetError, NumericalError, ParameterError
from mercer.kernels import RandomWalk, ShortestPath


def product_matrix(g: Graph, h: Graph, edge_labels: bool) -> np.ndarray:
    """The adjacency matrix of the direct product, pair by pair."""
    one, other = labels_of(g), labels_of(h)
    pairs = [(u, s) for u in range(g.n) for s in range(h.n) if one[u] == other[s]]
    place = {pair: number for number, pair in enumerate(pairs)}
    neighbours, close = around(g), around(h)
    W = np.zeros((len(pairs), len(pairs)))
    for (u, s), number in place.items():
        for v, mark in neighbours[u]:
            for t, sign in close[s]:
                if (v, t) in place and (mark == sign or not edge_labels):
                    W[number, place[v, t]] = 1.0
    return W


def summed_walks(g: Graph, h: Graph, decay: float, edge_labels: bool = True) -> float:
    """Walks of 0, 1, 2, ... edges, weighted and added up until nothing is added."""
    W = product_matrix(g, h, edge_labels)
    counts, total = np.ones(len(W)), 0.0
    for _ in range(5000):
        total += counts.sum()
        counts = decay * (W @ counts)
        if counts.sum() <= 1e-17 * total:
            return total
    raise AssertionError("the sum does not end")


@pytest.mark.parametrize("edge_labels", [True, False])
@given(X=st.lists(graphs(), min_size=1, max_size=3))
@settings(max_examples=30, deadline=None)
def test_walks_are_those_of_the_product_graph(edge_labels: bool, X: list[Graph]) -> None:
    # Six nodes with loops have eigenvalues of up to 6.
    kernel = RandomWalk(0.02, edge_labels=edge_labels)
    naive = [[summed_walks(g, h, 0.02, edge_labels) for h in X] for g in X]
    np.testing.assert_allclose(kernel(X), naive, rtol=1e-12)
    np.testing.assert_allclose(kernel(X[:1], X), naive[:1], rtol=1e-12)


def test_walks_close_to_the_border() -> None:
    ring = Graph([(i, (i + 1) % 9) for i in range(9)])
    # Each of the 81 pairs has 4 neighbours, so that the sum is 81 / (1 - 4 decay).
    for gap in (1e-2, 1e-4, 1e-6):
        decay = (1 - gap) / 4
        assert RandomWalk(decay)([ring])[0, 0] == pytest.approx(81 / (1 - 4 * decay), rel=1e-9)


def test_walks_without_end_are_refused() -> None:
    ring = Graph([(i, (i + 1) % 9) for i in range(9)])
    X = [Graph(n=2), ring]
    assert RandomWalk(0.3)(X[:1], X).tolist() == [[4.0, 18.0]]
    with pytest.raises(NumericalError, match=r"infinite for decay=0.3 at row 1 and row 1; .* finite .* below 0.25\."):
        RandomWalk(0.3)(X)
    with pytest.raises(NumericalError, match="at row 1 and row 1"):
        Gram(RandomWalk(0.3), X) @ np.ones((2, 1))
    # Labels that leave few walks in common allow more than the bound does.
    labelled = Graph(ring.edges, range(9))
    assert RandomWalk(0.3)([labelled])[0, 0] == pytest.approx(9 / (1 - 0.6))


def test_the_bound_of_a_large_graph_is_its_largest_degree() -> None:
    star = Graph([(0, i) for i in range(1, 1200)], [0] + [1] * 1199)
    with pytest.raises(NumericalError, match=r"below 6\.956e-07"):
        RandomWalk(0.5)([star], [star])


@given(graph=graphs(), data=st.data())
@settings(max_examples=20, deadline=None)
def test_the_order_of_nodes_does_not_matter_to_walks(graph: Graph, data: st.DataObject) -> None:
    order = np.array(data.draw(st.permutations(range(graph.n))), int)
    K = RandomWalk(0.02)([graph, shuffled(graph, order)])
    np.testing.assert_allclose(K, K[0, 0], rtol=1e-12)


def test_slopes_of_walks_are_those_of_the_sums() -> None:
    X = drawn(3, 6)
    weights = np.random.default_rng(0).normal(size=(6, 6))
    step = 1e-5
    up, down = ([[summed_walks(g, h, d) for h in X] for g in X] for d in (0.03 + step, 0.03 - step))
    expected = (weights * (np.array(up) - down)).sum() / (2 * step)
    # By the logarithm of the decay.
    assert RandomWalk(0.03).pullback(X, None, weights)[0] == pytest.approx(0.03 * expected, rel=1e-6)


def test_wrong_decays_are_refused() -> None:
    for decay in (0.0, -1.0, math.nan, "much"):
        with pytest.raises(ParameterError, match="decay must be"):
            RandomWalk(decay)


@pytest.mark.parametrize("kernel", [ShortestPath(), RandomWalk(1e-4)])
def test_graphs_that_do_not_fit_the_budget_are_refused(kernel: Any) -> None:
    large = Graph([(0, i) for i in range(1, 3000)])
    with config(memory=10_000_000), pytest.raises(MemoryBudgetError, match="graphs"):
        kernel([large])
