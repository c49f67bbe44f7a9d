"""Digits of distances: no offset, cluster, far row, precision or order of rows takes them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

from mercer import GaussianProcessRegressor, Gram, KernelRidge
from mercer import kernels as k
from mercer.kernels import Kernel, inputs

EXACT = np.longdouble


def _differences(X: np.ndarray, Z: np.ndarray) -> np.ndarray:
    return X.astype(EXACT)[:, None] - Z.astype(EXACT)[None]


def _squares(X: np.ndarray, Z: np.ndarray, scale: Any) -> np.ndarray:
    return ((_differences(X, Z) / np.asarray(scale, EXACT)) ** 2).sum(axis=2)


def _hats(X: np.ndarray, Z: np.ndarray, width: Any) -> np.ndarray:
    return np.maximum(0, 1 - np.abs(_differences(X, Z)) / np.asarray(width, EXACT))


def _sines(X: np.ndarray, Z: np.ndarray, period: float) -> np.ndarray:
    rest = _differences(*(np.fmod(side.astype(EXACT), EXACT(period)) for side in (X, Z)))
    return (np.sin(EXACT("3.14159265358979323846264338327950288") * rest / period) ** 2).sum(axis=2)


def _chi_squares(X: np.ndarray, Z: np.ndarray) -> np.ndarray:
    sizes = X.astype(EXACT)[:, None] + Z.astype(EXACT)[None]
    return (_differences(X, Z) ** 2 / np.where(sizes > 0, sizes, 1)).sum(axis=2)


PER_COLUMN = [0.6, 1.3, 2.0]
FORMULAS = [
    (k.RBF(1.3), lambda X, Z: np.exp(-_squares(X, Z, 1.3) / 2)),
    (k.RBF(PER_COLUMN), lambda X, Z: np.exp(-_squares(X, Z, PER_COLUMN) / 2)),
    (k.Matern(1.3, nu=0.5), lambda X, Z: np.exp(-np.sqrt(_squares(X, Z, 1.3)))),
    (k.Matern(PER_COLUMN, nu=0.5), lambda X, Z: np.exp(-np.sqrt(_squares(X, Z, PER_COLUMN)))),
    (k.Matern(1.3), lambda X, Z: (lambda u: (1 + u) * np.exp(-u))(np.sqrt(3 * _squares(X, Z, 1.3)))),
    (k.RationalQuadratic(PER_COLUMN), lambda X, Z: 1 / (1 + _squares(X, Z, PER_COLUMN) / 2)),
    (k.NegativeDistance(), lambda X, Z: -np.sqrt(_squares(X, Z, 1.0))),
    (k.Laplacian(0.3), lambda X, Z: np.exp(-np.abs(_differences(X, Z)).sum(axis=2) / EXACT(0.3))),
    (k.Laplacian(PER_COLUMN), lambda X, Z: np.exp(-(np.abs(_differences(X, Z)) / PER_COLUMN).sum(axis=2))),
    (k.Anova(0.5, 1.3), lambda X, Z: np.prod(1 + _hats(X, Z, 1.3) / 2, axis=2)),
    (k.Anova(0.5, PER_COLUMN), lambda X, Z: np.prod(1 + _hats(X, Z, PER_COLUMN) / 2, axis=2)),
    (k.Periodic(1.0, period=1.7), lambda X, Z: np.exp(-2 * _sines(X, Z, 1.7))),
    (k.ChiSquared(0.7), lambda X, Z: np.exp(-EXACT(0.7) * _chi_squares(abs(X), abs(Z)))),
    (k.AdditiveChiSquared(), lambda X, Z: -_chi_squares(abs(X), abs(Z))),
]
_IDS = [repr(kernel) for kernel, _ in FORMULAS]


def _rows(rng: np.random.Generator, n: int, where: str, size: float) -> np.ndarray:
    """Rows of three columns in a place where differences may lose their digits."""
    X = rng.normal(size=(n, 3))
    if where == "far from the origin":
        return X + size
    if where == "in two groups":
        return X + size * np.sign(rng.normal(size=(n, 1)))
    if where == "beside far rows":
        X[:: max(n // 64, 1)] = size
        return X
    return X * np.where(rng.random((n, 3)) < 0.1, size, 1.0)


@pytest.mark.parametrize(("kernel", "formula"), FORMULAS, ids=_IDS)
@pytest.mark.parametrize("where", ["far from the origin", "in two groups", "beside far rows", "of uneven sizes"])
def test_values_are_those_of_differences_wherever_the_rows_are(kernel: Kernel, formula: Any, where: str) -> None:
    rng = np.random.default_rng(4)
    for size in (1e2, 1e6, 1e10):
        for given in (np.float32, np.float64):
            X, Z = _rows(rng, 70, where, size).astype(given), _rows(rng, 20, where, size).astype(given)
            if isinstance(kernel, (k.ChiSquared, k.AdditiveChiSquared)):
                X, Z = abs(X), abs(Z)
            for left, right in ((X, None), (X, Z)):
                expected = formula(left, left if right is None else right)
                for tile in (np.float32, np.float64):
                    values = Gram(kernel, left, right, dtype=tile).dense()
                    error = np.abs(values - expected) / np.maximum(1, np.abs(expected))
                    assert error.max() < 1e3 * np.finfo(tile).eps


@pytest.mark.parametrize("columns", [3, 12, 40])
def test_near_rows_among_far_groups_keep_their_digits(columns: int) -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, columns)) * 0.5 + np.repeat([[-200.0], [200.0]], 100, axis=0)
    K = k.RBF(1.0)(X.astype(np.float32))
    expected = np.exp(-_squares(*(2 * (X.astype(np.float32),)), 1.0) / 2)
    assert np.abs(K - expected).max() < 1e-5
    assert np.linalg.eigvalsh(K.astype(float))[0] > -1e-5


@pytest.mark.parametrize("kernel", [k.RBF(1.0), k.Matern(1.0), k.Laplacian(1.0), k.RationalQuadratic(1.0)], ids=repr)
def test_ordinary_rows_keep_their_values_in_any_order_beside_far_ones(kernel: Kernel) -> None:
    x = np.random.default_rng(0).normal(size=(640, 1))
    x[::10] = 1e20
    ordinary = x[:, 0] < 1e20
    expected = kernel(x[ordinary])
    for order in (np.arange(640), np.random.default_rng(1).permutation(640)):
        K = np.empty((640, 640))
        K[np.ix_(order, order)] = kernel(x[order])
        np.testing.assert_allclose(K[np.ix_(ordinary, ordinary)], expected, rtol=1e-13)


def test_a_regression_does_not_depend_on_far_rows_at_equal_steps() -> None:
    x = np.random.default_rng(0).normal(size=(640, 1))
    x[::10] = 1e20
    y = np.sin(2 * x[:, 0])
    ordinary = x[:, 0] < 1e20
    model = KernelRidge(1e-6, kernel=k.RBF(1.0)).fit(x, y)
    assert np.abs(model.predict(x[ordinary]) - y[ordinary]).max() < 1e-3


@pytest.mark.parametrize("kernel", [k.RBF, k.Matern, k.RationalQuadratic, k.Laplacian], ids=lambda c: c.__name__)
def test_slopes_by_a_scale_for_each_column_are_those_by_one_scale(kernel: type) -> None:
    X = np.array([[-1e8 - 0.5], [-1e8 + 0.5], [1e8 - 0.5], [1e8 + 0.5]])
    one, each = kernel(1.0).pullback(X, None, np.ones((4, 4))), kernel([1.0]).pullback(X, None, np.ones((4, 4)))
    np.testing.assert_allclose(each, one, rtol=1e-12)
    up, down = (kernel(np.exp(step))(X).sum() for step in (1e-5, -1e-5))
    assert each[0] == pytest.approx((up - down) / 2e-5, rel=1e-8)


def test_the_slope_by_a_period_far_from_the_origin() -> None:
    X = np.array([[-(2.0**30) - 0.5], [-(2.0**30) + 0.25], [2.0**30 - 0.5], [2.0**30 + 0.25]])
    near = k.Periodic(1.0, period=1.7)
    for rows in (X[:2], X[2:]):
        np.testing.assert_allclose(
            near.pullback(rows, None, np.ones((2, 2))), near.pullback(rows - rows[0], None, np.ones((2, 2))), rtol=1e-9
        )


def test_a_process_learns_beside_far_rows() -> None:
    rng = np.random.default_rng(0)
    X = rng.uniform(-3, 3, size=(80, 2))
    y = np.sin(2 * X[:, 0]) + 0.05 * rng.normal(size=80)
    X[::10] = 1e12
    y[::10] = 0.0
    evidences = [
        GaussianProcessRegressor(k.RBF(scale), noise=0.01).fit(X, y).log_marginal_likelihood_value_
        for scale in ([1.0, 1.0], 1.0)
    ]
    assert evidences[0] >= evidences[1] - 1e-6


@pytest.mark.parametrize(
    "kernel", [k.RBF(2.0), k.Matern(2.0, nu=0.5), k.NegativeDistance(), k.RBF([2.0] * 40)], ids=repr
)
@pytest.mark.parametrize("given", [np.float32, np.float64])
def test_large_sparse_rows_have_the_values_of_dense_ones(
    kernel: Kernel, given: type, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng(0)
    X = np.where(rng.random((60, 40)) < 0.2, 1e3 * rng.normal(size=(60, 40)), 0.0).astype(given)
    X[1], X[2] = X[0], X[0] * given(1 + 1e-6)
    X[3] = 0
    expected = kernel(X), kernel(X, X[::2])
    monkeypatch.setattr(inputs, "DENSE_ENTRIES", 0)
    tolerance = 100 * float(np.finfo(given).eps)
    S = sp.csr_matrix(X)
    K = kernel(S)
    np.testing.assert_allclose(K, expected[0], rtol=tolerance, atol=tolerance)
    np.testing.assert_allclose(kernel(S, sp.csr_matrix(X[::2])), expected[1], rtol=tolerance, atol=tolerance)
    np.testing.assert_array_equal(np.diag(K), kernel.diagonal(S))
    assert K[0, 1] == K[0, 0]


@pytest.mark.parametrize("size", [1e-30, 1e-22, 1e22, 1e30])
def test_single_precision_holds_rows_whose_squares_it_does_not(size: float) -> None:
    X = np.random.default_rng(0).normal(size=(30, 3)).astype(np.float32)
    for kernel, unit in ((k.RBF, k.RBF(1.0)), (k.Matern, k.Matern(1.0)), (k.Laplacian, k.Laplacian(1.0))):
        np.testing.assert_allclose(kernel(size)(X * np.float32(size)), unit(X), rtol=1e-5)
    far = np.append(X, [[size] * 3], axis=0).astype(np.float32)
    np.testing.assert_allclose(k.RBF(1.0)(far)[:30, :30], k.RBF(1.0)(X), rtol=1e-5)
