"""Products in float64 against the same in rational numbers."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from mercer import kernels
from mercer.solvers.rounding import product_rounding


@pytest.mark.parametrize("far", [0.0, 1e3, 1e8])
@pytest.mark.parametrize("n, d", [(5, 1), (40, 4), (120, 2)])
def test_no_product_is_farther_from_the_exact_one(n, d, far):
    rng = np.random.default_rng(n)
    X, V = far + rng.normal(size=(n, d)), rng.normal(size=(n, 2)) * np.array([1.0, 1e-5])
    V[:, 1] -= V[:, 1].mean()
    K = kernels.Linear()(X)
    rows, columns = (np.vectorize(Fraction, otypes=[object])(part) for part in (X, V))
    error = np.vectorize(Fraction, otypes=[object])(K @ V) - rows @ (rows.T @ columns)
    bound = product_rounding(np.diagonal(K), V)
    assert (np.abs(error.astype(float)) <= bound).all()
    assert bound.max() <= 1e3 * n * np.finfo(float).eps * np.abs(K).max() * np.abs(V).max()
