"""How landmarks are chosen among the rows of a sample."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from mercer.kernels import RBF, Linear
from mercer.landmarks.roots import inverse_root
from mercer.landmarks.sampling import centres, leverage, leverage_bytes, pivots, uniform

CORNERS = 10.0 * np.array([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]])


def test_means_of_separate_clusters_are_found(rng: np.random.Generator) -> None:
    rows = np.repeat(CORNERS, 50, axis=0) + 0.1 * rng.normal(size=(200, 2))
    expected = np.array([rows[50 * i : 50 * (i + 1)].mean(axis=0) for i in range(4)])
    for X in (rows, sp.csr_matrix(rows), rows + 1e7):
        shift = 1e7 if X is not rows and not sp.issparse(X) else 0.0
        means = centres(X, 4, np.random.RandomState(0), None) - shift
        np.testing.assert_allclose(means[np.lexsort(means.T[::-1].round())], expected, atol=1e-8)
    weight = np.where(np.arange(200) % 2, 3.0, 1.0)
    means = centres(rows, 4, np.random.RandomState(0), weight)
    corner = np.average(rows[:50], axis=0, weights=weight[:50])
    assert np.abs(means - corner).max(axis=1).min() < 1e-12


def test_equal_rows_have_fewer_means() -> None:
    means = centres(np.repeat(CORNERS, 5, axis=0), 9, np.random.RandomState(0), None)
    np.testing.assert_allclose(sorted(means.tolist()), CORNERS, atol=1e-12)


def test_leverage_finds_rows_that_others_do_not_represent(rng: np.random.Generator) -> None:
    X = np.vstack([0.01 * rng.normal(size=(300, 2)), 100.0 + 10 * np.arange(8.0)[:, None] * np.ones(2)])
    counts = [int((leverage(RBF(1.0), X, 12, np.random.RandomState(s), None) >= 300).sum()) for s in range(5)]
    assert np.mean(counts) > 4
    weight = np.r_[np.full(300, 1e-20), np.ones(8)]
    assert (leverage(RBF(1.0), X, 8, np.random.RandomState(0), weight) >= 300).sum() >= 7
    assert leverage_bytes(1000, 10) == 2 * 8 * 1000 * 10


def test_kernels_that_are_zero_have_a_landmark_yet() -> None:
    zeros = np.zeros((6, 2))
    assert len(pivots(Linear(), zeros, 3, np.random.RandomState(0), None)) == 1
    assert len(leverage(Linear(), zeros, 3, np.random.RandomState(0), None)) == 3


def test_uniform_chances() -> None:
    random = np.random.RandomState(0)
    counts = np.bincount(np.concatenate([uniform(6, 2, random, None) for _ in range(600)]), minlength=6)
    assert np.abs(counts - 200).max() < 5 * np.sqrt(200 * 2 / 3)


def test_the_inverse_root_of_a_singular_matrix(rng: np.random.Generator) -> None:
    A = rng.normal(size=(8, 5))
    K = A @ A.T
    root = inverse_root(K)
    np.testing.assert_allclose(root @ root, np.linalg.pinv(K), atol=1e-12 * np.abs(np.linalg.pinv(K)).max() * 100)
    assert np.linalg.matrix_rank(root) == 5
