"""The factor of the landmarks' kernel matrix, in place or not, also where the diagonal has to be raised."""

from __future__ import annotations

import numpy as np
import pytest

from mercer._errors import IndefiniteKernelError
from mercer.solvers.restricted.whitening import Whitening

RNG = np.random.default_rng(0)


def matrix(n, rank, shift=0.0):
    G = RNG.normal(size=(n, rank))
    K = G @ G.T
    return (K + K.T) / 2 + shift * np.trace(K) * np.eye(n)


@pytest.mark.parametrize("K", [matrix(40, 60), matrix(300, 5), matrix(600, 5, -1e-14)])
def test_the_factor_is_the_same_in_place(K):
    apart, place = Whitening.of(K), K.copy()
    found = Whitening.of(place, overwrite=True)
    assert found.factor is place
    assert found.jitter == apart.jitter
    np.testing.assert_array_equal(np.triu(found.factor), np.triu(apart.factor))
    U = np.triu(found.factor)
    np.testing.assert_allclose(U.T @ U, K + found.jitter * np.eye(len(K)), rtol=0, atol=1e-13 * np.trace(K))


def test_the_diagonal_is_raised_where_the_matrix_is_not_positive():
    K = matrix(600, 5, -1e-14)
    assert Whitening.of(K).jitter > 10 * np.finfo(float).eps * np.trace(K)


@pytest.mark.parametrize("change", [np.asfortranarray, lambda K: K.astype(np.float32), lambda K: K[::2, ::2]])
def test_what_cannot_be_overwritten_is_copied(change):
    K = change(matrix(40, 60))
    before = K.copy()
    found = Whitening.of(K, overwrite=True)
    assert not np.shares_memory(found.factor, K)
    np.testing.assert_array_equal(K, before)


def test_an_indefinite_matrix_is_refused():
    with pytest.raises(IndefiniteKernelError, match="the 40 landmarks has a negative eigenvalue"):
        Whitening.of(matrix(40, 60, -1.0), overwrite=True)


@pytest.mark.parametrize("K", [matrix(40, 60), matrix(300, 5), matrix(600, 5, -1e-14), np.zeros((3, 3))])
def test_norms_are_those_of_the_matrix_without_jitter(K):
    beta = np.random.default_rng(1).normal(size=(len(K), 2))
    expected = np.array([b @ K @ b for b in beta.T])
    for overwrite in (False, True):
        found = Whitening.of(K.copy(), overwrite=overwrite).squared_norms(beta)
        np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-12 * np.trace(K))
