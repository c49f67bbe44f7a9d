"""What Gaussian process regression predicts: samples, rows left out, more rows, many rows."""

from __future__ import annotations

import math
import warnings
from typing import Any

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from scipy.stats import norm
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

import mercer
from mercer import GaussianProcessRegressor
from mercer._errors import DataError, MemoryBudgetError, MercerWarning, NumericalError, ParameterError
from mercer.kernels import RBF
from regression_cases import ALPHA, NEW, OURS, TWO, X, Y, assert_same_predictions


class TestSamples:
    def test_have_the_moments_of_the_posterior(self) -> None:
        model = GaussianProcessRegressor(OURS, optimizer=None, normalize_y=True).fit(X, TWO)
        samples = model.sample_y(NEW[:4], 20_000, random_state=0)
        mean, cov = model.predict(NEW[:4], return_cov=True)
        assert samples.shape == (4, 2, 20_000)
        for t in range(2):
            error = np.sqrt(cov[..., t].diagonal() / 20_000)
            assert (np.abs(samples[:, t].mean(axis=1) - mean[:, t]) < 5 * error).all()
            size = np.sqrt(np.outer(cov[..., t].diagonal(), cov[..., t].diagonal()))
            assert (np.abs(np.cov(samples[:, t]) - cov[..., t]) < 5 * size * math.sqrt(2 / 20_000)).all()

    def test_of_the_prior(self) -> None:
        model = GaussianProcessRegressor(1.0 * RBF(1.0))
        assert model.sample_y(NEW, 3).shape == (25, 3)
        np.testing.assert_array_equal(model.sample_y(NEW, 2, random_state=5), model.sample_y(NEW, 2, random_state=5))
        # A smooth function on a fine grid has a covariance of low rank.
        fine = np.linspace(0, 1, 300)[:, None]
        samples = model.sample_y(fine, 1)
        assert np.isfinite(samples).all() and np.abs(np.diff(samples, 2, axis=0)).max() < 1e-3

    @pytest.mark.parametrize("count", [0, 1.5, True, "3"])
    def test_counts_that_make_no_sense(self, count: Any) -> None:
        with pytest.raises(ParameterError, match="n_samples must be a whole number of at least 1"):
            GaussianProcessRegressor().sample_y(NEW, count)


class TestLeaveOneOut:
    @pytest.mark.parametrize("mean", ["zero", "constant", "linear"])
    @pytest.mark.parametrize("y", [Y, TWO], ids=["one", "two"])
    def test_equals_refits(self, mean: str, y: np.ndarray) -> None:
        model = GaussianProcessRegressor(1.5 * RBF(1.0), alpha=ALPHA, mean=mean, optimizer=None).fit(X, y)
        left_out = model.leave_one_out()
        assert left_out.mean.shape == left_out.variance.shape == left_out.log_density.shape == y.shape
        for i in range(0, 60, 7):
            others = np.arange(60) != i
            refit = clone(model).set_params(alpha=ALPHA[others]).fit(X[others], y[others])
            expected, std = refit.predict(X[i : i + 1], return_std=True)
            np.testing.assert_allclose(left_out.mean[i], expected[0], atol=1e-9)
            np.testing.assert_allclose(left_out.variance[i], std[0] ** 2 + ALPHA[i], rtol=1e-9)
            density = norm(left_out.mean[i], np.sqrt(left_out.variance[i])).logpdf(y[i])
            np.testing.assert_allclose(left_out.log_density[i], density, rtol=1e-9)

    def test_is_in_the_units_of_the_targets(self) -> None:
        model = GaussianProcessRegressor(1.5 * RBF(1.0), alpha=0.1, optimizer=None)
        scaled = clone(model).set_params(normalize_y=True).fit(X, TWO).leave_one_out()
        deviation = TWO.std(axis=0)
        plain = clone(model).fit(X, (TWO - TWO.mean(axis=0)) / deviation).leave_one_out()
        np.testing.assert_allclose(scaled.mean, plain.mean * deviation + TWO.mean(axis=0), rtol=1e-10)
        np.testing.assert_allclose(scaled.variance, plain.variance * deviation**2, rtol=1e-10)
        np.testing.assert_allclose(scaled.log_density, plain.log_density - np.log(deviation), rtol=1e-9)

    def test_a_row_that_alone_determines_a_coefficient(self) -> None:
        rows = np.c_[X[:, :2], np.eye(60)[:, 7]]
        model = GaussianProcessRegressor(RBF(1.0), alpha=0.1, mean="linear", optimizer=None).fit(rows, Y)
        with pytest.raises(NumericalError, match="without row 7 a coefficient of the mean function"):
            model.leave_one_out()


class TestConditionOn:
    @pytest.mark.parametrize("mean", ["zero", "constant", "linear"])
    @pytest.mark.parametrize("y", [Y, TWO], ids=["one", "two"])
    def test_equals_a_fit_to_all_rows(self, mean: str, y: np.ndarray) -> None:
        model = GaussianProcessRegressor(OURS, alpha=0.05, noise=0.1, mean=mean, optimizer=None)
        whole, part = clone(model).fit(X, y), clone(model).fit(X[:40], y[:40])
        before = part.predict(NEW)
        grown = part.condition_on(X[40:50], y[40:50]).condition_on(X[50:], y[50:])
        assert_same_predictions(grown, whole)
        np.testing.assert_array_equal(part.predict(NEW), before)
        for name in ("L_", "alpha_", "X_train_", "y_train_"):
            np.testing.assert_allclose(getattr(grown, name), getattr(whole, name), atol=1e-9)
        value = whole.log_marginal_likelihood_value_
        assert grown.log_marginal_likelihood_value_ == pytest.approx(value, rel=1e-10)
        assert grown.log_marginal_likelihood(grown.theta_) == pytest.approx(value, rel=1e-10)
        np.testing.assert_allclose(grown.leave_one_out(), whole.leave_one_out(), rtol=1e-6, atol=1e-9)
        assert grown.certificate_.kkt_violation < 1e-12 and grown.jitter_ == 0

    def test_variances_of_the_new_rows(self) -> None:
        model = GaussianProcessRegressor(RBF(1.0), alpha=ALPHA[:40], optimizer=None).fit(X[:40], Y[:40])
        whole = GaussianProcessRegressor(RBF(1.0), alpha=ALPHA, optimizer=None).fit(X, Y)
        grown = model.condition_on(X[40:], Y[40:], alpha=ALPHA[40:])
        assert_same_predictions(grown, whole)
        assert grown.certificate_.storage.startswith("the factor of the covariance matrix held whole in float64")
        with pytest.raises(ParameterError, match="alpha differed between the rows"):
            model.condition_on(X[40:], Y[40:])
        with pytest.raises(ParameterError, match="as many entries as y: there are 20 rows"):
            model.condition_on(X[40:], Y[40:], alpha=ALPHA)

    def test_keeps_the_units(self) -> None:
        model = GaussianProcessRegressor(RBF(1.0), alpha=0.01, optimizer=None)
        size, more = Y.std(), np.linspace(0, 1, 25)
        plain = clone(model).fit(X, (Y - Y.mean()) / size).condition_on(NEW, more)
        scaled = clone(model).set_params(normalize_y=True).fit(X, Y).condition_on(NEW, more * size + Y.mean())
        (mean, std), (their_mean, their_std) = (m.predict(X, return_std=True) for m in (scaled, plain))
        np.testing.assert_allclose(mean, their_mean * size + Y.mean(), atol=1e-10)
        np.testing.assert_allclose(std, their_std * size, rtol=1e-10)

    def test_rows_that_repeat_others(self) -> None:
        model = GaussianProcessRegressor(RBF(1.0), alpha=0.0, optimizer=None).fit(X[:10], Y[:10])
        with pytest.warns(MercerWarning, match="added to the variances of the new rows"):
            grown = model.condition_on(X[:3], Y[:3])
        assert 0 < grown.jitter_ < 1e-6
        np.testing.assert_allclose(grown.predict(NEW), model.predict(NEW), atol=1e-4)

    def test_data_that_do_not_fit(self) -> None:
        model = GaussianProcessRegressor(RBF(1.0), alpha=0.1, optimizer=None).fit(X, TWO)
        with pytest.raises(DataError, match=r"y must have the shape \(25, 2\).*has \(25,\)"):
            model.condition_on(NEW, np.zeros(25))
        with pytest.raises(DataError, match="2 features"):
            model.condition_on(NEW[:, :2], np.zeros((25, 2)))
        with pytest.raises(DataError, match="Input y contains NaN"):
            model.condition_on(NEW, np.full((25, 2), np.nan))
        with pytest.raises(DataError, match="must be sparse if"):
            model.condition_on(sp.csr_matrix(NEW), np.zeros((25, 2)))
        with pytest.raises(NotFittedError):
            GaussianProcessRegressor().condition_on(NEW, np.zeros(25))


class TestPredictions:
    def test_tiles_do_not_change_them(self) -> None:
        rows = np.random.default_rng(1).normal(size=(1300, 3))
        model = GaussianProcessRegressor(OURS, optimizer=None, mean="linear").fit(X, TWO)
        mean, std = model.predict(rows, return_std=True)
        pieces = [model.predict(rows[i : i + 100], return_std=True) for i in range(0, 1300, 100)]
        np.testing.assert_allclose(mean, np.concatenate([m for m, _ in pieces]), atol=1e-11)
        np.testing.assert_allclose(std, np.concatenate([s for _, s in pieces]), rtol=1e-9)
        # With room for new rows on a few threads alone, no more work at once.
        with mercer.config(memory="40KiB", n_jobs=16):
            small = model.predict(rows, return_std=True)
        np.testing.assert_allclose(std, small[1], rtol=1e-9)
        _, cov = model.predict(rows[:700], return_cov=True)
        np.testing.assert_allclose(np.sqrt(np.einsum("iit->it", cov)), std[:700], rtol=1e-7)
        with mercer.config(memory="1KiB"), pytest.raises(MemoryBudgetError, match="16 new rows at a time"):
            model.predict(rows, return_std=True)
        with mercer.config(memory="1MiB"), pytest.raises(MemoryBudgetError, match="covariance matrix of the new rows"):
            model.predict(rows, return_cov=True)

    def test_where_the_rows_are_the_variance_is_nothing(self) -> None:
        model = GaussianProcessRegressor(RBF(1.0), alpha=1e-12, optimizer=None).fit(X, Y)
        mean, std = model.predict(X, return_std=True)
        np.testing.assert_allclose(mean, Y, atol=1e-6)
        assert (std >= 0).all() and std.max() < 1e-4
        assert (model.predict(X, return_cov=True)[1].diagonal() >= 0).all()

    def test_both_at_once(self) -> None:
        with pytest.raises(ParameterError, match="at most one of return_std and return_cov"):
            GaussianProcessRegressor().predict(NEW, return_std=True, return_cov=True)

    def test_sparse_rows_and_float32(self) -> None:
        model = GaussianProcessRegressor(OURS, optimizer=None)
        dense, sparse = clone(model).fit(X, Y), clone(model).fit(sp.csr_matrix(X), Y)
        single = clone(model).fit(X.astype(np.float32), Y)
        expected = dense.predict(NEW, return_std=True)
        for predictions in (sparse.predict(sp.csr_matrix(NEW), return_std=True), single.predict(NEW, return_std=True)):
            for a, b in zip(predictions, expected, strict=True):
                assert a.dtype == np.float64
                np.testing.assert_allclose(a, b, atol=1e-5)
        with pytest.raises(DataError, match='mean="linear" needs dense rows'):
            clone(model).set_params(mean="linear").fit(sp.csr_matrix(X), Y)


def test_the_prior_sees_the_columns_of_a_table() -> None:
    table = pd.DataFrame(np.random.default_rng(3).normal(size=(5, 2)), columns=["a", "b"])
    for kernel in (RBF(1.0).on(["b"]), RBF(1.0).on(["b"]) + 2.0 * RBF(1.0), RBF([1.0, 2.0]), None):
        model = GaussianProcessRegressor(kernel=kernel)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            mean, covariance = model.predict(table, return_cov=True)
        expected = (1.0 * RBF(1.0) if kernel is None else kernel)(table)
        assert not mean.any() and np.allclose(covariance, expected, atol=1e-14)
        assert model.sample_y(table, 3).shape == (5, 3) and not hasattr(model, "n_features_in_")
    with pytest.raises(ParameterError, match="no column 'c'"):
        GaussianProcessRegressor(kernel=RBF(1.0).on(["c"])).predict(table)
    with pytest.raises(DataError, match="X cannot be used"):
        GaussianProcessRegressor().predict(table[:0])
