"""Kernel systems against explicit solves in NumPy."""

from __future__ import annotations

import warnings
from fractions import Fraction

import numpy as np
import pytest

import mercer
from mercer import Gram, kernels
from mercer._errors import (
    DataError,
    IndefiniteKernelError,
    MemoryBudgetError,
    MercerWarning,
    NumericalError,
    ParameterError,
)
from mercer.engine import threads
from mercer.gram import PrecomputedGram
from mercer.solvers.algebra.conjugate_gradients import refine
from mercer.solvers.algebra.symmetric_store import SymmetricStore
from mercer.solvers.linear import cholesky
from mercer.solvers.linear.cholesky import DOUBLE, LDL, LEAST_SQUARES, SINGLE, solve
from mercer.solvers.linear.linear_system import LinearSystem
from mercer.solvers.solution import Status


def positive(n: int, seed: int = 0, rank: int | None = None) -> np.ndarray:
    A = np.random.default_rng(seed).normal(size=(n, rank or n))
    return A @ A.T


def explicit(K: np.ndarray, t: np.ndarray, shifts: list[float], w: np.ndarray | None = None) -> np.ndarray:
    inverse_weights = np.eye(len(K)) if w is None else np.diag(1 / w)
    return np.stack([np.linalg.solve(K + mu * inverse_weights, t[:, j]) for j, mu in enumerate(shifts)], axis=1)


def objective(K: np.ndarray, t: np.ndarray, mu: float, w: np.ndarray, c: np.ndarray) -> float:
    return float(w @ (t - K @ c) ** 2 + mu * c @ K @ c)


@pytest.fixture
def mixed_from_8(monkeypatch: pytest.MonkeyPatch) -> None:
    """Small systems take the way of large ones."""
    monkeypatch.setattr(cholesky, "MIXED_FROM", 8)
    monkeypatch.setattr(cholesky, "_COLUMNS_PER_ROW", 1.0)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("columns", [1, 3, 7])
def test_equals_an_explicit_solve(columns: int, weighted: bool) -> None:
    rng = np.random.default_rng(1)
    K, t = positive(40), rng.normal(size=(40, columns))
    w = rng.uniform(0.1, 5.0, 40) if weighted else None
    shifts = [0.5 + j % 3 for j in range(columns)]
    solution = solve(LinearSystem(PrecomputedGram(K), t, shifts, w))
    np.testing.assert_allclose(solution.value, explicit(K, t, shifts, w), rtol=1e-9, atol=1e-12)
    assert solution.state.method == DOUBLE and solution.status is Status.direct
    assert solution.certificate.kkt_violation == pytest.approx(solution.state.relative_residual)
    assert solution.certificate.kkt_violation < 1e-12


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("lazy", [False, True])
def test_a_float32_factor_is_refined_to_float64(mixed_from_8: None, lazy: bool, weighted: bool) -> None:
    rng = np.random.default_rng(2)
    X, t = rng.normal(size=(300, 4)), rng.normal(size=(300, 2))
    gram = Gram(kernels.RBF(1.5), X)
    w = rng.uniform(0.1, 5.0, 300) if weighted else None
    with mercer.config(memory=11 * 300**2 if lazy else 13 * 300**2):
        solution = solve(LinearSystem(gram, t, [0.1, 0.01], w))
    assert solution.state.method == SINGLE and solution.state.relative_residual < 1e-11
    assert solution.certificate.peak_bytes == (4 if lazy else 12) * 300**2
    np.testing.assert_allclose(solution.value, explicit(gram.dense(), t, [0.1, 0.01], w), rtol=1e-8, atol=1e-9)


def test_falls_back_to_float64_where_float32_cannot_do_it(mixed_from_8: None) -> None:
    Q = np.linalg.qr(np.random.default_rng(3).normal(size=(60, 60)))[0]
    K = Q * np.geomspace(1.0, 1e-11, 60) @ Q.T
    K = (K + K.T) / 2
    solution = solve(LinearSystem(PrecomputedGram(K), Q[:, :2], [1.0, 1e-12]))
    assert solution.state.method == f"{SINGLE}; {DOUBLE}"
    assert solution.state.relative_residual < 1e-4


def test_values_beyond_float32_are_solved_in_float64(mixed_from_8: None) -> None:
    K = positive(20) * 1e39
    t = np.ones((20, 1))
    solution = solve(LinearSystem(PrecomputedGram(K), t, [1e39]))
    assert solution.state.method == DOUBLE
    np.testing.assert_allclose(solution.value, explicit(K, t, [1e39]), rtol=1e-9)


def test_many_targets_take_a_float64_factor(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cholesky, "MIXED_FROM", 8)
    solution = solve(LinearSystem(PrecomputedGram(positive(30)), np.eye(30), np.ones(30)))
    assert solution.state.method == DOUBLE
    np.testing.assert_allclose(solution.value, np.linalg.inv(positive(30) + np.eye(30)), rtol=1e-8, atol=1e-10)


def test_the_certificate_holds_the_objectives_and_bounds_the_optimum() -> None:
    rng = np.random.default_rng(4)
    K, t, w = positive(25), rng.normal(size=(25, 2)), rng.uniform(0.5, 2, 25)
    solution = solve(LinearSystem(PrecomputedGram(K), t, [0.3, 2.0], w))
    values = [objective(K, t[:, j], mu, w, solution.value[:, j]) for j, mu in enumerate([0.3, 2.0])]
    assert solution.certificate.primal == pytest.approx(sum(values), rel=1e-10)
    # The dual objective 2 mu c't - mu c'(K + mu W^-1) c, from its definition.
    duals = [
        mu * c @ (2 * t[:, j] - (K + mu * np.diag(1 / w)) @ c)
        for j, (mu, c) in enumerate(zip([0.3, 2.0], solution.value.T))
    ]
    assert solution.certificate.dual == pytest.approx(sum(duals), rel=1e-10)
    assert 0 <= solution.certificate.relative_gap < 1e-12
    worse = objective(K, t[:, 0], 0.3, w, solution.value[:, 0] + 1e-3)
    assert worse > values[0]


@pytest.mark.parametrize("weighted", [False, True])
def test_a_singular_matrix_gives_least_squares_of_smallest_norm_and_says_so(weighted: bool) -> None:
    rng = np.random.default_rng(5)
    K, t = positive(30, rank=6), rng.normal(size=(30, 2))
    w = rng.uniform(0.5, 2, 30) if weighted else np.ones(30)
    s = np.sqrt(w)
    with pytest.warns(MercerWarning, match=r"rank is 6 of 30.*Raise alpha"):
        solution = solve(LinearSystem(PrecomputedGram(K), t, [0.0, 0.0], w))
    z = np.linalg.lstsq(s[:, None] * K * s, s[:, None] * t, rcond=1e-12)[0]
    np.testing.assert_allclose(solution.value, s[:, None] * z, rtol=1e-8, atol=1e-10)
    assert solution.state.method == LEAST_SQUARES and solution.certificate.kkt_violation < 1e-12
    assert solution.certificate.primal == pytest.approx(sum(w @ (t - K @ solution.value) ** 2))
    assert 0 <= solution.certificate.relative_gap < 1e-12 and solution.state.relative_residual > 0.1


def test_each_shift_is_solved_in_its_own_way() -> None:
    K, t = positive(30, rank=6), np.random.default_rng(6).normal(size=(30, 3))
    with pytest.warns(MercerWarning, match="singular to working precision"):
        solution = solve(LinearSystem(PrecomputedGram(K), t, [0.0, 1.0, 0.5]))
    np.testing.assert_allclose(solution.value[:, 1:], explicit(K, t[:, 1:], [1.0, 0.5]), rtol=1e-9)
    np.testing.assert_allclose(solution.value[:, 0], np.linalg.pinv(K, rcond=1e-12) @ t[:, 0], rtol=1e-6)
    assert solution.state.method == f"{DOUBLE}; {LEAST_SQUARES}"
    assert solution.certificate.kkt_violation < 1e-12 and solution.state.relative_residual > 0.1


def test_a_negative_eigenvalue_is_refused_with_its_size() -> None:
    K = np.diag([3.0, 2.0, -1.0])
    with pytest.raises(IndefiniteKernelError, match=r"from -0\.9 to 3\.1.*alpha > 1"):
        solve(LinearSystem(PrecomputedGram(K), np.ones((3, 1)), [0.1]))


@pytest.mark.parametrize("shifts", [[0.1, 0.1], [0.1, 0.2]])
def test_an_indefinite_matrix_is_solved_when_it_is_declared(shifts: list[float]) -> None:
    rng = np.random.default_rng(7)
    K = rng.normal(size=(30, 30))
    K, t = K + K.T, rng.normal(size=(30, 2))
    solution = solve(LinearSystem(PrecomputedGram(K), t, shifts, convex=False))
    np.testing.assert_allclose(solution.value, explicit(K, t, shifts), rtol=1e-7, atol=1e-9)
    assert solution.state.method == LDL and solution.status is Status.stationary


def test_a_singular_indefinite_matrix_gives_least_squares() -> None:
    K = np.diag([2.0, -1.0, 0.0])
    with pytest.warns(MercerWarning, match="rank is 2 of 3"):
        solution = solve(LinearSystem(PrecomputedGram(K), np.ones((3, 1)), [0.0], convex=False))
    np.testing.assert_allclose(solution.value.ravel(), [0.5, -1.0, 0.0], atol=1e-12)


def test_an_ill_conditioned_system_warns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cholesky, "_ILL_CONDITIONED", 0.0)
    with pytest.warns(MercerWarning, match=r"solved only to a relative residual of .* Raise alpha"):
        solve(LinearSystem(PrecomputedGram(positive(20)), np.ones((20, 1)), [1e-3]))


def test_a_zero_target_gives_zero_coefficients(mixed_from_8: None) -> None:
    t = np.zeros((30, 2))
    t[:, 1] = 1.0
    solution = solve(LinearSystem(PrecomputedGram(positive(30)), t, [1.0, 1.0]))
    assert not solution.value[:, 0].any() and solution.value[:, 1].any()
    assert solution.state.relative_residual < 1e-12


def test_one_thread_gives_the_same_answer() -> None:
    system = LinearSystem(PrecomputedGram(positive(50)), np.ones((50, 1)), [1.0])
    np.testing.assert_allclose(solve(system, n_jobs=1).value, solve(system).value, rtol=1e-10)


def test_too_small_a_budget_is_refused_before_the_kernel_is_evaluated() -> None:
    calls = []

    def counted(X: np.ndarray, Z: np.ndarray) -> np.ndarray:
        calls.append(X.shape)
        return X @ Z.T

    gram = Gram(kernels.from_function(counted), np.ones((200, 2)))
    calls.clear()
    with mercer.config(memory=200 * 200 * 8 - 1), pytest.raises(MemoryBudgetError, match=r"200 x 200.*budget"):
        solve(LinearSystem(gram, np.ones((200, 1)), [1.0]))
    assert calls == []


def test_nan_in_the_matrix_is_reported_with_its_place() -> None:
    K = np.eye(4)
    K[2, 1] = np.nan
    with pytest.raises(NumericalError, match=r"nan at \[2, 1\]"):
        solve(LinearSystem(PrecomputedGram(K), np.ones((4, 1)), [1.0]))


@pytest.mark.parametrize(
    "wrong, error, message",
    [
        ({"targets": np.ones(3)}, DataError, r"targets of shape \(3, k\)"),
        ({"targets": np.ones((4, 1))}, DataError, r"targets \(4, 1\)"),
        ({"targets": [[1.0], [np.inf], [1.0]]}, DataError, "row 1, column 0 is inf"),
        ({"shifts": [1.0, 2.0]}, DataError, "the same number of shifts"),
        ({"shifts": [-1.0]}, ParameterError, "at least 0"),
        ({"shifts": [np.nan]}, ParameterError, "finite"),
        ({"weights": [1.0, 0.0, 1.0]}, ParameterError, "Leave out rows whose weight is zero"),
        ({"weights": [1.0]}, DataError, r"weights \(1,\)"),
    ],
)
def test_a_problem_that_makes_no_sense_is_refused(wrong: dict, error: type, message: str) -> None:
    right = {"gram": PrecomputedGram(np.eye(3)), "targets": np.ones((3, 1)), "shifts": [1.0]}
    with pytest.raises(error, match=message):
        LinearSystem(**{**right, **wrong})


@pytest.mark.parametrize("n", [1, 5, 511, 512, 513, 1100])
def test_the_store_gives_its_matrix_back_after_a_factorisation(n: int) -> None:
    K = positive(n, rank=min(n, 20)) + np.eye(n)
    store = SymmetricStore(K.copy())
    assert store.factor_cholesky(1.0)
    V = np.random.default_rng(0).normal(size=(n, 2))
    np.testing.assert_allclose(store.product(V), K @ V, rtol=1e-10, atol=1e-10)
    np.testing.assert_allclose(store.solve(V), np.linalg.solve(K + np.eye(n), V), rtol=1e-7, atol=1e-9)
    np.testing.assert_array_equal(store.restore(), K)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_products_of_the_store_with_many_columns_by_threads(dtype: type) -> None:
    K = positive(60).astype(dtype)
    K = K + K.T
    store = SymmetricStore(K.copy())
    assert store.factor_cholesky(1.0)
    V = np.random.default_rng(0).normal(size=(60, 600)).astype(dtype)
    results = []
    for n_jobs in (1, 2, 3):
        with threads.workers(n_jobs):
            results.append(store.product(V))
    np.testing.assert_allclose(results[0], K @ V, rtol=1e-3 if dtype == np.float32 else 1e-9, atol=1e-4)
    assert results[0].tobytes() == results[1].tobytes() == results[2].tobytes()
    np.testing.assert_array_equal(store.product(np.asfortranarray(V)), results[0])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("definite", [True, False])
def test_the_diagonal_of_the_inverse(dtype: type, definite: bool) -> None:
    A = positive(30).astype(dtype) if definite else np.random.default_rng(1).normal(size=(30, 30)).astype(dtype)
    A = A + A.T
    store = SymmetricStore(A.copy())
    assert store.factor_cholesky(2.0) if definite else store.factor_ldl(2.0)
    expected = np.linalg.inv(A.astype(float) + 2 * np.eye(30)).diagonal()
    np.testing.assert_allclose(store.inverse_diagonal(), expected, rtol=1e-2 if dtype == np.float32 else 1e-8)


def test_the_store_reports_what_is_not_definite_or_singular() -> None:
    assert not SymmetricStore(np.diag([1.0, -1.0])).factor_cholesky(0.0)
    assert not SymmetricStore(np.diag([1.0, 0.0])).factor_ldl(0.0)


def test_refinement_reaches_float64_by_an_approximate_inverse() -> None:
    A = positive(50) + np.eye(50)
    b = np.random.default_rng(2).normal(size=(50, 3))
    inverse = np.linalg.inv(A) + 1e-6 * np.random.default_rng(3).normal(size=(50, 50))
    refined = refine(lambda V: A @ V, lambda V: inverse @ V, b)
    assert refined.converged and refined.steps <= 10
    np.testing.assert_allclose(refined.x, np.linalg.solve(A, b), rtol=1e-8)
    np.testing.assert_allclose(refined.residual, b - A @ refined.x, atol=1e-13)


def test_refinement_says_when_it_fails() -> None:
    A = np.diag(np.geomspace(1, 1e10, 60))
    refined = refine(lambda V: A @ V, lambda V: V, np.ones((60, 1)), limit=5)
    assert not refined.converged
    assert np.linalg.norm(refined.residual) <= np.linalg.norm(np.ones(60))


def least_squares_value(X: np.ndarray, y: np.ndarray, alpha: float) -> float:
    """The least ``|y - X w|^2 + alpha |w|^2``, in rational numbers: the Schur complement of the normal equations."""
    A = [[Fraction(float(value)) for value in row] for row in np.column_stack([X, y])]
    p = X.shape[1]
    S = [[sum((row[i] * row[j] for row in A), Fraction(0)) for j in range(p + 1)] for i in range(p + 1)]
    for i in range(p):
        S[i][i] += Fraction(alpha)
    for i in range(p):
        for j in range(i + 1, p + 1):
            factor = S[j][i] / S[i][i]
            S[j] = [value - factor * pivot for value, pivot in zip(S[j], S[i], strict=True)]
    return float(S[p][p])


@pytest.mark.parametrize("size", [1e4, 1e5, 3e5, 1e6, 3e6, 1e7])
def test_the_bounds_hold_where_rounding_hides_the_penalty(size: float) -> None:
    for seed in range(4):
        rng = np.random.default_rng(seed)
        X, y = size * rng.normal(size=(40, 4)), 5.0 * rng.normal(size=40)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", MercerWarning)
            certificate = solve(LinearSystem(Gram(kernels.Linear(), X), y[:, None], [0.04])).certificate
        best = least_squares_value(X, y, 0.04)
        assert certificate.dual <= best * (1 + 1e-12)
        assert certificate.primal >= best * (1 - 1e-12)


def test_rounding_that_hides_the_penalty_is_reported() -> None:
    rng = np.random.default_rng(0)
    X, y = 1e6 * rng.normal(size=(40, 4)), rng.normal(size=40)
    with pytest.warns(MercerWarning, match=r"the objective to .* of .*\. Raise alpha, or scale the columns of X"):
        solve(LinearSystem(Gram(kernels.Linear(), X), y[:, None], [0.04]))
    with warnings.catch_warnings():
        warnings.simplefilter("error", MercerWarning)
        scaled = solve(LinearSystem(Gram(kernels.Linear(), X / 1e6), y[:, None], [0.04]))
        raised = solve(LinearSystem(Gram(kernels.Linear(), X), y[:, None], [4e8]))
    assert scaled.certificate.relative_gap < 1e-9 and raised.certificate.relative_gap < 1e-9
