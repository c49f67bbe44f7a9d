"""Hessians whose features are made once, strip by strip: against dense algebra, in both precisions."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.linalg import eigh

from mercer import config
from mercer.gram import Gram
from mercer.kernels import RBF, Kernel, Linear
from mercer.solvers.restricted import precondition, sampled_once
from mercer.solvers.restricted.passes import StoredRows
from mercer.solvers.restricted.sampled_once import SampledOnce
from mercer.solvers.restricted.whitening import Whitening

N, M = 4000, 60


def sampled(kernel: Kernel, *, m: int = M, scale: float = 1.0, n: int = N) -> SampledOnce:
    rng = np.random.default_rng(0)
    X = scale * rng.normal(size=(n, 3))
    weights = np.where(rng.random(n) < 0.2, 0.0, rng.uniform(0.2, 3.0, n))
    Z = X[rng.choice(n, m, replace=False)]
    rows = StoredRows(Gram(kernel, X, Z, dtype=np.float64), rng.normal(size=(n, 2)), weights)
    return SampledOnce.of(rows, Whitening.of(kernel(Z)), np.random.RandomState(0))


def dense(sample: SampledOnce) -> np.ndarray:
    """``Phi^T W Phi``."""
    features = sample.white.features(sample.values.copy())
    return features.T @ (sample.weights[:, None] * features)


def precisions(sample: SampledOnce, penalty: float, monkeypatch: pytest.MonkeyPatch) -> tuple[np.ndarray, list[str]]:
    """The upper factor, and the precisions of the features and of their squares."""
    original, seen = precondition.square, []

    def square(rows, weights, dtype, factor):
        seen.extend([factor.dtype.name, np.dtype(dtype).name])
        return original(rows, weights, dtype, factor)

    with monkeypatch.context() as patch:
        patch.setattr(precondition, "square", square)
        return np.triu(sample.factor(penalty)), seen


@pytest.mark.parametrize(
    ("kernel", "penalty", "expected"),
    [
        (RBF(1.5), 1e-5, ["float64", "float64"]),
        # The landmarks are nearly dependent, and features in float32 far from those in float64.
        (RBF(8.0), 1e-2, ["float64", "float32"]),
        (RBF(0.5), 1e-2, ["float32", "float32"]),
        (RBF(1.5), 10.0, ["float32", "float32"]),
    ],
)
def test_equals_dense_algebra(kernel, penalty, expected, monkeypatch):
    sample = sampled(kernel)
    assert not sample.has_all_rows
    U, seen = precisions(sample, penalty, monkeypatch)
    assert seen == expected
    H = dense(sample) + penalty * np.eye(M)
    ratios = eigh(U.T @ U, H, eigvals_only=True)
    assert np.abs(ratios - 1).max() < (1e-6 if expected == ["float64", "float64"] else 0.05)


def test_products_are_those_of_the_features():
    sample = sampled(RBF(1.5))
    features = sample.white.features(sample.values.copy())
    expected = features.T @ (sample.weights[:, None] * sample.targets)
    np.testing.assert_allclose(sample.products(), expected, rtol=1e-6, atol=1e-8 * np.abs(expected).max())


def test_a_sample_of_all_rows_has_exact_features(monkeypatch):
    sample = sampled(RBF(1.5), n=200)
    assert sample.has_all_rows
    assert precisions(sample, 10.0, monkeypatch)[1] == ["float64", "float32"]


@pytest.mark.parametrize("scale", [1e-25, 1e25])
def test_values_beyond_single_precision(scale, monkeypatch):
    sample = sampled(Linear(), m=3, scale=scale)
    penalty = 1e3 * scale**2
    U, seen = precisions(sample, penalty, monkeypatch)
    assert seen[-2:] == ["float64", "float64"]
    np.testing.assert_allclose(U.T @ U, dense(sample) + penalty * np.eye(3), rtol=1e-9, atol=1e-9 * penalty)


def test_rows_beyond_single_precision_that_were_not_tried(monkeypatch):
    sample = sampled(Linear(), m=3)
    sample.values[[1, 2, 3]] = 1e20 * np.eye(3)
    sample.weights[[1, 2, 3]] = 1.0
    monkeypatch.setattr(sampled_once, "_TRIED", 2)
    U, seen = precisions(sample, 1e3, monkeypatch)
    assert seen == ["float32", "float32", "float64", "float64"]
    expected = dense(sample) + 1e3 * np.eye(3)
    np.testing.assert_allclose(U.T @ U, expected, rtol=1e-9, atol=1e-9 * np.abs(expected).max())


def test_weights_of_zero_alone_leave_the_penalty(monkeypatch):
    sample = sampled(RBF(1.5))
    sample.weights[:] = 0.0
    U, _ = precisions(sample, 4.0, monkeypatch)
    np.testing.assert_allclose(U, 2.0 * np.eye(M))


def test_rows_much_longer_than_those_tried_are_squared_in_double_precision(monkeypatch):
    sample = sampled(Linear(), m=3)
    sample.values[5:9] *= 1e4
    monkeypatch.setattr(sampled_once, "_TRIED", 2)
    U, seen = precisions(sample, 10.0, monkeypatch)
    assert seen[-2:] == ["float64", "float64"]
    expected = dense(sample) + 10.0 * np.eye(3)
    np.testing.assert_allclose(U.T @ U, expected, rtol=1e-9, atol=1e-9 * np.abs(expected).max())


@pytest.mark.filterwarnings("error")
def test_values_beyond_single_precision_in_other_threads_give_no_warning(monkeypatch):
    sample = sampled(RBF(0.5), n=4000)
    sample.values[1 : M + 1] = 1e39 * np.eye(M)
    sample.weights[1 : M + 1] = 1.0
    monkeypatch.setattr(sampled_once, "_TRIED", 2)
    with config(n_jobs=2):
        U, seen = precisions(sample, 1e3, monkeypatch)
    assert seen[-2:] == ["float64", "float64"] and np.isfinite(U).all()
