"""The section on errors: its numbers."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import mercer
from mercer.reports.errors import errors, worst
from mercer.reports.judged import Judged
from mercer.reports.material import Material
from mercer.reports.subject import Subject

RNG = np.random.default_rng(0)
X = RNG.normal(size=(120, 2))
LABELS = np.where(X[:, 0] * X[:, 1] > 0, "same", "different")


def _section(judged: Judged):
    return errors(Material(Subject(mercer.SVC()), 0, judged=judged))


def test_confusions_count_every_row() -> None:
    truth, predicted = np.array(["a", "a", "b", "c"]), np.array(["a", "b", "b", "b"])
    table = _section(Judged("classification", truth, predicted, "new", np.array(["a", "b", "c"]))).table("Confusions")
    assert table.rows == (("a", 1, 1, 0), ("b", 0, 1, 0), ("c", 0, 1, 0))


def test_many_classes_are_counted_together() -> None:
    truth = np.repeat(np.arange(40), np.arange(1, 41))
    table = _section(Judged("classification", truth, truth, "new", np.arange(40))).table("Confusions")
    assert table.heads[-1] == "all others" and len(table.rows) == 16
    assert sum(sum(row[1:]) for row in table.rows) == len(truth) and table.rows[-1][-1] == sum(range(1, 26))


def test_calibration_is_the_share_of_right_rows_by_probability() -> None:
    shares = np.array([[0.92, 0.08], [0.98, 0.02], [0.35, 0.65], [0.55, 0.45]])
    judged = Judged("classification", np.array([0, 1, 1, 0]), shares.argmax(axis=1), "new", np.arange(2), shares)
    table = _section(judged).table("Calibration")
    assert table.column("rows") == [1, 1, 2] and table.column("share that is right") == [1.0, 1.0, 0.5]
    assert table.column("mean probability") == pytest.approx([0.55, 0.65, 0.95])
    assert worst(judged).column("row")[0] == "row 2"


def test_margins_of_models_without_probabilities() -> None:
    model = mercer.SVC(C=10.0).fit(X, LABELS)
    table = mercer.report(model, X, LABELS)["errors"].table("Quantiles of the margins")
    signed = np.where(LABELS == "same", 1.0, -1.0) * model.decision_function(X)
    np.testing.assert_allclose(table.column("margin up to")[4], np.median(signed))


def test_wrong_rows_are_ranked_by_their_margins() -> None:
    truth, decision = np.array([0, 1, 1, 0, 1]), np.array([0.5, -2.0, 3.0, 1.5, -0.1])
    judged = Judged("classification", truth, (decision > 0).astype(int), "new", np.arange(2), decision=decision)
    assert worst(judged).column("row") == ["row 2", "row 4", "row 1", "row 5"]
    assert worst(judged).column("margin") == [-2.0, -1.5, -0.5, -0.1]


def test_residuals_intervals_and_worst_rows() -> None:
    y = np.sin(2 * X[:, 0]) + 0.1 * RNG.normal(size=120)
    model = mercer.GaussianProcessRegressor(1.0 * mercer.kernels.RBF(1.0), noise=0.1).fit(X[:60], y[:60])
    section = mercer.report(model, X[60:], y[60:])["errors"]
    mean, deviation = model.predict(X[60:], return_std=True, observation=True)
    inside = np.abs(y[60:] - mean) <= 1.2815515655446004 * deviation
    assert section.table("Calibration of intervals").column("share of targets inside")[1] == pytest.approx(
        inside.mean()
    )
    largest = int(np.abs(y[60:] - mean).argmax())
    rows = section.table("The 20 worst rows")
    assert rows.column("row")[0] == f"row {largest + 1}" and rows.column("target")[0] == y[60 + largest]
    assert sum(section.table("Residuals").column("rows")) == 60


def test_places_are_those_of_the_file() -> None:
    judged = Judged("regression", np.array([0.0, 5.0]), np.zeros(2), "new", locate=lambda row: f"line {row + 2}")
    assert worst(judged).column("row") == ["line 3", "line 2"]


def test_nothing_wrong() -> None:
    truth = np.array([0, 1])
    judged = Judged("classification", truth, truth, "new", truth)
    assert worst(judged).rows == () and "No row is wrong" in _section(judged).text[0]
    assert [table.title[:10] for table in _section(judged).tables] == ["Confusions"]


def test_what_bad_rows_hold() -> None:
    judged = Judged("regression", np.array([0.0, 5.0]), np.zeros(2), "new")
    assert worst(judged, ["a", "b" * 500]).column("text") == ["b" * 79 + "…", "a"]
    frame = pd.DataFrame({"town": ["Ulm", "Zug"], "size": [1, 2]})
    assert worst(judged, frame).column("town") == ["Zug", "Ulm"]


def test_margins_where_classes_are_missing_and_of_pairs() -> None:
    labels = np.digitize(X[:, 0], [-0.5, 0.5])
    model = mercer.SVC().fit(X, labels)
    few = labels != 1
    table = mercer.report(model, X[few], labels[few])["errors"].table("Quantiles of the margins")
    values = model.decision_function(X[few])
    own = values[np.arange(few.sum()), labels[few]]
    others = np.where(np.arange(3) == labels[few, None], -np.inf, values).max(axis=1)
    np.testing.assert_allclose(table.column("margin up to")[4], np.median(own - others))
    pairs = mercer.SVC(decision_function_shape="ovo").fit(X, labels)
    assert mercer.report(pairs, X, labels)["errors"].figures == ()
