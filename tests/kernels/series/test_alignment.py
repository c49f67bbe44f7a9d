"""Global alignment and dynamic time warping beside plain recursions, tslearn's values, and what theory says of them."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

from mercer._errors import DataError, KernelValueError, ParameterError
from mercer.kernels import DynamicTimeWarping, GlobalAlignment, NormalizedGlobalAlignment, exp

_rng = np.random.default_rng(3)
LENGTHS = (1, 1, 2, 3, 7, 15, 16, 17, 31, 40)
WALKS = [0.4 * _rng.normal(size=(n, 3)).cumsum(axis=0) for n in LENGTHS]


def _squares(x: Any, z: Any) -> np.ndarray:
    return ((x[:, None] - z[None]) ** 2).sum(axis=2)


def _alignment(x: Any, z: Any, sigma: float, triangular: int = 0) -> float:
    """The recursion as it is written in Cuturi (2011)."""
    n, m = len(x), len(z)
    M = np.zeros((n + 1, m + 1))
    M[0, 0] = 1.0
    g = np.exp(-_squares(x, z) / (2 * sigma**2))
    if triangular:
        g *= np.maximum(0.0, 1 - np.abs(np.subtract.outer(np.arange(n), np.arange(m))) / triangular)
    for i, j in itertools.product(range(n), range(m)):
        M[i + 1, j + 1] = g[i, j] / (2 - g[i, j]) * (M[i, j] + M[i + 1, j] + M[i, j + 1])
    return float(M[n, m])


def _warping(x: Any, z: Any, window: int | None) -> float:
    n, m = len(x), len(z)
    reach = n + m if window is None else window
    M = np.full((n + 1, m + 1), np.inf)
    M[0, 0] = 0.0
    squares = _squares(x, z)
    for i, j in itertools.product(range(n), range(m)):
        if min(0, n - m) - reach <= i - j <= max(0, n - m) + reach:
            M[i + 1, j + 1] = squares[i, j] + min(M[i, j], M[i + 1, j], M[i, j + 1])
    return float(np.sqrt(M[n, m]))


def _matrix(function: Any, *arguments: Any) -> np.ndarray:
    return np.array([[function(x, z, *arguments) for z in WALKS] for x in WALKS])


@pytest.mark.parametrize("triangular", [0, 1, 2, 5, 60])
@pytest.mark.parametrize("sigma", [0.05, 1.0, 30.0])
def test_global_alignment_is_the_recursion(sigma: float, triangular: int) -> None:
    expected = _matrix(_alignment, sigma, triangular)
    kernel = GlobalAlignment(sigma, triangular)
    np.testing.assert_allclose(kernel(WALKS), expected, rtol=1e-11, atol=1e-290)
    np.testing.assert_allclose(kernel(WALKS, WALKS), expected, rtol=1e-11, atol=1e-290)
    np.testing.assert_allclose(kernel.diagonal(WALKS), np.diag(expected), rtol=1e-11)
    norms = np.sqrt(np.diag(expected))
    np.testing.assert_allclose(kernel.normalized()(WALKS), expected / np.outer(norms, norms), rtol=1e-11, atol=1e-290)


@pytest.mark.parametrize("window", [None, 0, 1, 2, 5, 60])
def test_warping_is_the_recursion(window: int | None) -> None:
    expected = _matrix(_warping, window)
    np.testing.assert_allclose(DynamicTimeWarping(window)(WALKS), -expected, rtol=1e-13, atol=1e-300)
    np.testing.assert_allclose(DynamicTimeWarping(window, 2.0)(WALKS, WALKS), -(expected**2), rtol=1e-13, atol=1e-300)


# tslearn 0.10.0: help(tslearn.metrics.gak), help(cdist_gak), help(unnormalized_gak).
A, B, C = [1.0, 2, 2, 3], [1.0, 2, 3, 4], [1.0, 2, 2]


def test_values_of_tslearn() -> None:
    together = GlobalAlignment(2.0).normalized()([C, B], [A, B, A])
    expected = [[0.71059484, 0.29722877, 0.71059484], [0.65629661, 1.0, 0.65629661]]
    np.testing.assert_allclose(together, expected, atol=5e-9)
    assert GlobalAlignment(1.0)([A], [B])[0, 0] == pytest.approx(3.745675, abs=5e-7)
    assert GlobalAlignment(2.0)([[1, 2, 3]], [A])[0, 0] == pytest.approx(15.358, abs=1e-3)
    assert DynamicTimeWarping()([[1, 2, 3]], [[1.0, 2, 2, 3], [1.0, 2, 2, 3, 4]]).tolist() == [[0.0, -1.0]]


def test_beside_tslearn() -> None:
    metrics = pytest.importorskip("tslearn.metrics")
    kernel = GlobalAlignment(0.7).normalized()
    longer = [*WALKS, 0.1 * _rng.normal(size=(450, 3)).cumsum(axis=0)]
    np.testing.assert_allclose(kernel(longer), metrics.cdist_gak(longer, sigma=0.7), rtol=1e-10, atol=1e-300)
    for options, window in (({}, None), ({"global_constraint": "sakoe_chiba", "sakoe_chiba_radius": 3}, 3)):
        expected = metrics.cdist_dtw(longer, **options)
        np.testing.assert_allclose(-DynamicTimeWarping(window)(longer), expected, rtol=1e-12)


def test_long_series_neither_overflow_nor_vanish() -> None:
    rng = np.random.default_rng(0)
    long = [rng.normal(size=n).cumsum() * 0.01 for n in (900, 850, 600)]
    kernel = GlobalAlignment(5.0)
    K = kernel.normalized()(long)
    # The logarithms by log-sum-exp, cell by cell.
    logs = np.array([[_logarithm(x, z, 5.0) for z in long] for x in long])
    halves = 0.5 * np.diag(logs)
    np.testing.assert_allclose(K, np.exp(logs - halves[:, None] - halves), rtol=1e-9)
    assert K[0, 1] > 1e-3
    with pytest.raises(KernelValueError, match=r"exceed the range of float64 .*kernel.normalized\(\)"):
        kernel(long)
    with pytest.raises(KernelValueError, match="exceed the range of float64"):
        kernel.diagonal(long)
    # Small values, whose logarithms are far below those of float64.
    far = [np.zeros(900)], [np.full(900, 2.0)]
    assert GlobalAlignment(1.0)(*far) == GlobalAlignment(1.0).normalized()(*far) == 0.0


def _logarithm(x: np.ndarray, z: np.ndarray, sigma: float) -> float:
    g = -((x[:, None] - z) ** 2) / (2 * sigma**2)
    g -= np.log(2 - np.exp(g))
    row = np.full(len(z) + 1, -np.inf)
    row[0] = 0.0
    for local in g:
        above = np.logaddexp(row[1:], row[:-1])
        row = np.full(len(z) + 1, -np.inf)
        # r_j = local_j + logaddexp(r_{j-1}, above_j): a sum with the partial sums of local taken out.
        total = np.cumsum(local)
        row[1:] = total + np.logaddexp.accumulate(above - (total - local))
    return float(row[-1])


@pytest.mark.parametrize("triangular", [0, 12])
@pytest.mark.parametrize("sigma", [1e-2, 1e-1, 1.0, 10.0, 1e3])
def test_slopes_beside_differences(sigma: float, triangular: int) -> None:
    # At small scales only series that almost agree have slopes at all.
    X = [w + 0.3 * sigma * _rng.normal(size=w.shape) for w in (WALKS[7], WALKS[7], WALKS[8], WALKS[9])] + [WALKS[7]]
    for kernel in (GlobalAlignment(sigma, triangular), GlobalAlignment(sigma, triangular).normalized()):
        step = 1e-5
        up, down = (kernel.with_theta(kernel.theta + s)(X) for s in (step, -step))
        differences, largest = (up - down) / (2 * step), kernel(X).max()
        for i, j in itertools.product(range(len(X)), repeat=2):
            weights = np.zeros((len(X), len(X)))
            weights[i, j] = 1.0
            size = max(abs(differences[i, j]), 1e-5 * largest)
            assert abs(kernel.pullback(X, None, weights)[0] - differences[i, j]) <= 1e-4 * size
            assert abs(kernel.pullback(X, X, weights)[0] - differences[i, j]) <= 1e-4 * size


def test_slopes_of_long_series() -> None:
    X = [0.02 * _rng.normal(size=n).cumsum() for n in (1000, 1100)]
    kernel, weights = GlobalAlignment(1.0).normalized(), np.array([[0.0, 1.0], [0.0, 0.0]])
    up, down = (kernel.with_theta([s])(X)[0, 1] for s in (1e-5, -1e-5))
    assert kernel.pullback(X, None, weights)[0] == pytest.approx((up - down) / 2e-5, rel=1e-4)


@pytest.mark.parametrize("sigma", [0.1, 0.5, 2.0])
@pytest.mark.parametrize("triangular", [0, 3])
def test_global_alignment_is_positive(sigma: float, triangular: int) -> None:
    for _ in range(20):
        X = [_rng.choice([0.3, 1.0, 3.0]) * _rng.normal(size=_rng.integers(1, 5)) for _ in range(12)]
        eigenvalues = np.linalg.eigvalsh(GlobalAlignment(sigma, triangular).normalized()(X))
        assert eigenvalues[0] >= -1e-13 * eigenvalues[-1]


def test_odd_series() -> None:
    constant = [[2.0] * n for n in (1, 2, 3)]
    # Delannoy numbers: the number of alignments, each of weight 1.
    delannoy = [[1, 1, 1], [1, 3, 5], [1, 5, 13]]
    np.testing.assert_allclose(GlobalAlignment(0.1)(constant), delannoy, rtol=1e-14)
    assert np.abs(DynamicTimeWarping()(constant)).max() == 0.0
    assert np.array_equal(GlobalAlignment(0.1).normalized()([[5.0]], [[5.0], [5.0, 90.0]]), [[1.0, 0.0]])
    walk = np.cumsum(_rng.normal(size=20))
    repeated = np.repeat(walk, 3)
    assert DynamicTimeWarping()([walk], [walk, repeated]).tolist() == [[0.0, 0.0]]
    assert DynamicTimeWarping().definiteness == exp(0.5 * DynamicTimeWarping()).definiteness == "indefinite"


def test_the_normalised_form() -> None:
    kernel = GlobalAlignment(2.0, triangular=4).fixed("sigma")
    form = kernel.normalized()
    assert isinstance(form, NormalizedGlobalAlignment) and form.normalized() is form
    assert repr(form) == "GlobalAlignment(2.0, triangular=4).normalized().fixed('sigma')" and form.theta.size == 0
    assert form.definiteness == "positive"


def test_a_column_of_a_table_and_arrays_of_three_dimensions() -> None:
    pd = pytest.importorskip("pandas")
    X = _rng.normal(size=(6, 9, 2))
    expected = GlobalAlignment(2.0)(list(X))
    assert np.array_equal(GlobalAlignment(2.0)(X), expected)
    frame = pd.DataFrame({"v": np.arange(6.0), "walk": list(X)})
    assert np.array_equal(GlobalAlignment(2.0)(frame["walk"]), expected)
    assert GlobalAlignment(2.0)(X.astype(np.float32)).dtype == np.float32


def test_mistakes_are_named() -> None:
    with pytest.raises(DataError, match="the same number of channels, but have 1 and 2"):
        GlobalAlignment(1.0)([[1.0, 2.0]], [np.zeros((3, 2))])
    with pytest.raises(ParameterError, match="triangular must be a whole number, 0 for no band, but is -1"):
        GlobalAlignment(1.0, triangular=-1)
    with pytest.raises(ParameterError, match="sigma must be finite and above 0"):
        GlobalAlignment(0.0)
    with pytest.raises(ParameterError, match=r"window must be a whole number of at least 0, or None, but is 0\.5"):
        DynamicTimeWarping(0.5)  # type: ignore[arg-type]
    with pytest.raises(ParameterError, match="exponent must be a number above 0, but is 0"):
        DynamicTimeWarping(exponent=0)
