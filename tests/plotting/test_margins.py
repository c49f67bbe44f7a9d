"""Margins: their shares are those of the decision values, by the true class."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError

from mercer import SVC, SVR
from mercer._errors import DataError, ParameterError
from mercer.plotting import MarginsDisplay

X = np.random.default_rng(0).normal(size=(60, 2))
NAMES = np.where(X[:, 0] + 0.5 * X[:, 1] ** 2 > 0.3, "right", "left")


def test_training_and_held_out_rows() -> None:
    model = SVC().fit(X[:40], NAMES[:40])
    display = MarginsDisplay.from_estimator(model, X[:40], NAMES[:40], X_test=X[40:], y_test=NAMES[40:]).plot()
    np.testing.assert_allclose(display.margins["training rows"], model.margins_, atol=1e-6)
    assert np.isclose(display.error_rates["held-out rows"], 1 - model.score(X[40:], NAMES[40:]))
    heights = display.lines_["held-out rows"].get_ydata()
    assert heights[0] == 0.0 and heights[-1] == 1.0 and len(heights) == 21
    assert len({line.get_linestyle() for line in display.lines_.values()}) == 2
    assert len(display.frame()) == 60


def test_several_classes_have_the_distance_to_the_best_other() -> None:
    display = MarginsDisplay.from_predictions(["a", "b", "c"], [[3, 1, 0], [2, 1, 0], [0, 0, 5]], name="new").plot()
    assert display.margins["new"].tolist() == [2.0, -1.0, 5.0] and display.error_rates == {"new": 1 / 3}


def test_what_cannot_be_drawn_is_refused() -> None:
    with pytest.raises(NotFittedError):
        MarginsDisplay.from_estimator(SVC(), X, NAMES)
    with pytest.raises(ParameterError, match="needs a classifier with decision_function"):
        MarginsDisplay.from_estimator(SVR().fit(X, X[:, 0]), X, X[:, 0])
    with pytest.raises(DataError, match="both X_test and y_test"):
        MarginsDisplay.from_estimator(SVC().fit(X, NAMES), X, NAMES, X_test=X)
    with pytest.raises(DataError, match="have the shape"):
        MarginsDisplay.from_predictions(["a", "b", "c"], [1.0, 2.0, 3.0])
    with pytest.raises(DataError, match="contain NaN"):
        MarginsDisplay.from_predictions(["a", "b"], [1.0, np.nan])


def test_pairs_of_three_classes_are_not_taken_for_these():
    X = np.random.default_rng(0).normal(size=(60, 2))
    y = np.digitize(X[:, 0], [-0.5, 0.5])
    with pytest.raises(ParameterError, match="decision_function_shape='ovr'"):
        MarginsDisplay.from_estimator(SVC(decision_function_shape="ovo").fit(X, y), X, y)


def test_decision_values_that_are_no_numbers() -> None:
    with pytest.raises(DataError, match="decision values must be numbers"):
        MarginsDisplay.from_predictions([0, 1], ["a", "b"])


def test_classes_that_do_not_occur_may_be_named() -> None:
    display = MarginsDisplay.from_predictions(["b", "b"], [2.0, -0.5], classes=["a", "b"])
    assert display.margins["rows"].tolist() == [2.0, -0.5]
    display = MarginsDisplay.from_predictions(["c"], [[1.0, 4.0, 2.0]], classes=["a", "b", "c"])
    assert display.margins["rows"].tolist() == [-2.0]
