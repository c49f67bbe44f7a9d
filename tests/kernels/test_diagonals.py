"""Diagonals with and without noise, and their gradients, against matrices of the same kernels."""

from __future__ import annotations

import numpy as np
import pytest

from mercer.kernels import RBF, Kernel, Linear, Matern, Polynomial, White
from mercer.kernels.diagonals import diagonal_of, pull_diagonal
from mercer.kernels.inputs import Rows

X = np.random.RandomState(0).randn(40, 3)
KERNELS = [
    2.0 * RBF([1.0, 0.5, 2.0]) + White(0.3),
    Linear() + 0.5 * White(0.2),
    Polynomial(3) * Linear() + Matern(1.0) + White(0.1).fixed("variance"),
    RBF(1.0).normalized() + 3.0 * Linear().on([0, 2]),
]


@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
def test_diagonals_are_those_of_matrices(kernel: Kernel) -> None:
    np.testing.assert_allclose(diagonal_of(kernel, Rows(X)), kernel(X).diagonal(), rtol=1e-12)
    # Of equal rows that are not the same ones.
    np.testing.assert_allclose(diagonal_of(kernel, Rows(X), noise=False), kernel(X, X.copy()).diagonal(), rtol=1e-12)


@pytest.mark.parametrize("noise", [True, False])
@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
def test_gradients_are_those_of_differences(kernel: Kernel, noise: bool) -> None:
    weights, theta, step = np.random.RandomState(1).randn(len(X)), kernel.theta, 1e-5

    def value(theta: np.ndarray) -> float:
        return float(weights @ diagonal_of(kernel.with_theta(theta), Rows(X), noise=noise))

    expected = [(value(theta + step * e) - value(theta - step * e)) / (2 * step) for e in np.eye(len(theta))]
    np.testing.assert_allclose(pull_diagonal(kernel, Rows(X), weights, noise=noise), expected, rtol=1e-7, atol=1e-8)
