"""Paths: quantities are those of the models, in the order of the parameter."""

from __future__ import annotations

import numpy as np
import pytest

from mercer import SVC, ridge_path, svm_path
from mercer._errors import DataError, ParameterError
from mercer.plotting import PathDisplay

X = np.random.default_rng(0).normal(size=(60, 2))
SIDES = X[:, 0] + 0.3 * X[:, 1] ** 2 > 0.2


def test_support_vectors_gap_and_errors_of_a_path() -> None:
    path = svm_path(X[:40], SIDES[:40], [10.0, 0.1, 1.0])
    display = PathDisplay.from_path(path, X[40:], SIDES[40:]).plot()
    assert display.values.tolist() == [0.1, 1.0, 10.0]
    ordered = [path[1], path[2], path[0]]
    assert display.quantities["support vectors"].tolist() == [len(model.support_) for model in ordered]
    np.testing.assert_allclose(
        display.lines_["error rate"].get_ydata(), [1 - model.score(X[40:], SIDES[40:]) for model in ordered]
    )
    assert display.ax_.get_xscale() == "log" and display.right_ax_.get_ylabel() == "error rate"
    assert display.plot(right=("relative gap",)).lines_.keys() == {"support vectors", "relative gap"}


def test_criteria_of_a_ridge_path() -> None:
    path = ridge_path(X, X[:, 0], [1.0, 0.01, 0.1], kernel="rbf")
    display = PathDisplay.from_path(path, X, X[:, 0]).plot()
    order = np.argsort(path.alphas)
    np.testing.assert_allclose(display.lines_["leave-one-out error"].get_ydata(), path.loo[order])
    np.testing.assert_allclose(display.lines_["log evidence"].get_ydata(), path.evidence[order])
    expected = [np.mean((path[i].predict(X) - X[:, 0]) ** 2) for i in order]
    np.testing.assert_allclose(display.lines_["mean squared error"].get_ydata(), expected)
    assert display.frame().columns.tolist()[0] == "alpha" and len(display.frame()) == 3


def test_what_cannot_be_drawn_is_refused() -> None:
    with pytest.raises(ParameterError, match="must come from mercer"):
        PathDisplay.from_path([SVC()])
    path = svm_path(X, SIDES, [1.0])
    with pytest.raises(DataError, match="both X and y"):
        PathDisplay.from_path(path, X)
    with pytest.raises(DataError, match="must have the shape"):
        PathDisplay.from_path(path, X, SIDES[:3])
    with pytest.raises(ParameterError, match="there is no quantity 'loo'"):
        PathDisplay.from_path(path).plot(left=("loo",))
