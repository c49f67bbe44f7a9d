"""Tubes: rows are inside, on the edge or outside, as the fit says or as their residual does."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError

from mercer import SVR, KernelRidge, NuSVR
from mercer._errors import ParameterError
from mercer.plotting import TubeDisplay

RNG = np.random.default_rng(0)
X = RNG.uniform(0, 3, (50, 1))
Y = np.sin(2 * X[:, 0]) + 0.2 * RNG.normal(size=50)


def counts(display: TubeDisplay) -> dict[str, int]:
    return {role: len(drawn.get_offsets()) for role, drawn in display.points_.items()}


@pytest.mark.parametrize("model", [SVR(C=1.0, epsilon=0.15), NuSVR(C=1.0, nu=0.4)], ids=["SVR", "NuSVR"])
def test_rows_have_the_roles_of_the_fit(model: SVR | NuSVR) -> None:
    model.fit(X, Y)
    display = TubeDisplay.from_estimator(model, X, Y).plot()
    expected = {"zero": "inside", "free": "on", "bounded": "outside"}
    assert counts(display) == {role: int((model.roles_ == own).sum()) for role, own in expected.items()}
    np.testing.assert_allclose(display.line_.get_ydata(), model.predict(display.grid[:, None]))
    low, high = (edge.get_ydata() for edge in display.edges_)
    np.testing.assert_allclose(high - low, 2 * getattr(model, "epsilon_", model.get_params().get("epsilon")))


def test_new_rows_are_judged_by_their_residual() -> None:
    model = SVR(epsilon=0.15).fit(X, Y)
    display = TubeDisplay.from_estimator(model, X + 0.01, model.predict(X + 0.01) + 0.5).plot()
    assert counts(display) == {"zero": 0, "free": 0, "bounded": 50}


def test_with_several_features_the_axis_is_the_prediction() -> None:
    rows = np.column_stack([X, RNG.normal(size=(50, 1))])
    model = SVR(epsilon=0.15).fit(rows, Y)
    display = TubeDisplay.from_estimator(model, rows, Y, max_points=20).plot()
    np.testing.assert_array_equal(display.points.x, display.points.predicted)
    assert display.ax_.get_xlabel() == "prediction" and sum(counts(display).values()) == 20
    assert display.ax_.get_legend().get_title().get_text() == "20 of 50 rows shown"


def test_predictions_of_any_regression() -> None:
    display = TubeDisplay.from_predictions([0.0, 1.0, 2.0], [0.05, 1.1, 3.0], epsilon=0.1).plot()
    assert counts(display) == {"zero": 1, "free": 1, "bounded": 1}
    assert display.frame()["role"].tolist() == ["inside the tube", "on its edge", "outside"]


def test_what_cannot_be_drawn_is_refused() -> None:
    with pytest.raises(ParameterError, match="needs an SVR or a NuSVR"):
        TubeDisplay.from_estimator(KernelRidge().fit(X, Y), X, Y)
    with pytest.raises(NotFittedError):
        TubeDisplay.from_estimator(SVR(), X, Y)
    with pytest.raises(ParameterError, match="epsilon must be a number of 0 or more"):
        TubeDisplay.from_predictions([0.0], [0.0], epsilon=-1.0)
