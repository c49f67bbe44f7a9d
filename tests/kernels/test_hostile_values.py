"""Kernels on rows of hostile sizes: values and slopes are finite, or an error says why they cannot be."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mercer import SVC
from mercer._errors import KernelValueError
from mercer.kernels import BlendedSpectrum, Elementwise, GlobalAlignment, Kernel, Polynomial, SignaturePDE

_SCALES = (1e-320, 1e-150, 1e-20, 1.0, 30.0, 1e20, 1e149)


def _log_alignment(x: np.ndarray, z: np.ndarray, sigma: float) -> float:
    """The logarithm of the kernel by the recursion of Cuturi (2011), cell by cell."""
    with np.errstate(over="ignore"):
        g = -np.minimum((np.subtract.outer(x, z) / sigma) ** 2 / 2, 1e6)
    local = g - np.log(2 - np.exp(g))
    M = np.full((len(x) + 1, len(z) + 1), -np.inf)
    M[0, 0] = 0.0
    for i in range(len(x)):
        for j in range(len(z)):
            cells = M[i, j], M[i, j + 1], M[i + 1, j]
            largest = max(cells)
            if largest > -np.inf:
                total = sum(math.exp(cell - largest) for cell in cells)
                M[i + 1, j + 1] = local[i, j] + largest + math.log(total)
    return float(M[-1, -1])


def _normalized(rows: list[np.ndarray], sigma: float) -> np.ndarray:
    logs = np.array([[_log_alignment(x, z, sigma) for z in rows] for x in rows])
    halves = 0.5 * np.diag(logs)
    return np.exp(logs - halves[:, None] - halves)


def test_random_walks_are_not_nan() -> None:
    X = np.cumsum(np.random.default_rng(0).normal(size=(40, 120)), axis=1) / 5
    kernel = GlobalAlignment(1.0).normalized()
    K = kernel(X)
    # Pairs that are apart: what is left of them is far below the least number.
    assert (K == 0).any() and K.min() >= 0 and K.max() == 1
    few = list(X[:3])
    np.testing.assert_allclose(kernel(few), _normalized(few, 1.0), rtol=1e-11, atol=1e-290)
    assert np.isfinite(kernel.pullback(X, None, np.ones(K.shape))).all()
    assert SVC(kernel=kernel).fit(X, X[:, -1] > 0).score(X, X[:, -1] > 0) == 1.0


@st.composite
def _series(draw: st.DrawFn) -> np.ndarray:
    seed, length = draw(st.integers(0, 2**32 - 1)), draw(st.sampled_from([1, 2, 7, 16, 33]))
    step = draw(st.sampled_from(_SCALES)) * np.random.default_rng(seed).normal(size=length)
    return np.clip(np.cumsum(step) if draw(st.booleans()) else step, -1e150, 1e150)


@given(st.lists(_series(), min_size=2, max_size=4), st.sampled_from([1e-140, 1e-20, 0.3, 1.0, 1e20, 1e140]))
@settings(max_examples=25, deadline=None)
def test_alignments_of_any_scale_are_finite_and_right(rows: list[np.ndarray], sigma: float) -> None:
    kernel = GlobalAlignment(sigma).normalized()
    K = kernel(rows)
    np.testing.assert_allclose(K, _normalized(rows, sigma), rtol=1e-11, atol=1e-290)
    np.testing.assert_allclose(kernel(rows, rows), K, rtol=1e-12, atol=1e-290)
    weights = np.ones(K.shape)
    for form in (kernel, GlobalAlignment(sigma), GlobalAlignment(sigma, triangular=3).normalized()):
        assert np.isfinite(form(rows)).all() and np.isfinite(form.pullback(rows, None, weights)).all()


def test_one_value_beside_a_thousand() -> None:
    rng = np.random.default_rng(1)
    rows = [np.array([0.5]), np.cumsum(rng.normal(size=1000)) / 5, np.zeros(1000), np.array([1e150]), np.full(900, 3.0)]
    kernel = GlobalAlignment(1.0).normalized()
    K = kernel(rows)
    assert np.isfinite(K).all() and (K <= 1).all() and np.linalg.eigvalsh(K)[0] >= -1e-12
    assert np.isfinite(kernel.pullback(rows, None, np.ones(K.shape))).all()


def test_slopes_where_the_gaussian_of_points_is_zero() -> None:
    walk = [np.cumsum(np.random.default_rng(2).normal(size=9)), np.zeros(4)]
    for kernel in (
        SignaturePDE(length_scale=1e-140, time=0.0),
        SignaturePDE(length_scale=1e-140, time=1.0).normalized(),
    ):
        assert np.isfinite(kernel.pullback(walk, None, np.ones((2, 2)))).all()


@pytest.mark.parametrize(
    ("kernel", "rows"),
    [
        (Polynomial(3), [[1e150], [1.0]]),
        (Elementwise(Polynomial(3)), [[1e150], [1.0]]),
        (BlendedSpectrum(5, decay=1e140), ["gram", "mercer"]),
    ],
)
@pytest.mark.parametrize("use", [Kernel.__call__, Kernel.diagonal, lambda k, X: k.pullback(X, None, np.ones((2, 2)))])
def test_a_diagonal_beyond_float64_is_an_error(kernel: Kernel, rows: Any, use: Callable[..., Any]) -> None:
    with np.errstate(over="ignore"), pytest.raises(KernelValueError, match=r"returned (inf|nan)"):
        use(kernel.normalized(), rows)


def test_rows_of_length_zero_have_the_value_zero() -> None:
    K = BlendedSpectrum(3).normalized()(["", "abc", ""])
    np.testing.assert_allclose(K, np.diag([0.0, 1.0, 0.0]), rtol=1e-15)


def test_values_beyond_single_precision_are_an_error_there() -> None:
    rows = np.zeros((2, 80), np.float32)
    assert GlobalAlignment(1.0)(rows.astype(np.float64))[0, 1] > 1e39
    with pytest.raises(KernelValueError, match="returned inf"):
        GlobalAlignment(1.0)(rows)
