"""Every kernel against its formula in the literature, written as plain loops over single numbers."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.special import gamma as gamma_function
from scipy.special import kv

from mercer import kernels as k
from mercer.kernels import Kernel

_rng = np.random.default_rng(5)
X, Z = _rng.normal(size=(7, 3)), _rng.normal(size=(6, 3))
P, Q = _rng.gamma(1.0, size=(7, 3)), _rng.gamma(1.0, size=(6, 3))
BITS, MORE_BITS = _rng.integers(0, 2, (7, 8)), _rng.integers(0, 2, (6, 8))

Row = np.ndarray
Formula = Callable[[Row, Row], float]


def dot(x: Row, z: Row) -> float:
    return math.fsum(a * b for a, b in zip(x, z, strict=True))


def squared(x: Row, z: Row, scales: tuple[float, ...] = (1, 1, 1)) -> float:
    return math.fsum(((a - b) / s) ** 2 for a, b, s in zip(x, z, scales, strict=True))


def distance(x: Row, z: Row, scales: tuple[float, ...] = (1, 1, 1)) -> float:
    return math.sqrt(squared(x, z, scales))


def matern(r: float, nu: float) -> float:
    """Rasmussen & Williams (2006), equation 4.14."""
    u = math.sqrt(2 * nu) * r
    return float(2 ** (1 - nu) / gamma_function(nu) * u**nu * kv(nu, u))


def arc_cosine(x: Row, z: Row, order: int) -> float:
    """Cho & Saul (2009), equations 3 to 6."""
    size = math.sqrt(dot(x, x) * dot(z, z))
    angle = math.acos(dot(x, z) / size)
    rest = math.pi - angle
    J = {
        0: rest,
        1: math.sin(angle) + rest * math.cos(angle),
        2: 3 * math.sin(angle) * math.cos(angle) + rest * (1 + 2 * math.cos(angle) ** 2),
    }
    return size**order * J[order] / math.pi


SCALES = (1.0, 2.0, 0.5)

# Kernel, formula, rows. Rows of Z are never rows of X.
FORMULAS: list[tuple[Kernel, Formula, tuple[np.ndarray, np.ndarray]]] = [
    (k.Linear(), dot, (X, Z)),
    # every way that lecture notes write the polynomial: (x.z)^2, (x.z + c)^k, (1 + x.z)^k, (b x.z + g)^d
    (k.Linear() ** 2, lambda x, z: dot(x, z) ** 2, (X, Z)),
    (k.Polynomial(2, offset=0.0), lambda x, z: dot(x, z) ** 2, (X, Z)),
    (k.Polynomial(4, offset=2.5), lambda x, z: (dot(x, z) + 2.5) ** 4, (X, Z)),
    (k.Polynomial(3), lambda x, z: (1 + dot(x, z)) ** 3, (X, Z)),
    ((1.0 + k.Linear()) ** 3, lambda x, z: (1 + dot(x, z)) ** 3, (X, Z)),
    (k.Polynomial(5, scale=0.3, offset=0.8), lambda x, z: (0.3 * dot(x, z) + 0.8) ** 5, (X, Z)),
    ((0.3 * k.Linear() + 0.8) ** 5, lambda x, z: (0.3 * dot(x, z) + 0.8) ** 5, (X, Z)),
    # every way that they write the Gaussian: gamma, s^2, 2 sigma^2, beta
    (k.RBF.from_gamma(0.7), lambda x, z: math.exp(-0.7 * squared(x, z)), (X, Z)),
    (k.RBF(math.sqrt(1.8 / 2)), lambda x, z: math.exp(-squared(x, z) / 1.8), (X, Z)),
    (k.RBF(1.3), lambda x, z: math.exp(-squared(x, z) / (2 * 1.3**2)), (X, Z)),
    (k.RBF(1 / math.sqrt(0.4)), lambda x, z: math.exp(-0.4 / 2 * squared(x, z)), (X, Z)),
    (k.RBF(SCALES), lambda x, z: math.exp(-squared(x, z, SCALES) / 2), (X, Z)),
    (k.RBF([1.3] * 3), lambda x, z: math.exp(-squared(x, z) / (2 * 1.3**2)), (X, Z)),
    (k.ExponentialDot(), lambda x, z: math.exp(dot(x, z)), (X, Z)),
    (k.ExponentialDot(0.3), lambda x, z: math.exp(0.3 * dot(x, z)), (X, Z)),
    (k.exp(k.Linear()), lambda x, z: math.exp(dot(x, z)), (X, Z)),
    (k.Sigmoid(0.3, offset=-0.2), lambda x, z: math.tanh(0.3 * dot(x, z) - 0.2), (X, Z)),
    (k.AllSubsets(), lambda x, z: math.prod(1 + a * b for a, b in zip(x, z, strict=True)), (X, Z)),
    (
        k.Anova(0.3, 1.5),
        lambda x, z: math.prod(1 + 0.3 * max(0.0, 1 - abs(a - b) / 1.5) for a, b in zip(x, z, strict=True)),
        (X, Z),
    ),
    (k.Laplacian(1.5), lambda x, z: math.exp(-sum(abs(x - z)) / 1.5), (X, Z)),
    (k.Laplacian(SCALES), lambda x, z: math.exp(-sum(abs(x - z) / SCALES)), (X, Z)),
    *[
        (k.Matern(1.2, nu=nu), lambda x, z, nu=nu: matern(distance(x, z) / 1.2, nu), (X, Z))
        for nu in (0.3, 0.5, 1.0, 1.5, 2.5, 3.5, 7.0)
    ],
    (k.Matern(SCALES, nu=2.5), lambda x, z: matern(distance(x, z, SCALES), 2.5), (X, Z)),
    (k.Matern(1.2, nu=math.inf), lambda x, z: math.exp(-squared(x, z) / (2 * 1.2**2)), (X, Z)),
    (k.RationalQuadratic(1.1, alpha=0.7), lambda x, z: (1 + squared(x, z) / (2 * 0.7 * 1.1**2)) ** -0.7, (X, Z)),
    (k.RationalQuadratic(SCALES, alpha=2.0), lambda x, z: (1 + squared(x, z, SCALES) / 4) ** -2, (X, Z)),
    (k.Periodic(1.2, period=1.7), lambda x, z: math.exp(-2 * sum(np.sin(np.pi * (x - z) / 1.7) ** 2) / 1.2**2), (X, Z)),
    (
        k.ExpSineSquared(1.2, period=1.7),
        lambda x, z: math.exp(-2 * math.sin(math.pi * distance(x, z) / 1.7) ** 2 / 1.2**2),
        (X, Z),
    ),
    (k.NegativeDistance(), lambda x, z: -distance(x, z), (X, Z)),
    (k.NegativeDistance(1.5), lambda x, z: -(distance(x, z) ** 1.5), (X, Z)),
    (k.ChiSquared(0.7), lambda x, z: math.exp(-0.7 * sum((x - z) ** 2 / (x + z))), (P, Q)),
    (k.AdditiveChiSquared(), lambda x, z: -sum((x - z) ** 2 / (x + z)), (P, Q)),
    (k.HistogramIntersection(), lambda x, z: float(sum(np.minimum(x, z))), (P, Q)),
    *[(k.ArcCosine(n), lambda x, z, n=n: arc_cosine(x, z, n), (X, Z)) for n in (0, 1, 2)],
    (k.Tanimoto(), lambda x, z: dot(x, z) / (dot(x, x) + dot(z, z) - dot(x, z)), (X, Z)),
    (k.Tanimoto(), lambda x, z: sum(x & z) / max(sum(x | z), 1), (BITS, MORE_BITS)),
    (k.Hamming(), lambda x, z: sum(x == z) / 8, (BITS, MORE_BITS)),
    (k.Constant(0.4), lambda x, z: 0.4, (X, Z)),
    (k.White(0.4), lambda x, z: 0.0, (X, Z)),
    # what kernels are closed under
    (0.5 * k.RBF() + 2.0 * k.Linear(), lambda x, z: 0.5 * math.exp(-squared(x, z) / 2) + 2 * dot(x, z), (X, Z)),
    (k.RBF() * k.Linear(), lambda x, z: math.exp(-squared(x, z) / 2) * dot(x, z), (X, Z)),
    (k.Linear().on([2, 0]), lambda x, z: x[2] * z[2] + x[0] * z[0], (X, Z)),
    (k.Linear().scaled_by(lambda A: A[:, 0] ** 2), lambda x, z: x[0] ** 2 * dot(x, z) * z[0] ** 2, (X, Z)),
    (k.Linear().normalized(), lambda x, z: dot(x, z) / math.sqrt(dot(x, x) * dot(z, z)), (X, Z)),
    (k.Linear().warped(np.tanh), lambda x, z: dot(np.tanh(x), np.tanh(z)), (X, Z)),
    (k.Linear().centered(P), lambda x, z: dot(x - P.mean(axis=0), z - P.mean(axis=0)), (X, Z)),
    (k.NegativeDistance(2).centered(P), lambda x, z: 2 * dot(x - P.mean(axis=0), z - P.mean(axis=0)), (X, Z)),
]


@pytest.mark.parametrize(
    ("kernel", "formula", "rows"), FORMULAS, ids=[f"{i}-{f[0]!r:.40}" for i, f in enumerate(FORMULAS)]
)
def test_formula(kernel: Kernel, formula: Formula, rows: tuple[np.ndarray, np.ndarray]) -> None:
    A, B = rows
    expected = np.array([[formula(a, b) for b in B] for a in A], dtype=float)
    np.testing.assert_allclose(kernel(A, B), expected, rtol=1e-10, atol=1e-12)


def test_centred_gram_matrix_is_the_one_of_kernel_pca() -> None:
    """``K - 1K - K1 + 1K1`` with ``1_ij = 1/n``: Schoelkopf, Smola & Mueller (1998), equation A.6."""
    kernel = k.RBF(1.3) + k.Polynomial(2)
    K, ones = kernel(X), np.full((7, 7), 1 / 7)
    centred = K - ones @ K - K @ ones + ones @ K @ ones
    np.testing.assert_allclose(kernel.centered(X)(X), centred, atol=1e-12)


@pytest.mark.parametrize("order", [0, 1, 2])
def test_arc_cosine_is_the_expectation_over_a_layer_of_neurons(order: int) -> None:
    """``2 E[step(w.x) step(w.z) (w.x)^n (w.z)^n]``, Cho & Saul (2009), equation 1, by quadrature over directions."""
    x, z = np.array([1.0, 0.5]), np.array([-0.3, 1.2])

    def along(angle: float) -> float:
        w = np.array([math.cos(angle), math.sin(angle)])
        a, b = w @ x, w @ z
        return (a * b) ** order if a > 0 and b > 0 else 0.0

    # E[r^(2n)] of a Gaussian in the plane is 2^n n!.
    radial = 2**order * math.factorial(order)
    breaks = sorted(math.atan2(v[1], v[0]) + s * math.pi / 2 for v in (x, z) for s in (-1, 1))
    value = quad(along, -math.pi, 2 * math.pi - math.pi, points=breaks, limit=200)[0] / (2 * math.pi)
    assert k.ArcCosine(order)([x], [z])[0, 0] == pytest.approx(2 * radial * value, rel=1e-6)


@pytest.mark.parametrize("nu", [0.7, 3.0, 10.0, 30.0, 49.9, 50.0, 60.0, 80.0, 120.0])
def test_matern_of_any_smoothness(nu: float) -> None:
    """Where the factors of the formula are floats at all."""
    distances = np.array([0.5, 0.8, 1.0, 1.7, 3.0])
    expected = [matern(r, nu) for r in distances]
    np.testing.assert_allclose(k.Matern(nu=nu)([[0.0]], distances[:, None])[0], expected, rtol=1e-8)


@pytest.mark.parametrize("nu", [0.7, 5.0, 30.0, 60.0, 171.0, 172.0, 1e4, 1e12])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_matern_is_1_at_0_and_falls_from_there(nu: float, dtype: type) -> None:
    distances = np.array([0.0, 1e-30, 1e-12, 1e-8, 1e-4, 1e-2, 0.1, 1.0, 10.0, 1e3], dtype)
    values = k.Matern(nu=nu)(np.zeros((1, 1), dtype), distances[:, None])[0]
    assert values[0] == 1
    assert (np.diff(values) <= 1e-7).all()
    # (1 - k) is about r^2 nu / (2 (nu - 1)) for nu > 1, next to 0.
    assert values[4] == pytest.approx(1.0, abs=1e-6 if nu > 1 else 1e-3)
    if nu >= 1e4:
        rbf = k.RBF()(np.zeros((1, 1), dtype), distances[:, None])[0]
        np.testing.assert_allclose(values, rbf, atol=2e-4)


@pytest.mark.parametrize("nu", [0.3, 0.7, 1.0, 1.2, 3.0, 49.0, 50.5, 60.0, 300.0])
def test_slope_of_matern(nu: float) -> None:
    rows = np.array([0.0, 1e-9, 0.3, 0.5, 2.0, 7.0])[:, None]
    kernel, weights = k.Matern(1.3, nu=nu), np.sin(np.arange(36.0)).reshape(6, 6)
    up, down = (kernel.with_theta(kernel.theta + s)(rows) for s in (1e-5, -1e-5))
    slope = (weights * (up - down)).sum() / 2e-5
    assert kernel.pullback(rows, None, weights)[0] == pytest.approx(slope, rel=1e-5)


# ---- explicit feature maps


def test_quadratic_map_in_the_plane() -> None:
    """``phi(x) = (x1^2, x2^2, sqrt(2) x1 x2)`` gives ``(x.z)^2``; with the constant, ``(1 + x.z)^2``."""
    A, B = X[:, :2], Z[:, :2]

    def phi(V: np.ndarray) -> np.ndarray:
        return np.column_stack([V[:, 0] ** 2, V[:, 1] ** 2, math.sqrt(2) * V[:, 0] * V[:, 1]])

    def phi_with_constant(V: np.ndarray) -> np.ndarray:
        return np.column_stack([np.ones(len(V)), math.sqrt(2) * V, phi(V)])

    np.testing.assert_allclose(k.Polynomial(2, offset=0.0)(A, B), phi(A) @ phi(B).T, atol=1e-12)
    np.testing.assert_allclose(k.Polynomial(2)(A, B), phi_with_constant(A) @ phi_with_constant(B).T, atol=1e-12)


def test_all_subsets_map() -> None:
    def phi(V: np.ndarray) -> np.ndarray:
        subsets = [[c for c in range(3) if mask >> c & 1] for mask in range(8)]
        return np.column_stack([V[:, s].prod(axis=1) for s in subsets])

    np.testing.assert_allclose(k.AllSubsets()(X, Z), phi(X) @ phi(Z).T, atol=1e-12)


def test_exponential_dot_is_the_sum_of_all_powers() -> None:
    series = sum(k.Linear()(X, Z) ** p / math.factorial(p) for p in range(60))
    np.testing.assert_allclose(k.ExponentialDot()(X, Z), series, rtol=1e-10)


def test_gaussian_is_the_normalised_exponential_of_the_inner_product() -> None:
    np.testing.assert_allclose(k.ExponentialDot().normalized()(X, Z), k.RBF(1.0)(X, Z), rtol=1e-10)
    np.testing.assert_allclose(k.exp(k.Linear()).normalized()(X, Z), k.RBF(1.0)(X, Z), rtol=1e-10)


def test_gaussian_in_one_dimension_is_its_series() -> None:
    """``phi_p(x) = exp(-g x^2) sqrt((2g)^p / p!) x^p``."""
    g, x, z = 0.6, X[:, :1], Z[:, :1]

    def phi(v: np.ndarray) -> np.ndarray:
        return np.hstack([np.exp(-g * v**2) * math.sqrt((2 * g) ** p / math.factorial(p)) * v**p for p in range(60)])

    np.testing.assert_allclose(k.RBF.from_gamma(g)(x, z), phi(x) @ phi(z).T, rtol=1e-10)


def test_histogram_intersection_of_counts_is_an_inner_product_of_unary_codes() -> None:
    A, B = _rng.integers(0, 5, (6, 3)), _rng.integers(0, 5, (5, 3))

    def phi(V: np.ndarray) -> np.ndarray:
        return (V[:, :, None] > np.arange(5)).reshape(len(V), -1).astype(float)

    np.testing.assert_allclose(k.HistogramIntersection()(A, B), phi(A) @ phi(B).T)


def test_periodic_repeats() -> None:
    kernel = k.Periodic(0.8, period=1.3)
    np.testing.assert_allclose(kernel(X, Z), kernel(X + 1.3, Z - 2.6), atol=1e-12)
