"""``mercer fit --calibrate``: intervals, sets of classes and probabilities of models that have none of their own."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from cli_output import refusal
from mercer.cli import main


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


def test_what_was_fitted_without_is_told_to_be_fitted_with(capsys: Any) -> None:
    assert run(capsys, "fit", "old.csv", "-o", "m.mercer", "-q", *CLASSES)[0] == 0
    code, _, err = run(capsys, "predict", "m.mercer", "new.csv", "--interval", "0.9")
    assert code == 2 and "for sets of classes fit it again with --calibrate" in refusal(err)


def test_landmarks_are_not_calibrated(capsys: Any) -> None:
    code, _, err = run(capsys, "fit", "old.csv", "-t", "level", "--approximation", "nystroem", "--calibrate")
    assert code == 2 and "--approximation cannot be combined with --calibrate" in refusal(err)
