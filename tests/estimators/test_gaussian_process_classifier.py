"""Gaussian process classification: against scikit-learn, by its own certificates, and on data."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
from scipy.special import expit, ndtr
from sklearn.base import clone
from sklearn.datasets import load_digits, load_iris
from sklearn.exceptions import ConvergenceWarning
from sklearn.gaussian_process import GaussianProcessClassifier as Peer
from sklearn.gaussian_process import kernels as peers
from sklearn.metrics import log_loss
from sklearn.model_selection import train_test_split

import mercer
from mercer import SVC, GaussianProcessClassifier
from mercer._errors import DataError, IndefiniteKernelError, MemoryBudgetError, MercerWarning, ParameterError
from mercer.kernels import RBF, Kernel, Linear, NegativeDistance, White
from mercer.priors import LogNormal
from mercer.solvers.gaussian.factor import factor

RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 2))
TWO = np.where(X[:, 0] * X[:, 1] + 0.2 * RNG.normal(size=60) > 0, "same", "other")
THREE = np.digitize(X[:, 0] + 0.3 * RNG.normal(size=60), [-0.6, 0.5])
NEW = RNG.normal(size=(40, 2))
KERNEL = 2.0 * RBF(1.0)
PEER_KERNEL = 2.0 * peers.RBF(1.0)


def fitted(kernel: Any = KERNEL, y: np.ndarray = TWO, rows: Any = X, **parameters: Any) -> GaussianProcessClassifier:
    return GaussianProcessClassifier(kernel, **parameters).fit(rows, y)


# ---- as scikit-learn's


def test_two_classes_as_in_scikit_learn() -> None:
    ours, theirs = fitted(), Peer(PEER_KERNEL).fit(X, TWO)
    assert ours.log_marginal_likelihood_value_ == pytest.approx(theirs.log_marginal_likelihood_value_, abs=1e-6)
    np.testing.assert_allclose(ours.theta_, theirs.kernel_.theta, atol=2e-3)
    np.testing.assert_array_equal(ours.predict(NEW), theirs.predict(NEW))
    # Its integral is by five error functions.
    np.testing.assert_allclose(ours.predict_proba(NEW), theirs.predict_proba(NEW), atol=2e-3)
    np.testing.assert_array_equal(ours.classes_, theirs.classes_)
    assert ours.n_classes_ == theirs.n_classes_ == 2


def test_at_the_same_parameters_everything_is_the_same() -> None:
    ours, theirs = fitted(optimizer=None), Peer(PEER_KERNEL, optimizer=None).fit(X, TWO)
    theta = KERNEL.theta + 0.7
    for result, expected in zip(
        ours.log_marginal_likelihood(theta, eval_gradient=True),
        theirs.log_marginal_likelihood(theta, eval_gradient=True),
        strict=True,
    ):
        np.testing.assert_allclose(result, expected, rtol=1e-6)
    assert ours.log_marginal_likelihood() == pytest.approx(theirs.log_marginal_likelihood(), abs=1e-8)
    base = theirs.base_estimator_
    for name in ("pi_", "W_sr_", "L_"):
        np.testing.assert_allclose(getattr(ours.base_estimator_, name), getattr(base, name), atol=1e-6)
    for mine, other in zip(ours.latent_mean_and_variance(NEW), theirs.latent_mean_and_variance(NEW), strict=True):
        np.testing.assert_allclose(mine, other, atol=1e-6)


def test_without_a_kernel_factor_and_length_are_learnt_in_any_unit() -> None:
    model = fitted(None)
    assert model.search_ is not None and len(model.theta_) == 2
    small = fitted(None, rows=1e-3 * X)
    np.testing.assert_allclose(small.predict_proba(1e-3 * NEW), model.predict_proba(NEW), atol=1e-3)
    fixed, theirs = fitted(None, optimizer=None), Peer().fit(X, TWO)
    assert fixed.kernel_ == 1.0 * RBF(1.0) and fixed.search_ is None
    assert fixed.log_marginal_likelihood_value_ == pytest.approx(theirs.log_marginal_likelihood_value_, abs=1e-8)


@pytest.mark.parametrize("scheme", ["one_vs_rest", "one_vs_one"])
def test_classifiers_of_two_for_several_classes(scheme: str) -> None:
    ours, theirs = (
        fitted(y=THREE, multi_class=scheme, approximation="laplace"),
        Peer(PEER_KERNEL, multi_class=scheme).fit(X, THREE),
    )
    assert ours.log_marginal_likelihood_value_ == pytest.approx(theirs.log_marginal_likelihood_value_, abs=1e-5)
    np.testing.assert_array_equal(ours.predict(NEW), theirs.predict(NEW))
    assert len(ours.kernel_) == len(ours.estimators_) == 3
    for theta in (KERNEL.theta, ours.theta_):
        value, gradient = ours.log_marginal_likelihood(theta, eval_gradient=True)
        assert value == pytest.approx(theirs.log_marginal_likelihood(theta), abs=1e-5)
        h = 1e-4 * np.eye(len(theta))[0]
        slope = (ours.log_marginal_likelihood(theta + h) - ours.log_marginal_likelihood(theta - h)) / 2e-4
        assert gradient[0] == pytest.approx(slope, rel=1e-4, abs=1e-5)
    if scheme == "one_vs_rest":
        np.testing.assert_allclose(ours.predict_proba(NEW), theirs.predict_proba(NEW), atol=3e-3)
    else:
        with pytest.raises(ParameterError, match="multinomial"):
            ours.predict_proba(NEW)
    with pytest.raises(ParameterError, match="estimators_"):
        ours.latent_mean_and_variance(NEW)
    with pytest.raises(ParameterError, match="2 entries, for all 3 classifiers, or 6, but has 4"):
        ours.log_marginal_likelihood(np.zeros(4))
    assert ours.certificate_.kkt_violation < 1e-9


def test_scikit_learns_kernels_and_optimizers() -> None:
    assert fitted(PEER_KERNEL).log_marginal_likelihood_value_ == fitted().log_marginal_likelihood_value_
    calls = []

    def optimizer(objective: Any, start: np.ndarray, bounds: np.ndarray) -> tuple[np.ndarray, float]:
        value, gradient = objective(start)
        calls.append((value, gradient, objective(start, eval_gradient=False), bounds))
        return start + 0.1, float(objective(start + 0.1, eval_gradient=False))

    model = fitted(optimizer=optimizer)
    np.testing.assert_allclose(model.theta_, KERNEL.theta + 0.1)
    assert calls[0][0] == pytest.approx(-model.log_marginal_likelihood(KERNEL.theta), rel=1e-9)
    assert calls[0][2] == pytest.approx(calls[0][0], rel=1e-12) and calls[0][3].shape == (2, 2)


# ---- probabilities


def test_probabilities_are_averages_over_the_posterior() -> None:
    for model in (fitted(optimizer=None), fitted(optimizer=None, approximation="ep")):
        mean, variance = model.latent_mean_and_variance(NEW[:5])
        draws = mean + np.sqrt(variance) * np.random.default_rng(0).normal(size=(200_000, 5))
        link = (lambda f: 1 / (1 + np.exp(-f))) if model.approximation != "ep" else ndtr
        np.testing.assert_allclose(model.predict_proba(NEW[:5])[:, 1], link(draws).mean(axis=0), atol=4e-3)


def test_several_classes_by_dense_formulas() -> None:
    model = fitted(y=THREE, optimizer=None, multi_class="multinomial")
    K, k, p = KERNEL(X), KERNEL(NEW, X), model.pi_
    np.testing.assert_allclose(p.sum(axis=1), 1.0)
    stacked = np.concatenate([np.diag(column) for column in p.T])
    W = np.diag(p.T.ravel()) - stacked @ stacked.T
    prior = np.kron(np.eye(3), K)
    inner = W @ np.linalg.inv(np.eye(180) + prior @ W)
    mean, variance = model.latent_mean_and_variance(NEW)
    np.testing.assert_allclose(mean, k @ (np.eye(3)[THREE] - p), atol=1e-7)
    for i in range(5):
        cross = np.kron(np.eye(3), k[i])
        covariance = 2.0 * np.eye(3) - cross @ inner @ cross.T
        np.testing.assert_allclose(variance[i], covariance.diagonal(), atol=1e-8)
        draws = np.random.default_rng(i).multivariate_normal(mean[i], covariance, 100_000)
        draws = np.exp(draws - draws.max(axis=1, keepdims=True))
        expected = (draws / draws.sum(axis=1, keepdims=True)).mean(axis=0)
        np.testing.assert_allclose(model.predict_proba(NEW[i : i + 1])[0], expected, atol=5e-3)


@pytest.mark.parametrize(
    "parameters", [{}, {"approximation": "ep"}, {"y": THREE}, {"y": THREE, "multi_class": "one_vs_rest"}], ids=repr
)
def test_probabilities_sum_to_one_and_agree_with_the_rest(parameters: dict) -> None:
    model = fitted(**parameters)
    far = np.concatenate([NEW, 1e3 * NEW[:3]])
    p = model.predict_proba(far)
    assert (p >= 0).all()
    np.testing.assert_allclose(p.sum(axis=1), 1.0, rtol=1e-14)
    np.testing.assert_array_equal(model.classes_[p.argmax(axis=1)], model.predict(far))
    values = model.decision_function(far)
    by_value = (values > 0).astype(int) if values.ndim == 1 else values.argmax(axis=1)
    np.testing.assert_array_equal(model.classes_[by_value], model.predict(far))
    # Far away only the prior is left.
    np.testing.assert_allclose(p[-3:], 1.0 / p.shape[1], atol=1e-3)


def test_new_rows_go_by_tiles() -> None:
    rows = np.random.default_rng(0).normal(size=(300, 2))
    whole = {y.dtype: fitted(y=y, optimizer=None) for y in (TWO, THREE)}
    for model in whole.values():
        expected = np.concatenate([model.predict_proba(part) for part in np.array_split(rows, 7)])
        np.testing.assert_allclose(model.predict_proba(rows), expected, rtol=1e-10)
        with mercer.config(memory="1KiB"), pytest.raises(MemoryBudgetError, match="kernel values of new rows"):
            model.predict_proba(rows)


def test_several_classes_are_told_apart_by_expectation_propagation_unless_stated_otherwise() -> None:
    model, theirs = fitted(y=THREE), fitted(y=THREE, multi_class="one_vs_rest", approximation="ep")
    joint = fitted(y=THREE, multi_class="multinomial")
    assert len(model.estimators_) == 3 and not joint.estimators_
    # The kernel is that which the evidence of Laplace's approximation chose for all classes, for the other link.
    for part in model.estimators_:
        assert part.approximation == "ep"
        np.testing.assert_allclose(part.kernel_.theta - joint.theta_, [np.log(np.pi / 8), 0.0], atol=1e-12)
    own = fitted(y=THREE, multi_class="one_vs_rest")
    part, rough = own.estimators_[0], fitted(y=(THREE == 0).astype(int))
    np.testing.assert_allclose(part.kernel_.theta - rough.theta_, [np.log(np.pi / 8), 0.0], atol=1e-12)
    truth = THREE[:, None] == np.arange(3)
    losses = [-np.log(one.predict_proba(X)[truth]).mean() for one in (model, theirs, joint)]
    assert losses[0] < losses[2] and losses[1] < losses[2]
    rows, species = load_iris(return_X_y=True)
    found = []
    for scheme in ("auto", "multinomial"):
        iris = GaussianProcessClassifier(multi_class=scheme).fit(rows[::2], species[::2])
        found.append(-np.log(iris.predict_proba(rows[1::2])[np.arange(75), species[1::2]]).mean())
    assert found[0] < 0.6 * found[1]
    assert fitted(y=THREE, approximation="ep").multi_class == "auto"


# ---- forms of input


@pytest.mark.parametrize(
    "parameters", [{}, {"approximation": "ep"}, {"y": THREE}, {"y": THREE, "multi_class": "one_vs_one"}], ids=repr
)
def test_precomputed_matrices(parameters: dict) -> None:
    given = fitted("precomputed", rows=KERNEL(X), **parameters)
    plain = fitted(KERNEL, optimizer=None, **parameters)
    assert given.kernel_ is None and len(given.theta_) == 0 and given.search_ is None
    block = KERNEL(NEW, X)
    np.testing.assert_allclose(given.decision_function(block), plain.decision_function(NEW), atol=1e-9)
    np.testing.assert_array_equal(given.predict(block), plain.predict(NEW))
    assert given.log_marginal_likelihood(np.zeros(0)) == pytest.approx(plain.log_marginal_likelihood_value_, rel=1e-9)


def test_prior_variances_of_precomputed_blocks() -> None:
    kernel = KERNEL + Linear()
    given, plain = fitted("precomputed", rows=kernel(X)), fitted(kernel, optimizer=None)
    block, diagonal = kernel(NEW, X), kernel.diagonal(NEW)
    np.testing.assert_allclose(given.predict_proba(block, diagonal), plain.predict_proba(NEW), atol=1e-9)
    np.testing.assert_array_equal(given.predict(block), plain.predict(NEW))
    with pytest.raises(ParameterError, match=r"differs among.*diagonal="):
        given.predict_proba(block)
    with pytest.raises(DataError, match=r"40 new rows.*\(3,\)"):
        given.predict_proba(block, diagonal[:3])
    with pytest.raises(ParameterError, match=r"this kernel computes k\(x, x\) itself"):
        plain.predict_proba(NEW, diagonal)


def test_composite_kernels_and_noise() -> None:
    kernel = 0.5 * RBF([1.0, 2.0]) + Linear().on([0]) * RBF(0.7).on([1]) + White(0.1)
    model = fitted(kernel)
    best = model.log_marginal_likelihood_value_
    assert best >= model.log_marginal_likelihood(model.search_.trials[0].start)
    low, high = model.kernel_.bounds.T
    for step in (*(0.05 * np.eye(len(low))), *(-0.05 * np.eye(len(low)))):
        assert model.log_marginal_likelihood(np.clip(model.theta_ + step, low, high)) < best + 1e-6


def test_a_fit_can_begin_where_the_last_one_ended() -> None:
    for parameters in ({}, {"approximation": "ep"}, {"y": THREE, "multi_class": "multinomial"}):
        model = fitted(optimizer=None, warm_start=True, **parameters)
        value = model.log_marginal_likelihood_value_
        model.fit(X, parameters.get("y", TWO))
        assert model.certificate_.iterations == 0
        assert model.log_marginal_likelihood_value_ == pytest.approx(value, rel=1e-10)
        model.fit(X[:50], parameters.get("y", TWO)[:50])
        assert model.certificate_.iterations > 0


def test_the_rows_are_copied_or_not() -> None:
    rows = X.copy()
    assert fitted(rows=rows).X_train_ is not rows and fitted(rows=rows, copy_X_train=False).X_train_ is rows


# ---- the search


def test_restarts_find_more_and_depend_on_the_seed_alone() -> None:
    start = (1.0 * RBF(1e-2)).bounded(factor=(1e-2, 1e3), **{"kernel.length_scale": (1e-2, 1e2)})
    alone = fitted(start)
    several = [fitted(start, n_restarts_optimizer=3, random_state=1, n_jobs=jobs) for jobs in (1, 2)]
    assert several[0].theta_.tolist() == several[1].theta_.tolist()
    assert len(several[0].search_.trials) == 4 and several[0].search_.trials[0] == alone.search_.trials[0]
    assert several[0].log_marginal_likelihood_value_ >= alone.log_marginal_likelihood_value_


def test_priors_pull_hyper_parameters() -> None:
    narrow = fitted(RBF(1.0), priors={"length_scale": LogNormal(np.log(5.0), 1e-3)})
    assert narrow.kernel_.length_scale == pytest.approx(5.0, rel=1e-2)
    with pytest.raises(ParameterError, match="not a free parameter"):
        fitted(RBF(1.0), priors={"width": LogNormal()})


def test_a_bound_that_is_reached_is_told() -> None:
    with pytest.warns(MercerWarning, match="length_scale at its"):
        fitted(RBF(1.0).bounded(length_scale=(0.9, 1.05)))


# ---- what goes wrong


@pytest.mark.parametrize(
    ("parameters", "words"),
    [
        ({"optimizer": "adam"}, "optimizer must be 'fmin_l_bfgs_b'"),
        ({"n_restarts_optimizer": -1}, "n_restarts_optimizer must be a whole number"),
        ({"max_iter_predict": 0}, "max_iter_predict must be a whole number of steps, at least 1, but is 0"),
        ({"max_iter_predict": 2.5}, "max_iter_predict"),
        (
            {"multi_class": "all"},
            "multi_class must be 'auto', 'multinomial', 'one_vs_rest' or 'one_vs_one', but is 'all'",
        ),
        ({"approximation": "vb"}, "approximation must be 'auto', 'laplace', 'ep' or 'nystroem', but is 'vb'"),
        ({"warm_start": "yes"}, "warm_start must be True or False"),
        ({"random_state": "now"}, "random_state must be"),
    ],
)
def test_parameters_that_make_no_sense(parameters: dict, words: str) -> None:
    with pytest.raises(ParameterError, match=words):
        fitted(**parameters)


def test_classes_that_cannot_be_learned() -> None:
    with pytest.raises(DataError, match=r"at least two classes, but y has 1 class\(es\): \['same'\]"):
        fitted(y=np.full(60, "same"))
    with pytest.raises(DataError, match="two classes"):
        fitted(rows=X[:1], y=TWO[:1])
    with pytest.raises(ParameterError, match=r"is for two classes, and y has 3.*one_vs_rest"):
        fitted(y=THREE, approximation="ep", multi_class="multinomial")


def test_kernels_that_are_no_covariance() -> None:
    with pytest.raises(IndefiniteKernelError, match="only conditionally positive"):
        fitted(NegativeDistance(), allow_indefinite=False)
    bent = np.tanh(X @ X.T - 1.0)
    with pytest.raises(IndefiniteKernelError, match="allow_indefinite=True"):
        fitted("precomputed", rows=bent, allow_indefinite=False)
    for parameters in ({}, {"approximation": "ep"}, {"y": THREE}):
        model = fitted("precomputed", rows=bent, allow_indefinite=True, **parameters)
        assert model.certificate_.status.name == "converged"
        raised = bent + factor(bent.copy(), definite=False).jitter * np.eye(60)
        plain = fitted("precomputed", rows=raised, **parameters)
        assert model.log_marginal_likelihood_value_ == pytest.approx(plain.log_marginal_likelihood_value_, rel=1e-9)


def test_theta_of_another_length() -> None:
    model = fitted()
    with pytest.raises(ParameterError, match="theta must have the 2 entries of theta_, but has 3"):
        model.log_marginal_likelihood(np.zeros(3))
    with pytest.raises(ParameterError, match=r"pass theta=model\.theta_"):
        model.log_marginal_likelihood(eval_gradient=True)
    with pytest.raises(AttributeError, match="two classes"):
        fitted(y=THREE).L_  # noqa: B018


def test_a_limit_of_steps_warns() -> None:
    for approximation in ("laplace", "ep"):
        with pytest.warns(ConvergenceWarning, match="max_iter_predict ended"):
            fitted(1e3 * RBF(1.0), optimizer=None, max_iter_predict=1, approximation=approximation)


@pytest.mark.parametrize("y", [TWO, THREE], ids=["two", "three"])
def test_rows_that_say_little(y: np.ndarray) -> None:
    for rows in (np.repeat(X[:6], 10, axis=0), np.ones((60, 2)), X * 1e8, X[:, :1] * np.array([1.0, 0.0])):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", MercerWarning)
            model = fitted(rows=rows, y=y)
        assert np.isfinite(model.predict_proba(rows)).all()
    shares = np.unique(y, return_counts=True)[1] / 60
    constant = fitted(1e3 * RBF(1.0), rows=np.ones((60, 2)), y=y, optimizer=None)
    np.testing.assert_allclose(constant.predict_proba(np.ones((1, 2)))[0], shares, atol=0.02)


# ---- on data


def digits(a: int, b: int) -> tuple[np.ndarray, ...]:
    rows, labels = load_digits(return_X_y=True)
    mask = (labels == a) | (labels == b)
    return train_test_split(rows[mask] / 16.0, labels[mask], test_size=0.5, random_state=0)


def test_three_against_five() -> None:
    rows, new, labels, truth = digits(3, 5)
    start = 10.0 * RBF(2.0)
    laplace, ep = (GaussianProcessClassifier(start, approximation=name).fit(rows, labels) for name in ("laplace", "ep"))
    for model in (laplace, ep):
        assert model.score(new, truth) >= SVC().fit(rows, labels).score(new, truth) - 0.01
        assert model.certificate_.status.name == "converged"
    # Bits of information over the base rate of one: on handwritten threes and fives Laplace's approximation, whose
    # probabilities are too cautious, had about 0.7 and expectation propagation about 0.9 (Rasmussen and Williams,
    # figures 3.7 and 3.8).
    by_laplace, by_ep = (1 - log_loss(truth, m.predict_proba(new)) / np.log(2) for m in (laplace, ep))
    assert by_laplace > 0.65 and by_ep > 0.85


def test_irises_all_at_once() -> None:
    rows, labels = load_iris(return_X_y=True)
    model = GaussianProcessClassifier(1.0 * RBF([1.0] * 4), multi_class="multinomial").fit(rows[::2], labels[::2])
    assert model.score(rows[1::2], labels[1::2]) > 0.94
    assert log_loss(labels[1::2], model.predict_proba(rows[1::2])) < np.log(3)
    parts = GaussianProcessClassifier(1.0 * RBF(1.0))
    parts.fit(rows[::2], labels[::2])
    assert log_loss(labels[1::2], parts.predict_proba(rows[1::2])) < 0.15
    assert model.search_.best.ended == "converged"


def test_clones_and_kernels_parameters() -> None:
    model = clone(GaussianProcessClassifier(KERNEL)).set_params(kernel__factor=5.0)
    assert isinstance(model.kernel, Kernel) and model.kernel == 5.0 * RBF(1.0)


@pytest.mark.slow
@pytest.mark.parametrize(("approximation", "variance"), [("ep", 4.0), ("laplace", 1.0)])
def test_probabilities_are_calibrated(approximation: str, variance: float) -> None:
    """Where the prior is that of the data, events of probability p come about in a share p of the cases."""
    rng = np.random.default_rng(0)
    kernel, link = (variance * RBF(0.7)).fixed(), ndtr if approximation == "ep" else expit
    excess = []
    for _ in range(100):
        rows = rng.uniform(-3, 3, (40, 1))
        f = np.linalg.cholesky(np.asarray(kernel(rows)) + 1e-9 * np.eye(40)) @ rng.normal(size=40)
        y = rng.random(40) < link(f)
        if len(np.unique(y[:30])) < 2:
            continue
        model = GaussianProcessClassifier(kernel, approximation=approximation).fit(rows[:30], y[:30])
        p = model.predict_proba(rows[30:])[:, 1]
        which = np.digitize(p, [0.25, 0.5, 0.75])
        excess.append([(y[30:] - p)[which == part].sum() for part in range(4)])
    parts = np.array(excess)
    # Rows of one draw hang together, draws do not: their sums are of mean 0, within four standard errors.
    assert (np.abs(parts.sum(axis=0)) < 4.0 * np.sqrt(np.square(parts).sum(axis=0))).all()


def test_log_marginal_likelihood_is_a_numpy_number_as_in_scikit_learn() -> None:
    X = np.random.default_rng(0).normal(size=(12, 1))
    model = GaussianProcessClassifier(optimizer=None).fit(X, X[:, 0] > 0)
    answers = [model.log_marginal_likelihood(), model.log_marginal_likelihood(model.theta_)]
    answers.append(model.log_marginal_likelihood(model.theta_, eval_gradient=True)[0])
    # With a float32, as in a comparison to its eps, a Python number would be rounded to float32.
    assert [(answer - np.float32(0.5)).dtype for answer in answers] == [np.float64] * 3
