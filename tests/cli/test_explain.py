"""``mercer explain``: the parts of a row on the command line."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import mercer
from cli_output import messages
from mercer.cli import main

ROWS = """message,label
win a free prize now,spam
"free entry, win cash",spam
claim your prize today,spam
see you at lunch,mail
call me when home,mail
at home all day,mail
"""


@pytest.fixture(autouse=True)
def _in_an_empty_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    (tmp_path / "sms.csv").write_text(ROWS, encoding="utf-8")


def run(capsys: Any, *arguments: Any) -> tuple[int, str, str]:
    code = main([str(argument) for argument in arguments])
    captured = capsys.readouterr()
    return code, captured.out, captured.err


@pytest.fixture(scope="module")
def fitted(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """The file of a model of these rows, which is fitted once."""
    folder = tmp_path_factory.mktemp("fitted")
    (folder / "sms.csv").write_text(ROWS, encoding="utf-8")
    options = ["-t", "label", "--text", "message", "--model", "svc", "--test-size", "0", "-q"]
    assert main(["fit", str(folder / "sms.csv"), *options, "-o", str(folder / "sms.mercer")]) == 0
    return (folder / "sms.mercer").read_bytes()


@pytest.fixture
def spam(fitted: bytes) -> str:
    Path("sms.mercer").write_bytes(fitted)
    return "sms.mercer"


@pytest.fixture
def iris(capsys: Any) -> str:
    assert run(capsys, "fit", "sample:iris", "--model", "svc", "-q", "-o", "iris.mercer")[0] == 0
    return "iris.mercer"


def explained(capsys: Any, *arguments: Any) -> dict[str, Any]:
    code, out, err = run(capsys, "explain", *arguments, "--json")
    assert (code, err) == (0, "")
    result: dict[str, Any] = json.loads(out)
    return result


def test_it_prints_parts_with_values_the_intercept_and_the_sum(capsys: Any, spam: str) -> None:
    code, out, err = run(capsys, "explain", spam, "sms.csv", "--row", 3, "--top", 4)
    assert code == 0 and err.startswith("Reading the model sms.mercer")
    words = ("label of line 4, spam against mail", "value", "part", "places", "(intercept)", "(sum)", "other parts")
    for word in words:
        assert word in " ".join(out.split())
    assert "sum to the decision value" in out


def test_json_has_all_parts_and_they_sum_to_the_decision_value(capsys: Any, spam: str) -> None:
    result = explained(capsys, spam, "sms.csv", "--row", 2)
    model = mercer.load(spam)
    value = model.estimator_.decision_function(model.encoder_.transform(pd.read_csv("sms.csv")[["message"]]))[1]
    total = sum(part["value"] for part in result["parts"]) + result["intercept"]
    assert result["method"] == "exact" and result["output"] == "spam against mail" and result["row"] == 2
    assert [total, result["decision"], result["sum"]] == pytest.approx([value] * 3)
    part = next(part for part in result["parts"] if part["name"] == "fre")
    assert part["places"] == [0, 1, 2] and part["kind"] == "substring"


@pytest.mark.parametrize("suffix", [".csv", ".tsv", ".parquet", ".json"])
def test_all_parts_are_written(capsys: Any, spam: str, suffix: str) -> None:
    whole = explained(capsys, spam, "sms.csv", "--row", 1)
    code, out, _ = run(capsys, "explain", spam, "sms.csv", "--row", 1, "--top", 2, "--out", f"parts{suffix}")
    assert code == 0 and f"Wrote {len(whole['parts'])} parts to parts{suffix}." in out
    path = Path(f"parts{suffix}")
    if suffix == ".json":
        assert json.loads(path.read_text(encoding="utf-8")) == whole
        return
    if suffix == ".parquet":
        values = pd.read_parquet(path)["value"].tolist()
    else:
        with path.open(encoding="utf-8", newline="") as file:
            values = [float(row["value"]) for row in csv.DictReader(file, delimiter="," if suffix == ".csv" else "\t")]
    np.testing.assert_allclose(values, [part["value"] for part in whole["parts"]])


def test_a_class_and_a_pair(capsys: Any, spam: str, iris: str) -> None:
    mail, other = (explained(capsys, spam, "sms.csv", "--row", 1, *more) for more in (["--class", "mail"], []))
    assert mail["decision"] == -other["decision"] and mail["output"] == "mail against spam"
    pair = explained(capsys, iris, "sample:iris", "--row", 60, "--class", "setosa,virginica")
    assert pair["output"] == "setosa against virginica" and pair["method"] == "left out"
    assert pair["parts"][0]["name"] == "sepal length (cm)"


def test_rows_of_the_fit(capsys: Any, spam: str) -> None:
    result = explained(capsys, spam, "sms.csv", "--row", 1, "--by", "rows")
    assert {part["kind"] for part in result["parts"]} == {"training row"}
    assert result["sum"] == pytest.approx(result["decision"])


def test_numbers_are_explained_in_their_unit(capsys: Any) -> None:
    x = np.arange(30.0)
    pd.DataFrame({"size": x, "price": 1000.0 + 20.0 * x}).to_csv("houses.csv", index=False)
    assert run(capsys, "fit", "houses.csv", "-t", "price", "--model", "ridge", "-k", "linear", "-q")[0] == 0
    result = explained(capsys, "houses.mercer", "houses.csv", "--row", 30)
    predicted = mercer.load("houses.mercer").predict(pd.DataFrame({"size": [29.0]}))[0]
    assert result["sum"] == pytest.approx(predicted) and result["output"] is None
    code, out, _ = run(capsys, "explain", "houses.mercer", "houses.csv", "--row", 30)
    words = " ".join(out.split())
    assert code == 0 and f"price of line 31: prediction {predicted:.6g}" in words
    assert "sum to the prediction" in words and "decision value" not in words
    code, _, err = run(capsys, "explain", "houses.mercer", "houses.csv", "--row", 1, "--class", "a")
    assert code == 2 and "predicts numbers" in err


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--row", "7"], "sms.csv has 6 rows; choose a number from 1 to 6"),
        (["--row", "0"], "--row must be a whole number of at least 1"),
        (["--row", "-3"], "--row must be a whole number of at least 1"),
        (["--row", "1", "--top", "0"], "--top must be a whole number of at least 1"),
        (["--row", "1", "--by", "columns"], "--by must be parts or rows"),
        (
            ["--row", "1", "--class", "ham"],
            "--class ham: the classes are 'mail', 'spam'; name one of them, as in --class mail.",
        ),
        (["--row", "1", "--class", "mail,spam"], "--class mail,spam: the classes are 'mail', 'spam'; name one of them"),
        (["--row", "1", "--class", "spam,spam"], "name one of them, as in --class mail"),
        (["--row", "1", "--out", "parts.txt"], "contributions are written as .csv"),
        (["--row", "1", "--out", "sms.csv"], "would be overwritten"),
        (["--row", "1", "--out", "missing/parts.csv"], "does not exist"),
        (["--row", "one"], "--row"),
        ([], "--row"),
    ],
)
def test_mistakes(capsys: Any, spam: str, arguments: list[str], words: str) -> None:
    code, out, err = run(capsys, "explain", spam, "sms.csv", *arguments)
    assert (code, out) == (2, "") and words in " ".join(messages(err))


@pytest.mark.parametrize(
    "label",
    ["setosa", "setosa,roses", *(pytest.param(label, marks=pytest.mark.slow) for label in ("roses", "setosa,setosa"))],
)
def test_a_model_of_pairs_needs_a_pair(capsys: Any, iris: str, label: str) -> None:
    code, _, err = run(capsys, "explain", iris, "sample:iris", "--row", 1, "--class", label)
    message = " ".join(messages(err))
    assert code == 2 and f"--class {label}: the classes are 'setosa', 'versicolor', 'virginica'" in message
    assert "decides between pairs of classes, so name a pair such as --class setosa,versicolor." in message
    assert explained(capsys, iris, "sample:iris", "--row", 1, "--class", "setosa,versicolor")["output"]


def test_a_model_of_classes_needs_one(capsys: Any) -> None:
    options = ["--model", "logistic", "--set", "C=1", "-q", "-o", "iris.mercer"]
    assert run(capsys, "fit", "sample:iris", *options)[0] == 0
    code, _, err = run(capsys, "explain", "iris.mercer", "sample:iris", "--row", 1, "--class", "setosa,virginica")
    assert code == 2 and "name one of them, as in --class setosa." in " ".join(messages(err))
    assert explained(capsys, "iris.mercer", "sample:iris", "--row", 1, "--class", "setosa")["output"] == "setosa"


def test_ordered_classes_have_one_decision_value(capsys: Any) -> None:
    x = np.arange(30)
    pd.DataFrame({"size": x, "grade": 1 + x // 10}).to_csv("grades.csv", index=False)
    assert run(capsys, "fit", "grades.csv", "-t", "grade", "--model", "ordinal", "-q")[0] == 0
    code, _, err = run(capsys, "explain", "grades.mercer", "grades.csv", "--row", 1, "--class", "1")
    assert code == 2 and "one decision value for all classes; leave out --class." in " ".join(messages(err))
    assert explained(capsys, "grades.mercer", "grades.csv", "--row", 1)["output"] is None


def test_messages_name_the_file_and_the_place_of_the_row(capsys: Any) -> None:
    x = np.arange(20.0)
    frame = pd.DataFrame({"a": x, "b": x % 3, "town": np.where(x % 2, "Ulm", "Zug"), "y": x})
    frame.to_csv("train.csv", index=False)
    assert run(capsys, "fit", "train.csv", "-t", "y", "--model", "svr", "--set", "C=1", "-q")[0] == 0
    frame.loc[1, "b"] = np.inf
    frame.loc[2, "town"] = "Bonn"
    frame.to_csv("new.csv", index=False)
    frame.drop(columns="b").to_csv("narrow.csv", index=False)
    picture = ["--what", "contributions", "-o", "row.svg"]
    for command, options in (("explain", []), ("plot", picture)):
        code, _, err = run(capsys, command, "train.mercer", "new.csv", "--row", 2, *options)
        assert code == 2 and "new.csv, line 3, column 'b': the value is infinite" in " ".join(messages(err))
        code, _, err = run(capsys, command, "train.mercer", "narrow.csv", "--row", 1, *options)
        assert code == 2 and "narrow.csv lacks 1 of the 3 columns" in " ".join(messages(err))
        # A note comes once. The infinite value is in another row.
        code, _, err = run(capsys, command, "train.mercer", "new.csv", "--row", 3, *options)
        assert code == 0 and err.count("'Bonn'") == 1 and "new.csv: column 'town'" in err


def test_a_pattern_of_files_and_a_model_without_a_decision_value(capsys: Any, spam: str) -> None:
    code, _, err = run(capsys, "explain", spam, "*.csv", "--row", 1)
    assert code == 2 and "name the one file" in err
    run(capsys, "fit", "sample:iris", "--model", "neighbors", "-q", "-o", "votes.mercer")
    code, _, err = run(capsys, "explain", "votes.mercer", "sample:iris", "--row", 1)
    assert code == 2 and "KernelNeighborsClassifier has no decision value" in err
    assert "Fit again with a model of one kernel (--model svc," in err and "sklearn" not in err


def test_the_default_model_is_explained_by_columns(capsys: Any) -> None:
    x = np.arange(24.0)
    frame = pd.DataFrame({"size": x, "town": np.where(x % 2, "Ulm", "Zug"), "price": 10.0 * x + 50.0 * (x % 2)})
    frame.to_csv("homes.csv", index=False)
    assert run(capsys, "fit", "homes.csv", "-t", "price", "-q")[0] == 0
    result = explained(capsys, "homes.mercer", "homes.csv", "--row", 20)
    predicted = mercer.load("homes.mercer").predict(frame[19:20])[0]
    assert result["decision"] == pytest.approx(predicted) and result["method"] == "left out"
    values = {part["name"]: part["value"] for part in result["parts"]}
    assert list(values) == ["size", "town"] and all(value > 0 for value in values.values())
    code, _, err = run(capsys, "explain", "homes.mercer", "homes.csv", "--row", 1, "--by", "rows")
    assert code == 2 and "does not keep which rows of its fit its values belong to; use --by parts" in err
    picture = ["--what", "contributions", "--row", 1, "-o", "row.svg"]
    assert run(capsys, "plot", "homes.mercer", "homes.csv", *picture)[0] == 0


def test_a_failure_in_json(capsys: Any, spam: str) -> None:
    code, out, _ = run(capsys, "explain", spam, "sms.csv", "--row", 9, "--json")
    assert code == 2 and json.loads(out)["exit_code"] == 2
