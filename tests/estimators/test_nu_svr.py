"""Support vector regression that finds the width of its tube."""

from __future__ import annotations

import re
import warnings
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.gaussian_process.kernels import RBF as SklearnRBF
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.svm import NuSVR as Reference

from mercer import SVR, NuSVR, config
from mercer._errors import DataError, IndefiniteKernelError, MemoryBudgetError, MercerWarning, ParameterError
from mercer.kernels import RBF
from mercer.solvers.solution import Status


def noisy_sine(n: int = 80, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    return X, np.sin(X[:, 0]) + 0.5 * X[:, 1] + 0.2 * rng.normal(size=n)


def full_weights(model: Any, n: int) -> np.ndarray:
    beta = np.zeros(n)
    beta[model.support_] = model.dual_coef_[0]
    return beta


@pytest.mark.parametrize(
    "parameters",
    [
        {},
        {"C": 5.0, "gamma": "auto", "nu": 0.2},
        {"kernel": "linear", "C": 0.5, "nu": 0.9},
        {"kernel": "poly", "degree": 2, "coef0": 1.0, "nu": 1.0},
    ],
)
def test_agrees_with_scikit_learn(parameters: dict[str, Any]) -> None:
    X, y = noisy_sine()
    ours, theirs = NuSVR(**parameters).fit(X, y), Reference(**parameters, tol=1e-8).fit(X, y)
    np.testing.assert_allclose(ours.predict(X), theirs.predict(X), atol=1e-4)
    np.testing.assert_allclose(ours.intercept_, theirs.intercept_, atol=1e-4)
    np.testing.assert_allclose(full_weights(ours, 80), full_weights(theirs, 80), atol=1e-3)
    assert ours.dual_coef_.shape == (1, len(ours.support_)) and ours.n_support_.tolist() == [len(ours.support_)]
    assert ours.shape_fit_ == theirs.shape_fit_ and ours.fit_status_ == 0 and isinstance(ours.n_iter_, int)
    K = ours.kernel_(X)
    dual, reached = (y @ b - 0.5 * b @ K @ b for b in (full_weights(ours, 80), full_weights(theirs, 80)))
    assert ours.certificate_.dual == pytest.approx(dual, rel=1e-9)
    assert dual == pytest.approx(reached, rel=1e-6)
    assert abs(ours.certificate_.relative_gap) < 1e-6


@pytest.mark.parametrize("n", [600, 1100])
def test_agrees_with_scikit_learn_where_the_kernel_is_in_float32(n: int) -> None:
    X, y = noisy_sine(n)
    ours, theirs = NuSVR(tol=1e-6).fit(X, y), Reference(tol=1e-6).fit(X, y)
    np.testing.assert_allclose(ours.predict(X), theirs.predict(X), atol=1e-3)
    beta = full_weights(theirs, n)
    assert ours.certificate_.dual == pytest.approx(y @ beta - 0.5 * beta @ ours.kernel_(X) @ beta, rel=1e-6)
    assert ours.certificate_.relative_gap < 1e-5


def test_agrees_with_a_general_solver() -> None:
    X, y = noisy_sine(10)
    C, nu, K = 2.0, 0.4, rbf_kernel(X, gamma=0.5)

    def minus_dual(both: np.ndarray) -> tuple[float, np.ndarray]:
        beta = both[:10] - both[10:]
        slope = K @ beta - y
        return -float(y @ beta - 0.5 * beta @ K @ beta), np.r_[slope, -slope]

    total = C * nu * 10 / 2
    sums = [np.repeat([1.0, 0.0], 10), np.repeat([0.0, 1.0], 10)]
    naive = minimize(
        minus_dual,
        np.full(20, total / 10),
        jac=True,
        bounds=[(0, C)] * 20,
        method="SLSQP",
        constraints=[{"type": "eq", "fun": lambda a, s=s: s @ a - total, "jac": lambda a, s=s: s} for s in sums],
        options={"ftol": 1e-14, "maxiter": 1000},
    )
    model = NuSVR(nu=nu, gamma=0.5, C=C).fit(X, y)
    assert naive.success
    assert model.certificate_.dual == pytest.approx(-naive.fun, rel=1e-7)
    np.testing.assert_allclose(full_weights(model, 10), naive.x[:10] - naive.x[10:], atol=1e-4)


@pytest.mark.parametrize("nu", [0.1, 0.5, 0.8])
def test_the_tube_is_what_the_definitions_say(nu: float) -> None:
    X, y = noisy_sine()
    model = NuSVR(nu=nu, C=2.0, gamma=0.4).fit(X, y)
    beta, f, epsilon = full_weights(model, 80), model.predict(X), model.epsilon_
    above, below = np.maximum(y - f - epsilon, 0.0), np.maximum(f - y - epsilon, 0.0)
    np.testing.assert_allclose(model.slacks_above_, above, atol=1e-9)
    np.testing.assert_allclose(model.slacks_below_, below, atol=1e-9)
    square = beta @ rbf_kernel(X, gamma=0.4) @ beta
    primal = 0.5 * square + 2.0 * (nu * 80 * epsilon + (above + below).sum())
    assert model.certificate_.primal == pytest.approx(primal, rel=1e-9)
    np.testing.assert_array_equal(
        model.roles_, np.where(beta == 0, "inside", np.where(np.abs(beta) == 2.0, "outside", "on"))
    )
    assert (model.roles_ == "outside").mean() <= nu <= (model.roles_ != "inside").mean()
    # The same function comes from a tube of that width, given.
    np.testing.assert_allclose(SVR(epsilon=epsilon, C=2.0, gamma=0.4).fit(X, y).predict(X), f, atol=1e-7)


def test_every_kind_of_kernel_is_one() -> None:
    X, y = noisy_sine()
    expected = NuSVR(gamma=0.5).fit(X, y).predict(X)
    for kernel in (RBF(1.0), SklearnRBF(1.0), lambda A, B: rbf_kernel(A, B, gamma=0.5)):
        np.testing.assert_allclose(NuSVR(kernel=kernel).fit(X, y).predict(X), expected, atol=1e-8)
    K = rbf_kernel(X, gamma=0.5)
    np.testing.assert_allclose(NuSVR(kernel="precomputed").fit(K, y).predict(K[:7]), expected[:7], atol=1e-8)
    sparse = NuSVR(gamma=0.5).fit(sp.csr_matrix(X), y)
    np.testing.assert_allclose(sparse.predict(sp.csr_array(X)), expected, atol=1e-8)
    linear = NuSVR(kernel="linear").fit(X, y)
    np.testing.assert_allclose(X @ linear.coef_[0] + linear.intercept_, linear.predict(X), atol=1e-10)


def test_sample_weights_agree_with_scikit_learn(rng: np.random.Generator) -> None:
    X, y = noisy_sine()
    weight = rng.uniform(0.1, 3.0, 80)
    weight[::9] = 0.0
    ours = NuSVR(gamma=0.3).fit(X, y, weight)
    theirs = Reference(gamma=0.3, tol=1e-8).fit(X, y, weight)
    np.testing.assert_allclose(ours.predict(X), theirs.predict(X), atol=1e-4)
    assert len(ours.roles_) == len(ours.slacks_above_) == 80 and set(ours.roles_[::9]) <= {"inside", "outside"}
    np.testing.assert_allclose(ours.slacks_below_, np.maximum(ours.predict(X) - y - ours.epsilon_, 0.0), atol=1e-9)


@settings(max_examples=20)
@given(
    weights=st.lists(st.integers(0, 4), min_size=16, max_size=16).filter(any),
    C=st.sampled_from([0.01, 1.0, 30.0]),
    nu=st.sampled_from([0.1, 0.37, 1.0]),
    seed=st.integers(0, 2**20),
)
def test_weights_are_repetition(weights: list[int], C: float, nu: float, seed: int) -> None:
    rng = np.random.default_rng(seed)
    X, y = rng.standard_normal((16, 3)), rng.standard_normal(16)
    model = NuSVR(C=C, nu=nu)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", MercerWarning)
        weighted = clone(model).fit(X, y, weights)
        repeated = clone(model).fit(np.repeat(X, weights, axis=0), np.repeat(y, weights))
    grid = rng.standard_normal((30, 3))
    np.testing.assert_allclose(weighted.predict(grid), repeated.predict(grid), atol=1e-6)
    assert weighted.epsilon_ == pytest.approx(repeated.epsilon_, abs=1e-6)
    assert weighted.certificate_.dual == pytest.approx(repeated.certificate_.dual, rel=1e-8, abs=1e-12)


def test_warm_start_is_the_same_answer_sooner() -> None:
    X, y = noisy_sine(300)
    model = NuSVR(gamma=0.5, warm_start=True, tol=1e-5).fit(X, y)
    first = model.n_iter_
    assert model.fit(X, y).n_iter_ <= 0.1 * first
    for changed in ({"C": 1.3}, {"nu": 0.3}, {"nu": 0.7}):
        warm = model.set_params(**changed).fit(X, y)
        cold = clone(warm).fit(X, y)
        np.testing.assert_allclose(warm.predict(X), cold.predict(X), atol=1e-4)
        assert warm.certificate_.dual == pytest.approx(cold.certificate_.dual, rel=1e-6)


def test_max_iter_is_honoured_and_reported() -> None:
    X, y = noisy_sine(300)
    with pytest.warns(ConvergenceWarning, match=r"NuSVR: max_iter was reached"):
        model = NuSVR(max_iter=5).fit(X, y)
    assert model.n_iter_ == 5 and model.fit_status_ == 1
    assert model.certificate_.status is Status.iteration_limit


def test_degenerate_data() -> None:
    one = NuSVR().fit([[1.0, 2.0]], [3.0])
    assert one.predict([[5.0, 5.0]]).tolist() == [3.0] and one.epsilon_ == 0.0
    constant = NuSVR(kernel="linear").fit(np.ones((20, 2)), np.arange(20.0))
    np.testing.assert_allclose(constant.predict(np.ones((3, 2))), 9.5, atol=1e-12)
    X, y = noisy_sine(60)
    contradicting = NuSVR().fit(np.vstack([X, X]), np.r_[y, -y])
    np.testing.assert_allclose(contradicting.certificate_.primal, contradicting.certificate_.dual, rtol=1e-9)
    for extreme in ({"C": 1e-6}, {"gamma": 1e-6}, {"gamma": 1e4}, {"nu": 1e-4}, {"nu": 1.0}):
        model = NuSVR(**extreme).fit(X, y)
        assert model.certificate_.status is Status.converged and model.epsilon_ >= 0
    with pytest.warns(MercerWarning, match=r"y has the value 2 in every row.*check that y is the target"):
        flat = NuSVR().fit(X, np.full(60, 2.0))
    np.testing.assert_allclose(flat.predict(X), 2.0)
    assert flat.epsilon_ == pytest.approx(0.0, abs=1e-12)


@pytest.mark.parametrize(
    ("parameters", "words"),
    [
        ({"nu": 0}, "nu must be above 0 and at most 1, but is 0"),
        ({"nu": 1.1}, "nu must be above 0 and at most 1, but is 1.1"),
        ({"nu": np.nan}, "nu must be"),
        ({"C": 0}, "C must be a finite number above 0, but is 0"),
        ({"C": np.inf}, r"C must be .*is inf. Use a large C, such as 1e6"),
        ({"tol": -1}, "tol must be"),
        ({"max_iter": -5}, "max_iter must be"),
        ({"stop": None}, "stop must be"),
        ({"kernel": "rfb"}, "did you mean 'rbf'"),
    ],
)
def test_parameters_that_make_no_sense(parameters: dict[str, Any], words: str) -> None:
    with pytest.raises(ParameterError, match=words):
        NuSVR(**parameters).fit(*noisy_sine())


def test_data_that_cannot_be_used() -> None:
    X, y = noisy_sine()
    with pytest.raises(DataError, match="X contains NaN"):
        NuSVR().fit(np.where(X > 2, np.nan, X), y)
    with pytest.raises(DataError, match=r"\[80, 79\]"):
        NuSVR().fit(X, y[1:])
    with pytest.raises(DataError, match="sample_weight has 3 values"):
        NuSVR().fit(X, y, [1, 2, 3])
    with pytest.raises(DataError, match="negative or zero for each of the 80 rows"):
        NuSVR().fit(X, y, -np.ones(80))
    with pytest.raises(DataError, match="zero for each of the 80 rows"):
        NuSVR().fit(X, y, np.zeros(80))
    with pytest.raises(DataError, match="must be square"):
        NuSVR(kernel="precomputed").fit(X, y)
    with pytest.raises(NotFittedError):
        NuSVR().predict(X)


def test_kernels_that_are_not_positive() -> None:
    X, y = noisy_sine()
    with pytest.raises(IndefiniteKernelError, match="allow_indefinite=True"):
        NuSVR(kernel="sigmoid", allow_indefinite=False).fit(X, y)
    with pytest.raises(IndefiniteKernelError, match="allow_indefinite=True"):
        NuSVR(kernel="precomputed", allow_indefinite=False).fit(np.tanh(X @ X.T - 1.0) - 2.0 * np.eye(80), y)
    assert NuSVR(kernel="sigmoid", allow_indefinite=True).fit(X, y).certificate_.status is Status.stationary


def test_a_given_matrix_is_counted_as_often_as_it_is_held() -> None:
    X, y = noisy_sine(300)
    K = rbf_kernel(X)
    with config(memory="2MiB"), pytest.raises(MemoryBudgetError, match="kernel matrix with each row twice would take"):
        NuSVR(kernel="precomputed").fit(K, y)


@pytest.mark.parametrize("seed", [None, 229, 244, 253, 268])
def test_weights_are_repetition_where_offsets_are_not_unique(seed: int | None) -> None:
    X, y, w = np.array([[3.0], [0.0], [2.0]]), np.array([1.0, 3.0, 4.0]), np.array([1, 2, 3])
    parameters: dict[str, Any] = {"kernel": "linear", "C": 0.01, "nu": 1.0}
    if seed is not None:
        rng = np.random.default_rng(seed)
        n = rng.integers(2, 7)
        X, y = rng.integers(0, 4, size=(n, 1)).astype(float), rng.integers(0, 5, size=n).astype(float)
        w = rng.integers(1, 4, size=n)
        kernel, C = ["linear", "rbf"][seed % 2], [0.01, 0.1, 1.0, 10.0][seed % 4]
        parameters = {"kernel": kernel, "C": C, "nu": [0.3, 0.5, 0.7, 1.0][seed // 4 % 4]}
    weighted = NuSVR(**parameters).fit(X, y, w)
    repeated = NuSVR(**parameters).fit(np.repeat(X, w, axis=0), np.repeat(y, w))
    np.testing.assert_allclose(weighted.predict(X), repeated.predict(X), atol=1e-9)
    assert weighted.epsilon_ == pytest.approx(repeated.epsilon_, abs=1e-9)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_columns_of_very_different_scales_are_solved_to_rounding() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 3)) * [1e-6, 1.0, 1e6]
    model = NuSVR(kernel="linear").fit(X, X[:, 1])
    rounding = np.finfo(float).eps * np.square(X).sum(axis=1).max() * np.abs(model.dual_coef_).sum()
    # Gradients are sums over the rows, whose roundings add up like their root.
    assert model.certificate_.kkt_violation <= np.sqrt(len(X)) * rounding < 0.3


def test_a_tolerance_above_the_differences_of_the_targets_is_told() -> None:
    x = np.linspace(0.0, 3.0, 520)[:, None]
    y = 1e-15 * np.sin(2.0 * x.ravel())
    for learner in (NuSVR(C=1e-13), SVR(C=1e-13, epsilon=1e-17)):
        with pytest.warns(
            MercerWarning, match=r"the targets differ by 2e-15 at most, and tol=0.001, which is in units"
        ):
            learner.fit(x, y)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            assert learner.set_params(tol=1e-18).fit(x, y).score(x, y) > 0.9


def test_a_solve_that_stopped_says_when_a_constant_is_better() -> None:
    rng = np.random.default_rng(0)
    X, y = 100.0 * rng.normal(size=(50, 3)) + 500.0, rng.normal(size=50)
    with pytest.warns(ConvergenceWarning, match="worse than a constant") as caught:
        model = NuSVR(C=100.0, kernel="linear", max_iter=2).fit(X, y)
    found = re.search(r"its objective is (\S+), and that of the constant (\S+) is (\S+)\.$", str(caught[0].message))
    assert found is not None
    of_constant = 100.0 * np.abs(y - float(found[2])).sum()
    assert float(found[3]) == pytest.approx(of_constant, rel=1e-3)
    assert model.certificate_.primal > of_constant
