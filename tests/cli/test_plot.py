"""``mercer plot``, and ``mercer inspect --command``."""

from __future__ import annotations

import contextlib
import json
import shlex
import shutil
import xml.etree.ElementTree as ET

import numpy as np
import pandas as pd
import pytest

from cli_output import refusal
from mercer.cli import main
from mercer.cli.checks import PLOTS
from mercer.cli.plot import _KINDS

RNG = np.random.default_rng(0)


@pytest.fixture(scope="module")
def fitted(tmp_path_factory):
    folder = tmp_path_factory.mktemp("plots")
    X = RNG.normal(size=(40, 3))
    frame = pd.DataFrame(X, columns=["length", "$width$", "depth"])
    kinds = np.where(X[:, 0] ** 2 + X[:, 1] > 0.5, "big", "small")
    frame.assign(kind=kinds, price=100 + 10 * np.sin(X[:, 0])).to_csv(folder / "a.csv", index=False)
    grades = np.array(["1", "2", "3"])[np.digitize(X[:, 0], [-0.5, 0.5])]
    frame.assign(grade=grades).to_csv(folder / "grades.csv", index=False)
    few = ["--set", "C=10", "-q"]
    with contextlib.chdir(folder):
        assert main(["fit", "a.csv", "-t", "kind", "--drop", "price", "--model", "svc", *few, "-o", "svc.mercer"]) == 0
        assert main(["fit", "a.csv", "-t", "price", "--drop", "kind", "--model", "svr", *few, "-o", "svr.mercer"]) == 0
        assert main(["fit", "grades.csv", "-t", "grade", "--model", "ordinal", "-q", "-o", "ordinal.mercer"]) == 0
    return folder


@pytest.fixture
def folder(tmp_path, monkeypatch, fitted):
    monkeypatch.chdir(tmp_path)
    shutil.copytree(fitted, tmp_path, dirs_exist_ok=True)
    return tmp_path


@pytest.mark.parametrize(
    ("model", "data", "what"),
    [
        ("svc", "a.csv", "boundary"),
        ("svc", "a.csv", "gram"),
        ("svc", "a.csv", "margins"),
        ("svc", "a.csv", "relevance"),
        ("svc", "a.csv", "spectrum"),
        ("svr", "a.csv", "tube"),
        ("ordinal", "grades.csv", "ordinal"),
    ],
)
def test_pictures(folder, capsys, model, data, what):
    assert main(["plot", f"{model}.mercer", data, "--what", what, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found == {"picture": f"{model}_{what}.svg", "what": what, "rows": 40}
    first = (folder / found["picture"]).read_text(encoding="utf-8")
    assert first.rstrip().endswith("</svg>")
    if what in ("boundary", "tube"):
        # The same picture is the same file.
        assert main(["plot", f"{model}.mercer", data, "--what", what, "-q"]) == 0
        assert (folder / found["picture"]).read_text(encoding="utf-8") == first


def test_contributions_of_a_row(folder, capsys):
    """The row and its class are chosen as by mercer explain."""
    arguments = ["svc.mercer", "a.csv", "--row", "17", "--class", "small"]
    assert main(["explain", *arguments, "--json"]) == 0
    explained = json.loads(capsys.readouterr().out)
    assert main(["plot", *arguments, "--what", "contributions", "--json"]) == 0
    picture = folder / "svc_contributions_17.svg"
    assert json.loads(capsys.readouterr().out) == {"picture": picture.name, "what": "contributions", "row": 17}
    # matplotlib writes texts beside their outlines.
    title = f"decision value {explained['decision']:.4g} for small against big"
    assert explained["output"] == "small against big" and title in picture.read_text(encoding="utf-8")
    # Other rows have other pictures.
    assert main(["plot", "svc.mercer", "a.csv", "--row", "18", "--what", "contributions", "-q"]) == 0
    assert (folder / "svc_contributions_18.svg").read_bytes() != picture.read_bytes()


def test_every_picture_can_be_named():
    assert tuple(_KINDS) == tuple(PLOTS)


def test_pictures_are_listed_where_none_is_named(folder, capsys):
    assert main(["plot", "svc.mercer", "a.csv"]) == 2
    *lines, error = capsys.readouterr().err.splitlines()
    assert [line.split()[1] for line in lines] == list(PLOTS) and all(len(line) <= 100 for line in lines)
    assert error == "mercer: --what is missing; choose one of these pictures."


def test_columns_and_formats(folder):
    columns = ["--column", "depth", "--column", "$width$"]
    assert main(["plot", "svc.mercer", "a.csv", "--what", "boundary", *columns, "-o", "b.png", "-q"]) == 0
    assert (folder / "b.png").read_bytes().startswith(b"\x89PNG")
    assert main(["plot", "svc.mercer", "a.csv", "--what", "boundary", "--column", "depth", "-o", "b.pdf", "-q"]) == 0
    assert (folder / "b.pdf").read_bytes().startswith(b"%PDF")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["svc.mercer", "a.csv", "--what", "portrait"], "--what must be boundary or contributions"),
        (["svc.mercer", "a.csv", "--what", "gram", "-o", "a.gif"], ".svg, .png, .pdf"),
        (["svc.mercer", "a.csv", "--what", "gram", "--column", "depth"], "--column is for --what boundary"),
        (["svr.mercer", "a.csv", "--what", "boundary"], "needs a classifier, but the model is SVR"),
        (["svc.mercer", "a.csv", "--what", "tube"], "it has the pictures boundary, contributions, gram, margins"),
        (["svc.mercer", "a.csv", "--what", "boundary", "--column", "lenght"], "Did you mean 'length'?"),
        (["svc.mercer", "a.csv", "--what", "boundary", "--column", "0"], "--column 0: the model has no such column."),
        (
            ["svc.mercer", "a.csv", "--what", "boundary", "--column", "depth", "--column", "depth"],
            "--column names 'depth' twice; name two different columns, or give the option once.",
        ),
        (["svr.mercer", "none.csv", "--what", "gram"], "none.csv does not exist"),
        (["svc.mercer", "a.csv", "--what", "contributions"], "name it, as in --row 17"),
        (
            ["svc.mercer", "a.csv", "--what", "contributions", "--row", "0"],
            "--row must be a whole number of at least 1",
        ),
        (["svc.mercer", "a.csv", "--what", "contributions", "--row", "41"], "choose a number from 1 to 40"),
        (["svc.mercer", "a.csv", "--what", "contributions", "--row", "1", "--class", "huge"], "the classes are"),
        (["svr.mercer", "a.csv", "--what", "contributions", "--row", "1", "--class", "big"], "predicts numbers"),
        (["svc.mercer", "a.csv", "--what", "gram", "--row", "3"], "--row is for --what contributions"),
        (["svc.mercer", "a.csv", "--what", "gram", "--class", "big"], "--class is for --what contributions"),
        (["svr.mercer", "grades.csv", "--what", "tube"], "the target 'price', which DATA does not have"),
        (["a.csv", "a.csv", "--what", "gram"], "a.csv"),
    ],
)
def test_what_is_wrong_is_said(folder, capsys, arguments, words):
    before = sorted(path.name for path in folder.iterdir())
    assert main(["plot", *arguments]) != 0
    # A note may say before which columns the model does not know.
    notes = "mercer: note: "
    errors = [line for line in capsys.readouterr().err.splitlines() if not line.startswith(notes)]
    assert words in refusal("\n".join(errors))
    assert sorted(path.name for path in folder.iterdir()) == before


def test_the_command_makes_the_model_again(folder, capsys):
    assert main(["inspect", "svr.mercer", "--command"]) == 0
    command = shlex.split(capsys.readouterr().out.strip())
    assert command[:3] == ["mercer", "fit", "a.csv"]
    assert main([*command[1:], "-o", "again.mercer", "-q"]) == 0
    assert main(["predict", "svr.mercer", "a.csv", "--out", "one.csv", "-q"]) == 0
    assert main(["predict", "again.mercer", "a.csv", "--out", "two.csv", "-q"]) == 0
    assert (folder / "one.csv").read_bytes() == (folder / "two.csv").read_bytes()
    capsys.readouterr()
    assert main(["inspect", "svr.mercer", "--command", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["command"].startswith("mercer fit a.csv") and len(found["data_sha256"]) == 64


@pytest.mark.slow
@pytest.mark.parametrize("what", ["boundary", "gram", "relevance"])
def test_names_that_no_picture_can_hold_are_cut_and_escaped(tmp_path, monkeypatch, capsys, what):
    monkeypatch.chdir(tmp_path)
    X = RNG.normal(size=(40, 2))
    frame = pd.DataFrame(X, columns=["\x07length\x1b[2J", "w" * 3000])
    frame.assign(kind=np.where(X[:, 0] > 0, "big\x1b[1m", "small\x00")).to_parquet("a.parquet")
    assert main(["fit", "a.parquet", "-t", "kind", "--model", "svc", "--set", "C=1", "-q"]) == 0
    capsys.readouterr()
    assert main(["plot", "a.mercer", "a.parquet", "--what", what, "-o", "a.svg"]) == 0
    assert "note" not in capsys.readouterr().err
    ET.parse("a.svg")


@pytest.mark.parametrize("rows", ["one row", "one class"])
def test_margins_of_rows_of_one_class(folder, rows):
    table = pd.read_csv("a.csv")
    table = table[table["kind"] == "small"]
    (table.iloc[:1] if rows == "one row" else table).to_csv("part.csv", index=False)
    assert main(["plot", "svc.mercer", "part.csv", "--what", "margins", "-q"]) == 0
