"""Laplace's evidence of Gaussian processes on ordered classes: value, gradient and posterior against naive formulas."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.integrate import dblquad
from scipy.optimize import minimize

import mercer
from mercer._errors import MemoryBudgetError, NumericalError
from mercer.engine import lapack, memory
from mercer.estimators.gaussian.covariance import KernelCovariance
from mercer.gram import PrecomputedGram
from mercer.kernels import RBF, Linear
from mercer.solvers.gaussian.covariance import MatrixCovariance
from mercer.solvers.gaussian.ordinal import OrdinalEvidence, OrdinalProcess
from mercer.solvers.risk.cumulative_links import LINKS

RNG = np.random.default_rng(0)
X = RNG.normal(size=(40, 2))
Y = np.digitize(X[:, 0] + X[:, 1] ** 2 + 0.3 * RNG.normal(size=40), [0.0, 1.0, 2.0])
KERNEL = 1.5 * RBF([1.0, 2.0]) + Linear()
CUTS = np.array([-1.0, 0.2, 1.5])

every_link = pytest.mark.parametrize("link", LINKS.values(), ids=LINKS)


def process(link: str = "probit", slope: float | None = None, ties: bool = False, kernel=KERNEL) -> OrdinalProcess:
    owner = np.arange(40) // 2 if ties else None
    rows = X[:20] if ties else X
    return OrdinalProcess(KernelCovariance(kernel, rows, 1), Y, LINKS[link], slope, owner)


@every_link
@pytest.mark.parametrize("ties", [False, True])
@pytest.mark.parametrize("slope", [None, 0.6])
def test_the_gradient_is_that_of_finite_differences(link, ties, slope):
    p = process(link.name, slope, ties)
    evidence = OrdinalEvidence(p)
    theta = p.join(KERNEL.theta, 1.7, CUTS)
    _, gradient = evidence(theta)
    h = 1e-5
    results = [(evidence.value(theta + h * e) - evidence.value(theta - h * e)) / (2 * h) for e in np.eye(p.size)]
    # h^2 of the third derivative, and rounding of the values, eps / h of some tens.
    np.testing.assert_allclose(gradient, results, rtol=1e-6, atol=1e-7 * np.abs(gradient).max())


@pytest.mark.parametrize("scale", [1e-3, 0.1, 10.0, 1e3])
def test_the_gradient_for_extreme_length_scales(scale):
    kernel = 2.0 * RBF(scale)
    p = process("logit", None, kernel=kernel)
    evidence = OrdinalEvidence(p)
    theta = p.join(kernel.theta, 0.8, CUTS)
    _, gradient = evidence(theta)
    h = 1e-4
    results = [(evidence.value(theta + h * e) - evidence.value(theta - h * e)) / (2 * h) for e in np.eye(p.size)]
    np.testing.assert_allclose(gradient, results, rtol=1e-4, atol=1e-5 * np.abs(gradient).max())


@every_link
def test_the_value_is_that_of_the_textbook(link):
    p = process(link.name)
    theta = p.join(KERNEL.theta, 1.7, CUTS)
    K = 1.7**2 * KERNEL(X)
    ends = np.concatenate([[-np.inf], 1.7 * CUTS, [np.inf]])

    def loss(g: np.ndarray) -> float:
        return -float(np.log(link.cumulative(ends[Y + 1] - g) - link.cumulative(ends[Y] - g)).sum())

    L = np.linalg.cholesky(K + 1e-10 * np.eye(40))
    optimum = minimize(lambda z: loss(L @ z) + 0.5 * z @ z, np.zeros(40), method="BFGS", options={"gtol": 1e-7})
    g = L @ optimum.x
    h = 1e-4
    W = np.array([(loss(g + h * e) - 2 * loss(g) + loss(g - h * e)) / h**2 for e in np.eye(40)])
    expected = -optimum.fun - 0.5 * np.linalg.slogdet(np.eye(40) + K * W)[1]
    # Second differences have errors of eps / h^2 each.
    assert OrdinalEvidence(p).value(theta) == pytest.approx(expected, abs=1e-4)


def test_the_evidence_of_two_rows_is_near_the_integral():
    # Laplace's approximation has an error of its own, small where the prior is narrow beside the link.
    K = np.array([[0.3, 0.1], [0.1, 0.2]])
    p = OrdinalProcess(MatrixCovariance(PrecomputedGram(K)), np.array([0, 1]), LINKS["probit"], 1.0)
    precision, link = np.linalg.inv(K), LINKS["probit"]

    def density(b: float, a: float) -> float:
        f = np.array([a, b])
        prior = math.exp(-0.5 * f @ precision @ f) / (2 * math.pi * math.sqrt(np.linalg.det(K)))
        return prior * float(link.cumulative(np.array([0.1 - a]))[0] * (1 - link.cumulative(np.array([0.1 - b]))[0]))

    exact = math.log(dblquad(density, -5, 5, -5, 5, epsabs=1e-10)[0])
    assert OrdinalEvidence(p).value(np.array([0.1])) == pytest.approx(exact, abs=0.01)


def test_equal_rows_at_one_point_change_nothing():
    separate = OrdinalProcess(KernelCovariance(KERNEL, np.repeat(X[:20], 2, axis=0), 1), Y, LINKS["logit"], None)
    merged = process("logit", ties=True)
    theta = separate.join(KERNEL.theta, 1.7, CUTS)
    for a, b in zip(OrdinalEvidence(separate)(theta), OrdinalEvidence(merged)(theta), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-8, atol=1e-8)


def test_the_scale_of_the_kernel_and_the_slope_say_the_same():
    p, scaled = process("probit", 3.0, kernel=RBF(1.0)), process("probit", 1.0, kernel=9.0 * RBF(1.0))
    a = OrdinalEvidence(p).value(p.join(RBF(1.0).theta, 3.0, CUTS))
    b = OrdinalEvidence(scaled).value(scaled.join((9.0 * RBF(1.0)).theta, 1.0, 3.0 * CUTS))
    assert a == pytest.approx(b, rel=1e-12)


def test_hyper_parameters_are_split_as_they_were_joined():
    p = process()
    kernel, slope, cuts = p.split(p.join(KERNEL.theta, 1.7, CUTS))
    np.testing.assert_allclose(kernel, KERNEL.theta)
    np.testing.assert_allclose(cuts, CUTS)
    assert slope == pytest.approx(1.7) and p.size == len(KERNEL.theta) + 4
    shares = np.cumsum(np.bincount(Y))[:-1] / 40
    np.testing.assert_allclose(p.link.cumulative(p.likely_cuts(2.0, 3.0) / math.sqrt(3.25)), shares)


@every_link
def test_the_posterior(link):
    p = process(link.name)
    theta = p.join(KERNEL.theta, 1.7, CUTS)
    posterior = OrdinalEvidence(p).posterior(theta)
    K, k = KERNEL(X), KERNEL(X[:5], X)
    latent = K @ posterior.coefficients
    slopes = link.slopes(*(_ends(latent, 1.7)))
    # At the mode of the posterior of f the weights are the slopes of the log likelihood, here by f.
    np.testing.assert_allclose(posterior.coefficients, -1.7 * slopes.latent, atol=1e-8)
    W = 1.7**2 * slopes.curvature
    half = np.ascontiguousarray(posterior.root * k)
    lapack.solve_triangle(posterior.factor, half)
    variance = KERNEL.diagonal(X[:5]) - np.square(half).sum(axis=1)
    expected = KERNEL(X[:5]) - k @ np.linalg.solve(K + np.diag(1.0 / W), k.T)
    np.testing.assert_allclose(variance, np.diag(expected), rtol=1e-6)
    assert posterior.certificate.gap < 1e-10 and set(posterior.certificate.violations) == {"stationarity"}


def _ends(latent: np.ndarray, slope: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    ends = slope * np.concatenate([[-np.inf], CUTS, [np.inf]])
    return ends[Y + 1] - slope * latent, ends[Y] - slope * latent, np.diff(ends)[Y]


def test_one_object_gives_what_a_new_one_gives():
    p = process("logit")
    theta = p.join(KERNEL.theta, 1.7, CUTS)
    used = OrdinalEvidence(p)
    for other in (theta + 0.3, theta - 0.5, p.join(KERNEL.theta, 0.2, CUTS), p.join(KERNEL.theta, 5.0, CUTS)):
        value, gradient = used(other)
        fresh_value, fresh_gradient = OrdinalEvidence(p)(other)
        assert value == pytest.approx(fresh_value, abs=1e-8)
        np.testing.assert_allclose(gradient, fresh_gradient, rtol=1e-6, atol=1e-7)


def test_what_cannot_be_computed():
    p = process()
    theta = p.join(KERNEL.theta, 1.7, CUTS)
    with pytest.raises(NumericalError, match="not finite numbers in their order"):
        OrdinalEvidence(p).value(np.concatenate([theta[:-1], [-800.0]]))
    with mercer.config(memory="10KiB"), pytest.raises(MemoryBudgetError, match="covariance matrix and a factor"):
        OrdinalEvidence(p)(theta)


def test_the_certificate_tells_where_the_matrix_was():
    p = process()
    nbytes = 16 * p.covariance.n**2
    with mercer.config(memory=nbytes):
        certificate = OrdinalEvidence(p).posterior(p.join(KERNEL.theta, 1.7, CUTS)).certificate
    size = memory.describe(nbytes)
    assert certificate.storage == f"the covariance matrix and a factor held whole, {size} of {size}"
