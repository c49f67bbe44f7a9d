"""Support vector regression with a given tube, and what all machines with one expansion share."""

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
from sklearn.svm import SVR as Reference

from mercer import SVR
from mercer._errors import DataError, IndefiniteKernelError, MercerWarning, ParameterError
from mercer.estimators.svm.single_expansion import feasible
from mercer.gram import PrecomputedGram
from mercer.kernels import RBF, Linear, NegativeDistance
from mercer.solvers.solution import Status
from mercer.solvers.svm.box_qp import BoxQP
from sklearn_checks import every_check, not_passed


def noisy_sine(n: int = 80, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    return X, np.sin(X[:, 0]) + 0.5 * X[:, 1] + 0.2 * rng.normal(size=n)


def full_weights(model: Any, n: int) -> np.ndarray:
    beta = np.zeros(n)
    coef = model.dual_coef_
    beta[model.support_] = (coef.toarray() if sp.issparse(coef) else coef)[0]
    return beta


def dual_value(beta: np.ndarray, K: np.ndarray, y: np.ndarray, epsilon: float) -> float:
    return float(y @ beta - epsilon * np.abs(beta).sum() - 0.5 * beta @ K @ beta)


CASES = [
    {},
    {"C": 10.0, "gamma": "auto", "epsilon": 0.3},
    {"kernel": "linear", "C": 0.5},
    {"kernel": "poly", "degree": 2, "coef0": 1.0, "epsilon": 0.0},
]


@pytest.mark.parametrize("parameters", CASES)
def test_agrees_with_scikit_learn(parameters: dict[str, Any]) -> None:
    X, y = noisy_sine()
    ours, theirs = SVR(**parameters).fit(X, y), Reference(**parameters, tol=1e-9).fit(X, y)
    np.testing.assert_allclose(ours.predict(X), theirs.predict(X), atol=1e-5)
    np.testing.assert_allclose(ours.intercept_, theirs.intercept_, atol=1e-5)
    np.testing.assert_array_equal(ours.support_, theirs.support_)
    np.testing.assert_array_equal(ours.n_support_, theirs.n_support_)
    np.testing.assert_array_equal(ours.support_vectors_, X[ours.support_])
    assert ours.dual_coef_.shape == theirs.dual_coef_.shape == (1, len(ours.support_))
    assert ours.support_.dtype == theirs.support_.dtype and ours.shape_fit_ == theirs.shape_fit_
    assert ours.fit_status_ == 0 and isinstance(ours.n_iter_, int)
    assert ours.score(X, y) == pytest.approx(theirs.score(X, y), abs=1e-5)
    K = ours.kernel_(X)
    epsilon = ours.epsilon
    assert ours.certificate_.dual == pytest.approx(dual_value(full_weights(ours, 80), K, y, epsilon), rel=1e-9)
    assert ours.certificate_.dual >= dual_value(full_weights(theirs, 80), K, y, epsilon) - 1e-9
    assert 0 <= ours.certificate_.relative_gap < 1e-6


@pytest.mark.parametrize("n", [700, 2300])
def test_agrees_with_scikit_learn_where_the_kernel_is_in_float32(n: int) -> None:
    X, y = noisy_sine(n)
    ours, theirs = SVR(tol=1e-6).fit(X, y), Reference(tol=1e-6).fit(X, y)
    np.testing.assert_allclose(ours.predict(X), theirs.predict(X), atol=1e-4)
    beta = full_weights(theirs, n)
    assert ours.certificate_.dual == pytest.approx(dual_value(beta, ours.kernel_(X), y, 0.1), rel=1e-6)
    assert ours.certificate_.relative_gap < 1e-5


@pytest.mark.parametrize("intercept", [True, False])
def test_agrees_with_a_general_solver(intercept: bool) -> None:
    X, y = noisy_sine(12)
    C, epsilon, K = 2.0, 0.15, rbf_kernel(X, gamma=0.5)

    def minus_dual(both: np.ndarray) -> tuple[float, np.ndarray]:
        beta = both[:12] - both[12:]
        slope = K @ beta - y
        return -float(y @ beta - epsilon * both.sum() - 0.5 * beta @ K @ beta), np.r_[slope, -slope] + epsilon

    sums = np.r_[np.ones(12), -np.ones(12)]
    equation = [{"type": "eq", "fun": lambda both: sums @ both, "jac": lambda both: sums}] if intercept else []
    naive = minimize(
        minus_dual,
        np.zeros(24),
        jac=True,
        bounds=[(0, C)] * 24,
        constraints=equation,
        method="SLSQP",
        options={"ftol": 1e-14, "maxiter": 1000},
    )
    model = SVR(gamma=0.5, C=C, epsilon=epsilon, fit_intercept=intercept).fit(X, y)
    assert naive.success
    assert model.certificate_.dual == pytest.approx(-naive.fun, rel=1e-7)
    np.testing.assert_allclose(full_weights(model, 12), naive.x[:12] - naive.x[12:], atol=1e-4)
    if not intercept:
        assert model.intercept_.tolist() == [0.0]
        np.testing.assert_allclose(model.predict(X), K @ full_weights(model, 12), atol=1e-12)


@pytest.mark.parametrize(("n", "intercept"), [(80, True), (80, False), (700, True)])
def test_certificate_slacks_and_roles_are_what_the_definitions_say(n: int, intercept: bool) -> None:
    X, y = noisy_sine(n)
    model = SVR(C=2.0, gamma=0.4, epsilon=0.2, fit_intercept=intercept, tol=1e-5).fit(X, y)
    beta, f = full_weights(model, n), model.predict(X)
    above, below = np.maximum(y - f - 0.2, 0.0), np.maximum(f - y - 0.2, 0.0)
    np.testing.assert_allclose(model.slacks_above_, above, atol=1e-6)
    np.testing.assert_allclose(model.slacks_below_, below, atol=1e-6)
    square = beta @ rbf_kernel(X, gamma=0.4) @ beta
    primal = 0.5 * square + 2.0 * (above + below).sum()
    assert model.certificate_.primal == pytest.approx(primal, rel=1e-6)
    expected = np.where(beta == 0, "inside", np.where(np.abs(beta) == 2.0, "outside", "on"))
    np.testing.assert_array_equal(model.roles_, expected)
    assert set(model.roles_) == {"inside", "on", "outside"}
    assert (above + below)[model.roles_ == "inside"].max() < 1e-5
    np.testing.assert_allclose(np.abs(y - f)[model.roles_ == "on"], 0.2, atol=1e-4)
    assert (np.abs(y - f)[model.roles_ == "outside"] > 0.2).all()
    assert (model.slacks_above_ * model.slacks_below_ == 0).all()


def test_rows_of_weight_zero_have_slacks_and_roles_too() -> None:
    X, y = noisy_sine(60)
    weight = np.ones(60)
    weight[::4] = 0.0
    y[4], y[8] = 9.0, -9.0
    model = SVR().fit(X, y, weight)
    np.testing.assert_allclose(model.slacks_above_, np.maximum(y - model.predict(X) - 0.1, 0.0), atol=1e-12)
    assert model.slacks_below_[8] > 5 and model.roles_[[4, 8]].tolist() == ["outside", "outside"]
    assert set(model.roles_[::4]) == {"inside", "outside"}
    assert not set(model.support_) & set(range(0, 60, 4))
    np.testing.assert_allclose(model.predict(X), SVR().fit(X[weight > 0], y[weight > 0]).predict(X), atol=1e-10)


def test_every_kind_of_kernel_is_one() -> None:
    X, y = noisy_sine()
    K = rbf_kernel(X, gamma=0.5)
    expected = SVR(gamma=0.5).fit(X, y).predict(X)
    for kernel in (RBF(1.0), SklearnRBF(1.0), lambda A, B: rbf_kernel(A, B, gamma=0.5)):
        np.testing.assert_allclose(SVR(kernel=kernel).fit(X, y).predict(X), expected, atol=1e-9)
    given = SVR(kernel="precomputed").fit(K, y)
    np.testing.assert_allclose(given.predict(K[:7]), expected[:7], atol=1e-9)
    assert given.support_vectors_.shape == (0, 0) and given.kernel_ is None
    sparse = SVR(gamma=0.5).fit(sp.csr_matrix(X), y)
    np.testing.assert_allclose(sparse.predict(sp.csr_array(X)), expected, atol=1e-8)
    assert sp.issparse(sparse.support_vectors_)


def test_coef_of_the_linear_kernel() -> None:
    X, y = noisy_sine()
    for rows in (X, sp.csr_matrix(X)):
        model = SVR(kernel="linear").fit(rows, y)
        assert model.coef_.shape == (1, 3)
        values = np.asarray(rows @ model.coef_.T + model.intercept_).ravel()
        np.testing.assert_allclose(values, model.predict(rows), atol=1e-10)
    theirs = Reference(kernel="linear", tol=1e-9).fit(X, y)
    np.testing.assert_allclose(model.coef_.toarray(), theirs.coef_, atol=1e-5)
    with pytest.raises(AttributeError, match="finite feature map only"):
        _ = SVR().fit(X, y).coef_


def test_sample_weights_agree_with_scikit_learn(rng: np.random.Generator) -> None:
    X, y = noisy_sine()
    weight = rng.uniform(0.1, 3.0, 80)
    ours = SVR(gamma=0.3).fit(X, y, weight)
    theirs = Reference(gamma=0.3, tol=1e-9).fit(X, y, weight)
    np.testing.assert_allclose(ours.predict(X), theirs.predict(X), atol=1e-5)


@settings(max_examples=25)
@given(
    weights=st.lists(st.integers(0, 4), min_size=20, max_size=20).filter(any),
    C=st.sampled_from([0.01, 1.0, 100.0]),
    epsilon=st.sampled_from([0.0, 0.1, 1.0]),
    intercept=st.booleans(),
    seed=st.integers(0, 2**20),
)
def test_weights_are_repetition(weights: list[int], C: float, epsilon: float, intercept: bool, seed: int) -> None:
    rng = np.random.default_rng(seed)
    X, y = rng.standard_normal((20, 3)), rng.standard_normal(20)
    model = SVR(C=C, epsilon=epsilon, fit_intercept=intercept)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", MercerWarning)
        weighted = clone(model).fit(X, y, weights)
        repeated = clone(model).fit(np.repeat(X, weights, axis=0), np.repeat(y, weights))
    grid = rng.standard_normal((30, 3))
    np.testing.assert_allclose(weighted.predict(grid), repeated.predict(grid), atol=1e-6)
    assert weighted.certificate_.dual == pytest.approx(repeated.certificate_.dual, rel=1e-8, abs=1e-12)


@pytest.mark.parametrize("n", [80, 700])
def test_warm_start_is_the_same_answer_sooner(n: int) -> None:
    X, y = noisy_sine(n)
    model = SVR(C=1.0, gamma=0.5, warm_start=True, tol=1e-5).fit(X, y)
    first = model.n_iter_
    again = model.fit(X, y).n_iter_
    assert again <= 0.1 * first
    for C in (1.2, 0.3):
        warm = model.set_params(C=C).fit(X, y)
        cold = SVR(C=C, gamma=0.5, tol=1e-5).fit(X, y)
        np.testing.assert_allclose(warm.predict(X), cold.predict(X), atol=1e-4)
        assert warm.certificate_.dual == pytest.approx(cold.certificate_.dual, rel=1e-6)
    # Another number of rows: it starts anew.
    np.testing.assert_array_equal(model.fit(X[:50], y[:50]).predict(X), clone(model).fit(X[:50], y[:50]).predict(X))


@settings(max_examples=60)
@given(
    seed=st.integers(0, 2**20),
    n=st.integers(1, 6),
    part=st.floats(0, 1),
    twice=st.booleans(),
    scale=st.sampled_from([1e-8, 1.0, 1e6]),
)
def test_where_a_warm_start_begins_is_feasible(seed: int, n: int, part: float, twice: bool, scale: float) -> None:
    rng = np.random.default_rng(seed)
    lower, upper = -scale * rng.uniform(0.1, 1, n), scale * rng.uniform(0.1, 1, n)
    sums = (float(lower.sum() + part * (upper - lower).sum()),)
    if twice:
        lower, upper = np.r_[np.zeros(n), lower], np.r_[upper, np.zeros(n)]
        sums = (part * float(upper.sum()), part * float(lower.sum()))
    groups = np.repeat([0, 1], n) if twice else None
    problem = BoxQP(PrecomputedGram(np.eye(len(lower))), np.zeros(len(lower)), lower, upper, totals=sums, groups=groups)
    last = rng.standard_normal(n) * scale * (rng.uniform(size=n) < 0.7)
    beta = feasible(last, problem)
    rounding = 1e-13 * scale
    assert (beta >= lower - rounding).all() and (beta <= upper + rounding).all()
    for number, total in enumerate(sums):
        assert beta[slice(None) if groups is None else groups == number].sum() == pytest.approx(total, abs=n * rounding)


def test_stopping_by_the_gap() -> None:
    X, y = noisy_sine(700)
    loose = SVR(C=10.0, tol=0.1).fit(X, y)
    tight = SVR(C=10.0, tol=0.1, stop="gap").fit(X, y)
    narrow = SVR(C=10.0, tol=1e-4, stop="gap").fit(X, y)
    assert loose.certificate_.kkt_violation <= 0.1 and tight.certificate_.relative_gap <= 0.1
    assert narrow.certificate_.relative_gap <= 1e-4 and narrow.certificate_.kkt_violation <= 1e-4
    assert narrow.certificate_.dual >= loose.certificate_.dual


def test_max_iter_is_honoured_and_reported() -> None:
    X, y = noisy_sine(600)
    with pytest.warns(ConvergenceWarning, match=r"SVR: max_iter was reached"):
        model = SVR(max_iter=5).fit(X, y)
    assert model.n_iter_ == 5 and model.fit_status_ == 1
    assert model.certificate_.status is Status.iteration_limit


def test_same_bits_for_any_number_of_threads() -> None:
    X, y = noisy_sine(2300)
    one, two = (SVR(n_jobs=k).fit(X, y) for k in (1, 2))
    np.testing.assert_array_equal(one.dual_coef_, two.dual_coef_)
    np.testing.assert_array_equal(one.predict(X), two.predict(X))


def test_scikit_learns_own_checks() -> None:
    assert not_passed(every_check(SVR(kernel="linear", fit_intercept=False))) == {}


def test_degenerate_data() -> None:
    assert SVR().fit([[1.0, 2.0]], [3.0]).predict([[5.0, 5.0]]).tolist() == [3.0]
    assert SVR(epsilon=0.0, C=1e8, kernel="linear").fit([[0.0], [1.0]], [1.0, 3.0]).predict([[2.0]]) == pytest.approx(5)
    for rows in (np.ones((20, 2)), np.zeros((20, 2))):
        model = SVR(kernel="linear").fit(rows, np.arange(20.0))
        np.testing.assert_allclose(model.predict(rows), 9.5, atol=1e-12)
    X, y = noisy_sine(60)
    wide = SVR(epsilon=100.0).fit(X, y)
    np.testing.assert_allclose(wide.predict(X), (y.max() + y.min()) / 2)
    assert len(wide.support_) == 0 and set(wide.roles_) == {"inside"}
    contradicting = SVR().fit(np.vstack([X, X]), np.r_[y, -y])
    assert contradicting.certificate_.relative_gap < 1e-9
    for extreme in ({"C": 1e-6}, {"C": 1e6}, {"gamma": 1e-6}, {"gamma": 1e4}):
        assert SVR(**extreme).fit(X, y).certificate_.status is Status.converged
    with pytest.warns(MercerWarning, match="y has the value 2 in every row.*check that y is the target"):
        np.testing.assert_allclose(SVR().fit(X, np.full(60, 2.0)).predict(X), 2.0)


@pytest.mark.parametrize(
    ("parameters", "words"),
    [
        ({"C": 0}, "C must be a finite number above 0, but is 0"),
        ({"C": -1.0}, "C must be a finite number above 0, but is -1.0"),
        ({"C": np.inf}, "C must be .*is inf. Use a large C, such as 1e6"),
        ({"C": np.nan}, "C must be"),
        ({"C": "1"}, "C must be .* is '1'"),
        ({"epsilon": -0.1}, "epsilon must be a finite number of at least 0, but is -0.1"),
        ({"epsilon": np.inf}, "epsilon must be"),
        ({"tol": 0}, "tol must be"),
        ({"cache_size": -1}, "cache_size must be"),
        ({"max_iter": -5}, "max_iter must be a whole number"),
        ({"max_iter": 1.5}, "max_iter must be"),
        ({"stop": "soon"}, "stop must be 'kkt' or 'gap', but is 'soon'"),
        ({"gamma": -1.0}, "gamma must be"),
        ({"kernel": "rfb"}, "did you mean 'rbf'"),
    ],
)
def test_parameters_that_make_no_sense(parameters: dict[str, Any], words: str) -> None:
    with pytest.raises(ParameterError, match=words):
        SVR(**parameters).fit(*noisy_sine())


def test_data_that_cannot_be_used() -> None:
    X, y = noisy_sine()
    with pytest.raises(DataError, match="X contains NaN"):
        SVR().fit(np.where(X > 2, np.nan, X), y)
    with pytest.raises(DataError, match="y contains NaN"):
        SVR().fit(X, np.where(y > 1, np.nan, y))
    with pytest.raises(DataError, match=r"\[80, 79\]|\[80, 79\].*one target"):
        SVR().fit(X, y[1:])
    with pytest.raises(DataError, match="1d array"):
        SVR().fit(X, np.c_[y, y])
    with pytest.raises(DataError, match="sample_weight has 3 values, and X has 80 rows; pass one weight"):
        SVR().fit(X, y, [1, 2, 3])
    with pytest.raises(DataError, match="negative or zero for each of the 80 rows"):
        SVR().fit(X, y, -np.ones(80))
    for zero in (np.zeros(80), 0):
        with pytest.raises(DataError, match=r"zero for each of the 80 rows.*give positive weights"):
            SVR().fit(X, y, zero)
    with pytest.raises(DataError, match=r"must be square.*\(80, 3\)"):
        SVR(kernel="precomputed").fit(X, y)
    with pytest.raises(NotFittedError):
        SVR().predict(X)


def test_kernels_that_are_not_positive() -> None:
    X, y = noisy_sine()
    with pytest.raises(IndefiniteKernelError, match="allow_indefinite=True"):
        SVR(kernel="sigmoid", allow_indefinite=False).fit(X, y)
    with pytest.raises(IndefiniteKernelError, match="allow_indefinite=True"):
        SVR(kernel="precomputed", allow_indefinite=False).fit(np.tanh(X @ X.T - 1.0) - 2.0 * np.eye(80), y)
    model = SVR(kernel="sigmoid", allow_indefinite=True).fit(X, y)
    assert model.certificate_.status is Status.stationary
    plain = SVR(kernel=NegativeDistance()).fit(X, y)
    centred = SVR(kernel=NegativeDistance().centered(X)).fit(X, y)
    np.testing.assert_allclose(plain.predict(X), centred.predict(X), atol=1e-8)
    K = NegativeDistance()(X)
    np.testing.assert_allclose(SVR(kernel="precomputed").fit(K, y).predict(K), plain.predict(X), atol=1e-8)
    with pytest.raises(IndefiniteKernelError, match="only conditionally positive"):
        SVR(kernel=NegativeDistance(), fit_intercept=False, allow_indefinite=False).fit(X, y)
    with pytest.raises(IndefiniteKernelError, match="c'Kc = -"):
        SVR(kernel="precomputed", fit_intercept=False, allow_indefinite=False).fit(K, y)
    bent = SVR(kernel=NegativeDistance(), fit_intercept=False, allow_indefinite=True, C=0.1).fit(X, y)
    assert bent.certificate_.status is Status.stationary


def test_parameters_of_a_kernel_are_parameters_of_the_model() -> None:
    X, y = noisy_sine()
    model = SVR(kernel=2.0 * RBF(1.5) + Linear()).set_params(kernel__left__factor=3.0)
    assert clone(model).fit(X, y).kernel_ == 3.0 * RBF(1.5) + Linear()


def test_targets_that_differ_within_one_tube_are_told():
    """There is no support vector then, and the prediction is a constant."""
    X = np.linspace(0, 6, 40)[:, None]
    y = 1e-3 * np.sin(X).ravel()
    with pytest.warns(MercerWarning, match=r"within one tube of width 2 epsilon = 0\.2, so there is no support vector"):
        model = SVR().fit(X, y)
    assert model.predict(X).std() == 0
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        SVR(epsilon=1e-4).fit(X, y)
        # A tube through targets that differ may need a slope; rows without a weight are not looked at.
        SVR().fit(X, 1e3 * y, sample_weight=np.arange(40.0))


@pytest.mark.parametrize("scale", [1e-12, 1e-20])
@pytest.mark.parametrize("epsilon", [0.1, 0.0])
def test_few_rows_are_solved_exactly_in_any_unit_of_the_targets(scale: float, epsilon: float) -> None:
    X, y = noisy_sine()
    one = SVR(epsilon=epsilon).fit(X, y).predict(X)
    other = SVR(C=scale, epsilon=scale * epsilon).fit(X, scale * y).predict(X)
    np.testing.assert_allclose(other / scale, one, atol=1e-8)


@pytest.mark.parametrize("intercept", [True, False])
def test_a_stopped_fit_that_is_worse_than_a_constant_says_so(intercept: bool) -> None:
    random = np.random.default_rng(0)
    X = random.normal(size=(60, 2))
    y = np.sin(2 * X[:, 0]) + 0.3 * random.normal(size=60)
    with pytest.warns(ConvergenceWarning) as caught:
        model = SVR(C=1e10, max_iter=20, fit_intercept=intercept).fit(X, y)
    found = re.search(r"its objective is (\S+), and that of the constant (\S+) is (\S+)\.$", str(caught[0].message))
    assert found is not None
    ours, constant, theirs = map(float, found.groups())
    assert ours == pytest.approx(model.certificate_.primal, rel=1e-3) and ours > theirs
    assert theirs == pytest.approx(1e10 * np.maximum(np.abs(y - constant) - 0.1, 0.0).sum(), rel=1e-2)
    assert (constant == 0.0) == (not intercept)
    with pytest.warns(ConvergenceWarning) as caught:
        SVR(max_iter=5).fit(X, y)
    assert "constant" not in str(caught[0].message)
