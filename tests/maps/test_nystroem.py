"""Nystroem's method: exact on the span of the landmarks, and as near as theory says elsewhere."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import mercer
from mercer._errors import IndefiniteKernelError, MemoryBudgetError, NumericalError, ParameterError
from mercer.kernels import RBF, Laplacian, Linear, Matern, NegativeDistance, Polynomial, Sigmoid
from mercer.maps import NystroemMap

METHODS = ("uniform", "kmeans", "leverage", "rpcholesky")
EPS = float(np.finfo(float).eps)
X = np.random.default_rng(5).normal(size=(60, 3))

every_method = pytest.mark.parametrize("method", METHODS)


def left_over(K: np.ndarray, phi: NystroemMap, rows: np.ndarray) -> np.ndarray:
    F = phi.fit(rows).transform(rows)
    return K - F @ F.T


@every_method
@pytest.mark.parametrize("kernel", [RBF(0.5), Laplacian(1.0), Matern(1.0) + Linear(), Polynomial(2)], ids=repr)
def test_at_full_rank_it_is_exact(method: str, kernel: Any) -> None:
    K = kernel(X)
    size = np.linalg.norm(K, 2)
    # What is dropped are eigenvalues below 60 EPS times the largest, and rounding of the rest is of the same order.
    assert np.abs(left_over(K, NystroemMap(kernel, 60, method=method, random_state=0), X)).max() <= 4 * 60 * EPS * size


@every_method
def test_a_kernel_of_low_rank_is_exact_from_its_rank_on(method: str) -> None:
    # Polynomials of degree 2 in three columns: ten dimensions.
    kernel = Polynomial(2)
    K = kernel(X)
    phi = NystroemMap(kernel, 15, method=method, random_state=0)
    assert np.abs(left_over(K, phi, X)).max() <= 1e-10 * np.abs(K).max()
    assert np.linalg.matrix_rank(phi.normalization_) == 10
    if method == "rpcholesky":
        assert phi.n_output_features_ <= 12


@every_method
def test_what_is_left_is_positive_and_zero_on_the_landmarks(method: str) -> None:
    kernel = RBF(1.0)
    K = kernel(X)
    phi = NystroemMap(kernel, 20, method=method, random_state=1)
    rest = left_over(K, phi, X)
    assert np.linalg.eigvalsh(rest)[0] >= -60 * EPS * np.linalg.norm(K, 2) * 20
    F = phi.transform(phi.landmarks_)
    np.testing.assert_allclose(F @ F.T, kernel(phi.landmarks_), atol=1e-12)
    if phi.landmark_indices_ is not None:
        np.testing.assert_array_equal(phi.landmarks_, X[phi.landmark_indices_])
        assert len(set(phi.landmark_indices_.tolist())) == 20


@every_method
def test_errors_fall_with_the_number_of_landmarks(method: str) -> None:
    kernel = RBF(1.5)
    K = kernel(X)
    means = [
        np.mean([np.trace(left_over(K, NystroemMap(kernel, m, method=method, random_state=s), X)) for s in range(10)])
        for m in (5, 10, 20, 40)
    ]
    assert all(b < 0.7 * a for a, b in itertools.pairwise(means))


def test_randomly_pivoted_cholesky_keeps_its_promise() -> None:
    kernel = RBF(1.0)
    K = kernel(X)
    values = np.linalg.eigvalsh(K)[::-1]
    for r in (3, 6):
        best = values[r:].sum()
        # With epsilon = 1: at most twice the best, in the mean.
        m = math.ceil(r + r * math.log(values.sum() / best))
        results = [
            np.trace(left_over(K, NystroemMap(kernel, m, method="rpcholesky", random_state=s), X)) for s in range(40)
        ]
        assert np.mean(results) <= 2 * best


def test_chances_find_the_few_that_are_far_away(rng: np.random.Generator) -> None:
    rows = np.vstack([0.01 * rng.normal(size=(300, 2)), 100 * np.arange(1, 7)[:, None] * np.ones((1, 2))])
    kernel = RBF(1.0)
    K = kernel(rows)
    traces = {
        method: [np.trace(left_over(K, NystroemMap(kernel, 12, method=method, random_state=s), rows)) for s in range(5)]
        for method in METHODS
    }
    # Of six far rows each costs 1 if it is missed, and twelve of 306 rows seldom hold one.
    assert np.mean(traces["uniform"]) > 4
    assert max(traces["rpcholesky"]) < 0.01 and max(traces["kmeans"]) < 0.1
    assert np.mean(traces["leverage"]) < 0.5 * np.mean(traces["uniform"])


@every_method
def test_sparse_rows_single_precision_and_threads(method: str, rng: np.random.Generator) -> None:
    phi = NystroemMap(RBF(2.0), 15, method=method, random_state=0)
    F = phi.fit(X).transform(X)
    S = sp.csr_matrix(X)
    G = NystroemMap(RBF(2.0), 15, method=method, random_state=0).fit(S).transform(S)
    K = RBF(2.0)(X)
    for other in (G, phi.transform(S)):
        assert np.abs(other @ other.T - K).max() < 2 * np.abs(F @ F.T - K).max() + 1e-10
    single = phi.transform(X.astype(np.float32))
    assert single.dtype == np.float32
    assert np.abs(single @ single.T - F @ F.T).max() < 1e-5
    rows = rng.normal(size=(300_000 // 2, 3))
    with mercer.config(n_jobs=1):
        one = phi.transform(rows)
    with mercer.config(n_jobs=2):
        np.testing.assert_array_equal(phi.transform(rows), one)


@every_method
def test_rows_of_zeros_and_more_landmarks_than_rows(method: str) -> None:
    zeros = np.zeros((4, 3))
    assert (NystroemMap(Linear(), 1, method=method, random_state=0).fit(zeros).transform(zeros) == 0).all()
    phi = NystroemMap(RBF(1.0), 1000, method=method, random_state=0).fit(X)
    assert phi.n_output_features_ <= 60


@every_method
def test_what_cannot_be_made(method: str) -> None:
    with mercer.config(memory="1KiB"), pytest.raises(MemoryBudgetError, match=r"KiB.*1\.0 KiB left"):
        NystroemMap(method=method).fit(X)


@every_method
@pytest.mark.filterwarnings("ignore:(overflow|invalid value) encountered:RuntimeWarning")
def test_kernel_values_that_overflow(method: str) -> None:
    with pytest.raises(NumericalError, match=r"Linear\(\) returned inf; scale the columns of X"):
        NystroemMap(Linear(), 3, method=method).fit(1e160 * X)
    # Each of them is a number, and their sum is none.
    large = np.full((60, 1), 1e153) + np.arange(60.0)[:, None] * 1e152
    with pytest.raises(NumericalError, match=r"k\(x, x\) of Linear\(\) overflow, or their sum. Scale the columns of X"):
        NystroemMap(Linear(), 3, method=method).fit(large)
    phi = NystroemMap(Linear(), 3, method=method, random_state=0)
    F = 2.0**-400 * phi.fit_transform(2.0**400 * X)
    np.testing.assert_allclose(F @ F.T, X @ X.T, atol=1e-12)


def test_parameters_that_are_refused() -> None:
    for phi, error, words in [
        (NystroemMap("rbff"), ParameterError, "there is no kernel 'rbff'"),
        (NystroemMap(n_components=0), ParameterError, "n_components must be a whole number"),
        (NystroemMap(method="best"), ParameterError, "method must be one of 'uniform'.*but is 'best'"),
        (NystroemMap(method=["uniform"]), ParameterError, "method must be one of"),
        (NystroemMap(random_state="x"), ParameterError, "random_state must be a whole number"),
        (NystroemMap(Linear() + Sigmoid()), IndefiniteKernelError, r"but Sigmoid\(1.0\) is not\."),
        (NystroemMap(NegativeDistance()), IndefiniteKernelError, "positive semi-definite"),
    ]:
        with pytest.raises(error, match=words):
            phi.fit(X)
