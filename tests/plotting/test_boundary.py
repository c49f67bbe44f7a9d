"""Decision regions: what is drawn is what the estimator predicts, and rows have the roles of the fit."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from mercer import SVC, SVR, KernelOrdinalRegression, OneClassSVM
from mercer._errors import DataError, ParameterError
from mercer.plotting import BoundaryDisplay

RNG = np.random.default_rng(0)
X = RNG.normal(size=(80, 2))
SIDES = np.where(X[:, 0] + 0.5 * RNG.normal(size=80) > 0, "right", "left")


def count(display: BoundaryDisplay) -> int:
    return sum(len(drawn.get_offsets()) for drawn in display.points_.values())


def test_regions_are_predictions_and_points_have_their_roles() -> None:
    model = SVC(C=1.0).fit(X, SIDES)
    display = BoundaryDisplay.from_estimator(model, X, SIDES, grid_resolution=9).plot()
    grid = np.column_stack([axis.ravel() for axis in np.meshgrid(*display.grid)])
    assert (display.classes[display.codes.ravel()] == model.predict(grid)).all()
    np.testing.assert_allclose(display.response.ravel(), model.decision_function(grid))
    words = {"outside": "zero", "free": "free", "bounded": "bounded"}
    for (code, role), drawn in display.points_.items():
        own = [i for i in range(80) if words[model.roles_[i]] == role and model.classes_[code] == SIDES[i]]
        np.testing.assert_array_equal(drawn.get_offsets(), X[own])
    assert count(display) == 80 and display.levels == (-1.0, 0.0, 1.0)
    assert display.figure_ is display.ax_.figure
    assert len({drawn.get_paths()[0].vertices.tobytes() for drawn in display.points_.values()}) == 3


def test_one_row_decides_whether_roles_are_those_of_the_fit() -> None:
    model = make_pipeline(StandardScaler(), SVC()).fit(X, SIDES)
    assert BoundaryDisplay.from_estimator(model, X, SIDES, grid_resolution=5).points.roles is not None
    # As many rows, but others.
    assert BoundaryDisplay.from_estimator(model, X + 1.0, SIDES, grid_resolution=5).points.roles is None


def test_several_and_ordered_classes_have_no_margins() -> None:
    three = np.digitize(X[:, 0], [-0.5, 0.5])
    names = np.array(["low", "middle", "high"])[three]
    for model in (SVC().fit(X, names), KernelOrdinalRegression(classes=["low", "middle", "high"]).fit(X, names)):
        display = BoundaryDisplay.from_estimator(model, X, names, grid_resolution=20).plot()
        assert display.response is None and set(np.unique(display.codes)) == {0, 1, 2}
        assert len(display.lines_) == 3
        assert [text.get_text() for text in display.ax_.get_legend().get_texts()][:3] == list(model.classes_)


def test_a_one_class_machine_has_one_boundary() -> None:
    model = OneClassSVM(nu=0.2).fit(X)
    display = BoundaryDisplay.from_estimator(model, X, grid_resolution=15).plot()
    assert display.levels == (0.0,) and len(display.lines_) == 1
    roles = {role: len(drawn.get_offsets()) for (_, role), drawn in display.points_.items()}
    assert roles["bounded"] == (model.roles_ == "outside").sum()
    assert roles["zero"] == (model.roles_ == "inside").sum()
    assert set(display.frame()["role"]) <= {"inside, weight 0", "on the boundary", "outside, at its bound"}


def test_two_of_three_named_features_leave_the_third_at_its_median() -> None:
    table = pd.DataFrame({"a": X[:, 0], "b": RNG.normal(size=80), "c": X[:, 1]})
    model = SVC(kernel="linear").fit(table, SIDES)
    display = BoundaryDisplay.from_estimator(model, table, SIDES, features=["c", "a"], grid_resolution=4).plot()
    assert (display.ax_.get_xlabel(), display.ax_.get_ylabel()) == ("c", "a")
    corner = pd.DataFrame({"a": [display.grid[1][0]], "b": [table["b"].median()], "c": [display.grid[0][-1]]})
    np.testing.assert_allclose(display.response[0, -1], model.decision_function(corner)[0])
    assert display.frame().columns.tolist() == ["c", "a", "class", "role"]


def test_one_feature_shows_decision_values_or_classes() -> None:
    column = X[:, :1]
    display = BoundaryDisplay.from_estimator(SVC().fit(column, SIDES), column, SIDES, grid_resolution=30).plot()
    assert display.ax_.get_ylabel() == "decision value" and count(display) == 80
    np.testing.assert_allclose(display.lines_[0].get_ydata(), display.response)
    three = np.digitize(column[:, 0], [-0.5, 0.5])
    display = BoundaryDisplay.from_estimator(SVC().fit(column, three), column, three, grid_resolution=30).plot()
    assert display.ax_.get_ylabel() == "class" and not display.lines_


def test_a_constant_feature_has_a_range_and_many_rows_are_sampled() -> None:
    rows = np.column_stack([X[:, 0], np.full(80, 3.0)])
    model = SVC().fit(rows, SIDES)
    display = BoundaryDisplay.from_estimator(model, rows, SIDES, grid_resolution=5, max_points=10).plot()
    assert display.grid[1][0] < 3.0 < display.grid[1][-1]
    assert count(display) == 10 == len(display.frame())
    assert display.ax_.get_legend().get_title().get_text() == "10 of 80 rows shown"
    again = BoundaryDisplay.from_estimator(model, rows, SIDES, grid_resolution=5, max_points=10)
    np.testing.assert_array_equal(again.points.values, display.points.values)


def test_what_cannot_be_drawn_is_refused() -> None:
    model = SVC().fit(X, SIDES)
    with pytest.raises(NotFittedError):
        BoundaryDisplay.from_estimator(SVC(), X, SIDES)
    with pytest.raises(DataError, match="NaN in 1 places, first in row 3"):
        BoundaryDisplay.from_estimator(model, np.where(np.arange(160).reshape(80, 2) == 6, np.nan, X), SIDES)
    with pytest.raises(DataError, match="not among the classes of the fit: up"):
        BoundaryDisplay.from_estimator(model, X, np.where(SIDES == "left", "left", "up"))
    with pytest.raises(DataError, match="one entry for each of the 80 rows"):
        BoundaryDisplay.from_estimator(model, X, SIDES[:7])
    with pytest.raises(ParameterError, match="there is no feature 'z'"):
        BoundaryDisplay.from_estimator(model, X, SIDES, features=("z", 0))
    with pytest.raises(ParameterError, match="needs a classifier"):
        BoundaryDisplay.from_estimator(SVR().fit(X, X[:, 0]), X)
    with pytest.raises(ParameterError, match="max_points must be a whole number"):
        BoundaryDisplay.from_estimator(model, X, SIDES, max_points=0)


def test_features_that_are_named_as_the_columns_of_the_table_stay() -> None:
    rows = pd.DataFrame(np.random.default_rng(0).normal(size=(40, 2)), columns=["class", "role"])
    found = BoundaryDisplay.from_estimator(SVC().fit(rows, rows["class"] > 0), rows, rows["class"] > 0).frame()
    assert found.columns.tolist() == ["class", "role", "class_", "role_"]
    np.testing.assert_array_equal(np.sort(found["class"]), np.sort(rows["class"]))
