"""Rows of zeros and ones are held as bits: the values are those of plain arithmetic."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from mercer import kernels as k
from mercer.gram import Gram
from mercer.kernels import Kernel

RNG = np.random.default_rng(8)
KERNELS = [
    k.Linear(),
    k.RBF(2.0),
    k.Matern(2.0, nu=0.5),
    k.Polynomial(2, scale=0.1),
    k.Tanimoto(),
    k.ArcCosine(1),
    k.Linear().normalized(),
    k.RBF(2.0) + 0.5 * k.Matern(3.0),
    k.NegativeDistance(),
    k.RBF(2.0) * k.Linear() + k.White(0.1),
    k.RBF(2.0).centered(RNG.integers(0, 2, (4, 70))),
    k.RBF(2.0).on([0, 69, 5]),
]


def _distances(X: np.ndarray, Z: np.ndarray) -> np.ndarray:
    return (X[:, None] != Z).sum(axis=2).astype(float)


@pytest.mark.parametrize("d", [1, 7, 63, 64, 65, 128, 130])
@pytest.mark.parametrize("dtype", [np.float32, np.float64, bool, np.uint8])
def test_counts_are_exact_for_any_number_of_columns(d: int, dtype: type) -> None:
    X, Z = RNG.integers(0, 2, (9, d)), RNG.integers(0, 2, (6, d))
    X[0], Z[0] = 1, 0
    A, B = X.astype(dtype), Z.astype(dtype)
    np.testing.assert_array_equal(k.Linear()(A, B), X @ Z.T)
    np.testing.assert_array_equal(k.Linear()(A), X @ X.T)
    np.testing.assert_allclose(k.RBF(3.0)(A, B), np.exp(-_distances(X, Z) / 18), rtol=1e-6)
    np.testing.assert_array_equal(k.Linear().diagonal(A), X.sum(axis=1))
    np.testing.assert_array_equal(k.RBF().diagonal(A), np.ones(9))


@pytest.mark.parametrize("kernel", KERNELS, ids=lambda v: f"{v!r:.50}")
@pytest.mark.parametrize("form", [np.asarray, sp.csr_matrix, sp.coo_array])
def test_binary_rows_beside_rows_that_are_almost_so(kernel: Kernel, form: type) -> None:
    """A row of halves beside them turns bits off; the values of the others must not move."""
    X, Z = RNG.integers(0, 2, (12, 70)).astype(float), RNG.integers(0, 2, (8, 70)).astype(float)
    X[3] = 0
    plain_X, plain_Z = np.vstack([X, np.full(70, 0.5)]), np.vstack([Z, np.full(70, 0.5)])
    A, B = form(X), form(Z)
    np.testing.assert_allclose(kernel(A, B), kernel(plain_X, plain_Z)[:-1, :-1], rtol=1e-7, atol=1e-10)
    np.testing.assert_allclose(kernel(A), kernel(plain_X)[:-1, :-1], rtol=1e-7, atol=1e-10)
    np.testing.assert_allclose(kernel(A, plain_Z), kernel(plain_X, plain_Z)[:-1], rtol=1e-7, atol=1e-10)
    np.testing.assert_allclose(kernel(plain_X, B), kernel(plain_X, plain_Z)[:, :-1], rtol=1e-7, atol=1e-10)
    np.testing.assert_allclose(kernel.diagonal(A), kernel.diagonal(plain_X)[:-1], rtol=1e-10)
    weights = RNG.normal(size=(12, 8))
    padded = np.zeros((13, 9))
    padded[:-1, :-1] = weights
    slopes = kernel.pullback(A, B, weights)
    np.testing.assert_allclose(slopes, kernel.pullback(plain_X, plain_Z, padded), rtol=1e-6, atol=1e-9)
    gram = Gram(kernel, A)
    np.testing.assert_allclose(gram.block([5, 1], slice(2, 9)), kernel(A)[[5, 1], 2:9], rtol=1e-12, atol=1e-12)


def test_ones_given_twice_are_twos() -> None:
    twice = sp.csr_matrix(([1.0, 1.0, 1.0], [0, 0, 1], [0, 3]), shape=(1, 2))
    assert k.Linear()(twice)[0, 0] == 5.0
    assert twice.nnz == 3, "the caller's matrix stays as it is"


def test_length_scales_for_every_column_work_on_bits() -> None:
    X = RNG.integers(0, 2, (10, 3)).astype(float)
    scaled = k.RBF([1.0, 2.0, 0.5])(X)
    np.testing.assert_allclose(scaled, k.RBF(1.0)(X / [1.0, 2.0, 0.5]), rtol=1e-12)


def test_across_tiles() -> None:
    X = RNG.integers(0, 2, (1030, 90)).astype(np.float32)
    gram = Gram(k.Linear(), X, n_jobs=2)
    expected = X @ X.T
    np.testing.assert_array_equal(gram.dense(), expected)
    np.testing.assert_allclose(gram @ X, expected @ X, rtol=1e-5)
    assert np.array_equal(gram @ X, Gram(k.Linear(), X, n_jobs=1) @ X)
