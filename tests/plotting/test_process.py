"""Curves with bands: they are those of the estimator, before a fit and after it."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import NotFittedError

from mercer import SVR, GaussianProcessRegressor, KernelQuantileRegression
from mercer._errors import DataError, ParameterError
from mercer.kernels import RBF
from mercer.plotting import ProcessDisplay

RNG = np.random.default_rng(0)
X = RNG.uniform(0, 3, (30, 1))
Y = np.sin(2 * X[:, 0]) + 0.1 * RNG.normal(size=30)


def process() -> GaussianProcessRegressor:
    return GaussianProcessRegressor(1.0 * RBF(0.7), noise=0.01, optimizer=None)


def test_the_bands_are_those_of_the_function_and_of_observations() -> None:
    model = process().fit(X, Y)
    display = ProcessDisplay.from_estimator(model, X, Y, grid_resolution=25, n_draws=2).plot()
    mean, std = model.predict(display.grid[:, None], return_std=True, observation=True)
    np.testing.assert_allclose(display.lines_[0].get_ydata(), mean)
    outer = display.bands_[0].get_paths()[0].vertices[:, 1]
    assert np.isclose(outer.max(), (mean + 1.96 * std).max())
    assert (display.bands[:, 0] < display.bands[:, 1]).all()
    np.testing.assert_allclose(display.bands[:, 1] ** 2 - display.bands[:, 0] ** 2, 0.01, rtol=1e-3)
    assert len(display.draws_) == 2 and len(display.points_.get_offsets()) == 30


def test_before_a_fit_it_is_the_prior() -> None:
    display = ProcessDisplay.from_estimator(process(), X, grid_resolution=25, n_draws=400).plot(show_draws=False)
    assert not display.curves.any() and display.labels == ("prior mean",) and not display.draws_
    np.testing.assert_allclose(display.bands[:, 0], 1.0)
    # Draws have the deviation of the function.
    assert abs(display.draws.std() - 1.0) < 0.1


def test_quantiles_are_curves_of_different_styles() -> None:
    model = KernelQuantileRegression([0.1, 0.5, 0.9]).fit(X, Y)
    table = pd.DataFrame({"hours": X[:, 0]})
    display = ProcessDisplay.from_estimator(
        KernelQuantileRegression([0.1, 0.5, 0.9]).fit(table, Y), table, pd.Series(Y, name="load"), grid_resolution=20
    ).plot()
    np.testing.assert_allclose(display.curves, model.predict(display.grid[:, None]))
    assert len({line.get_linestyle() for line in display.lines_}) == 3
    assert (display.ax_.get_xlabel(), display.ax_.get_ylabel()) == ("hours", "load")
    assert display.frame().columns.tolist() == ["hours", "quantile 0.1", "quantile 0.5", "quantile 0.9"]


def test_many_rows_are_sampled_and_the_legend_says_so() -> None:
    many = np.linspace(0, 3, 2500)[:, None]
    model = process().fit(X, Y)
    display = ProcessDisplay.from_estimator(model, many, many[:, 0], grid_resolution=5, n_draws=0).plot()
    assert len(display.points_.get_offsets()) == 2000
    assert display.ax_.get_legend().get_title().get_text() == "2000 of 2500 rows shown"


def test_what_cannot_be_drawn_is_refused() -> None:
    with pytest.raises(ParameterError, match="there is TubeDisplay"):
        ProcessDisplay.from_estimator(SVR().fit(X, Y), X)
    with pytest.raises(NotFittedError):
        ProcessDisplay.from_estimator(KernelQuantileRegression(), X)
    with pytest.raises(DataError, match="one target, but this fit has 2"):
        ProcessDisplay.from_estimator(process().fit(X, np.column_stack([Y, Y])), X)
    with pytest.raises(DataError, match="y must be numbers"):
        ProcessDisplay.from_estimator(process(), X, np.full(30, "a"))
