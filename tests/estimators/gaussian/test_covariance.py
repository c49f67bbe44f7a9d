"""Covariances with equal parameters against those that have each of their own."""

from __future__ import annotations

import numpy as np

from mercer._types import Array
from mercer.estimators.gaussian.covariance import KernelCovariance, TiedCovariance
from mercer.kernels import RBF, Laplacian


def test_slopes_by_equal_parameters_are_sums() -> None:
    rng = np.random.default_rng(0)
    inner = KernelCovariance(0.5 * RBF([1.0, 2.0, 3.0]) + Laplacian(1.0), rng.normal(size=(7, 3)))
    places = np.array([0, 1, 2, 1, 3])
    tied = TiedCovariance(inner, places)
    theta, weights = rng.normal(size=4), rng.normal(size=(7, 7))
    weights += weights.T

    def weigh(rows: slice, columns: slice, out: Array) -> None:
        out[...] = weights[rows, columns]

    whole, out = inner.pullback(theta[places], weigh), np.empty((2, 7, 7))
    expected = [whole[0], whole[1] + whole[3], whole[2], whole[4]]
    np.testing.assert_allclose(tied.pullback(theta, weigh), expected)
    tied.matrix(theta, out[0])
    inner.matrix(theta[places], out[1])
    np.testing.assert_array_equal(*out)
    assert (tied.n, tied.size) == (7, 4)
