"""Laplace's approximation over landmarks: by dense formulas, and by the classifier of all rows."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.special import logsumexp, softmax

import mercer
from mercer._errors import MemoryBudgetError, NumericalError
from mercer.estimators.gaussian.covariance import covariance_of
from mercer.estimators.gaussian.cross_covariance import KernelCross
from mercer.kernels import RBF, Kernel, Linear, Matern
from mercer.solvers.algebra.line_search import flat_step
from mercer.solvers.gaussian import inducing_mode
from mercer.solvers.gaussian.approaches import approach
from mercer.solvers.gaussian.classification import Evidence, GaussianClassification
from mercer.solvers.gaussian.inducing_laplace import InducingEvidence
from mercer.solvers.gaussian.inducing_latent import InducingLatent
from mercer.solvers.gaussian.inducing_mode import InducingClassification, find_inducing_mode
from mercer.solvers.gaussian.inducing_posterior import InducingFactors
from mercer.solvers.restricted import evidence_blocks
from mercer.solvers.solution import Status

RNG = np.random.default_rng(0)
X, NEW = RNG.normal(size=(50, 3)), RNG.normal(size=(7, 3))
KERNELS = [3.0 * RBF([1.0, 2.0, 0.7]), 20.0 * Matern(1.0, nu=1.5), Linear() + 1.0 * RBF(1.0)]


def problem_of(kernel: Kernel, m: int, classes: int) -> InducingClassification:
    rng = np.random.default_rng(classes)
    codes = np.digitize(X[:, 0] * X[:, 1] + 0.3 * rng.normal(size=50), np.linspace(-0.7, 0.7, classes + 1)[1:-1])
    return InducingClassification(KernelCross(kernel, X, X[:m]), codes, classes)


def labels(problem: InducingClassification, F: np.ndarray) -> tuple[float, np.ndarray, np.ndarray]:
    """``log p``, its slopes (cn,), and W (cn, cn) for latent values (n, c)."""
    n, c = F.shape
    # A logistic function is a softmax whose first class has the value 0.
    whole = np.c_[np.zeros(n), F] if c == 1 else F
    p, hot = softmax(whole, axis=1), np.eye(whole.shape[1])[problem.codes]
    density = float((whole[np.arange(n), problem.codes] - logsumexp(whole, axis=1)).sum())
    keep = slice(1, None) if c == 1 else slice(None)
    p, g = p[:, keep], (hot - p)[:, keep]
    W = np.zeros((c * n, c * n))
    for j in range(c):
        for i in range(c):
            W[j * n : (j + 1) * n, i * n : (i + 1) * n] = np.diag((i == j) * p[:, j] - p[:, i] * p[:, j])
    return density, g.T.ravel(), W


def dense(problem: InducingClassification, theta: np.ndarray) -> tuple[float, np.ndarray, np.ndarray]:
    """The evidence, the mode (n, c) and W with the prior Q, by Newton's method on all latent values."""
    cross: Any = problem.covariance
    kernel, Z = cross.kernel.with_theta(theta), cross.landmarks
    K_nm, K_mm = kernel(X, Z.copy()), kernel(Z, Z.copy())
    Q = np.kron(np.eye(problem.functions), K_nm @ np.linalg.pinv(K_mm, hermitian=True, rcond=1e-14) @ K_nm.T)
    n, a = len(X), np.zeros(len(Q))
    for _ in range(15):
        f = Q @ a
        _, g, W = labels(problem, f.reshape(-1, n).T)
        a = np.linalg.solve(np.eye(len(Q)) + W @ Q, W @ f + g)
    f = Q @ a
    density, _, W = labels(problem, f.reshape(-1, n).T)
    evidence = density - 0.5 * a @ f - 0.5 * np.linalg.slogdet(np.eye(len(Q)) + W @ Q)[1]
    return float(evidence), f.reshape(-1, n).T, W


@pytest.mark.parametrize("classes", [2, 3, 4])
@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
def test_the_evidence_and_the_mode_are_those_of_dense_formulas(kernel: Kernel, classes: int) -> None:
    problem = problem_of(kernel, 12, classes)
    solution = InducingEvidence(problem).solve(kernel.theta)
    evidence, latent, _ = dense(problem, kernel.theta)
    assert solution.value.point.evidence == pytest.approx(evidence, abs=1e-6)
    np.testing.assert_allclose(solution.value.point.latent, latent, atol=1e-5)
    certificate = solution.certificate
    assert solution.status is Status.converged and certificate.kkt_violation < 1e-9
    assert 0 <= certificate.gap < 1e-12 and certificate.iterations < 12


@pytest.mark.parametrize("classes", [2, 3, 4])
@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
def test_the_gradient_is_that_of_differences(kernel: Kernel, classes: int) -> None:
    problem, theta, h = problem_of(kernel, 12, classes), kernel.theta, 1e-5
    _, gradient = InducingEvidence(problem)(theta)

    def at(other: np.ndarray) -> float:
        return InducingEvidence(problem).solve(other).value.point.evidence

    expected = [(at(theta + h * e) - at(theta - h * e)) / (2 * h) for e in np.eye(len(theta))]
    np.testing.assert_allclose(gradient, expected, rtol=1e-5, atol=1e-5 * np.abs(gradient).max())


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
def test_with_all_rows_as_landmarks_all_is_exact(kernel: Kernel, classes: int) -> None:
    problem = problem_of(kernel, 50, classes)
    exact = GaussianClassification(covariance_of(kernel, X, None), problem.codes, classes)
    expected, slopes = Evidence(exact, approach(50, classes, "laplace"))(kernel.theta)
    value, gradient = InducingEvidence(problem)(kernel.theta)
    assert value == pytest.approx(expected, abs=1e-7)
    np.testing.assert_allclose(gradient, slopes, atol=1e-5 * np.abs(slopes).max())


@pytest.mark.parametrize("classes", [2, 4])
def test_latent_moments_are_those_of_dense_formulas(classes: int) -> None:
    kernel, Z = KERNELS[0], X[:12]
    problem = problem_of(kernel, 12, classes)
    mode, c = find_inducing_mode(problem, kernel.theta), problem.functions
    posterior = InducingLatent(mode.weights, InducingFactors(mode.white.factor, mode.point.factor))
    K_mm, K_nm, K_sm = kernel(Z, Z.copy()), kernel(X, Z.copy()), kernel(NEW, Z.copy())
    whole, each = np.kron(np.eye(c), K_nm), np.kron(np.eye(c), K_mm)
    _, latent, W = dense(problem, kernel.theta)
    inverse = np.linalg.inv(each + whole.T @ W @ whole).reshape(c, 12, c, 12)
    remainder = 3.0 - np.einsum("ij,jk,ik->i", K_sm, np.linalg.inv(K_mm), K_sm)
    expected = np.einsum("sa,jalb,sb->sjl", K_sm, inverse, K_sm) + np.eye(c) * remainder[:, None, None]
    mean = posterior.mean(K_sm.copy())
    np.testing.assert_allclose(kernel(X, Z.copy()) @ mode.weights, latent, atol=1e-5)
    np.testing.assert_allclose(mean, K_sm @ mode.weights)
    prior = np.full(7, 3.0)
    if c == 1:
        np.testing.assert_allclose(posterior.variance(K_sm.copy(), prior), expected[:, 0, 0], atol=1e-6)
    else:
        np.testing.assert_allclose(posterior.covariance(K_sm.copy(), prior), expected, atol=1e-6)
    assert remainder.min() > 0.01


def test_blocks_of_rows_change_nothing_but_rounding(monkeypatch: pytest.MonkeyPatch) -> None:
    problem = problem_of(KERNELS[0], 12, 3)
    value, gradient = InducingEvidence(problem)(KERNELS[0].theta)
    monkeypatch.setattr(evidence_blocks, "_ENTRIES", 1)
    monkeypatch.setattr(evidence_blocks, "_LEAST_ROWS", 7)
    other, slopes = InducingEvidence(problem)(KERNELS[0].theta)
    assert other == pytest.approx(value, rel=1e-9)
    np.testing.assert_allclose(slopes, gradient, rtol=1e-6)


def test_a_start_saves_steps_and_a_bad_one_does_no_harm() -> None:
    problem, theta = problem_of(KERNELS[0], 20, 2), KERNELS[0].theta
    cold = find_inducing_mode(problem, theta)
    assert find_inducing_mode(problem, theta, start=cold.point.u).steps == 0
    bad = find_inducing_mode(problem, theta, start=1e3 * np.ones((20, 1)))
    assert bad.point.evidence == pytest.approx(cold.point.evidence, rel=1e-9) and bad.steps <= cold.steps
    near = InducingEvidence(problem)
    near.solve(theta)
    assert near.solve(theta + 0.01).certificate.iterations < near.fresh().solve(theta + 0.01).certificate.iterations


def test_steps_that_overshoot_are_shortened(monkeypatch: pytest.MonkeyPatch) -> None:
    # Ten equal rows, nine of one class: at f = 6 the slope is about 1 and the curvature 0.02.
    same = np.zeros((10, 1))
    problem = InducingClassification(KernelCross(1e4 * RBF(1.0), same, same[:1]), np.array([0] + [1] * 9))
    theta, sizes = (1e4 * RBF(1.0)).theta, []

    def size_of(slope: Any) -> float:
        sizes.append(flat_step(slope))
        return sizes[-1]

    monkeypatch.setattr(inducing_mode, "flat_step", size_of)
    found = find_inducing_mode(problem, theta, start=np.array([[0.06]]))
    assert found.status is Status.converged and min(sizes) < 1
    np.testing.assert_allclose(found.point.latent, np.log(9), atol=0.01)
    assert found.point.objective == pytest.approx(find_inducing_mode(problem, theta).point.objective, rel=1e-12)


def test_what_ends_a_search_is_said() -> None:
    problem, kernel = problem_of(KERNELS[0], 20, 2), KERNELS[0]
    assert find_inducing_mode(problem, kernel.theta, max_iter=1).status is Status.iteration_limit
    values: Any = problem.covariance.at(kernel.theta)

    class Overflowing:
        shape, size = (50, 20), 0
        landmarks, block = values.landmarks, lambda self, rows, out: out.fill(1e300)

        def at(self, theta: np.ndarray) -> Any:
            return self

    overflowing: Any = InducingClassification(Overflowing(), problem.codes)  # type: ignore[arg-type]
    with pytest.raises(NumericalError, match="bound it"), np.errstate(all="ignore"):
        find_inducing_mode(overflowing, np.zeros(0))
    with mercer.config(memory=2**14), pytest.raises(MemoryBudgetError, match="n_landmarks"):
        InducingEvidence(problem).solve(kernel.theta)
