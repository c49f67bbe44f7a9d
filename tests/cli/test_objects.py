"""The commands on trees, series and graphs."""

from __future__ import annotations

import json
import re

import networkx as nx
import numpy as np
import pandas as pd
import pytest

from cli_output import refusal
from mercer._errors import DataError
from mercer.cli import main
from mercer.data.columns import MixedRows
from mercer.data.graphs import Graphs
from mercer.data.readers import read_table
from mercer.data.series import Series
from mercer.reports.plain_features import features


@pytest.fixture(autouse=True)
def _in_an_empty_directory(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("MERCER_DEBUG", raising=False)


def run(capsys, *arguments):
    code = main([str(argument) for argument in arguments])
    captured = capsys.readouterr()
    return code, captured.out, captured.err


def run_json(capsys, *arguments):
    code, out, err = run(capsys, *arguments, "--json")
    assert (code, err) == (0, "")
    return json.loads(out)


KINDS = np.where(np.arange(40) % 2, "one", "two")
_rng = np.random.default_rng(0)
# Of the second kind the waves are twice as fast.
WAVES = [np.sin(np.arange(_rng.integers(8, 15)) * (0.4 if i % 2 else 0.8))[:, None] for i in range(40)]


def right(capsys, data, model):
    """The model is right, predicts from the same file, and shows what it holds."""
    assert run_json(capsys, "evaluate", model, data)["scores"]["accuracy"] > 0.9
    assert run(capsys, "predict", model, data, "--quiet", "--out", "p.csv")[0] == 0
    assert (pd.read_csv("p.csv").iloc[:, 0] == KINDS).mean() > 0.9
    return run_json(capsys, "inspect", model)["schema"]


def test_trees(capsys):
    trees = [f"(S (NP {'ab'[i % 2]}) (VP (V x) (NP {i % 5})))" for i in range(40)]
    pd.DataFrame({"kind": KINDS, "parse": trees}).to_csv("t.tsv", sep="\t", index=False)
    report = run_json(capsys, "fit", "t.tsv", "-t", "kind", "--tree", "parse")
    assert report["kernel"] == "SubsetTree(0.4).normalized().on(['parse'])" and "by default" in report["chosen"]
    assert report["scores"]["logistic regression on counts of node labels"]["accuracy"] > 0.9
    assert right(capsys, "t.tsv", "t.mercer") == {"parse": "tree"}
    pd.DataFrame({"kind": KINDS, "parse": [*trees[:-1], "(S"]}).to_csv("t.tsv", sep="\t", index=False)
    code, _, err = run(capsys, "fit", "t.tsv", "-t", "kind", "--tree", "parse")
    assert code == 2 and "t.tsv, line 41, column 'parse': the text of a tree ends" in err
    code, _, err = run(capsys, "fit", "t.tsv", "-t", "kind", "--tree", "parse", "--text", "parse")
    assert code == 2 and "--text parse are mutually exclusive" in err


@pytest.mark.parametrize("lengths", [False, True])
def test_series_in_an_archive(capsys, lengths):
    X = np.full((40, 15, 1), np.nan)
    for row, wave in enumerate(WAVES):
        X[row, : len(wave)] = wave
    more = {"lengths": np.array([len(wave) for wave in WAVES])} if lengths else {}
    np.savez("s.npz", X=X, y=KINDS, **more)
    report = run_json(capsys, "fit", "s.npz", "--kernel", "GlobalAlignment(0.5).normalized()")
    assert report["columns"] == "1 series column"
    assert "logistic regression on series stretched to 11 times" in report["scores"]
    assert right(capsys, "s.npz", "s.mercer") == {"series": "series"}
    report = run_json(capsys, "fit", "s.npz")
    assert re.match(r"GlobalAlignment\([\d.]+\).normalized\(\)\.on\(\['series'\]\)", report["kernel"])
    assert "by default" in report["chosen"]


def test_channels_before_times_in_an_archive(capsys):
    X = np.full((40, 1, 15), np.nan)
    for row, wave in enumerate(WAVES):
        X[row, :, : len(wave)] = wave.T
    np.savez("s.npz", X=X, y=KINDS)
    kernel = "--kernel", "GlobalAlignment(0.5).normalized()"
    # The longer axis is time.
    scores = [run_json(capsys, "fit", "s.npz", *kernel)["scores"]]
    scores.append(run_json(capsys, "fit", "s.npz", *kernel, "--axes", "nct")["scores"])
    assert run_json(capsys, "evaluate", "s.mercer", "s.npz", "--axes", "nct")["rows"] == 40
    np.savez("s.npz", X=X, y=KINDS, axes="nct")
    scores.append(run_json(capsys, "fit", "s.npz", *kernel)["scores"])
    np.savez("s.npz", X=X.transpose(0, 2, 1), y=KINDS, lengths=[len(wave) for wave in WAVES], axes="ntc")
    scores.append(run_json(capsys, "fit", "s.npz", *kernel)["scores"])
    assert scores[0] == scores[1] == scores[2] == scores[3]
    np.savez("square.npz", X=np.random.default_rng(0).normal(size=(40, 7, 7)), y=KINDS)
    code, _, err = run(capsys, "fit", "square.npz", *kernel)
    assert code == 2 and "may be (n, times, channels) or" in err and "--axes nct or --axes ntc on the command" in err
    assert run(capsys, "fit", "square.npz", *kernel, "--axes", "nct")[0] == 0
    code, _, err = run(capsys, "fit", "s.npz", *kernel, "--axes", "nct")
    assert code == 2 and "states the axes 'ntc', but 'nct' was requested" in err
    code, _, err = run(capsys, "fit", "s.npz", *kernel, "--axes", "tcn")
    assert code == 2 and "axes must be 'ntc' (rows, times, channels) or 'nct'" in err
    code, _, err = run(capsys, "fit", "sample:iris", "--axes", "nct")
    assert code == 2 and "axes apply only to series in a .npz file" in err


@pytest.mark.parametrize(
    ("X", "words"),
    [
        (np.zeros((40, 6, 5, 3)), "X is of shape (40, 6, 5, 3), like images (n, height, width, channels)"),
        (np.array([wave.ravel() for wave in WAVES], object), "padded with NaN at their ends"),
    ],
)
def test_archives_of_what_the_command_line_does_not_read(capsys, X, words):
    np.savez("a.npz", X=X, y=KINDS)
    assert words in refusal(run(capsys, "fit", "a.npz")[2])


def test_new_series_of_other_channels(capsys):
    rng = np.random.default_rng(0)
    for channels in (1, 2):
        np.savez(f"s{channels}.npz", X=rng.normal(size=(40, 8, channels)), y=KINDS)
    for kernel in ("Signature(2)", "GlobalAlignment(1.0)"):
        assert run(capsys, "fit", "s1.npz", "-q", "-k", kernel)[0] == 0
        code, _, err = run(capsys, "predict", "s1.mercer", "s2.npz")
        assert code == 2 and "the same number of channels, but have 2 and 1." in refusal(err)


def test_a_column_that_seems_to_hold_trees(capsys):
    trees = [f"(S (NP {'ab'[i % 2]}) (VP {i}))" for i in range(40)]
    pd.DataFrame({"kind": KINDS, "parse": trees}).to_csv("t.csv", index=False)
    assert "To compare it as a tree, pass --tree parse." in refusal(run(capsys, "fit", "t.csv", "-t", "kind")[2])
    pd.DataFrame({"kind": KINDS, "parse": trees, "size": range(1, 80, 2)}).to_csv("t.csv", index=False)
    code, out, _ = run(capsys, "fit", "t.csv", "-t", "kind")
    assert code == 0 and "as a tree: --tree parse" in " ".join(out.split())


def test_a_folder_of_series(capsys, tmp_path):
    (tmp_path / "waves").mkdir()
    for row, wave in enumerate(WAVES):
        pd.DataFrame(wave, columns=["level"]).to_csv(f"waves/{row}.csv", index=False)
    labels = pd.DataFrame({"file": [f"{row}.csv" for row in range(40)], "kind": KINDS})
    labels.to_csv("waves/labels.csv", index=False)
    report = run_json(capsys, "fit", "waves", "-t", "kind", "-k", "GlobalAlignment(0.5).normalized()", "-o", "w.mercer")
    assert report["columns"] == "1 series column" and right(capsys, "waves", "w.mercer") == {"series": "series"}
    labels.assign(file="none.csv").to_csv("waves/labels.csv", index=False)
    code, _, err = run(capsys, "fit", "waves", "-t", "kind")
    assert code == 2 and "line 2: the file 'none.csv' does not exist in waves" in err
    (tmp_path / "waves/labels.csv").unlink()
    code, _, err = run(capsys, "fit", "waves", "-t", "kind")
    assert code == 2 and "directory without a file labels.csv" in err


def test_graphs(capsys, tmp_path):
    graphs = []
    for row in range(40):
        graph = (nx.cycle_graph if row % 2 else nx.path_graph)(4 + row % 3)
        graph.graph.update(kind=str(KINDS[row]), size=len(graph))
        graphs.append(nx.node_link_data(graph))
    (tmp_path / "g.json").write_text(json.dumps(graphs))
    report = run_json(capsys, "fit", "g.json", "-t", "kind", "-k", 'WeisfeilerLehman(2).on(["graph"])')
    assert report["columns"] == "1 graph column" and list(report["left_out"]) == ["size"]
    assert report["scores"]["logistic regression on counts of degrees"]["accuracy"] == 1.0
    assert right(capsys, "g.json", "g.mercer") == {"graph": "graph"}
    assert "WeisfeilerLehman(3)" in run_json(capsys, "fit", "g.json", "-t", "kind")["kernel"]
    (tmp_path / "g.json").write_text(json.dumps([*graphs[:2], {"nodes": []}]))
    code, _, err = run(capsys, "fit", "g.json", "-t", "kind")
    assert code == 2 and "graph 3: this is not node-link data: 'links' is missing" in err
    (tmp_path / "g.json").write_text("{")
    assert run(capsys, "fit", "g.json", "-t", "kind")[0] == 2


def test_what_is_not_used_of_objects_in_files_is_told(capsys, tmp_path):
    graphs = []
    for row in range(40):
        graph = nx.cycle_graph(5)
        nx.set_node_attributes(graph, {node: "CN"[(row % 2) * (node == 0)] for node in graph}, "element")
        graph.graph["kind"] = str(KINDS[row])
        graphs.append({**nx.node_link_data(graph), "source": "archive"})
    (tmp_path / "g.json").write_text(json.dumps(graphs))
    code, _, err = run(capsys, "fit", "g.json", "-t", "kind")
    assert code == 0 and "nodes have the attribute 'element' ('N' is one), which is not used" in err
    assert "have 'source', which is not used" in err
    # As the message says.
    for graph in graphs:
        graph["graph"]["source"] = graph.pop("source")
        for node in graph["nodes"]:
            node["label"] = node.pop("element")
    (tmp_path / "g.json").write_text(json.dumps(graphs))
    code, _, err = run(capsys, "fit", "g.json", "-t", "kind")
    assert code == 0 and "not used" not in err
    (tmp_path / "g.json").write_text(json.dumps([*graphs, {**graphs[0], "graph": 3}]))
    code, _, err = run(capsys, "fit", "g.json", "-t", "kind")
    assert code == 2 and "graph 41: this is not node-link data: its 'graph' must hold facts by their names" in err


def test_series_that_are_not_listed_are_told(capsys, tmp_path):
    (tmp_path / "waves").mkdir()
    for row in range(41):
        pd.DataFrame({"level": np.sin(np.arange(8.0) * (1 + row % 2))}).to_csv(f"waves/{row}.csv", index=False)
    labels = pd.DataFrame({"file": [f"{row}.csv" for row in range(40)], "kind": KINDS})
    labels.to_csv("waves/labels.csv", index=False)
    code, _, err = run(capsys, "fit", "waves", "-t", "kind")
    assert code == 0 and "does not list '40.csv' of its folder, which is not used" in err


def test_channels_of_files_are_told_apart_by_their_names(tmp_path):
    frame = pd.DataFrame({"x": [1.0, 2.0, 3.0], "y": [4.0, 5.0, 6.0]})
    pd.DataFrame({"file": ["a.csv", "b.csv"], "kind": ["p", "q"]}).to_csv(tmp_path / "labels.csv", index=False)
    frame.to_csv(tmp_path / "a.csv", index=False)
    frame[["y", "x"]].to_csv(tmp_path / "b.csv", index=False)
    one, other = read_table(tmp_path).columns["series"]
    assert np.array_equal(one, other) and np.array_equal(one, frame.to_numpy())
    frame.rename(columns={"y": "z"}).to_csv(tmp_path / "b.csv", index=False)
    with pytest.raises(DataError, match=r"b.csv has the columns 'x', 'z', but the first file has 'x', 'y'"):
        read_table(tmp_path)


def test_what_a_linear_model_sees():
    one, other = [(0, 1), (1, 2)], [(0, 1)]
    graphs = [Graphs.of([(one, list("CCO")), (other, list("CN")), {"n": 0}]), Graphs.of([(other, list("NX"))])]
    series = [Series.of([[[0.0, 1.0], [2.0, 5.0]]] * 3), Series.of([[[1.0, 1.0], [2.0, 2.0], [3.0, 3.0]]])]
    numbers = [np.array([7.0, 8.0, 9.0]), np.array([1.0])]
    found = features(*(MixedRows(columns) for columns in zip(graphs, numbers, series, strict=True)))
    X, Z = found.X, found.Z
    assert [side.tolist() for side in found.columns] == [[[7.0], [8.0], [9.0]], [[1.0]]]
    assert found.what == " on counts of node labels and series stretched to 2 times"
    # The labels are in the order of their hashes.
    counts = X.toarray()[:, :3]
    assert sorted(counts[0]) == [0, 1, 2] and sorted(counts[1]) == [0, 1, 1] and not counts[2].any()
    assert np.array_equal(Z.toarray()[0, :3], (counts[1] > 0) & (counts[0] == 0))
    assert X.toarray()[:, 3].tolist() == [7.0, 8.0, 9.0] and X.toarray()[0, 4:].tolist() == [0.0, 1.0, 2.0, 5.0]
    assert Z.toarray()[0, 3:].tolist() == [1.0, 1.0, 1.0, 3.0, 3.0]
    empty = MixedRows([Graphs.of([{"n": 0}] * 2)])
    assert features(empty, empty).X.shape == (2, 0)
    assert features(MixedRows([Graphs.of([(one,)])]), empty).what == " on counts of degrees"
