"""GaussianProcessOrdinalRegression: search, probabilities, labels, and what it shares with the penalised fit."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from scipy.optimize import minimize
from sklearn.base import clone
from sklearn.utils.estimator_checks import check_estimator

from mercer import GaussianProcessOrdinalRegression, KernelOrdinalRegression
from mercer._errors import DataError, MercerWarning, ParameterError
from mercer.estimators.ordinal.ordered import averaged_probabilities
from mercer.kernels import RBF, Linear
from mercer.priors import LogNormal
from mercer.solvers.risk.cumulative_links import LINKS

RNG = np.random.default_rng(3)
X = RNG.normal(size=(60, 2))
LATENT = X[:, 0] + 0.5 * X[:, 1] ** 2 + 0.3 * RNG.normal(size=60)
Y = np.digitize(LATENT, [-0.5, 0.3, 1.2])
NEW = RNG.normal(size=(30, 2))
NAMES = np.array(["poor", "fair", "good", "best"])

every_link = pytest.mark.parametrize("link", LINKS)


def begin_to_search(objective, start, bounds):
    """One step of the search: enough to move every hyper-parameter."""
    optimum = minimize(objective, start, method="L-BFGS-B", jac=True, bounds=bounds, options={"maxiter": 1})
    return optimum.x, optimum.fun


@pytest.mark.slow
def test_scikit_learns_own_checks_with_the_search():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        # One check has three classes of text, whose order has to be said.
        model = GaussianProcessOrdinalRegression(classes="sorted", optimizer=begin_to_search)
        results = check_estimator(model, on_skip=None, on_fail=None)
    others = {r["check_name"]: str(r["exception"]) for r in results if r["status"] != "passed"}
    others.pop("check_array_api_input", None)
    assert len(results) > 50 and others == {}


@every_link
def test_the_search_ends_where_the_evidence_is_flat(link):
    model = GaussianProcessOrdinalRegression(link=link).fit(X, Y)
    value, gradient = model.log_marginal_likelihood(model.theta_, eval_gradient=True)
    assert value == pytest.approx(model.log_marginal_likelihood_value_, abs=1e-8)
    assert model.log_marginal_likelihood() == model.log_marginal_likelihood_value_
    # L-BFGS-B stops once a step wins less than 2e-9 of the objective, which leaves slopes of the root of that.
    assert np.abs(gradient).max() < 0.01
    without_search = clone(model).set_params(optimizer=None).fit(X, Y)
    assert without_search.search_ is None and without_search.kernel_ == RBF(1.0) and without_search.slope_ == 1.0
    assert model.log_marginal_likelihood_value_ > without_search.log_marginal_likelihood_value_
    assert model.score(X, Y) > 0.6 and (np.diff(model.thresholds_) > 0).all()


@every_link
def test_averages_over_a_normal_latent_value(link):
    cuts = np.array([-1.0, 0.5, 2.0])
    mean, deviation = np.array([0.3, -2.0, 1.0, 0.0]), np.array([1e-9, 0.5, 3.0, 20.0])
    result = averaged_probabilities(LINKS[link], mean, deviation**2, cuts)
    np.testing.assert_allclose(result.sum(axis=1), 1.0, rtol=1e-12)
    assert (result >= 0).all()
    below = np.cumsum(result, axis=1)[:, :-1]
    # A sum so fine that nothing of the link is missed: 2e4 nodes over 18 deviations of 20 at the most.
    z = np.linspace(-9, 9, 20_001)
    density = np.exp(-0.5 * z * z)
    for row in range(1, 4):
        for j in range(3):
            values = LINKS[link].cumulative(cuts[j] - mean[row] - deviation[row] * z)
            assert below[row, j] == pytest.approx(float(density @ values / density.sum()), abs=1e-8)
    np.testing.assert_allclose(below[0], LINKS[link].cumulative(cuts - 0.3), rtol=1e-6)


@every_link
def test_probabilities(link):
    model = GaussianProcessOrdinalRegression(RBF(1.0), link=link, slope=3.0, optimizer=None).fit(X, Y)
    p = model.predict_proba(np.vstack([X, NEW, 1e3 * NEW]))
    assert (p >= 0).all()
    np.testing.assert_allclose(p.sum(axis=1), 1.0, rtol=1e-12)
    mean, deviation = model.latent(1e3 * NEW, return_std=True)
    # Far from all rows there is the prior alone.
    np.testing.assert_allclose(mean, 0.0, atol=1e-12)
    np.testing.assert_allclose(deviation, 1.0, rtol=1e-12)
    np.testing.assert_allclose(model.latent(NEW), model.latent(NEW, return_std=True)[0], rtol=1e-10, atol=1e-12)
    many = np.tile(NEW, (40, 1))
    np.testing.assert_allclose(model.predict_proba(many)[:30], model.predict_proba(NEW), rtol=1e-9)


def test_the_mode_is_that_of_the_penalised_fit_with_its_cut_points():
    model = GaussianProcessOrdinalRegression(RBF(1.0), link="logit", slope=2.0, optimizer=None).fit(X, Y)
    ends = np.concatenate([[-np.inf], model.thresholds_, [np.inf]])

    def objective(coefficients: np.ndarray) -> float:
        f = RBF(1.0)(X) @ coefficients
        upper, lower = 2.0 * (ends[Y + 1] - f), 2.0 * (ends[Y] - f)
        loss = LINKS["logit"].value(upper, lower, 2.0 * np.diff(ends)[Y]).sum()
        return float(loss + 0.5 * coefficients @ f)

    best = objective(model.dual_coef_)
    assert best == pytest.approx(model.certificate_.primal, rel=1e-10)
    for _ in range(20):
        assert objective(model.dual_coef_ + 1e-3 * RNG.normal(size=60)) > best
    # The penalised fit chooses its cut-points for this objective, so that it is at least as low.
    penalised = KernelOrdinalRegression(kernel=RBF(1.0), slope=2.0).fit(X, Y)
    assert penalised.certificate_.primal <= best + 1e-9


def test_equal_rows_are_held_once():
    rows = np.repeat(X[:15], 4, axis=0)
    merged = GaussianProcessOrdinalRegression(optimizer=None, slope=2.0).fit(rows, Y)
    other = GaussianProcessOrdinalRegression(optimizer=None, slope=2.0).fit(
        rows + 1e-7 * RNG.normal(size=rows.shape), Y
    )
    assert merged.X_fit_.shape == (15, 2) and other.X_fit_.shape == (60, 2)
    np.testing.assert_allclose(merged.predict_proba(NEW), other.predict_proba(NEW), atol=1e-5)
    assert merged.log_marginal_likelihood_value_ == pytest.approx(other.log_marginal_likelihood_value_, abs=1e-3)


def test_restarts_are_seeded_and_never_worse():
    one = GaussianProcessOrdinalRegression(slope=1.0, kernel=1.0 * RBF(1.0)).fit(X[:30], Y[:30])
    several = clone(one).set_params(n_restarts_optimizer=2, random_state=5).fit(X[:30], Y[:30])
    again = clone(several).fit(X[:30], Y[:30])
    assert len(several.search_.trials) == 3
    assert [t.start for t in several.search_.trials] == [t.start for t in again.search_.trials]
    assert several.log_marginal_likelihood_value_ >= one.log_marginal_likelihood_value_ - 1e-6
    assert again.log_marginal_likelihood_value_ == pytest.approx(several.log_marginal_likelihood_value_, abs=1e-6)


def test_priors_and_an_optimizer_of_the_users_own():
    free = GaussianProcessOrdinalRegression().fit(X, Y)
    prior = {"slope": LogNormal(0.0, 0.05), "length_scale": LogNormal(0.0, 0.05)}
    with_prior = GaussianProcessOrdinalRegression(priors=prior).fit(X, Y)
    assert abs(np.log(with_prior.slope_)) < min(0.3, abs(np.log(free.slope_)))
    with pytest.raises(ParameterError, match="priors name 'noise', which is not a free parameter"):
        GaussianProcessOrdinalRegression(priors={"noise": LogNormal()}).fit(X, Y)
    given = GaussianProcessOrdinalRegression(optimizer=lambda f, start, bounds: (start, f(start)[0])).fit(X, Y)
    assert given.kernel_ == RBF(1.0) and given.slope_ == 1.0


def test_the_unit_of_the_kernel_does_not_matter():
    one = GaussianProcessOrdinalRegression().fit(X, Y)
    large = GaussianProcessOrdinalRegression((1e4 * RBF(1.0)).fixed("factor")).fit(X, Y)
    assert large.slope_ * 100.0 == pytest.approx(one.slope_, rel=1e-3)
    assert large.log_marginal_likelihood_value_ == pytest.approx(one.log_marginal_likelihood_value_, abs=1e-6)
    np.testing.assert_allclose(large.predict_proba(NEW), one.predict_proba(NEW), atol=1e-3)


def test_labels_without_noise_are_learned():
    # With slopes up to 1000 the evidence is largest where a quarter of the training rows has lost its class.
    rows = np.random.default_rng(0).uniform(-1.7, 1.7, size=(80, 2))
    labels = np.digitize(rows[:, 0] * rows[:, 1], [-1.0, -0.1, 0.25, 1.0])
    with pytest.warns(MercerWarning, match="slope at its upper bound: labels without noise"):
        model = GaussianProcessOrdinalRegression().fit(rows, labels)
    assert model.slope_ == pytest.approx(30.0, rel=1e-3)
    assert model.score(rows, labels) > 0.97


def test_labels_of_noise_alone_are_told():
    rows, labels = np.linspace(0, 30, 60)[:, None], np.tile([0, 1], 30)
    with pytest.warns(MercerWarning, match="slope at its lower bound: labels of noise alone"):
        GaussianProcessOrdinalRegression(RBF(1.0).fixed()).fit(rows, labels)


def test_labels_and_decisions():
    numbered = GaussianProcessOrdinalRegression(optimizer=None).fit(X, Y)
    named = GaussianProcessOrdinalRegression(optimizer=None, classes=["none", *NAMES]).fit(X, NAMES[Y])
    assert named.classes_.tolist() == ["none", *NAMES] and named.thresholds_[0] == -np.inf
    np.testing.assert_array_equal(named.predict_proba(NEW)[:, 1:], numbered.predict_proba(NEW))
    assert (named.predict_proba(NEW)[:, 0] == 0).all()
    p = numbered.predict_proba(NEW)
    np.testing.assert_array_equal(named.predict(NEW), NAMES[p.argmax(axis=1)])
    costs = p @ np.abs(np.arange(4)[:, None] - np.arange(4))
    median = numbered.set_params(decision="median").predict(NEW)
    assert (costs[np.arange(30), median] <= costs.min(axis=1) + 1e-12).all()


def test_two_classes():
    model = GaussianProcessOrdinalRegression().fit(X, Y > 1)
    assert model.thresholds_.shape == (1,) and model.predict_proba(NEW).shape == (30, 2)
    assert model.score(X, Y > 1) > 0.7


def test_a_precomputed_matrix_has_no_probabilities_of_new_rows():
    kernel = RBF(1.0)
    model = GaussianProcessOrdinalRegression("precomputed", slope=2.0, optimizer=None).fit(kernel(X), Y)
    same = GaussianProcessOrdinalRegression(kernel, slope=2.0, optimizer=None).fit(X, Y)
    np.testing.assert_allclose(model.latent(kernel(NEW, X)), same.latent(NEW), rtol=1e-8, atol=1e-10)
    assert model.log_marginal_likelihood_value_ == pytest.approx(same.log_marginal_likelihood_value_, rel=1e-10)
    with pytest.raises(ParameterError, match=r"needs k\(x, x\) of these, which a precomputed kernel does not contain"):
        model.predict_proba(kernel(NEW, X))


@pytest.mark.parametrize(
    ("parameters", "words"),
    [
        ({"link": "cauchit"}, "link must be 'logit', 'probit', 'cloglog' or 'loglog'"),
        ({"decision": "best"}, "decision must be"),
        ({"slope": -1.0}, "slope must be a finite number above 0 or 'evidence'"),
        ({"optimizer": "adam"}, "optimizer must be 'fmin_l_bfgs_b'"),
        ({"n_restarts_optimizer": -1}, "n_restarts_optimizer must be a whole number"),
        ({"max_iter_predict": 0}, "max_iter_predict must be a whole number of at least 1"),
        ({"random_state": "x"}, "random_state must be"),
        ({"classes": [1]}, "classes must be two or more different labels"),
    ],
)
def test_parameters_that_make_no_sense(parameters, words):
    with pytest.raises(ParameterError, match=words):
        GaussianProcessOrdinalRegression(**parameters).fit(X, Y)


def test_what_else_is_refused_or_told():
    with pytest.raises(DataError, match=r"1 class\(es\)"):
        GaussianProcessOrdinalRegression().fit(X, 0 * Y)
    model = GaussianProcessOrdinalRegression(optimizer=None).fit(X, Y)
    with pytest.raises(ParameterError, match="a gradient needs theta"):
        model.log_marginal_likelihood(eval_gradient=True)
    with pytest.raises(ParameterError, match="theta must be 5 finite numbers"):
        model.log_marginal_likelihood([0.0])
    with pytest.warns(MercerWarning, match="left length_scale at its lower bound"):
        GaussianProcessOrdinalRegression(RBF(20.0).bounded(length_scale=(15.0, 30.0)), slope=1.0).fit(X, Y)


def test_constant_rows_learn_the_shares():
    model = GaussianProcessOrdinalRegression(Linear(), optimizer=None).fit(np.zeros((60, 2)), Y)
    np.testing.assert_allclose(model.predict_proba(np.zeros((1, 2)))[0], np.bincount(Y) / 60, rtol=1e-9)
