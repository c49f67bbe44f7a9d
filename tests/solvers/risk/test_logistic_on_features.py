"""Kernel logistic regression in the space of explicit features: the answer over the kernel matrix, without it."""

from __future__ import annotations

from contextlib import ExitStack

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.linear_model import LogisticRegression

import mercer
from mercer import KernelLogisticRegression
from mercer.gram import Gram
from mercer.gram.features import FEATURES_STORAGE
from mercer.kernels import Linear, Polynomial
from mercer.solvers.risk import products

N = 2100
RNG = np.random.default_rng(0)
X = np.column_stack([RNG.normal(size=(N, 4)), np.full(N, 2.0), np.zeros(N)])
CODES = np.digitize(X[:, 0] - X[:, 1] + RNG.logistic(size=N), [-1.0, 1.0])
WEIGHTS = RNG.integers(0, 3, N).astype(float)


@pytest.mark.parametrize(
    "rows, kernel, classes",
    [(X, Linear(), 3), (sp.csc_array(X), 2.0 * Linear(), 2), (X[:, :2].astype(np.float32), Polynomial(2), 3)],
    ids=["dense", "sparse", "polynomial"],
)
def test_is_the_answer_over_the_kernel_matrix(rows, kernel, classes, monkeypatch: pytest.MonkeyPatch) -> None:
    labels = np.minimum(CODES, classes - 1)
    weights = np.maximum(WEIGHTS, 1.0)
    by_features = KernelLogisticRegression(kernel=kernel, tol=1e-6).fit(rows, labels, weights)
    assert by_features.certificate_.storage == FEATURES_STORAGE
    monkeypatch.setattr(products, "_GAIN", N * N)
    by_matrix = KernelLogisticRegression(kernel=kernel, tol=1e-6).fit(rows, labels, weights)
    assert by_matrix.certificate_.storage.startswith("held whole")
    np.testing.assert_allclose(by_features.coef_, by_matrix.coef_, atol=2e-6 * np.abs(by_matrix.coef_).max() + 1e-9)
    assert by_features.certificate_.primal == pytest.approx(by_matrix.certificate_.primal, rel=1e-9)


def test_no_kernel_matrix_is_made_and_coefficients_are_those_of_logistic_regression() -> None:
    labels = np.minimum(CODES, 1)
    with mercer.config(memory="2 MiB"):
        model = KernelLogisticRegression(kernel="linear", C=0.5, tol=1e-7).fit(X, labels, WEIGHTS)
    other = LogisticRegression(C=0.5, tol=1e-10, max_iter=1000).fit(X, labels, WEIGHTS)
    np.testing.assert_allclose(model.coef_, other.coef_, rtol=1e-4, atol=1e-6)
    assert model.certificate_.peak_bytes < 2 * 2**20 < 4 * N * N


def test_features_whose_products_read_more_are_not_made(monkeypatch: pytest.MonkeyPatch) -> None:
    def features(*_: object) -> None:
        raise AssertionError("an array that is not used")

    monkeypatch.setattr("mercer.kernels.vector.dot.polynomial_features", features)
    with ExitStack() as stack:
        # 715 monomials of 2100 rows.
        assert products.reserved_features(Gram(Polynomial(4), RNG.normal(size=(N, 9))), stack) is None


def test_the_variance_of_the_rows_is_not_computed_for_a_kernel_without_a_rate(monkeypatch: pytest.MonkeyPatch) -> None:
    def variance(*_: object) -> float:
        raise AssertionError("a pass over all rows, and a copy of them")

    monkeypatch.setattr("mercer.estimators.shared.weights.weighted_scale", variance)
    model = KernelLogisticRegression(kernel="linear").fit(X[:50], CODES[:50])
    assert model.kernel_ == Linear()
