"""Systems whose matrix has a low rank: solved without the matrix, with the answer of the whole one."""

from __future__ import annotations

import time
import warnings

import numpy as np
import pytest

import mercer
from mercer import KernelRidge
from mercer.gram import Gram, PrecomputedGram
from mercer.kernels import RBF, AllSubsets, Linear, Polynomial
from mercer.solvers.linear import cholesky, low_rank_solve, primal
from mercer.solvers.linear.leave_one_out import leave_one_out
from mercer.solvers.linear.linear_system import LinearSystem
from mercer.solvers.solution import Status

N = 640
RNG = np.random.default_rng(0)
X = RNG.normal(size=(N, 3))
T = np.column_stack([np.sin(X[:, 0]), X @ [1.0, -2.0, 0.5]]) + 0.1 * RNG.normal(size=(N, 2))
WEIGHTS = RNG.integers(1, 4, N).astype(float)


@pytest.fixture(autouse=True)
def without_explicit_features(monkeypatch: pytest.MonkeyPatch) -> None:
    """Kernels with few features are solved in these otherwise."""
    monkeypatch.setattr(primal, "LEAST_ROWS", 10**9)


def by_whole_matrix(system: LinearSystem, monkeypatch: pytest.MonkeyPatch) -> np.ndarray:
    with monkeypatch.context() as patch:
        patch.setattr(low_rank_solve, "_FROM", N + 1)
        return cholesky.solve(system).value


@pytest.mark.parametrize("kernel", [Linear(), Polynomial(2), AllSubsets(), 2.0 * Linear() + 1.0, RBF(200.0)], ids=repr)
@pytest.mark.parametrize("weights", [None, WEIGHTS], ids=["equal", "weighted"])
def test_is_the_answer_of_the_whole_matrix(kernel, weights, monkeypatch: pytest.MonkeyPatch) -> None:
    gram = Gram(kernel, X)
    system = LinearSystem(gram, T, [0.5, 2.0], weights)
    solution = cholesky.solve(system)
    assert solution.state.method == cholesky.LOW_RANK and solution.status is Status.direct
    assert solution.certificate.kkt_violation < 1e-11 and solution.certificate.relative_gap < 1e-10
    # Coefficients outside the range of K are t / mu, and both ways have a residual of 1e-12.
    np.testing.assert_allclose(solution.value, by_whole_matrix(system, monkeypatch), rtol=1e-7, atol=1e-9)


def test_is_ridge_regression_in_the_columns() -> None:
    """Primal = dual: by the normal equations of the columns themselves."""
    primal = np.linalg.solve(X.T @ (WEIGHTS[:, None] * X) + 0.7 * np.eye(3), X.T @ (WEIGHTS[:, None] * T))
    dual = cholesky.solve(LinearSystem(Gram(Linear(), X), T, [0.7, 0.7], WEIGHTS)).value
    np.testing.assert_allclose(X.T @ dual, primal, rtol=1e-9)


def test_without_a_penalty_it_is_least_squares() -> None:
    with pytest.warns(UserWarning, match="its rank is 3 of 640"):
        solution = cholesky.solve(LinearSystem(Gram(Linear(), X), T, [0.0, 0.0]))
    assert solution.status is Status.least_squares and solution.certificate.kkt_violation < 1e-10
    np.testing.assert_allclose(X.T @ solution.value, np.linalg.lstsq(X, T, rcond=None)[0], rtol=1e-8)
    # Of smallest norm: nothing of it is orthogonal to the columns.
    inside = X @ np.linalg.lstsq(X, solution.value, rcond=None)[0]
    np.testing.assert_allclose(solution.value, inside, atol=1e-10)


def test_full_rank_is_left_to_cholesky() -> None:
    solution = cholesky.solve(LinearSystem(Gram(RBF(0.1), X), T, [0.5, 2.0]))
    assert solution.state.method == cholesky.DOUBLE


@pytest.mark.parametrize("weights", [None, WEIGHTS], ids=["equal", "weighted"])
def test_leave_one_out_by_the_form(weights, monkeypatch: pytest.MonkeyPatch) -> None:
    system = LinearSystem(Gram(Linear(), X), T, [0.5, 2.0], weights)
    c = cholesky.solve(system).value
    ours = leave_one_out(system, c)
    monkeypatch.setattr(low_rank_solve, "_FROM", N + 1)
    np.testing.assert_allclose(ours, leave_one_out(system, c), rtol=1e-6, atol=1e-9)


def test_nothing_of_the_size_of_the_matrix_is_needed() -> None:
    n = 30_000
    rows = np.random.default_rng(1).normal(size=(n, 4))
    y = rows @ [1.0, 2.0, 3.0, 4.0] + 0.1 * np.random.default_rng(2).normal(size=n)
    # The matrix alone would take 7.2 GB.
    with mercer.config(memory="200 MB"):
        model = KernelRidge(alpha=1.0).fit(rows, y)
        by_search = KernelRidge("loo").fit(rows, y)
        assert by_search.loo_score_ > 0.99
    np.testing.assert_allclose(rows.T @ model.dual_coef_, np.linalg.solve(rows.T @ rows + np.eye(4), rows.T @ y))


def test_what_has_no_low_rank_is_refused_at_once() -> None:
    n = 20_000
    rows = np.random.default_rng(1).normal(size=(n, 6))
    with mercer.config(memory="200 MB"), pytest.raises(mercer.MercerError, match="memory budget"):
        start = time.process_time()
        KernelRidge(kernel="rbf", gamma=2.0, solver="cholesky").fit(rows, rows[:, 0])
    # Not a timing, but a guard against hours: a factorisation would take minutes.
    assert time.process_time() - start < 60


def test_an_indefinite_matrix_has_no_form() -> None:
    K = X @ X.T - 0.5 * np.eye(N)
    system = LinearSystem(PrecomputedGram(K), T, [1e-3, 1e-3], None, False)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        solution = cholesky.solve(system)
    assert solution.status is Status.stationary
    np.testing.assert_allclose((K + 1e-3 * np.eye(N)) @ solution.value, T, atol=1e-6)
