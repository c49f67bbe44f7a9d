"""Clusters: regions and rows are as the estimator assigns them."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError

from mercer import SVC, KernelKMeans
from mercer._errors import DataError, ParameterError
from mercer.plotting import ClustersDisplay

X = np.random.default_rng(0).normal(size=(60, 2))


def test_regions_and_rows_are_those_of_the_fit() -> None:
    model = KernelKMeans(3, random_state=0).fit(X)
    display = ClustersDisplay.from_estimator(model, X, grid_resolution=12).plot()
    grid = np.column_stack([axis.ravel() for axis in np.meshgrid(*display.grid)])
    assert (display.codes.ravel() == model.predict(grid)).all()
    for number, drawn in display.points_.items():
        np.testing.assert_array_equal(drawn.get_offsets(), X[model.labels_ == number])
    assert len({drawn.get_paths()[0].vertices.tobytes() for drawn in display.points_.values()}) == 3
    assert display.frame().columns.tolist() == ["feature 0", "feature 1", "cluster"]


def test_one_feature_and_a_sample() -> None:
    model = KernelKMeans(2, random_state=0).fit(X[:, :1])
    display = ClustersDisplay.from_estimator(model, X[:, :1], max_points=12).plot()
    assert display.ax_.get_ylabel() == "cluster" and not display.lines_
    assert sum(len(drawn.get_offsets()) for drawn in display.points_.values()) == 12
    assert display.ax_.get_legend().get_title().get_text() == "12 of 60 rows shown"


def test_what_cannot_be_drawn_is_refused() -> None:
    with pytest.raises(NotFittedError):
        ClustersDisplay.from_estimator(KernelKMeans(2), X)
    with pytest.raises(ParameterError, match="needs a KernelKMeans"):
        ClustersDisplay.from_estimator(SVC().fit(X, X[:, 0] > 0), X)
    with pytest.raises(DataError, match="NaN"):
        ClustersDisplay.from_estimator(KernelKMeans(2).fit(X), np.full((2, 2), np.nan))
