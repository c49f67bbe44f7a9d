"""What kernel ridge regression says of bad input."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest

import mercer
from mercer import KernelRidge, kernels
from mercer._errors import (
    DataError,
    IndefiniteKernelError,
    KernelValueError,
    MemoryBudgetError,
    MercerWarning,
    NumericalError,
    ParameterError,
)
from mercer.kernels import RBF, Linear, Sigmoid

X = np.random.default_rng(0).normal(size=(12, 2))
y = X[:, 0] ** 2


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_values_that_are_not_finite(bad: float) -> None:
    wrong = X.copy()
    wrong[3, 1] = bad
    with pytest.raises(ValueError, match=r"Input X contains (NaN|infinity)"):
        KernelRidge().fit(wrong, y)
    with pytest.raises(ValueError, match=r"Input y contains (NaN|infinity)"):
        KernelRidge().fit(X, wrong[:, 1])
    with pytest.raises(ValueError, match=r"Input X contains (NaN|infinity)"):
        KernelRidge().fit(X, y).predict(wrong)


@pytest.mark.parametrize(
    "rows, targets, message",
    [
        (np.empty((0, 2)), [], "minimum of 1 is required"),
        (X, y[:-1], "inconsistent numbers of samples"),
        (X, None, "requires y to be passed"),
        (np.array([["a"], ["b"]]), [1.0, 2.0], "could not convert string to float"),
        (X[:, 0], y, "Expected 2D array"),
    ],
)
def test_data_of_the_wrong_kind(rows, targets, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        KernelRidge().fit(rows, targets)


def test_one_row_is_enough() -> None:
    model = KernelRidge(1.0, kernel="rbf").fit([[1.0, 2.0]], [4.0])
    assert model.predict([[1.0, 2.0]]) == pytest.approx([2.0])
    assert model.loo_predictions_ == pytest.approx([0.0])


def test_a_constant_target_warns_and_is_learned() -> None:
    with pytest.warns(MercerWarning, match=r"y has the value 3 in every row.*nothing to learn"):
        KernelRidge().fit(X, np.full(12, 3.0))
    with pytest.warns(MercerWarning, match="column 1 of y has the value 0 in every row"):
        KernelRidge().fit(X, np.column_stack([y, 0 * y]))
    with pytest.warns(MercerWarning, match="y has the value 5"):
        KernelRidge().fit(X, [5.0] * 11 + [7.0], [1.0] * 11 + [0.0])


@pytest.mark.parametrize(
    "alpha, message",
    [
        (-1.0, r"at least 0, but is -1\.0"),
        (np.nan, "is nan"),
        (np.inf, "is inf"),
        ([1.0, -2.0], r"is -2\.0"),
        ([1.0, 2.0, 3.0], r"2 targets, but has the shape \(3,\)"),
        ([[1.0, 2.0]], r"shape \(1, 2\)"),
        ("small", "but is 'small'"),
    ],
)
def test_alpha_that_makes_no_sense(alpha, message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        KernelRidge(alpha).fit(X, np.column_stack([y, y]))


@pytest.mark.parametrize(
    "weights, message",
    [
        ([-1.0] + [1.0] * 11, r"1 negative values \(the least is -1"),
        ([0.0] * 12, "zero for each of the 12 rows"),
        ([np.nan] * 12, "NaN"),
        ([1.0, 2.0], r"sample_weight has 2 values, and X has 12 rows"),
    ],
)
def test_weights_that_make_no_sense(weights: list, message: str) -> None:
    with pytest.raises(DataError, match=message):
        KernelRidge().fit(X, y, weights)


def test_an_unknown_kernel_offers_the_nearest_name() -> None:
    with pytest.raises(ParameterError, match="did you mean 'rbf'"):
        KernelRidge(kernel="rbff").fit(X, y)


@pytest.mark.parametrize("kernel", [Sigmoid(0.5, offset=0.2), Linear() + Sigmoid(0.5), "sigmoid"])
def test_an_indefinite_kernel_is_refused_by_its_part(kernel) -> None:
    with pytest.raises(IndefiniteKernelError, match=r"Sigmoid\(.*indefinite.*allow_indefinite=True"):
        KernelRidge(kernel=kernel, allow_indefinite=False).fit(X, y)


def test_a_precomputed_matrix_with_negative_eigenvalues_is_refused() -> None:
    K = X @ X.T - 2 * np.eye(12)
    with pytest.raises(IndefiniteKernelError, match="the kernel matrix is indefinite: c'Kc = -2 for a unit vector"):
        KernelRidge(1e-3, kernel="precomputed", allow_indefinite=False).fit(K, y)
    model = KernelRidge(1e-3, kernel="precomputed", allow_indefinite=True).fit(K, y)
    np.testing.assert_allclose((K + 1e-3 * np.eye(12)) @ model.dual_coef_, y, atol=1e-9)


def test_a_matrix_that_is_not_square_or_not_symmetric() -> None:
    with pytest.raises(DataError, match=r"square.*shape \(12, 2\)"):
        KernelRidge(kernel="precomputed").fit(X, y)
    K = X @ X.T
    K[4, 7] += 0.5
    with pytest.raises(DataError, match=r"not symmetric: K\[(4, 7|7, 4)\]"):
        KernelRidge(kernel="precomputed").fit(K, y)


def test_a_matrix_for_prediction_of_the_wrong_width() -> None:
    model = KernelRidge(kernel="precomputed").fit(X @ X.T, y)
    with pytest.raises(ValueError, match="X has 11 features, but KernelRidge is expecting 12"):
        model.predict((X @ X.T)[:, 1:])


def test_other_columns_at_predict() -> None:
    model = KernelRidge().fit(pd.DataFrame(X, columns=["a", "b"]), y)
    with pytest.raises(ValueError, match="X has 1 features, but KernelRidge is expecting 2"):
        model.predict(X[:, :1])
    with pytest.raises(ValueError, match="feature names should match"):
        model.predict(pd.DataFrame(X, columns=["b", "c"]))


def test_a_kernel_that_returns_nan() -> None:
    def broken(A: np.ndarray, B: np.ndarray) -> np.ndarray:
        out = A @ B.T
        out[-1, -1] = np.nan
        return out

    with pytest.raises(KernelValueError, match=r"broken.*returned nan"):
        KernelRidge(kernel=broken).fit(X, y)


def test_a_kernel_that_returns_the_wrong_shape() -> None:
    with pytest.raises(KernelValueError, match="one value for every pair"):
        KernelRidge(kernel=lambda A, B: A[:, 0]).fit(X, y)


def test_a_kernel_that_overflows() -> None:
    with pytest.raises(NumericalError, match=r"overflow|returned inf"), np.errstate(over="ignore"):
        KernelRidge(kernel=kernels.Polynomial(9)).fit(X * 1e40, y)


def test_too_small_a_budget_is_refused() -> None:
    with mercer.config(memory="1KiB"), pytest.raises(MemoryBudgetError, match=r"12 x 12.*1\.1 KiB.*mercer\.config"):
        KernelRidge().fit(X, y)


def test_no_penalty_on_a_singular_matrix_gives_least_squares() -> None:
    with pytest.warns(MercerWarning, match="rank is 2 of 12"):
        model = KernelRidge(0.0).fit(X, y)
    np.testing.assert_allclose(model.predict(X), X @ np.linalg.lstsq(X, y)[0], atol=1e-10)
    assert model.factorization_ == "least squares"
    with pytest.raises(NumericalError, match=r"leave-one-out.*Raise alpha"):
        _ = model.loo_predictions_


def test_no_penalty_on_a_regular_matrix_interpolates() -> None:
    model = KernelRidge(0.0, kernel=RBF(0.3)).fit(X, y)
    np.testing.assert_allclose(model.predict(X), y, atol=1e-8)
    assert model.certificate_.primal < 1e-15


def test_what_needs_a_fit_says_so() -> None:
    for ask in (lambda m: m.predict(X), lambda m: m.loo_predictions_, lambda m: m.loo_score_):
        with pytest.raises(ValueError, match="not fitted yet"):
            ask(KernelRidge())


def test_targets_whose_squares_overflow():
    with pytest.raises(DataError, match=r"y reaches 1e\+200, whose square overflows float64; divide y by a number"):
        KernelRidge(kernel="rbf").fit(np.eye(3), [1e200, 0.0, 1.0])


@pytest.mark.parametrize("alpha", ["loo", "gcv", "evidence"])
def test_a_penalty_chosen_by_a_few_rows_is_told(alpha):
    X = np.random.default_rng(0).normal(size=(7, 3))
    y = X[:, 0] + 0.1 * X[:, 1]
    with pytest.warns(MercerWarning, match=f"alpha='{alpha}' chooses the penalty by 1 row, which is too few"):
        KernelRidge(alpha=alpha).fit(X[:1], y[:1])
    with pytest.warns(MercerWarning, match="by 5 rows, which is too few.*Pass alpha as a number"):
        KernelRidge(alpha=alpha).fit(X, y, sample_weight=[1, 1, 0, 1, 1, 0, 1])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        KernelRidge(alpha=alpha).fit(X[:6], y[:6])
        KernelRidge(alpha=1e-8).fit(X[:1], y[:1])
