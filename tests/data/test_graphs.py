"""What a graph may be, the form that is kept, and the arrays of model files."""

from __future__ import annotations

import dataclasses
import pickle
import re
import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import mercer
from graph_cases import drawn, graphs
from mercer import Graph
from mercer._errors import DataError, MemoryBudgetError, MercerWarning, ModelFileError
from mercer.data.graphs import GraphArrays, Graphs
from mercer.kernels import RBF, Propagation, RandomWalk, WeisfeilerLehman, product_of

PATH = [(0, 1), (1, 2)]


def test_every_way_to_say_a_graph_gives_the_same() -> None:
    graph = nx.Graph()
    for node, (label, numbers) in {"b": ("C", [1.0, 2.0]), "a": ("O", [0.0, 1.0]), "c": ("C", [3, 3])}.items():
        graph.add_node(node, label=label, attributes=numbers)
    graph.add_edge("a", "b", label=1, weight=0.3)
    graph.add_edge("a", "c", label=2)
    parts: tuple[Any, ...] = PATH, ["C", "O", "C"], [1, 2], [[1, 2], [0, 1], [3, 3]]
    names = ("edges", "labels", "edge_labels", "attributes")
    expected = Graph(*parts)
    assert (
        Graphs.of([graph, nx.MultiGraph(graph), parts, dict(zip(names, parts)), expected])
        .same(Graphs.of([expected] * 5))
        .all()
    )
    arrays = np.array(PATH), np.array(["C", "O", "C"]), np.array([1, 2], np.uint8), np.array(parts[3], np.float32)
    assert Graph(*arrays) == expected and hash(Graph(*arrays)) == hash(expected)
    assert Graph(PATH, "COC") == Graph(PATH, np.array(["C", "O", "C"], object))
    assert Graph(PATH) == Graph(np.array(PATH), [None] * 3, n=3) != Graph(PATH, [0, 0, 0])


def test_edge_weights_are_not_used_and_that_is_told_once() -> None:
    plain, weighted = nx.path_graph(3), nx.path_graph(3)
    nx.set_edge_attributes(plain, 1.0, "weight")
    nx.set_edge_attributes(weighted, 2.5, "weight")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        Graphs.of([plain, Graph(PATH)])
    with pytest.warns(
        MercerWarning, match=r"edges have the attribute 'weight' \(2\.5 is one\), which is not used"
    ) as caught:
        assert Graphs.of([plain, weighted, weighted]).same(Graphs.of([plain] * 3)).all()
    assert len(caught) == 1 and caught[0].filename == __file__


def _molecules(count: int = 12) -> list[Any]:
    """Rings of one shape, whose atoms and bonds differ, in the words of chemistry."""
    molecules = []
    for row in range(count):
        ring = nx.cycle_graph(6)
        for node in ring:
            ring.nodes[node].update(element="CN"[(row % 2) * (node == 0)], charge=0, mass=12.0 - (node == 0), here=True)
        for u, v in ring.edges:
            ring[u][v].update(order=1.5 if row % 3 else 1, kind="bond")
        molecules.append(ring)
    return molecules


def test_attributes_of_other_names_are_named_with_the_call_that_reads_them() -> None:
    X = _molecules()
    with pytest.warns(MercerWarning) as caught:
        plain = Graphs.of(X)
    (warning,) = caught
    message = str(warning.message)
    # What all nodes share says nothing.
    assert message.startswith(
        "nodes have the attributes 'element' ('N' is one), 'mass' (12.0 is one) and edges have the attribute 'order' "
        "(1.5 is one), which are not used"
    )
    calls = re.findall(r"\[Graph\.from_networkx.*? for graph in X\]", message)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        read, without = (Graphs.of(eval(call, {"Graph": Graph, "X": X})) for call in calls)
    assert without == plain and without[0].labels is None
    assert read[1].labels.tolist() == ["N", "C", "C", "C", "C", "C"] and read[1].edge_labels.tolist() == ["1.5"] * 6
    assert read[0].attributes.ravel().tolist() == [11.0] + [12.0] * 5
    y = np.arange(12) % 2
    assert mercer.SVC(kernel=WeisfeilerLehman(1)).fit(read, y).score(read, y) == 1.0


@pytest.mark.parametrize("value", ["C", 6, np.int64(6), 0.5, True, np.array([1.0, 2.0]), [0.5, 1], None, ("a", 1), {1}])
def test_the_call_for_an_attribute_of_any_kind_runs(value: Any) -> None:
    graph = nx.path_graph(3)
    graph.nodes[1]["what"], graph.edges[0, 1]["what"] = value, value
    with pytest.warns(MercerWarning, match="'what'") as caught:
        Graphs.of([graph])
    call = re.findall(r"\[Graph\.from_networkx.*? for graph in X\]", str(caught[0].message))[0]
    read = eval(call, {"X": [graph], "Graph": Graph})[0]
    measured = isinstance(value, (float, list, np.ndarray))
    # Where some nodes have no number, there is no call that reads the numbers of the others.
    assert (read.labels is None) == measured and read.attributes is None and len(read.edge_labels) == 2


def test_names_of_attributes_are_checked() -> None:
    (graph,) = _molecules(1)
    for argument in ("labels", "attributes"):
        with pytest.raises(DataError, match="no node has the attribute 'elemnt'; there is 'charge', 'element'"):
            Graph.from_networkx(graph, **{argument: "elemnt"})
    with pytest.raises(DataError, match="no edge has the attribute 'x'; there is 'kind', 'order'"):
        Graph.from_networkx(graph, edge_labels="x")
    assert Graph.from_networkx(graph, labels=None) == Graph.from_networkx(graph) == Graph(list(graph.edges))
    assert Graph.from_networkx(nx.Graph(), labels="element") == Graph()
    del graph.nodes[2]["element"]
    with pytest.raises(DataError, match="node 2 has no label, but others have"):
        Graph.from_networkx(graph, labels="element")


def test_parallel_edges_become_one_with_a_word() -> None:
    double = nx.MultiGraph([(0, 1), (0, 1), (1, 2)])
    with pytest.warns(MercerWarning, match="row 1 of X has parallel edges, which count as one") as caught:
        assert Graphs.of([nx.MultiGraph(nx.path_graph(3)), double])[1] == Graph(PATH)
    assert len(caught) == 1
    # As the message says.
    single = nx.Graph()
    single.add_edges_from((u, v, {"label": double.number_of_edges(u, v)}) for u, v in double.edges())
    assert Graphs.of([single])[0] == Graph(PATH, edge_labels=[2, 1])


def test_labels_of_different_kinds_are_told() -> None:
    labelled, plain, numbers = Graph(PATH, ["C", "C", "O"]), Graph(PATH), Graph(PATH, [6, 6, 8])
    with pytest.warns(MercerWarning, match="row 0 has text as node labels, row 2 has no node labels") as caught:
        X = Graphs.of([labelled, Graph(), plain, plain])
    assert len(caught) == 1 and WeisfeilerLehman(1)(X)[0, 2] == 0.0
    with pytest.warns(MercerWarning, match="row 0 has whole numbers as node labels, row 1 has text as node labels"):
        Graphs.of([numbers, labelled])
    with pytest.warns(MercerWarning, match="row 0 has no edge labels, row 1 has whole numbers as edge labels"):
        Graphs.of([plain, (PATH, None, [1, 2])])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        Graphs.of([labelled, Graph(), labelled, Graph(labels=["N"])])


def test_an_edge_is_there_once() -> None:
    twice = Graph([(2, 1), (1, 0), (1, 2), (1, 1), (1, 1)], edge_labels=["x", "y", "x", "z", "z"])
    assert twice.edges.tolist() == [[0, 1], [1, 1], [1, 2]] and twice.edge_labels.tolist() == ["y", "z", "x"]
    assert not any(a.flags.writeable for a in (twice.edges, twice.edge_labels))
    with pytest.raises(dataclasses.FrozenInstanceError):
        twice.n = 7


def test_labels_that_end_in_nul_are_others(tmp_path: Path) -> None:
    labels = ["a", "a\0", "a\0\0", "a\0b"]
    graphs = Graphs.of([Graph([(0, 1)], [label, "b"], [edge]) for label in labels for edge in ("e", "e\0")])
    keys = set(graphs.keys().tolist())
    assert len(keys) == len(graphs) == len({graph.fingerprint() for graph in graphs}) == len(set(graphs))
    assert pickle.loads(pickle.dumps(graphs)) == graphs
    assert len(set(graphs.joint().labels.tolist())) == 5 and len(set(graphs.joint().edge_labels.tolist())) == 2
    assert [graph.labels[0] for graph in graphs[::2]] == labels
    assert Graph(labels=graphs[2].labels) == Graph(labels=["a\0", "b"])
    K = WeisfeilerLehman(0)(graphs)
    assert np.array_equal(K, np.where(np.kron(np.eye(4), np.ones((2, 2))), 2.0, 1.0))
    model = mercer.KernelRidge(kernel=WeisfeilerLehman(1)).fit(graphs, np.arange(8.0))
    mercer.save(model, tmp_path / "m.mercer")
    assert np.array_equal(mercer.load(tmp_path / "m.mercer").predict(graphs), model.predict(graphs))
    with pytest.raises(DataError, match=r"two labels, 'e\\x00' and 'e'"):
        Graph([(0, 1), (1, 0)], edge_labels=["e\0", "e"])


def test_nothing_is_a_graph_too() -> None:
    assert Graph() == Graph(np.empty((0, 2)), [], [], n=0) and Graphs.of([nx.Graph()])[0] == Graph()
    assert Graph().n == 0 and Graph(labels=["C"]).n == 1 and Graph(attributes=np.ones((4, 2))).n == 4
    assert Graph([(0, 5)]).n == 6 and Graph([(0, 0)]).edges.tolist() == [[0, 0]]


@pytest.mark.parametrize(
    ("item", "message"),
    [
        ((PATH, [1, 2]), r"edge 1 joins the nodes 1 and 2, but the graph has the nodes 0 to 1\."),
        (([(0, -1)],), "edge 0 joins the nodes 0 and -1"),
        (([(0, 0)], None, None, np.empty((0, 2))), "joins the nodes 0 and 0, but the graph has no nodes"),
        ((np.zeros((2, 3), int),), r"must be an array of whole numbers, \(m, 2\), but are one of int64, \(2, 3\)"),
        (([(0, 1.5)],), "must be an array of whole numbers"),
        (([(0, 1), (2,)],), "must be pairs of nodes"),
        ((PATH, ["C", None, "C"]), "node 1 has no label, but others have"),
        ((PATH, ["C", 1, "C"]), r"all whole numbers or all text, and that of node 0 is 'C' where others are numbers"),
        ((PATH, [1.5, 1.0, 2.0]), "that of node 0 is 1.5; pass measured numbers as attributes"),
        ((PATH, [True, False, True]), "that of node 0 is True"),
        ((PATH, [2**63, 0, 0]), "a node label is 9223372036854775808, but whole numbers must have fewer than 64 bits"),
        ((PATH, {0: "C", 1: "C", 2: "O"}), "the node labels must be a sequence in the order of the nodes"),
        ((PATH, 3), "the node labels must be a sequence"),
        ((PATH, None, [1]), "there are 2 edges and 1 edge labels; pass one label per edge"),
        (
            ([(0, 1), (1, 0)], None, [1, 2]),
            "the edge of the nodes 0 and 1 has two labels, 1 and 2; pass one label per edge",
        ),
        ((PATH, None, None, [[1.0], [np.nan], [2.0]]), "the attributes of node 1 hold NaN or an infinity"),
        ((PATH, None, None, [[1.0], [2.0, 3.0], [2.0]]), "must be numbers, equally many for each node"),
        ((PATH, None, None, np.ones((3, 1, 1))), r"must have the shape \(n, d\), but have \(3, 1, 1\)"),
        ((PATH, [1, 2, 3], None, [1.0, 2.0]), "labels implies 3 nodes, but attributes implies 2"),
        ({"edges": PATH, "n": -1}, "the number of nodes must be a whole number, but is -1"),
        ({"edges": PATH, "n": 4, "labels": [1, 1, 1]}, "n implies 4 nodes, but labels implies 3"),
        (
            {"edges": PATH, "node_labels": [1, 1, 1]},
            r"the keys of a graph must be among edges, labels, .* but are \['ed",
        ),
        ({}, "the keys of a graph must be among"),
        ((), "a graph must be a mercer.Graph, a graph of networkx, a dict"),
        (PATH, "a graph must be a mercer.Graph, a graph of networkx, a dict"),
        (nx.DiGraph([(0, 1)]), r"the graph is directed, .* use its .to_undirected\(\)"),
        (nx.Graph([(0, 1), {"label": 1}.keys()][:1]), None),
    ],
)
def test_mistakes_are_named(item: Any, message: str | None) -> None:
    if message is None:
        assert Graphs.of([item])[0] == Graph([(0, 1)])
        return
    with pytest.raises(DataError, match=f"row 1 of X: .*{message}"):
        Graphs.of([Graph(), item])


def test_attributes_of_networkx_are_of_all_nodes_or_of_none() -> None:
    graph = nx.path_graph(3)
    graph.nodes[0]["attributes"] = [1.0]
    with pytest.raises(DataError, match="row 0 of X: node 1 has no attributes, but others have"):
        Graphs.of([graph])


@given(items=st.lists(graphs(), max_size=5))
@settings(max_examples=60, deadline=None)
def test_arrays_hold_every_graph(items: list[Graph]) -> None:
    rows = Graphs(items)
    assert list(Graphs(rows.arrays)) == items
    assert pickle.loads(pickle.dumps(rows)) == rows


def test_wrong_arrays_are_refused() -> None:
    arrays = Graphs.of([(PATH, list("CCO"), [1, 2], [1.0, 2.0, 3.0]), (PATH,)]).arrays
    for name, value, message in [
        ("sizes", arrays.sizes - 2, "three numbers a row"),
        ("sizes", arrays.sizes + 1, "do not add up"),
        ("sizes", arrays.sizes[:1], "three numbers a row"),
        ("kinds", arrays.kinds[:, :1], "kinds"),
        ("edges", arrays.edges + 7, "joins the nodes"),
        ("edges", arrays.edges.astype(float), "edges must be an array of kind 'i' with 2 axes"),
        ("labels", arrays.labels + 9, "not among the texts"),
        ("labels", arrays.labels - 9, "not among the texts"),
        ("texts", arrays.texts[:0], "not among the texts"),
        ("attributes", arrays.attributes * np.nan, "NaN"),
    ]:
        with pytest.raises(DataError, match=message):
            Graphs(dataclasses.replace(arrays, **{name: value}))
    with pytest.raises(DataError):
        GraphArrays(*[np.empty(0)] * 7)


KERNELS = {"features": WeisfeilerLehman(2) + 0.5, "pairs": RandomWalk(0.02).normalized()}


@pytest.mark.parametrize("kernel", KERNELS.values(), ids=KERNELS)
@pytest.mark.parametrize("name", ["SVC", "GaussianProcessRegressor", "KernelPCA"])
def test_models_and_their_files_hold_graphs(name: str, kernel: Any, tmp_path: Path) -> None:
    X = drawn(count=14)
    y = np.array([graph.n for graph in X])
    model = getattr(mercer, name)(kernel=kernel)
    if name == "GaussianProcessRegressor":
        model.set_params(alpha=0.1)
    model.fit(X, y > 4 if name == "SVC" else y)
    answers = model.transform(X) if name == "KernelPCA" else model.predict(X)
    mercer.save(model, tmp_path / "model.mercer")
    loaded = mercer.load(tmp_path / "model.mercer")
    again = loaded.transform(X) if name == "KernelPCA" else loaded.predict(X)
    assert np.array_equal(again, answers)
    # Arrays for all rows together: two hundred graphs take a few bytes for each of their numbers.
    assert (tmp_path / "model.mercer").stat().st_size < 40_000


def test_files_grow_with_what_the_graphs_hold(tmp_path: Path) -> None:
    rows = Graphs.of(drawn(count=500))
    mercer.save(rows, tmp_path / "rows.mercer")
    numbers = sum(5 + g.edges.size + g.n + len(g.edges) for g in rows)
    assert (tmp_path / "rows.mercer").stat().st_size < 8 * numbers + 4000
    assert mercer.load(tmp_path / "rows.mercer") == rows


def test_a_file_with_wrong_graphs_is_refused(tmp_path: Path) -> None:
    rows = Graphs.of([(PATH, ["C", "C", "O"])])
    object.__setattr__(rows.arrays, "edges", rows.arrays.edges + 5)
    # What is to be written is read first, as a file is.
    with pytest.raises(ModelFileError, match="joins the nodes 5 and 6"):
        mercer.save(rows, tmp_path / "rows.mercer")


def test_graphs_stand_in_a_column_of_a_table() -> None:
    X = drawn(count=12)
    frame = pd.DataFrame({"graph": X, "x": np.arange(12.0)})
    kernel = product_of({"graph": WeisfeilerLehman(2).normalized(), "x": RBF(3.0)})
    expected = WeisfeilerLehman(2).normalized()(X) * RBF(3.0)(frame[["x"]].to_numpy())
    np.testing.assert_allclose(kernel(frame), expected, atol=1e-12)
    spread = Propagation(source="labels").on("graph")
    assert np.array_equal(spread(frame), Propagation(source="labels")(X))


@pytest.mark.slow
def test_networkx_is_needed_for_nothing() -> None:
    program = (
        "import sys; sys.modules['networkx'] = None\n"
        "import mercer\n"
        "X = [mercer.Graph([(0, 1)], ['C', 'O']), ([(0, 1), (1, 2)], ['C', 'O', 'C'])]\n"
        "print(mercer.kernels.WeisfeilerLehman(1)(X).tolist())\n"
    )
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert ran.stdout == "[[4.0, 5.0], [5.0, 10.0]]\n"


def test_more_nodes_than_memory_are_refused() -> None:
    with pytest.raises(MemoryBudgetError, match="nodes of 2 graphs would take"):
        WeisfeilerLehman(1)([Graph(n=2**40), Graph([(0, 2**62)])])
