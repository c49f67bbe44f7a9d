"""The leave-one-out error as a function of the kernel: values by refits, gradients by differences."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import mercer
from kernel_table import EXAMPLES
from mercer._errors import IndefiniteKernelError, MemoryBudgetError
from mercer.estimators.gaussian.covariance import KernelCovariance
from mercer.kernels import RBF, Kernel, Linear, Matern, Sigmoid
from mercer.solvers.gaussian.left_out_gradient import LeftOutObjective, LeftOutProblem

RNG = np.random.default_rng(0)
X = RNG.normal(size=(20, 3))
Y = np.c_[np.sin(X[:, 0]) + X[:, 1], np.cos(X[:, 1])] + 0.1 * RNG.normal(size=(20, 2))
W = RNG.choice([0.3, 1.0, 2.0, 4.5], 20)


def refitted(kernel: Kernel, mu: float, weights: np.ndarray) -> float:
    """The mean squared error by a fit without one observation of each row."""
    K, total = kernel(X), 0.0
    for i in range(20):
        less = weights.copy()
        less[i] -= min(1.0, weights[i])
        rows = np.flatnonzero(less)
        c = np.linalg.solve(K[np.ix_(rows, rows)] + np.diag(mu / less[rows]), Y[rows])
        total += weights[i] * ((Y[i] - K[i, rows] @ c) ** 2).sum()
    return total / weights.sum()


@pytest.mark.parametrize("weights", [np.ones(20), W], ids=["alike", "weighted"])
def test_the_value_is_that_of_refits(weights: np.ndarray) -> None:
    kernel = 2.0 * RBF([1.0, 2.0, 3.0]) + Linear()
    objective = LeftOutObjective(LeftOutProblem(KernelCovariance(kernel, X), Y, weights))
    value, _ = objective(np.append(kernel.theta, np.log(0.3)))
    assert value == pytest.approx(-np.log(refitted(kernel, 0.3, weights)), rel=1e-10)
    given = LeftOutObjective(LeftOutProblem(KernelCovariance(kernel, X), Y, weights, 0.3))
    assert given(kernel.theta)[0] == pytest.approx(value, rel=1e-12)


def check_gradient(objective: LeftOutObjective, theta: np.ndarray) -> None:
    """Differences of fourth order, to 1e-4 of each slope or what rounding leaves of them."""
    value, gradient = objective(theta)
    assert gradient.shape == theta.shape
    for i in range(len(theta)):
        step = np.zeros_like(theta)
        step[i] = 1e-3
        ends = [objective(theta + k * step)[0] for k in (-2, -1, 1, 2)]
        slope = (ends[0] - 8 * ends[1] + 8 * ends[2] - ends[3]) / (12 * step[i])
        rounding = 1e6 * np.finfo(float).eps * max(map(abs, ends)) / step[i]
        assert gradient[i] == pytest.approx(slope, rel=1e-4, abs=rounding), (i, value)


# Every kernel is beside differences of the evidence as well, which sums its slopes in the same way.
@pytest.mark.parametrize(("kernel", "data"), EXAMPLES[::3], ids=[repr(k)[:70] for k, _ in EXAMPLES[::3]])
def test_gradients_of_kernels_of_all_kinds(kernel: Kernel, data: tuple[Any, ...]) -> None:
    n = len(data[0])
    weights = np.resize([1.0, 3.0, 0.4, 2.5], n)
    # Where a kernel is not positive semi-definite, a large penalty makes the matrix so.
    mu = 0.2 - 2.0 * weights.max() * min(0.0, np.linalg.eigvalsh(kernel(data[0])).min())
    targets = np.sin(np.arange(2.0 * n)).reshape(n, 2)
    problem = LeftOutProblem(KernelCovariance(kernel, data[0]), targets, weights)
    check_gradient(LeftOutObjective(problem), np.append(kernel.theta, np.log(mu)))


def test_several_tiles() -> None:
    rows = RNG.normal(size=(530, 2))
    targets = np.sin(2 * rows[:, :1]) + 0.1 * RNG.normal(size=(530, 1))
    kernel = Matern([1.0, 2.0], nu=2.5)
    objective = LeftOutObjective(LeftOutProblem(KernelCovariance(kernel, rows), targets, np.ones(530)))
    theta = np.append(kernel.theta, np.log(0.01))
    value, _ = objective(theta)
    P = np.linalg.inv(kernel(rows) + 0.01 * np.eye(530))
    errors = (P @ targets).ravel() / P.diagonal()
    assert value == pytest.approx(-np.log(np.mean(errors**2)), rel=1e-8)
    check_gradient(objective, theta)


def test_errors_that_are_rounding_have_no_slope() -> None:
    # The targets are linear: without a penalty nothing is left of the errors.
    targets = X @ np.array([[1.0], [2.0], [-1.0]])
    kernel = 1.0 * Linear()
    objective = LeftOutObjective(LeftOutProblem(KernelCovariance(kernel, X), targets, np.ones(20)))
    value, gradient = objective(np.append(kernel.theta, np.log(1e-9)))
    assert np.isfinite(value) and value > 25
    assert np.abs(gradient).max() < 0.1


def test_what_cannot_be_computed_is_an_error() -> None:
    indefinite = Sigmoid(1.0, offset=-2.0)
    with pytest.raises(IndefiniteKernelError):
        LeftOutObjective(LeftOutProblem(KernelCovariance(indefinite, X), Y, W, 1e-3))(indefinite.theta)
    objective = LeftOutObjective(LeftOutProblem(KernelCovariance(RBF(1.0), X), Y, W, 0.1))
    with mercer.config(memory=1000), pytest.raises(MemoryBudgetError):
        objective(np.zeros(1))
