"""Kernel ridge regression against scikit-learn, explicit features, explicit solves and refits."""

from __future__ import annotations

import copy
import pickle
import re
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.kernel_ridge import KernelRidge as Peer
from sklearn.linear_model import Ridge
from sklearn.metrics import r2_score
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures, StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

import mercer
from mercer import KernelRidge, kernels
from mercer._errors import MercerWarning
from mercer.kernels import RBF, Linear
from mercer.solvers.linear import cholesky
from mercer.solvers.solution import Status


def data(n: int = 40, d: int = 3, targets: int | None = None, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, d)), rng.normal(size=n if targets is None else (n, targets))


@parametrize_with_checks([KernelRidge(), KernelRidge(kernel="rbf", alpha=0.1), KernelRidge(kernel=RBF(2.0))])
def test_scikit_learn_contract(estimator, check) -> None:
    check(estimator)


@pytest.mark.parametrize(
    "parameters",
    [
        {},
        {"kernel": "linear", "alpha": 0.01},
        {"kernel": "rbf"},
        {"kernel": "rbf", "gamma": 0.3, "alpha": 1e-3},
        {"kernel": "poly", "degree": 2, "gamma": 0.5, "coef0": 2},
        {"kernel": "polynomial"},
        {"kernel": "laplacian", "gamma": 0.4},
        {"kernel": "cosine", "alpha": 0.5},
        {"kernel": "chi2", "gamma": 0.2},
    ],
    ids=str,
)
@pytest.mark.parametrize("targets", [None, 3])
@pytest.mark.parametrize("weighted", [False, True])
def test_equals_scikit_learn(parameters: dict, targets: int | None, weighted: bool) -> None:
    X, y = data(targets=targets)
    X = np.abs(X) if parameters.get("kernel") == "chi2" else X
    w = np.random.default_rng(1).uniform(0, 3, len(X)) if weighted else None
    ours, peer = KernelRidge(**parameters).fit(X, y, w), Peer(**parameters).fit(X, y, w)
    assert ours.dual_coef_.shape == peer.dual_coef_.shape
    np.testing.assert_allclose(ours.dual_coef_, peer.dual_coef_, rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(ours.predict(X[:9]), peer.predict(X[:9]), rtol=1e-7, atol=1e-9)
    assert ours.score(X, y) == pytest.approx(peer.score(X, y))


def test_an_indefinite_kernel_gives_scikit_learns_answer_when_it_is_allowed() -> None:
    X, y = data()
    ours = KernelRidge(kernel="sigmoid", gamma=0.5, coef0=0.2, alpha=0.7, allow_indefinite=True).fit(X, y)
    K = np.tanh(0.5 * X @ X.T + 0.2)
    np.testing.assert_allclose(ours.dual_coef_, np.linalg.solve(K + 0.7 * np.eye(40), y), rtol=1e-7, atol=1e-9)
    assert ours.certificate_.status is Status.stationary and ours.factorization_ == "float64 LDL^T"


def test_every_target_has_its_own_alpha() -> None:
    X, y = data(targets=3)
    alpha = [0.1, 10.0, 0.1]
    ours, peer = KernelRidge(alpha, kernel="rbf").fit(X, y), Peer(alpha, kernel="rbf").fit(X, y)
    np.testing.assert_allclose(ours.dual_coef_, peer.dual_coef_, rtol=1e-8, atol=1e-11)
    columns = [KernelRidge(a, kernel="rbf").fit(X, t).dual_coef_ for a, t in zip(alpha, y.T)]
    np.testing.assert_allclose(ours.dual_coef_, np.stack(columns, axis=1), rtol=1e-8, atol=1e-11)


@pytest.mark.parametrize("alpha", [0.01, 1.0, 100.0])
def test_dual_equals_primal_on_explicit_features(alpha: float) -> None:
    X, y = data()
    w = np.random.default_rng(1).uniform(0.1, 3, len(X))
    # (1 + <x, z>)^2 in explicit features: squares, mixed products and singles with a factor of sqrt 2.
    scale = np.where(PolynomialFeatures(2).fit(X).powers_.max(axis=1) == 1, np.sqrt(2), 1.0)
    features = PolynomialFeatures(2).fit_transform(X) * scale
    primal = Ridge(alpha, fit_intercept=False, solver="cholesky").fit(features, y, w)
    dual = KernelRidge(alpha, kernel="poly", degree=2, gamma=1.0, coef0=1.0).fit(X, y, w)
    np.testing.assert_allclose(dual.predict(X), primal.predict(features), rtol=1e-7, atol=1e-8)
    np.testing.assert_allclose(features.T @ dual.dual_coef_, primal.coef_, rtol=1e-6, atol=1e-8)


def refits(model: KernelRidge, X: np.ndarray, y: np.ndarray, w: np.ndarray | None) -> np.ndarray:
    """Predictions by fits with one observation less of the row."""
    out = np.empty_like(y)
    for i in range(len(X)):
        left = np.ones(len(X)) if w is None else w.copy()
        left[i] = max(left[i] - 1.0, 0.0)
        out[i] = clone(model).fit(X, y, left).predict(X[i : i + 1])[0]
    return out


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("targets", [None, 2])
@pytest.mark.parametrize(
    "parameters",
    [
        {"alpha": 0.1, "kernel": "rbf"},
        {"alpha": 1e-3, "kernel": "laplacian"},
        {"kernel": 2.0 * RBF(1.0) + Linear()},
        {"alpha": 0.5, "kernel": "sigmoid", "allow_indefinite": True},
    ],
    ids=str,
)
def test_leave_one_out_equals_refitting(parameters: dict, targets: int | None, weighted: bool) -> None:
    X, y = data(20, targets=targets)
    w = np.random.default_rng(1).integers(0, 4, 20).astype(float) if weighted else None
    model = KernelRidge(**parameters).fit(X, y, w)
    expected = refits(KernelRidge(**parameters), X, y, w)
    np.testing.assert_allclose(model.loo_predictions_, expected, rtol=1e-7, atol=1e-8)
    assert model.loo_predictions_.shape == y.shape
    assert model.loo_score_ == pytest.approx(r2_score(y, expected, sample_weight=w))


def test_leave_one_out_with_an_alpha_for_each_target_and_a_precomputed_matrix() -> None:
    X, y = data(20, targets=2)
    K = RBF(1.0)(X)
    model = KernelRidge([0.1, 2.0], kernel="precomputed").fit(K, y)
    expected = np.stack([refits(KernelRidge(a, kernel=RBF(1.0)), X, t, None) for a, t in zip([0.1, 2.0], y.T)], axis=1)
    np.testing.assert_allclose(model.loo_predictions_, expected, rtol=1e-8, atol=1e-9)


def test_leave_one_out_is_forgotten_by_the_next_fit() -> None:
    X, y = data(20)
    model = KernelRidge(kernel="rbf").fit(X, y)
    first = model.loo_predictions_
    assert model.loo_predictions_ is first
    np.testing.assert_allclose(model.fit(X, 2 * y).loo_predictions_, 2 * first)


@pytest.mark.filterwarnings("ignore:.*nothing to learn")
@settings(max_examples=40, deadline=None)
@given(
    counts=st.lists(st.integers(0, 3), min_size=8, max_size=8).filter(any),
    alpha=st.sampled_from([1e-2, 1.0, 30.0]),
    kernel=st.sampled_from([RBF(1.0), Linear(), Linear() + 1.0]),
    seed=st.integers(0, 5),
)
def test_integer_weights_are_repeated_rows(counts: list[int], alpha: float, kernel, seed: int) -> None:
    X, y = data(8, 2, 2, seed)
    weighted = KernelRidge(alpha, kernel=kernel).fit(X, y, counts)
    repeated = KernelRidge(alpha, kernel=kernel).fit(np.repeat(X, counts, axis=0), np.repeat(y, counts, axis=0))
    new = data(5, 2, seed=9)[0]
    np.testing.assert_allclose(weighted.predict(new), repeated.predict(new), rtol=1e-8, atol=1e-9)
    assert weighted.certificate_.primal == pytest.approx(repeated.certificate_.primal, rel=1e-8)
    assert not weighted.dual_coef_[np.array(counts) == 0].any()


@pytest.mark.parametrize("weight", [2.0, 3])
def test_one_weight_for_all_rows_divides_alpha(weight: float) -> None:
    X, y = data()
    np.testing.assert_allclose(
        KernelRidge(1.0, kernel="rbf").fit(X, y, weight).dual_coef_,
        KernelRidge(1.0 / weight, kernel="rbf").fit(X, y).dual_coef_,
        rtol=1e-9,
    )


def test_precomputed_equals_the_kernel_itself() -> None:
    X, y = data()
    k = 0.5 * RBF([1.0, 2.0, 3.0]) + Linear()
    direct, given_matrix = KernelRidge(kernel=k).fit(X, y), KernelRidge(kernel="precomputed").fit(k(X), y)
    np.testing.assert_allclose(direct.dual_coef_, given_matrix.dual_coef_, rtol=1e-9)
    new = data(7, seed=1)[0]
    np.testing.assert_allclose(direct.predict(new), given_matrix.predict(k(new, X)), rtol=1e-9)
    assert given_matrix.kernel_ is None and direct.kernel_ == k


def test_a_precomputed_matrix_is_left_as_it_was() -> None:
    X, y = data()
    K = RBF(1.0)(X)
    before = K.copy()
    KernelRidge(kernel="precomputed").fit(K, y, np.arange(1.0, 41.0))
    np.testing.assert_array_equal(K, before)


def test_a_function_is_a_kernel_and_takes_kernel_params() -> None:
    def scaled(A: np.ndarray, B: np.ndarray, factor: float = 1.0) -> np.ndarray:
        return factor * A @ B.T

    X, y = data()
    ours = KernelRidge(kernel=scaled, kernel_params={"factor": 3.0}).fit(X, y)
    np.testing.assert_allclose(ours.predict(X), KernelRidge(kernel=3.0 * Linear()).fit(X, y).predict(X), rtol=1e-9)
    assert not np.allclose(ours.predict(X), KernelRidge(kernel=scaled).fit(X, y).predict(X))


@pytest.mark.parametrize("kernel", ["linear", "rbf", "poly"])
def test_sparse_equals_dense(kernel: str) -> None:
    X, y = data()
    X = np.where(X > 0.3, X, 0.0)
    for matrix in (sp.csr_matrix(X), sp.csc_array(X)):
        model = KernelRidge(kernel=kernel).fit(matrix, y)
        expected = KernelRidge(kernel=kernel).fit(X, y)
        np.testing.assert_allclose(model.dual_coef_, expected.dual_coef_, rtol=1e-8)
        np.testing.assert_allclose(model.predict(matrix), expected.predict(X), rtol=1e-8)


def test_float32_in_float32_out_and_close_to_float64() -> None:
    X, y = data(200)
    single = KernelRidge(0.1, kernel="rbf").fit(X.astype(np.float32), y.astype(np.float32))
    double = KernelRidge(0.1, kernel="rbf").fit(X, y)
    predicted = single.predict(X.astype(np.float32))
    assert predicted.dtype == np.float32 and double.predict(X).dtype == np.float64
    # A prediction changes by sum_j dK_ij c_j, once in the fit and once in predict. The rounding errors dK, of rows and
    # kernel values, are independent: the sum is of the size of the largest one times |c|.
    kernel = double.kernel_
    rounding = np.abs(kernel(X.astype(np.float32)).astype(np.float64) - kernel(X)).max()
    assert rounding < 16 * np.finfo(np.float32).eps
    np.testing.assert_allclose(predicted, double.predict(X), atol=2 * rounding * np.linalg.norm(double.dual_coef_))
    assert single.certificate_.kkt_violation < 1e-12


def test_the_float32_factor_gives_the_float64_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    X, y = data(400)
    double = KernelRidge(1e-2, kernel="rbf", gamma=0.5).fit(X, y)
    monkeypatch.setattr(cholesky, "MIXED_FROM", 100)
    refined = KernelRidge(1e-2, kernel="rbf", gamma=0.5).fit(X, y)
    assert (double.factorization_, refined.factorization_) == ("float64 Cholesky", "float32 Cholesky, refined")
    np.testing.assert_allclose(refined.dual_coef_, double.dual_coef_, rtol=1e-8, atol=1e-9)
    assert refined.certificate_.kkt_violation < 1e-11
    np.testing.assert_allclose(refined.loo_predictions_, double.loo_predictions_, rtol=1e-8, atol=1e-9)


def test_any_number_of_threads_gives_the_same_answer() -> None:
    X, y = data(700)
    one, two = (KernelRidge(0.1, kernel="rbf", n_jobs=n).fit(X, y) for n in (1, 2))
    np.testing.assert_allclose(one.dual_coef_, two.dual_coef_, rtol=1e-9)
    np.testing.assert_array_equal(one.predict(X), one.set_params(n_jobs=2).predict(X))


def test_grid_search_over_alpha_and_the_kernels_own_parameters() -> None:
    X, y = data(60)
    grid = {"alpha": [0.1, 1.0], "kernel__length_scale": [0.5, 2.0]}
    search = GridSearchCV(KernelRidge(kernel=RBF(1.0)), grid, cv=3).fit(X, y)
    assert search.best_estimator_.kernel_ == RBF(search.best_params_["kernel__length_scale"])


@pytest.mark.parametrize("survive", [copy.deepcopy, lambda m: pickle.loads(pickle.dumps(m))])
def test_copies_predict_alike(survive) -> None:
    X, y = data()
    model = KernelRidge(kernel=kernels.Matern(1.0, nu=1.5)).fit(X, y)
    again = survive(model)
    np.testing.assert_array_equal(again.predict(X), model.predict(X))
    np.testing.assert_array_equal(again.loo_predictions_, model.loo_predictions_)
    assert again.certificate_ == model.certificate_


def test_a_model_file_gives_the_same_model(tmp_path) -> None:
    X, y = data()
    model = KernelRidge(kernel="rbf").fit(X, y, np.arange(40.0))
    mercer.save(model, tmp_path / "model.mercer")
    again = mercer.load(tmp_path / "model.mercer")
    np.testing.assert_array_equal(again.predict(X), model.predict(X))
    np.testing.assert_array_equal(again.loo_predictions_, model.loo_predictions_)


def columns_of_many_sizes(n=300):
    """Rows of which one column is 1e4 and one is 1e-2, and a target that depends on both."""
    rng = np.random.default_rng(0)
    Z = rng.normal(size=(n, 4))
    y = Z[:, 0] + Z[:, 1] * Z[:, 2] + 0.1 * rng.normal(size=n)
    return Z * np.array([1e4, 1.0, 10.0, 1e-2]) + np.array([1e4, 5.0, 50.0, 0.1]), y - y.mean()


def test_what_the_warning_of_a_hidden_penalty_advises_helps():
    X, y = columns_of_many_sizes()
    model = KernelRidge(1.0, kernel="poly")
    with pytest.warns(MercerWarning, match="Rounding hides alpha: scale the columns of X") as found:
        unscaled = model.fit(X, y).score(X, y)
    least = float(re.search(r"raise alpha above ([0-9.e+]+)\.", str(found[0].message))[1])
    with warnings.catch_warnings():
        warnings.simplefilter("error", MercerWarning)
        scaled = make_pipeline(StandardScaler(), model).fit(X, y)
    assert scaled.score(X, y) > max(0.9, unscaled)
    assert scaled[-1].certificate_.status is Status.direct
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        raised = KernelRidge(1.01 * least, kernel="poly").fit(X, y)
    assert raised.certificate_.status is Status.direct
    assert not any("singular" in str(warning.message) for warning in caught)


def test_rows_in_float32_have_the_predictions_of_float64_where_theirs_are_rounding():
    X, y = columns_of_many_sizes()
    single = X.astype(np.float32)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", MercerWarning)
        one, two = (KernelRidge(1.0, kernel="poly").fit(rows, y) for rows in (single, single.astype(np.float64)))
    predicted = one.predict(single)
    assert predicted.dtype == np.float32
    np.testing.assert_allclose(predicted, two.predict(single.astype(np.float64)), atol=1e-2)
