"""Support points that are independent by a margin, against dense linear algebra."""

from __future__ import annotations

import numpy as np
import pytest

from mercer.kernels import RBF, Linear, Polynomial
from mercer.solvers.online.independent import independent_points, project

RNG = np.random.default_rng(4)
X = np.vstack([RNG.normal(size=(60, 2)), np.zeros((2, 2))])
X = np.vstack([X, X[:10] + 1e-7, X[5:9]])


@pytest.mark.parametrize("kernel", [RBF(0.3), RBF(3.0), RBF(100.0), Linear(), 1e8 * Polynomial(degree=3)], ids=str)
@pytest.mark.parametrize("tau", [1e-3, 1e-5])
def test_every_point_keeps_its_share_outside_the_span_of_the_others(kernel, tau):
    K = kernel(X)
    basis, inverse = independent_points(K, tau)
    part = K[np.ix_(basis, basis)]
    shares = 1.0 / (inverse.diagonal() * part.diagonal())
    assert shares.min() >= tau and len(set(basis)) == len(basis)
    # What an inverse is good for: a system has a small residual, up to eps / tau for each point.
    rounding = np.finfo(np.float64).eps * len(part) / tau
    assert np.abs(inverse @ part - np.eye(len(part))).max() <= rounding * np.sqrt(part.max() / part.diagonal().min())
    # No other point is far outside: the next one of the factorisation would have been taken.
    rest = K.diagonal() - np.einsum("ij,jk,ik->i", K[:, basis], inverse, K[:, basis])
    assert rest.max() <= 100 * tau * K.diagonal().max()


def test_a_projection_is_that_of_least_squares():
    K = RBF(1.0)(X)
    theta = RNG.normal(size=(2, len(X)))
    basis, inverse = independent_points(K, 1e-3)
    own, lost = project(K, basis, inverse, theta)
    others = np.setdiff1d(np.arange(len(X)), basis)
    assert len(others) >= 10
    expected = np.linalg.lstsq(K[np.ix_(basis, basis)], K[basis] @ theta.T, rcond=None)[0].T
    np.testing.assert_allclose(own, expected, rtol=1e-9, atol=1e-9)
    difference = theta.copy()
    difference[:, basis] -= own
    distance = np.sqrt(np.einsum("ki,ij,kj->k", difference, K, difference))
    np.testing.assert_allclose(lost, distance, rtol=1e-6)


def test_points_of_no_length_span_nothing():
    basis, inverse = independent_points(np.zeros((3, 3)), 1e-5)
    assert len(basis) == 0 and inverse.shape == (0, 0)
    own, lost = project(np.zeros((3, 3)), basis, inverse, np.ones((2, 3)))
    assert own.shape == (2, 0) and (lost == 0).all()
    basis, inverse = independent_points(np.diag([0.0, 4.0]), 1e-5)
    assert basis.tolist() == [1] and inverse.tolist() == [[0.25]]
