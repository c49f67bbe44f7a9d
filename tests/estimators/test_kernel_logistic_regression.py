"""KernelLogisticRegression against scikit-learn's LogisticRegression, and what it says of odd input."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import PolynomialFeatures

import mercer
from mercer import KernelLogisticRegression
from mercer._errors import DataError, IndefiniteKernelError, ParameterError
from mercer.kernels import RBF, NegativeDistance, Polynomial, Sigmoid

RNG = np.random.default_rng(0)
X = RNG.normal(size=(150, 4))
NEW = RNG.normal(size=(40, 4))
TWO = np.where(X[:, 0] + 0.5 * X[:, 1] ** 2 + 0.5 * RNG.normal(size=150) > 0.3, "yes", "no")
THREE = np.array(["ash", "elm", "oak"])[np.digitize(X[:, 0] + 0.7 * RNG.normal(size=150), [-0.5, 0.7])]
WEIGHTS = RNG.integers(0, 4, 150).astype(float)


def peer(**parameters: object) -> LogisticRegression:
    return LogisticRegression(solver="newton-cholesky", tol=1e-10, max_iter=1000, **parameters)


def one_a_class(values: np.ndarray) -> np.ndarray:
    """Without what all classes have in common, which changes no probability."""
    return values - values.mean(axis=0) if len(values) > 1 else values


@pytest.mark.parametrize("y", [TWO, THREE], ids=["two", "three"])
@pytest.mark.parametrize("C", [0.01, 1.0, 100.0])
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_linear_is_scikit_learns(y: np.ndarray, C: float, fit_intercept: bool) -> None:
    ours = KernelLogisticRegression(kernel="linear", C=C, fit_intercept=fit_intercept).fit(X, y)
    theirs = peer(C=C, fit_intercept=fit_intercept).fit(X, y)
    assert ours.coef_.shape == theirs.coef_.shape and ours.intercept_.shape == theirs.intercept_.shape
    np.testing.assert_allclose(ours.coef_, theirs.coef_, rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(ours.intercept_, one_a_class(theirs.intercept_), rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(ours.predict_proba(NEW), theirs.predict_proba(NEW), atol=1e-8)
    np.testing.assert_array_equal(ours.predict(NEW), theirs.predict(NEW))
    values = theirs.decision_function(NEW)
    if values.ndim == 2:
        values = values - values.mean(axis=1, keepdims=True)
    np.testing.assert_allclose(ours.decision_function(NEW), values, atol=1e-6)


@pytest.mark.parametrize("class_weight", [None, "balanced", {"ash": 3.0, "elm": 0.5}])
def test_weights_are_scikit_learns(class_weight: object) -> None:
    ours = KernelLogisticRegression(kernel="linear", class_weight=class_weight).fit(X, THREE, WEIGHTS)
    theirs = peer(class_weight=class_weight).fit(X, THREE, WEIGHTS)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=1e-7)
    np.testing.assert_allclose(ours.predict_proba(NEW), theirs.predict_proba(NEW), atol=1e-8)
    assert not ours.dual_coef_[:, WEIGHTS == 0].any()


@pytest.mark.parametrize("y", [TWO, THREE], ids=["two", "three"])
def test_a_polynomial_kernel_is_its_explicit_map(y: np.ndarray) -> None:
    mapping = PolynomialFeatures(2, include_bias=False).fit(X)
    # (x'z + 1)^2: squares count once, all else twice.
    scales = np.where(mapping.powers_.max(axis=1) == 2, 1.0, np.sqrt(2.0))
    ours = KernelLogisticRegression(kernel=Polynomial(2), C=0.3).fit(X, y)
    theirs = peer(C=0.3).fit(mapping.transform(X) * scales, y)
    expected = theirs.predict_proba(mapping.transform(NEW) * scales)
    np.testing.assert_allclose(ours.predict_proba(NEW), expected, atol=1e-7)


@pytest.mark.parametrize("y", [TWO, THREE], ids=["two", "three"])
def test_weights_are_repetition(y: np.ndarray) -> None:
    rows = np.repeat(np.arange(150), WEIGHTS.astype(int))
    weighted = KernelLogisticRegression(C=3.0).fit(X, y, WEIGHTS)
    repeated = KernelLogisticRegression(C=3.0).fit(X[rows], y[rows])
    np.testing.assert_allclose(weighted.decision_function(NEW), repeated.decision_function(NEW), rtol=1e-8, atol=1e-9)
    assert weighted.certificate_.primal == pytest.approx(repeated.certificate_.primal, rel=1e-12)
    sums = np.zeros_like(weighted.dual_coef_)
    np.add.at(sums.T, rows, repeated.dual_coef_.T)
    np.testing.assert_allclose(weighted.dual_coef_, sums, atol=1e-8)


def test_probabilities() -> None:
    for y in (TWO, THREE):
        model = KernelLogisticRegression(C=1e3).fit(X, y)
        far = np.vstack([NEW, X, 1e3 * NEW])
        P = model.predict_proba(far)
        np.testing.assert_allclose(P.sum(axis=1), 1.0, rtol=1e-15)
        assert (P >= 0).all()
        np.testing.assert_array_equal(model.classes_[P.argmax(axis=1)], model.predict(far))
        np.testing.assert_allclose(np.exp(model.predict_log_proba(far)), P, rtol=1e-12)
    steep = KernelLogisticRegression(kernel="linear", C=1e6).fit(X, np.where(X[:, 0] > 0, 1, 0))
    assert np.isfinite(steep.predict_log_proba(1e6 * NEW)).all()


def test_the_names_and_order_of_the_classes_do_not_matter() -> None:
    model = KernelLogisticRegression().fit(X, THREE)
    swapped = KernelLogisticRegression().fit(X, np.array([2, 0, 1])[np.unique(THREE, return_inverse=True)[1]])
    np.testing.assert_allclose(model.predict_proba(NEW), swapped.predict_proba(NEW)[:, [2, 0, 1]], atol=1e-10)
    two = KernelLogisticRegression().fit(X, TWO)
    turned = KernelLogisticRegression().fit(X, TWO == "no")
    np.testing.assert_allclose(two.decision_function(NEW), -turned.decision_function(NEW), atol=1e-10)


def test_forms_of_the_kernel_and_of_the_rows() -> None:
    model = KernelLogisticRegression(kernel=RBF(1.5)).fit(X, THREE)
    expected = model.predict_proba(NEW)
    given = KernelLogisticRegression(kernel="precomputed").fit(RBF(1.5)(X), THREE)
    np.testing.assert_allclose(given.predict_proba(RBF(1.5)(NEW, X)), expected, atol=1e-10)
    assert given.kernel_ is None and given.X_fit_.size == 0
    sparse = KernelLogisticRegression(kernel=RBF(1.5)).fit(sp.csr_matrix(X), THREE)
    np.testing.assert_allclose(sparse.predict_proba(sp.csr_matrix(NEW)), expected, atol=1e-10)
    single = KernelLogisticRegression(kernel=RBF(1.5)).fit(X.astype(np.float32), THREE)
    np.testing.assert_allclose(single.predict_proba(NEW.astype(np.float32)), expected, atol=1e-4)
    function = KernelLogisticRegression(kernel=lambda A, B: RBF(1.5)(A, B)).fit(X, THREE)
    np.testing.assert_allclose(function.predict_proba(NEW), expected, atol=1e-10)
    with pytest.raises(AttributeError, match="finite feature map only"):
        _ = model.coef_


def test_conditionally_positive_kernels_need_the_intercept() -> None:
    plain = KernelLogisticRegression(kernel=NegativeDistance()).fit(X, THREE)
    centred = KernelLogisticRegression(kernel=NegativeDistance().centered(X)).fit(X, THREE)
    np.testing.assert_allclose(plain.predict_proba(NEW), centred.predict_proba(NEW), atol=1e-8)
    assert plain.certificate_.status.name == "converged"
    with pytest.raises(IndefiniteKernelError, match="only conditionally positive"):
        KernelLogisticRegression(kernel=NegativeDistance(), fit_intercept=False, allow_indefinite=False).fit(X, THREE)


def test_indefinite_kernels_when_allowed() -> None:
    kernel = Sigmoid(offset=-1.0)
    model = KernelLogisticRegression(kernel=kernel, allow_indefinite=True, max_iter=1000).fit(X, TWO)
    assert model.certificate_.status.name == "stationary" and not model.certificate_.convex
    missing = (TWO == "yes") - model.predict_proba(X)[:, 1]
    np.testing.assert_allclose(model.dual_coef_[0], missing, atol=1e-4)


def test_warm_start() -> None:
    model = KernelLogisticRegression(C=10.0, warm_start=True).fit(X, THREE)
    cold = KernelLogisticRegression(C=12.0).fit(X, THREE)
    warm = model.set_params(C=12.0).fit(X, THREE)
    assert warm.n_iter_[0] < cold.n_iter_[0]
    np.testing.assert_allclose(warm.predict_proba(NEW), cold.predict_proba(NEW), atol=1e-9)
    # Other rows, other classes, weights of zero: whatever cannot be a start is none, and what is a bad one is left.
    for rows, y, weight in ((X[:90], THREE[:90], None), (X, TWO, None), (X, TWO[::-1], WEIGHTS)):
        again = model.fit(rows, y, weight).predict_proba(NEW)
        fresh = KernelLogisticRegression(C=12.0).fit(rows, y, weight)
        np.testing.assert_allclose(again, fresh.predict_proba(NEW), atol=1e-9)


def test_too_few_steps_are_said() -> None:
    with pytest.warns(ConvergenceWarning, match="max_iter was reached"):
        model = KernelLogisticRegression(C=100.0, max_iter=1).fit(X, THREE)
    assert model.fit_status_ == 1 and model.n_iter_.tolist() == [1]
    assert model.certificate_.gap > 0 and "raise max_iter" in model.certificate_.explain()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert KernelLogisticRegression(C=100.0).fit(X, THREE).fit_status_ == 0


def test_what_an_answer_says_of_itself() -> None:
    certificate = KernelLogisticRegression().fit(X, THREE).certificate_
    assert "relative error of w is not larger" in certificate.explain()
    assert set(certificate.violations) == {"error"}


@pytest.mark.parametrize(
    ("parameters", "words"),
    [
        ({"C": 0.0}, "C must be a finite number above 0, but is 0.0"),
        ({"C": np.inf}, "C must be a finite number above 0"),
        ({"tol": -1.0}, "tol must be a finite number above 0"),
        ({"max_iter": 0}, "at least 1, but is 0"),
        ({"max_iter": 2.5}, "whole number of Newton steps"),
        ({"max_iter": True}, "whole number of Newton steps"),
        ({"fit_intercept": "no"}, "fit_intercept must be True or False"),
        ({"warm_start": 3}, "warm_start must be True or False"),
        ({"class_weight": {"nobody": 2.0}}, "class_weight must have a number for each class"),
        ({"class_weight": {"yes": -1.0, "no": 1.0}}, "finite numbers above 0"),
    ],
)
def test_parameters_that_make_no_sense(parameters: dict, words: str) -> None:
    with pytest.raises(ParameterError, match=words):
        KernelLogisticRegression(**parameters).fit(X, TWO)


@pytest.mark.parametrize("C", [1e-6, 1e7])
def test_many_classes_and_any_weight_of_the_loss(C: float) -> None:
    rng = np.random.RandomState(0)
    rows, y = rng.randn(60, 2), np.r_[np.arange(30), rng.randint(0, 30, 30)]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = KernelLogisticRegression(C=C, gamma=0.5).fit(rows, y)
    probabilities = model.predict_proba(NEW[:, :2])
    assert probabilities.shape == (40, 30) and (probabilities >= 0).all()
    np.testing.assert_allclose(probabilities.sum(axis=1), 1.0, atol=1e-12)
    if C > 1:
        assert model.score(rows, y) == 1.0
    else:
        np.testing.assert_allclose(model.predict_proba(rows), np.broadcast_to(np.bincount(y) / 60, (60, 30)), atol=1e-4)


def test_targets_and_weights_that_cannot_be_used() -> None:
    model = KernelLogisticRegression()
    with pytest.raises(DataError, match=r"at least two classes, but y has 1 class\(es\): \['a'\]; also pass rows"):
        model.fit(X, ["a"] * 150)
    with pytest.raises(DataError, match="not counting rows of weight 0"):
        model.fit(X, TWO, (TWO == "yes").astype(float))
    with pytest.raises(DataError, match=r"1 class\(es\)"):
        model.fit(X[:1], TWO[:1])
    with pytest.raises(DataError, match="negative values"):
        model.fit(X, TWO, np.linspace(-1, 1, 150))
    with pytest.raises(DataError, match="zero for each"):
        model.fit(X, TWO, np.zeros(150))
    with pytest.raises(DataError, match="Unknown label type"):
        model.fit(X, X[:, 0])


def test_constant_rows_and_two_rows() -> None:
    constant = KernelLogisticRegression().fit(np.ones((6, 2)), [0, 0, 1, 1, 2, 1])
    np.testing.assert_allclose(constant.predict_proba(np.ones((1, 2))), [[1 / 3, 1 / 2, 1 / 6]], rtol=1e-9)
    two = KernelLogisticRegression().fit([[0.0], [1.0]], ["a", "b"])
    np.testing.assert_allclose(two.predict_proba([[0.5]]), 0.5)
    assert two.predict([[0.0], [1.0]]).tolist() == ["a", "b"]


def test_a_hook_is_told_of_newton_steps() -> None:
    heard = []
    with mercer.on_progress(lambda *what: heard.append(what)):
        model = KernelLogisticRegression().fit(X, TWO)
    assert ("Newton steps", int(model.n_iter_[0]), 100) in heard
