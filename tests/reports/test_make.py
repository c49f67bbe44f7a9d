"""Reports of fitted models: their numbers, without the page."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_iris
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import mercer
from mercer._errors import DataError, ParameterError
from mercer.reports.subject import Subject

RNG = np.random.default_rng(0)
X = RNG.normal(size=(160, 2))
LABELS = np.where(X[:, 0] * X[:, 1] > 0, "same", "different")
SVC = mercer.SVC(C=10.0).fit(X[:100], LABELS[:100])


def test_scores_are_those_of_the_models() -> None:
    report = mercer.report(SVC, X[100:], LABELS[100:], X_train=X[:100], y_train=LABELS[:100])
    table = report["scores"].table("Scores")
    assert table.column("model") == ["SVC", "gradient boosting", "logistic regression", "most frequent class"]
    linear = make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000)).fit(X[:100], LABELS[:100])
    expected = [np.mean(model.predict(X[100:]) == LABELS[100:]) for model in (SVC, linear)]
    np.testing.assert_allclose(np.array(table.column("accuracy"))[[0, 2]], expected)
    wrong = SVC.predict(X[100:]) != LABELS[100:]
    difference = (linear.predict(X[100:]) != LABELS[100:]).astype(float) - wrong
    by = difference.mean() / (difference.std(ddof=1) / np.sqrt(60))
    assert table.column("ahead by (standard errors)")[2] == pytest.approx(by)
    assert report.verdict[0].startswith(f"SVC predicts the class of {expected[0]:.1%} of 60 rows held out from the fit")


def test_rows_of_the_fit_are_recognised() -> None:
    report = mercer.report(SVC, X[:100], LABELS[:100])
    assert "of its own fit" in report.verdict[0] and "flatter" in report.verdict[2]
    moved = X[:100].copy()
    moved[SVC.support_[0]] += 0.1
    assert "given to the report" in mercer.report(SVC, moved, LABELS[:100]).verdict[0]
    ridge = mercer.KernelRidge().fit(X, X[:, 0])
    assert "of its own fit" in mercer.report(ridge, X, X[:, 0]).verdict[0]
    assert "of its own fit" not in mercer.report(ridge, X[::-1], X[::-1, 0]).verdict[0]


def test_rows_of_the_fit_of_a_table_are_recognised() -> None:
    frame = pd.DataFrame({"size": X[:60, 0], "town": np.where(X[:60, 1] > 0, "Ulm", "Zug")})
    frame.loc[3, "size"] = None
    model = mercer.TabularRegressor().fit(frame, X[:60, 0])
    assert "of its own fit" in mercer.report(model, frame, X[:60, 0]).verdict[0]
    assert "given to the report" in mercer.report(model, frame.assign(town="Ulm"), X[:60, 0]).verdict[0]


def test_a_model_alone() -> None:
    report = mercer.report(SVC)
    assert "scores" not in report and "not known" in report.verdict[0]
    assert report["certificate"].fact("gap") == SVC.certificate_.gap
    assert "X_train" not in repr(mercer.report(SVC, X[:5]))


def test_the_certificate_is_in_the_verdict() -> None:
    early = mercer.SVC(C=1e3, max_iter=2)
    with pytest.warns(UserWarning, match="max_iter"):
        early.fit(X[:100], LABELS[:100])
    report = mercer.report(early, X[100:], LABELS[100:])
    assert "ended early" in report.verdict[1] and "max_iter" in report.verdict[2]
    assert "certified" in mercer.report(SVC).verdict[1]


def test_a_model_that_is_no_better_is_said_to_be() -> None:
    y = X[:, 0] + np.random.default_rng(1).normal(size=160)
    report = mercer.report(mercer.KernelRidge(kernel="rbf", alpha=1e-3).fit(X[:100], y[:100]), X[100:], y[100:])
    assert report.verdict[2].startswith("Prefer the simpler model")


def test_a_simpler_model_is_not_preferred_where_it_is_a_little_worse() -> None:
    y = X[:, 0] + 0.2 * X[:, 0] ** 2 + np.random.default_rng(1).normal(size=160)
    model = mercer.KernelRidge(kernel="poly", degree=2, alpha=1.0).fit(X[:100], y[:100])
    report = mercer.report(model, X[100:], y[100:], X_train=X[:100], y_train=y[:100])
    table = report["scores"].table("Scores")
    r2 = dict(zip(table.column("model"), table.column("R²")))
    assert r2["KernelRidge"] > r2["linear (ridge) regression"]
    assert report.verdict[2].startswith("More rows would tell whether it is better than the linear")


def test_a_linear_model_that_is_no_better_than_the_mean_is_not_preferred() -> None:
    y = np.random.default_rng(1).normal(size=160)
    report = mercer.report(mercer.KernelRidge(alpha=1e-3).fit(X[:100], y[:100]), X[100:], y[100:])
    assert report.verdict[2].startswith("The mean of the target does as well, so the data may not tell the target")
    # A constant column: the linear model is the mean, up to rounding.
    same = np.full((160, 1), 0.1)
    report = mercer.report(mercer.KernelRidge().fit(same[:100], y[:100]), same[100:], y[100:])
    assert "not distinguishable from the mean of the target" in report.verdict[0]
    assert report.verdict[2].startswith("The mean of the target does as well")


def test_a_rare_class_that_probabilities_tell_is_not_called_untold() -> None:
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(900, 2))
    late = np.where(rng.uniform(size=900) < 1 / (1 + np.exp(4.5 - 2.0 * rows[:, 0])), "yes", "no")
    model = mercer.KernelLogisticRegression(C=1.0).fit(rows[:500], late[:500])
    report = mercer.report(model, rows[500:], late[500:])
    assert report.verdict[2].startswith("The probabilities tell the classes apart (AUC ")
    assert report["scores"].table("Scores").column("AUC")[0] > 0.8


def test_targets_whose_squares_vanish_have_the_figures_of_others() -> None:
    y = X[:, 0] ** 2 + 0.1 * X[:, 1]
    one, other = (
        mercer.report(mercer.KernelRidge(kernel="rbf", alpha=0.1).fit(X[:100], size * y[:100]), X[100:], size * y[100:])
        for size in (1.0, 2.0**-530)
    )
    usual, tiny = (report["scores"].table("Scores") for report in (one, other))
    assert usual.column("R²") == pytest.approx(tiny.column("R²"), rel=1e-6) and usual.column("R²")[0] > 0.5
    np.testing.assert_allclose(np.array(tiny.column("RMSE")) * 2.0**530, usual.column("RMSE"), rtol=1e-6)
    heads = "ahead by (standard errors)"
    np.testing.assert_allclose(tiny.column(heads)[1:], usual.column(heads)[1:])
    spread = other["data"].table("Target and predictions").column("standard deviation")
    np.testing.assert_allclose(np.array(spread) * 2.0**530, one["data"].table("Target").column("standard deviation"))


@pytest.mark.slow
def test_the_unit_of_a_target_has_four_digits_on_the_page() -> None:
    for size in (1e-9, 1e5):
        y = size * X[:, 0] ** 2
        report = mercer.report(mercer.KernelRidge(kernel="rbf").fit(X[:100], y[:100]), X[100:], y[100:])
        rmse = report["scores"].table("Scores").column("RMSE")[0]
        text = f"{rmse:.3e}" if size < 1 else f"{round(rmse, 3 - int(np.log10(rmse))):.0f}"
        cell = f'<td class="number">{text.replace("-", "−")}</td>'
        assert cell in report.to_html() and f" is {text} (R²" in report.verdict[0]


def test_simple_models_are_named() -> None:
    y = np.random.default_rng(1).normal(size=160)
    report = mercer.report(mercer.KernelRidge(alpha=1e-3).fit(X[:100], y[:100]), X[100:], y[100:])
    names = report["scores"].table("Scores").column("model")
    assert names[1:] == ["gradient boosting", "linear (ridge) regression", "mean of the target"]


def test_predictions_that_are_not_finite() -> None:
    ridge = mercer.KernelRidge().fit(X, X[:, 0])
    ridge.dual_coef_ = np.full_like(ridge.dual_coef_, np.nan)
    report = mercer.report(ridge, X[:50], X[:50, 0])
    assert report.verdict[0].startswith("KernelRidge predicts NaN or infinity for 50 of 50 rows")
    assert np.isnan(report["scores"].table("Scores").column("RMSE")[0])
    assert "–" in report.to_html()


def test_one_row_and_one_class() -> None:
    report = mercer.report(SVC, X[100:101], LABELS[100:101])
    assert report["scores"].table("Scores").column("model") == ["SVC"]
    assert any("too few" in line for line in report["scores"].text)
    same = LABELS == "same"
    one = mercer.report(SVC, X[same], LABELS[same])["scores"].table("Scores")
    assert one.column("accuracy")[1:] == [1.0, 1.0]


def test_several_targets() -> None:
    Y = np.column_stack([X[:, 0], X[:, 1] ** 2 - 1.0])
    report = mercer.report(mercer.KernelRidge(kernel="poly", degree=2).fit(X[:100], Y[:100]), X[100:], Y[100:])
    assert report["scores"].table("Scores").column("R²")[0] > report["scores"].table("Scores").column("R²")[2]


def test_frames_pipelines_searches_and_tables() -> None:
    iris = load_iris(as_frame=True)
    search = mercer.GridSearchCV(make_pipeline(StandardScaler(), mercer.SVC()), {"svc__C": [1.0, 10.0]}, cv=3)
    report = mercer.report(search.fit(iris.data, iris.target), iris.data, iris.target)
    assert report.title == "SVC: target" and "of its own fit" in report.verdict[0]
    assert "sepal length (cm)" in report["data"].fact("names")
    frame = pd.DataFrame({"size": X[:, 0], "town": np.where(X[:, 1] > 0, "Ulm", "Zug")})
    tabular = mercer.TabularClassifier().fit(frame[:100], frame["town"][:100])
    table = mercer.report(tabular, frame[100:], frame["town"][100:])["scores"].table("Scores")
    assert table.column("accuracy")[:2] == [1.0, 1.0]


def test_strings_and_matrices() -> None:
    texts = ["a cat sat", "dogs run far", "the cat sits", "a dog ran", "cats", "dogs"] * 4
    animals = np.array(["cat", "dog"] * 12)
    model = mercer.SVC(kernel=mercer.kernels.Spectrum(2)).fit(texts, animals)
    report = mercer.report(model, texts, animals)
    assert "logistic regression on counts of words" in report["scores"].table("Scores").column("model")
    K = X @ X.T
    given = mercer.KernelRidge(kernel="precomputed").fit(K[:100, :100], X[:100, 0])
    table = mercer.report(given, K[100:, :100], X[100:, 0])["scores"].table("Scores")
    assert table.column("model") == ["KernelRidge", "mean of the target"]


def test_the_number_of_training_rows_is_told() -> None:
    report = mercer.report(SVC, X[100:], LABELS[100:], X_train=X[:100], y_train=LABELS[:100])
    assert report["data"].fact("training rows") == 100


def test_without_a_target() -> None:
    report = mercer.report(mercer.KernelPCA(2).fit(X), X)
    assert "scores" not in report and report["data"].fact("rows are") == "2 columns"


@pytest.mark.slow
def test_the_same_report_twice_is_the_same() -> None:
    made = [mercer.report(SVC, X[100:], LABELS[100:]).to_html() for _ in range(2)]
    assert made[0] == made[1]


@pytest.mark.parametrize(
    ("arguments", "options", "message"),
    [
        ((X, LABELS[:5]), {}, "one entry for each of the 160 rows"),
        ((X[:2], ["same", None]), {}, "NaN or None in 1 places"),
        ((X[:2], ["same", "other"]), {}, "not among the classes of the fit: other"),
        ((X[:2], ["same", "same"]), {"X_train": X}, "belong together"),
        ((None, LABELS), {}, "pass X, too"),
    ],
)
def test_data_that_cannot_be_used(arguments, options, message) -> None:
    with pytest.raises(DataError, match=message):
        mercer.report(SVC, *arguments, **options)


@pytest.mark.parametrize(
    ("rows", "targets", "message"),
    [
        (X[:5], LABELS[:4], "X_train has 5 rows, but y_train has 4 targets"),
        (X[:1], "same", "X_train has 1 row, but y_train has one value"),
        (X[:99], LABELS[:99], "X_train has 99 rows, but the SVC was fitted on 100"),
        (X[:99].tolist(), LABELS[:99].tolist(), "X_train has 99 rows, but the SVC was fitted on 100"),
    ],
)
def test_training_rows_that_are_not_those_of_the_fit(monkeypatch, rows, targets, message) -> None:
    # Before any work.
    monkeypatch.setattr(mercer.SVC, "predict", None)
    with pytest.raises(DataError, match=message):
        mercer.report(SVC, X[100:], LABELS[100:], X_train=rows, y_train=targets)


def test_which_models_know_the_number_of_their_training_rows() -> None:
    y, weight = X[:, 0], np.repeat([0.0, 1.0], 80)
    known = (mercer.SVR(), mercer.NuSVR(), mercer.KernelRidge(), mercer.KernelNeighborsRegressor())
    for model in (*known, mercer.GaussianProcessRegressor(), make_pipeline(StandardScaler(), mercer.SVR())):
        assert Subject.of(model.fit(X, y)).rows_of_fit == 160
    for model in (mercer.SVR(), mercer.KernelRidge()):
        assert Subject.of(model.fit(X, y, sample_weight=weight)).rows_of_fit == 160
    assert Subject.of(mercer.SVR(approximation="nystroem", n_landmarks=10).fit(X, y)).rows_of_fit == 160
    # They keep landmarks, rows with a weight, or a dictionary.
    for model in (mercer.KernelRidge(approximation="nystroem", n_landmarks=10), mercer.KernelLMS()):
        assert Subject.of(model.fit(X, y)).rows_of_fit is None
    assert Subject.of(mercer.KernelMachine().fit(X, y, sample_weight=weight)).rows_of_fit in (None, 160)


@pytest.mark.parametrize("seed", [-1, 0.5, "zero"])
def test_a_random_state_that_is_not_a_seed(seed) -> None:
    with pytest.raises(ParameterError, match="random_state must be a whole number of 0 or more"):
        mercer.report(SVC, X[100:], LABELS[100:], random_state=seed)


def test_a_wrong_kind_of_data_and_of_model() -> None:
    with pytest.raises(ValueError, match="string"):
        mercer.report(SVC, [["a", "b"], ["c", "d"]], ["same", "same"])
    with pytest.raises(DataError, match="missing or infinite in 1 rows, first in row 1"):
        mercer.report(mercer.KernelRidge().fit(X, X[:, 0]), X[:2], [1.0, np.nan])
    with pytest.raises(ParameterError, match="fitted estimator"):
        mercer.report(mercer.SVC)
    with pytest.raises(NotFittedError):
        mercer.report(mercer.SVC())


@pytest.mark.slow
def test_many_rows_take_seconds_and_a_page_of_less_than_a_megabyte() -> None:
    rows = np.random.default_rng(0).normal(size=(40_000, 20))
    labels = np.where(rows[:, 0] * rows[:, 1] > 0, "a", "b")
    model = mercer.SVC(approximation="nystroem", n_landmarks=500, random_state=0).fit(rows[:20_000], labels[:20_000])
    start = time.process_time()
    report = mercer.report(model, rows[20_000:], labels[20_000:], X_train=rows[:20_000], y_train=labels[:20_000])
    page = report.to_html()
    # On two cores; of processor time, of which other work takes none.
    assert time.process_time() - start < 20.0 and len(page.encode()) < 1_000_000
    assert 0.0 < report["distance"].fact("share of far rows") < 0.1


def test_effects_are_means_of_predictions_along_a_column() -> None:
    frame = pd.DataFrame(X, columns=["a", "b"]).assign(kind=np.where(X[:, 0] > 0, "u", "v"))
    y = np.sin(2.0 * X[:, 0]) + 0.1 * X[:, 1]
    model = mercer.TabularRegressor().fit(frame[:100], y[:100])
    report = mercer.report(model, frame[100:], y[100:])
    assert [figure.title for figure in report["function"].figures] == ["Effect of a", "Effect of b"]
    rows = frame[100:].iloc[np.unique(np.linspace(0, 59, 50).astype(int))]
    table = report["function"].table("Effect of a")
    for value, mean in zip(table.column("a")[::7], table.column("mean prediction")[::7]):
        assert mean == pytest.approx(np.mean(model.predict(rows.assign(a=value))))
    names = [section.name for section in report.sections]
    assert names[:4] == ["scores", "errors", "function", "relevance"]
    assert [section.name for section in report.sections if section.is_folded] == names[-3:]
    assert report.to_html().count("<summary><h2") == 3
    classes = mercer.TabularClassifier().fit(frame[:100], y[:100] > 0)
    assert "mean probability of True" in mercer.report(classes, frame[100:], y[100:] > 0)["function"].text[0]


def test_trees_that_do_better_are_told() -> None:
    y = np.sign(np.sin(5.0 * X[:, 0]))
    model = mercer.KernelRidge(kernel="rbf", alpha=1e3).fit(X[:100], y[:100])
    report = mercer.report(model, X[100:], y[100:], X_train=X[:100], y_train=y[:100])
    assert "worse" in report.verdict[0] and "gradient boosting (" in report.verdict[0]
    trees = report["scores"].table("Scores").column("R²")[1]
    own = HistGradientBoostingRegressor(early_stopping=False).fit(StandardScaler().fit_transform(X[:100]), y[:100])
    assert trees == pytest.approx(own.score(StandardScaler().fit(X[:100]).transform(X[100:]), y[100:]), abs=1e-3)


@pytest.mark.parametrize("names", [["self", "b"], [0, 1]])
def test_columns_of_any_name_have_effects(names: list[Any]) -> None:
    frame = pd.DataFrame(X, columns=names)
    y = np.sin(2.0 * X[:, 0])
    report = mercer.report(mercer.TabularRegressor().fit(frame[:100], y[:100]), frame[100:], y[100:])
    assert len(report["function"].figures) >= 1 and "linear" in report["scores"].table("Scores").column("model")[2]
