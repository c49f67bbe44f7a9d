"""What ``mercer fit`` chooses by itself, and what it says where a simpler model does better."""

from __future__ import annotations

import json
import shlex
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from mercer._errors import MemoryBudgetError
from mercer.cli import compare, fit, main
from mercer.cli.options import FitOptions
from mercer.data.column_encoder import ColumnEncoder
from mercer.data.sample_rows import load_sample


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
    (mine, its), (trees, _), (linear, best), _ = report["scores"].items()
    metric = next(iter(its))
    assert trees == "gradient boosting"
    assert best[metric] > its[metric]
    assert f"The {linear} scores higher than {mine}" in advice["text"]
    assert f"{best[metric]:.4f} against {its[metric]:.4f}" in advice["text"]
    # The proposal is a command, and it does better.
    command, *words = shlex.split(advice["command"])
    assert command == "mercer" and "--kernel linear" in advice["command"] and "'my table.csv'" in advice["command"]
    better = next(iter(run_json(capsys, *words)["scores"].values()))[metric]
    # The very model.
    assert better == pytest.approx(best[metric], abs=2e-3) and f"{better:.4f}):" in advice["text"]
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
    (_, its), (_, linear), _ = report["scores"].items()
    better = next(iter(run_json(capsys, *words)["scores"].values()))["accuracy"]
    assert better == linear["accuracy"] > its["accuracy"]


def _told(frame, metric, capsys, monkeypatch):
    """The command that is advised beside a fit that is worse than anything, its score, and that of the linear model."""

    def worse(model, job):
        # Wrong for every row.
        y = job.target.values[job.test]
        return y.mean() + 9.0 * (y.mean() - y) if job.target.task == "regression" else np.full(len(y), "neither")

    frame.to_csv("some.csv", index=False)
    with monkeypatch.context() as patch:
        patch.setattr(fit, "_predicted", worse)
        report = run_json(capsys, "fit", "some.csv", "-t", "y", "--rows", "60", "-o", "some.mercer")
    command = report["advice"]["command"]
    found = next(iter(run_json(capsys, *shlex.split(command)[1:])["scores"].values()))[metric] if command else None
    linear = next(its for name, its in report["scores"].items() if name.startswith(("linear", "logistic")))
    return command, found, linear[metric]


def test_the_advice_keeps_the_columns_that_the_linear_model_has_seen(capsys, monkeypatch):
    rng = np.random.default_rng(0)
    days = pd.date_range("2020-01-01", periods=120, freq="3D").strftime("%Y-%m-%d")
    frame = pd.DataFrame({"day": days, "a": np.where(rng.random(120) < 0.2, np.nan, rng.normal(size=120))})
    frame["y"] = 0.05 * np.arange(120) + rng.normal(size=120)
    command, found, linear = _told(frame, "r2", capsys, monkeypatch)
    assert "--impute median" in command and "--drop" not in command and found == pytest.approx(linear, abs=0.05)
    words = ["late", "good", "bad", "ulm", "zug", "a", "c"]
    texts = [f"{' '.join(rng.choice(words, 6))} no{i}" for i in range(120)]
    frame = pd.DataFrame({"what is": texts, "at": days, "town": rng.choice(["u", "v"], 120)})
    frame["y"] = np.where([text.count("late") > text.count("good") for text in texts], "yes", "no")
    command, found, linear = _told(frame, "accuracy", capsys, monkeypatch)
    assert "BagOfWords" in command and "--text 'what is'" in command
    assert found == pytest.approx(linear, abs=0.1) and found > 0.7


def test_what_no_command_fits_is_not_advised(capsys, monkeypatch):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"a": rng.normal(size=60)}).assign(y=lambda rows: rows["a"] + 0.1 * rng.normal(size=60))
    frame.to_csv("some.csv", index=False)
    scores = {"mine": {"r2": 0.3}, "linear (ridge) regression": {"r2": 0.9}, "mean of the target": {"r2": 0.0}}
    options = FitOptions("some.csv", "y")
    table, numbers = fit._read(options)
    job = fit._prepare(table, options, {}, numbers)

    def refused(_):
        raise MemoryBudgetError("too large")

    y = job.target.values[job.test]
    mine = y + 0.5 * np.random.default_rng(0).normal(size=len(y))
    predicted = {"mine": mine, "linear (ridge) regression": y, "mean of the target": np.zeros(len(y))}
    # Of one row the error is less, which may be by chance.
    barely = np.where(np.arange(len(y)), mine, y)
    for trial in (refused, lambda _: y + 9.0, lambda _: mine, lambda _: barely):
        hint = compare.advice(scores, predicted, options, job, trial)
        assert hint["command"] == "" and "scores higher than mine" in hint["text"] and "Try" not in hint["text"]
    assert compare.advice(scores, predicted, replace(options, settings=["kinds={}"]), job, fit._trial)["command"] == ""
    assert compare.advice(scores, predicted, options, job, fit._trial)["command"].startswith(
        "mercer fit some.csv --target y"
    )


def test_a_rare_class_that_probabilities_tell_is_not_called_untold(capsys):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1500, 2))
    late = rng.uniform(size=1500) < 1 / (1 + np.exp(5.0 - 1.5 * X[:, 0]))
    frame = pd.DataFrame(X, columns=["a", "b"]).assign(late=np.where(late, "yes", "no"))
    frame.to_csv("flights.csv", index=False)
    data = ["flights.csv", "-t", "late", "--set", "search_rows=300"]
    report = run_json(capsys, "fit", *data)
    own, constant = report["scores"]["TabularClassifier"], report["scores"]["most frequent class"]
    assert own["accuracy"] == constant["accuracy"] and own["auc"] > 0.7 and constant["auc"] == 0.5
    rows = {name: its["rows"] for name, its in report["recalls"].items()}
    # The shares are those of the other rows.
    share = (frame["late"].eq("yes").sum() - rows["yes"]) / 1200
    loss = -(rows["yes"] * np.log(share) + rows["no"] * np.log(1 - share)) / 300
    assert constant["log_loss"] == pytest.approx(loss)
    assert sum(rows.values()) == 300 and rows["yes"] >= 2
    assert [report["recalls"][name]["recall"] for name in ("no", "yes")] == [1.0, 0.0]
    text = report["advice"]["text"]
    assert "may not tell" not in text and f"AUC {own['auc']:.4f}, log loss {own['log_loss']:.4f} against" in text
    # The proposal is a command, which predicts the rare class.
    _, *words = shlex.split(report["advice"]["command"])
    balanced = run_json(capsys, *words)
    assert balanced["scores"]["TabularClassifier"]["balanced_accuracy"] > 0.6 and balanced["advice"] is None
    assert balanced["scores"]["TabularClassifier"]["auc"] == pytest.approx(own["auc"])
    assert main(["fit", *data]) == 0
    out = capsys.readouterr().out
    assert f"Recall: yes 0% of {rows['yes']}, no 100% of {rows['no']}." in out


@pytest.mark.parametrize("model", ["svc", "perceptron"])
def test_two_classes_without_probabilities_have_the_area_under_the_curve_of_their_values(capsys, model):
    report = run_json(
        capsys, "fit", "sample:moons", "--model", model, "--set", "C=1" if model == "svc" else "gamma=1.0"
    )
    own = next(iter(report["scores"].values()))
    assert own["auc"] > 0.95 and "log_loss" not in own


def test_where_trees_do_better_the_default_is_tried(capsys):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.uniform(-3, 3, size=(400, 3)), columns=["a", "b", "c"])
    frame.assign(y=2.0 * np.sin(2.0 * frame["a"]) + frame["b"] + 0.1 * rng.normal(size=400)).to_csv(
        "a.csv", index=False
    )
    report = run_json(capsys, "fit", "a.csv", "-t", "y", "--model", "ridge", "--kernel", "linear", "--set", "alpha=1")
    assert list(report["scores"])[1] == "gradient boosting"
    advice = report["advice"]
    assert advice["text"].startswith("Gradient boosting scores higher than KernelRidge")
    assert advice["command"] == "mercer fit a.csv --target y" and "Try (R² " in advice["text"]
    default = run_json(capsys, *shlex.split(advice["command"])[1:])
    assert default["model"] == "TabularRegressor"


def test_trees_see_the_columns_as_they_are_and_are_left_out_where_they_take_long(capsys):
    rng = np.random.default_rng(0)
    town, size = rng.choice(["u", "v", "w"], 300), np.where(rng.random(300) < 0.1, np.nan, rng.normal(size=300))
    frame = pd.DataFrame({"note": [f"n {i}" for i in range(300)], "town": town, "size": size})
    frame["y"] = (town == "v") * 5.0 + np.isnan(size) * 3.0
    encoder = ColumnEncoder().fit(frame.drop(columns="y"))
    plain, codes = encoder.plain(frame.drop(columns="y"))
    assert codes.tolist() == [True, False] and len(np.unique(plain[:, 0])) == 3
    np.testing.assert_array_equal(plain[:, 1], size)
    frame.to_csv("towns.csv", index=False)
    task = ["--task", "regression"]
    assert run_json(capsys, "fit", "towns.csv", "-t", "y", *task)["scores"]["gradient boosting"]["r2"] > 0.95
    assert "gradient boosting" not in run_json(capsys, "fit", "sample:digits", "--rows", "200")["scores"]


def test_rows_that_were_held_out_are_shown(capsys):
    report = run_json(capsys, "fit", "sample:cars")
    shown = report["examples"]
    assert len(shown["row"]) == 3 and shown["of"] == 80 and 60 <= shown["inside"] <= 80
    table = load_sample("cars")
    for name, truth, low, high in zip(*(shown[key] for key in ("row", "truth", "lower", "upper")), strict=True):
        assert truth in table.targets["mpg"][table.columns["name"] == name] and low < high
    classes = run_json(capsys, "fit", "sample:iris")["examples"]
    assert classes["truth"] == ["setosa", "versicolor", "virginica"] and min(classes["probability"]) > 0.5
    assert run_json(capsys, "fit", "sample:iris", "--model", "svc")["examples"] is None
    assert main(["fit", "sample:cars"]) == 0
    out = capsys.readouterr().out
    assert f"{shown['inside']} of 80 held-out rows lie in their intervals." in out and shown["row"][1] in out
    assert len(out.splitlines()) <= 40


def _months(n=120):
    rng = np.random.default_rng(0)
    day = pd.date_range("2020-01-01", periods=n).strftime("%Y-%m-%d").to_numpy()
    frame = pd.DataFrame({"day": day, "who": rng.choice(list("abcdefgh"), n), "a": rng.normal(size=n)})
    return frame.assign(y=2.0 * frame["a"] + rng.normal(size=n)).sample(frac=1.0, random_state=0)


def test_the_last_rows_or_whole_groups_are_held_out(capsys):
    frame = _months()
    frame.to_csv("days.csv", index=False)
    seen = []
    for split in (["time", "day"], ["group", "who"], ["group", "who", "--drop", "who"], ["time", "a"]):
        options = FitOptions("days.csv", "y", split=tuple(split[:2]), drop=split[3:])
        job = fit._prepare(*fit._read(options)[:1], options, {}, {})
        values = frame[split[1]].to_numpy()
        test, train = set(values[job.test]), set(values[job.train])
        assert not test & train and len(job.test) >= 24 and len(job.test) + len(job.train) == 120
        assert split[0] == "group" or (min(test) > max(train) and len(job.test) == 24)
        assert ("who" in job.schema.kinds) == (split[3:] != ["who"])
        seen.append(job.test)
    assert np.array_equal(seen[1], seen[2]) and len(seen[1]) < 60
    report = run_json(
        capsys, "fit", "days.csv", "-t", "y", "--split", "time", "day", "--model", "ridge", "-o", "m.mercer"
    )
    assert report["held_out_by"] == "the last ones by day" and "--split time day" in report["command"]
    assert report["rows"]["held_out"] == 24 and report["refitted"]
    assert main(["inspect", "m.mercer"]) == 0
    assert "held out (the last ones by day)" in capsys.readouterr().out


def test_rows_of_another_table_are_held_out(capsys):
    frame = _months()
    frame[:90].to_csv("old.csv", index=False)
    frame[90:][["y", "a", "who", "day"]].assign(more=1).to_csv("new.csv", index=False)
    report = run_json(capsys, "fit", "old.csv", "-t", "y", "--test", "new.csv", "-o", "m.mercer")
    assert report["rows"] == {"all": 120, "fitted": 90, "held_out": 30} and not report["refitted"]
    assert report["held_out_by"] == "those of new.csv"
    r2 = run_json(capsys, "evaluate", "m.mercer", "new.csv")["scores"]["r2"]
    assert r2 == pytest.approx(report["scores"]["TabularRegressor"]["r2"])
    assert report["examples"]["row"][0] == "line 2 of new.csv"


@pytest.mark.parametrize(
    "options, words",
    [
        (["--split", "month", "day"], "--split is time or group and a column, but is 'month day'"),
        (["--split", "time", "dy"], "has no column 'dy'; it has 'day', 'who'"),
        (["--split", "time", "who"], "'a' in line 2 is neither a number nor a date such as 2026-01-31"),
        (["--split", "time", "gap"], "line 3 has no entry; fill it in"),
        (["--split", "time", "flag"], "the column holds truth values"),
        (["--split", "time", "y"], "--split by the target 'y'"),
        (["--split", "time", "day", "--test-size", "0"], "--test-size 0 holds none out"),
        (["--split", "group", "one"], "leaves 0 rows to learn from"),
        (["--test", "b.csv", "--test-size", "0.5"], "--test names the rows for the score"),
        (["--test", "b.csv"], "b.csv has no column 'day'"),
        (["--test", "c.csv"], "the column 'a' is numeric in one of days.csv and c.csv alone"),
        (["--test", "nowhere.csv"], "nowhere.csv does not exist"),
        (["--test", "days.csv", "--approximation", "nystroem"], "cannot be combined with --test"),
    ],
)
def test_rows_that_cannot_be_held_out_are_told(capsys, options, words):
    frame = _months().sort_values("who").assign(one=1, gap=[1.0, None] * 60, flag=[True, False] * 60)
    frame.to_csv("days.csv", index=False)
    frame.drop(columns="day").to_csv("b.csv", index=False)
    frame.assign(a="much").to_csv("c.csv", index=False)
    assert main(["fit", "days.csv", "-t", "y", *options]) != 0
    assert words in " ".join(capsys.readouterr().err.split())


def test_a_column_that_alone_gives_the_target_is_told(capsys):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"a": rng.normal(size=200)})
    frame["y"] = np.where(frame["a"] + rng.normal(size=200) > 0, "dead", "alive")
    frame["lives"] = np.where(frame["y"] == "alive", "yes", "no")
    frame.to_csv("ship.csv", index=False)
    assert main(["fit", "ship.csv", "-t", "y"]) == 0
    assert "The column 'lives' alone gives 'y' in all held-out rows." in " ".join(capsys.readouterr().out.split())
    assert run_json(capsys, "fit", "ship.csv", "-t", "y", "--drop", "lives")["telltale"] == ""
    frame = pd.DataFrame({"euro": rng.lognormal(size=80), "b": rng.normal(size=80)})
    frame.assign(cent=lambda its: 100 * its["euro"]).to_csv("prices.csv", index=False)
    assert run_json(capsys, "fit", "prices.csv", "-t", "cent")["telltale"] == "euro"


def test_awkward_columns_and_rows_for_the_score(capsys, tmp_path):
    rng = np.random.default_rng(0)
    n = 60
    whens = [f"2024-0{1 + i % 9}-01T00:00:00+0{1 + i % 2}:00" for i in range(n)]
    frame = pd.DataFrame({"when": whens, "a": rng.normal(size=n), "flag": rng.choice([True, False], n)})
    frame["huge"] = np.where(rng.random(n) < 0.5, 1e100, -1e100)
    frame["kind"] = np.where(frame["huge"] > 0, "u", "v")
    frame["maybe"] = pd.array([True, None, False] * 20, dtype="boolean")
    frame.to_parquet("odd.parquet")
    report = run_json(capsys, "fit", "odd.parquet", "-t", "kind", "--drop", "when")
    assert report["telltale"] == "huge"
    frame[["when", "a"]].assign(y=frame["a"]).to_csv("when.csv", index=False)
    report = run_json(capsys, "fit", "when.csv", "-t", "y", "--split", "time", "when", "--drop", "when")
    assert report["held_out_by"] == "the last ones by when" and "when" not in report["relevance"]
    # A file for the score may lack what is dropped, and have a gap among truth values.
    frame[["a", "flag"]].assign(y=frame["a"], id=range(n)).to_csv("rows.csv", index=False)
    frame[:9][["a"]].assign(flag=[True, None] + [False] * 7, y=frame["a"][:9]).to_csv("more.csv", index=False)
    assert main(["fit", "rows.csv", "-t", "y", "--drop", "id", "--test", "more.csv"]) == 0
    out = capsys.readouterr().out
    assert "rows.csv and more.csv: 69 rows," in out and "held out (those of more.csv)" in out
    assert "--no-refit" not in out
    # The folder of a file is private.
    (tmp_path / "secret").mkdir()
    frame[["a"]].assign(y=frame["a"]).to_csv("secret/more.csv", index=False)
    report = run_json(capsys, "fit", "secret/more.csv", "-t", "y", "--test", "secret/more.csv", "-o", "m.mercer")
    assert "secret" not in f"{report['command']}{report['held_out_by']}{report['data']}"
    # Classes that no row to learn from has.
    frame[["a"]].assign(c=np.where(frame["a"] > 0, "p", "q")).to_csv("two.csv", index=False)
    frame[["a"]].assign(c="z").to_csv("three.csv", index=False)
    assert run_json(capsys, "fit", "two.csv", "-t", "c", "--test", "three.csv")["advice"] is None


def test_the_next_command_keeps_what_was_learnt_of_a_text(capsys):
    rng = np.random.default_rng(0)
    texts = ["".join(rng.choice(list("ab" if i % 2 else "cd"), 900)) for i in range(60)]
    pd.DataFrame({"text": texts, "label": ["x", "y"] * 30}).to_csv("text.csv", index=False)
    report = run_json(capsys, "fit", "text.csv", "-t", "label")
    assert report["roles"] == {"text": "text"} and "--text text" in report["tune"]
    pd.DataFrame({"text": texts, "value": np.arange(60) % 2 + rng.normal(size=60)}).to_csv("value.csv", index=False)
    assert main(["fit", "value.csv", "-t", "value"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert max(map(len, lines)) <= 80 and any("…" in line for line in lines)
    assert any(line.startswith("Next: mercer predict value.mercer NEW_DATA --interval 0.9") for line in lines)


def test_a_process_of_several_classes_is_fitted_shown_and_reported(capsys):
    assert main(["fit", "sample:iris", "--model", "gpc", "--report", "iris.html"]) == 0
    assert "kernel" in capsys.readouterr().out
    assert main(["inspect", "iris.mercer"]) == 0
    assert "RBF(" in capsys.readouterr().out
