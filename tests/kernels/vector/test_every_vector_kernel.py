"""What holds for kernels on vectors, whatever the vectors: scales, places, duplicates, constant columns, zeros."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from mercer import kernels as k
from mercer.kernels import Kernel

STATIONARY = [
    k.RBF(0.9),
    k.RBF([0.5, 1.0, 2.0]),
    k.Matern(1.1, nu=0.5),
    k.Matern(1.1),
    k.Matern([1.0, 2.0, 0.5], nu=2.5),
    k.RationalQuadratic(1.3, alpha=0.8),
    k.Laplacian(1.4),
    k.Periodic(1.0, period=2.5),
    k.NegativeDistance(1.3),
    0.5 * k.RBF(1.0) + k.Matern(2.0) * k.RBF(0.4),
    k.RBF(1.0).on([0, 2]),
]
EVERYWHERE = [
    *STATIONARY,
    k.Linear(),
    k.Polynomial(2),
    k.ArcCosine(0),
    k.ArcCosine(1),
    k.ArcCosine(2),
    k.Tanimoto(),
    k.AllSubsets(),
    k.Hamming(),
    k.Linear().normalized(),
    (k.Linear() + k.RBF()).normalized(),
]

_BASE = np.random.default_rng(11).normal(size=(9, 3))
# A duplicate, a row of zeros, a constant column, rows that all but agree.
ODD = np.vstack([_BASE, _BASE[:2], np.zeros((2, 3)), _BASE[:1] + 1e-9])
ODD[:, 1] = 0.25
ODD[11] = 0


@pytest.mark.parametrize("kernel", EVERYWHERE, ids=repr)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_duplicates_zero_rows_and_constant_columns(kernel: Kernel, dtype: type) -> None:
    X = ODD.astype(dtype)
    K = kernel(X).astype(np.float64)
    tolerance = 1e-8 if dtype == np.float64 else 1e-3
    size = np.abs(K).max()
    assert np.isfinite(K).all()
    assert np.abs(K[0] - K[9]).max() <= tolerance * size, "equal rows have equal values"
    if kernel.definiteness == "conditional":
        K = K - K.mean(axis=0) - K.mean(axis=1)[:, None] + K.mean()
    assert np.linalg.eigvalsh((K + K.T) / 2)[0] >= -tolerance * size


@pytest.mark.parametrize("kernel", STATIONARY, ids=repr)
@pytest.mark.parametrize("place", [1e3, -1e6, np.array([0.0, 1e6, -1e5])])
def test_stationary_kernels_do_not_see_where_the_data_are(kernel: Kernel, place: float) -> None:
    # Multiples of 1/16 stay exact at a distance of a million.
    X = np.round(_BASE * 16) / 16
    values, far = kernel(X, X[::-1]), kernel(X + place, X[::-1] + place)
    assert np.abs(values - far).max() <= 1e-8 * np.abs(values).max()


@pytest.mark.parametrize("kernel", STATIONARY, ids=repr)
def test_a_far_cluster_does_not_spoil_small_distances(kernel: Kernel) -> None:
    X = np.round(_BASE * 1024) / 1024
    both = np.vstack([X, X + 4096.0])
    alone, beside = kernel(X), kernel(both)[9:, 9:]
    assert np.abs(alone - beside).max() <= 1e-5 * np.abs(alone).max()


@given(st.floats(-3, 3), st.sampled_from(["scalar", "vector"]), st.sampled_from([0.5, 1.5, 2.5, 1.1, np.inf]))
def test_gradients_over_length_scales(exponent: float, kind: str, nu: float) -> None:
    scale = 10**exponent
    length_scale = scale if kind == "scalar" else [scale, 2 * scale, 0.5 * scale]
    # Data as large as the length scale, so that values are neither all 0 nor all 1, in a unit of their own.
    X = _BASE * scale
    weights = np.sin(np.arange(81.0)).reshape(9, 9)
    for kernel in (k.Matern(length_scale, nu=nu), k.RationalQuadratic(length_scale, alpha=0.6)):
        theta = kernel.theta
        gradient = kernel.pullback(X, None, weights)
        for i, step in enumerate(1e-5 * np.eye(len(theta))):
            up, down = kernel.with_theta(theta + step)(X), kernel.with_theta(theta - step)(X)
            assert gradient[i] == pytest.approx((weights * (up - down)).sum() / 2e-5, rel=1e-4, abs=1e-6)


@pytest.mark.parametrize("length_scale", [1e-3, 1e-2, 1.0, 1e2, 1e3])
@pytest.mark.parametrize("make", [k.RBF, k.Laplacian, k.Matern, k.RationalQuadratic], ids=lambda c: c.__name__)
def test_gradients_on_data_of_another_scale(make: type, length_scale: float) -> None:
    kernel = make([length_scale, 2 * length_scale, length_scale])
    X = np.vstack([_BASE, _BASE + length_scale * 0.3])
    weights = np.sin(np.arange(18.0 * 18)).reshape(18, 18)
    gradient, theta = kernel.pullback(X, None, weights), kernel.theta
    # A wide step: distances of a thousandth of the data's spread have lost digits that a narrow one would magnify.
    differences = [
        (weights * (kernel.with_theta(theta + s)(X) - kernel.with_theta(theta - s)(X))).sum() / 2e-3
        for s in 1e-3 * np.eye(len(theta))
    ]
    np.testing.assert_allclose(gradient, differences, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("size", [1e-149, 1e-110, 1e-60, 1e60, 1e110, 1e149])
def test_slopes_at_length_scales_far_from_the_data_are_about_zero(size: float) -> None:
    X = np.abs(_BASE)
    for make in (k.RBF, k.Matern, k.RationalQuadratic, k.Laplacian):
        for kernel in (make(size), make([size] * 3)):
            np.testing.assert_allclose(kernel.pullback(X, None, np.ones((9, 9))), 0, atol=1e-12)
    for nu in (0.5, 1.1, 2.5, np.inf):
        assert abs(k.Matern(size, nu=nu).pullback(X, None, np.ones((9, 9)))[0]) < 1e-12
    for kernel in (k.Periodic(size), k.ExpSineSquared(size), k.ChiSquared(size)):
        np.testing.assert_allclose(kernel.pullback(X, None, np.ones((9, 9))), 0, atol=1e-12)


@pytest.mark.parametrize("size", [1e-110, 1e110])
def test_slopes_do_not_depend_on_the_unit(size: float) -> None:
    weights = np.sin(np.arange(81.0)).reshape(9, 9)
    for make in (k.RBF, k.Matern, k.RationalQuadratic, k.Laplacian):
        for unit in (1.3, [1.3, 0.7, 2.0]):
            expected = make(unit).pullback(_BASE, None, weights)
            found = make((size * np.asarray(unit)).tolist()).pullback(size * _BASE, None, weights)
            np.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-12)


def test_far_rows_have_the_value_zero_in_single_precision() -> None:
    X = np.array([[0.0], [1e18]], np.float32)
    for kernel in (k.RBF(1e-3), k.Matern(1e-3), k.Matern(1e-3, nu=2.5), k.Matern(1e-3, nu=0.5)):
        np.testing.assert_array_equal(kernel(X), np.eye(2))


FINITE = st.floats(-100, 100, width=32)


@given(arrays(np.float64, st.tuples(st.integers(1, 8), st.just(3)), elements=FINITE), st.sampled_from(EVERYWHERE))
def test_any_finite_data_give_a_kernel_matrix(X: np.ndarray, kernel: Kernel) -> None:
    K = kernel(X)
    size = max(np.abs(K).max(), np.finfo(float).tiny)
    assert np.isfinite(K).all()
    assert np.abs(K - K.T).max() <= 1e-12 * size
    assert np.abs(np.diag(K) - kernel.diagonal(X)).max() <= 1e-7 * size
    if kernel.definiteness == "conditional":
        K = K - K.mean(axis=0) - K.mean(axis=1)[:, None] + K.mean()
    assert np.linalg.eigvalsh((K + K.T) / 2)[0] >= -1e-7 * size


@given(arrays(np.float64, (4, 3), elements=FINITE), arrays(np.float64, (3, 3), elements=FINITE))
def test_values_do_not_depend_on_the_company(X: np.ndarray, Z: np.ndarray) -> None:
    for kernel in (k.RBF(30.0), k.Matern(30.0, nu=0.5), k.Laplacian(20.0), k.ArcCosine(1), k.Linear()):
        block = kernel(X, Z)
        alone = np.array([[kernel(x[None], z[None])[0, 0] for z in Z] for x in X])
        assert np.abs(block - alone).max() <= 1e-7 * max(np.abs(block).max(), 1e-3)
