"""What ``mercer fit`` chooses by itself, and what it says where a simpler model does better."""

from __future__ import annotations

import json
import shlex

import numpy as np
import pandas as pd
import pytest

from mercer.cli import main


@pytest.fixture(autouse=True)
def _in_an_empty_directory(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")


def run_json(capsys, *arguments):
    assert main([*map(str, arguments), "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def _straight(n=150, d=40):
    """A target along one of many columns, which a narrow kernel does not see."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, d))
    frame = pd.DataFrame(X, columns=[f"x{j}" for j in range(d)])
    total = X @ np.linspace(-1, 1, d)
    return frame.assign(level=total, side=np.where(total > 0, "up", "down"))


def test_penalty_and_width_are_chosen_by_folds(capsys):
    report = run_json(capsys, "fit", "sample:moons", "--model", "svc")
    assert "by 5 folds on 400 rows" in report["chosen"]
    assert f"C={report['parameters']['C']:.4g}" in report["chosen"]
    assert f"gamma={report['parameters']['gamma']:.4g}" in report["chosen"]
    # At C=1 and the default width half moons are learned less well.
    plain = run_json(capsys, "fit", "sample:moons", "--set", "C=1", "--set", "gamma=scale")
    assert plain["chosen"] is None
    assert report["scores"]["SVC"]["accuracy"] >= plain["scores"]["SVC"]["accuracy"]


@pytest.mark.slow
def test_the_choice_is_that_of_the_seed_and_takes_a_sample_of_many_rows(capsys):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1300, 2))
    label = np.digitize(X[:, 0] * X[:, 1], [-0.5, 0.5])
    # One row of a class of its own, which any sample keeps.
    label[7] = 3
    np.savez("many.npz", X=X, y=label)
    reports = [run_json(capsys, "fit", "many.npz", "--no-refit", "--model", "svc") for _ in range(2)]
    assert reports[0]["chosen"] == reports[1]["chosen"]
    rows = int(reports[0]["chosen"].partition("folds on ")[2].split()[0])
    assert 995 <= rows <= 1005
    assert reports[0]["scores"]["SVC"]["accuracy"] > 0.9


@pytest.mark.parametrize(
    ("options", "left"),
    [
        (["--set", "C=3"], None),
        (["--kernel", "linear"], "C="),
        (["--set", "gamma=0.5"], "C="),
        (["--model", "logistic"], None),
    ],
)
def test_what_is_given_is_not_chosen(capsys, options, left):
    report = run_json(capsys, "fit", "sample:moons", *options)
    assert report["chosen"] is None if left is None else report["chosen"].startswith(left)
    assert left is None or "gamma" not in report["chosen"]


def test_a_tube_too(capsys):
    report = run_json(capsys, "fit", "sample:sinc", "--model", "svr")
    assert "C=" in report["chosen"] and "gamma=" in report["chosen"] and report["scores"]["SVR"]["r2"] > 0.9


@pytest.mark.parametrize(("target", "other"), [("level", "side"), ("side", "level")])
def test_a_linear_model_that_does_better_is_said_with_what_to_try(capsys, target, other):
    _straight().to_csv("my table.csv", index=False)
    data = ["my table.csv", "--target", target, "--drop", other, "--kernel", "RBF(0.5)", "--out", "m.mercer"]
    report = run_json(capsys, "fit", *data)
    advice = report["advice"]
    (mine, its), (linear, best), _ = report["scores"].items()
    metric = next(iter(its))
    assert best[metric] > its[metric]
    assert f"The {linear} scores higher than {mine}" in advice["text"]
    assert f"{best[metric]:.4f} against {its[metric]:.4f}" in advice["text"]
    # The proposal is a command, and it does better.
    command, *words = shlex.split(advice["command"])
    assert command == "mercer" and "--kernel linear" in advice["command"] and "'my table.csv'" in advice["command"]
    better = run_json(capsys, *words)
    assert next(iter(better["scores"].values()))[metric] > its[metric]
    assert main(["fit", *data]) == 0
    out = capsys.readouterr().out
    assert advice["command"] in out and "scores higher" in out


def test_no_advice_where_the_fit_is_the_best(capsys):
    assert run_json(capsys, "fit", "sample:circles", "--model", "svc")["advice"] is None
    assert run_json(capsys, "fit", "sample:circles", "--model", "svc", "--test-size", "0")["advice"] is None


def test_a_constant_answer_that_does_better_is_said(capsys):
    rng = np.random.default_rng(1)
    frame = pd.DataFrame(rng.normal(size=(80, 3)), columns=["a", "b", "c"]).assign(y=rng.normal(size=80))
    frame.to_csv("noise.csv", index=False)
    advice = run_json(capsys, "fit", "noise.csv", "-t", "y", "--set", "alpha=0.01")["advice"]
    assert "The mean of the target scores higher than KernelRidge" in advice["text"]
    assert "may not tell the target" in advice["text"]


def test_a_constant_answer_that_does_as_well_is_said(capsys):
    frame = pd.DataFrame({"a": np.random.default_rng(0).normal(size=60), "kind": ["often"] * 50 + ["seldom"] * 10})
    frame.to_csv("rare.csv", index=False)
    report = run_json(capsys, "fit", "rare.csv", "-t", "kind", "--set", "C=0.001", "--set", "gamma=0.1")
    assert report["advice"]["text"].startswith("The most frequent class scores as high as SVC on the held-out rows")
    assert "may not tell the target" in report["advice"]["text"]


@pytest.mark.parametrize("model", ["svc", "logistic"])
def test_text_whose_words_tell_more_than_its_letters(capsys, model):
    rng = np.random.default_rng(0)
    words = {"up": ["rise", "gain"], "down": ["sire", "agin"]}
    kinds = rng.choice(["up", "down"], 80)
    texts = [" ".join(rng.choice([*words[k], "the", "a", "of", "market"], 6)) for k in kinds]
    pd.DataFrame({"text": texts, "kind": kinds}).to_csv("text.csv", index=False)
    data = ["text.csv", "-t", "kind", "--text", "text", "--model", model, "--kernel", "Spectrum(1).normalized()"]
    report = run_json(capsys, "fit", *data)
    assert "logistic regression on counts of words scores higher" in report["advice"]["text"]
    _, *words = shlex.split(report["advice"]["command"])
    assert "BagOfWords().normalized()" in words
    better = run_json(capsys, *words)["scores"]
    assert next(iter(better.values()))["accuracy"] > next(iter(report["scores"].values()))["accuracy"]
