"""``mercer fit --calibrate``: intervals, sets of classes and probabilities of models that have none of their own."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import log_loss

import mercer
from cli_output import refusal
from mercer.cli import main
from mercer.cli.hold_out import hold_out
from mercer.data.target import read_target


@pytest.fixture(autouse=True)
def _table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("MERCER_DEBUG", raising=False)
    monkeypatch.setenv("COLUMNS", "120")
    for name, seed in (("old.csv", 0), ("new.csv", 1)):
        rng = np.random.default_rng(seed)
        size = rng.uniform(0, 6, 200)
        level = np.sin(size) + 0.3 * rng.normal(size=200)
        kind = np.array(["low", "middle", "high"])[np.digitize(size + 0.5 * rng.normal(size=200), [2.0, 4.0])]
        pd.DataFrame({"size": size, "level": level, "kind": kind}).to_csv(name, index=False)


def run(capsys: Any, *arguments: str) -> tuple[int, str, str]:
    code = main(list(arguments))
    captured = capsys.readouterr()
    return code, captured.out, captured.err


def fitted(capsys: Any, *options: str) -> dict[str, Any]:
    code, out, err = run(capsys, "fit", "old.csv", "-o", "m.mercer", "--json", "--calibrate", *options)
    assert code == 0, err
    return json.loads(out)


NUMBERS = ("-t", "level", "--drop", "kind", "--model", "svr", "--set", "C=1")
CLASSES = ("-t", "kind", "--drop", "level", "--model", "svc", "--set", "C=1")


@pytest.mark.parametrize(
    ("options", "method", "words"),
    [
        ([], "CV+ of 5 folds of 200 rows", "by CV+ of 5 folds, without a guarantee"),
        (
            ["--no-refit", "--test-size", "0.4"],
            "split conformal prediction by the 80 rows held out",
            "by split conformal prediction, guaranteed for exchangeable rows",
        ),
    ],
)
def test_numbers_have_intervals(capsys: Any, options: list[str], method: str, words: str) -> None:
    assert fitted(capsys, *NUMBERS, *options)["calibration"] == method
    code, out, err = run(capsys, "predict", "m.mercer", "new.csv", "--drop", "kind", "--interval", "0.9")
    assert code == 0 and words in err
    frame, truth = pd.read_csv(io.StringIO(out)), pd.read_csv("new.csv")["level"]
    assert 0.84 < np.mean((frame["level 5%"] <= truth) & (truth <= frame["level 95%"])) < 0.97
    code, out, _ = run(capsys, "inspect", "m.mercer")
    assert code == 0 and f"by {method}" in out


@pytest.mark.parametrize("options", [[], ["--no-refit", "--test-size", "0.4"]], ids=["folds", "held out"])
def test_classes_have_sets_and_probabilities(capsys: Any, options: list[str]) -> None:
    fitted(capsys, *CLASSES, *options)
    arguments = ["predict", "m.mercer", "new.csv", "--drop", "level", "--interval", "0.9", "--proba"]
    code, out, err = run(capsys, *arguments)
    assert code == 0, err
    frame, truth = pd.read_csv(io.StringIO(out)), pd.read_csv("new.csv")["kind"]
    assert frame.columns.tolist() == ["kind", "kind 90%", "P(high)", "P(low)", "P(middle)"]
    sets = [set(text.split("|")) for text in frame["kind 90%"]]
    assert 0.84 < np.mean([label in labels for label, labels in zip(truth, sets, strict=True)]) < 0.98
    assert all(label in labels for label, labels in zip(frame["kind"], sets, strict=True))
    np.testing.assert_allclose(frame.iloc[:, 2:].sum(axis=1), 1.0)
    # The most probable class is nearly always the predicted one.
    assert (
        np.mean(frame.columns[2:].to_numpy()[frame.iloc[:, 2:].to_numpy().argmax(axis=1)] == "P(" + truth + ")") > 0.7
    )


@pytest.mark.parametrize(
    "given", [("svc", "C=1"), ("nu-svc", "nu=0.3"), ("perceptron", "max_iter=5")], ids=lambda g: g[0]
)
def test_models_with_calibrated_probabilities_are_evaluated(capsys: Any, given: tuple[str, str]) -> None:
    fitted(capsys, "-t", "kind", "--drop", "level", "--model", given[0], "--set", given[1])
    code, out, err = run(capsys, "evaluate", "m.mercer", "new.csv", "--drop", "level", "--json")
    assert code == 0, err
    scores = json.loads(out)["scores"]
    _, out, _ = run(capsys, "predict", "m.mercer", "new.csv", "--drop", "level", "--proba")
    frame, truth = pd.read_csv(io.StringIO(out)), pd.read_csv("new.csv")["kind"]
    assert scores["log_loss"] == pytest.approx(log_loss(truth, frame.iloc[:, 1:]))
    assert scores["accuracy"] == pytest.approx(np.mean(frame["kind"] == truth))


def test_a_target_and_classes_of_unusual_names(capsys: Any) -> None:
    for name in ("old.csv", "new.csv"):
        frame = pd.read_csv(name).drop(columns="level")
        frame["kind"] = frame["kind"].map({"low": "a", "middle": "a|b", "high": 'c"'})
        frame.rename(columns={"kind": "P(a)"}).to_csv(name, index=False)
    assert fitted(capsys, "-t", "P(a)", "--model", "svc", "--set", "C=1")["classes"] == ["a", "a|b", 'c"']
    code, out, err = run(capsys, "predict", "m.mercer", "new.csv", "--interval", "0.9", "--proba")
    assert code == 0, err
    frame = pd.read_csv(io.StringIO(out))
    assert frame.columns.tolist() == ["P(a)", "P(a) 90%", "P(a)_", "P(a|b)", 'P(c")']
    assert set(frame["P(a)"]) == {"a", "a|b", 'c"'} and frame["P(a)_"].between(0, 1).all()
    sets = list(csv.reader(frame["P(a) 90%"], delimiter="|"))
    assert {len(labels) for labels in sets} >= {1, 2} and {label for labels in sets for label in labels} == set(
        frame["P(a)"]
    )
    assert all(label in labels for label, labels in zip(frame["P(a)"], sets, strict=True))


def test_what_was_fitted_without_is_told_to_be_fitted_with(capsys: Any) -> None:
    assert run(capsys, "fit", "old.csv", "-o", "m.mercer", "-q", *CLASSES)[0] == 0
    code, _, err = run(capsys, "predict", "m.mercer", "new.csv", "--interval", "0.9")
    assert code == 2 and "for sets of classes fit it again with --calibrate" in refusal(err)


@pytest.mark.slow
@pytest.mark.parametrize(("model", "given"), [("ridge", ["alpha=0.1"]), ("svr", ["C=1"]), ("gp", [])])
def test_numbers_over_landmarks_have_intervals_by_held_out_rows(capsys: Any, model: str, given: list[str]) -> None:
    options = ("-t", "level", "--drop", "kind", "--model", model, "--approximation", "nystroem", "--landmarks", "10")
    options += tuple(word for setting in ["gamma=1.0", *given] for word in ("--set", setting))
    rng = np.random.default_rng(3)
    size = rng.uniform(0, 6, 800)
    level = np.sin(size) + 0.3 * rng.normal(size=800)
    pd.DataFrame({"size": size, "level": level, "kind": "low"}).to_csv("old.csv", index=False)
    assert fitted(capsys, *options)["calibration"] == "split conformal prediction by the 80 rows held out"
    code, out, err = run(capsys, "predict", "m.mercer", "new.csv", "--drop", "kind", "--interval", "0.9")
    assert code == 0 and "by split conformal prediction, guaranteed for exchangeable rows" in err
    frame, truth = pd.read_csv(io.StringIO(out)), pd.read_csv("new.csv")["level"]
    assert 0.8 < np.mean((frame["level 5%"] <= truth) & (truth <= frame["level 95%"])) < 0.97
    old = pd.read_csv("old.csv")
    held_out = old.iloc[hold_out(read_target(old["level"], "level"), 0.1, 0)[1]]
    loaded = mercer.load("m.mercer")
    errors = np.sort(np.abs(held_out["level"] - loaded.predict(held_out[["size"]])))
    np.testing.assert_allclose(frame["level 95%"] - frame["level"], errors[72], rtol=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("model", ["svc", "logistic"])
def test_classes_over_landmarks_have_sets_by_held_out_rows(capsys: Any, model: str) -> None:
    options = ("-t", "kind", "--drop", "level", "--model", model, "--approximation", "nystroem", "--landmarks", "10")
    given = ("--set", "gamma=1.0", "--set", "C=1", "--test-size", "0.3")
    rows = len(hold_out(read_target(pd.read_csv("old.csv")["kind"], "kind"), 0.3, 0)[1])
    words = f"split conformal prediction by the {rows} rows held out"
    assert 54 <= rows <= 66 and fitted(capsys, *options, *given)["calibration"] == words
    code, out, err = run(capsys, "predict", "m.mercer", "new.csv", "--drop", "level", "--interval", "0.9", "--proba")
    assert code == 0, err
    frame, truth = pd.read_csv(io.StringIO(out)), pd.read_csv("new.csv")["kind"]
    sets = [set(text.split("|")) for text in frame["kind 90%"]]
    assert 0.75 < np.mean([label in labels for label, labels in zip(truth, sets, strict=True)]) < 1.0


def test_landmarks_without_held_out_rows_are_not_calibrated(capsys: Any) -> None:
    options = ("fit", "old.csv", "-t", "level", "--approximation", "nystroem", "--calibrate", "-o", "m.mercer")
    code, _, err = run(capsys, *options, "--test-size", "0")
    assert code == 2 and "--calibrate with --approximation learns from the rows held out" in refusal(err)
    pd.read_csv("old.csv").iloc[:2].to_csv("old.csv", index=False)
    code, _, err = run(capsys, *options, "--drop", "kind")
    assert (
        code == 2 and "2 rows are too few to hold out a share of 0.1" in refusal(err) and not Path("m.mercer").exists()
    )


def test_landmarks_without_calibration_say_how_to_get_intervals(capsys: Any) -> None:
    options = ("-t", "level", "--drop", "kind", "--approximation", "nystroem", "--landmarks", "10")
    assert run(capsys, "fit", "old.csv", "-o", "m.mercer", "-q", *options)[0] == 0
    code, _, err = run(capsys, "predict", "m.mercer", "new.csv", "--drop", "kind", "--interval", "0.9")
    assert (
        code == 2
        and "over landmarks keeps no other rows, and gives no intervals; fit it again with --calibrate."
        in (refusal(err))
    )
