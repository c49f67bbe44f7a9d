"""The commands end to end, in this process: what they print, write and return."""

from __future__ import annotations

import json
import re

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import dump_svmlight_file, load_iris

import mercer
from cli_output import messages
from mercer._errors import MercerError, ParameterError
from mercer.cli import fit as fit_module
from mercer.cli import main
from mercer.cli.hold_out import hold_out
from mercer.cli.job import Job
from mercer.cli.options import FitOptions, parse_settings
from mercer.cli.size import choose_size
from mercer.data.schema import Schema
from mercer.data.target import Target, read_target

ESCAPE = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


@pytest.fixture(autouse=True)
def _in_an_empty_directory(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("MERCER_DEBUG", raising=False)
    monkeypatch.setenv("COLUMNS", "80")


@pytest.fixture
def houses(tmp_path):
    rng = np.random.default_rng(0)
    n = 90
    frame = pd.DataFrame(
        {
            "id": [f"house {i}" for i in range(n)],
            "size": rng.uniform(20, 200, n).round(1),
            "town": rng.choice(["Ulm", "Zug", "Bonn"], n),
            "new": rng.choice([True, False], n),
        }
    )
    frame["price"] = frame["size"] * 3.5 + 100.0 * (frame["town"] == "Zug") + rng.normal(size=n).round(2)
    frame["dear"] = np.where(frame["price"] > frame["price"].median(), "yes", "no")
    frame.to_csv(tmp_path / "houses.csv", index=False)
    return frame


def run(capsys, *arguments):
    code = main([str(argument) for argument in arguments])
    captured = capsys.readouterr()
    return code, captured.out, captured.err


def run_json(capsys, *arguments):
    code, out, err = run(capsys, *arguments, "--json")
    assert (code, err) == (0, "")
    return json.loads(out)


def test_fit_prints_the_outcome_and_writes_the_model(capsys, tmp_path):
    code, short, err = run(capsys, "fit", "sample:iris", "--model", "svc")
    assert (code, err) == (0, "Reading sample:iris ...\n")
    assert "The solution is certified" in short and "More: --details." in short and "KKT" not in short
    assert len(short.splitlines()) < 25
    code, out, err = run(capsys, "fit", "sample:iris", "--model", "svc", "--details")
    for words in (
        "150 rows, 4 numbers",
        "species: classification",
        "'species' holds",
        "by 5 folds on 120 rows",
        "Score on 30 rows held out (stratified, seed 0)",
        "logistic regression",
        "most frequent class",
        "0.3333",
        "Certificate",
        "converged",
        "KKT violation",
        "support vectors",
        "time",
        "memory",
        "Wrote iris.mercer",
    ):
        assert words in out
    assert max(map(len, out.splitlines())) <= 80
    assert [path.name for path in tmp_path.iterdir()] == ["iris.mercer"]


def test_the_model_file_holds_a_fit_on_all_rows_unless_told_otherwise(capsys):
    iris = load_iris(as_frame=True)
    frame, labels = iris.data, iris.target_names[iris.target]
    given = ("--model", "svc", "--set", "gamma=0.1")
    report = run_json(capsys, "fit", "sample:iris", *given, "--out", "m.mercer")
    assert report["file"] == "m.mercer" and report["rows"] == {"all": 150, "fitted": 150, "held_out": 30}
    assert report["scores"]["SVC"]["accuracy"] > 0.9 > report["scores"]["most frequent class"]["accuracy"]
    model = mercer.load("m.mercer")
    assert np.mean(model.predict(frame) == labels) > 0.95
    assert model.estimator_.shape_fit_ == (150, 4)
    # What is said of the answer is said of the model in the file.
    assert model.estimator_.certificate_.primal == report["certificate"]["primal"]
    part = run_json(capsys, "fit", "sample:iris", *given, "--no-refit", "--out", "part.mercer")
    assert part["rows"] == {"all": 150, "fitted": 120, "held_out": 30} and part["scores"] == report["scores"]
    loaded = mercer.load("part.mercer")
    assert loaded.estimator_.shape_fit_ == (120, 4) and loaded.estimator_.C == model.estimator_.C
    assert loaded.estimator_.certificate_.primal == part["certificate"]["primal"] != report["certificate"]["primal"]
    test_rows = hold_out(read_target(labels, "species"), 0.2, 0)[1]
    assert np.mean(loaded.predict(frame.iloc[test_rows]) == labels[test_rows]) == report["scores"]["SVC"]["accuracy"]


def test_which_rows_the_model_was_fitted_on_is_said(capsys):
    for options, words in (
        ([], "fitted on all 150 rows after the score"),
        (["--no-refit"], "fitted on the 120 rows of the training part"),
        (["--test-size", "0"], "fitted on all 150 rows, in"),
    ):
        _, out, _ = run(capsys, "fit", "sample:iris", "--set", "C=1", *options)
        assert words in " ".join(out.split())
        _, out, _ = run(capsys, "inspect", "iris.mercer")
        assert words.removesuffix(", in") in " ".join(out.split()) and "150 rows" in out


def test_regression_with_every_kind_of_column(capsys, houses):
    report = run_json(capsys, "fit", "houses.csv", "--target", "price", "--drop", "dear", "--model", "ridge")
    assert report["task"] == "regression" and report["model"] == "KernelRidge"
    assert report["columns"] == "1 number, 1 boolean, 1 category column (3 values)"
    assert list(report["left_out"]) == ["id", "dear"] and report["left_out"]["dear"] == "--drop"
    assert "exact leave-one-out" in report["chosen"]
    assert report["scores"]["KernelRidge"]["r2"] > 0.95
    assert abs(report["scores"]["mean of the target"]["r2"]) < 0.3
    assert run(capsys, "predict", "houses.mercer", "houses.csv", "--drop", "dear", "--out", "p.csv")[0] == 0
    assert np.corrcoef(pd.read_csv("p.csv")["price"], houses["price"])[0, 1] > 0.99


@pytest.mark.parametrize(("model", "name"), [("svr", "SVR"), ("nu-svr", "NuSVR")])
def test_support_vector_regression_sees_a_standardised_target(capsys, houses, model, name):
    data = ("houses.csv", "--target", "price", "--drop", "dear")
    report = run_json(capsys, "fit", *data, "--model", model, "--set", "C=10")
    assert report["model"] == name and report["scores"][name]["r2"] > 0.9


def test_nu_svc(capsys):
    report = run_json(capsys, "fit", "sample:moons", "--model", "nu-svc", "--set", "nu=0.2")
    assert report["model"] == "NuSVC" and report["certificate"]["status"] == "converged"


def test_gaussian_process_classification(capsys):
    report = run_json(capsys, "fit", "sample:moons", "--model", "gpc", "--rows", 120, "--set", "max_iter_predict=50")
    assert report["model"] == "GaussianProcessClassifier" and "RBF" in report["kernel"]
    assert report["certificate"]["kkt_violation"] < 1e-6
    assert report["scores"]["GaussianProcessClassifier"]["accuracy"] > 0.85


def test_a_gaussian_process_by_the_target(capsys):
    rng = np.random.default_rng(0)
    time = rng.uniform(0, 6, 120)
    level = np.sin(time) + 0.3 * rng.normal(size=120)
    pd.DataFrame({"time": time, "level": level, "side": np.where(level > 0, "up", "down")}).to_csv(
        "wave.csv", index=False
    )
    numbers = ("wave.csv", "-t", "level", "--drop", "side", "--model", "gp")
    report = run_json(capsys, "fit", *numbers)
    assert report["model"] == "GaussianProcessRegressor" and "RBF" in report["kernel"]
    # The variance of the noise is 0.09, that of the target about 0.6; the draws have their share.
    noise = float(report["chosen"].partition("noise=")[2].split()[0])
    assert noise == pytest.approx(0.09 / level.var(), rel=0.5)
    assert report["scores"]["GaussianProcessRegressor"]["r2"] > 0.7
    assert run(capsys, "predict", "wave.mercer", "wave.csv", "--drop", "side", "--out", "p.csv")[0] == 0
    assert np.corrcoef(pd.read_csv("p.csv")["level"], np.sin(time))[0, 1] > 0.95
    exact = run_json(capsys, "fit", *numbers, "--set", "noise=None", "--set", "alpha=0.1")
    assert exact["chosen"] is None and exact["parameters"]["alpha"] == 0.1
    classes = run_json(capsys, "fit", "wave.csv", "-t", "side", "--drop", "level", "--model", "gp")
    assert classes["model"] == "GaussianProcessClassifier"
    assert classes["scores"]["GaussianProcessClassifier"]["accuracy"] > 0.75


def test_ordered_classes(capsys):
    rng = np.random.default_rng(0)
    size = rng.uniform(0, 3, 150)
    grade = np.array(["low", "middle", "high"])[np.digitize(size + 0.1 * rng.normal(size=150), [1.0, 2.0])]
    pd.DataFrame({"size": size, "grade": grade}).to_csv("grades.csv", index=False)
    data = ("grades.csv", "--target", "grade", "--model", "ordinal")
    report = run_json(capsys, "fit", *data, "--set", "classes=['low', 'middle', 'high']", "--set", "C=10")
    assert report["model"] == "KernelOrdinalRegression" and report["certificate"]["status"] == "converged"
    assert report["classes"] == ["low", "middle", "high"] and report["chosen"] == "the order low < middle < high"
    assert report["scores"]["KernelOrdinalRegression"]["accuracy"] > 0.85
    assert run(capsys, "evaluate", "grades.mercer", "grades.csv")[0] == 0
    assert run(capsys, "predict", "grades.mercer", "grades.csv", "--out", "p.csv")[0] == 0
    assert (pd.read_csv("p.csv")["grade"] == grade).mean() > 0.85
    code, _, err = run(capsys, "fit", *data)
    assert code == 2 and "highest: --set \"classes=['high', 'low', 'middle']\", in their order;" in err
    assert err.endswith("pass --set classes=sorted.\n") and "pandas" not in err
    code, _, err = run(capsys, "fit", *data, "--set", "classes=['low', 'high']")
    assert code == 2 and "middle" in err


def test_logistic(capsys):
    report = run_json(capsys, "fit", "sample:moons", "--model", "logistic", "--set", "C=10")
    assert report["model"] == "KernelLogisticRegression" and report["certificate"]["status"] == "converged"
    assert report["scores"]["KernelLogisticRegression"]["accuracy"] > 0.9


def test_perceptron_and_nearest_rows_which_minimise_nothing(capsys, houses):
    moons = ("fit", "sample:moons", "--model", "perceptron", "--rows", 150)
    report = run_json(capsys, *moons, "--set", "averaging=averaged")
    assert report["model"] == "KernelPerceptron" and report["certificate"] is None
    assert "updates in" in report["certificate_text"] and report["parameters"]["random_state"] == 0
    assert report["scores"]["KernelPerceptron"]["accuracy"] > 0.85
    # With a budget there is no bound on mistakes, and the first word of the text is that of the updates.
    options = ("--set", "budget=20", "--set", "max_iter=1")
    text = run_json(capsys, *moons, *options)["certificate_text"]
    assert re.match(r"\d+ updates in 1 pass, \d+ of them in the last; a perceptron", text)
    for target, other, name, metric in (
        ("dear", "price", "KernelNeighborsClassifier", "accuracy"),
        ("price", "dear", "KernelNeighborsRegressor", "r2"),
    ):
        data = ("houses.csv", "--target", target, "--drop", other, "--model", "neighbors")
        report = run_json(capsys, "fit", *data, "--set", "n_neighbors=3")
        assert report["model"] == name and report["certificate"] is None and report["scores"][name][metric] > 0.7
        assert run_json(capsys, "evaluate", "houses.mercer", "houses.csv", "--drop", other)["scores"][metric] > 0.7
        code, out, err = run(capsys, "fit", *data)
        assert code == 0 and not messages(err) and "nothing is minimised" in out
        # Commands are left whole, so that they can be copied.
        assert max(len(line) for line in out.splitlines() if not line.startswith("  mercer ")) <= 80
        code, out, err = run(capsys, "inspect", "houses.mercer")
        assert (code, err) == (0, "Reading the model houses.mercer ...\n") and "nothing is minimised" in out
    code, _, err = run(capsys, "fit", "houses.csv", "-t", "price", "--model", "perceptron", "--task", "regression")
    assert code == 2 and "the model perceptron is for classification, and the task is regression" in err


def test_same_seed_same_model(capsys):
    few = ("--rows", 60, "--no-refit")
    first = run_json(capsys, "fit", "sample:moons", *few, "--out", "a.mercer", "--seed", 3)
    second = run_json(capsys, "fit", "sample:moons", *few, "--out", "b.mercer", "--seed", 3)
    other = run_json(capsys, "fit", "sample:moons", *few, "--out", "c.mercer", "--seed", 4)
    assert first["certificate"]["dual"] == second["certificate"]["dual"] != other["certificate"]["dual"]


def test_kernel_parameters_and_encoding_are_what_was_asked(capsys, houses):
    report = run_json(
        capsys,
        "fit",
        "houses.csv",
        "-t",
        "dear",
        "--drop",
        "price",
        "--kernel",
        "0.5*RBF(2.0).on('size') + Linear()",
        "--set",
        "C=10",
        "--set",
        "class_weight=balanced",
        "--normalize",
        "minmax",
    )
    assert report["kernel"] == "0.5 * RBF(2.0).on(['size']) + Linear()"
    assert report["parameters"]["C"] == 10 and report["parameters"]["class_weight"] == "balanced"
    assert report["normalize"] == "minmax"
    named = run_json(capsys, "fit", "sample:moons", "--rows", 60, "--kernel", "poly", "--set", "degree=2")
    assert "Polynomial" in named["kernel"] or "**" in named["kernel"]


def test_missing_values_are_filled_in_when_asked(capsys, houses):
    houses.loc[5, "size"] = np.nan
    houses.to_csv("gaps.csv", index=False)
    code, _, err = run(capsys, "fit", "gaps.csv", "-t", "dear", "--model", "svc")
    assert code == 2 and "'size' (1)" in err and "line 7" in err and "--impute median" in err
    report = run_json(capsys, "fit", "gaps.csv", "-t", "dear", "--impute", "median", "--set", "C=10")
    assert report["impute"] == "median"
    assert run(capsys, "predict", "gaps.mercer", "gaps.csv", "--quiet")[0] == 0


def test_predict_prints_or_writes(capsys):
    run(capsys, "fit", "sample:iris", "--set", "C=1")
    code, out, err = run(capsys, "predict", "iris.mercer", "sample:iris")
    reading = "Reading the model iris.mercer and the rows of sample:iris ..."
    assert (code, err.splitlines()) == (0, [reading, "Predicting species of 150 rows by SVC ..."])
    assert out.splitlines()[0] == "species" and len(out.splitlines()) == 151
    for name, reader in (("p.csv", pd.read_csv), ("p.tsv", pd.read_table), ("p.parquet", pd.read_parquet)):
        code, shown, _ = run(capsys, "predict", "iris.mercer", "sample:iris", "--out", name)
        assert code == 0 and f"Wrote 150 predictions of species to {name}" in shown
        assert reader(name)["species"].tolist() == out.split()[1:]
    result = run_json(capsys, "predict", "iris.mercer", "sample:iris")
    assert result["predictions"] == out.split()[1:] and result["rows"] == 150


def test_evaluate(capsys):
    run(capsys, "fit", "sample:iris", "--set", "C=1")
    code, out, _ = run(capsys, "evaluate", "iris.mercer", "sample:iris")
    assert code == 0
    for words in ("150 rows", "accuracy", "virginica", "recall"):
        assert words in out
    result = run_json(capsys, "evaluate", "iris.mercer", "sample:iris")
    assert result["scores"]["accuracy"] > 0.95
    assert result["classes"]["setosa"] == {"rows": 50, "precision": 1.0, "recall": 1.0}


def test_evaluate_a_regression(capsys):
    run(capsys, "fit", "sample:sinc", "--rows", 60)
    result = run_json(capsys, "evaluate", "sinc.mercer", "sample:sinc")
    assert result["scores"]["r2"] > 0.9 and result["scores"]["rmse"] < 0.2 and result["classes"] == {}


def test_inspect_shows_what_the_fit_printed(capsys):
    run(capsys, "fit", "sample:iris", "--model", "svc", "--set", "gamma=0.1")
    code, out, _ = run(capsys, "inspect", "iris.mercer")
    assert code == 0
    for words in ("SVC", "RBF(", "gamma", "petal width (cm)", "setosa, versicolor, virginica", "accuracy", "converged"):
        assert words in out
    assert max(map(len, out.splitlines())) <= 80
    assert run_json(capsys, "inspect", "iris.mercer")["schema"]["petal width (cm)"] == "number"


def test_samples_are_listed(capsys):
    code, out, _ = run(capsys, "samples")
    assert code == 0 and "iris" in out and "friedman1" in out
    assert run_json(capsys, "samples")["digits"]["columns"] == 64


@pytest.mark.parametrize("name", ["train.libsvm", "a9a"])
def test_libsvm_files(capsys, name):
    rng = np.random.default_rng(0)
    X = np.where(rng.random((80, 30)) < 0.1, 1.0, 0.0)
    y = np.where(X[:, :5].sum(axis=1) > 0, 1, -1)
    dump_svmlight_file(X, y, name, zero_based=False)
    report = run_json(capsys, "fit", name, "--set", "C=10", "--out", "m.mercer")
    assert report["target"] == "label" and report["task"] == "classification"
    assert run_json(capsys, "evaluate", "m.mercer", name)["scores"]["accuracy"] > 0.8


def test_npz_files(capsys):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 3))
    np.savez("a.npz", X=X, y=X[:, 0] ** 2, other=np.arange(60))
    assert run_json(capsys, "fit", "a.npz")["target"] == "y"
    assert run_json(capsys, "fit", "a.npz", "-t", "other")["target"] == "other"


def test_without_a_held_out_part_there_is_no_score(capsys):
    code, out, _ = run(capsys, "fit", "sample:iris", "--set", "C=1", "--test-size", "0")
    assert code == 0 and "No rows were held out" in out
    assert mercer.load("iris.mercer").report_["rows"] == {"all": 150, "fitted": 150, "held_out": 0}


def test_a_terminal_shows_that_the_fit_goes_on(capsys, monkeypatch):
    monkeypatch.setenv("FORCE_COLOR", "1")
    code, _, err = run(capsys, "fit", "sample:iris", "--set", "C=1")
    assert code == 0 and "fit " in err and "0:00:0" in err
    code, out, err = run(capsys, "predict", "iris.mercer", "sample:iris", "--out", "p.csv")
    assert code == 0 and "predict " in err and "0:00:0" in err and "0:00:0" not in out


def test_a_terminal_shows_the_evaluations_of_a_search(capsys, monkeypatch):
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "120")
    code, _, err = run(capsys, "fit", "sample:sinc", "--model", "gp", "--test-size", "0")
    lines = [ESCAPE.sub("", line) for line in re.split(r"[\r\n]", err)]
    evidence_lines = [line for line in lines if line.startswith("evidence")]
    search = mercer.load("sinc.mercer").estimator_.search_
    assert code == 0 and f"{search.evaluations} evaluations, highest {search.value:.6g}" in evidence_lines[-1]
    # How many there will be is not known, so no time is promised.
    assert all("-:--:--" in line or line.count("0:00:") == 1 for line in evidence_lines)


def _many(n, options=(), columns=3):
    """The size that is chosen for a table of n rows, which is not made."""
    target = Target("y", "regression", "", np.broadcast_to(0.0, n))
    schema = Schema({f"x{j}": "number" for j in range(columns)})
    parts = np.broadcast_to(0, round(0.8 * n)), np.broadcast_to(0, round(0.2 * n))
    job = Job(None, target, schema, None, *parts, dict(options).get("model", "ridge"), "")
    with mercer.config(memory="8GiB"):
        return choose_size(FitOptions("many.csv", target="y", **dict(options)), job)


def test_many_rows_are_announced_with_what_they_cost():
    few, many = _many(50_000, {"model": "svr"}), _many(60_000, {"model": "svr"})
    assert few.most is None and "hours" not in few.words
    assert many.most is None and "kernel matrix 26.8 GiB" in many.words and "hours" in many.words


def test_too_many_rows_are_told_before_the_work():
    # By default some of the rows; what was asked for is refused, with what would do.
    size = _many(49_000)
    assert size.most == 10_000 and "fitted on a random sample of 10000" in size.words and "--model svr" in size.words
    assert _many(19_000).most is None and _many(49_000, {"rows": 5000}).most == 5000
    assert _many(30_000, {"model": "ridge"}).most is None
    with pytest.raises(MercerError, match="enough for 32000 rows") as caught:
        _many(49_000, {"model": "ridge"})
    command = str(caught.value).partition("(")[2].partition(")")[0]
    assert command == "mercer fit many.csv --target y --model ridge --rows 10000"
    assert "all of them with --model svr" in str(caught.value)
    # Ridge regression by a linear kernel on few columns makes no matrix of all pairs; a Gaussian process does.
    linear = _many(490_000, {"model": "ridge", "kernel": "linear"})
    assert linear.most is None and "no kernel matrix is made" in linear.words and "hours" not in linear.words
    for kernel in (None, "linear"):
        with pytest.raises(MercerError, match="gp on 49000 rows may need"):
            _many(49_000, {"model": "gp", "kernel": kernel})


def test_a_sample_of_the_rows(capsys):
    data = ("fit", "sample:swiss_roll", "--rows", 200, "--set", "alpha=0.1")
    report = run_json(capsys, *data)
    assert report["rows"] == {"all": 1000, "fitted": 200, "held_out": 200}
    assert mercer.load("swiss_roll.mercer").estimator_.dual_coef_.shape[0] == 200
    _, out, _ = run(capsys, *data)
    assert "fitted on 200 of the 800 rows of the training part, drawn at random" in " ".join(out.split())
    _, out, _ = run(capsys, *data, "--rows", 900)
    assert "fitted on 900 of all 1000 rows, drawn at random after the score" in " ".join(out.split())
    # Ten classes, each with its share.
    report = run_json(capsys, "fit", "sample:digits", "--rows", 300, "--set", "C=1")
    assert 295 <= report["rows"]["fitted"] <= 305 and report["scores"]["SVC"]["accuracy"] > 0.9


def test_what_does_not_fit_the_budget_is_refused_before_it_is_tried(capsys, monkeypatch):
    monkeypatch.setattr(fit_module, "choose", lambda *_: pytest.fail("the work began"))
    code, _, err = run(capsys, "fit", "sample:swiss_roll", "--model", "ridge", "--memory", "3MiB")
    assert code == 2 and "enough for 620 rows" in err and "--rows 620" in err


def test_quiet_prints_nothing(capsys):
    assert run(capsys, "fit", "sample:iris", "--set", "C=1", "--quiet") == (0, "", "")
    assert run(capsys, "predict", "iris.mercer", "sample:iris", "-q", "--out", "p.csv") == (0, "", "")


def test_notes_go_to_standard_error_without_a_traceback(capsys):
    pd.DataFrame({"x": range(40), "y": ["a", "b"] * 19 + ["a", "c"]}).to_csv("rare.csv", index=False)
    code, _, err = run(capsys, "fit", "rare.csv", "-t", "y", "--set", "C=1")
    assert code == 0 and "note: classes of 'y' with one row only stay in the training part: 'c'" in err
    assert len(err.splitlines()) == 2


def test_brackets_in_names_are_no_markup(capsys):
    pd.DataFrame({"[bold]x": range(40), "[/y]": [0.5, 1.5] * 20}).to_csv("odd.csv", index=False)
    code, out, err = run(capsys, "fit", "odd.csv", "-t", "[/y]", "--set", "alpha=0.1")
    assert (code, err) == (0, "Reading odd.csv ...\n") and "[/y]: regression" in out
    assert "[bold]x" in run(capsys, "inspect", "odd.mercer")[1]


def test_settings_are_literals_or_text():
    assert parse_settings(["C=1e-2", "name=two words", "w={1: 2.0}", "s='3'"]) == {
        "C": 0.01,
        "name": "two words",
        "w": {1: 2.0},
        "s": "3",
    }
    assert parse_settings(["C=inf"]) == {"C": float("inf")}
    for bad in ("C", "=3", "C=", "a b=1"):
        with pytest.raises(ParameterError, match="--set takes NAME=VALUE"):
            parse_settings([bad])
    with pytest.raises(ParameterError, match="--set C is given twice"):
        parse_settings(["C=1", "C=2"])


def test_a_model_without_support_vectors_is_used_like_any(capsys):
    assert run(capsys, "fit", "sample:iris", "--set", "C=1", "--set", "max_iter=0")[0] == 0
    assert run(capsys, "predict", "iris.mercer", "sample:iris")[0] == 0
