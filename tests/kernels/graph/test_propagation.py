"""Propagation on graphs beside naive programs."""

from __future__ import annotations

import math
import re
from typing import Any

import numpy as np
import pytest

from graph_cases import around, drawn, labels_of
from mercer import Graph, config
from mercer._errors import DataError, MemoryBudgetError, ParameterError
from mercer.kernels import Propagation, WeisfeilerLehman
from mercer.loops.graphs import hash_numbers


def with_attributes(seed: int = 0, d: int = 2) -> list[Graph]:
    rng = np.random.default_rng(seed)
    return [Graph(g.edges, g.labels, attributes=rng.normal(size=(g.n, d))) for g in drawn(seed)]


def spread(kernel: Propagation, graph: Graph, values: np.ndarray, steps: int) -> np.ndarray:
    """What nodes hold after some steps, node by node."""
    for _ in range(steps):
        neighbours = [[u for u, _ in part] for part in around(graph)]
        values = np.array([values[part].mean(axis=0) if part else values[v] for v, part in enumerate(neighbours)])
    return values


def naive_bins(kernel: Propagation, graph: Graph) -> list[list[Any]]:
    """The bins of all nodes at every step."""
    results = []
    for t in range(kernel.iterations + 1):
        keys: list[list[Any]] = [[] for _ in range(graph.n)]
        for part, number in (("attributes", 2 * t), ("labels", 2 * t + 1)):
            if kernel.source not in (part, "both"):
                continue
            values, w = _held(kernel, graph, part, t)
            shift = float(kernel._hash(-1 - number) >> np.uint64(12)) / 2.0**52
            for v, x in enumerate(spread(kernel, graph, values, t)):
                keys[v].append(math.floor(x @ w / kernel.bin_width + shift))
        results.append(keys)
    return results


def _held(kernel: Propagation, graph: Graph, part: str, t: int) -> tuple[np.ndarray, np.ndarray]:
    """What nodes hold at first, and the direction of step t."""
    if part == "attributes":
        from_numbers = np.arange(graph.attributes.shape[1])
        return graph.attributes, kernel._direction(t, hash_numbers(from_numbers))
    distinct = sorted(set(labels_of(graph)))
    one_hot = np.array([[float(label == a) for a in distinct] for label in labels_of(graph)])
    return one_hot, kernel._direction(t + kernel.iterations + 1, hash_numbers(np.array(distinct)))


@pytest.mark.parametrize("distance", ["l1", "l2"])
@pytest.mark.parametrize("source", ["attributes", "labels", "both"])
def test_propagation_counts_pairs_of_nodes_in_the_same_bins(source: str, distance: str) -> None:
    X = with_attributes()
    kernel = Propagation(0.7, 3, source=source, distance=distance, seed=5)
    bins = [naive_bins(kernel, g) for g in X]
    naive = [[sum(a == b for one, other in zip(g, h) for a in one for b in other) for h in bins] for g in bins]
    assert kernel(X).tolist() == naive
    assert kernel(X[3:4], X).tolist() == naive[3:4]
    assert np.count_nonzero(np.triu(naive, 1)) > 0 and np.ptp(naive) > 0


def test_directions_are_distributed_as_they_should_be() -> None:
    axes = hash_numbers(np.arange(20_000))
    normal = Propagation(distance="l2")._direction(3, axes)
    assert abs(normal.mean()) < 5 / math.sqrt(20_000) and abs((normal**2).mean() - 1) < 5 * math.sqrt(2 / 20_000)
    # Half of a Cauchy distribution is between -1 and 1.
    assert abs((np.abs(Propagation()._direction(3, axes)) < 1).mean() - 0.5) < 5 * 0.5 / math.sqrt(20_000)
    assert not np.array_equal(normal, Propagation(distance="l2", seed=1)._direction(3, axes))


@pytest.mark.parametrize("distance", ["l1", "l2"])
def test_nodes_share_a_bin_as_often_as_their_distance_says(distance: str) -> None:
    """Datar, Immorlica, Indyk and Mirrokni (2004), section 3.2: the probability over directions and shifts."""
    draws = 1500
    cases = [(1.0, [3.0, -1.0], [2.5, -0.5]), (0.2, [0.0, 1.0], [0.1, 1.0]), (4.0, [9.0, 5.0], [8.0, 3.0])]
    for width, one, other in cases:
        pair = [([], None, None, [one]), ([], None, None, [other])]
        # A node without neighbours keeps what it holds, and every step has a direction and a shift of its own.
        shared = Propagation(width, draws - 1, distance=distance)(pair)[0, 1]
        c = width / np.linalg.norm(np.subtract(one, other), 1 if distance == "l1" else 2)
        if distance == "l1":
            expected = 2 * math.atan(c) / math.pi - math.log1p(c * c) / (math.pi * c)
        else:
            expected = math.erf(c / math.sqrt(2)) - math.sqrt(2 / math.pi) / c * (1 - math.exp(-c * c / 2))
        assert abs(shared / draws - expected) < 4.5 * math.sqrt(expected * (1 - expected) / draws)


@pytest.mark.filterwarnings("error")
def test_propagation_far_away_and_out_of_memory() -> None:
    far = ([(0, 1)], None, None, [[1e308, -1e308], [1e308, 1e308]])
    with pytest.raises(DataError, match=r"attributes reach 1e\+308"):
        Propagation()([far])
    assert Propagation(1e-320, 1)([([(0, 1)], None, None, [0.0, 2.0])]).tolist() == [[4.0]]
    with config(memory="200KB"), pytest.raises(MemoryBudgetError, match="bins of 1000 nodes in 6 steps"):
        Propagation()([([], None, None, np.ones((100, 1)))] * 10)
    for base, what in (("subtree", "labels of 1000 nodes"), ("edge", "labels of 0 edges")):
        with config(memory="200KB"), pytest.raises(MemoryBudgetError, match=f"{what} in 6 steps"):
            WeisfeilerLehman(5, base=base)([([], [1] * 100)] * 10)
    with pytest.raises(DataError, match="attributes have masked entries"):
        Propagation()([([(0, 1)], None, None, np.ma.masked_array([1.0, 2.0], [0, 1]))])


def test_propagation_names_rows_without_attributes() -> None:
    X = with_attributes()
    with pytest.raises(DataError, match="row 1 of the graphs has no attributes"):
        Propagation()([X[0], drawn()[0]])
    with pytest.raises(DataError, match="nodes of row 1 of the graphs have 3 attributes, and those of rows bef"):
        Propagation()([X[0], with_attributes(d=3)[0]])
    with pytest.raises(DataError, match="nodes of one side have 2 attributes, but those of the other have 3"):
        Propagation()(X, with_attributes(d=3))
    assert Propagation()([Graph(n=0), X[0]])[0].tolist() == [0.0, 0.0]
    assert Propagation()([Graph(n=0)]).tolist() == [[0.0]]


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"bin_width": 0.0}, "bin_width must be a number above 0"),
        ({"iterations": -1}, "iterations must be a whole number of at least 0"),
        ({"source": "edges"}, "source must be one of attributes, labels, both, but is 'edges'"),
        ({"distance": "l3"}, "distance must be one of l1, l2, but is 'l3'"),
        ({"seed": 0.5}, "seed must be a whole number of at least 0"),
        ({"seed": 2**63}, "seed must be at most 9223372036854775807, but is 9223372036854775808"),
    ],
)
def test_wrong_parameters_are_refused(parameters: dict[str, Any], message: str) -> None:
    with pytest.raises(ParameterError, match=re.escape(message)):
        Propagation(**parameters)
