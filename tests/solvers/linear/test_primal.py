"""Systems in the space of explicit features: the answer of the dual system, for less."""

from __future__ import annotations

import tracemalloc
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.linear_model import Ridge
from sklearn.pipeline import make_pipeline

import mercer
from mercer import KernelRidge
from mercer._errors import MercerWarning
from mercer.gram import Gram
from mercer.gram.features import FEATURES_STORAGE
from mercer.kernels import Constant, Linear, Polynomial, Spectrum
from mercer.maps import NystroemMap
from mercer.solvers.linear import cholesky, primal, primal_steps
from mercer.solvers.linear.linear_system import LinearSystem
from mercer.solvers.solution import Status

N = 800
RNG = np.random.default_rng(0)
X = RNG.normal(size=(N, 6))
T = np.column_stack([X @ np.arange(6.0), np.sin(X[:, 0])]) + 0.1 * RNG.normal(size=(N, 2))
WEIGHTS = RNG.integers(0, 4, N).astype(float)
DEGENERATE = np.column_stack([X, np.full(N, 3.0), np.zeros(N), X[:, 0]])
SPARSE = sp.random_array((N, 40), density=0.1, rng=np.random.default_rng(1), format="csr")
WORDS = ["".join(RNG.choice(list("ACGT"), 12)) for _ in range(N)]


def with_and_without(monkeypatch: pytest.MonkeyPatch, rows, alpha, kernel, weights=None, targets=T):
    """Models in the space of explicit features, and by the kernel matrix."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        by_features = KernelRidge(alpha, kernel=kernel).fit(rows, targets, weights)
        monkeypatch.setattr(primal, "LEAST_ROWS", 10**9)
        by_matrix = KernelRidge(alpha, kernel=kernel).fit(rows, targets, weights)
    return by_features, by_matrix


@pytest.mark.parametrize("weights", [None, WEIGHTS], ids=["equal", "weighted"])
@pytest.mark.parametrize("alpha", [1.0, [0.1, 10.0]], ids=["one", "each"])
@pytest.mark.parametrize(
    "rows, kernel",
    [
        (X, Linear()),
        (X.astype(np.float32), Linear()),
        (DEGENERATE, Linear()),
        (np.vstack([X[:400], X[:400]]), Linear()),
        (SPARSE, Linear()),
        (sp.csc_array(SPARSE), Linear().normalized()),
        (X[:, :3], Polynomial(2)),
        (X[:, :3], Polynomial(3, 0.5, 0.0)),
        (X, 2.0 * Linear().on([0, 2]) + Constant(3.0)),
        (WORDS, Spectrum(2)),
        (WORDS, Spectrum(2).normalized()),
    ],
    ids=[
        "linear",
        "float32",
        "degenerate",
        "duplicates",
        "sparse",
        "normalised",
        "polynomial",
        "monomials",
        "sum",
        "counted",
        "counted and normalised",
    ],
)
def test_is_the_answer_of_the_kernel_matrix(rows, kernel, alpha, weights, monkeypatch: pytest.MonkeyPatch) -> None:
    by_features, by_matrix = with_and_without(monkeypatch, rows, alpha, kernel, weights)
    assert by_features.factorization_ == primal.PRIMAL != by_matrix.factorization_
    assert by_features.certificate_.storage == FEATURES_STORAGE
    scale = np.abs(by_matrix.dual_coef_).max()
    np.testing.assert_allclose(by_features.dual_coef_, by_matrix.dual_coef_, rtol=1e-9, atol=1e-9 * scale)
    assert by_features.certificate_.kkt_violation < 1e-11
    assert by_features.certificate_.primal == pytest.approx(by_matrix.certificate_.primal, rel=1e-10)


@pytest.mark.parametrize("weights", [None, WEIGHTS], ids=["equal", "weighted"])
@pytest.mark.parametrize("rows", [X, DEGENERATE, SPARSE], ids=["regular", "degenerate", "sparse"])
def test_without_a_penalty_it_is_the_least_squares_solution_of_smallest_norm(rows, weights, monkeypatch) -> None:
    by_features, by_matrix = with_and_without(monkeypatch, rows, 0.0, "linear", weights)
    assert by_features.certificate_.status is Status.least_squares
    np.testing.assert_allclose(by_features.dual_coef_, by_matrix.dual_coef_, rtol=1e-8, atol=1e-10)


def test_a_penalty_that_is_rounding_is_least_squares_as_well() -> None:
    with pytest.warns(UserWarning, match="its rank is 6 of 800"):
        model = KernelRidge(1e-15, kernel="linear").fit(X, T)
    np.testing.assert_allclose(model.coef_, np.linalg.lstsq(X, T, rcond=None)[0].T, rtol=1e-9)


def test_no_matrix_of_the_rows_is_made_and_coefficients_are_those_of_ridge() -> None:
    rows = RNG.normal(size=(3000, 40))
    targets = rows @ RNG.normal(size=40) + RNG.normal(size=3000)
    with mercer.config(memory=2 * primal.square_bytes(40) + 2**20):
        model = KernelRidge(2.0, kernel="linear").fit(rows, targets)
    np.testing.assert_allclose(model.coef_, Ridge(2.0, fit_intercept=False).fit(rows, targets).coef_, rtol=1e-9)
    assert model.certificate_.peak_bytes == primal.square_bytes(40) + 8 * 40


def test_features_of_a_map_in_a_pipeline_need_no_kernel_matrix() -> None:
    rows = RNG.normal(size=(4000, 3))
    targets = np.sin(rows).sum(axis=1)
    with mercer.config(memory="40 MiB"):
        model = make_pipeline(NystroemMap(n_components=60, random_state=0), KernelRidge(1e-3, kernel="linear")).fit(
            rows, targets
        )
    assert model[-1].factorization_ == primal.PRIMAL and model.score(rows, targets) > 0.99


def test_where_features_are_many_the_system_is_that_of_the_rows() -> None:
    rows = RNG.normal(size=(N, 700))
    assert cholesky.solve(LinearSystem(Gram(Linear(), rows), T, [1.0, 1.0])).state.method == cholesky.DOUBLE


@pytest.mark.parametrize("weights", [None, WEIGHTS], ids=["equal", "weighted"])
def test_many_sparse_features_are_solved_by_steps(weights, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(primal_steps, "MOST_SPARSE", 30)
    by_steps = KernelRidge([1.0, 0.01], kernel="linear", tol=1e-9).fit(SPARSE, T, weights)
    by_equations = KernelRidge([1.0, 0.01], kernel="linear", solver="cholesky").fit(SPARSE, T, weights)
    assert by_steps.factorization_ == primal_steps.PRIMAL_STEPS
    assert by_steps.certificate_.status is Status.converged and by_steps.certificate_.kkt_violation < 1e-9
    np.testing.assert_allclose(by_steps.coef_, by_equations.coef_, rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize(
    "kernel",
    [0.3 * Linear(), 2.0 * Linear().on([0, 2]) + 0.1 * Linear(), Linear().normalized(), 0.7 * Linear().normalized()],
    ids=["scaled", "sum", "normalised", "scaled and normalised"],
)
@pytest.mark.parametrize("is_sparse", [False, True], ids=["dense", "sparse"])
def test_features_of_float32_rows_are_those_of_the_kernel_in_float64(kernel, is_sparse) -> None:
    """With a small penalty a factor in float32 would leave a large part of the targets."""
    rows = X.astype(np.float32)
    model = KernelRidge(1e-4, kernel=kernel, solver="cholesky").fit(sp.csr_array(rows) if is_sparse else rows, T)
    assert model.factorization_ == primal.PRIMAL
    K = kernel(rows.astype(np.float64))
    left = T - K @ model.dual_coef_ - 1e-4 * model.dual_coef_
    assert np.linalg.norm(left, axis=0).max() < 1e-8 * np.linalg.norm(T, axis=0).min()


@pytest.mark.parametrize(
    "kernel", [2 * Linear() + Linear(), 2 * Linear(), Linear() + Linear(), Linear().normalized()], ids=repr
)
@pytest.mark.parametrize("is_sparse", [False, True], ids=["dense", "sparse"])
def test_features_beyond_the_budget_are_not_made(kernel, is_sparse) -> None:
    rows = np.ones((4000, 50))
    gram = Gram(kernel, sp.csr_array(rows) if is_sparse else rows)
    tracemalloc.start()
    try:
        with mercer.config(memory="1 MiB"):
            assert gram.explicit_features(1000) is None
        assert tracemalloc.get_traced_memory()[1] < rows.nbytes // 2
    finally:
        tracemalloc.stop()
    assert gram.explicit_features(1000).shape[0] == 4000


def test_dense_features_may_have_a_bound_of_their_own() -> None:
    assert Gram(Linear(), X).explicit_features(N, 5) is None
    assert Gram(Linear(), X).explicit_features(N, 6).shape == (N, 6)
    assert Gram(Linear(), SPARSE).explicit_features(N, 5).shape == (N, 40)
    assert Gram(Spectrum(2), WORDS).explicit_features(N, 5).shape == (N, 16)


def test_what_sums_and_sparse_squares_take_is_reserved() -> None:
    dense = KernelRidge(np.linspace(1.0, 2.0, 30), kernel="linear", solver="cholesky")
    assert dense.fit(X, np.tile(T[:, :1], 30)).certificate_.peak_bytes == primal.square_bytes(6) + 8 * 30 * 6
    counted = KernelRidge(kernel="linear", solver="cholesky").fit(SPARSE, T)
    assert counted.certificate_.peak_bytes == primal.square_bytes(40) + 36 * SPARSE.nnz + 8 * 2 * 40


def test_each_of_many_penalties_has_steps_of_its_own() -> None:
    system = LinearSystem(Gram(Linear(), SPARSE), np.tile(T[:, :1], 40), list(np.geomspace(1e-3, 1.0, 40)))
    phi = primal.ScaledFeatures(system.gram.explicit_features(N))
    solution = primal_steps.PrimalCG(1e-6, max_iter=60).solve(system, phi)
    assert solution.status is Status.converged and solution.certificate.iterations > 60
    exact = cholesky.solve(system).value
    np.testing.assert_allclose(SPARSE.T @ solution.value, SPARSE.T @ exact, rtol=1e-3, atol=1e-5)


def test_steps_that_run_out_are_no_worse_than_zero() -> None:
    system = LinearSystem(Gram(Linear(), SPARSE), T, [1e-3, 1e-3])
    phi = primal.ScaledFeatures(system.gram.explicit_features(N))
    with pytest.warns(UserWarning, match="after 1 steps, above"):
        solution = primal_steps.PrimalCG(1e-10, max_iter=1).solve(system, phi)
    z = solution.value
    left = T - SPARSE @ (SPARSE.T @ z) - 1e-3 * z
    assert (np.linalg.norm(left, axis=0) <= np.linalg.norm(T, axis=0) * (1 + 1e-12)).all()
    assert solution.certificate.kkt_violation <= 1.0 + 1e-12


def test_steps_that_run_out_are_reported() -> None:
    system = LinearSystem(Gram(Linear(), SPARSE), T, [1e-6, 1e-6])
    phi = primal.ScaledFeatures(system.gram.explicit_features(N))
    with pytest.warns(UserWarning, match="after 3 steps, above"):
        solution = primal_steps.PrimalCG(1e-10, max_iter=3).solve(system, phi)
    assert solution.status is Status.iteration_limit and solution.certificate.kkt_violation > 1e-10


def test_the_bits_do_not_depend_on_the_number_of_threads() -> None:
    rows = RNG.normal(size=(9000, 300))
    solutions = [KernelRidge(kernel="linear", n_jobs=n).fit(rows, rows[:, 0]).dual_coef_ for n in (1, 2, 5)]
    assert all((solution == solutions[0]).all() for solution in solutions)


@pytest.mark.parametrize("is_sparse", [False, True])
def test_without_a_penalty_independent_features_need_no_eigenpairs(
    is_sparse: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(primal.NormalEquations, "eigenpairs", lambda self: pytest.fail("eigenpairs were computed"))
    monkeypatch.setattr(cholesky, "_dense", lambda *arguments, **options: pytest.fail("K was evaluated"))
    # More features than three quarters of the rows, and a column that is 0.
    n = 520
    targets, weights = T[:n], np.maximum(WEIGHTS[:n], 1.0)
    dense = np.where(RNG.random((n, 420)) < 0.2, RNG.normal(size=(n, 420)), 0.0)
    dense[:, 5] = 0.0
    rows = sp.csr_array(dense) if is_sparse else dense
    with pytest.warns(MercerWarning, match=f"its rank is 419 of {n}. The least-squares solution of smallest norm"):
        model = KernelRidge(0.0, kernel="linear").fit(rows, targets, weights)
    root = np.sqrt(weights)[:, None]
    scaled = root * dense
    least = np.linalg.pinv(scaled, rcond=1e-12)
    np.testing.assert_allclose(model.dual_coef_, root * (least.T @ (least @ (root * targets))), rtol=1e-6, atol=1e-9)
    assert model.factorization_ == "least squares" and model.certificate_.kkt_violation < 1e-12
    assert model.certificate_.status is Status.least_squares


def test_without_a_penalty_dependent_features_have_the_least_norm_too() -> None:
    with pytest.warns(MercerWarning, match=f"its rank is 7 of {N}"):
        model = KernelRidge(0.0, kernel="linear").fit(DEGENERATE, T)
    least = np.linalg.pinv(DEGENERATE, rcond=1e-12)
    np.testing.assert_allclose(model.dual_coef_, least.T @ (least @ T), rtol=1e-6, atol=1e-10)
