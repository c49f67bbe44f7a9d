"""Where the nodes of trees and graphs stand."""

from __future__ import annotations

import numpy as np

from mercer import Graph
from mercer.plotting.layouts import of_graph, of_tree


def test_leaves_of_a_tree_stand_apart_and_parents_above_them() -> None:
    places = of_tree(list("abcdef"), [-1, 0, 0, 2, 2, 0])
    leaves = places.points[[1, 3, 4, 5], 0]
    assert leaves.tolist() == [0.0, 1.0, 2.0, 3.0]
    assert places.points[2].tolist() == [1.5, -1.0] and (0, 5) in places.edges


def test_a_deep_tree_needs_no_recursion() -> None:
    places = of_tree(["a"] * 3000, [-1, *range(2999)])
    assert places.points[-1].tolist() == [0.0, -2999.0]


def test_a_ring_is_round_and_its_edges_are_equally_long() -> None:
    edges = [(i, (i + 1) % 6) for i in range(6)]
    points = of_graph(Graph(edges)).points
    lengths = [np.linalg.norm(points[i] - points[j]) for i, j in edges]
    assert np.ptp(lengths) < 0.05 and 0.8 < min(lengths) < 1.3
    radii = np.linalg.norm(points - points.mean(axis=0), axis=1)
    assert np.ptp(radii) < 0.05


def test_parts_that_are_not_joined_stand_apart() -> None:
    places = of_graph(Graph([(0, 1), (2, 3)], n=5))
    gaps = np.linalg.norm(places.points[:, None] - places.points[None], axis=2)[np.triu_indices(5, 1)]
    assert np.isfinite(places.points).all() and gaps.min() > 0.5
    assert places.labels == ["0", "1", "2", "3", "4"]


def test_one_node_and_a_loop() -> None:
    assert of_graph(Graph(n=1)).points.shape == (1, 2)
    assert np.isfinite(of_graph(Graph([(0, 0), (0, 1)])).points).all()
