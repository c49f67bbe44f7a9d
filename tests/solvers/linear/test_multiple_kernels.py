"""Candidates for the weights of kernels: chosen by refits, solved exactly, with the gradient of the weights."""

from __future__ import annotations

import numpy as np
import pytest

import mercer
from mercer._errors import MemoryBudgetError, ParameterError
from mercer.kernels import RBF, Linear
from mercer.solvers.gaussian.left_out_gradient import LeftOutObjective, LeftOutProblem
from mercer.solvers.linear.multiple_kernels import CandidateSearch, KernelSum

RNG = np.random.default_rng(0)
X = RNG.normal(size=(24, 2))
Y = np.c_[np.sin(2 * X[:, 0]), X[:, 1], RNG.normal(size=24)]
TERMS = KernelSum([RBF(0.7)(X), Linear()(X), np.eye(24)])
CANDIDATES = np.vstack([np.eye(3), np.full((1, 3), 1 / 3), RNG.dirichlet(np.ones(3), 4)])
PENALTIES = (1e-3, 0.1, 10.0)
WEIGHT = RNG.choice([1.0, 2.0, 3.0], 24)


def refitted(K: np.ndarray, mu: float, weight: np.ndarray) -> np.ndarray:
    """The mean squared error of each target without one observation of each row."""
    total = np.zeros(3)
    for i in range(24):
        less = weight.copy()
        less[i] -= 1.0
        rows = np.flatnonzero(less)
        c = np.linalg.solve(K[np.ix_(rows, rows)] + np.diag(mu / less[rows]), Y[rows])
        total += weight[i] * (Y[i] - K[i, rows] @ c) ** 2
    return total / weight.sum()


@pytest.mark.parametrize("apart", [True, False])
@pytest.mark.parametrize("weight", [np.ones(24), WEIGHT], ids=["alike", "repeated"])
def test_the_choice_is_the_best_of_refits(apart: bool, weight: np.ndarray) -> None:
    solution = CandidateSearch(apart, PENALTIES).solve(TERMS, Y, weight, CANDIDATES)
    best = solution.value
    table = np.array(
        [[refitted(TERMS.weighted(g, np.empty((24, 24))), mu, weight) for mu in PENALTIES] for g in CANDIDATES]
    )
    if apart:
        np.testing.assert_allclose(best.errors, table.min(axis=(0, 1)), rtol=2e-4)
    else:
        assert best.errors.sum() == pytest.approx(table.sum(axis=2).min(), rel=2e-4)
        assert len(np.unique(best.weights, axis=1).T) == len(np.unique(best.penalties)) == 1
    for t in range(3):
        K = TERMS.weighted(best.weights[:, t], np.empty((24, 24)))
        exact = np.linalg.solve(K + np.diag(best.penalties[t] / weight), Y[:, t])
        np.testing.assert_allclose(best.coefficients[:, t], exact, rtol=1e-8, atol=1e-10)
    assert solution.certificate.kkt_violation < 1e-12 and abs(solution.certificate.gap) < 1e-10


def test_many_rows_in_float32_have_float64_residuals() -> None:
    rows = RNG.normal(size=(2100, 3))
    terms = KernelSum([RBF(1.0)(rows[:, [j]]) for j in range(3)])
    y = np.c_[np.sin(2 * rows[:, 0]), np.cos(rows[:, 2])] + 0.1 * RNG.normal(size=(2100, 2))
    solution = CandidateSearch(True, (0.1, 1.0)).solve(terms, y, np.ones(2100), np.eye(3))
    assert solution.value.weights.argmax(axis=0).tolist() == [0, 2]
    assert solution.certificate.kkt_violation < 1e-9


def test_the_gradient_of_the_weights() -> None:
    objective = LeftOutObjective(LeftOutProblem(TERMS, Y, WEIGHT))
    theta = np.log([0.5, 0.3, 0.2, 0.4])
    gradient = objective(theta)[1]
    for i in range(4):
        step = 1e-4 * np.eye(4)[i]
        slope = (objective.value(theta + step) - objective.value(theta - step)) / 2e-4
        assert gradient[i] == pytest.approx(slope, rel=1e-5, abs=1e-9)


def test_what_cannot_be_solved_is_an_error() -> None:
    zeros = KernelSum([np.zeros((24, 24))])
    with pytest.raises(ParameterError, match="larger alphas"):
        CandidateSearch(True, (0.0,)).solve(zeros, Y, np.ones(24), np.ones((1, 1)))
    with mercer.config(memory=2000), pytest.raises(MemoryBudgetError):
        CandidateSearch(True, (0.1,)).solve(TERMS, Y, np.ones(24), CANDIDATES)
