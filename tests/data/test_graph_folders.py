"""Folders of graphs in the form of the TU data sets."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from mercer._errors import DataError, MercerWarning
from mercer.data.graph import Graph
from mercer.data.readers import read_table

FILES = {
    "A": "1, 2\n2, 1\n2, 3\n3, 2\n4, 5\n5, 4\n",
    "graph_indicator": "1\n1\n1\n2\n2\n3\n",
    "graph_labels": "1\n-1\n1\n",
    "node_labels": "6\n6\n8\n6\n7\n6\n",
    "edge_labels": "1\n1\n2\n2\n1\n1\n",
    "node_attributes": "0.5, 1\n0, 0\n1, 1\n2, 2\n3, 3\n4, 4\n",
}


def write(folder: Path, **changes: str | None) -> Path:
    path = folder / "DS"
    path.mkdir()
    for name, text in {**FILES, **changes}.items():
        if text is not None:
            (path / f"DS_{name}.txt").write_text(text)
    return path


def test_all_parts(tmp_path: Path) -> None:
    table = read_table(write(tmp_path))
    X, y, name = table.split(None)
    assert name == "label" and y.tolist() == [1, -1, 1]
    assert X["graph"].tolist() == [
        Graph([(0, 1), (1, 2)], [6, 6, 8], [1, 2], [[0.5, 1], [0, 0], [1, 1]]),
        Graph([(0, 1)], [6, 7], [1], [[2, 2], [3, 3]]),
        Graph([], [6], [], [[4, 4]]),
    ]
    assert table.locate(2) == "graph 3" and table.roles == {"graph": "graph"}


def test_files_that_are_not_used_are_named(tmp_path: Path) -> None:
    path = write(tmp_path, edge_attributes="1.5\n" * 6, graph_attributes="1, 2\n" * 3)
    with pytest.warns(MercerWarning, match=r"files that are not used: 'DS_edge_attributes.txt', 'DS_graph_attributes"):
        assert list(read_table(path).targets) == ["label"]


@pytest.mark.parametrize("label", ["inf", "1e300", "1e17"])
def test_targets_beyond_whole_numbers_stay_as_they_are(tmp_path: Path, label: str) -> None:
    values = read_table(write(tmp_path, graph_labels=f"1\n-1\n{label}\n")).targets["label"]
    np.testing.assert_array_equal(values, [1.0, -1.0, float(label)])


def test_graphs_of_two_data_sets(tmp_path: Path) -> None:
    path = write(tmp_path)
    (path / "OTHER_A.txt").write_text("1, 2\n")
    with pytest.raises(DataError, match="holds the graphs of 'DS', 'OTHER'; put each data set in a folder of its own"):
        read_table(path)


def test_edges_alone_and_numbers_as_targets(tmp_path: Path) -> None:
    none = dict.fromkeys(("node_labels", "edge_labels", "node_attributes", "graph_labels"))
    table = read_table(write(tmp_path, **none, graph_attributes="0.5\n1.5\n-2\n"))
    np.testing.assert_array_equal(table.split(None)[1], [0.5, 1.5, -2.0])
    assert [graph.n for graph in table.columns["graph"]] == [3, 2, 1]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"A": None}, "DS_A.txt is missing"),
        ({"A": "1, 4\n"}, "line 1: this edge joins nodes of two graphs"),
        ({"A": "1, 9\n"}, "nodes are numbered from 1 to 6, but there is 9"),
        ({"A": "1, 2, 3\n"}, "two nodes in each line"),
        ({"A": "a, b\n"}, "numbers separated by commas"),
        ({"graph_indicator": "2\n1\n1\n1\n1\n1\n"}, "must follow each other"),
        ({"graph_indicator": "0\n1\n1\n1\n1\n1\n"}, "from 1 on"),
        ({"graph_indicator": ""}, "from 1 on"),
        ({"graph_indicator": None}, "DS_graph_indicator.txt is missing"),
        ({"graph_indicator": "1, 1\n" * 6}, "from 1 on"),
        ({"graph_indicator": "1\n1\n1\n2\n2\n9223372036854775807\n"}, "there are 6 nodes in all; number the graphs"),
        ({"A": "1, 2\n2, -1\n"}, "DS_A.txt, line 2: nodes are numbered from 1 to 6, but there is -1"),
        ({"A": "1, 99999999999999999999\n"}, r"column 2\.$"),
        ({"node_labels": "6\n"}, "has 1 lines, but should have 6"),
        ({"edge_labels": "1\n2\n2\n2\n1\n1\n"}, "graph 1: "),
    ],
)
def test_faults(tmp_path: Path, changes: dict[str, str | None], message: str) -> None:
    with pytest.raises(DataError, match=message):
        read_table(write(tmp_path, **changes))
