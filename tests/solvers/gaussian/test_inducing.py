"""The bounds over landmarks, their gradient and the posterior: by dense formulas, and by the exact process."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import mercer
from mercer._errors import MemoryBudgetError, NumericalError
from mercer.estimators.gaussian.covariance import covariance_of
from mercer.estimators.gaussian.cross_covariance import KernelCross
from mercer.gram import Gram, PrecomputedGram
from mercer.kernels import RBF, Kernel, Linear, Matern, White
from mercer.solvers.gaussian import inducing
from mercer.solvers.gaussian.condition import condition
from mercer.solvers.gaussian.inducing import InducingObjective, InducingRegression, project
from mercer.solvers.gaussian.inducing_bounds import evidence_bounds
from mercer.solvers.gaussian.inducing_posterior import InducingFactors, InducingPosterior
from mercer.solvers.gaussian.regression import GaussianRegression, Objective
from mercer.solvers.restricted import evidence_blocks

KERNELS = [
    2.0 * RBF([1.0, 2.0, 0.7]) + White(0.1),
    1.5 * Matern(1.0, nu=1.5),
    Linear() + 1.0 * RBF(1.0) + 0.5 * White(0.2),
]


def problem_of(kernel: Kernel, n: int, m: int, t: int = 2) -> tuple[InducingRegression, GaussianRegression]:
    rng = np.random.RandomState(n + m)
    X = rng.randn(n, 3)
    Y, variances = np.sin(2 * X[:, :1]) + 0.3 * rng.randn(n, t), rng.uniform(0.01, 0.1, n)
    exact = GaussianRegression(covariance_of(kernel, X, None), Y, variances, None, True)
    return InducingRegression(KernelCross(kernel, X, X[:m]), Y, variances, True), exact


def dense_bound(problem: InducingRegression, theta: np.ndarray) -> float:
    cross: Any = problem.covariance
    kernel, X, Z = cross.kernel.with_theta(theta[:-1]), cross.X, cross.landmarks
    K, K_nm, K_mm = kernel(X, X.copy()), kernel(X, Z.copy()), kernel(Z, Z.copy())
    s = problem.variances + np.exp(theta[-1]) + kernel(X).diagonal() - K.diagonal()
    Q = K_nm @ np.linalg.solve(K_mm, K_nm.T)
    covariance, Y = Q + np.diag(s), problem.targets
    lost = float(((K - Q).diagonal() / s).sum())
    volume = float(np.linalg.slogdet(2 * np.pi * covariance)[1])
    return -0.5 * float(np.vdot(Y, np.linalg.solve(covariance, Y)) + Y.shape[1] * (volume + lost))


@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
def test_the_bound_and_its_gradient_are_those_of_dense_formulas(kernel: Kernel) -> None:
    problem, _ = problem_of(kernel, 100, 25)
    theta, step = np.append(kernel.theta, np.log(0.05)), 1e-5
    objective = InducingObjective(problem)
    value, gradient = objective(theta)
    assert value == objective.value(theta) == pytest.approx(dense_bound(problem, theta), rel=1e-9)
    steps = step * np.eye(len(theta))
    expected = [(dense_bound(problem, theta + e) - dense_bound(problem, theta - e)) / (2 * step) for e in steps]
    np.testing.assert_allclose(gradient, expected, rtol=1e-6, atol=1e-6 * np.abs(gradient).max())


@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
def test_with_all_rows_as_landmarks_all_is_exact(kernel: Kernel) -> None:
    problem, exact = problem_of(kernel, 300, 300)
    theta = np.append(kernel.theta, np.log(0.05))
    value, gradient = InducingObjective(problem)(theta)
    expected, slopes = Objective(exact)(theta)
    assert value == pytest.approx(expected, rel=1e-9)
    np.testing.assert_allclose(gradient, slopes, atol=1e-8 * np.abs(slopes).max())
    np.testing.assert_allclose(evidence_bounds(problem, project(problem, theta)), expected, rtol=1e-8)
    new = np.random.RandomState(3).randn(20, 3)
    factors = InducingFactors.of(project(problem, theta))
    posterior = InducingPosterior(factors, project(problem, theta).beta)
    cross: Any = problem.covariance
    mean, variance = posterior.moments(Gram(kernel, new, cross.X), kernel(new).diagonal())
    true_mean, true_variance = condition(exact, theta).value.moments(Gram(kernel, new, cross.X), kernel(new).diagonal())
    np.testing.assert_allclose(mean, true_mean, atol=1e-8)
    np.testing.assert_allclose(np.sqrt(variance), np.sqrt(true_variance), rtol=1e-6)


def random_problem(seed: int) -> tuple[InducingRegression, GaussianRegression, np.ndarray]:
    rng = np.random.RandomState(seed)
    n, d, noise = 300, rng.randint(1, 6), 10 ** rng.uniform(-4, 0)
    base = RBF(np.exp(rng.uniform(-1, 1.5))) if seed % 2 else Matern(np.exp(rng.uniform(-1, 1.5)), nu=1.5)
    kernel = float(np.exp(rng.randn())) * base + (White(0.01) if seed % 3 else Linear())
    X = rng.randn(n, d)
    y = np.sin(X.sum(axis=1, keepdims=True) * rng.uniform(0.2, 3)) + rng.choice([0.3, 1, 3]) * noise**0.5 * rng.randn(
        n, 1
    )
    variances = rng.uniform(0.5, 2, n) * noise if seed % 5 else np.full(n, noise)
    chosen = rng.choice(n, int(n * rng.choice([0.03, 0.1, 0.3, 1.0])), replace=False)
    exact = GaussianRegression(covariance_of(kernel, X, None), y, variances)
    return InducingRegression(KernelCross(kernel, X, X[chosen]), y, variances), exact, kernel.theta


@pytest.mark.parametrize("seed", range(40))
def test_the_bounds_enclose_the_evidence(seed: int) -> None:
    problem, exact, theta = random_problem(seed)
    lower, upper = evidence_bounds(problem, project(problem, theta))
    evidence = Objective(exact).value(theta)
    rounding = 1e-9 * abs(evidence)
    assert lower - rounding <= evidence <= upper + rounding


def test_the_upper_bound_is_never_above_that_by_the_trace() -> None:
    problem, _ = problem_of(KERNELS[1], 200, 20, 1)
    problem = InducingRegression(problem.covariance, problem.targets, np.full(200, 0.1))
    projected = project(problem, KERNELS[1].theta)
    cross: Any = problem.covariance
    K_nm, K_mm = cross.kernel(cross.X, cross.landmarks.copy()), cross.kernel(cross.landmarks, cross.landmarks.copy())
    Q = K_nm @ np.linalg.pinv(K_mm, hermitian=True) @ K_nm.T
    y, n = problem.targets[:, 0], len(problem.targets)
    noise = np.diag(projected.s)
    quadratic = y @ np.linalg.solve(Q + noise + projected.left.sum() * np.eye(n), y)
    by_trace = -0.5 * (n * np.log(2 * np.pi) + np.linalg.slogdet(Q + noise)[1] + quadratic)
    assert projected.left.sum() > 1
    assert evidence_bounds(problem, projected)[1] <= by_trace + 1e-9 * abs(by_trace)


def test_variances_may_be_below_the_exact_ones() -> None:
    # One row tells nothing of a new one that is independent of it; over a landmark that depends on both it does.
    cross, prior = np.array([[0.5]]), np.ones(1)

    class Values:
        def landmarks(self) -> np.ndarray:
            return np.ones((1, 1))

        def block(self, rows: slice, out: np.ndarray) -> None:
            out[...] = 0.5

        def diagonals(self) -> tuple[np.ndarray, np.ndarray]:
            return np.ones(1), np.zeros(1)

    class Covariance:
        shape, size = (1, 1), 0

        def at(self, theta: np.ndarray) -> Values:
            return Values()

    problem: Any = InducingRegression(Covariance(), np.ones((1, 1)), np.array([0.25]))  # type: ignore[arg-type]
    projected = project(problem, np.zeros(0))
    posterior = InducingPosterior(InducingFactors.of(projected), projected.beta)
    _, variance = posterior.moments(PrecomputedGram(cross), prior)
    # k** - q*1^2 / (q11 + s), and the exact one is k** = 1.
    assert variance[0] == pytest.approx(1 - 0.25**2 / 0.5)


def test_blocks_of_rows_change_nothing_but_rounding(monkeypatch: pytest.MonkeyPatch) -> None:
    problem, _ = problem_of(KERNELS[0], 700, 30)
    theta = np.append(KERNELS[0].theta, np.log(0.05))
    value, gradient = InducingObjective(problem)(theta)
    monkeypatch.setattr(evidence_blocks, "_ENTRIES", 1)
    assert len(inducing.row_blocks((700, 30))) == 3
    again, slopes = InducingObjective(problem)(theta)
    assert again == pytest.approx(value, rel=1e-12)
    np.testing.assert_allclose(slopes, gradient, rtol=1e-9)


def test_without_noise_there_is_an_error() -> None:
    problem, _ = problem_of(RBF(1.0), 20, 5)
    still = InducingRegression(problem.covariance, problem.targets, 0 * problem.variances)
    with pytest.raises(NumericalError, match="noise must be positive"):
        InducingObjective(still)(RBF(1.0).theta)


def test_too_many_landmarks_for_the_memory_budget_are_an_error_before_any_work() -> None:
    problem, _ = problem_of(RBF(1.0), 50, 40)
    with mercer.config(memory=1000), pytest.raises(MemoryBudgetError, match="n_landmarks"):
        InducingObjective(problem)(np.zeros(2))
