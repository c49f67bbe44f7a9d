"""The solver of kernel logistic regression against other minimisers, and its certificate against loops."""

from __future__ import annotations

from contextlib import ExitStack

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize
from scipy.special import log_softmax, softmax

import mercer
from mercer import Gram, PrecomputedGram
from mercer._errors import MemoryBudgetError, NumericalError
from mercer.kernels import RBF, Linear
from mercer.losses.log_loss import log_loss
from mercer.solvers.risk.logistic import LogisticSolver
from mercer.solvers.risk.logistic_problem import LogisticPoint, LogisticRisk
from mercer.solvers.risk.products import Products
from mercer.solvers.solution import Solution, Status

RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 2))
COST = RNG.uniform(0.2, 5.0, 60)
K = RBF(1.0)(X)


def codes_of(classes: int, X: np.ndarray = X) -> np.ndarray:
    """Rings, with some labels wrong."""
    codes = np.minimum((np.hypot(*X.T) * classes / 2.5).astype(int), classes - 1)
    codes[::7] = np.arange(len(codes[::7])) % classes
    return codes


def problem_of(classes: int, scale: float = 1.0, **options: bool) -> LogisticRisk:
    return LogisticRisk(PrecomputedGram(K), log_loss(codes_of(classes), scale * COST, classes), **options)


def full(values: np.ndarray) -> np.ndarray:
    """A column for each class."""
    return np.column_stack([np.zeros(len(values)), values]) if values.shape[1] == 1 else values


def naive_primal(problem: LogisticRisk, weights: np.ndarray, offset: np.ndarray) -> float:
    K, loss = problem.gram.dense(), problem.loss  # type: ignore[attr-defined]
    logs = log_softmax(full(K @ weights + offset), axis=1)
    losses = -loss.cost @ logs[np.arange(len(logs)), loss.codes]
    return float(losses + 0.5 * np.trace(weights.T @ K @ weights))


def naive_dual(problem: LogisticRisk, p: np.ndarray) -> float:
    """Entropies less half the squared norm, for probabilities (n, k)."""
    K, loss = problem.gram.dense(), problem.loss  # type: ignore[attr-defined]
    G = loss.cost[:, None] * (np.eye(p.shape[1])[loss.codes] - p)
    if loss.columns == 1:
        G = G[:, 1:]
    if problem.intercept:
        assert np.abs(G.sum(axis=0)).max() < 1e-9 * loss.cost.sum()
    entropies = -(p * np.log(p)).sum(axis=1)
    return float(loss.cost @ entropies - 0.5 * np.trace(G.T @ K @ G))


def by_lbfgs(problem: LogisticRisk) -> float:
    """The least objective, in coordinates in which the penalty is a plain square."""
    values, vectors = np.linalg.eigh(problem.gram.dense())  # type: ignore[attr-defined]
    root = vectors * np.sqrt(np.maximum(values, 0.0))
    n, m = problem.shape
    loss = problem.loss

    def objective(flat: np.ndarray) -> tuple[float, np.ndarray]:
        V, b = flat[: n * m].reshape(n, m), flat[n * m :] * problem.intercept
        pull = loss.pull(root @ V + b)
        gradient = np.concatenate([(V - root.T @ pull).ravel(), -pull.sum(axis=0) * problem.intercept])
        return loss.value(root @ V + b) + 0.5 * (V**2).sum(), gradient

    optimum = minimize(
        objective,
        np.zeros(n * m + m),
        jac=True,
        method="L-BFGS-B",
        options={"maxiter": 20000, "maxfun": 40000, "ftol": 1e-15, "gtol": 1e-9},
    )
    return float(optimum.fun)


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("classes", [2, 4])
@pytest.mark.parametrize("scale", [0.01, 1.0, 20.0])
def test_the_optimum_that_lbfgs_finds(classes: int, scale: float, intercept: bool) -> None:
    problem = problem_of(classes, scale, intercept=intercept)
    solution = LogisticSolver().solve(problem)
    point, certificate = solution.value, solution.certificate
    assert solution.status is Status.converged and certificate.kkt_violation < 1e-9
    assert certificate.primal == pytest.approx(naive_primal(problem, point.weights, point.offset), rel=1e-12)
    optimum = by_lbfgs(problem)
    assert certificate.dual <= optimum * (1 + 1e-12) and certificate.primal == pytest.approx(optimum, rel=1e-6)
    assert certificate.primal <= optimum * (1 + 1e-12)


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("classes", [2, 4])
@pytest.mark.parametrize("steps", [1, 3, 6])
def test_the_dual_is_that_of_probabilities(classes: int, intercept: bool, steps: int) -> None:
    problem = problem_of(classes, 10.0, intercept=intercept)
    # Not yet at the answer, so that there is a gap to be compared.
    solution = LogisticSolver(max_iter=steps).solve(problem)
    assert solution.status is Status.iteration_limit and solution.state.steps == steps
    point, certificate = solution.value, solution.certificate
    p = softmax(full(point.decision), axis=1)
    A = np.hstack([-point.weights, point.weights]) if classes == 2 else point.weights
    q = np.eye(classes)[problem.loss.codes] - A / problem.loss.cost[:, None]
    # As far from p towards q as probabilities are.
    part = min(1.0, (p / np.maximum(p - q, 1e-300)).min())
    mixed = np.maximum(p + part * (q - p), 1e-300)
    duals = [naive_dual(problem, p), naive_dual(problem, mixed)]
    assert certificate.gap > 1e-9 * certificate.primal
    assert certificate.dual == pytest.approx(max(duals), rel=1e-10)
    best = LogisticSolver().solve(problem).certificate
    assert certificate.dual < best.dual <= best.primal < certificate.primal
    # What the violation promises, by the objective, which the penalty alone bends by 1.
    assert 0.5 * (certificate.kkt_violation**2) * point.squared_norm >= certificate.primal - best.primal


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10**6), st.integers(2, 4), st.floats(1e-3, 1e3), st.booleans())
def test_every_answer_lies_between_the_bounds(seed: int, classes: int, scale: float, intercept: bool) -> None:
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(12, 2))
    codes = np.concatenate([np.arange(classes), rng.integers(0, classes, 12 - classes)])
    cost = scale * rng.uniform(0.1, 2.0, 12)
    problem = LogisticRisk(PrecomputedGram(RBF(1.0)(rows)), log_loss(codes, cost, classes), intercept)
    solution = LogisticSolver().solve(problem)
    certificate, point = solution.certificate, solution.value
    assert solution.status is Status.converged
    assert 0 <= certificate.gap <= 1e-10 * certificate.primal
    # At the solution a weight is its cost times what the probability misses.
    np.testing.assert_allclose(point.weights, problem.loss.pull(point.decision), atol=1e-6 * cost.max())
    trial = point.weights + 0.1 * rng.normal(size=point.weights.shape)
    assert naive_primal(problem, trial, point.offset) >= certificate.dual


def test_the_offset_makes_the_weights_sum_to_zero() -> None:
    solution = LogisticSolver().solve(problem_of(3, 10.0))
    size = np.abs(solution.value.weights).sum()
    assert np.abs(solution.value.weights.sum(axis=0)).max() < 1e-12 * size
    assert np.abs(solution.value.weights.sum(axis=1)).max() < 1e-12 * size
    assert abs(solution.value.offset.sum()) < 1e-12
    free = LogisticSolver().solve(problem_of(3, 10.0, intercept=False))
    assert free.value.offset.tolist() == [0.0, 0.0, 0.0]
    assert free.certificate.primal > solution.certificate.primal


@pytest.mark.parametrize("scale", [1e4, 1e8, 1e12])
@pytest.mark.parametrize("classes", [2, 3])
def test_classes_that_can_be_separated_at_large_costs(classes: int, scale: float) -> None:
    rows = np.linspace(0, classes, 30 * classes, endpoint=False)[:, None]
    codes = rows[:, 0].astype(int)
    problem = LogisticRisk(PrecomputedGram(RBF(0.3)(rows)), log_loss(codes, np.full(len(rows), scale), classes))
    solution = LogisticSolver().solve(problem)
    assert solution.status is Status.converged
    assert solution.certificate.relative_gap < 1e-6
    assert (full(solution.value.decision).argmax(axis=1) == codes).all()


# Enough rows for the float32 path, and more than four tiles.
MANY = RNG.normal(size=(2100, 2))
MANY_LOSS = log_loss(codes_of(3, MANY), np.full(2100, 2.0), 3)


@pytest.fixture(scope="module")
def precise() -> Solution:
    return LogisticSolver(tol=1e-10).solve(LogisticRisk(Gram(RBF(1.0), MANY), MANY_LOSS))


def test_float32_products_reach_a_tolerance_of_float64(precise: Solution) -> None:
    assert precise.status is Status.converged and precise.certificate.kkt_violation <= 1e-10
    assert precise.certificate.peak_bytes >= 12 * 2100**2
    problem = LogisticRisk(Gram(RBF(1.0), MANY), MANY_LOSS)
    usual = LogisticSolver().solve(problem)
    assert 1e-10 < usual.certificate.kkt_violation <= 1e-4
    assert usual.certificate.dual <= precise.certificate.primal <= usual.certificate.primal
    # What the violation promises: the relative error of w is not larger, up to the rounding of the difference.
    gap = usual.value.weights - precise.value.weights
    size = np.einsum("ij,ij->", gap, problem.gram @ gap)
    assert size <= (usual.certificate.kkt_violation**2 + 1e-12) * precise.value.squared_norm


@pytest.mark.parametrize("budget", ["40MiB", "4MiB"])
def test_less_memory_gives_the_same_answer(precise: Solution, budget: str) -> None:
    problem = LogisticRisk(Gram(RBF(1.0), MANY), MANY_LOSS)
    with mercer.config(memory=budget):
        small = LogisticSolver().solve(problem)
        with ExitStack() as stack:
            products = Products(problem.gram, stack)
            # A float32 matrix takes 17 MiB, a float64 one beside it 34 MiB more.
            assert products.sentence.startswith("held whole in float32, 16.8 MiB" if budget == "40MiB" else "evaluated")
    assert small.status is Status.converged
    assert ("Kernel matrix: " + small.certificate.storage) in small.certificate.explain()
    assert small.certificate.peak_bytes <= (40 if budget == "40MiB" else 4) * 2**20
    assert small.certificate.primal == pytest.approx(precise.certificate.primal, rel=1e-8)
    np.testing.assert_allclose(small.value.decision, precise.value.decision, atol=1e-2)


def test_a_budget_for_not_even_the_vectors() -> None:
    problem = LogisticRisk(Gram(RBF(1.0), MANY), MANY_LOSS)
    with mercer.config(memory="100KiB"), pytest.raises(MemoryBudgetError, match="3 columns of 2100 decision values"):
        LogisticSolver().solve(problem)


def test_the_bits_do_not_depend_on_the_number_of_threads() -> None:
    one, three = (
        LogisticSolver(n_jobs=n).solve(LogisticRisk(Gram(RBF(1.0), MANY, n_jobs=n), MANY_LOSS)).value for n in (1, 3)
    )
    np.testing.assert_array_equal(one.weights, three.weights)
    np.testing.assert_array_equal(one.offset, three.offset)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_large_precomputed_matrix(precise: Solution, dtype: type) -> None:
    given = PrecomputedGram(RBF(1.0)(MANY).astype(dtype))
    solution = LogisticSolver().solve(LogisticRisk(given, MANY_LOSS))
    assert solution.status is Status.converged
    assert solution.certificate.primal == pytest.approx(precise.certificate.primal, rel=1e-5)
    # One in float32 is used as it is; one in float64 gets a copy in float32.
    expected = 0 if dtype == np.float32 else 4 * 2100**2
    assert solution.certificate.peak_bytes - 8 * 24 * 3 * 2100 == expected


def test_starts(precise: Solution) -> None:
    problem = problem_of(3, 10.0)
    cold = LogisticSolver().solve(problem)
    again = LogisticSolver().solve(problem, cold.value)
    assert again.state.steps <= 1 < cold.state.steps
    np.testing.assert_allclose(again.value.weights, cold.value.weights, rtol=1e-6, atol=1e-9)
    # What is worse than zero, and does not sum to zero, does no harm.
    bad = LogisticPoint(np.full((60, 3), [100.0, -3.0, 0.0]), np.zeros((60, 3)), np.zeros(3))
    np.testing.assert_array_equal(LogisticSolver().solve(problem, bad).value.weights, cold.value.weights)


def test_indefinite_matrices_end_at_stationary_points() -> None:
    rng = np.random.default_rng(1)
    vectors = np.linalg.qr(rng.normal(size=(40, 40)))[0]
    indefinite = (vectors * np.concatenate([[-2.0, -0.5], rng.uniform(0, 4, 38)])) @ vectors.T
    indefinite = (indefinite + indefinite.T) / 2
    for classes in (2, 3):
        loss = log_loss(np.arange(40) % classes, np.ones(40), classes)
        problem = LogisticRisk(PrecomputedGram(indefinite), loss, convex=False)
        solution = LogisticSolver(max_iter=1000).solve(problem)
        assert solution.status is Status.stationary and not solution.certificate.convex
        np.testing.assert_allclose(solution.value.weights, loss.pull(solution.value.decision), atol=1e-8)


def test_a_matrix_that_is_positive_after_all() -> None:
    solution = LogisticSolver().solve(problem_of(3, 10.0, convex=False))
    assert solution.status is Status.stationary
    assert solution.certificate.primal == pytest.approx(LogisticSolver().solve(problem_of(3, 10.0)).certificate.primal)


def test_nothing_to_learn_but_the_shares_of_the_classes() -> None:
    codes, cost = np.array([0, 0, 1, 2]), np.array([1.0, 2.0, 3.0, 6.0])
    for matrix in (np.zeros((4, 4)), np.full((4, 4), 2.0)):
        solution = LogisticSolver().solve(LogisticRisk(PrecomputedGram(matrix), log_loss(codes, cost, 3)))
        assert solution.status is Status.converged
        np.testing.assert_allclose(softmax(solution.value.decision, axis=1), np.tile([0.25, 0.25, 0.5], (4, 1)))


@pytest.mark.filterwarnings("ignore:overflow encountered:RuntimeWarning")
def test_values_that_overflow() -> None:
    rows = np.linspace(-1, 1, 20)[:, None] * 1e154
    loss = log_loss(np.arange(20) % 2, np.full(20, 1e9), 2)
    with pytest.raises(NumericalError, match="StandardScaler"):
        LogisticSolver().solve(LogisticRisk(Gram(1e10 * Linear(), rows), loss))


@pytest.mark.parametrize("far", [10.0, 1e6, 1e8])
@pytest.mark.parametrize("classes", [2, 3])
def test_the_bounds_hold_where_rows_differ_by_rounding(classes: int, far: float) -> None:
    for seed in range(3):
        rng = np.random.default_rng(seed)
        rows = far + 0.02 * rng.normal(size=(30, 1))
        codes = np.concatenate([np.arange(classes), rng.integers(0, classes, 30 - classes)])
        problem = LogisticRisk(Gram(Linear(), rows), log_loss(codes, np.full(30, 200.0), classes))
        certificate = LogisticSolver().solve(problem).certificate
        # An offset takes up the mean of the rows.
        columns, centred = problem.shape[1], rows - rows.mean()

        def objective(g: np.ndarray, codes: np.ndarray = codes, centred: np.ndarray = centred) -> float:
            w, b = np.split(g, 2)
            logs = log_softmax(full(centred * w + b), axis=1)
            return float(-200.0 * logs[np.arange(30), codes].sum() + 0.5 * (w**2).sum())

        best = minimize(objective, np.zeros(2 * columns), method="BFGS").fun
        assert certificate.dual <= best * (1 + 1e-9)
        assert certificate.status is (Status.converged if far < 1e5 else Status.stalled)
