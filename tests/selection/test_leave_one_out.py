"""Leave-one-out without refitting, beside refits: exact methods, approximations, and bounds."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.base import clone

from mercer import (
    SVC,
    SVR,
    GaussianProcessClassifier,
    GaussianProcessRegressor,
    KernelLogisticRegression,
    KernelPCA,
    KernelRidge,
)
from mercer._errors import DataError, ParameterError
from mercer.kernels import RBF
from mercer.selection import leave_one_out

RNG = np.random.default_rng(0)
N = 60
X = RNG.normal(size=(N, 2))
NUMBERS = np.sin(2 * X[:, 0]) + 0.3 * RNG.normal(size=N)
BINARY = np.where(X[:, 0] * X[:, 1] + 0.5 * RNG.normal(size=N) > 0, "same", "other")
THREE = np.digitize(X[:, 0] + 0.4 * RNG.normal(size=N), [-0.5, 0.5])
WEIGHT = RNG.integers(1, 4, N)
KERNEL = RBF(0.9)
EVERY, HALF = slice(None), slice(None, None, 2)


def without(i: int, weight: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The rows that are left without one repetition of row i, and their weights."""
    less = weight.astype(float)
    less[i] -= 1.0
    rows = np.flatnonzero(less)
    return rows, less[rows]


def refits(
    model: Any, y: np.ndarray, weight: np.ndarray | None = None, method: str = "predict", some: slice = EVERY
) -> np.ndarray:
    """The values of each row, or of some of them, by a fit to the others."""
    out = []
    for i in range(N)[some]:
        rows, less = without(i, np.ones(N) if weight is None else weight)
        more = {} if weight is None else {"sample_weight": less}
        out.append(getattr(clone(model).fit(X[rows], y[rows], **more), method)(X[i : i + 1])[0])
    return np.array(out)


@pytest.mark.parametrize("weight", [None, WEIGHT], ids=["alike", "repeated"])
def test_ridge_is_exact(weight: np.ndarray | None) -> None:
    y = np.c_[NUMBERS, X[:, 1]]
    model = KernelRidge(0.3, kernel=KERNEL).fit(X, y, weight)
    result = leave_one_out(model, X, y, weight)
    expected = refits(model, y, weight)
    np.testing.assert_allclose(result.predictions, expected, rtol=1e-8, atol=1e-10)
    assert result.exact and result.method.startswith("exact")
    squares = ((expected - y) ** 2).mean(axis=1)
    assert result.loss == pytest.approx(np.average(squares, weights=weight))


def test_a_gaussian_process_is_exact() -> None:
    model = GaussianProcessRegressor(KERNEL, alpha=0.1, optimizer=None, mean="constant").fit(X, NUMBERS)
    result = leave_one_out(model, X, NUMBERS)
    np.testing.assert_allclose(result.predictions, refits(model, NUMBERS), rtol=1e-7, atol=1e-9)
    assert result.exact


@pytest.mark.slow
@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("weight", [None, WEIGHT], ids=["alike", "repeated"])
def test_the_span_rule_is_exact_where_roles_stay(intercept: bool, weight: np.ndarray | None) -> None:
    model = SVC(C=1.0, kernel=KERNEL, fit_intercept=intercept).fit(X, BINARY, weight)
    result = leave_one_out(model, X, BINARY, weight)
    count, close = 0, 0
    for i in range(N):
        rows, less = without(i, np.ones(N) if weight is None else weight)
        other = clone(model).fit(X[rows], BINARY[rows], less)
        value = other.decision_function(X[i : i + 1])[0]
        close += abs(value - result.values[i]) < 0.1
        others = rows != i
        # A row of which a repetition is left may go to its bound.
        if (other.roles_[others] == model.roles_[rows[others]]).all() and (i not in rows or _at_bound(other, rows, i)):
            assert result.values[i] == pytest.approx(value, abs=1e-6), i
            count += 1
    assert count > 10 and close > 0.6 * N
    assert not result.exact and "approximation" in result.method


def _at_bound(other: SVC, rows: np.ndarray, i: int) -> bool:
    return bool(other.roles_[rows == i] == "bounded")


@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in (1, 2))])
@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("C", [0.3, 3.0])
def test_the_bound_is_above_the_errors_of_refits(seed: int, intercept: bool, C: float) -> None:
    y = np.where(X[:, 0] + np.random.default_rng(seed).normal(size=N) > 0, 1, -1)
    model = SVC(C=C, kernel=KERNEL, fit_intercept=intercept).fit(X, y)
    wrong = np.mean(refits(model, y) != y)
    result = leave_one_out(model, X, y)
    assert result.error_bound is not None and wrong <= result.error_bound
    assert abs(result.loss - wrong) <= 0.1


def test_votes_of_three_classes() -> None:
    model = SVC(C=1.0, kernel=KERNEL, decision_function_shape="ovo", class_weight={0: 1.0, 1: 2.0, 2: 1.0})
    model.fit(X, THREE)
    result = leave_one_out(model, X, THREE)
    exact = refits(model, THREE, method="decision_function", some=HALF)
    assert result.values.shape == (N, 3) and exact.shape == (N // 2, 3)
    assert np.mean(np.abs(result.values[HALF] - exact) < 0.1) > 0.8
    assert np.mean(result.predictions[HALF] == refits(model, THREE, some=HALF)) > 0.9
    assert result.error_bound is None
    assert leave_one_out(model.set_params(decision_function_shape="ovr"), X, THREE).values.shape == (N, 3)


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("weight", [None, WEIGHT], ids=["alike", "repeated"])
def test_the_tube(intercept: bool, weight: np.ndarray | None) -> None:
    model = SVR(C=0.1, kernel=KERNEL, epsilon=0.1, fit_intercept=intercept, tol=1e-9).fit(X, NUMBERS, weight)
    result = leave_one_out(model, X, NUMBERS, weight)
    count, close = 0, 0
    for i in range(N):
        rows, less = without(i, np.ones(N) if weight is None else weight)
        other = clone(model).fit(X[rows], NUMBERS[rows], less)
        value = other.predict(X[i : i + 1])[0]
        close += abs(value - result.predictions[i]) < 0.1
        others = rows != i
        stays = i not in rows or other.roles_[rows == i] == "outside"
        if (other.roles_[others] == model.roles_[rows[others]]).all() and stays and model.roles_[i] != "inside":
            assert result.predictions[i] == pytest.approx(value, abs=1e-6), i
            count += 1
    assert count > 5 and close > 0.7 * N


@pytest.mark.parametrize(
    ("y", "intercept", "weight"),
    [(BINARY, True, None), (BINARY, False, WEIGHT), (THREE, True, WEIGHT), (THREE, False, None)],
    ids=["two", "two repeated", "three repeated", "three"],
)
def test_a_newton_step_of_logistic_regression(y: np.ndarray, intercept: bool, weight: np.ndarray | None) -> None:
    model = KernelLogisticRegression(C=2.0, kernel=KERNEL, fit_intercept=intercept).fit(X, y, weight)
    result = leave_one_out(model, X, y, weight)
    exact = refits(model, y, weight, method="predict_proba", some=HALF)
    before = np.abs(model.predict_proba(X[HALF]) - exact)
    assert result.probabilities is not None
    error = np.abs(result.probabilities[HALF] - exact)
    assert error.max() < 0.1 * before.max() and error.mean() < 0.05 * before.mean()
    assert np.mean(result.predictions[HALF] == model.classes_[exact.argmax(axis=1)]) > 0.95


def test_rows_without_a_weight_are_new_rows() -> None:
    weight = np.ones(N)
    weight[:10] = 0.0
    for model, y in ((KernelLogisticRegression(kernel=KERNEL), BINARY), (SVC(kernel=KERNEL), BINARY)):
        model.fit(X, y, weight)
        result = leave_one_out(model, X, y, weight)
        np.testing.assert_allclose(result.values[:10], model.decision_function(X[:10]), rtol=1e-9)


@pytest.mark.parametrize(
    ("approximation", "y"), [("laplace", BINARY), ("ep", BINARY), ("laplace", THREE)], ids=["two", "ep", "three"]
)
def test_cavities_of_gaussian_processes(approximation: str, y: np.ndarray) -> None:
    model = GaussianProcessClassifier(4.0 * KERNEL, optimizer=None, approximation=approximation).fit(X, y)
    result = leave_one_out(model, X, y)
    exact = refits(model, y, method="predict_proba", some=HALF)
    before = np.abs(model.predict_proba(X[HALF]) - exact)
    assert result.probabilities is not None
    error = np.abs(result.probabilities[HALF] - exact)
    assert error.max() < 0.35 * before.max() and error.mean() < 0.15 * before.mean()
    np.testing.assert_allclose(result.probabilities.sum(axis=1), 1.0, rtol=1e-12)


def test_precomputed_matrices_and_strings() -> None:
    K = KERNEL(X)
    given = leave_one_out(SVC(kernel="precomputed").fit(K, BINARY), K, BINARY)
    plain = leave_one_out(SVC(kernel=KERNEL).fit(X, BINARY), X, BINARY)
    np.testing.assert_allclose(given.values, plain.values, rtol=1e-6, atol=1e-8)
    texts = ["".join(RNG.choice(list("ab"), 9)) for _ in range(30)]
    y = np.array([text.count("ab") > 2 for text in texts])
    model = SVC(kernel="Spectrum(2).normalized()").fit(texts, y)
    assert leave_one_out(model, texts, y).loss <= 0.5


def test_the_only_free_row_says_all_of_the_offset() -> None:
    rows, y = np.array([[0.0], [1.0]]), [0, 1]
    model = SVC(kernel="linear", C=0.1).fit(rows, y)
    assert (model.roles_ == "bounded").all()
    result = leave_one_out(model, rows, y)
    assert result.values.tolist() == [np.inf, -np.inf] and result.loss == 1.0 and result.error_bound is None


def test_each_class_against_the_rest_leaves_the_row_out() -> None:
    model = GaussianProcessClassifier(4.0 * KERNEL, optimizer=None).fit(X, THREE)
    result = leave_one_out(model, X, THREE)
    assert result.probabilities is not None
    np.testing.assert_allclose(result.probabilities.sum(axis=1), 1.0)
    for row in range(3):
        others = np.arange(len(X)) != row
        refit = GaussianProcessClassifier(4.0 * KERNEL, optimizer=None).fit(X[others], THREE[others])
        np.testing.assert_allclose(result.probabilities[row], refit.predict_proba(X[[row]])[0], atol=0.03)
    with pytest.raises(DataError, match="labels of the fit"):
        leave_one_out(model, X, THREE[::-1])


def test_what_cannot_be_left_out_is_an_error() -> None:
    with pytest.raises(ParameterError, match="no method for KernelPCA"):
        leave_one_out(KernelPCA(2).fit(X), X, BINARY)
    model = SVC(kernel=KERNEL).fit(X, BINARY)
    with pytest.raises(DataError, match="fitted to 60 rows"):
        leave_one_out(model, X[:50], BINARY[:50])
    with pytest.raises(DataError, match="labels"):
        leave_one_out(model, X, THREE)
    with pytest.raises(DataError, match="labels of the fit"):
        leave_one_out(model, X, BINARY[::-1])
    with pytest.raises(DataError, match="targets of the fit"):
        leave_one_out(KernelRidge().fit(X, NUMBERS), X, NUMBERS + 1.0)
    parts = GaussianProcessClassifier(KERNEL, optimizer=None, multi_class="one_vs_one").fit(X, THREE)
    with pytest.raises(ParameterError, match="gives none"):
        leave_one_out(parts, X, THREE)
