"""Approximate evidence of Gaussian process classification: against scikit-learn, dense formulas and quadrature."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.special import logsumexp, ndtr, softmax
from sklearn.gaussian_process import GaussianProcessClassifier as Peer
from sklearn.gaussian_process import kernels as peers

import mercer
from kernel_table import EXAMPLES
from mercer._errors import MemoryBudgetError, NumericalError
from mercer.estimators.gaussian.covariance import KernelCovariance
from mercer.gram import PrecomputedGram
from mercer.kernels import RBF, Kernel, Linear
from mercer.solvers.gaussian.approaches import approach
from mercer.solvers.gaussian.classification import Approach, Evidence, GaussianClassification
from mercer.solvers.gaussian.covariance import MatrixCovariance
from mercer.solvers.gaussian.search import MultiStart
from mercer.solvers.gaussian.softmax import softmax_laplace

RNG = np.random.default_rng(0)
X = RNG.normal(size=(30, 3))
TWO = (X[:, 0] * X[:, 1] + 0.3 * RNG.normal(size=30) > 0).astype(int)
FOUR = np.digitize(X[:, 0] + 0.3 * RNG.normal(size=30), [-0.8, 0.0, 0.6])
KERNEL = 2.0 * RBF([1.0, 2.0, 0.7])


def evidence(kernel: Kernel, y: np.ndarray = TWO, name: Any = "laplace", rows: Any = X) -> Evidence:
    classes = int(y.max()) + 1
    problem = GaussianClassification(KernelCovariance(kernel, rows), y, classes)
    return Evidence(problem, approach(len(y), classes, name))


def differences(objective: Evidence, theta: np.ndarray, h: float = 1e-5) -> np.ndarray:
    """Central differences, each from a cold start."""

    def at(t: np.ndarray) -> float:
        return objective.fresh().solve(t).value.evidence

    return np.array([(at(theta + h * e) - at(theta - h * e)) / (2 * h) for e in np.eye(len(theta))])


# ---- Laplace, two classes


@pytest.mark.parametrize("shift", [0.0, 1.0, 3.0, -3.0])
def test_two_classes_are_scikit_learns_objective(shift: float) -> None:
    peer = Peer(2.0 * peers.RBF([1.0, 2.0, 0.7]), optimizer=None).fit(X, TWO)
    theta = KERNEL.theta + shift
    value, slopes = peer.log_marginal_likelihood(theta, eval_gradient=True)
    density, gradient = evidence(KERNEL)(theta)
    assert density == pytest.approx(value, rel=1e-9)
    np.testing.assert_allclose(gradient, slopes, rtol=1e-6, atol=1e-7)


def test_factors_in_float32_only_precondition() -> None:
    rows = np.random.default_rng(1).normal(size=(520, 3))
    y = (rows[:, 0] * rows[:, 1] > 0).astype(int)
    peer = Peer(2.0 * peers.RBF([1.0, 2.0, 0.7]), optimizer=None).fit(rows, y)
    value, slopes = peer.log_marginal_likelihood(KERNEL.theta, eval_gradient=True)
    density, gradient = evidence(KERNEL, y, rows=rows)(KERNEL.theta)
    assert density == pytest.approx(value, rel=1e-10)
    np.testing.assert_allclose(gradient, slopes, rtol=1e-6)


@pytest.mark.parametrize("name", ["laplace", "ep"])
@pytest.mark.parametrize("scale", [1e-3, 0.1, 1.0, 10.0, 1e3])
@pytest.mark.parametrize("variance", [1e-2, 1.0, 1e3])
def test_gradients_are_those_of_the_value(name: str, scale: float, variance: float) -> None:
    objective = evidence(variance * RBF(scale) + 0.3 * Linear(), name=name)
    theta = objective.problem.covariance.kernel.theta
    value, gradient = objective(theta)
    np.testing.assert_allclose(gradient, differences(objective, theta, 1e-4), rtol=1e-4, atol=1e-6 * abs(value))


COVARIANCES = [(k, data[0]) for k, data in EXAMPLES if k.definiteness == "positive"]


@pytest.mark.parametrize("index", range(len(COVARIANCES)), ids=[repr(k)[:70] for k, _ in COVARIANCES])
def test_gradients_by_the_parameters_of_every_kernel(index: int) -> None:
    kernel, rows = COVARIANCES[index]
    n = len(rows)
    # In turn: how a kernel's slopes are summed is the same for all three.
    name, y = (("laplace", np.arange(n) % 2), ("laplace", np.arange(n) % 3), ("ep", np.arange(n) // 2 % 2))[index % 3]
    objective = evidence(kernel, y, name, rows)
    value, gradient = objective(kernel.theta)
    expected = differences(objective, kernel.theta, 1e-4)
    np.testing.assert_allclose(gradient, expected, rtol=1e-4, atol=1e-6 * abs(value))


@pytest.mark.parametrize("variance", [1e-3, 1.0, 1e2, 1e5])
@pytest.mark.parametrize("name", ["two", "four"])
def test_the_mode_is_certified(variance: float, name: str) -> None:
    y = TWO if name == "two" else FOUR
    solution = evidence(variance * RBF(1.0), y).solve(np.log([variance, 1.0]))
    certificate = solution.certificate
    assert certificate.status.name == "converged" and certificate.kkt_violation <= 1e-9
    assert 0 <= certificate.gap <= 1e-9
    # What the certificate says of the objective, computed once more from the answer alone.
    K, A = (variance * RBF(1.0))(X), solution.value.weights
    F = K @ A
    loss = np.logaddexp(0, -np.where(TWO, 1, -1) * F[:, 0]) if name == "two" else logsumexp(F, 1) - F[range(30), FOUR]
    assert certificate.primal == pytest.approx(loss.sum() + 0.5 * np.vdot(A, F), rel=1e-12)


def test_it_does_not_matter_where_an_evaluation_starts() -> None:
    for name, y in (("laplace", TWO), ("laplace", FOUR), ("ep", TWO)):
        objective = evidence(KERNEL, y, name)
        cold = objective(KERNEL.theta)
        objective(KERNEL.theta + 2.0)
        warm = objective(KERNEL.theta)
        assert warm[0] == pytest.approx(cold[0], rel=1e-9)
        np.testing.assert_allclose(warm[1], cold[1], rtol=1e-5, atol=1e-6)
        assert objective.solve(KERNEL.theta).certificate.iterations == 0


def test_a_limit_of_steps_is_told() -> None:
    for name, y in (("laplace", TWO), ("laplace", FOUR), ("ep", TWO)):
        objective = evidence(1e3 * RBF(1.0), y, name)
        objective.max_iter = 2
        certificate = objective.solve(np.log([1e3, 1.0])).certificate
        assert certificate.status.name == "iteration_limit" and certificate.iterations == 2
        assert certificate.kkt_violation > 1e-6


# ---- Laplace, several classes


def dense_evidence(K: np.ndarray, y: np.ndarray, c: int) -> float:
    """By matrices of (cn, cn), Rasmussen and Williams, equations 3.39 and 3.44."""
    n = len(y)
    prior, targets, f = np.kron(np.eye(c), K), np.eye(c)[y].T.ravel(), np.zeros(n * c)
    for _ in range(25):
        p = softmax(f.reshape(c, n), axis=0)
        stacked = np.concatenate([np.diag(row) for row in p])
        W = np.diag(p.ravel()) - stacked @ stacked.T
        a = np.linalg.solve(np.eye(n * c) + W @ prior, W @ f + targets - p.ravel())
        f = prior @ a
    log_determinant = np.linalg.slogdet(np.eye(n * c) + W @ prior)[1]
    return -0.5 * a @ f + targets @ f - logsumexp(f.reshape(c, n), axis=0).sum() - 0.5 * log_determinant


@pytest.mark.parametrize("shift", [0.0, 1.0, 3.0, -3.0])
def test_several_classes_by_dense_formulas(shift: float) -> None:
    kernel = KERNEL + 0.3 * Linear()
    theta = kernel.theta + shift
    objective = evidence(kernel, FOUR)
    value, gradient = objective(theta)
    assert value == pytest.approx(dense_evidence(kernel.with_theta(theta)(X), FOUR, 4), rel=1e-9)
    np.testing.assert_allclose(gradient, differences(objective, theta, 1e-4), rtol=1e-4, atol=1e-6 * abs(value))


def test_two_classes_by_softmax_are_two_classes_by_a_logistic_link() -> None:
    # The difference of two latent values of covariance K has the covariance 2 K.
    theta = KERNEL.theta
    problem = GaussianClassification(KernelCovariance(KERNEL, X), TWO, 2)
    by_softmax = Evidence(problem, Approach(softmax_laplace, 10**6, 1e-10))(theta)
    by_logistic = evidence(KERNEL)(theta + np.log([2.0, 1.0, 1.0, 1.0]))
    assert by_softmax[0] == pytest.approx(by_logistic[0], rel=1e-12)
    np.testing.assert_allclose(by_softmax[1], by_logistic[1], rtol=1e-8)


def test_the_order_of_the_classes_does_not_matter() -> None:
    result, other = evidence(KERNEL, FOUR)(KERNEL.theta), evidence(KERNEL, np.array([2, 0, 3, 1])[FOUR])(KERNEL.theta)
    assert result[0] == pytest.approx(other[0], rel=1e-11)
    np.testing.assert_allclose(result[1], other[1], rtol=1e-8)


# ---- expectation propagation


def brute_force(K: np.ndarray, signs: np.ndarray) -> float:
    """``log p(y)`` for a probit link, by the product rule of Gauss and Hermite."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(60)
    grids = np.meshgrid(*[nodes] * len(K), indexing="ij")
    f = np.linalg.cholesky(K) @ np.stack([g.ravel() for g in grids])
    mass = np.prod(np.meshgrid(*[weights / weights.sum()] * len(K), indexing="ij"), axis=0).ravel()
    return float(np.log(mass @ np.prod(ndtr(signs[:, None] * f), axis=0)))


@pytest.mark.parametrize("n", [1, 2, 3])
@pytest.mark.parametrize("variance", [0.1, 1.0, 4.0])
def test_expectation_propagation_by_brute_force(n: int, variance: float) -> None:
    rows, y = np.array([[0.0], [0.7], [1.1]])[:n], np.array([1, 0, 1])[:n]
    kernel = variance * RBF(1.0)
    problem = GaussianClassification(KernelCovariance(kernel, rows), y)
    result = Evidence(problem, approach(n, 2, "ep")).solve(kernel.theta).value.evidence
    # One factor is matched exactly; of more, the error is of third order in what they have to say.
    assert result == pytest.approx(brute_force(kernel(rows), np.where(y, 1.0, -1.0)), abs=1e-9 if n == 1 else 5e-3)


def one_by_one(K: np.ndarray, signs: np.ndarray) -> tuple[float, np.ndarray]:
    """Sequential updates by dense inverses: the posterior mean and the evidence from its definition."""
    n = len(K)
    tau, nu = np.full(n, 1e-12), np.zeros(n)
    nodes, weights = np.polynomial.hermite_e.hermegauss(80)
    weights = weights / weights.sum()
    for _ in range(25):
        for i in range(n):
            S = np.linalg.inv(np.linalg.inv(K) + np.diag(tau))
            m = S @ nu
            left = 1 / S[i, i] - tau[i]
            mean = (m[i] / S[i, i] - nu[i]) / left
            f = mean + nodes / np.sqrt(left)
            w = weights * ndtr(signs[i] * f)
            Z = w.sum()
            first, second = w @ f / Z, w @ f**2 / Z
            variance = second - first**2
            tau[i], nu[i] = 1 / variance - left, first / variance - mean * left
    S = np.linalg.inv(np.linalg.inv(K) + np.diag(tau))
    m = S @ nu
    total = 0.5 * (np.linalg.slogdet(S)[1] - np.linalg.slogdet(K)[1] + m @ np.linalg.solve(S, m))
    left = 1 / np.diag(S) - tau
    mean = (m / np.diag(S) - nu) / left
    z = signs * mean / np.sqrt(1 + 1 / left)
    # Each factor, less the part of its site in the integral against the cavity.
    site = 0.5 * np.log(left / (left + tau)) + 0.5 * (nu + left * mean) ** 2 / (left + tau) - 0.5 * left * mean**2
    return float(total + (np.log(ndtr(z)) - site).sum()), m


@pytest.mark.parametrize("variance", [0.3, 3.0])
def test_sweeps_in_parallel_end_where_updates_one_by_one_end(variance: float) -> None:
    kernel = variance * RBF(1.5) + 0.1 * Linear()
    rows, y = X[:8], TWO[:8]
    objective = Evidence(GaussianClassification(KernelCovariance(kernel, rows), y), approach(8, 2, "ep"))
    solution = objective.solve(kernel.theta).value
    K = kernel(rows) + 1e-10 * np.eye(8)
    expected, mean = one_by_one(K, np.where(y, 1.0, -1.0))
    assert solution.evidence == pytest.approx(expected, abs=1e-6)
    np.testing.assert_allclose(K @ solution.weights[:, 0], mean, atol=1e-5)


def test_expectation_propagation_is_next_to_importance_sampling() -> None:
    kernel = 4.0 * RBF(1.0)
    rows, y = X[:8], TWO[:8]
    objective = Evidence(GaussianClassification(KernelCovariance(kernel, rows), y), approach(8, 2, "ep"))
    rng = np.random.default_rng(0)
    draws = np.linalg.cholesky(kernel(rows) + 1e-10 * np.eye(8)) @ rng.normal(size=(8, 400_000))
    p = np.prod(ndtr(np.where(y, 1.0, -1.0)[:, None] * draws), axis=0)
    error = p.std() / p.mean() / np.sqrt(len(p))
    assert error < 0.01
    assert objective.solve(kernel.theta).value.evidence == pytest.approx(np.log(p.mean()), abs=4 * error + 0.01)


def test_rows_of_prior_variance_zero_say_nothing() -> None:
    rows = np.concatenate([X[:10], np.zeros((2, 3))])
    y = np.concatenate([TWO[:10], [0, 1]])
    for name in ("laplace", "ep"):
        whole = Evidence(GaussianClassification(KernelCovariance(Linear(), rows), y), approach(12, 2, name))
        part = evidence(Linear(), TWO[:10], name, X[:10])
        difference = whole.solve(np.zeros(0)).value.evidence - part.solve(np.zeros(0)).value.evidence
        assert difference == pytest.approx(2 * np.log(0.5), abs=1e-9)


# ---- what goes wrong, and the search


@pytest.mark.parametrize(("name", "y"), [("laplace", TWO), ("laplace", FOUR), ("ep", TWO)])
def test_matrices_that_are_none(name: str, y: np.ndarray) -> None:
    classes = int(y.max()) + 1

    def solve(K: np.ndarray) -> Any:
        problem = GaussianClassification(MatrixCovariance(PrecomputedGram(K)), y, classes)
        return Evidence(problem, approach(30, classes, name)).solve(np.zeros(0))

    with pytest.raises(NumericalError, match=r"(not positive definite|negative variance).*nearest"):
        solve(-50.0 * np.eye(30))
    with mercer.config(memory="5KiB"), pytest.raises(MemoryBudgetError, match=r"30 x 30.*mercer\.config"):
        solve(np.eye(30))


def test_the_certificate_tells_where_the_matrix_was() -> None:
    # 8 bytes an entry for two classes, and for three one matrix each and four more.
    for classes, size in ((2, "7.0 KiB"), (3, "49.2 KiB")):
        problem = GaussianClassification(
            MatrixCovariance(PrecomputedGram(np.eye(30))), np.arange(30) % classes, classes
        )
        with mercer.config(memory="50KiB"):
            certificate = Evidence(problem, approach(30, classes, "laplace")).solve(np.zeros(0)).certificate
        assert certificate.storage == f"the kernel matrix and its factors held whole, {size} of 50.0 KiB"


def test_duplicate_and_constant_rows() -> None:
    rows = np.repeat(X[:5], 6, axis=0)
    for name, y in (("laplace", TWO), ("laplace", FOUR), ("ep", TWO)):
        for same in (rows, np.ones((30, 3))):
            value, gradient = evidence(KERNEL, y, name, same)(KERNEL.theta)
            assert np.isfinite(value) and np.isfinite(gradient).all()


def test_ascents_do_not_depend_on_each_other() -> None:
    for name, y in (("laplace", TWO), ("ep", TWO), ("laplace", FOUR)):
        objective = evidence(1.0 * RBF(1.0), y, name)
        bounds = np.log([(1e-2, 1e2), (0.1, 10.0)])
        several = MultiStart(restarts=1, random_state=0, n_jobs=2).maximise(objective, [0.0, 0.0], bounds)
        alone = MultiStart(restarts=1, random_state=0, n_jobs=1).maximise(objective, [0.0, 0.0], bounds)
        assert [t.theta for t in several.trials] == [t.theta for t in alone.trials]
        assert several.value >= objective.solve(np.zeros(2)).value.evidence
