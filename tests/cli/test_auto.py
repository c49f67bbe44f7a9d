"""``--model auto``, the default of ``mercer fit``: tables of any columns, as they are."""

from __future__ import annotations

import importlib
import json

import numpy as np
import pandas as pd
import pytest

import mercer
from cli_output import refusal
from mercer.cli import main


@pytest.fixture(autouse=True)
def _in_an_empty_directory(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")


def run(capsys, *arguments):
    code = main([str(argument) for argument in arguments])
    captured = capsys.readouterr()
    return code, captured.out, captured.err


def run_json(capsys, *arguments):
    code, out, err = run(capsys, *arguments, "--json")
    assert code == 0, err
    return json.loads(out)


@pytest.fixture
def trips():
    """Numbers with gaps, a category with gaps, a date, a boolean, and text that tells nothing."""
    rng = np.random.default_rng(0)
    n = 60
    frame = pd.DataFrame(
        {
            "km": np.where(rng.random(n) < 0.1, np.nan, rng.uniform(1, 30, n).round(1)),
            "town": rng.choice(["Ulm", "Zug", None], n),
            "day": pd.date_range("2025-01-01", periods=n, freq="4D").strftime("%Y-%m-%d"),
            "night": rng.choice([True, False], n),
            "driver": [f"driver {i}" for i in range(n)],
        }
    )
    frame["price"] = (3 + 2 * frame["km"].fillna(10) + 5 * frame["night"] + rng.normal(size=n) / 5).round(2)
    frame["dear"] = np.where(frame["price"] > frame["price"].median(), "yes", "no")
    frame.to_csv("trips.csv", index=False)
    return frame


def test_a_table_with_gaps_dates_and_text_needs_no_option(capsys, trips):
    report = run_json(capsys, "fit", "trips.csv", "-t", "price", "--drop", "dear")
    assert report["model"] == "TabularRegressor" and report["model_why"] == "the default for a table"
    assert report["columns"] == "1 number, 1 boolean, 1 category column (3 values), 1 date, 1 text column"
    assert set(report["missing"]) == {"km", "town"}
    assert next(iter(report["relevance"])) == "km" and set(report["relevance"]) == set(trips.columns[:5])
    assert report["scores"]["TabularRegressor"]["r2"] > 0.9
    new = trips.drop(columns=["price", "dear"]).astype({"night": object})
    new.loc[0] = [np.nan, "Rom", "2031-12-31", None, None]
    new.to_csv("new.csv", index=False)
    code, out, err = run(capsys, "predict", "trips.mercer", "new.csv", "--interval", "0.8")
    assert code == 0 and "column 'town' holds 'Rom' in 1 row" in err
    assert out.splitlines()[0] == "price,price 10%,price 90%" and len(out.splitlines()) == 61
    assert run_json(capsys, "evaluate", "trips.mercer", "trips.csv", "--drop", "dear")["scores"]["r2"] > 0.9
    code, out, _ = run(capsys, "inspect", "trips.mercer")
    words = " ".join(out.split())
    assert code == 0 and "relevance km" in words and "TabularRegressor, the default for a table" in words
    assert max(map(len, out.splitlines())) <= 80
    assert run_json(capsys, "inspect", "trips.mercer")["schema"]["day"] == "date"


def test_classes_have_probabilities(capsys, trips):
    report = run_json(capsys, "fit", "trips.csv", "-t", "dear", "--drop", "price", "--drop", "driver")
    assert report["model"] == "TabularClassifier" and report["scores"]["TabularClassifier"]["accuracy"] > 0.8
    code, out, _ = run(capsys, "predict", "trips.mercer", "trips.csv", "--drop", "price", "--probabilities")
    assert code == 0 and out.splitlines()[0] == "dear,P(no),P(yes)"
    shares = np.array([[float(part) for part in line.split(",")[1:]] for line in out.splitlines()[1:]])
    np.testing.assert_allclose(shares.sum(axis=1), 1, atol=1e-5)
    # The model in the file answers as it did before.
    model = mercer.load("trips.mercer")
    mercer.save(model, "again.mercer")
    again = mercer.load("again.mercer")
    np.testing.assert_array_equal(model.predict_proba(trips), again.predict_proba(trips))


@pytest.mark.parametrize(
    ("options", "model", "why"),
    [
        ([], "TabularClassifier", "the default for a table"),
        (["--kernel", "rbf", "--set", "C=1"], "SVC", "the default for a classification with --kernel"),
        (["--set", "C=1"], "SVC", "with --set C"),
        (["--impute", "mean", "--set", "C=1"], "SVC", "with --impute"),
        (["--model", "svc", "--set", "C=1"], "SVC", ""),
        (["--set", "search_rows=40"], "TabularClassifier", "the default for a table"),
    ],
)
def test_the_model_is_chosen_by_the_options(capsys, options, model, why):
    pd.DataFrame({"x": range(40), "y": ["a"] * 20 + ["b"] * 20}).to_csv("t.csv", index=False)
    report = run_json(capsys, "fit", "t.csv", "-t", "y", "--no-refit", *options)
    assert report["model"] == model and report["model_why"].endswith(why)


def test_data_that_are_not_tables_keep_their_learner(capsys):
    report = run_json(capsys, "fit", "sample:messages", "--rows", 60, "--no-refit")
    assert report["model"] == "SVC" and report["model_why"] == "the default for a classification on strings"


@pytest.mark.parametrize(
    ("rows", "options", "words"),
    [
        ([], ["--model", "auto", "--kernel", "rbf"], ["learns its kernel itself", "--model svc"]),
        ([], ["--model", "auto", "--set", "alpha=1"], ["TabularClassifier has no parameter 'alpha'"]),
        ([], ["--set", "kinds={'z': 'category'}"], ["the column 'z'", "'x'"]),
        ([], ["--set", "kinds={'x': 'zip'}"], ["there is no kind 'zip'", "category"]),
        (["2025-02-30,a", "2025-02-28,b"], [], ["line 2", "'2025-02-30' is not a date"]),
        (["3/4/2025,a", "4/4/2025,b"], [], ["dates such as '3/4/2025'", "--drop x"]),
    ],
)
def test_what_auto_cannot_use_is_said(capsys, rows, options, words):
    body = (rows or ["1,a", "2,b"]) * 10
    with open("t.csv", "w", encoding="utf-8") as file:
        file.write("\n".join(["x,y", *body]) + "\n")
    code, _, err = run(capsys, "fit", "t.csv", "-t", "y", *options)
    assert code == 2
    for word in words:
        assert word in refusal(err)


def test_more_rows_than_the_memory_has_room_for_are_a_sample(capsys):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 2))
    np.savez("many.npz", X=X, y=X[:, 0] + rng.normal(size=300))
    code, out, err = run(capsys, "fit", "many.npz", "--memory", "1MiB", "--no-refit")
    words = " ".join(out.split())
    assert code == 0 and "fitted on a random sample of 200, as many as the memory budget allows" in words, err
    assert "fitted on 200 of the 240 rows of the training part" in words
    code, out, err = run(capsys, "fit", "many.npz", "--memory", "1MiB", "--no-refit", "--dry-run")
    assert code == 0 and "200 rows" in " ".join(out.split()) and "does not fit" not in out, err


def test_the_advice_for_many_rows_can_be_followed(capsys):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"x": rng.normal(size=300), "town": rng.choice(["Ulm", "Zug"], 300)})
    frame.assign(y=frame["x"] + rng.normal(size=300)).to_csv("many.csv", index=False)
    code, out, err = run(capsys, "fit", "many.csv", "-t", "y", "--memory", "1MiB", "--no-refit")
    assert code == 0 and "over landmarks with --approximation nystroem" in " ".join(out.split()), err
    assert run(capsys, "fit", "many.csv", "-t", "y", "--approximation", "nystroem", "--landmarks", "20")[0] == 0


def test_intervals_and_probabilities_of_a_model_that_has_none(capsys):
    pd.DataFrame({"x": range(40), "y": ["a"] * 20 + ["b"] * 20}).to_csv("t.csv", index=False)
    assert run(capsys, "fit", "t.csv", "-t", "y", "--model", "svc", "--set", "C=1", "-q")[0] == 0
    for option, words in (
        (["--probabilities"], "SVC gives no probabilities; fit it again with --calibrate, or with --model auto"),
        (["--interval", "0.9"], "--interval is for models of numbers, and SVC predicts classes"),
        (["--interval", "90"], "--interval must be between 0 and 1"),
    ):
        code, _, err = run(capsys, "predict", "t.mercer", "t.csv", *option)
        assert code == 2 and words in refusal(err)


def test_the_ends_of_the_narrowest_interval_have_a_column_each(capsys, trips):
    assert (
        run(capsys, "fit", "trips.csv", "-t", "price", "--drop", "dear", "-o", "m.mercer", "-q", "--no-refit")[0] == 0
    )
    report = run_json(capsys, "predict", "m.mercer", "trips.csv", "--interval", "1e-9")
    assert {"price 49.99999995%", "price 50.00000005%"} <= report.keys()


def test_kinds_that_are_no_dict(capsys, trips):
    code, _, err = run(capsys, "fit", "trips.csv", "-t", "price", "--set", "kinds=abc")
    assert code == 2 and "kinds must be a dict" in refusal(err)


@pytest.mark.parametrize(("n", "way"), [(16, "leaving out each row in turn"), (40, "5 folds")])
def test_how_the_penalty_was_chosen_is_said(capsys, n, way):
    pd.DataFrame({"x": range(n), "y": ["a", "b"] * (n // 2)}).to_csv("t.csv", index=False)
    report = run_json(capsys, "fit", "t.csv", "-t", "y", "--test-size", "0")
    assert report["chosen"].endswith(f" by {way}")


def test_codes_and_sentences_are_said(capsys):
    rng = np.random.default_rng(0)
    notes = [f"the room {i} was loud and dark" for i in range(12)]
    frame = pd.DataFrame({"zip": ["00700", "12345"] * 20, "note": rng.choice(notes, 40), "y": rng.normal(size=40)})
    frame.to_csv("t.csv", index=False)
    report = run_json(capsys, "fit", "t.csv", "-t", "y", "--no-refit")
    assert report["columns"] == "1 category column (2 values), 1 text column"
    assert run_json(capsys, "inspect", "t.mercer")["schema"] == {"zip": "category: 00700, 12345", "note": "text"}
    code, _, err = run(capsys, "predict", "t.mercer", "t.csv")
    assert code == 0 and "note:" not in err
    report = run_json(capsys, "fit", "t.csv", "-t", "y", "--no-refit", "--model", "ridge")
    assert report["columns"] == "2 category columns (14 values)"


def test_intervals_from_few_rows_are_told_to_be_calibrated(capsys):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"a": rng.normal(size=20)}).assign(y=lambda rows: np.sin(rows["a"]) + rng.normal(size=20))
    frame.to_csv("few.csv", index=False)
    for more, told in (([], True), (["--calibrate"], False)):
        assert main(["fit", "few.csv", "-t", "y", "-q", *more]) == 0
        capsys.readouterr()
        assert main(["predict", "few.mercer", "few.csv", "--interval", "0.9"]) == 0
        err = " ".join(capsys.readouterr().err.split())
        assert ("quantiles from 20 rows" in err and "Fit again with --calibrate." in err) == told


def test_the_kernel_is_told_by_the_relevance_of_the_columns(capsys):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"size": rng.normal(size=40), "noise": rng.normal(size=40)})
    frame.assign(y=np.sin(frame["size"])).to_csv("few.csv", index=False)
    assert main(["fit", "few.csv", "-t", "y"]) == 0
    fitted = " ".join(capsys.readouterr().out.split())
    assert main(["inspect", "few.mercer"]) == 0
    inspected = " ".join(capsys.readouterr().out.split())
    for out in (fitted, inspected):
        assert "relevance size" in out and "Matern" not in out
    assert main(["inspect", "few.mercer", "--json"]) == 0
    assert "Matern" in json.loads(capsys.readouterr().out)["kernel"]


@pytest.mark.parametrize(
    ("options", "fits"), [([], 2), (["--no-refit"], 1), (["--calibrate"], 7), (["--rows", "900"], 1)]
)
def test_a_long_fit_says_how_long_it_takes(capsys, monkeypatch, options, fits):
    x = np.arange(1300.0)
    pd.DataFrame({"a": x % 7, "y": np.sin(x)}).to_csv("long.csv", index=False)
    # The time of a fit is that of no machine.
    estimate = importlib.import_module("mercer.costs.estimate")
    monkeypatch.setattr(estimate.Speed, "seconds", lambda self, way, workers: 20.0)

    class Stopped(Exception):
        pass

    def stop(*_, **__):
        raise Stopped

    monkeypatch.setattr("mercer.cli.fit._train", stop)
    code, out, _ = run(capsys, "fit", "long.csv", "-t", "y", *options)
    assert code == 1
    words = " ".join(out.split())
    expected = estimate.in_words(20.0 * fits)
    assert f"It takes about {expected} on" in words and "for less, use --rows" in words
    monkeypatch.setattr(estimate.Speed, "seconds", lambda self, way, workers: 1.0)
    assert "It takes" not in run(capsys, "fit", "long.csv", "-t", "y", *options)[1]


@pytest.mark.parametrize(("rows", "fits"), [(40, 1), (48, 1), (50, 2)])
def test_a_sample_is_fitted_once_where_another_would_be_no_larger(capsys, trips, monkeypatch, rows, fits):
    sizes, original = [], mercer.TabularRegressor.fit

    def counted(self, X, *more, **options):
        sizes.append(len(X))
        return original(self, X, *more, **options)

    monkeypatch.setattr(mercer.TabularRegressor, "fit", counted)
    report = run_json(capsys, "fit", "trips.csv", "-t", "price", "--drop", "dear", "--rows", rows)
    assert sizes == [min(rows, 48), rows][:fits] and report["refitted"] == (fits == 2)
    assert report["rows"] == {"all": 60, "fitted": rows, "held_out": 12}


@pytest.mark.parametrize(
    ("target", "other", "options", "learner", "method"),
    [
        ("price", "dear", ["--std", "--interval", "0.8"], mercer.GaussianProcessRegressor, "predict"),
        ("dear", "price", ["--proba"], mercer.KernelLogisticRegression, "decision_function"),
    ],
)
def test_all_that_is_asked_for_takes_one_pass_over_the_rows(
    capsys, trips, monkeypatch, target, other, options, learner, method
):
    assert run(capsys, "fit", "trips.csv", "-t", target, "--drop", other, "--no-refit", "-q")[0] == 0
    model, rows = mercer.load("trips.mercer"), trips.drop(columns=[target, other])
    calls, original = [], getattr(learner, method)

    def counted(self, X, *more, **options):
        calls.append(X.shape[0])
        return original(self, X, *more, **options)

    monkeypatch.setattr(learner, method, counted)
    code, out, err = run(capsys, "predict", "trips.mercer", "trips.csv", "--drop", other, *options)
    assert code == 0 and calls == [60], err
    monkeypatch.undo()
    lines = [line.split(",") for line in out.splitlines()]
    columns = dict(zip(lines[0], zip(*lines[1:], strict=True), strict=True))
    if target == "dear":
        assert list(columns["dear"]) == model.predict(rows).tolist()
        np.testing.assert_allclose(np.array(columns["P(yes)"], float), model.predict_proba(rows)[:, 1], atol=1e-9)
        return
    interval = model.interval(rows, 0.8)
    for name, values in {
        "price": model.predict(rows),
        "price std": model.predict_std(rows),
        "price 10%": interval.lower,
        "price 90%": interval.upper,
    }.items():
        np.testing.assert_allclose(np.array(columns[name], float), values, rtol=1e-6)
