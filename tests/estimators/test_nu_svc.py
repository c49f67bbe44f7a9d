"""NuSVC against scikit-learn's, against SVC at C = 1 / rho, and what nu cannot be."""

from __future__ import annotations

import inspect

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.svm import NuSVC as Reference

from mercer._errors import IndefiniteKernelError, MercerWarning, ParameterError
from mercer.estimators.nu_svc import NuSVC
from mercer.estimators.svc import SVC
from mercer.solvers.solution import Status
from svm_cases import full_coef, iris, two_classes


@pytest.mark.parametrize(
    "parameters", [{}, {"nu": 0.203}, {"nu": 0.771, "gamma": 0.1}, {"nu": 0.311, "kernel": "poly", "coef0": 1.0}]
)
@pytest.mark.parametrize("data", [iris, two_classes])
def test_agrees_with_scikit_learn(parameters, data):
    X, y = data()
    X, y = X[:-1], y[:-1]
    ours, theirs = NuSVC(**parameters).fit(X, y), Reference(**parameters, tol=1e-9).fit(X, y)
    for shape in ("ovo", "ovr"):
        ours.decision_function_shape = theirs.decision_function_shape = shape
        np.testing.assert_allclose(ours.decision_function(X), theirs.decision_function(X), atol=5e-4)
    np.testing.assert_array_equal(ours.predict(X), theirs.predict(X))
    np.testing.assert_allclose(ours.intercept_, theirs.intercept_, atol=5e-4)
    np.testing.assert_allclose(np.abs(ours.dual_coef_).sum(), np.abs(theirs.dual_coef_).sum(), rtol=1e-4)
    assert ours.dual_coef_.shape == (len(ours.classes_) - 1, len(ours.support_))
    assert ours.certificate_.status is Status.converged and ours.fit_status_ == 0


def test_sample_weights_agree_with_scikit_learn(rng):
    X, y = two_classes()
    weight = rng.uniform(0.1, 3.0, len(y))
    ours, theirs = NuSVC(gamma=0.2).fit(X, y, weight), Reference(gamma=0.2, tol=1e-9).fit(X, y, weight)
    np.testing.assert_allclose(ours.decision_function(X), theirs.decision_function(X), atol=5e-5)


def test_parameters_are_scikit_learns_then_ours():
    theirs, ours = inspect.signature(Reference).parameters, inspect.signature(NuSVC).parameters
    assert list(ours)[: len(theirs)] == list(theirs)
    # Older versions of scikit-learn do not call `probability` deprecated.
    same = [name for name in theirs if name != "probability"]
    assert all(ours[name].default == theirs[name].default for name in same)


@pytest.mark.parametrize("n", [200, 900, 2600])
def test_it_is_the_svc_at_one_over_rho(n):
    X, y = two_classes(n)
    model = NuSVC(nu=0.41, gamma=0.2, tol=1e-5).fit(X, y)
    assert model.certificate_.kkt_violation <= 1e-5
    price = np.abs(model.dual_coef_).max()
    same = SVC(C=price, gamma=0.2, tol=1e-5).fit(X, y)
    np.testing.assert_allclose(model.decision_function(X), same.decision_function(X), atol=2e-3)
    assert (model.slacks_ > 1e-4).mean() <= 0.41 <= (model.roles_ != "outside").mean()
    sign = np.where(y == 1, 1.0, -1.0)
    np.testing.assert_allclose(model.margins_, sign * model.decision_function(X), atol=1e-6)
    np.testing.assert_array_equal(model.roles_ == "bounded", np.abs(full_coef(model, n)[0]) >= price * (1 - 1e-12))


def test_certificate_is_what_the_definitions_say():
    X, y = two_classes(700)
    model = NuSVC(nu=0.5, gamma=0.2).fit(X, y)
    rho = 1.0 / np.abs(model.dual_coef_).max()
    beta = rho * full_coef(model, len(y))[0]
    square = beta @ rbf_kernel(X, gamma=0.2) @ beta
    assert model.certificate_.dual == pytest.approx(-0.5 * square, rel=1e-6)
    primal = 0.5 * square - 0.5 * len(y) * rho + rho * model.slacks_.sum()
    assert model.certificate_.primal == pytest.approx(primal, rel=1e-3)
    assert model.certificate_.relative_gap < 1e-3
    gap = NuSVC(nu=0.5, gamma=0.2, tol=1e-6, stop="gap").fit(X, y).certificate_
    assert gap.relative_gap <= 1e-6 and gap.kkt_violation <= 1e-6


@settings(max_examples=25, deadline=None)
@given(
    weights=st.lists(st.integers(0, 4), min_size=24, max_size=24),
    nu=st.sampled_from([0.05, 0.3, 0.5]),
    seed=st.integers(0, 2**20),
    balanced=st.booleans(),
)
def test_weights_are_repetition(weights, nu, seed, balanced):
    rng = np.random.default_rng(seed)
    X, y, weights = rng.standard_normal((24, 3)), np.arange(24) % 3, np.array(weights)
    # Some of each class, so that nu is feasible.
    weights[:9] = np.maximum(weights[:9], 2)
    order = rng.permutation(24)
    model = NuSVC(nu=nu, class_weight="balanced" if balanced else None)
    weighted = clone(model).fit(X[order], y[order], weights[order])
    repeated = clone(model).fit(np.repeat(X, weights, axis=0), np.repeat(y, weights))
    grid = rng.standard_normal((30, 3))
    expected = repeated.decision_function(grid)
    np.testing.assert_allclose(weighted.decision_function(grid), expected, atol=1e-6, rtol=1e-6)
    assert weighted.certificate_.dual == pytest.approx(repeated.certificate_.dual, rel=1e-8)


@pytest.mark.parametrize("class_weight", ["balanced", {0: 100.0, 1: 1.0}, {0: 0.2, 1: 0.5}])
def test_class_weights_multiply_the_price_that_nu_leads_to(class_weight):
    X, y = two_classes()
    X, y = X[30:], y[30:]
    plain = NuSVC(nu=0.41).fit(X, y)
    price = np.abs(plain.dual_coef_).max()
    weighted = NuSVC(nu=0.41, class_weight=class_weight).fit(X, y)
    same = SVC(C=price, class_weight=class_weight).fit(X, y)
    np.testing.assert_allclose(weighted.decision_function(X), same.decision_function(X), atol=1e-6)
    np.testing.assert_array_equal(weighted.roles_, same.roles_)
    assert weighted.certificate_.dual == pytest.approx(same.certificate_.dual, rel=1e-8)
    if class_weight == {0: 100.0, 1: 1.0}:
        assert (weighted.predict(X) == 0).sum() > (plain.predict(X) == 0).sum()


def test_a_nu_that_is_too_large_names_the_largest():
    X, y = iris()
    y = np.array(["a", "b", "c"])[y]
    rows = np.r_[0:10, 60:90, 110:140]
    words = r"nu=0\.9 is infeasible: for the classes 'a' and 'b', with rows of weight 10 and 30, nu can be 0\.5 at most"
    with pytest.raises(ParameterError, match=words):
        NuSVC(nu=0.9).fit(X[rows], y[rows])
    assert NuSVC(nu=0.5).fit(X[rows], y[rows]).fit_status_ == 0
    even = np.r_[0:30, 60:90]
    full = NuSVC(nu=1.0).fit(X[even], y[even])
    assert set(full.roles_) == {"bounded"} and np.isfinite(full.decision_function(X)).all()


def test_a_nu_that_is_too_small_is_said_to_be():
    X, y = two_classes()
    with pytest.warns(MercerWarning, match=r"nu=0\.05 is so small that the optimal margin between the classes 0 and 1"):
        model = NuSVC(nu=0.05, kernel="linear").fit(X, y)
    assert np.isfinite(model.decision_function(X)).all()


def test_warm_start():
    X, y = two_classes(700)
    warm = NuSVC(nu=0.4, gamma=0.2, warm_start=True).fit(X, y)
    steps = warm.n_iter_[0]
    assert warm.fit(X, y).n_iter_[0] < steps / 4
    for nu in (0.6, 0.3):
        fresh = NuSVC(nu=nu, gamma=0.2).fit(X, y)
        again = warm.set_params(nu=nu).fit(X, y)
        assert again.certificate_.dual == pytest.approx(fresh.certificate_.dual, rel=1e-4)
        assert again.certificate_.kkt_violation <= 1e-3


def test_other_input():
    X, y = iris()
    X = np.where(X > 0, X, 0.0)
    dense = NuSVC(nu=0.3).fit(X, y)
    sparse = NuSVC(nu=0.3).fit(sp.csr_matrix(X), y)
    np.testing.assert_allclose(sparse.decision_function(sp.csr_matrix(X)), dense.decision_function(X), atol=1e-6)
    K = rbf_kernel(X, gamma=0.4)
    given = NuSVC(nu=0.3, kernel="precomputed").fit(K, y)
    np.testing.assert_allclose(
        given.decision_function(K), NuSVC(nu=0.3, gamma=0.4).fit(X, y).decision_function(X), atol=1e-7
    )


def test_indefinite_kernels():
    X, y = two_classes()
    with pytest.raises(IndefiniteKernelError, match="allow_indefinite=True"):
        NuSVC(kernel="sigmoid", allow_indefinite=False).fit(X, y)
    with pytest.warns(MercerWarning, match="optimal margin .* is zero"):
        model = NuSVC(nu=0.6, kernel="sigmoid", coef0=1.0, allow_indefinite=True).fit(X, y)
    assert model.certificate_.status in (Status.stationary, Status.stalled)
    assert np.isfinite(model.decision_function(X)).all()


def test_max_iter_is_honoured_and_reported():
    X, y = two_classes(600)
    with pytest.warns(ConvergenceWarning, match="max_iter"):
        model = NuSVC(max_iter=5).fit(X, y)
    assert model.n_iter_.tolist() == [5] and model.certificate_.status is Status.iteration_limit


@pytest.mark.parametrize("nu", [0.0, -0.1, 1.1, np.nan, "half", True])
def test_values_of_nu_that_make_no_sense(nu):
    X, y = two_classes()
    with pytest.raises(ParameterError, match="nu must be a number above 0 and at most 1"):
        NuSVC(nu=nu).fit(X, y)


def test_probabilities_agree_with_the_prediction():
    X, y = two_classes()
    model = NuSVC(nu=0.4).calibrated(cv=3).fit(X, y)
    np.testing.assert_array_equal(model.predict(X), model.classes_[model.predict_proba(X).argmax(axis=1)])
    with pytest.raises(ParameterError, match="probability must be True, False or 'deprecated'"):
        NuSVC(probability=[True]).fit(X, y)


def test_labels_that_are_objects_are_named():
    X, _ = two_classes(60)
    labels = np.array(["no", "yes"], dtype=object)[(np.arange(60) % 3 == 0).astype(int)]
    with pytest.raises(ParameterError, match="infeasible: for the classes 'no' and 'yes'"):
        NuSVC(nu=0.9).fit(X, labels)
