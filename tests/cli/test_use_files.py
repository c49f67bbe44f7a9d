"""One table in files of many forms: every command reads the same rows from each."""

from __future__ import annotations

import gzip
import io
import json
import sys
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import mercer
from cli_output import refusal
from mercer.cli import main

RNG = np.random.default_rng(3)
X = RNG.uniform(size=60)
TOWNS = RNG.choice(["Zürich", "Évian", "Ulm"], 60)
TABLE = pd.DataFrame({"maß": X.round(3), "town": TOWNS, "y": (3 * X + (TOWNS == "Ulm")).round(4)})
TEXT = TABLE.to_csv(index=False)
FIT = ("-t", "y", "--model", "ridge", "--no-refit")


def zipped(data: bytes, name: str) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        archive.writestr(name, data)
    return out.getvalue()


FORMS: dict[str, tuple[bytes, list[str]]] = {
    "plain.csv": (TEXT.encode(), []),
    "windows.csv": (TEXT.encode("cp1252"), ["--encoding", "cp1252"]),
    "unicode.txt": (TEXT.replace(",", "\t").encode("utf-16"), []),
    "mac.csv": (TEXT.replace("\n", "\r").encode(), []),
    "packed.csv.gz": (gzip.compress(TEXT.encode()), []),
    "archive.zip": (zipped(TEXT.encode(), "rows.csv"), []),
    "old.zip": (zipped(TEXT.replace(",", ";").encode("latin-1"), "old.csv"), ["--encoding", "latin-1"]),
}


@pytest.fixture(autouse=True)
def _files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("MERCER_DEBUG", raising=False)
    monkeypatch.setenv("COLUMNS", "120")
    for name, (data, _) in FORMS.items():
        Path(name).write_bytes(data)


def refused(capsys: Any, *arguments: str) -> str:
    code = main(list(arguments))
    assert code == 2
    return refusal(capsys.readouterr().err)


def run(capsys: Any, *arguments: str) -> str:
    code = main(list(arguments))
    captured = capsys.readouterr()
    assert code == 0, captured.err
    return str(captured.out)


@pytest.mark.parametrize("way", [(), ("--approximation", "nystroem", "--landmarks", "20")], ids=["whole", "blocks"])
def test_every_form_gives_the_same_model_and_predictions(capsys: Any, way: tuple[str, ...]) -> None:
    models = []
    for name in ("plain.csv", "old.zip", "unicode.txt"):
        run(capsys, "fit", name, *FIT, *FORMS[name][1], *way, "-o", "m.mercer")
        models.append(run(capsys, "predict", "m.mercer", "plain.csv"))
    assert len(set(models)) == 1
    assert {run(capsys, "predict", "m.mercer", name, *options) for name, (_, options) in FORMS.items()} == set(models)


@pytest.mark.slow
def test_commands_that_take_a_model_and_rows_read_other_encodings(capsys: Any) -> None:
    run(capsys, "fit", "plain.csv", *FIT, "-o", "m.mercer")
    encoding = ("--encoding", "cp1252")
    run(capsys, "explain", "m.mercer", "windows.csv", "--row", "2", *encoding)
    run(capsys, "plot", "m.mercer", "windows.csv", "--what", "relevance", *encoding, "-o", "a.svg")
    run(capsys, "report", "m.mercer", "windows.csv", *encoding, "-o", "a.html")
    assert Path("a.svg").stat().st_size and Path("a.html").stat().st_size


def test_folders_and_patterns_in_another_encoding(capsys: Any) -> None:
    run(capsys, "fit", "plain.csv", *FIT, "-o", "m.mercer")
    Path("parts").mkdir()
    for number in range(3):
        Path(f"parts/{number}.csv").write_bytes(
            TABLE[20 * number : 20 * number + 20].to_csv(index=False).encode("cp1252")
        )
    whole = run(capsys, "predict", "m.mercer", "plain.csv")
    for data in ("parts", "parts/*.csv"):
        run(capsys, "predict", "m.mercer", data, "--encoding", "cp1252", "-o", "p.csv")
        assert np.allclose(pd.read_csv("p.csv")["y"], pd.read_csv(io.StringIO(whole))["y"])
        assert json.loads(run(capsys, "evaluate", "m.mercer", data, "--encoding", "cp1252", "--json"))["rows"] == 60


def test_the_remedy_of_a_wrong_encoding_is_an_option_that_helps(capsys: Any) -> None:
    message = refused(capsys, "fit", "windows.csv", *FIT, "-o", "m.mercer")
    assert "windows.csv, line 1, column 3: the byte 0xdf is not UTF-8 text" in message
    assert "Name its encoding, as in --encoding cp1252" in message
    run(capsys, "fit", "windows.csv", *FIT, "--encoding", "cp1252", "-o", "m.mercer")


def test_the_encoding_is_part_of_the_command_of_a_model(capsys: Any) -> None:
    run(capsys, "fit", "windows.csv", *FIT, "--encoding", "cp1252", "-o", "m.mercer")
    assert "--encoding cp1252" in mercer.load("m.mercer").report_["command"]


def test_standard_input_in_another_encoding(capsys: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    run(capsys, "fit", "plain.csv", *FIT, "-o", "m.mercer")
    expected = run(capsys, "predict", "m.mercer", "plain.csv")
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(TEXT.encode("cp1252"))))
    assert run(capsys, "predict", "m.mercer", "-", "--encoding", "cp1252") == expected


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["plain.csv", "--encoding", "klingon"], "there is no encoding of text 'klingon'"),
        (["sample:iris", "--encoding", "cp1252"], "is not a file, so it has no encoding"),
        (["plain.csv", "--sheet", "2"], "plain.csv has no sheets, so none can be chosen; leave --sheet out"),
        ([".", "--sheet", "2"], "has no sheets"),
        (["plain.csv", "--sheet", "2", "--approximation", "nystroem"], "cannot be combined with --sheet"),
        (["plain.csv", "--encoding", "klingon", "--approximation", "nystroem"], "there is no encoding of text"),
    ],
)
def test_forms_that_do_not_exist(capsys: Any, options: list[str], words: str) -> None:
    assert words in refused(capsys, "fit", *options, "-t", "y")


def test_classes_that_are_whole_numbers_stay_whole_in_blocks(capsys: Any) -> None:
    TABLE.assign(y=np.where(X > 0.5, 2, 1)).to_csv("classes.csv", index=False)
    run(capsys, "fit", "classes.csv", "-t", "y", "--approximation", "nystroem", "--landmarks", "20", "-o", "m.mercer")
    predicted = run(capsys, "predict", "m.mercer", "classes.csv", "--proba")
    assert predicted.splitlines()[0] == "y,P(1),P(2)"
    assert set(pd.read_csv(io.StringIO(predicted), dtype=str)["y"]) == {"1", "2"}


def test_text_beyond_the_budget_is_refused(capsys: Any) -> None:
    with gzip.open("bomb.csv.gz", "wb") as file:
        file.write(b"a,y\n1,2\n" + b"x" * 30_000_000 + b",1\n")
    for way in ([], ["--approximation", "nystroem"]):
        message = refused(capsys, "fit", "bomb.csv.gz", "-t", "y", "--memory", "20MiB", *way)
        assert "bomb.csv.gz (more than" in message and "Raise the budget with --memory" in message
