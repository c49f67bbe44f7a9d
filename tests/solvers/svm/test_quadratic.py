"""Systems of quadratic terms with a diagonal: stored matrices, features, and differences of two weights."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from mercer.gram.features import ExplicitFeatures
from mercer.solvers.svm.quadratic import DoubledQuadratic, FeatureQuadratic, StoredQuadratic


@pytest.mark.parametrize("spread", [0.0, 6.0])
@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("doubled", [False, True])
def test_features_solve_what_the_matrix_solves(doubled: bool, sparse: bool, spread: float) -> None:
    rng = np.random.default_rng(0)
    F = rng.normal(size=(80, 7)) * (rng.uniform(size=(80, 7)) < 0.5)
    both = np.concatenate([F, -F]) if doubled else F
    d, R = 10.0 ** rng.uniform(-spread, spread + 0.1, len(both)), rng.normal(size=(len(both), 2))
    K = FeatureQuadratic(ExplicitFeatures(sp.csr_array(F) if sparse else F))
    K = DoubledQuadratic(K) if doubled else K
    X = K.factor(d)(R)
    np.testing.assert_allclose(both @ (both.T @ X) + d[:, None] * X, R, atol=1e-7 * np.abs(d[:, None] * X).max())
    for Z in (X, X[:, 0]):
        np.testing.assert_allclose(K.product(Z), both @ (both.T @ Z), atol=1e-11 * np.abs(X).max())
    if not spread:
        np.testing.assert_allclose(X, StoredQuadratic(both @ both.T).factor(d)(R), atol=1e-10)


def test_a_broken_factor_is_none() -> None:
    K = StoredQuadratic(-np.eye(2))
    assert K.factor(np.full(2, 0.5)) is None
    assert DoubledQuadratic(K).factor(np.full(4, 0.5)) is None
