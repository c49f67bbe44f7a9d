import copy
import itertools
import pickle
import re

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.datasets import load_digits
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.svm import SVC as Reference

from mercer._errors import DataError, IndefiniteKernelError, KernelValueError, ParameterError
from mercer.engine import memory
from mercer.engine.progress import on_progress
from mercer.estimators.svc import SVC
from mercer.kernels import RBF, Linear, from_function
from mercer.solvers.solution import Certificate, Status
from mercer.solvers.svm import pairwise
from sklearn_checks import every_check, not_passed
from svm_cases import assert_same, fitted_pair, full_coef, iris, two_classes

KERNELS = [
    {"kernel": "rbf"},
    {"kernel": "rbf", "gamma": "auto", "C": 10.0},
    {"kernel": "linear", "C": 0.5},
    {"kernel": "poly", "degree": 2, "coef0": 1.0},
]


@pytest.mark.parametrize("parameters", KERNELS)
@pytest.mark.parametrize("data", [iris, two_classes])
def test_agrees_with_scikit_learn(parameters, data):
    X, y = data()
    ours, theirs = fitted_pair(X, y, **parameters)
    assert_same(ours, theirs, X)
    np.testing.assert_allclose(full_coef(ours, len(X)), full_coef(theirs, len(X)), atol=1e-3)
    assert len(set(ours.support_) ^ set(theirs.support_)) <= 2
    assert ours.dual_coef_.shape == (len(ours.classes_) - 1, len(ours.support_))
    assert ours.n_support_.sum() == len(ours.support_)
    np.testing.assert_array_equal(ours.support_vectors_, X[ours.support_])
    assert ours.shape_fit_ == theirs.shape_fit_ and ours.fit_status_ == 0


def test_coef_of_the_linear_kernel():
    for data in (iris, two_classes):
        X, y = data()
        ours, theirs = fitted_pair(X, y, kernel="linear")
        np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=1e-5)
    with pytest.raises(AttributeError, match="finite feature map only"):
        _ = SVC().fit(X, y).coef_


@pytest.mark.parametrize("class_weight", ["balanced", {0: 0.3, 1: 2.0, 2: 1.0}])
def test_class_weights(class_weight):
    X, y = iris()
    X, y = X[20:], y[20:]
    ours, theirs = fitted_pair(X, y, class_weight=class_weight)
    assert_same(ours, theirs, X)


def test_sample_weights_agree_with_scikit_learn(rng):
    X, y = two_classes()
    ours, theirs = fitted_pair(X, y, rng.uniform(0.1, 3.0, len(y)), gamma=0.2)
    assert_same(ours, theirs, X)


def test_sparse_input():
    X, y = iris()
    X = np.where(X > 0, X, 0.0)
    ours, theirs = fitted_pair(sp.csr_matrix(X), y)
    dense = SVC().fit(X, y)
    np.testing.assert_allclose(ours.decision_function(sp.csr_matrix(X)), dense.decision_function(X), atol=1e-6)
    np.testing.assert_allclose(
        ours.decision_function(sp.csr_matrix(X)), theirs.decision_function(sp.csr_matrix(X)), atol=2e-5
    )
    assert sp.issparse(ours.support_vectors_)


@pytest.mark.parametrize("data", [iris, two_classes])
def test_precomputed_callable_and_kernel_objects_are_one(data):
    X, y = data()
    K = rbf_kernel(X, gamma=0.3)
    by_name = SVC(gamma=0.3, C=3.0).fit(X, y)
    expected = by_name.decision_function(X)
    by_matrix = SVC(kernel="precomputed", C=3.0).fit(K, y)
    np.testing.assert_allclose(by_matrix.decision_function(K), expected, atol=1e-8)
    for kernel in (RBF.from_gamma(0.3), lambda A, B: rbf_kernel(A, B, gamma=0.3)):
        other = SVC(kernel=kernel, C=3.0, allow_indefinite=True).fit(X, y)
        np.testing.assert_allclose(other.decision_function(X), expected, atol=1e-8)
    np.testing.assert_array_equal(by_matrix.support_, by_name.support_)


def test_break_ties():
    X, y = iris()
    ours, theirs = fitted_pair(X, y, break_ties=True)
    np.testing.assert_array_equal(ours.predict(X), theirs.predict(X))
    ours.decision_function_shape = "ovo"
    with pytest.raises(ParameterError, match="break_ties"):
        ours.predict(X)


def test_certificates():
    X, y = iris()
    model = SVC(C=2.0).fit(X, y)
    assert isinstance(model.certificate_, Certificate)
    assert len(model.certificates_) == 3 and len(model.n_iter_) == 3
    for name in ("primal", "dual", "iterations"):
        total = sum(getattr(part, name) for part in model.certificates_)
        assert getattr(model.certificate_, name) == pytest.approx(total)
    assert model.certificate_.kkt_violation == max(part.kkt_violation for part in model.certificates_)
    assert model.certificate_.status is Status.converged


def test_certificate_is_what_the_definitions_say():
    X, y = two_classes(700)
    model = SVC(C=2.0, gamma=0.2).fit(X, y)
    sign = np.where(y == 1, 1.0, -1.0)
    beta = full_coef(model, len(X))[0]
    f = model.decision_function(X)
    square = beta @ rbf_kernel(X, gamma=0.2) @ beta
    assert model.certificate_.dual == pytest.approx(sign @ beta - 0.5 * square, rel=1e-9)
    assert model.certificate_.primal == pytest.approx(0.5 * square + 2.0 * np.maximum(0, 1 - sign * f).sum(), rel=1e-9)


def test_pairs_in_one_block_share_the_classes_blocks(monkeypatch):
    """Classes large enough for float32 blocks, against the same problems solved one by one."""
    X, y = load_digits(return_X_y=True)
    X, y = np.vstack([X, X + 0.5])[np.tile(y, 2) < 4] / 16.0, np.tile(y, 2)[np.tile(y, 2) < 4]
    shared = SVC(C=5.0).fit(X, y)
    monkeypatch.setattr(pairwise._Pairs, "share_own_blocks", lambda *args: None)
    alone = SVC(C=5.0).fit(X, y)
    assert min(np.bincount(y)) * 2 > pairwise.EXACT
    np.testing.assert_allclose(shared.decision_function(X), alone.decision_function(X), atol=3e-3)
    assert shared.certificate_.dual == pytest.approx(alone.certificate_.dual, rel=1e-5)
    theirs = Reference(C=5.0).fit(X, y)
    np.testing.assert_array_equal(shared.predict(X), theirs.predict(X))


def test_same_bits_for_any_number_of_threads():
    X, y = load_digits(return_X_y=True)
    one, two = (SVC(n_jobs=k).fit(X, y) for k in (1, 2))
    np.testing.assert_array_equal(one.dual_coef_, two.dual_coef_)
    np.testing.assert_array_equal(one.decision_function(X), two.decision_function(X))


def test_float32_input_agrees_with_float64():
    X, y = two_classes(700)
    X = X.astype(np.float32)
    a, b = SVC(gamma=0.2).fit(X, y), SVC(gamma=0.2).fit(X.astype(np.float64), y)
    assert a.certificate_.dual == pytest.approx(b.certificate_.dual, rel=1e-6)


def test_labels_of_any_type_keep_their_order():
    X, y = iris()
    names = np.array(["versicolor", "setosa", "virginica"])[y]
    ours, theirs = fitted_pair(X, names)
    assert_same(ours, theirs, X)


@settings(max_examples=25, deadline=None)
@given(
    weights=st.lists(st.integers(0, 4), min_size=24, max_size=24),
    C=st.sampled_from([0.01, 1.0, 100.0]),
    seed=st.integers(0, 2**20),
    balanced=st.booleans(),
)
def test_weights_are_repetition(weights, C, seed, balanced):
    rng = np.random.default_rng(seed)
    X, y, weights = rng.standard_normal((24, 3)), np.arange(24) % 3, np.array(weights)
    weights[:3] = np.maximum(weights[:3], 1)
    order = rng.permutation(24)
    model = SVC(C=C, class_weight="balanced" if balanced else None)
    weighted = clone(model).fit(X[order], y[order], weights[order])
    repeated = clone(model).fit(np.repeat(X, weights, axis=0), np.repeat(y, weights))
    grid = rng.standard_normal((30, 3))
    np.testing.assert_allclose(weighted.decision_function(grid), repeated.decision_function(grid), atol=1e-6)
    assert weighted.certificate_.dual == pytest.approx(repeated.certificate_.dual, rel=1e-8)


def test_a_class_of_weight_zero_is_no_class():
    X, y = iris()
    model = SVC().fit(X, y, (y != 1).astype(float))
    np.testing.assert_array_equal(model.classes_, [0, 2])
    np.testing.assert_allclose(
        model.decision_function(X), SVC().fit(X[y != 1], y[y != 1]).decision_function(X), atol=1e-9
    )
    assert not set(model.support_) & set(np.flatnonzero(y == 1))


def test_scikit_learns_own_checks_pass():
    assert not_passed(every_check(SVC(fit_intercept=False, warm_start=True, stop="gap"))) == {}


@pytest.mark.parametrize(
    "parameters, words",
    [
        ({"C": 0}, "C must be a number above 0, or inf for a hard margin, but is 0"),
        ({"C": -1.0}, "C must be"),
        ({"C": np.nan}, "C must be"),
        ({"tol": 0}, "tol must be"),
        ({"max_iter": -5}, "max_iter must be"),
        ({"cache_size": 0}, "cache_size must be"),
        ({"decision_function_shape": "both"}, "decision_function_shape must be"),
        ({"gamma": -1.0}, "gamma must be"),
        ({"kernel": "rfb"}, "did you mean 'rbf'"),
        ({"class_weight": {0: -1.0}}, "class_weight"),
        ({"stop": "dual"}, "stop must be 'kkt' or 'gap', but is 'dual'"),
        ({"solver": "newton"}, "solver must be one of 'smo', 'projected-gradient'.*but is 'newton'"),
        ({"solver": "projected-gradient", "C": np.inf}, "C=inf is solved by solver='smo' only"),
        ({"probability": "yes"}, "probability must be True, False or 'deprecated', but is 'yes'"),
    ],
)
def test_parameters_that_make_no_sense(parameters, words):
    X, y = iris()
    with pytest.raises(ParameterError, match=words):
        SVC(**parameters).fit(X, y)


def test_data_that_cannot_be_used():
    X, y = iris()
    with pytest.raises(DataError, match="at least two classes"):
        SVC().fit(X[:40], y[:40])
    with pytest.raises(DataError, match="not counting rows of weight 0"):
        SVC().fit(X, y, (y == 0).astype(float))
    with pytest.raises(DataError, match="negative or zero for each"):
        SVC().fit(X, y, -np.ones(len(y)))
    with pytest.raises(ValueError, match="NaN"):
        SVC().fit(np.where(X > 2, np.nan, X), y)
    with pytest.raises(DataError, match="square"):
        SVC(kernel="precomputed").fit(X, y)
    with pytest.raises(DataError, match="at least two classes"):
        SVC().fit(X[:1], y[:1])
    with pytest.raises(NotFittedError):
        SVC().predict(X)


def test_indefinite_kernels_are_refused_unless_allowed():
    X, y = two_classes(300)
    with pytest.raises(IndefiniteKernelError, match="allow_indefinite=True"):
        SVC(kernel="sigmoid", allow_indefinite=False).fit(X, y)
    model = SVC(kernel="sigmoid", gamma=0.5, coef0=1.0, allow_indefinite=True).fit(X, y)
    assert model.certificate_.status is Status.stationary


def test_max_iter_is_honoured_and_reported():
    X, y = two_classes(600)
    with pytest.warns(ConvergenceWarning, match="max_iter"):
        model = SVC(max_iter=5).fit(X, y)
    assert model.n_iter_.tolist() == [5]
    assert model.fit_status_ == 1
    assert model.certificate_.status is Status.iteration_limit


def test_constant_features_and_tiny_data():
    y = np.r_[np.zeros(12), np.ones(18)]
    assert (SVC().fit(np.ones((30, 2)), y).predict(np.ones((3, 2))) == 1).all()
    model = SVC(C=1e8).fit([[0.0], [1.0]], ["a", "b"])
    assert model.predict([[0.2], [0.9]]).tolist() == ["a", "b"]


def test_many_classes(rng):
    X, y = rng.standard_normal((240, 3)), np.arange(240) % 60
    ours, theirs = fitted_pair(X, y)
    np.testing.assert_array_equal(ours.predict(X), theirs.predict(X))


def test_copies_and_grid_parameters():
    X, y = iris()
    model = SVC(kernel=2.0 * RBF(1.5) + Linear(), C=2.0).fit(X, y)
    for twin in (copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
        np.testing.assert_array_equal(twin.decision_function(X), model.decision_function(X))
    assert clone(model).get_params()["C"] == 2.0


def test_progress_is_told():
    X, y = two_classes(pairwise.JOINED + 100, seed=2)
    messages = []
    with on_progress(lambda *news: messages.append(news)):
        SVC().fit(X, y)
    rounds = [done for what, done, total in messages if what == "working sets"]
    assert rounds and rounds == sorted(rounds)


@pytest.mark.parametrize("n", [300, 3000])
def test_interrupt_reaches_the_caller_and_leaves_nothing_behind(n):
    X, y = two_classes(n, seed=2)
    fitted = SVC().fit(X, y)

    def interrupt(X, Z):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        SVC(kernel=from_function(interrupt)).fit(X, y)
    assert memory.budget() > 0 and np.array_equal(SVC().fit(X, y).dual_coef_, fitted.dual_coef_)


@pytest.mark.slow
def test_objective_on_a_larger_problem():
    X, y = two_classes(6000, seed=1)
    ours, theirs = SVC(C=10.0).fit(X, y), Reference(C=10.0, tol=1e-4).fit(X, y)
    sign = np.where(y == 1, 1.0, -1.0)
    beta = full_coef(theirs, len(X))[0]
    best = sign @ beta - 0.5 * beta @ rbf_kernel(X, gamma=theirs._gamma) @ beta
    assert ours.certificate_.dual == pytest.approx(best, rel=1e-5)
    assert ours.certificate_.relative_gap < 1e-3


@pytest.mark.parametrize("labels", [[0, 1], ["a", "b", "c"]])
@pytest.mark.parametrize("parameters", [{"max_iter": 0}, {"max_iter": 0, "kernel": "precomputed"}])
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_without_support_vectors_the_decision_is_the_offset(parameters, labels):
    X = np.random.default_rng(0).normal(size=(30, 30))
    X = X @ X.T
    model = SVC(**parameters).fit(X, np.resize(labels, 30))
    assert len(model.support_) == 0
    pairs = clone(model).set_params(decision_function_shape="ovo").fit(X, np.resize(labels, 30))
    values = pairs.decision_function(X[:4])
    np.testing.assert_array_equal(values.reshape(4, -1), np.tile(model.intercept_, (4, 1)))
    assert set(model.predict(X[:4])) <= set(labels) and np.isfinite(model.decision_function(X[:4])).all()


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_a_C_out_of_all_range_still_gives_a_classifier():
    X, y = two_classes(60)
    model = SVC(C=1e308).fit(X, y)
    assert np.isfinite(model.decision_function(X)).all() and set(model.predict(X)) <= set(y)


@pytest.mark.parametrize("tol", [1e-12, 1e-14, 1e-16])
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_a_smaller_tol_is_no_worse(tol):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 5))
    y = X[:, 0] + X[:, 1] ** 2 + 0.5 * rng.normal(size=60) > 1
    assert SVC(kernel="linear", C=10.0, tol=tol).fit(X, y).certificate_.kkt_violation < 1e-11


@pytest.mark.parametrize("allowed", [False, True])
def test_functions_that_are_no_kernels(allowed, rng):
    X, y = two_classes(300)
    shear = np.triu(np.ones((X.shape[1], X.shape[1])))
    crooked = from_function(lambda A, B: A @ shear @ B.T) + 1.0
    with pytest.raises(KernelValueError, match=r"is not symmetric: it is .* for the rows .* of X"):
        SVC(kernel=crooked, allow_indefinite=allowed).fit(X, y)
    hollow = SVC(kernel=lambda A, B: -A @ B.T, C=10.0, allow_indefinite=allowed)
    if allowed:
        assert hollow.fit(X, y).certificate_.status is Status.stationary
    else:
        with pytest.raises(IndefiniteKernelError, match=r"from_function\(<lambda>\) on 300 rows of X is indefinite"):
            hollow.fit(X, y)
    # Weights that sum to 0 do not see what a distance has of negative curvature.
    distance = from_function(lambda A, B: -np.abs(A[:, :1] - B[:, 0]))
    assert SVC(kernel=distance, allow_indefinite=False).fit(X, y).certificate_.convex
    with pytest.raises(IndefiniteKernelError, match="for a unit vector c, and"):
        SVC(kernel=distance, fit_intercept=False, allow_indefinite=False).fit(X, y)


@pytest.mark.parametrize(("classes", "intercept"), [(2, True), (2, False), (3, True), (3, False)])
def test_a_solve_that_stopped_says_when_constants_are_better(classes: int, intercept: bool) -> None:
    rng = np.random.default_rng(0)
    X, y = 1e3 * (rng.normal(size=(90, 3)) + 5.0), rng.permutation(np.arange(90) % 4 % classes)
    weight = rng.uniform(0.5, 2.0, 90)
    model = SVC(C=10.0, kernel="poly", gamma="auto", coef0=1.0, max_iter=3, fit_intercept=intercept)
    with pytest.warns(ConvergenceWarning) as caught:
        model.fit(X, y, weight)
    found = re.search(r"its objective is (\S+), and that of .* is (\S+)\.$", str(caught[0].message))
    assert found is not None
    assert float(found[1]) == pytest.approx(model.certificate_.primal, rel=1e-3)
    # Hinge losses of all constants from -1 to 1.
    constants, best = np.linspace(-1.0, 1.0, 5) if intercept else np.zeros(1), 0.0
    for first, second in itertools.combinations(range(classes), 2):
        rows = (y == first) | (y == second)
        signs = np.where(y[rows] == first, 1.0, -1.0)
        best += min(10.0 * float(weight[rows] @ np.maximum(0.0, 1.0 - signs * c)) for c in constants)
    assert float(found[2]) == pytest.approx(best, rel=1e-3)


def test_a_solve_that_stopped_says_nothing_of_constants_where_it_is_better() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 2))
    with pytest.warns(ConvergenceWarning) as caught:
        SVC(C=1.0, max_iter=20).fit(X, X[:, 0] > 0)
    assert "constant" not in str(caught[0].message)
