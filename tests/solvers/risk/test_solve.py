"""The general problem: every loss, penalty and method, against each other and against plain optimisers."""

from __future__ import annotations

import warnings
from dataclasses import FrozenInstanceError, replace
from typing import Any

import numpy as np
import pytest
from scipy.optimize import minimize

import mercer
from loss_table import EXAMPLES, PENALTIES, Absolute, LogCosh, cases, targets
from mercer import Gram
from mercer._errors import DataError, MemoryBudgetError, ParameterError
from mercer.gram import PrecomputedGram
from mercer.kernels import RBF, Linear
from mercer.losses import Ball, HalfSquare, Hinge, Huber, Logistic, Norm, NormPower, OwnLoss, Quantile, Squared
from mercer.solvers.risk.quadratic import Aim, Answer, ByMultipliers
from mercer.solvers.risk.regularized_risk import RegularizedRisk
from mercer.solvers.risk.solve import RiskSolver
from mercer.solvers.risk.stationary import StationarySolver
from mercer.solvers.solution import Status

N = 40
X = np.random.default_rng(0).normal(size=(N, 2))
K = RBF(1.0)(X)


def risk(loss: Any, penalty: Any = None, **others: Any) -> RegularizedRisk:
    gram = others.pop("gram", PrecomputedGram(K))
    return RegularizedRisk(gram, loss, targets(loss, gram.shape[0]), penalty=penalty or HalfSquare(), **others)


def objective(problem: RegularizedRisk, c: np.ndarray, b: float = 0.0) -> float:
    Kc = K @ c
    return problem.risk(Kc + b) + problem.alpha * problem.penalty.value(float(np.sqrt(max(c @ Kc, 0.0))))


@pytest.mark.parametrize(("alpha", "intercept"), [(1e-3, True), (1.0, False), (50.0, True)])
@pytest.mark.parametrize("loss", cases(EXAMPLES), ids=repr)
def test_methods_agree_and_each_certifies_itself(loss: Any, alpha: float, intercept: bool) -> None:
    problem = risk(loss, alpha=alpha, intercept=intercept)
    solutions = [RiskSolver().solve(problem)]
    if loss.smooth or loss.tube(problem.targets) is not None:
        solutions.append(RiskSolver(method="multipliers").solve(problem))
    if loss.smooth:
        solutions.append(RiskSolver(method="newton-cg").solve(problem))
    for solution in solutions:
        certificate, value = solution.certificate, solution.value
        assert solution.status is Status.converged and 0 <= certificate.relative_gap <= 1e-6
        assert certificate.primal == pytest.approx(objective(problem, value.c, value.b), rel=1e-9)
        # A lower bound of one is a lower bound of all.
        assert all(certificate.dual <= other.certificate.primal * (1 + 1e-12) for other in solutions)
        assert intercept or value.b == 0.0


@pytest.mark.parametrize(
    ("loss", "penalty"),
    [(loss, penalty) for penalty in cases(PENALTIES) for loss in (Squared(), Hinge(), Logistic())]
    + [(OwnLoss(Absolute()), Ball(2.0))],
    ids=repr,
)
def test_every_penalty(loss: Any, penalty: Any) -> None:
    problem = risk(loss, penalty, alpha=0.7)
    solution = RiskSolver().solve(problem)
    assert solution.status is Status.converged and 0 <= solution.certificate.relative_gap <= 1e-6
    best = solution.certificate.primal
    rng = np.random.default_rng(1)
    for size in (1e-3, 1e-1):
        c = solution.value.c + size * rng.normal(size=N)
        assert objective(problem, c) >= best * (1 - 1e-6)
        assert objective(problem, (1 - size) * solution.value.c) >= best * (1 - 1e-6)


@pytest.mark.parametrize("penalty", [HalfSquare(), NormPower(3.0), Norm()], ids=repr)
def test_smooth_problems_against_a_plain_optimiser(penalty: Any) -> None:
    problem = risk(OwnLoss(LogCosh()), penalty, alpha=0.5)
    L = np.linalg.cholesky(K + 1e-12 * np.eye(N))

    def value(v: np.ndarray) -> float:
        return problem.risk(L @ v) + 0.5 * penalty.value(float(np.linalg.norm(v)))

    best = min(
        (minimize(value, start * np.ones(N), method="BFGS", options={"gtol": 1e-7}) for start in (0.1, 0.3)),
        key=lambda result: result.fun,
    )
    assert RiskSolver().solve(problem).certificate.primal == pytest.approx(best.fun, rel=1e-6)


def test_least_squares_has_a_closed_form() -> None:
    w = np.random.default_rng(3).uniform(0.5, 3.0, N)
    problem = RegularizedRisk(PrecomputedGram(K), Squared(), X[:, 0], w, alpha=0.3)
    np.testing.assert_allclose(
        RiskSolver().solve(problem).value.c, np.linalg.solve(K + np.diag(0.3 / w), X[:, 0]), rtol=1e-7
    )


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize(("loss", "penalty"), [(Logistic(), None), (Huber(0.5), NormPower(3.0)), (Hinge(), Ball(2.0))])
def test_weights_are_repetition(loss: Any, penalty: Any, intercept: bool) -> None:
    times = np.random.default_rng(4).integers(1, 4, N)
    rows = np.repeat(np.arange(N), times)
    y = targets(loss, N)
    options: dict[str, Any] = {"penalty": penalty or HalfSquare(), "alpha": 0.5, "intercept": intercept}
    weighted = RiskSolver().solve(RegularizedRisk(PrecomputedGram(K), loss, y, times.astype(float), **options))
    repeated = RiskSolver().solve(RegularizedRisk(PrecomputedGram(K[np.ix_(rows, rows)]), loss, y[rows], **options))
    assert weighted.certificate.primal == pytest.approx(repeated.certificate.primal, rel=1e-9)
    np.testing.assert_allclose(weighted.value.Kc[rows], repeated.value.Kc, atol=2e-6)


def test_the_norm_alone_makes_all_of_w_zero_where_it_is_large() -> None:
    problem = risk(Squared(), Norm())
    u = problem.targets
    edge = float(np.sqrt(u @ K @ u))
    assert RiskSolver().solve(risk(Squared(), Norm(), alpha=1.01 * edge)).value.norm == 0.0
    assert RiskSolver().solve(risk(Squared(), Norm(), alpha=0.99 * edge)).value.norm > 0.0


def test_balls() -> None:
    inside = RiskSolver().solve(risk(Squared(), Ball(1e4), gram=PrecomputedGram(K + np.eye(N))))
    assert inside.value.norm < 1e4 and inside.certificate.primal < 1e-8
    edge = RiskSolver().solve(risk(Squared(), Ball(0.5)))
    assert edge.value.norm == pytest.approx(0.5, rel=1e-7)
    same = RiskSolver().solve(risk(Squared(), alpha=edge.value.lam))
    np.testing.assert_allclose(edge.value.Kc, same.value.Kc, atol=1e-8)


def test_factors_far_from_the_crossing_are_solved_roughly(monkeypatch: pytest.MonkeyPatch) -> None:
    aims: list[tuple[float, float]] = []
    solve = ByMultipliers.solve

    def recorded(self: ByMultipliers, lam: float, aim: Aim) -> Answer:
        aims.append((lam, aim.relative))
        return solve(self, lam, aim)

    monkeypatch.setattr(ByMultipliers, "solve", recorded)
    solution = RiskSolver().solve(risk(OwnLoss(Absolute()), Ball(0.5)))
    assert solution.status is Status.converged and solution.value.norm == pytest.approx(0.5, rel=1e-6)
    tight = {lam for lam, relative in aims if relative < 1e-6}
    assert aims[0][1] == 1e-3 and len(tight) < len({lam for lam, _ in aims})


@pytest.mark.parametrize("loss", [Logistic(), Hinge(), OwnLoss(Absolute()), Quantile(0.3)], ids=repr)
def test_more_rows_than_are_solved_to_rounding(loss: Any) -> None:
    rows = np.random.default_rng(5).normal(size=(560, 3))
    solution = RiskSolver().solve(risk(loss, gram=Gram(RBF(1.0), rows), alpha=0.1))
    assert solution.status is Status.converged and 0 <= solution.certificate.relative_gap <= 1e-6


def test_singular_and_zero_matrices() -> None:
    for gram in (PrecomputedGram(np.ones((N, N))), PrecomputedGram(np.zeros((N, N))), Gram(Linear(), X)):
        for loss in (Squared(), Logistic(), Hinge(), OwnLoss(Absolute())):
            assert RiskSolver().solve(risk(loss, gram=gram)).certificate.relative_gap <= 1e-6


def test_a_limit_of_steps_is_told() -> None:
    assert RiskSolver(max_iter=1).solve(risk(Logistic(), alpha=1e-4)).status is Status.iteration_limit


def assert_stationary(problem: RegularizedRisk, indefinite: np.ndarray) -> None:
    solution = StationarySolver().solve(problem)
    assert solution.status is Status.stationary and not solution.certificate.convex
    c, f = solution.value.c, indefinite @ solution.value.c + solution.value.b
    if problem.loss.smooth:
        np.testing.assert_allclose(-problem.alpha * c, problem.loss.gradient(problem.targets, f), atol=1e-9)
    assert not problem.intercept or abs(c.sum()) < 1e-9


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("alpha", [20.0, 2.0])
@pytest.mark.parametrize("loss", [Squared(), Logistic(), Huber(), Hinge()], ids=repr)
def test_stationary_points_of_indefinite_kernels(loss: Any, alpha: float, intercept: bool) -> None:
    indefinite = np.tanh(X @ X.T - 0.5)
    options: dict[str, Any] = {"alpha": alpha, "convex": False, "intercept": intercept}
    assert_stationary(risk(loss, gram=PrecomputedGram(indefinite), **options), indefinite)


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("alpha", [1.0, 0.1])
@pytest.mark.parametrize("indefinite", [np.tanh(X @ X.T - 0.5), -K], ids=["sigmoid", "negative"])
def test_stationary_points_where_the_residual_has_other_minima(
    indefinite: np.ndarray, alpha: float, intercept: bool
) -> None:
    options: dict[str, Any] = {"alpha": alpha, "convex": False, "intercept": intercept}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert_stationary(risk(Logistic(), gram=PrecomputedGram(indefinite), **options), indefinite)


def test_no_stationary_point_is_told() -> None:
    # alpha is an eigenvalue of -K, and the loss quadratic: the equations have no solution.
    problem = risk(Squared(), gram=PrecomputedGram(-np.eye(N)), alpha=1.0, convex=False)
    assert StationarySolver().solve(problem).status is Status.stalled


def test_what_is_refused() -> None:
    with pytest.raises(ParameterError, match="hinge loss is not smooth, which method='newton' needs"):
        RiskSolver(method="newton").solve(risk(Hinge()))
    with pytest.raises(ParameterError, match="squared loss is not made of straight pieces"):
        RiskSolver(method="box").solve(risk(Squared()))
    with pytest.raises(ParameterError, match="the regularizer must be 'l2'"):
        StationarySolver().solve(risk(Squared(), Norm(), convex=False))
    with pytest.raises(ParameterError, match="must have a curvature or straight pieces"):
        StationarySolver().solve(risk(OwnLoss(Absolute()), convex=False))
    with pytest.raises(ParameterError, match="alpha must be a finite number above 0"):
        risk(Squared(), alpha=0.0)
    with pytest.raises(DataError, match=r"targets and weights of shape \(40,\)"):
        RegularizedRisk(PrecomputedGram(K), Squared(), np.ones(3))
    with pytest.raises(ParameterError, match="Leave out rows whose weight is zero"):
        RegularizedRisk(PrecomputedGram(K), Squared(), np.ones(N), np.zeros(N))
    with pytest.raises(DataError, match="target must be finite, and the one in row 0 is nan"):
        RegularizedRisk(PrecomputedGram(K), Squared(), np.full(N, np.nan))
    with mercer.config(memory="2KiB"), pytest.raises(MemoryBudgetError):
        RiskSolver().solve(risk(Squared()))


@pytest.mark.parametrize("solver", [RiskSolver(), RiskSolver(method="newton-cg"), StationarySolver()], ids=repr)
def test_a_solver_is_a_value_that_keeps_nothing_of_a_solve(solver: Any) -> None:
    before = replace(solver)
    first, other = risk(Logistic(), alpha=0.5), risk(Squared(), alpha=2.0)
    if isinstance(solver, StationarySolver):
        first, other = replace(first, convex=False), replace(other, convex=False)
    answer = solver.solve(first).value.c
    solver.solve(other)
    np.testing.assert_array_equal(solver.solve(first).value.c, answer)
    assert solver == before and hash(solver) == hash(before)
    with pytest.raises(FrozenInstanceError):
        solver.tol = 1.0


@pytest.mark.parametrize("far", [1.0, 1e6, 1e8])
@pytest.mark.parametrize("loss", [Logistic(), Huber(0.5), Hinge()], ids=repr)
def test_the_bounds_hold_where_rows_differ_by_rounding(loss: Any, far: float) -> None:
    rng = np.random.default_rng(1)
    rows = far + 0.02 * rng.normal(size=(30, 1))
    y = np.where(rng.random(30) > 0.4, 1.0, -1.0)
    problem = RegularizedRisk(Gram(Linear(), rows), loss, y, alpha=1e-3, intercept=True)
    certificate = RiskSolver().solve(problem).certificate
    centred = (rows - rows.mean())[:, 0]

    def objective(g: np.ndarray) -> float:
        return float(loss.value(y, centred * g[0] + g[1]).sum() + 0.5e-3 * g[0] ** 2)

    # Where the loss has kinks this is above the optimum, which is enough for a bound from below.
    found = minimize(objective, np.zeros(2), method="Nelder-Mead", options={"xatol": 1e-10, "fatol": 1e-12})
    assert certificate.dual <= found.fun * (1 + 1e-9)
    assert certificate.status is Status.converged or far > 1e5
