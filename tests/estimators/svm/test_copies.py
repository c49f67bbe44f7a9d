"""Equal rows are one row with a weight inside every support vector machine; attributes tell of the rows as given."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from mercer import SVC, SVR, NuSVC, NuSVR, OneClassSVM, kernels
from mercer.estimators.shared.layout import dense
from mercer.estimators.svm.copies import Copies
from mercer.selection import svm_path

N = 30
EPS = float(np.finfo(float).eps)
MODELS = {
    "SVC": SVC(C=2.0, gamma=0.3),
    "SVC of three classes": SVC(C=2.0, gamma=0.3, class_weight="balanced"),
    "SVC without b": SVC(C=2.0, gamma=0.3, fit_intercept=False),
    "hard margin": SVC(C=np.inf, gamma=5.0),
    "NuSVC": NuSVC(nu=0.3, gamma=0.3),
    "SVR": SVR(C=2.0, gamma=0.3, epsilon=0.1),
    "NuSVR": NuSVR(nu=0.4, C=2.0, gamma=0.3),
    "OneClassSVM": OneClassSVM(nu=0.3, gamma=0.3),
}


def rows(name: str) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(3)
    X = rng.normal(size=(N, 3))
    labels = np.arange(N) % (3 if "three" in name else 2)
    return X, X[:, 0] + 0.3 * rng.normal(size=N) if name.endswith("R") else labels


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("form", ["dense", "sparse", "precomputed"])
def test_repeated_rows_are_solved_as_one_row_with_a_weight(name, form):
    X, y = rows(name)
    counts = np.random.default_rng(0).integers(1, 5, N)
    owner = np.repeat(np.arange(N), counts)
    model = MODELS[name]
    if form == "precomputed":
        K = kernels.RBF.from_gamma(5.0 if name == "hard margin" else 0.3)(X)
        model = type(model)(**{**model.get_params(), "kernel": "precomputed"})
        few, many, at_few, at_many = K, K[np.ix_(owner, owner)], K, K[:, owner]
    else:
        few = at_few = at_many = sp.csr_array(X) if form == "sparse" else X
        many = few[owner]
    weighted = type(model)(**model.get_params()).fit(few, y, counts)
    repeated = type(model)(**model.get_params()).fit(many, y[owner])
    if form == "precomputed":
        # The same problem in the same order, to the last bit: the same steps.
        assert np.array_equal(weighted.n_iter_, repeated.n_iter_)
    values = "predict" if name.endswith("R") else "decision_function"
    np.testing.assert_allclose(getattr(weighted, values)(at_few), getattr(repeated, values)(at_many), atol=1e-9)
    assert repeated.certificate_.dual == pytest.approx(weighted.certificate_.dual, rel=1e-12)
    coefficients = np.zeros((weighted.dual_coef_.shape[0], N))
    np.add.at(coefficients.T, owner[repeated.support_], dense(repeated.dual_coef_).T)
    expected = np.zeros_like(coefficients)
    expected[:, weighted.support_] = dense(weighted.dual_coef_)
    tolerance = 16 * N * EPS * float(np.abs(expected).max())
    np.testing.assert_allclose(coefficients, expected, atol=tolerance)


@settings(max_examples=25, deadline=None)
@given(counts=st.lists(st.integers(1, 4), min_size=20, max_size=20), seed=st.integers(0, 2**20))
def test_weights_of_copies_keep_their_box_and_at_most_one_of_a_row_is_free(counts, seed):
    rng = np.random.default_rng(seed)
    owner = rng.permutation(np.repeat(np.arange(20), counts))
    X, y = rng.normal(size=(20, 2)), rng.normal(size=20)
    model = SVR(C=0.7, epsilon=0.05).fit(X[owner], y[owner])
    beta = np.zeros(len(owner))
    beta[model.support_] = model.dual_coef_[0]
    assert np.abs(beta).max() <= 0.7
    assert abs(beta.sum()) <= len(owner) * EPS * np.abs(beta).sum()
    free = (beta != 0) & (np.abs(beta) < 0.7)
    assert np.bincount(owner, weights=free).max(initial=0) <= 1
    assert set(model.roles_[np.abs(beta) == 0.7]) <= {"outside", "on"}
    # The certificate holds for the rows as given: the violation there is no larger.
    f = model.predict(X[owner])
    gap = sum(0.7 * np.maximum(np.abs(y[owner] - f) - 0.05, 0.0)) - beta @ (y[owner] - f) + 0.05 * np.abs(beta).sum()
    assert gap == pytest.approx(model.certificate_.gap, abs=1e-9)


def test_many_copies_take_no_more_steps_than_the_rows_that_differ():
    rng = np.random.default_rng(0)
    U = rng.normal(size=(200, 5))
    X = U[np.minimum((200 * rng.random(16_000) ** 4).astype(int), 199)]
    y = np.sin(2 * X[:, 0])
    model = SVR(C=1, epsilon=0.05, gamma=0.05, tol=1e-6, max_iter=40_000).fit(X, y)
    assert model.fit_status_ == 0
    assert model.shape_fit_ == (16_000, 5)
    # Nearly all of them at their bound, so that no more copies than needed are support vectors.
    assert len(model.support_) < 8000


def test_a_warm_start_of_copies_goes_on_where_the_last_fit_ended():
    X, y = rows("SVC")
    owner = np.repeat(np.arange(N), 3)
    model = SVC(C=2.0, warm_start=True).fit(X[owner], y[owner])
    first = model.decision_function(X)
    model.fit(X[owner], y[owner])
    assert model.n_iter_[0] <= 1
    np.testing.assert_allclose(model.decision_function(X), first, atol=1e-9)


def test_a_path_over_copies_is_a_path_over_weights():
    X, y = rows("SVC")
    owner = np.repeat(np.arange(N), 2)
    repeated = svm_path(X[owner], y[owner], [0.5, 1.0, 2.0], estimator=SVC(gamma=0.3))
    weighted = svm_path(X, y, [0.5, 1.0, 2.0], estimator=SVC(gamma=0.3), sample_weight=np.full(N, 2.0))
    for many, few in zip(repeated, weighted, strict=True):
        np.testing.assert_allclose(many.decision_function(X), few.decision_function(X), atol=1e-8)
        assert many.margins_.shape == (2 * N,)


def test_equal_rows_of_different_targets_stay_apart():
    X = np.array([[0.0], [0.0], [1.0], [1.0], [0.0]])
    copies = Copies.find(X, np.arange(5), np.array([0, 1, 0, 0, 0]), None)
    assert copies.first.tolist() == [0, 1, 2]
    assert copies.owner.tolist() == [0, 1, 2, 2, 0]


def test_a_kernel_that_tells_equal_rows_apart_has_no_copies():
    X = np.zeros((4, 1))
    assert Copies.find(X, np.arange(4), np.zeros(4), kernels.RBF(1.0) + 2.0 * kernels.White(0.1)) is None
    assert Copies.find(X, np.arange(4), np.zeros(4), kernels.RBF(1.0)) is not None


def test_wide_rows_that_differ_in_one_column_are_not_copies():
    X = np.zeros((6, 100))
    X[1, 37] = X[4, 37] = 1.0
    copies = Copies.find(X, np.array([0, 1, 2, 4]), np.zeros(4), None)
    assert copies.first.tolist() == [0, 1]
    assert copies.owner.tolist() == [0, 1, 0, 1]


def test_strings_that_are_equal_are_copies():
    X, y = ["gram", "ram", "gram", "matrix", "ram", "trix"], [0, 1, 0, 1, 1, 0]
    model = SVC(kernel=kernels.Spectrum(2), C=1.0).fit(X, y)
    weighted = SVC(kernel=kernels.Spectrum(2), C=1.0).fit(["gram", "ram", "matrix", "trix"], [0, 1, 1, 0], [2, 2, 1, 1])
    np.testing.assert_allclose(model.decision_function(X[:4]), weighted.decision_function(X[:4]), atol=1e-9)
    assert np.array_equal(model.n_iter_, weighted.n_iter_)
