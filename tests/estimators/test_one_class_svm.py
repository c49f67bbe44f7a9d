"""The region where most rows lie."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize
from sklearn.base import clone, is_outlier_detector
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.gaussian_process.kernels import RBF as SklearnRBF
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.svm import OneClassSVM as Reference

from mercer import OneClassSVM
from mercer._errors import DataError, IndefiniteKernelError, ParameterError
from mercer.kernels import RBF, NegativeDistance
from mercer.solvers.solution import Status


def cloud(n: int = 80, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=(n, 3)) + 3.0


def full_weights(model: Any, n: int) -> np.ndarray:
    alpha = np.zeros(n)
    alpha[model.support_] = model.dual_coef_[0]
    return alpha


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("far", [[100, 50], [1000, 500]])
def test_one_far_row_does_not_move_the_boundary_of_the_others_beyond_rounding(
    dtype: type, far: list[float], seed: int
) -> None:
    X = np.random.default_rng(seed).normal(size=(60, 2))
    X[7] = far
    parameters: dict[str, Any] = {"nu": 0.3, "kernel": "poly", "degree": 3, "gamma": 1.0, "coef0": 1.0}
    reference = Reference(**parameters, tol=1e-5).fit(X)
    with warnings.catch_warnings():
        # The far row's kernel value is 1e18, and rounding of its value may end the steps.
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = OneClassSVM(**parameters).fit(X.astype(dtype))
    assert model.offset_[0] == pytest.approx(reference.offset_[0], rel=1e-3)
    # Rows on the boundary count as inside, which is left to rounding there; the far row's own value may be rounding.
    values = reference.decision_function(X)
    clear = np.abs(values) > 1e-2
    clear[7] = False
    np.testing.assert_array_equal((model.predict(X) < 0)[clear], (values < 0)[clear])


@pytest.mark.parametrize("dtype, far", [(np.float64, [1000, 500]), (np.float32, [100, 50]), (np.float64, [1e4, 1e4])])
def test_one_far_row_does_not_move_the_boundary_of_the_others(dtype: type, far: list[float]) -> None:
    X = np.random.default_rng(1).normal(size=(60, 2)).astype(dtype)
    X[7] = far
    parameters: dict[str, Any] = {"nu": 0.3, "kernel": "poly", "degree": 3, "gamma": 1.0, "coef0": 1.0}
    model, reference = OneClassSVM(**parameters).fit(X), Reference(**parameters, tol=1e-6).fit(X)
    assert model.certificate_.status is Status.converged
    assert model.offset_[0] == pytest.approx(reference.offset_[0], rel=1e-4)
    # Rows on the boundary count as inside, which is left to rounding there.
    outside = reference.decision_function(X) < -1e-3
    np.testing.assert_array_equal(model.predict(X) < 0, outside)
    certificate, alpha = model.certificate_, full_weights(model, 60)
    scores = ((X.astype(np.float64) @ X.T.astype(np.float64) + 1.0) ** 3) @ alpha
    slacks = np.maximum(model.offset_[0] - scores, 0.0)
    primal = 0.5 * float(alpha @ scores) - 18.0 * model.offset_[0] + slacks.sum()
    assert certificate.primal == pytest.approx(primal, rel=1e-5)


@pytest.mark.parametrize(
    "parameters",
    [{}, {"gamma": "auto", "nu": 0.2}, {"kernel": "linear", "nu": 0.13}, {"kernel": "poly", "degree": 2, "nu": 0.51}],
)
def test_agrees_with_scikit_learn(parameters: dict[str, Any]) -> None:
    X = cloud()
    ours, theirs = OneClassSVM(**parameters).fit(X), Reference(**parameters, tol=1e-8).fit(X)
    for method in ("decision_function", "score_samples"):
        np.testing.assert_allclose(getattr(ours, method)(X), getattr(theirs, method)(X), atol=1e-5)
    np.testing.assert_allclose(ours.offset_, theirs.offset_, atol=1e-5)
    np.testing.assert_array_equal(ours.offset_, -ours.intercept_)
    clear = np.abs(theirs.decision_function(X)) > 1e-5
    np.testing.assert_array_equal(ours.predict(X)[clear], theirs.predict(X)[clear])
    assert ours.predict(X).dtype == theirs.predict(X).dtype
    np.testing.assert_array_equal(ours.fit_predict(X), ours.predict(X))
    np.testing.assert_allclose(full_weights(ours, 80), full_weights(theirs, 80), atol=1e-3)
    np.testing.assert_array_equal(ours.support_vectors_, X[ours.support_])
    assert ours.dual_coef_.shape == (1, len(ours.support_)) and ours.n_support_.tolist() == [len(ours.support_)]
    assert ours.shape_fit_ == theirs.shape_fit_ and ours.fit_status_ == 0 and isinstance(ours.n_iter_, int)
    assert is_outlier_detector(ours)
    K = ours.kernel_(X)
    dual, reached = (-0.5 * a @ K @ a for a in (full_weights(ours, 80), full_weights(theirs, 80)))
    assert ours.certificate_.dual == pytest.approx(dual, rel=1e-9)
    assert dual == pytest.approx(reached, rel=1e-6)
    assert abs(ours.certificate_.relative_gap) < 1e-6


@pytest.mark.parametrize("n", [700, 2300])
def test_agrees_with_scikit_learn_where_the_kernel_is_in_float32(n: int) -> None:
    X = cloud(n)
    ours, theirs = OneClassSVM(tol=1e-6).fit(X), Reference(tol=1e-6).fit(X)
    np.testing.assert_allclose(ours.decision_function(X), theirs.decision_function(X), atol=1e-4)
    alpha = full_weights(theirs, n)
    assert ours.certificate_.dual == pytest.approx(-0.5 * alpha @ ours.kernel_(X) @ alpha, rel=1e-6)
    assert ours.certificate_.relative_gap < 1e-6


def test_agrees_with_a_general_solver() -> None:
    X, nu = cloud(15), 0.3
    K = rbf_kernel(X, gamma=0.5)
    naive = minimize(
        lambda a: (0.5 * a @ K @ a, K @ a),
        np.full(15, nu),
        jac=True,
        bounds=[(0, 1)] * 15,
        method="SLSQP",
        constraints=[{"type": "eq", "fun": lambda a: a.sum() - nu * 15, "jac": lambda a: np.ones(15)}],
        options={"ftol": 1e-15, "maxiter": 1000},
    )
    model = OneClassSVM(nu=nu, gamma=0.5).fit(X)
    assert naive.success
    assert model.certificate_.dual == pytest.approx(-naive.fun, rel=1e-7)
    np.testing.assert_allclose(full_weights(model, 15), naive.x, atol=1e-4)


@pytest.mark.parametrize(("n", "nu"), [(80, 0.1), (80, 0.5), (700, 0.37)])
def test_certificate_slacks_and_roles_are_what_the_definitions_say(n: int, nu: float) -> None:
    X = cloud(n)
    model = OneClassSVM(nu=nu, gamma=0.4).fit(X)
    alpha, f = full_weights(model, n), model.decision_function(X)
    np.testing.assert_allclose(model.slacks_, np.maximum(-f, 0.0), atol=1e-9)
    square = alpha @ rbf_kernel(X, gamma=0.4) @ alpha
    primal = 0.5 * square - nu * n * model.offset_[0] + model.slacks_.sum()
    assert model.certificate_.primal == pytest.approx(primal, rel=1e-6)
    np.testing.assert_array_equal(model.roles_, np.where(alpha == 0, "inside", np.where(alpha == 1.0, "outside", "on")))
    np.testing.assert_array_equal(model.predict(X) == -1, model.roles_ == "outside")
    assert (model.roles_ == "outside").mean() <= nu <= (model.roles_ != "inside").mean()
    np.testing.assert_allclose(f[model.roles_ == "on"], 0.0, atol=2e-3)


def test_every_kind_of_kernel_is_one() -> None:
    X = cloud()
    expected = OneClassSVM(gamma=0.5).fit(X).decision_function(X)
    for kernel in (RBF(1.0), SklearnRBF(1.0), lambda A, B: rbf_kernel(A, B, gamma=0.5)):
        np.testing.assert_allclose(OneClassSVM(kernel=kernel).fit(X).decision_function(X), expected, atol=1e-8)
    K = rbf_kernel(X, gamma=0.5)
    given = OneClassSVM(kernel="precomputed").fit(K)
    np.testing.assert_allclose(given.decision_function(K[:7]), expected[:7], atol=1e-8)
    sparse = OneClassSVM(gamma=0.5).fit(sp.csr_matrix(X))
    np.testing.assert_allclose(sparse.decision_function(sp.csr_array(X)), expected, atol=1e-8)
    linear = OneClassSVM(kernel="linear", nu=0.1).fit(X)
    np.testing.assert_allclose(X @ linear.coef_[0], linear.score_samples(X), atol=1e-10)


def test_a_distance_gives_the_smallest_ball() -> None:
    """With ``-|x - z|^2 / 2``-like kernels the region is a ball: of a linear kernel, as if it were shifted at will."""
    X = cloud(40)
    squared = np.square(X[:, None] - X[None]).sum(axis=2)
    model = OneClassSVM(kernel="precomputed", nu=0.2).fit(-squared)
    alpha = full_weights(model, 40) / (0.2 * 40)
    distance = np.square(X - alpha @ X).sum(axis=1)
    inside = distance <= distance[model.roles_ == "on"].max() + 1e-9
    np.testing.assert_array_equal(model.predict(-squared) == 1, inside)
    assert np.ptp(distance[model.roles_ == "on"]) < 1e-9
    assert OneClassSVM(kernel=NegativeDistance()).fit(X).certificate_.status is Status.converged


def test_sample_weights_agree_with_scikit_learn(rng: np.random.Generator) -> None:
    X = cloud()
    weight = rng.uniform(0.1, 3.0, 80)
    weight[::9] = 0.0
    ours = OneClassSVM(gamma=0.3).fit(X, None, weight)
    theirs = Reference(gamma=0.3, tol=1e-8).fit(X, None, weight)
    np.testing.assert_allclose(ours.decision_function(X), theirs.decision_function(X), atol=1e-5)
    np.testing.assert_allclose(ours.slacks_, np.maximum(-ours.decision_function(X), 0.0), atol=1e-9)
    expected = np.where(ours.predict(X[::9]) == 1, "inside", "outside")
    np.testing.assert_array_equal(ours.roles_[::9], expected)


@settings(max_examples=25)
@given(
    weights=st.lists(st.integers(0, 4), min_size=20, max_size=20).filter(any),
    nu=st.sampled_from([0.05, 0.37, 1.0]),
    seed=st.integers(0, 2**20),
)
def test_weights_are_repetition(weights: list[int], nu: float, seed: int) -> None:
    X = cloud(20, seed)
    weighted = OneClassSVM(nu=nu).fit(X, sample_weight=weights)
    repeated = OneClassSVM(nu=nu).fit(np.repeat(X, weights, axis=0))
    grid = cloud(30, seed + 1)
    np.testing.assert_allclose(weighted.decision_function(grid), repeated.decision_function(grid), atol=1e-6)
    assert weighted.certificate_.dual == pytest.approx(repeated.certificate_.dual, rel=1e-8)
    np.testing.assert_array_equal(weighted.predict(X), repeated.predict(X))


@pytest.mark.parametrize("seed", range(20))
def test_the_row_on_the_boundary_is_inside_where_all_have_their_largest_weight(seed: int) -> None:
    X = cloud(3, seed)
    for weights in ([1, 2, 2], [1, 1, 1]):
        for model in (
            OneClassSVM(nu=1.0).fit(X, sample_weight=weights),
            OneClassSVM(nu=1.0).fit(np.repeat(X, weights, axis=0)),
        ):
            assert model.predict(X).max() == 1 and (model.predict(X) == 1).sum() == 1


def test_warm_start_is_the_same_answer_sooner() -> None:
    X = cloud(700)
    model = OneClassSVM(gamma=0.5, warm_start=True, tol=1e-5).fit(X)
    first = model.n_iter_
    assert model.fit(X).n_iter_ <= 0.1 * first
    for nu in (0.45, 0.55, 0.9, 0.01):
        warm = model.set_params(nu=nu).fit(X)
        cold = clone(warm).fit(X)
        np.testing.assert_allclose(warm.decision_function(X), cold.decision_function(X), atol=1e-4)
        assert warm.certificate_.dual == pytest.approx(cold.certificate_.dual, rel=1e-6)


def test_max_iter_is_honoured_and_reported() -> None:
    with pytest.warns(ConvergenceWarning, match=r"OneClassSVM: max_iter was reached"):
        model = OneClassSVM(max_iter=5).fit(cloud(600))
    assert model.n_iter_ == 5 and model.fit_status_ == 1
    assert model.certificate_.status is Status.iteration_limit


def test_degenerate_data() -> None:
    assert OneClassSVM().fit([[1.0, 2.0]]).predict([[1.0, 2.0], [9.0, 9.0]]).tolist() == [1, -1]
    for rows in (np.ones((20, 2)), np.zeros((20, 2))):
        assert (OneClassSVM().fit(rows).predict(rows) == 1).all()
    X = cloud(60)
    for extreme in ({"gamma": 1e-6}, {"gamma": 1e4}, {"nu": 1e-4}):
        assert OneClassSVM(**extreme).fit(X).certificate_.status is Status.converged
    # Every row is at its bound, and only the best one is on the boundary.
    most = OneClassSVM(nu=1.0).fit(X)
    assert most.predict(X).tolist().count(1) == 1 and most.offset_[0] == pytest.approx(most.score_samples(X).max())
    twice = OneClassSVM(nu=0.25).fit(np.vstack([X, X]))
    np.testing.assert_allclose(
        twice.decision_function(X), 2.0 * OneClassSVM(nu=0.25).fit(X).decision_function(X), atol=1e-8
    )


def test_rows_on_the_boundary_count_as_inside_in_float32() -> None:
    X = cloud(200).astype(np.float32)
    model = OneClassSVM(nu=0.5, gamma=0.1).fit(X)
    assert set(model.roles_) == {"inside", "on", "outside"}
    np.testing.assert_array_equal(model.predict(X) == -1, model.roles_ == "outside")


@pytest.mark.parametrize(
    ("parameters", "words"),
    [
        ({"nu": 0}, "nu must be above 0 and at most 1, but is 0"),
        ({"nu": 1.1}, "nu must be above 0 and at most 1, but is 1.1"),
        ({"nu": "0.5"}, "nu must be"),
        ({"tol": 0}, "tol must be"),
        ({"cache_size": np.inf}, "cache_size must be"),
        ({"max_iter": -5}, "max_iter must be"),
        ({"stop": "never"}, "stop must be"),
        ({"kernel": "rfb"}, "did you mean 'rbf'"),
    ],
)
def test_parameters_that_make_no_sense(parameters: dict[str, Any], words: str) -> None:
    with pytest.raises(ParameterError, match=words):
        OneClassSVM(**parameters).fit(cloud())


def test_data_that_cannot_be_used() -> None:
    X = cloud()
    with pytest.raises(DataError, match="X contains NaN"):
        OneClassSVM().fit(np.where(X > 2, np.nan, X))
    with pytest.raises(DataError, match="sample_weight has 3 values, and X has 80 rows"):
        OneClassSVM().fit(X, None, [1, 2, 3])
    with pytest.raises(DataError, match="negative or zero for each of the 80 rows"):
        OneClassSVM().fit(X, None, -np.ones(80))
    with pytest.raises(DataError, match="zero for each of the 80 rows"):
        OneClassSVM().fit(X, None, np.zeros(80))
    with pytest.raises(DataError, match="must be square"):
        OneClassSVM(kernel="precomputed").fit(X)
    with pytest.raises(NotFittedError):
        OneClassSVM().predict(X)


def test_kernels_that_are_not_positive() -> None:
    X = cloud()
    with pytest.raises(IndefiniteKernelError, match="allow_indefinite=True"):
        OneClassSVM(kernel="sigmoid", allow_indefinite=False).fit(X)
    with pytest.raises(IndefiniteKernelError, match="allow_indefinite=True"):
        OneClassSVM(kernel="precomputed", allow_indefinite=False).fit(np.tanh(X @ X.T - 1.0) - 2.0 * np.eye(80))
    model = OneClassSVM(kernel="sigmoid", allow_indefinite=True).fit(X)
    assert model.certificate_.status is Status.stationary


@pytest.mark.parametrize("n", [200, 900, 2200])
def test_large_columns_are_no_reason_to_do_nothing(n: int) -> None:
    rng = np.random.default_rng(0)
    times = np.c_[1.7e9 + 1e7 * rng.normal(size=(n, 1)), rng.normal(size=n)]
    model = OneClassSVM(kernel="linear", nu=0.1).fit(times)
    assert model.certificate_.status is Status.converged
    assert np.mean(model.predict(times) < 0) <= 0.1


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("n", [100, 2200])
def test_next_to_an_optimum_of_zero_rounding_ends_the_fit(n: int) -> None:
    X = np.random.default_rng(0).normal(size=(n, 5))
    certificate = OneClassSVM(kernel="linear", tol=1e-15).fit(X).certificate_
    assert certificate.kkt_violation < 1e-11 and certificate.iterations < 5000 * n


@pytest.mark.parametrize("stop", ["kkt", "gap"])
@pytest.mark.parametrize("n", [300, 900, 2200])
@pytest.mark.parametrize("unit", [1e-2, 1e-5])
def test_the_unit_of_the_columns_does_not_change_the_region(n: int, unit: float, stop: str) -> None:
    X = np.random.default_rng(0).normal(size=(n, 5)) + 1.0
    model = OneClassSVM(kernel="linear", nu=0.05, stop=stop).fit(unit * X)
    exact = OneClassSVM(kernel="linear", nu=0.05, tol=1e-8).fit(X)
    assert model.certificate_.status is Status.converged
    assert model.certificate_.relative_gap < 1e-3
    scores = exact.score_samples(X)
    np.testing.assert_allclose(model.score_samples(unit * X), unit**2 * scores, atol=2e-3 * unit**2 * scores.max())
    assert np.mean(model.predict(unit * X) != exact.predict(X)) <= 2 / n


def test_narrow_kernels_have_scores_far_below_1() -> None:
    X = np.random.default_rng(0).normal(size=(900, 5))
    certificate = OneClassSVM(gamma=50.0, nu=0.01).fit(X).certificate_
    assert certificate.status is Status.converged and certificate.relative_gap < 0.05


def test_one_far_row_does_not_set_the_unit() -> None:
    X = np.random.default_rng(0).normal(size=(900, 5)) + 1.0
    X[3] *= 1e4
    certificate = OneClassSVM(kernel="linear", nu=0.05).fit(1e-3 * X).certificate_
    assert certificate.status is Status.converged and certificate.relative_gap < 1e-3


def test_the_steps_of_all_rounds_count() -> None:
    X = 1e-4 * (np.random.default_rng(0).normal(size=(900, 5)) + 1.0)
    with pytest.warns(ConvergenceWarning, match="max_iter"):
        model = OneClassSVM(kernel="linear", nu=0.05, max_iter=20).fit(X)
    assert model.n_iter_ == 20 and model.certificate_.status is Status.iteration_limit and model.fit_status_ == 1
