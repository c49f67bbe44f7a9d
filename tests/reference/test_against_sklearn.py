"""Kernels against scikit-learn: its pairwise functions and its kernels for Gaussian processes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.gaussian_process import kernels as gp
from sklearn.metrics import pairwise

from mercer import kernels as k
from mercer._errors import ParameterError
from mercer.kernels import Kernel, as_kernel, from_sklearn

_rng = np.random.default_rng(2)
X, Z = _rng.normal(size=(9, 3)), _rng.normal(size=(7, 3))
P, Q = _rng.gamma(1.0, size=(9, 3)), _rng.gamma(1.0, size=(7, 3))

PAIRWISE: list[tuple[Kernel, Any, bool]] = [
    (k.RBF.from_gamma(0.4), lambda A, B: pairwise.rbf_kernel(A, B, gamma=0.4), False),
    (as_kernel("rbf", gamma=0.4), lambda A, B: pairwise.rbf_kernel(A, B, gamma=0.4), False),
    (as_kernel("rbf", X=X), pairwise.rbf_kernel, False),
    (as_kernel("laplacian", gamma=0.4), lambda A, B: pairwise.laplacian_kernel(A, B, gamma=0.4), False),
    (as_kernel("laplacian", X=X), pairwise.laplacian_kernel, False),
    (as_kernel("chi2"), pairwise.chi2_kernel, True),
    (as_kernel("chi2", gamma=0.3), lambda A, B: pairwise.chi2_kernel(A, B, gamma=0.3), True),
    (as_kernel("additive_chi2"), pairwise.additive_chi2_kernel, True),
    (
        as_kernel("poly", gamma=0.4, degree=4, coef0=0.7),
        lambda A, B: pairwise.polynomial_kernel(A, B, 4, 0.4, 0.7),
        False,
    ),
    (as_kernel("polynomial", X=X, coef0=1.0), pairwise.polynomial_kernel, False),
    (as_kernel("sigmoid", gamma=0.4, coef0=-0.3), lambda A, B: pairwise.sigmoid_kernel(A, B, 0.4, -0.3), False),
    (as_kernel("linear"), pairwise.linear_kernel, False),
    (as_kernel("cosine"), pairwise.cosine_similarity, False),
]


@pytest.mark.parametrize(("kernel", "function", "histograms"), PAIRWISE, ids=[f"{p[0]!r:.40}" for p in PAIRWISE])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_pairwise(kernel: Kernel, function: Any, histograms: bool, dtype: type) -> None:
    A, B = (M.astype(dtype) for M in ((P, Q) if histograms else (X, Z)))
    tolerance = 1e-10 if dtype == np.float64 else 1e-4
    np.testing.assert_allclose(kernel(A, B), function(A, B), rtol=tolerance, atol=tolerance)


def test_relative_gamma_means_what_it_means_for_svms() -> None:
    sparse = sp.random(20, 4, density=0.5, random_state=0, format="csr")
    for data, variance in ((X, X.var()), (sparse, sparse.toarray().var())):
        d = data.shape[1]
        for gamma, expected in (("scale", 1 / (d * variance)), ("auto", 1 / d)):
            kernel = as_kernel("rbf", gamma=gamma, X=data)
            assert kernel.theta == pytest.approx(k.RBF.from_gamma(expected).theta)
    assert as_kernel("rbf", gamma="scale", X=np.ones((3, 2))) == k.RBF.from_gamma(1.0)


GP: list[Any] = [
    gp.RBF(0.7),
    gp.RBF([0.7, 1.0, 2.0]),
    gp.RBF(0.7, length_scale_bounds=(0.1, 5.0)),
    gp.RBF([0.7, 1.0, 2.0], length_scale_bounds=[(0.1, 5.0), (0.2, 6.0), (0.3, 7.0)]),
    gp.RBF(0.7, length_scale_bounds="fixed"),
    gp.Matern(1.2, nu=0.5),
    gp.Matern([1.2, 0.4, 3.0], nu=1.5),
    gp.Matern(1.2, nu=2.5),
    gp.Matern(1.2, nu=0.9),
    gp.Matern(1.2, nu=np.inf),
    gp.RationalQuadratic(1.1, alpha=0.6),
    gp.RationalQuadratic(1.1, alpha=0.6, alpha_bounds="fixed"),
    gp.ExpSineSquared(1.1, periodicity=2.3),
    gp.ExpSineSquared(1.1, periodicity=2.3, periodicity_bounds=(1.0, 3.0)),
    gp.ConstantKernel(2.5) + gp.RBF(0.5),
    gp.WhiteKernel(0.3),
    gp.DotProduct(1.5) + gp.RBF(1.0),
    gp.DotProduct(1.5, sigma_0_bounds="fixed"),
    gp.DotProduct(1.5, sigma_0_bounds=(0.5, 2.0)),
    2.0 * gp.RBF(0.5) + gp.WhiteKernel(0.1),
    gp.ConstantKernel(2.0, (0.1, 10.0)) * gp.RBF(0.5) * gp.Matern(2.0),
    gp.ConstantKernel(2.0, "fixed") * gp.RBF(0.5),
    (gp.RBF(0.5) + gp.DotProduct(1.0)) ** 2,
    gp.Exponentiation(gp.RationalQuadratic(), 3),
]


@pytest.mark.parametrize("theirs", GP, ids=lambda v: f"{v!r:.60}")
def test_gaussian_process_kernels(theirs: Any) -> None:
    ours = from_sklearn(theirs)
    np.testing.assert_allclose(ours(X), theirs(X), rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(ours(X, Z), theirs(X, Z), rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(ours.diagonal(X), theirs.diag(X), rtol=1e-9)
    assert as_kernel(theirs) == ours
    assert len(ours.theta) == len(theirs.theta), "the same parameters are free"


@pytest.mark.parametrize("theirs", GP, ids=lambda v: f"{v!r:.60}")
def test_bounds_and_gradients_of_gaussian_process_kernels(theirs: Any) -> None:
    ours = from_sklearn(theirs)
    weights = np.cos(np.arange(81.0)).reshape(9, 9)
    _, slices = theirs(X, eval_gradient=True)
    expected = np.einsum("ij,ijp->p", weights, slices)
    got, theta, bounds = ours.pullback(X, None, weights), ours.theta, ours.bounds
    hyper = [h for h in theirs.hyperparameters if not h.fixed]
    if any("sigma_0" in h.name for h in hyper):
        # Ours is tuned by the variance sigma_0^2, whose logarithm is twice as large.
        at = [i for i, h in enumerate(hyper) for _ in range(h.n_elements) if "sigma_0" in h.name]
        expected = np.array([w / 2 if i in at else w for i, w in enumerate(expected)])
    # Parameters of one kernel come in another order there.
    # Theirs of a general Matern is itself a difference quotient.
    tolerance = 1e-3 if getattr(theirs, "nu", None) == 0.9 else 1e-6
    np.testing.assert_allclose(np.sort(got), np.sort(expected), rtol=tolerance, atol=1e-9)
    plain = not any("sigma_0" in h.name for h in hyper)
    if plain:
        np.testing.assert_allclose(np.sort(theta), np.sort(theirs.theta), atol=1e-12)
        np.testing.assert_allclose(np.sort(bounds, axis=0), np.sort(theirs.bounds.reshape(-1, 2), axis=0), atol=1e-12)


def test_bounds_of_a_dot_product_are_those_of_its_variance() -> None:
    ours = from_sklearn(gp.DotProduct(1.5, sigma_0_bounds=(0.5, 2.0)))
    np.testing.assert_allclose(np.exp(ours.bounds), [[0.25, 4.0]])
    default = from_sklearn(gp.DotProduct(1.5))
    np.testing.assert_allclose(np.exp(default.bounds), [[1e-10, 1e10]])
    np.testing.assert_allclose(np.exp(default.theta), [2.25])
    assert from_sklearn(gp.DotProduct(0.0)) == k.Linear()


def test_what_has_no_equal_is_refused() -> None:
    with pytest.raises(ParameterError, match=r"CompoundKernel has no equivalent here.*from_function"):
        from_sklearn(gp.CompoundKernel([gp.RBF()]))
    with pytest.raises(ParameterError, match=r"PairwiseKernel\(metric=.*has no equivalent here.*from_function"):
        from_sklearn(gp.PairwiseKernel(metric=lambda a, b: a @ b))
    with pytest.raises(ParameterError, match="not a kernel of scikit-learn: 3"):
        from_sklearn(3)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "metric", ["linear", "poly", "polynomial", "rbf", "sigmoid", "laplacian", "chi2", "additive_chi2", "cosine"]
)
def test_pairwise_kernels(metric: str) -> None:
    A, B = np.abs(X), np.abs(Z)
    theirs = gp.PairwiseKernel(gamma=0.5, gamma_bounds=(1e-2, 10.0), metric=metric)
    ours = from_sklearn(theirs)
    np.testing.assert_allclose(ours(A, B), theirs(A, B), rtol=1e-9, atol=1e-12)
    assert len(ours.theta) <= 1
    if metric in ("linear", "additive_chi2", "cosine"):
        return
    assert from_sklearn(gp.PairwiseKernel(gamma=0.5, gamma_bounds="fixed", metric=metric)).theta.size == 0
    # At either bound ours is theirs at one of the bounds of gamma.
    ends = [gp.PairwiseKernel(gamma=g, metric=metric)(A, B) for g in (1e-2, 10.0)]
    for bound in ours.bounds[0]:
        result = np.asarray(ours.with_theta([bound])(A, B))
        assert min(np.abs(result - end).max() / np.abs(end).max() for end in ends) < 1e-9


def test_wrapped_kernels_of_scikit_learn_work_as_functions() -> None:
    theirs = gp.PairwiseKernel(gamma=0.5, metric="rbf")
    with pytest.raises(ParameterError, match="can be hashed"):
        k.from_function(theirs)
    ours = k.from_function(lambda A, B: theirs(A, B))
    np.testing.assert_allclose(ours(X, Z), k.RBF.from_gamma(0.5)(X, Z), atol=1e-12)


def test_protocol_of_scikit_learn() -> None:
    kernel = 2.0 * k.RBF([1.0, 2.0]) + k.Linear()
    assert clone(kernel) == kernel
    assert kernel.get_params()["left__kernel__length_scale"] == (1.0, 2.0)
    assert kernel.set_params(left__factor=3.0) == 3.0 * k.RBF([1.0, 2.0]) + k.Linear()
    assert set(kernel.get_params(deep=False)) == {"left", "right"}
