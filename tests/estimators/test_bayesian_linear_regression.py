"""Bayesian linear regression against its formulas, Gaussian processes, scikit-learn and finite differences."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import approx_fprime
from scipy.stats import multivariate_normal
from sklearn.base import clone
from sklearn.gaussian_process import GaussianProcessRegressor as Peer
from sklearn.gaussian_process.kernels import ConstantKernel, DotProduct, WhiteKernel
from sklearn.linear_model import BayesianRidge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import mercer
from mercer import BayesianLinearRegression
from mercer._errors import DataError, MemoryBudgetError, MercerWarning, NumericalError, ParameterError
from mercer.estimators import bayesian_linear_regression as module
from mercer.kernels import Linear
from mercer.solvers.gaussian import linear_model
from sklearn_checks import every_check, in_turn, not_passed

SHAPES = [(30, 4), (6, 11), (5, 5), (6, 5), (1, 3), (2, 1)]
shapes = pytest.mark.parametrize(("n", "d"), SHAPES, ids=lambda v: str(v))


def data(n: int = 30, d: int = 4, seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Rows, targets, and new rows."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) + 0.5
    return X, X @ rng.normal(size=d) + 0.7 * rng.normal(size=n), rng.normal(size=(7, d))


def test_scikit_learns_own_checks() -> None:
    """Each check without and with an intercept by turns."""
    checks = in_turn([BayesianLinearRegression(fit_intercept=intercept) for intercept in (False, True)], 0)
    assert len(checks) > 50 and not_passed(checks) == {}


@pytest.mark.slow
@pytest.mark.parametrize("intercept", [False, True])
def test_scikit_learns_own_checks_with_each_intercept(intercept: bool) -> None:
    assert not_passed(every_check(BayesianLinearRegression(fit_intercept=intercept))) == {}


@shapes
@pytest.mark.parametrize(("alpha", "beta"), [(1.0, 1.0), (0.03, 20.0), (50.0, 1e-3)])
def test_posterior_and_evidence_by_their_formulas(n: int, d: int, alpha: float, beta: float) -> None:
    X, t, new = data(n, d)
    model = BayesianLinearRegression(alpha, beta).fit(X, t)
    precision = alpha * np.eye(d) + beta * X.T @ X
    mean = beta * np.linalg.solve(precision, X.T @ t)
    np.testing.assert_allclose(model.mean_, mean, rtol=1e-9, atol=1e-11)
    np.testing.assert_allclose(model.covariance_, np.linalg.inv(precision), rtol=1e-8, atol=1e-12)
    predicted, cov = model.predict(new, return_cov=True)
    np.testing.assert_allclose(predicted, new @ mean, rtol=1e-9, atol=1e-11)
    np.testing.assert_allclose(cov, new @ np.linalg.inv(precision) @ new.T + np.eye(7) / beta, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(model.predict(new, return_std=True)[1], np.sqrt(cov.diagonal()), rtol=1e-10)
    density = multivariate_normal(cov=np.eye(n) / beta + X @ X.T / alpha).logpdf(t)
    assert model.log_marginal_likelihood_value_ == pytest.approx(density, rel=1e-10)
    assert model.log_marginal_likelihood() == model.log_marginal_likelihood_value_
    assert model.intercept_ == 0.0 and model.coef_ is model.mean_ and model.n_iter_ == 0


@shapes
def test_equals_scikit_learns_gaussian_process(n: int, d: int) -> None:
    X, t, new = data(n, d)
    alpha, beta = 0.4, 3.0
    ours = BayesianLinearRegression(alpha, beta).fit(X, t)
    kernel = ConstantKernel(1 / alpha) * DotProduct(0.0) + WhiteKernel(1 / beta)
    peer = Peer(kernel, alpha=0.0, optimizer=None).fit(X, t)
    (mean, cov), (their_mean, their_cov) = ours.predict(new, return_cov=True), peer.predict(new, return_cov=True)
    np.testing.assert_allclose(mean, their_mean, rtol=1e-8, atol=1e-10)
    np.testing.assert_allclose(cov, their_cov, rtol=1e-8, atol=1e-10)
    assert ours.log_marginal_likelihood_value_ == pytest.approx(peer.log_marginal_likelihood_value_, rel=1e-8)


@pytest.mark.skipif(not hasattr(mercer, "GaussianProcessRegressor"), reason="needs Gaussian process regression")
@shapes
def test_equals_the_gaussian_process_with_the_linear_kernel(n: int, d: int) -> None:
    X, t, new = data(n, d)
    alpha, beta = 0.4, 3.0
    ours = BayesianLinearRegression(alpha, beta).fit(X, t)
    process = mercer.GaussianProcessRegressor((1 / alpha) * Linear(), alpha=1 / beta, optimizer=None).fit(X, t)
    # As in scikit-learn, alpha= is noise of the training targets, and predictions are of the function.
    (mean, cov), (their_mean, their_cov) = ours.predict(new, return_cov=True), process.predict(new, return_cov=True)
    np.testing.assert_allclose(mean, their_mean, rtol=1e-8, atol=1e-10)
    np.testing.assert_allclose(cov, their_cov + np.eye(7) / beta, rtol=1e-8, atol=1e-10)
    assert ours.log_marginal_likelihood_value_ == pytest.approx(process.log_marginal_likelihood_value_, rel=1e-8)


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize(("n", "d"), [(30, 4), (6, 11), (5, 5)])
@pytest.mark.parametrize("log_ratio", [-5.0, 0.0, 4.0])
def test_the_gradient_against_finite_differences(n: int, d: int, log_ratio: float, intercept: bool) -> None:
    X, t, _ = data(n, d)
    model = BayesianLinearRegression(1.0, 1.0, fit_intercept=intercept).fit(X, t)
    theta = np.array([log_ratio, 0.3])
    value, gradient = model.log_marginal_likelihood(theta, eval_gradient=True)
    assert value == model.log_marginal_likelihood(theta)
    steps = [approx_fprime(theta, model.log_marginal_likelihood, h) for h in (1e-5, -1e-5)]
    np.testing.assert_allclose(gradient, np.mean(steps, axis=0), rtol=1e-5, atol=1e-6)


def test_an_offset_is_one_with_a_flat_prior() -> None:
    X, t, new = data()
    alpha, beta, wide = 0.4, 3.0, 1e7
    ours = BayesianLinearRegression(alpha, beta, fit_intercept=True).fit(X, t)
    C = np.eye(30) / beta + X @ X.T / alpha + wide
    cross = new @ X.T / alpha + wide
    mean = cross @ np.linalg.solve(C, t)
    cov = new @ new.T / alpha + wide + np.eye(7) / beta - cross @ np.linalg.solve(C, cross.T)
    # What the prior of the offset leaves out is of the order of 1 / (wide * beta * n).
    predicted, ours_cov = ours.predict(new, return_cov=True)
    np.testing.assert_allclose(predicted, mean, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(ours_cov, cov, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(ours.predict(new, return_std=True)[1] ** 2, ours_cov.diagonal(), rtol=1e-10)
    # The density of contrasts: any orthonormal basis of what is orthogonal to the ones.
    H = np.linalg.svd(np.eye(30) - 1 / 30)[0][:, :29]
    density = multivariate_normal(cov=H.T @ (np.eye(29 + 1) / beta + X @ X.T / alpha) @ H).logpdf(H.T @ t)
    assert ours.log_marginal_likelihood_value_ == pytest.approx(density, rel=1e-9)
    moved = BayesianLinearRegression(alpha, beta, fit_intercept=True).fit(X + 1e3, t - 50.0)
    np.testing.assert_allclose(moved.mean_, ours.mean_, rtol=1e-8)
    np.testing.assert_allclose(moved.predict(new + 1e3), predicted - 50.0, rtol=1e-8)
    assert moved.log_marginal_likelihood_value_ == pytest.approx(ours.log_marginal_likelihood_value_, rel=1e-9)


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize(("n", "d"), [(60, 4), (25, 40)])
@pytest.mark.parametrize("known", [{}, {"alpha": 0.7}, {"beta": 1.3}])
def test_learned_precisions_are_a_maximum(n: int, d: int, known: dict, intercept: bool) -> None:
    X, t, _ = data(n, d)
    model = BayesianLinearRegression(**known, fit_intercept=intercept).fit(X, t)
    value, gradient = model.log_marginal_likelihood(eval_gradient=True)
    learned = [i for i, name in enumerate(("alpha", "beta")) if name not in known]
    assert np.abs(gradient[learned]).max() < 1e-8 and model.n_iter_ > 0
    for name, number in known.items():
        assert getattr(model, name + "_") == number
    logarithms = np.log([model.alpha_, model.beta_])
    for step in np.random.default_rng(0).normal(size=(200, 2)) * 2:
        step[[i for i in range(2) if i not in learned]] = 0.0
        assert model.log_marginal_likelihood(logarithms + step) <= value + 1e-9


def test_learned_precisions_are_those_of_scikit_learns_iteration() -> None:
    X, t, new = data(60)
    X = X - X.mean(axis=0)
    ours = BayesianLinearRegression().fit(X, t)
    flat = {"alpha_1": 0.0, "alpha_2": 0.0, "lambda_1": 0.0, "lambda_2": 0.0}
    peer = BayesianRidge(fit_intercept=False, tol=1e-12, max_iter=3000, **flat).fit(X, t)
    assert (ours.alpha_, ours.beta_) == (pytest.approx(peer.lambda_, rel=1e-6), pytest.approx(peer.alpha_, rel=1e-6))
    np.testing.assert_allclose(ours.mean_, peer.coef_, rtol=1e-6)
    np.testing.assert_allclose(ours.covariance_, peer.sigma_, rtol=1e-5, atol=1e-12)
    for mine, theirs in zip(ours.predict(new, return_std=True), peer.predict(new, return_std=True)):
        np.testing.assert_allclose(mine, theirs, rtol=1e-6)


@pytest.mark.filterwarnings("ignore:.*(nothing to learn|no maximum)")
@settings(max_examples=40, deadline=None)
@given(
    counts=st.lists(st.integers(0, 3), min_size=8, max_size=8).filter(lambda c: sum(x > 0 for x in c) > 2),
    d=st.sampled_from([1, 3, 12]),
    intercept=st.booleans(),
    precisions=st.sampled_from([(1.0, 2.0), (0.1, "evidence"), ("evidence", 1.0), ("evidence", "evidence")]),
)
def test_integer_weights_are_repeated_rows(counts: list[int], d: int, intercept: bool, precisions: tuple) -> None:
    X, t, new = data(8, d)
    model = BayesianLinearRegression(*precisions, fit_intercept=intercept)
    weighted = clone(model).fit(X, t, counts)
    repeated = clone(model).fit(np.repeat(X, counts, axis=0), np.repeat(t, counts))
    assert weighted.log_marginal_likelihood_value_ == pytest.approx(repeated.log_marginal_likelihood_value_, rel=1e-8)
    for mine, theirs in zip(weighted.predict(new, return_std=True), repeated.predict(new, return_std=True)):
        np.testing.assert_allclose(mine, theirs, rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("intercept", [False, True])
def test_rows_in_blocks_and_sparse_rows(monkeypatch: pytest.MonkeyPatch, intercept: bool) -> None:
    X, t, new = data(50)
    X = np.where(X > 0.3, X, 0.0)
    w = np.random.default_rng(0).integers(0, 3, 50).astype(float)
    model = BayesianLinearRegression(0.5, fit_intercept=intercept)
    whole = clone(model).fit(X, t, w)
    monkeypatch.setattr(module, "_ROWS", 7)
    for rows in (X, sp.csr_matrix(X), sp.csc_array(X)):
        other = clone(model).fit(rows, t, w)
        np.testing.assert_allclose(other.mean_, whole.mean_, rtol=1e-9, atol=1e-12)
        assert other.log_marginal_likelihood_value_ == pytest.approx(whole.log_marginal_likelihood_value_, rel=1e-10)
        for rows_new in (new, sp.csr_matrix(new)):
            for mine, theirs in zip(other.predict(rows_new, return_std=True), whole.predict(new, return_std=True)):
                np.testing.assert_allclose(mine, theirs, rtol=1e-9)


@shapes
@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.filterwarnings("ignore:.*(nothing to learn|no maximum)")
def test_certificates(n: int, d: int, intercept: bool) -> None:
    X, t, _ = data(n, d)
    model = BayesianLinearRegression(0.3, 2.0, fit_intercept=intercept).fit(X, t)
    certificate = model.certificate_
    ratio = 0.15
    assert certificate.primal == pytest.approx(
        ((t - model.predict(X)) ** 2).sum() + ratio * (model.mean_**2).sum(), rel=1e-9, abs=1e-20
    )
    assert 0 <= certificate.gap <= 1e-12 * max(certificate.primal, 1e-12) and certificate.kkt_violation < 1e-12
    assert certificate.status.name == "direct" and certificate.peak_bytes >= 8 * n * d
    # The bound holds for answers that are not the best, too.
    worse = clone(model).fit(X, t)
    worse.mean_ = model.mean_ + 0.01
    bound = worse._certify(X, t, np.ones(n), worse._spectrum, 0.0, 0)
    assert bound.dual <= certificate.primal <= bound.primal + 1e-12


def test_single_precision() -> None:
    X, t, new = data()
    single = BayesianLinearRegression().fit(X.astype(np.float32), t.astype(np.float32))
    double = BayesianLinearRegression().fit(X, t)
    for mine, theirs in zip(single.predict(new.astype(np.float32), return_std=True), double.predict(new, True)):
        assert mine.dtype == np.float32 and theirs.dtype == np.float64
        np.testing.assert_allclose(mine, theirs, rtol=1e-4, atol=1e-5)


def test_data_without_noise_or_without_signal() -> None:
    X, _, new = data()
    exact = X @ np.arange(4.0)
    with pytest.warns(MercerWarning, match=r"no maximum.*beta = .*the targets have no noise"):
        model = BayesianLinearRegression().fit(X, exact)
    np.testing.assert_allclose(model.predict(new), new @ np.arange(4.0), rtol=1e-8)
    noise = np.random.default_rng(1).normal(size=30)
    noise -= X @ np.linalg.lstsq(X, noise)[0]
    with pytest.warns(MercerWarning, match="no maximum.*show no dependence on X"):
        model = BayesianLinearRegression().fit(X, noise)
    assert np.abs(model.predict(new)).max() < 1e-5
    assert model.predict(new, return_std=True)[1] == pytest.approx(np.sqrt(np.mean(noise**2)), rel=1e-4)


def test_constant_targets_and_rows_of_zeros() -> None:
    X, _, new = data()
    with pytest.warns(MercerWarning, match="y has the value 0"):
        nothing = BayesianLinearRegression().fit(X, np.zeros(30))
    assert (nothing.alpha_, nothing.beta_) == (1.0, 1.0) and not nothing.predict(new).any()
    with pytest.warns(MercerWarning, match="y has the value 3|no maximum"):
        constant = BayesianLinearRegression(fit_intercept=True).fit(X, np.full(30, 3.0))
    np.testing.assert_allclose(constant.predict(new), 3.0)
    zeros = BayesianLinearRegression(2.0, 1.0).fit(np.zeros((4, 2)), [1.0, 2.0, 3.0, 4.0])
    assert not zeros.mean_.any() and zeros.predict([[2.0, 0.0]], return_std=True)[1] == pytest.approx(np.sqrt(1 + 2))


@pytest.mark.parametrize(
    ("parameters", "words"),
    [
        ({"alpha": 0.0}, r"alpha must be a finite number above 0, or 'evidence', but is 0\.0"),
        ({"beta": -1}, "beta must be a finite number above 0, or 'evidence', but is -1"),
        ({"beta": np.inf}, "but is inf"),
        ({"alpha": "loo"}, "but is 'loo'"),
        ({"alpha": True}, "but is True"),
        ({"alpha": [1.0]}, r"but is \[1\.0\]"),
        ({"fit_intercept": "no"}, "fit_intercept must be True or False, but is 'no'"),
    ],
)
def test_parameters_that_make_no_sense(parameters: dict, words: str) -> None:
    X, t, _ = data()
    with pytest.raises(ParameterError, match=words):
        BayesianLinearRegression(**parameters).fit(X, t)


def test_bad_input() -> None:
    X, t, new = data()
    model = BayesianLinearRegression()
    with pytest.raises(DataError, match="Input X contains NaN"):
        clone(model).fit(np.where(X > 1, np.nan, X), t)
    with pytest.raises(DataError, match="Input y contains infinity"):
        clone(model).fit(X, np.where(t > 0, np.inf, t))
    with pytest.raises(DataError, match="requires y to be passed"):
        clone(model).fit(X, None)
    with pytest.raises(DataError, match="0 sample"):
        clone(model).fit(X[:0], t[:0])
    with pytest.raises(DataError, match=r"-1\.0"):
        clone(model).fit(X, t, np.r_[-1.0, np.ones(29)])
    with pytest.raises(DataError, match="zero for each"):
        clone(model).fit(X, t, np.zeros(30))
    with pytest.raises(NumericalError, match="overflow"), np.errstate(all="ignore"):
        clone(model).fit(X * 1e200, t)
    fitted = clone(model).fit(pd.DataFrame(X, columns=list("abcd")), t)
    assert fitted.feature_names_in_.tolist() == list("abcd")
    with pytest.raises(DataError, match="X has 2 features"):
        fitted.predict(new[:, :2])
    with pytest.raises(ParameterError, match="return_std and return_cov are both True"):
        fitted.predict(new, return_std=True, return_cov=True)
    with pytest.raises(ParameterError, match="theta must be two finite numbers"):
        fitted.log_marginal_likelihood([1.0])
    with pytest.raises(ValueError, match="not fitted yet"):
        model.predict(new)
    with mercer.config(memory="1KiB"), pytest.raises(MemoryBudgetError, match=r"30 rows of 4 columns.*mercer\.config"):
        clone(model).fit(X, t)
    with mercer.config(memory="1KiB"), pytest.raises(MemoryBudgetError, match="covariance of 50 predictions"):
        fitted.predict(np.zeros((50, 4)), return_cov=True)


def test_a_pipeline_and_copies() -> None:
    X, t, new = data()
    steps = make_pipeline(StandardScaler(), BayesianLinearRegression(fit_intercept=True)).fit(X, t)
    assert steps.score(X, t) > 0.8 and steps.predict(new).shape == (7,)
    fixed = X.copy()
    fixed.setflags(write=False)
    expected = BayesianLinearRegression().fit(X, t).mean_
    for rows in (fixed, np.asfortranarray(X), X.tolist(), X.astype(object)):
        np.testing.assert_array_equal(BayesianLinearRegression().fit(rows, t).mean_, expected)


def test_the_search_finds_the_higher_of_two_hills() -> None:
    # Two directions of very different size, each with a signal of its own: the evidence has two maxima.
    spectrum = linear_model.DesignSpectrum(
        np.array([1e3, 1.0]), np.array([0.77, 3.46]), 2.0, np.eye(2), 12.0, np.zeros(2), 0.0, False
    )
    result = linear_model.learn(spectrum, None, 5.0)
    value = spectrum.evidence(result.alpha, 5.0)[0]
    values = [spectrum.evidence(alpha, 5.0)[0] for alpha in np.geomspace(1e-6, 1e9, 3000)]
    hills = [b for a, b, c in zip(values, values[1:], values[2:]) if a < b > c]
    assert len(hills) == 2 and value >= max(hills)


def test_an_evidence_beyond_float64_is_refused_with_what_helps():
    X, y = np.full((12, 12), 1e150), np.arange(12.0)
    X[0] *= -2.0
    with pytest.raises(NumericalError, match=r"the evidence overflows .*\. Scale the columns of X .*StandardScaler"):
        BayesianLinearRegression(fit_intercept=False).fit(X, y)
    model = make_pipeline(StandardScaler(), BayesianLinearRegression()).fit(X, y)
    # One direction is left, in which the rows are two points: the mean of each.
    assert abs(model.predict(X)[0]) < 1.0 and np.ptp(model.predict(X)[1:]) < 1e-9
