"""Fits over landmarks to files that are read in blocks, from the command line."""

from __future__ import annotations

import io
import json
import re
import shlex
import shutil
import warnings
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_diabetes
from sklearn.linear_model import RidgeCV

import mercer
from cli_output import refusal
from mercer._errors import MemoryBudgetError
from mercer._registered import MODELS, model_class
from mercer.certification import over_landmarks
from mercer.cli import landmark_distance, landmarks, main, use
from mercer.cli.checks import OVER_LANDMARKS
from mercer.cli.compare import advice_beside_constant
from mercer.cli.hold_out import hold_out
from mercer.cli.options import FitOptions
from mercer.data.blocks import reading
from mercer.data.target import read_target
from mercer.solvers.restricted.journal import Journal

N, PARTS = 100, 3
FIT = ["--approximation", "nystroem", "--landmarks", "60", "--set", "gamma=0.3"]
NUMBERS = ["-t", "heat", "--drop", "warm", *FIT, "--set", "alpha=0.01"]
CLASSES = ["-t", "warm", "--drop", "heat", *FIT, "--set", "C=10"]


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("files")
    random = np.random.default_rng(0)
    for number in range(PARTS):
        frame = pd.DataFrame({"load": random.normal(size=N), "town": random.choice(["Ulm", "Zug"], N)})
        frame["day"] = pd.date_range("2026-01-01", periods=N, freq="h")
        frame["heat"] = np.sin(frame["load"]) + (frame["town"] == "Ulm") + 0.1 * random.normal(size=N)
        frame["warm"] = np.where(frame["heat"] > 0.5, "yes", "no")
        frame.to_parquet(folder / f"{number}.parquet")
    return folder


@pytest.fixture(autouse=True)
def _rows(files: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("MERCER_DEBUG", raising=False)
    monkeypatch.setenv("COLUMNS", "120")
    shutil.copytree(files, "rows")


ON_LANDMARKS = ("fit", "-t", "y", "--approximation", "nystroem", "-o", "chosen.mercer")


def run(capsys: pytest.CaptureFixture[str], *arguments: Any) -> tuple[int, str, str]:
    code = main([str(argument) for argument in arguments])
    captured = capsys.readouterr()
    return code, captured.out, captured.err


def report_of(capsys: pytest.CaptureFixture[str], *arguments: Any) -> dict[str, Any]:
    code, out, err = run(capsys, *arguments, "--json")
    assert code == 0, err
    report: dict[str, Any] = json.loads(out)
    return report


def table(parts: int = PARTS) -> pd.DataFrame:
    return pd.concat([pd.read_parquet(f"rows/{number}.parquet") for number in range(parts)], ignore_index=True)


def drawn(y: pd.Series, share: float = 0.1) -> np.ndarray:
    """The rows that are held out of a table in memory."""
    mask = np.zeros(len(y), dtype=bool)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        mask[hold_out(read_target(y, "y"), share, 0)[1]] = True
    return mask


@pytest.mark.parametrize("data", ["rows/*.parquet", "rows"])
def test_numbers_of_several_files(capsys: pytest.CaptureFixture[str], data: str) -> None:
    report = report_of(capsys, "fit", data, *NUMBERS, "--no-refit", "-o", "heat.mercer")
    assert report["rows"] == {"all": 300, "fitted": 270, "held_out": 30} and not report["refitted"]
    assert report["model"] == "KernelRidge" and report["parameters"]["n_landmarks"] == 60
    model = mercer.load("heat.mercer")
    frame = table()
    held_out = frame[drawn(frame["heat"])]
    errors = held_out["heat"] - model.predict(held_out[["load", "town", "day"]])
    assert report["scores"]["KernelRidge"]["r2"] == pytest.approx(1 - errors.var() / held_out["heat"].var(), abs=0.01)
    assert report["scores"]["KernelRidge"]["r2"] > 0.9 > report["scores"]["mean of the target"]["r2"]


def test_the_rows_that_are_held_out_are_not_learned(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    fitted: list[np.ndarray] = []
    fit = mercer.KernelRidge.fit

    def recording(self: Any, X: Any, *more: Any, **options: Any) -> Any:
        fitted.append(np.concatenate([y for _, y, _ in X]))
        return fit(self, X, *more, **options)

    monkeypatch.setattr(mercer.KernelRidge, "fit", recording)
    options = ["fit", "rows", "-t", "heat", "--set", "alpha=0.1", *FIT, "-o", "heat.mercer"]
    report = report_of(capsys, *options)
    heat = table()["heat"].to_numpy()
    learned = heat[~drawn(table()["heat"])]
    np.testing.assert_allclose(fitted[0], (learned - learned.mean()) / learned.std())
    # After the score, the model is fitted to all rows, with the same penalty and kernel.
    np.testing.assert_allclose(fitted[1], (heat - learned.mean()) / learned.std())
    assert report["refitted"] and report["rows"] == {"all": 300, "fitted": 300, "held_out": 30}
    report = report_of(capsys, *options, "--test-size", "0")
    assert report["rows"]["held_out"] == 0 and len(fitted[2]) == 300 and report["scores"] == {} and len(fitted) == 3
    report = report_of(capsys, *options, "--test-size", "0.25", "--no-refit")
    assert report["rows"] == {"all": 300, "fitted": 225, "held_out": 75} and len(fitted) == 4


def test_rows_in_turns_of_ten_classes(capsys: pytest.CaptureFixture[str]) -> None:
    random = np.random.default_rng(0)
    turn = np.arange(400) % 10
    frame = pd.DataFrame({"a": turn + 0.1 * random.normal(size=400), "name": [f"class{i}" for i in turn]})
    frame.loc[7, "name"] = "seldom"
    frame.to_csv("turns.csv", index=False)
    options = ["-t", "name", "--approximation", "nystroem", "--landmarks", "40", "--set", "C=10", "--set", "gamma=1"]
    code, _, err = run(capsys, "fit", "turns.csv", *options, "--no-refit", "-o", "turns.mercer", "--json")
    assert code == 0 and "classes of 'name' with one row only stay in the training part: 'seldom'" in err
    mask = drawn(frame["name"])
    held_out = frame["name"][mask].value_counts()
    assert held_out.sum() == report_of(capsys, "inspect", "turns.mercer")["rows"]["held_out"]
    # A tenth of the forty rows of each class.
    assert held_out.drop("class7").to_dict() == {f"class{i}": 4 for i in range(10) if i != 7}
    assert held_out["class7"] in (3, 4)
    report = report_of(capsys, "inspect", "turns.mercer")
    assert report["classes"] == sorted(set(frame["name"]))
    wrong = mercer.load("turns.mercer").predict(frame[["a"]])[mask] != frame["name"][mask]
    assert (
        report["scores"]["KernelLogisticRegression"]["accuracy"] == pytest.approx(1 - wrong.mean())
        and wrong.mean() < 0.2
    )


def test_rows_in_turns_of_ten_stations(capsys: pytest.CaptureFixture[str]) -> None:
    turn = np.arange(400) % 10
    frame = pd.DataFrame({"station": [f"s{i}" for i in turn], "y": 100.0 * (turn == 9)})
    frame["y"] += np.random.default_rng(0).normal(size=400)
    frame.to_csv("turns.csv", index=False)
    report = report_of(capsys, *ON_LANDMARKS, "turns.csv", "--landmarks", "20")
    assert report["scores"]["KernelRidge"]["r2"] > 0.99


def test_classes_of_several_files(capsys: pytest.CaptureFixture[str]) -> None:
    report = report_of(capsys, "fit", "rows/*.parquet", *CLASSES, "-o", "warm.mercer")
    assert report["model"] == "KernelLogisticRegression" and report["classes"] == ["no", "yes"]
    assert report["scores"]["KernelLogisticRegression"]["accuracy"] > 0.85
    code, out, _ = run(capsys, "fit", "rows/*.parquet", *CLASSES, "-o", "warm.mercer")
    assert code == 0 and re.search(r"Score on (29|30|31) rows held out \(stratified, seed 0\)", out)
    assert "300 rows, 60 landmarks," in out and "passes" in out
    code, out, _ = run(capsys, "inspect", "warm.mercer")
    assert code == 0 and "KernelLogisticRegression" in out and "town" in out


@pytest.mark.slow
def test_what_is_left_open_is_chosen_on_a_sample(capsys: pytest.CaptureFixture[str]) -> None:
    options = ["fit", "rows", "--approximation", "nystroem", "--landmarks", "60", "-o", "chosen.mercer"]
    # The score of ninety rows depends less on which these are than that of thirty.
    report = report_of(capsys, *options, "-t", "heat", "--drop", "warm", "--test-size", "0.3")
    assert re.match(r"(gamma=[\d.]+, )?alpha=[\d.]+ by", report["chosen"]) and "by leave-one-out" in report["chosen"]
    assert report["scores"]["KernelRidge"]["r2"] > 0.95
    report = report_of(capsys, *options, "-t", "warm", "--drop", "heat")
    assert re.match(r"gamma=[\d.]+, C=[\d.]+ by leave-one-out", report["chosen"])
    own = report["scores"]["KernelLogisticRegression"]
    assert own["auc"] > 0.9 and own["log_loss"] < 0.5 * report["scores"]["most frequent class"]["log_loss"]


@pytest.mark.slow
def test_few_rows_and_noise_are_not_worse_than_a_simple_model(capsys: pytest.CaptureFixture[str]) -> None:
    features, progression = (part[:250] for part in load_diabetes(return_X_y=True, as_frame=True))
    features.assign(y=progression).to_csv("diabetes.csv", index=False)
    scores = report_of(capsys, *ON_LANDMARKS, "diabetes.csv")["scores"]
    out = drawn(progression)
    linear = RidgeCV(np.logspace(-3, 3, 7)).fit(features[~out], progression[~out])
    assert scores["KernelRidge"]["r2"] > linear.score(features[out], progression[out]) - 0.05
    random = np.random.default_rng(0)
    noise = pd.DataFrame(random.normal(size=(200, 4)), columns=list("abcd"))
    noise.assign(y=random.normal(size=200)).to_csv("noise.csv", index=False)
    scores = report_of(capsys, *ON_LANDMARKS, "noise.csv")["scores"]
    own, mean = (scores[name]["r2"] for name in scores)
    assert own > mean - 0.1


@pytest.mark.slow
@pytest.mark.parametrize(
    ("settings", "target", "words"),
    [
        (["--set", "alpha=1e-6"], "number", r"The mean of the target scores higher than KernelRidge .*\(R² -0\."),
        (["--set", "C=1e4"], "label", r"The share of each class predicts better than Kernel.*\(log loss 0\.[67]"),
    ],
)
def test_a_constant_that_does_better_is_said(
    capsys: pytest.CaptureFixture[str], settings: list[str], target: str, words: str
) -> None:
    random = np.random.default_rng(0)
    noise = pd.DataFrame(random.normal(size=(300, 3)), columns=list("abc"))
    noise = noise.assign(number=random.normal(size=300), label=random.choice(["no", "yes"], 300))
    noise.drop(columns="label" if target == "number" else "number").to_csv("my noise.csv", index=False)
    fit = ["my noise.csv", "-t", target, *FIT, *settings, "-o", "noise.mercer"]
    advice = report_of(capsys, "fit", *fit)["advice"]
    assert re.match(words, advice["text"]) and "may not tell the target" in advice["text"]
    # The proposal is a command, which keeps the approximation.
    command, *arguments = shlex.split(advice["command"])
    assert command == "mercer" and "'my noise.csv'" in advice["command"] and "alpha" not in advice["command"]
    code, out, _ = run(capsys, *arguments)
    assert code == 0 and "60 landmarks" in out and "Linear" in out
    code, out, _ = run(capsys, "fit", *fit)
    assert code == 0 and advice["command"] in out and "on the held-out rows" in out


def test_a_linear_fit_is_not_advised_again() -> None:
    scores = {"KernelRidge": {"r2": -0.2}, "mean of the target": {"r2": -0.2}}
    advice = advice_beside_constant(scores, FitOptions("a.csv", approximation="nystroem", kernel="linear"))
    assert advice is not None and advice["command"] == "" and "scores as high as KernelRidge" in advice["text"]


def test_no_advice_where_the_fit_in_blocks_is_better(capsys: pytest.CaptureFixture[str]) -> None:
    options = [*NUMBERS, "-o", "heat.mercer"]
    assert report_of(capsys, "fit", "rows", *options)["advice"] is None
    assert report_of(capsys, "fit", "rows", *options, "--test-size", "0")["advice"] is None


def test_a_column_of_texts_that_differ(capsys: pytest.CaptureFixture[str]) -> None:
    random = np.random.default_rng(0)
    a = random.normal(size=300)
    named = pd.DataFrame({"a": a, "name": [f"name {i}" for i in range(300)], "y": np.sin(2 * a)})
    named.to_csv("named.csv", index=False)
    assert report_of(capsys, *ON_LANDMARKS, "named.csv")["scores"]["KernelRidge"]["r2"] > 0.9


def test_the_encoding_is_not_learned_from_rows_held_out(capsys: pytest.CaptureFixture[str]) -> None:
    frame = table(1)
    frame["town"] = np.where(drawn(frame["heat"]), "Bonn", frame["town"])
    frame.to_parquet("held.parquet")
    options = ["--approximation", "nystroem", "--landmarks", "60", "-t", "heat", "--drop", "warm"]
    code, _, err = run(capsys, "fit", "held.parquet", *options, "-o", "held.mercer")
    assert code == 0 and err.count("'Bonn'") == 1
    assert mercer.load("held.mercer").schema_.categories["town"] == ["Ulm", "Zug"]
    run(capsys, "fit", "held.parquet", *NUMBERS, "--test-size", "0", "-o", "all.mercer")
    assert mercer.load("all.mercer").schema_.categories["town"] == ["Bonn", "Ulm", "Zug"]


def test_predictions_are_written_block_by_block(capsys: pytest.CaptureFixture[str]) -> None:
    report_of(capsys, "fit", "rows", *CLASSES, "-o", "warm.mercer")
    arguments = ["predict", "warm.mercer", "rows/*.parquet", "--drop", "heat", "--probabilities"]
    result = report_of(capsys, *arguments, "-o", "out.parquet")
    assert result["rows"] == 300 and result["predictions"] is None
    written = pd.read_parquet("out.parquet")
    model = mercer.load("warm.mercer")
    assert written["warm"].tolist() == model.predict(table()[["load", "town", "day"]]).tolist()
    assert written.columns.tolist() == ["warm", "P(no)", "P(yes)"]
    code, _, err = run(capsys, *arguments)
    assert code == 2 and "--out" in refusal(err)


@pytest.mark.parametrize("target", ["heat", "warm"])
def test_scores_are_the_same_in_blocks(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, target: str
) -> None:
    drop = ["--drop", "warm" if target == "heat" else "heat"]
    report_of(capsys, "fit", "rows", *(NUMBERS if target == "heat" else CLASSES), "-o", "model.mercer")
    table().to_csv("one.csv", index=False)
    whole = report_of(capsys, "evaluate", "model.mercer", "one.csv", *drop)
    assert whole["rows"] == 300 and ("auc" in whole["scores"]) == (target == "warm")
    several = report_of(capsys, "evaluate", "model.mercer", "rows/*.parquet", *drop)
    monkeypatch.setattr(use, "_LARGE", 1)
    monkeypatch.setattr(use, "read_table", None)
    large = report_of(capsys, "evaluate", "model.mercer", "one.csv", *drop)
    for found in (several, large):
        assert found["rows"] == 300 and found["classes"] == whole["classes"]
        assert found["scores"] == pytest.approx(whole["scores"], rel=1e-9)


def test_predictions_for_one_large_file(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    report_of(capsys, "fit", "rows", *CLASSES, "-o", "warm.mercer")
    frame = table()
    frame.loc[[1, 280], "town"] = "Rom"
    frame.to_parquet("one.parquet", index=False)
    arguments = ["predict", "warm.mercer", "one.parquet", "--drop", "heat", "--probabilities"]
    assert report_of(capsys, *arguments, "-o", "whole.csv")["rows"] == 300
    monkeypatch.setattr(use, "_LARGE", 1)
    monkeypatch.setattr(use, "read_table", None)
    monkeypatch.setattr(reading, "_MOST_ROWS", 64)
    code, _, err = run(capsys, *arguments, "-o", "blocks.csv")
    assert code == 0 and err.count("'Rom'") == 1
    pd.testing.assert_frame_equal(pd.read_csv("blocks.csv"), pd.read_csv("whole.csv"))


def test_intervals_are_written_block_by_block(capsys: pytest.CaptureFixture[str]) -> None:
    options = ["-t", "heat", "--drop", "warm", "--rows", "60", "-o", "auto.mercer"]
    table(1).to_parquet("one.parquet", index=False)
    report_of(capsys, "fit", "one.parquet", *options)
    arguments = ["predict", "auto.mercer", "rows/*.parquet", "--drop", "warm", "--interval", "0.8", "-o", "out.csv"]
    assert report_of(capsys, *arguments)["rows"] == 300
    written = pd.read_csv("out.csv")
    inside = (written["heat 10%"] <= table()["heat"]) & (table()["heat"] <= written["heat 90%"])
    assert 0.6 < inside.mean() < 0.95


def test_a_dry_run_fits_nothing(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    def forbidden(*_: Any, **__: Any) -> None:
        raise AssertionError("a fit was run")

    for cls in (mercer.KernelRidge, mercer.TabularRegressor, mercer.SVR):
        monkeypatch.setattr(cls, "fit", forbidden)
    table(1).to_csv("one.csv", index=False)
    options = ["-t", "heat", "--dry-run", "-o", "no.mercer"]
    landmarks = report_of(capsys, "fit", "rows", *options, *FIT, "--set", "alpha=0.1")
    assert landmarks["fits"] and landmarks["way"] == "Nyström approximation over 60 landmarks"
    for model in ("auto", "svr"):
        assert report_of(capsys, "fit", "one.csv", *options, "--drop", "day", "--model", model)["nbytes"] > 0
    code, out, _ = run(capsys, "fit", "rows", *options, *FIT, "--set", "alpha=0.1")
    assert code == 0 and "KernelRidge on 270 rows" in out and "Nothing was fitted." in out
    assert not Path("no.mercer").exists()


def test_a_checkpoint_of_another_fit(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Journal, "remove", lambda self: None)
    options = ["fit", "rows", "-t", "heat", *FIT, "--checkpoint", "run.npz", "-o", "heat.mercer"]
    report_of(capsys, *options, "--set", "alpha=0.1")
    assert Path("run.npz").exists()
    code, _, err = run(capsys, *options, "--set", "alpha=0.2")
    assert code == 2 and "the checkpoint of another fit" in refusal(err)


def test_the_number_of_landmarks_is_chosen(capsys: pytest.CaptureFixture[str]) -> None:
    options = ["-t", "heat", "--drop", "warm", "--approximation", "nystroem", "--landmarks", "auto"]
    options += ["--set", "gamma=0.3", "--set", "alpha=0.1", "-o", "auto.mercer"]
    report = report_of(capsys, "fit", "rows", *options)
    found = report["landmarks"]
    assert found["tried"][0] == 100 and found["ending"] in ("no gain", "all rows")
    assert found["number"] == len(mercer.load("auto.mercer").estimator_.X_fit_) and len(found["losses"]) > 1
    assert report["parameters"]["n_landmarks"] == found["number"] and report["scores"]["KernelRidge"]["r2"] > 0.9
    # A table in one file, and words.
    table(1).to_csv("one.csv", index=False)
    code, out, _ = run(capsys, "fit", "one.csv", *options, "--dry-run")
    assert code == 0 and "auto chooses the number of landmarks; these figures are those of 1,000" in " ".join(
        out.split()
    )
    code, out, _ = run(capsys, "fit", "one.csv", *options)
    assert code == 0 and "held-out loss" in out and "chosen" in out


WRONG: dict[str, tuple[list[str], str]] = {
    "a sample data set": (["sample:iris", "--approximation", "nystroem"], "sample:iris is a sample of a few rows"),
    "landmarks alone": (["rows/0.parquet", "--landmarks", "9"], "--landmarks is for fits over landmarks"),
    "landmarks in words": (["rows", "--approximation", "nystroem", "--landmarks", "many"], "or auto, but is 'many'"),
    "no landmarks": (["rows", "--approximation", "nystroem", "--landmarks", "0"], "at least 1, or auto"),
    "a checkpoint at standard output": (["rows", *FIT, "--checkpoint", "-"], "must be a file, which is read again"),
    "several fits": (["rows", *FIT[:2], "--landmarks", "auto", "--checkpoint", "a"], "--checkpoint keeps one fit"),
    "a checkpoint alone": (["rows/0.parquet", "--checkpoint", "a"], "--checkpoint is for fits over landmarks"),
    "a pattern alone": (["rows/*.parquet"], "add --approximation nystroem"),
    "no files": (["rows/*.csv", *FIT], "rows/*.csv"),
    "another approximation": (["rows", "--approximation", "fourier"], "must be nystroem"),
    "another model": (["rows", *FIT, "--model", "nu-svc"], "choose one of these"),
    "another option": (["rows", *FIT, "--rows", "100"], "--rows"),
    "another target": (["rows", *FIT, "-t", "heap"], "Did you mean 'heat'?"),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_does_not_go_together(capsys: pytest.CaptureFixture[str], name: str) -> None:
    options, words = WRONG[name]
    more = [] if "-t" in options else ["-t", "heat"]
    code, _, err = run(capsys, "fit", *options, *more)
    assert code == 2 and words in refusal(err)


def test_a_table_that_is_too_large_has_a_way_in_blocks(capsys: pytest.CaptureFixture[str]) -> None:
    pd.concat([table()] * 3).to_parquet("one.parquet", index=False)
    options = ["fit", "one.parquet", "-t", "heat", "--drop", "warm", "--drop", "day", *FIT[4:], "--set", "alpha=0.1"]
    code, _, err = run(capsys, *options, "--model", "ridge", "--memory", "3MiB")
    found = re.search(r"in blocks with --approximation nystroem \(([\d.]+) MiB\)", refusal(err))
    assert code == 2 and found is not None
    need = float(found[1]) + 2
    report = report_of(capsys, *options, "--approximation", "nystroem", "--memory", f"{need:g}MiB", "-o", "a.mercer")
    assert report["rows"]["fitted"] == 900


def test_files_that_differ(capsys: pytest.CaptureFixture[str]) -> None:
    options = ["fit", "rows", "-t", "heat", *FIT]
    pd.read_parquet("rows/1.parquet").drop(columns="load").to_parquet("rows/1.parquet")
    code, _, err = run(capsys, *options)
    assert code == 2 and "load" in refusal(err) and "1.parquet" in err
    frame = table(1)
    frame.assign(load="much").to_parquet("rows/1.parquet")
    code, _, err = run(capsys, *options)
    assert code == 2 and "load" in refusal(err)
    Path("rows/1.parquet").write_bytes(b"")
    code, _, err = run(capsys, *options)
    assert code == 2 and "1.parquet" in refusal(err)


def test_text_where_numbers_were(capsys: pytest.CaptureFixture[str]) -> None:
    report_of(capsys, "fit", "rows", *NUMBERS, "-o", "heat.mercer")
    table(1).assign(load="much").to_parquet("rows/0.parquet")
    code, _, err = run(capsys, "predict", "heat.mercer", "rows/0*.parquet", "--drop", "warm", "-o", "out.csv")
    assert code == 2 and "load" in refusal(err) and not Path("out.csv").exists()


@pytest.mark.parametrize("kernel", [[], ["--kernel", "rbf"]])
def test_a_text_is_left_out_and_said(capsys: pytest.CaptureFixture[str], kernel: list[str]) -> None:
    frame = table().head(90).drop(columns="warm")
    frame.assign(**{"my note": [f"note {i} on {i * i} and {i % 7} more" for i in range(90)]}).to_csv("notes.csv")
    code, out, _ = run(capsys, *ON_LANDMARKS[:2], "heat", *ON_LANDMARKS[3:], "notes.csv", *kernel)
    said = " ".join(out.split())
    assert code == 0 and "my note (text, 81 different values in 81 rows; to compare it, fit without" in said
    # The numbers of the rows are known by their name and order, also in a sample.
    assert "Unnamed: 0 (unnamed, counts the rows)" in said and "text column" not in said
    schema = mercer.load("chosen.mercer").schema_
    assert list(schema.kinds) == ["load", "town", "day"]
    # The way out that it names.
    code, out, _ = run(capsys, "fit", "notes.csv", "-t", "heat", "--rows", "40")
    assert code == 0 and "1 text column" in out
    frame[["town", "heat"]].assign(town=[f"note {i}" for i in range(90)]).to_csv("bare.csv", index=False)
    code, _, err = run(capsys, "fit", "bare.csv", "-t", "heat", "--approximation", "nystroem", *kernel)
    assert code == 2 and "'town' holds text, which --approximation nystroem does not compare" in refusal(err)


def test_few_sentences_are_categories(capsys: pytest.CaptureFixture[str]) -> None:
    places = np.arange(120) % 15
    frame = pd.DataFrame({"said": [f"this is the answer {i}" for i in places], "y": np.sin(places) + 0.0})
    frame.to_csv("said.csv", index=False)
    report = report_of(capsys, *ON_LANDMARKS, "said.csv")
    assert report["columns"] == "1 category column (15 values)" and report["scores"]["KernelRidge"]["r2"] > 0.9


def test_numbers_in_another_notation(capsys: pytest.CaptureFixture[str]) -> None:
    size = np.arange(1.0, 201.0)
    frame = pd.DataFrame({"size": [f"{s:.0f} %" for s in size], "price": [f"${10 * s:,.2f}" for s in size]})
    frame.to_csv("prices.csv", index=False)
    options = [*ON_LANDMARKS[:2], "price", *ON_LANDMARKS[3:], "prices.csv"]
    code, _, err = run(capsys, *options)
    assert code == 2 and "--parse-numbers" in refusal(err)
    report = report_of(capsys, *options, "--parse-numbers")
    assert report["reading"]["numbers"] == {"price": [".", "$"], "size": [".", "%"]}
    assert report["scores"]["KernelRidge"]["r2"] > 0.99
    code, out, err = run(capsys, "predict", "chosen.mercer", "prices.csv")
    assert code == 0, err
    predicted = pd.read_csv(io.StringIO(out))["price"]
    assert np.abs(predicted - 10 * size).max() < 100


def test_what_is_dropped_is_no_news_in_new_tables(capsys: pytest.CaptureFixture[str]) -> None:
    report_of(capsys, "fit", "rows", *NUMBERS, "-o", "heat.mercer")
    code, out, err = run(capsys, "predict", "heat.mercer", "rows/0.parquet")
    assert code == 0 and out.startswith("heat") and "was not fitted on" not in err


def test_the_fit_to_all_rows_keeps_its_own_passes(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    options = ["fit", "rows", *NUMBERS, "--checkpoint", "run.npz", "-o", "heat.mercer"]
    with monkeypatch.context() as patch:
        patch.setattr(Journal, "remove", lambda self: None)
        first = report_of(capsys, *options)
    assert Path("run.npz").exists() and Path("run.npz.all").exists()
    assert report_of(capsys, *options)["certificate"]["primal"] == first["certificate"]["primal"]
    assert not Path("run.npz").exists() and not Path("run.npz.all").exists()


@pytest.mark.parametrize(
    ("model", "target", "learner", "given"),
    [
        ("svc", "warm", "SVC", ["--set", "gamma=0.3"]),
        pytest.param("svr", "heat", "SVR", [], marks=pytest.mark.slow),
        ("gp", "heat", "GaussianProcessRegressor", []),
        ("gpc", "warm", "GaussianProcessClassifier", []),
    ],
)
def test_every_model_over_landmarks(
    capsys: pytest.CaptureFixture[str], model: str, target: str, learner: str, given: list[str]
) -> None:
    other = "heat" if target == "warm" else "warm"
    options = ["-t", target, "--drop", other, "--model", model, "--approximation", "nystroem", "--landmarks", "40"]
    report = report_of(capsys, "fit", "rows", *options, *given, "-o", "m.mercer")
    own, constant = report["scores"].values()
    metric = "accuracy" if target == "warm" else "r2"
    assert report["model"].startswith(learner) and own[metric] > 0.85 > constant[metric]
    assert report["landmarks"]["number"] == 40 and report["advice"] is None
    assert ("C=" in (report["chosen"] or "")) == (model in ("svc", "svr"))
    assert mercer.load("m.mercer").predict(table()[["load", "town", "day"]]).shape == (300,)


def test_what_each_model_takes_is_what_its_class_takes() -> None:
    for model, able in OVER_LANDMARKS.items():
        for cls in (model_class(model, task) for task in MODELS[model]):
            assert ("--landmarks auto" in able) == cls.may_leave_landmarks_open
            assert ("--checkpoint" in able) == ("checkpoint" in cls().get_params(deep=False))
            assert ("--certify" in able) == (cls in over_landmarks._FINDINGS)
    classes = {model: model_class(model, next(iter(tasks))) for model, tasks in MODELS.items()}
    missing = {model for model, cls in classes.items() if "approximation" in cls().get_params(deep=False)}
    assert missing == set(OVER_LANDMARKS)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--model", "gp", "--landmarks", "auto"], "--landmarks auto is for the models ridge, logistic, svc, svr, and"),
        (
            ["--model", "gp", "--certify", "500"],
            "--certify is for the models ridge, logistic, svc, svr, and --model is",
        ),
        (["--model", "svc", "--checkpoint", "c.npz"], "--checkpoint is for the models ridge, logistic, and --model is"),
        (["--model", "neighbors"], "for the models ridge, logistic, svc, svr, gp, gpc, and --model is neighbors"),
        (["--certify", "9"], "--certify must be exact, .* at least 10, but is '9'"),
        (["--certify", "all"], "--certify must be exact, .* but is 'all'"),
    ],
)
def test_what_models_over_landmarks_do_not_take(
    capsys: pytest.CaptureFixture[str], arguments: list[str], words: str
) -> None:
    code, _, err = run(capsys, "fit", "rows", "--approximation", "nystroem", *arguments)
    assert code == 2 and re.search(words, " ".join(err.split()))


def test_the_distance_from_the_exact_problem(capsys: pytest.CaptureFixture[str]) -> None:
    options = ["-t", "heat", "--drop", "warm", "--set", "alpha=0.5", *FIT, "-o", "heat.mercer"]
    found = report_of(capsys, "fit", "rows", *options, "--certify", "exact")["distance"]
    assert found["rows"] == found["all_rows"] == 300 and found["confidence"] == 1.0 and found["status"] == "given"
    # The same figures as those of the library for the encoded rows.
    model = mercer.load("heat.mercer")
    part = table()
    y = (part["heat"].to_numpy() - model.target_mean_) / model.target_scale_
    again = mercer.certify_landmarks(model.estimator_, model.encoder_.transform(part[["load", "town", "day"]]), y)
    assert found["gap"] == pytest.approx(again.gap, rel=1e-6) and 0 < found["relative_gap"] < 1
    assert found["prediction_error"] == pytest.approx(model.target_scale_ * again.rows_error, rel=1e-6)
    code, out, _ = run(capsys, "inspect", "heat.mercer")
    assert code == 0 and "Certificate for the problem of all rows" in out and "all pairs of 300 rows" in out
    code, out, _ = run(capsys, "fit", "rows", *options, "--certify", "50")
    assert code == 0 and "none: the pairs of 50 of 300 rows" in out and "confidence of 95 %" in out


def test_all_pairs_need_all_rows_in_memory(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(nbytes: int, what: str) -> None:
        raise MemoryBudgetError(f"no {what}.")

    options = ["-t", "heat", "--drop", "warm", "--set", "alpha=0.5", *FIT, "-o", "heat.mercer"]
    monkeypatch.setattr(landmark_distance, "memory", SimpleNamespace(reserve=refuse))
    code, _, err = run(capsys, "fit", "rows", *options, "--certify", "exact")
    assert code != 0 and "--certify 500, which evaluates the pairs of 500 rows" in " ".join(err.split())


def test_advice_on_classes_without_probabilities() -> None:
    scores = {"SVC": {"accuracy": 0.4}, "most frequent class": {"accuracy": 0.5}}
    advice = advice_beside_constant(scores, FitOptions("a.csv", approximation="nystroem", certify=500))
    assert advice is not None and "accuracy 0.5000 against 0.4000" in advice["text"]
    assert advice["command"] == "mercer fit a.csv --kernel linear --approximation nystroem --certify 500"


def test_the_rows_are_read_as_those_of_a_table_in_memory(capsys: pytest.CaptureFixture[str]) -> None:
    frame = table().drop(columns="warm")
    frame.loc[7, "heat"] = 1e9
    frame.to_csv("one.csv", index=False)
    messages = []
    for more in ([], ["--approximation", "nystroem"]):
        code, _, err = run(capsys, "fit", "one.csv", *more)
        assert code == 2 and "one.csv does not specify the target column" in refusal(err)
        code, _, err = run(capsys, "fit", "one.csv", "-t", "heat", "--drop", "loads", *more)
        assert code == 2 and "Did you mean 'load'?" in refusal(err)
        code, _, err = run(capsys, "fit", "one.csv", "-t", "heat", "--dry-run", *more)
        messages.append(re.findall(r"the target 'heat' is 1e\+09 in \w+ \d+, .* times as far", " ".join(err.split())))
    assert code == 0 and len(messages[0]) == len(messages[1]) == 1


def test_the_task_is_told_by_all_targets(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(landmarks, "_SAMPLE", 50)
    grade = np.arange(300) % 2
    grade[7 * np.arange(40)] = 100 + np.arange(40)
    table().drop(columns=["warm", "heat"]).assign(grade=grade).to_csv("one.csv", index=False)
    tasks = [report_of(capsys, *ON_LANDMARKS[:1], "one.csv", "-t", "grade", "--rows", "60", "-o", "a.mercer")["task"]]
    tasks.append(report_of(capsys, "fit", "one.csv", "-t", "grade", *FIT, "--set", "alpha=1", "-o", "a.mercer")["task"])
    assert tasks[0] == tasks[1] == "regression"


@pytest.mark.parametrize("options", [[], ["--calibrate"]], ids=str)
@pytest.mark.parametrize("row", range(3, 60, 8))
def test_a_bad_entry_is_named_by_its_row_in_the_file(row: int, options: list[str], capsys: Any) -> None:
    """Of rows to learn from and of held-out rows."""
    frame = pd.DataFrame({"a": np.arange(60.0), "b": np.arange(60.0) % 7, "y": np.arange(60.0) ** 0.5})
    frame.loc[row - 1, "a"] = np.inf
    frame.to_csv("bad.csv", index=False)
    assert main(["fit", "bad.csv", "-t", "y", "--model", "ridge", *FIT, *options]) == 2
    assert f"bad.csv, row {row}, column 'a': the value is infinite" in refusal(capsys.readouterr().err)
