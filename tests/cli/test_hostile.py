"""Files that mean no good: exit code 2, one short paragraph, and nothing that a terminal would obey."""

from __future__ import annotations

import cProfile
import json
import pstats
import re
import zipfile

import numpy as np
import pandas as pd
import pytest

import mercer
from cli_output import refusal
from mercer.cli import main

_ESCAPE = "\x1b[2J\x1b]0;owned\x07"


@pytest.fixture(autouse=True)
def _in_an_empty_directory(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")


def run(capsys, *arguments):
    code = main([str(argument) for argument in arguments])
    captured = capsys.readouterr()
    assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]", captured.out + captured.err)
    return code, captured.out, captured.err


def fails(capsys, *arguments):
    code, _, err = run(capsys, *arguments)
    assert code == 2
    return refusal(err)


def test_an_archive_with_a_member_that_is_no_array(capsys):
    np.savez("odd.npz", X=np.zeros((6, 2)), y=np.arange(6))
    with zipfile.ZipFile("odd.npz", "a") as archive:
        archive.writestr("read me.txt", "hello")
    assert "its member 'read me.txt' is not an array" in fails(capsys, "fit", "odd.npz")


@pytest.mark.parametrize("column", ["x", "y", "z"])
def test_a_cell_of_a_megabyte_is_not_quoted_whole(capsys, column):
    frame = pd.DataFrame({"x": range(20), "y": range(20), "z": ["a", "b"] * 10}).astype(object)
    frame.loc[7, column] = "n" * 1_000_000
    frame.to_csv("long.csv", index=False)
    code, _, err = run(capsys, "fit", "long.csv", "-t", "y", "--task", "regression", "-q")
    assert len(err) < 2000
    if column != "z":
        assert code == 2 and "'nnn" in err and "999940 more characters" in err and "row 8" in err


def test_names_of_a_megabyte(capsys):
    pd.DataFrame({"n" * 1_000_000: ["a", "b"] * 10, "y": range(20)}).to_csv("long.csv", index=False)
    fails(capsys, "fit", "long.csv", "-t", "z")
    fails(capsys, "fit", "long.csv", "-t", "y" * 100_000)
    fails(capsys, "fit", "n" * 10_000)


def test_escapes_do_not_reach_the_terminal(capsys):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            f"size{_ESCAPE}": rng.normal(size=40),
            "town": [f"Ulm{_ESCAPE}", "Zug"] * 20,
            "note": [f"{_ESCAPE}{i}" for i in range(40)],
            f"kind{_ESCAPE}": [f"good{_ESCAPE}", "bad"] * 20,
        }
    )
    frame.to_parquet("bad.parquet")
    code, out, _ = run(capsys, "fit", "bad.parquet", "-t", f"kind{_ESCAPE}", "--set", "C=1")
    assert code == 0 and "\\x1b[2J" in out
    for arguments in (["inspect", "bad.mercer"], ["evaluate", "bad.mercer", "bad.parquet"]):
        code, out, _ = run(capsys, *arguments)
        assert code == 0 and "\\x1b" in out
    fails(capsys, "fit", "bad.parquet", "-t", f"size{_ESCAPE}", "--task", "classification")
    fails(capsys, "fit", "bad.parquet", "-t", _ESCAPE)
    fails(capsys, "fit", f"{_ESCAPE}.csv")
    frame.rename(columns={"town": f"{_ESCAPE}town"}).to_parquet("new.parquet")
    fails(capsys, "predict", "bad.mercer", "new.parquet")
    frame.assign(town=f"Rom{_ESCAPE}").to_parquet("new.parquet")
    code, _, err = run(capsys, "predict", "bad.mercer", "new.parquet", "--out", "p.csv")
    assert code == 0 and "Rom" in err


def test_predictions_on_a_terminal_are_escaped_and_others_are_not(capsys, monkeypatch):
    frame = pd.DataFrame({"x": range(40), "y": [f"good{_ESCAPE}", "bad"] * 20})
    frame.to_parquet("bad.parquet")
    assert run(capsys, "fit", "bad.parquet", "-t", "y", "-q", "--set", "C=100")[0] == 0
    assert main(["predict", "bad.mercer", "bad.parquet"]) == 0
    assert _ESCAPE in capsys.readouterr().out
    monkeypatch.setattr("sys.stdout.isatty", lambda: True, raising=False)
    code, out, _ = run(capsys, "predict", "bad.mercer", "bad.parquet")
    assert code == 0 and "good\\x1b[2J" in out


@pytest.mark.slow
def test_no_function_is_called_for_each_pair_of_columns(capsys):
    def calls(d):
        frame = pd.DataFrame(np.random.default_rng(0).normal(size=(6, d)), columns=[f"c{j}" for j in range(d)])
        frame.assign(y=np.arange(6) + 0.5).to_csv("wide.csv", index=False)
        profile = cProfile.Profile()
        assert profile.runcall(run, capsys, "fit", "wide.csv", "-t", "y", "-q")[0] == 0
        return {function: entry[1] for function, entry in pstats.Stats(profile).stats.items()}

    # Parts are loaded and compiled at the first call.
    calls(10)
    # Calls and not seconds, which depend on what else the machine does.
    few, many = calls(10), calls(100)
    assert not {function: count for function, count in many.items() if count > 20 * few.get(function, 0) + 2000}


def test_a_shell_runs_no_other_command_of_a_model_file(capsys):
    pd.DataFrame({"x": range(20), "y": [0, 1] * 10}).to_csv("t.csv", index=False)
    assert run(capsys, "fit", "t.csv", "-t", "y", "--model", "svc", "--set", "C=1")[0] == 0
    model = mercer.load("t.mercer")
    for more, printed in ((f"; rm *\n$(ls) {_ESCAPE}", "';' rm '*' '$(ls)'"), (" 'my\ntable'", "$'my\\ntable'")):
        model.report_["command"] = f"mercer fit t.csv {more}"
        mercer.save(model, "s.mercer")
        code, out, _ = run(capsys, "inspect", "s.mercer", "--command")
        assert code == 0 and out.startswith("mercer fit t.csv") and printed in out
        assert out.count("\n") == 1 and "\x1b" not in out
        code, again, _ = run(capsys, "inspect", "s.mercer", "--command", "--json")
        assert code == 0 and json.loads(again)["command"] == out.rstrip("\n")
    for other in ("rm -rf x", "mercer predict a b", "mercer fit 'a", ""):
        model.report_["command"] = other
        mercer.save(model, "s.mercer")
        code, out, err = run(capsys, "inspect", "s.mercer", "--command")
        assert code == 2 and not out and (not other or "Do not run it" in err)


@pytest.mark.parametrize(
    ("place", "value", "entry"),
    [
        (("rows", "held_out"), "x", "held_out"),
        (("rows", "fitted"), 0, "rows"),
        (("seed",), -1, "seed"),
        (("normalize",), "y", "normalize"),
        (("task",), "ranking", "task"),
        (("left_out",), {"x": 1}, "left_out"),
        (("roles",), {"x": None}, "left_out"),
        (("versions",), [], "versions"),
        (("command",), ["mercer"], "command"),
        (("data_sha256",), 1, "data_sha256"),
        (("recalls",), {"a": {"rows": 3}}, "recall"),
        (("recalls",), {"a": {"rows": "3", "recall": 0.5}}, "scores"),
        (("recalls",), [], "scores"),
    ],
)
def test_reports_in_model_files_that_no_fit_wrote(capsys, fitted, place, value, entry):
    model = mercer.load(fitted)
    part = model.report_
    for name in place[:-1]:
        part = part[name]
        part.pop("all")
    part[place[-1]] = value
    mercer.save(model, "forged.mercer")
    words = f"forged.mercer: the {entry} of its report do not have the form"
    assert words in fails(capsys, "inspect", "forged.mercer")
    assert words in fails(capsys, "report", "forged.mercer")


@pytest.mark.parametrize(
    "name", ["recalls", "impute", "chosen", "certificate", "support_vectors", "process_peak_bytes"]
)
def test_values_that_may_be_none_may_be_absent(capsys, fitted, name):
    model = mercer.load(fitted)
    del model.report_[name]
    mercer.save(model, "old.mercer")
    assert run(capsys, "inspect", "old.mercer")[0] == 0


@pytest.fixture(scope="module")
def fitted(tmp_path_factory):
    path = tmp_path_factory.mktemp("model") / "t.mercer"
    data = path.with_suffix(".csv")
    pd.DataFrame({"x": range(20), "y": [0, 1] * 10}).to_csv(data, index=False)
    assert main(["fit", str(data), "-t", "y", "--model", "svc", "--set", "C=1", "-o", str(path), "-q"]) == 0
    return path


@pytest.mark.parametrize("half", ["\\ud800", "\\udfff\\ud800"])
def test_graphs_with_half_a_character(capsys, half):
    graph = '{"graph": {"label": "%s"}, "nodes": [{"id": 0, "label": "a"}], "edges": []}'
    with open("g.json", "w", encoding="utf-8") as file:
        file.write(f"[{graph % half}]")
    assert "g.json cannot be read as JSON: 'utf-8' codec can't encode" in fails(capsys, "fit", "g.json", "-t", "label")
    # Both halves are a character.
    whole = ", ".join(graph % name for name in ["\\ud83d\\ude42", "b"] * 6)
    with open("g.json", "w", encoding="utf-8") as file:
        file.write(f"[{whole}]")
    assert run(capsys, "fit", "g.json", "-t", "label", "--model", "svc", "--set", "C=1", "-q")[0] == 0
