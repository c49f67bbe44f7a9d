"""Kernel systems by products alone: against the factorisation, and within a small memory budget."""

from __future__ import annotations

import dataclasses
import gc
import weakref

import numpy as np
import pytest

from gram.naive_gram import NaiveGram
from mercer import KernelRidge, config
from mercer._errors import DataError, MemoryBudgetError, MercerWarning, ParameterError
from mercer.engine import memory
from mercer.gram import Gram, PrecomputedGram
from mercer.gram.triangle import Triangle, triangle_bytes
from mercer.kernels import RBF, Linear, Matern, Sigmoid
from mercer.solvers.linear import cholesky
from mercer.solvers.linear.iterative import KernelCG, LowRankInverse
from mercer.solvers.linear.linear_system import LinearSystem
from mercer.solvers.solution import Status


class Doubled(NaiveGram):
    """A matrix that has no form in float32."""

    def __init__(self, gram):
        super().__init__(gram.dense())

    def astype(self, dtype):
        raise DataError("the values leave the range of the precision.")


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
    R = np.random.default_rng(0).normal(size=(4, 30))
    V = np.eye(30)
    np.testing.assert_allclose(
        LowRankInverse.of(R, R @ R.T, 0.3)(V), np.linalg.inv(R.T @ R + 0.3 * np.eye(30)), atol=1e-12
    )


def test_stored_matrices_and_the_limit_of_products():
    stated = system(RBF(1.5))
    stored = LinearSystem(PrecomputedGram(stated.gram.dense()), stated.targets, stated.shifts, stated.weights)
    np.testing.assert_allclose(KernelCG(1e-10).solve(stored).value, KernelCG(1e-10).solve(stated).value, atol=1e-6)
    hard = system(RBF(1.5), shifts=(1e-9,) * 3)
    with pytest.warns(MercerWarning, match=r"after \d+ products .* Raise alpha or tol"):
        solution = KernelCG(1e-12, max_iter=8, rank=3).solve(hard)
    assert solution.status is Status.iteration_limit and solution.certificate.iterations <= 9


def test_beyond_the_memory_budget_products_are_taken_and_said():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1500, 5))
    y = np.sin(X).sum(axis=1)
    kernel = Matern(2.0, nu=1.5)
    exact = KernelRidge(0.1, kernel=kernel).fit(X, y)
    with config(memory="6 MiB"):
        with pytest.raises(MemoryBudgetError):
            KernelRidge(0.1, kernel=kernel, solver="cholesky").fit(X, y)
        small = KernelRidge(0.1, kernel=kernel).fit(X, y)
    assert small.factorization_ == "conjugate gradients" and "never held" in small.certificate_.storage
    assert small.certificate_.peak_bytes < 6 * 2**20
    np.testing.assert_allclose(small.predict(X[:50]), exact.predict(X[:50]), atol=1e-4)
    np.testing.assert_allclose(
        KernelRidge(0.1, kernel=kernel, solver="cg").fit(X, y).predict(X[:50]), exact.predict(X[:50]), atol=1e-4
    )


@pytest.mark.parametrize("alpha", [1e-20, 1e-150, 1e-300])
def test_penalties_below_rounding_are_solved_as_far_as_it_allows_and_said(alpha):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 3))
    y = np.sin(X).sum(axis=1)
    # No rank, no precision and no order of steps leads the residual down to the rounding of one product.
    with pytest.warns(MercerWarning, match="conjugate gradients ended with a relative residual"):
        model = KernelRidge(alpha, kernel="rbf", solver="cg", tol=1e-16).fit(X, y)
    assert model.score(X, y) > 0.9 and model.certificate_.kkt_violation > 1e-16


def test_rows_whose_distances_leave_the_range_of_single_precision():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 3))
    y = np.sin(X).sum(axis=1)
    for options in ({"solver": "cg"}, {"approximation": "nystroem", "n_landmarks": 100, "random_state": 0}):
        near = KernelRidge(0.1, kernel="rbf", gamma="scale", **options).fit(X, y)
        far = KernelRidge(0.1, kernel="rbf", gamma="scale", **options).fit(1e20 * X, y)
        np.testing.assert_allclose(far.predict(1e20 * X), near.predict(X), atol=1e-2)


def hard(n=800, **options):
    """Rows of which some are there twice, weights over two powers of ten, and targets of different sizes."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 3))
    X[n // 2 : n // 2 + 50] = X[:50]
    Y = np.column_stack([np.sin(X).sum(axis=1), 1e7 * X[:, 0] ** 2, 1e-7 * rng.normal(size=n)])
    stated = {"kernel": Matern(2.0, nu=1.5), "shifts": (1e-3, 1e-3, 1e-3), "weights": 10 ** rng.uniform(-1, 1, n)}
    stated |= options
    return LinearSystem(Gram(stated["kernel"], X), Y, stated["shifts"], stated["weights"])


@pytest.mark.slow
@pytest.mark.parametrize(
    ("budget", "options"),
    [
        ("64 MiB", {}),
        ("64 MiB", {"kernel": RBF(3.0), "shifts": (1e-6, 1e-6, 1.0)}),
        ("64 MiB", {"kernel": Matern(0.5, nu=0.5)}),
        ("2 MiB", {"weights": None}),
        ("2 MiB", {"kernel": Matern(0.5, nu=0.5)}),
    ],
)
def test_steps_in_single_precision_reach_the_answer_of_the_factor(budget, options):
    stated = hard(560, **options)
    direct = cholesky.solve(stated)
    with config(memory=budget):
        solution = KernelCG(1e-9).solve(stated)
    held = "one triangle held in float32" in solution.certificate.storage
    assert held == (budget == "64 MiB") and ("never held" in solution.certificate.storage) != held
    assert solution.status is Status.converged
    # The residual is computed once more, in float64.
    s = np.ones(560) if stated.weights is None else np.sqrt(stated.weights)
    K, c = stated.gram.dense(), solution.value
    residual = s[:, None] * (stated.targets - K @ c) - np.asarray(stated.shifts) * c / s[:, None]
    size = np.linalg.norm(s[:, None] * stated.targets, axis=0)
    assert (np.linalg.norm(residual, axis=0) <= 1.01e-9 * size).all()
    F, exact = K @ c, K @ direct.value
    np.testing.assert_allclose(F / np.abs(exact).max(axis=0), exact / np.abs(exact).max(axis=0), atol=1e-6)
    assert solution.certificate.peak_bytes <= (64 if held else 2) * 2**20


def test_a_held_triangle_is_evaluated_once(monkeypatch):
    stated, counted, fill = hard(), [], Gram.fill

    def counting(self, rows, columns, out):
        counted.append(out.size if self.dtype == np.float32 else 0)
        fill(self, rows, columns, out)

    monkeypatch.setattr(Gram, "fill", counting)
    solution = KernelCG(1e-8).solve(stated)
    assert solution.certificate.iterations > 10
    assert 4 * sum(counted) == triangle_bytes(800)


@pytest.mark.parametrize("size", [1e-60, 1e60])
@pytest.mark.parametrize("budget", ["64 MiB", "3 MiB"])
def test_values_out_of_the_range_of_single_precision_are_solved_in_double(size, budget):
    stated = hard(kernel=size * RBF(1.0), shifts=(size, size, size))
    with config(memory=budget):
        solution = KernelCG(1e-8).solve(stated)
    assert solution.status is Status.converged and solution.certificate.kkt_violation <= 1e-8
    np.testing.assert_allclose(
        solution.value[:, 0], cholesky.solve(stated).value[:, 0], atol=1e-5 * np.abs(solution.value[:, 0]).max()
    )


def test_rows_in_single_precision_and_given_matrices_are_held_too():
    stated = hard()
    X = np.asarray(stated.gram._plan.left.root.raw, dtype=np.float32)
    single = LinearSystem(Gram(RBF(1.0), X), stated.targets, (0.1,) * 3)
    given = LinearSystem(PrecomputedGram(single.gram.astype(np.float64).dense()), stated.targets, (0.1,) * 3)
    answers = [KernelCG(1e-4).solve(one) for one in (single, given)]
    assert all("one triangle held in float32" in answer.certificate.storage for answer in answers)
    np.testing.assert_allclose(answers[0].value[:, 0], answers[1].value[:, 0], rtol=1e-2, atol=1e-3)


def test_steps_in_single_precision_are_hardly_more():
    stated = hard(shifts=(1e-2,) * 3)
    held = KernelCG(1e-8).solve(stated).certificate
    alone = KernelCG(1e-8).solve(LinearSystem(Doubled(stated.gram), stated.targets, stated.shifts, stated.weights))
    assert "held" in held.storage and "never held" in alone.certificate.storage
    assert held.iterations <= 1.5 * alone.certificate.iterations + 4


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


def test_the_memory_budget_is_named_where_it_ends_the_rank(rng):
    X, y = rng.normal(size=(300, 3)), rng.normal(size=300)
    learner = KernelRidge(1e-12, kernel=RBF(1.0), solver="cg", tol=1e-15)
    with config(memory="170KiB", n_jobs=1), pytest.warns(MercerWarning, match="tol or the memory budget, which allows"):
        learner.fit(X, y)
    with pytest.warns(MercerWarning, match=r"Raise alpha or tol\.$"):
        learner.fit(X, y)


@pytest.mark.parametrize("solve", [cholesky.solve, KernelCG(1e-10).solve], ids=["factor", "products"])
@pytest.mark.parametrize("exponent", [-560, -1000])
def test_targets_whose_squares_leave_the_range_of_float64(solve, exponent):
    usual = hard(300)
    Y = np.asarray(usual.targets)
    small = dataclasses.replace(usual, targets=np.column_stack([np.ldexp(Y[:, 0], exponent), Y[:, 0], np.zeros(300)]))
    solution = solve(small)
    np.testing.assert_array_equal(solution.value[:, 0], np.ldexp(solution.value[:, 1], exponent))
    assert solution.certificate.kkt_violation <= 1e-9 and not solution.value[:, 2].any()
    np.testing.assert_allclose(solution.value[:, 1], cholesky.solve(usual).value[:, 0], rtol=1e-4, atol=1e-6)


def test_a_triangle_that_is_not_finite_leaves_no_reservation(monkeypatch):
    stated, reserved, product = hard(shifts=(0.1,) * 3), [], LowRankInverse.__call__

    def recording(self, V):
        reserved.append(memory._process.reserved)
        return product(self, V)

    monkeypatch.setattr(LowRankInverse, "__call__", recording)
    before = memory._process.reserved
    KernelCG(1e-8, rank=50).solve(stated)
    held = max(reserved) - before
    monkeypatch.setattr(Triangle, "evaluate", lambda self, gram: False)
    reserved.clear()
    answer = KernelCG(1e-8, rank=50).solve(stated)
    assert answer.certificate.storage.startswith("never held")
    assert max(reserved) - before == held - triangle_bytes(800)


def test_a_solution_leaves_no_matrix_behind(monkeypatch):
    matrices, evaluate = [], Triangle.evaluate

    def evaluated(triangle, *arguments):
        matrices.append(weakref.ref(triangle))
        return evaluate(triangle, *arguments)

    monkeypatch.setattr(Triangle, "evaluate", evaluated)
    gc.disable()
    try:
        KernelCG().solve(system(RBF(1.5)))
        assert [matrix() for matrix in matrices] == [None]
    finally:
        gc.enable()
