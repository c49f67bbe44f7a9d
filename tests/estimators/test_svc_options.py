"""What SVC has beyond the plain fit: other problems and solvers, warm starts, roles, probabilities, odd data."""

import inspect
from itertools import combinations

import numpy as np
import pytest
from scipy.optimize import minimize
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.svm import SVC as Reference

import mercer
from mercer._errors import IndefiniteKernelError
from mercer.estimators.svc import SVC
from mercer.solvers.solution import Status
from svm_cases import fitted_pair, full_coef, iris, two_classes


def test_parameters_are_scikit_learns_then_ours():
    theirs, ours = inspect.signature(Reference).parameters, inspect.signature(SVC).parameters
    assert list(ours)[: len(theirs)] == list(theirs)
    # Older versions of scikit-learn do not call `probability` deprecated.
    same = [name for name in theirs if name != "probability"]
    assert all(ours[name].default == theirs[name].default for name in same)


def homogeneous_reference(K, y, upper):
    """The dual without a sum to keep, by SLSQP."""
    Q = np.outer(y, y) * K
    optimum = minimize(
        lambda a: 0.5 * a @ Q @ a - a.sum(),
        np.zeros(len(y)),
        jac=lambda a: Q @ a - 1.0,
        method="SLSQP",
        bounds=[(0.0, u) for u in upper],
        options={"maxiter": 500, "ftol": 1e-14},
    )
    return y * optimum.x, optimum.fun


@pytest.mark.parametrize("solver", ["smo", "projected-gradient", "accelerated-projected-gradient"])
def test_without_an_intercept(solver):
    X, y = two_classes(60)
    weight = np.linspace(0.5, 2.0, 60)
    model = SVC(C=2.0, gamma=0.3, fit_intercept=False, solver=solver, tol=1e-7).fit(X, y, weight)
    beta, objective = homogeneous_reference(rbf_kernel(X, gamma=0.3), np.where(y == 1, 1.0, -1.0), 2.0 * weight)
    assert model.intercept_.tolist() == [0.0]
    assert model.certificate_.dual == pytest.approx(-objective, rel=1e-7)
    np.testing.assert_allclose(model.decision_function(X), rbf_kernel(X, gamma=0.3) @ beta, atol=1e-5)


def test_without_an_intercept_every_pair_is_its_own():
    X, y = iris()
    model = SVC(fit_intercept=False).fit(X, y)
    assert model.intercept_.tolist() == [0.0, 0.0, 0.0]
    pair = np.isin(y, [0, 2])
    alone = SVC(fit_intercept=False, kernel=model.kernel_).fit(X[pair], y[pair])
    model.decision_function_shape = "ovo"
    np.testing.assert_allclose(model.decision_function(X)[:, 1], -alone.decision_function(X), atol=1e-8)


def test_a_matrix_that_is_only_conditionally_positive_needs_the_intercept():
    X, y = two_classes(60)
    K = -np.abs(X[:, None, 0] - X[None, :, 0])
    assert SVC(kernel="precomputed").fit(K, y).certificate_.status is Status.converged
    with pytest.raises(IndefiniteKernelError, match="indefinite"):
        SVC(kernel="precomputed", fit_intercept=False, allow_indefinite=False).fit(K, y)


@pytest.mark.slow
@pytest.mark.parametrize("solver", ["projected-gradient", "accelerated-projected-gradient"])
def test_projected_gradients_reach_the_same_answer(solver):
    X, y = (side[::2] for side in iris())
    slow, quick = SVC(solver=solver, tol=1e-6).fit(X, y), SVC().fit(X, y)
    np.testing.assert_allclose(slow.decision_function(X), quick.decision_function(X), atol=1e-4)
    assert slow.certificate_.dual == pytest.approx(quick.certificate_.dual, rel=1e-8)
    with pytest.warns(ConvergenceWarning, match="max_iter"):
        assert SVC(solver=solver, max_iter=3).fit(X, y).n_iter_.tolist() == [3, 3, 3]


@pytest.mark.parametrize("data", [iris, two_classes])
@pytest.mark.parametrize("weighted", [False, True])
def test_margins_slacks_and_roles(data, weighted):
    X, y = data()
    weight = np.where(np.arange(len(y)) % 7 == 0, 0.0, 1.0 + np.arange(len(y)) % 3) if weighted else np.ones(len(y))
    model = SVC(C=2.0, decision_function_shape="ovo").fit(X, y, weight)
    k, n = len(model.classes_), len(y)
    values = model.decision_function(X).reshape(n, -1)
    alpha = np.abs(full_coef(model, n))
    margins, slacks, roles = (np.reshape(a, (k - 1, n)) for a in (model.margins_, model.slacks_, model.roles_))
    assert model.margins_.shape == ((n,) if k == 2 else (k - 1, n))
    pairs = list(combinations(range(k), 2))
    for row in range(n):
        others = [c for c in range(k) if c != y[row]]
        for j, other in enumerate(others):
            i = pairs.index((min(y[row], other), max(y[row], other)))
            sign = (1.0 if y[row] < other else -1.0) * (-1.0 if k == 2 else 1.0)
            if weight[row] == 0:
                assert np.isnan(margins[j, row]) and np.isnan(slacks[j, row]) and roles[j, row] == "outside"
                continue
            assert margins[j, row] == pytest.approx(sign * values[row, i], abs=1e-9)
            assert slacks[j, row] == max(0.0, 1.0 - margins[j, row])
            at_bound = alpha[j, row] >= 2.0 * weight[row] * (1 - 1e-12)
            assert roles[j, row] == ("outside" if alpha[j, row] == 0 else "bounded" if at_bound else "free")
    assert set(np.unique(roles)) == {"outside", "free", "bounded"}
    assert np.abs(margins[roles == "free"] - 1.0).max() < 1e-6
    assert margins[(roles == "outside") & ~np.isnan(margins)].min() > 1.0 - 1e-6
    assert margins[roles == "bounded"].max() < 1.0 + 1e-6


def test_warm_start_goes_on_from_the_last_solution():
    X, y = two_classes(700, seed=3)
    cold = SVC(C=30.0, gamma=0.2).fit(X, y)
    warm = SVC(C=30.0, gamma=0.2, warm_start=True).fit(X, y)
    np.testing.assert_array_equal(warm.dual_coef_, cold.dual_coef_)
    assert warm.fit(X, y).n_iter_[0] == 0
    assert warm.set_params(C=33.0).fit(X, y).n_iter_[0] < SVC(C=33.0, gamma=0.2).fit(X, y).n_iter_[0]
    for C in (1.0, 100.0):
        again, fresh = warm.set_params(C=C).fit(X, y), SVC(C=C, gamma=0.2).fit(X, y)
        assert again.certificate_.dual == pytest.approx(fresh.certificate_.dual, rel=1e-5)
        assert again.certificate_.kkt_violation <= 1e-3
    # Other rows, other classes, other weights: it begins anew, or from what is left.
    for A, b, w in ((X[:500], y[:500], None), (X, np.where(y == 1, "a", "b"), None), (X, 1 - y, None), (X, y, y + 1.0)):
        again, fresh = warm.fit(A, b, w), SVC(C=100.0, gamma=0.2).fit(A, b, w)
        assert again.certificate_.dual == pytest.approx(fresh.certificate_.dual, rel=1e-5)


def test_warm_start_with_several_classes():
    X, y = iris()
    warm = SVC(C=1.0, warm_start=True).fit(X, y)
    for C in (10.0, 0.1, 1.0):
        fresh = SVC(C=C).fit(X, y)
        again = warm.set_params(C=C).fit(X, y)
        np.testing.assert_allclose(again.decision_function(X), fresh.decision_function(X), atol=1e-6)


def test_stopping_by_the_gap():
    X, y = two_classes(800)
    model = SVC(C=50.0, gamma=0.2, tol=1e-5, stop="gap").fit(X, y)
    assert model.certificate_.relative_gap <= 1e-5 and model.certificate_.kkt_violation <= 1e-5
    assert "stationarity" in model.certificate_.violations


@pytest.mark.parametrize("parameters", [{}, {"decision_function_shape": "ovo"}])
@pytest.mark.parametrize("data", [iris, two_classes])
def test_probabilities_agree_with_the_prediction(data, parameters):
    X, y = data()
    model = SVC(C=3.0, **parameters).calibrated(cv=3)
    assert isinstance(model, CalibratedClassifierCV) and not hasattr(model, "classes_")
    model.fit(X, y)
    probability = model.predict_proba(X)
    np.testing.assert_allclose(probability.sum(axis=1), 1.0)
    np.testing.assert_array_equal(model.predict(X), model.classes_[probability.argmax(axis=1)])
    assert model.score(X, y) > 0.8
    assert clone(model).set_params(estimator__C=1.0).get_params()["estimator__C"] == 1.0


DEGENERATE = {
    "opposite labels": (np.repeat(np.arange(6.0)[:, None], 2, axis=0), np.tile([0, 1], 6)),
    "constant columns": (np.ones((10, 3)), np.arange(10) % 2),
    "zero rows": (np.zeros((8, 2)), np.arange(8) % 4),
    "two rows": (np.array([[0.0], [1.0]]), np.array([0, 1])),
    "two equal rows": (np.zeros((2, 1)), np.array([0, 1])),
    "labels are numbers": (np.arange(8.0)[:, None], np.array([-3, 7] * 4)),
    "labels are words": (np.arange(8.0)[:, None], np.array(["no", "yes"] * 4, dtype=object)),
    "labels are booleans": (np.arange(8.0)[:, None], np.arange(8) > 3),
}


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("name", DEGENERATE)
@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("C", [1e-6, 1.0, 1e8])
def test_degenerate_data_end_well(name, intercept, C):
    X, y = DEGENERATE[name]
    for kernel in ({"kernel": "linear"}, {"gamma": 1e-6}, {"gamma": 1e4}):
        model = SVC(C=C, fit_intercept=intercept, **kernel).fit(X, y)
        certificate = model.certificate_
        assert np.isfinite(model.decision_function(X)).all() and set(model.predict(X)) <= set(y)
        assert certificate.gap >= -1e-9 * max(1.0, abs(certificate.dual))
        assert certificate.status is Status.stalled or certificate.kkt_violation <= 1e-3


def test_more_classes_than_rows_each(rng):
    X, y = rng.standard_normal((200, 4)), np.arange(200) % 100
    ours, theirs = fitted_pair(X, y, gamma=1.0)
    np.testing.assert_array_equal(ours.predict(X), theirs.predict(X))
    assert ours.margins_.shape == ours.roles_.shape == (99, 200) and len(ours.certificates_) == 99 * 50


def test_pairs_have_room_on_few_of_many_threads() -> None:
    rng = np.random.default_rng(0)
    rows, y = rng.normal(size=(1080, 3)), np.arange(1080) % 4
    rows[:, 0] += y
    whole = SVC().fit(rows, y).decision_function(rows)
    # The matrix of a pair takes 1.1 MiB.
    with mercer.config(memory="2MiB", n_jobs=64):
        np.testing.assert_allclose(SVC().fit(rows, y).decision_function(rows), whole, atol=0.01)
