"""Kernel systems by products alone: against the factorisation, and within a small memory budget."""

from __future__ import annotations

import numpy as np
import pytest

from mercer import KernelRidge, config
from mercer._errors import MemoryBudgetError, MercerWarning, ParameterError
from mercer.gram import Gram, PrecomputedGram
from mercer.kernels import RBF, Linear, Matern, Sigmoid
from mercer.solvers.linear import cholesky
from mercer.solvers.linear.iterative import KernelCG, LowRankInverse
from mercer.solvers.linear.linear_system import LinearSystem
from mercer.solvers.solution import Status


def system(kernel, n=400, shifts=(0.05, 0.05, 2.0)):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 4))
    Y = np.column_stack([np.sin(X).sum(axis=1), X[:, 0], rng.normal(size=n)])
    return LinearSystem(Gram(kernel, X), Y, shifts, rng.uniform(0.3, 2.0, n))


@pytest.mark.parametrize("kernel", [RBF(1.5), Matern(1.0, nu=0.5), Linear()])
def test_equals_the_factorisation(kernel):
    stated = system(kernel)
    direct, products = cholesky.solve(stated), KernelCG(1e-9).solve(stated)
    assert products.status is Status.converged
    size = np.abs(direct.value).max()
    np.testing.assert_allclose(products.value, direct.value, atol=1e-6 * size)
    assert products.certificate.primal == pytest.approx(direct.certificate.primal, rel=1e-6)
    assert products.certificate.kkt_violation <= 1e-9


@pytest.mark.parametrize("rank", [1, 20, 400])
def test_any_rank_of_the_preconditioner_serves(rank):
    stated = system(RBF(1.5))
    np.testing.assert_allclose(KernelCG(1e-9, rank=rank).solve(stated).value, cholesky.solve(stated).value, atol=1e-6)


def test_more_rank_takes_fewer_products():
    stated = system(RBF(3.0), shifts=(1e-3,) * 3)
    few, many = (KernelCG(1e-8, rank=rank).solve(stated).certificate.iterations for rank in (5, 200))
    assert many < few / 2


def test_the_inverse_by_woodbury():
    F = np.random.default_rng(0).normal(size=(30, 4))
    V = np.eye(30)
    np.testing.assert_allclose(
        LowRankInverse.of(F, F.T @ F, 0.3)(V), np.linalg.inv(F @ F.T + 0.3 * np.eye(30)), atol=1e-12
    )


def test_stored_matrices_and_the_limit_of_products():
    stated = system(RBF(1.5))
    stored = LinearSystem(PrecomputedGram(stated.gram.dense()), stated.targets, stated.shifts, stated.weights)
    np.testing.assert_allclose(KernelCG(1e-10).solve(stored).value, KernelCG(1e-10).solve(stated).value, atol=1e-6)
    hard = system(RBF(1.5), shifts=(1e-9,) * 3)
    with pytest.warns(MercerWarning, match=r"after \d+ products .* preconditioner of rank 3"):
        solution = KernelCG(1e-12, max_iter=8, rank=3).solve(hard)
    assert solution.status is Status.iteration_limit and solution.certificate.iterations <= 9


def test_beyond_the_memory_budget_products_are_taken_and_said():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(3000, 5))
    y = np.sin(X).sum(axis=1)
    kernel = Matern(2.0, nu=1.5)
    exact = KernelRidge(0.1, kernel=kernel).fit(X, y)
    with config(memory="24 MiB"):
        with pytest.raises(MemoryBudgetError):
            KernelRidge(0.1, kernel=kernel, solver="cholesky").fit(X, y)
        small = KernelRidge(0.1, kernel=kernel).fit(X, y)
    assert small.factorization_ == "conjugate gradients" and "never held" in small.certificate_.storage
    assert small.certificate_.peak_bytes < 24 * 2**20
    np.testing.assert_allclose(small.predict(X[:50]), exact.predict(X[:50]), atol=1e-4)
    np.testing.assert_allclose(
        KernelRidge(0.1, kernel=kernel, solver="cg").fit(X, y).predict(X[:50]), exact.predict(X[:50]), atol=1e-4
    )


@pytest.mark.parametrize("alpha", [1e-20, 1e-150, 1e-300])
def test_penalties_below_rounding_are_solved_as_far_as_it_allows_and_said(alpha):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 3))
    y = np.sin(X).sum(axis=1)
    with pytest.warns(MercerWarning, match="conjugate gradients ended with a relative residual"):
        model = KernelRidge(alpha, kernel="rbf", solver="cg").fit(X, y)
    assert model.score(X, y) > 0.9


def test_rows_whose_distances_leave_the_range_of_single_precision():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 3))
    y = np.sin(X).sum(axis=1)
    for options in ({"solver": "cg"}, {"approximation": "nystroem", "n_landmarks": 100, "random_state": 0}):
        near = KernelRidge(0.1, kernel="rbf", gamma="scale", **options).fit(X, y)
        far = KernelRidge(0.1, kernel="rbf", gamma="scale", **options).fit(1e20 * X, y)
        np.testing.assert_allclose(far.predict(1e20 * X), near.predict(X), atol=1e-2)


def test_what_products_cannot_do_is_said():
    X, y = np.random.default_rng(0).normal(size=(30, 2)), np.arange(30.0)
    with pytest.raises(ParameterError, match="alpha above 0"):
        KernelRidge(0.0, solver="cg").fit(X, y)
    with pytest.raises(ParameterError, match="positive semi-definite kernel"):
        KernelRidge(1.0, kernel=Sigmoid(), solver="cg", allow_indefinite=True).fit(X, y)
    with pytest.raises(ParameterError, match="is to be chosen"):
        KernelRidge("loo", kernel="rbf", solver="cg").fit(X, y)
    with pytest.raises(ParameterError, match="solver must be"):
        KernelRidge(solver="lu").fit(X, y)
    with pytest.raises(ParameterError, match="tol"):
        KernelRidge(tol=0.0).fit(X, y)
