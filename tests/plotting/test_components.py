"""Maps of components: coordinates are those of the transform."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError

from mercer import SVC, KernelPCA
from mercer._errors import ParameterError
from mercer.plotting import ComponentsDisplay

X = np.random.default_rng(0).normal(size=(40, 2))
NAMES = np.where(X[:, 0] > 0, "right", "left")


def test_the_map_has_the_coordinates_of_the_rows() -> None:
    model = KernelPCA(3, kernel="rbf").fit(X)
    display = ComponentsDisplay.from_estimator(model, X, NAMES, components=(2, 0)).plot()
    expected = model.transform(X)[:, [2, 0]]
    for number, name in enumerate(["left", "right"]):
        np.testing.assert_allclose(display.points_[number].get_offsets(), expected[name == NAMES])
    assert display.ax_.get_xlabel() == "component 2" and display.contours_ is None


def test_contours_are_of_the_component_over_the_features() -> None:
    model = KernelPCA(2, kernel="rbf").fit(X)
    display = ComponentsDisplay.from_estimator(model, X).plot(component=1)
    corner = model.transform([[display.grid[0][-1], display.grid[1][0]]])[0, 1]
    assert np.isclose(display.surfaces[1][0, -1], corner)
    np.testing.assert_array_equal(display.points_[0].get_offsets(), X)
    assert display.ax_.get_xlabel() == "feature 0" and display.contours_ is not None
    assert display.frame().columns.tolist() == ["component 0", "component 1", "feature 0", "feature 1"]


def test_one_feature_has_curves_and_many_rows_a_sample() -> None:
    model = KernelPCA(2, kernel="rbf").fit(X[:, :1])
    display = ComponentsDisplay.from_estimator(model, X[:, :1], max_points=9).plot(component=0)
    assert len(display.points_[0].get_offsets()) == 9
    assert display.ax_.get_legend().get_title().get_text() == "9 of 40 rows shown"
    np.testing.assert_allclose(display.ax_.lines[0].get_ydata(), display.surfaces[0])


def test_what_cannot_be_drawn_is_refused() -> None:
    with pytest.raises(NotFittedError):
        ComponentsDisplay.from_estimator(KernelPCA(2), X)
    with pytest.raises(ParameterError, match="two of the 2 components of the fit"):
        ComponentsDisplay.from_estimator(KernelPCA(2).fit(X), X, components=(0, 2))
    with pytest.raises(ParameterError, match="needs a KernelPCA"):
        ComponentsDisplay.from_estimator(SVC().fit(X, NAMES), X)
