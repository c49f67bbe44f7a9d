"""Tests of the C-SVC where C is larger than any multiplier."""

from __future__ import annotations

import numpy as np
import pytest
import sklearn.svm

from mercer import SVC
from mercer.gram import PrecomputedGram
from mercer.solvers import ProjectedGradient
from mercer.solvers.svm.c_svc import CSVC
from mercer.solvers.svm.pair_problem import PairProblem
from mercer.solvers.svm.smo import SMO


def separable(n: int = 80) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 3))
    return X, (X[:, 0] + 0.3 * rng.normal(size=n) > 0).astype(int)


@pytest.mark.parametrize("C", [1e12, 1e15, 1e100, 1e300])
def test_a_cost_that_no_multiplier_reaches_gives_the_hard_margin(C: float) -> None:
    X, y = separable()
    model, hard = SVC(C=C, gamma=0.3).fit(X, y), SVC(C=np.inf, gamma=0.3).fit(X, y)
    theirs = sklearn.svm.SVC(C=C, gamma=0.3, tol=1e-6).fit(X, y)
    np.testing.assert_allclose(model.decision_function(X), hard.decision_function(X), atol=1e-6)
    np.testing.assert_allclose(model.decision_function(X), theirs.decision_function(X), atol=5e-3)
    certificate = model.certificate_
    # Slack of rounding, at C a unit, is removed where the gap is above the tolerance.
    assert certificate.status.name == "converged" and certificate.relative_gap <= model.tol
    assert certificate.dual <= hard.certificate_.primal and hard.certificate_.dual <= certificate.primal


def test_the_gap_of_a_huge_cost_is_that_of_the_function_that_is_returned() -> None:
    X, y = separable()
    model = SVC(C=1e15, gamma=0.3).fit(X, y)
    inside = 1.0 - (2 * y - 1) * model.decision_function(X)
    assert inside.max() <= 1e-14
    assert model.certificate_.primal == pytest.approx(0.5 * model.norm_[0] ** 2, rel=1e-9)


@pytest.mark.parametrize("kernel, n", [("linear", 80), ("linear", 600), ("rbf", 600)])
def test_a_huge_cost_on_separable_rows(kernel: str, n: int) -> None:
    X, _ = separable(n)
    y = (X @ [1.0, 2.0, 3.0] > 0).astype(int)
    model, hard = (SVC(C=C, kernel=kernel, gamma=3.0).fit(X, y) for C in (1e14, np.inf))
    assert model.certificate_.relative_gap < 1e-2
    assert model.certificate_.dual <= hard.certificate_.primal * (1 + 1e-9)
    np.testing.assert_allclose(model.decision_function(X), hard.decision_function(X), atol=5e-3)


def test_a_huge_cost_without_an_intercept_and_with_many_classes() -> None:
    X, _ = separable(150)
    y = np.digitize(X[:, 0], [-0.5, 0.5])
    for options in ({"fit_intercept": False}, {"fit_intercept": True}):
        model, hard = (SVC(C=C, gamma=3.0, **options).fit(X, y) for C in (1e15, np.inf))
        assert model.certificate_.relative_gap < 1e-8
        assert model.certificate_.dual == pytest.approx(hard.certificate_.dual, rel=1e-8)


@pytest.mark.parametrize("n, far", [(60, 1e5), (60, 1e8), (600, 1e5)])
def test_one_far_row_does_not_shorten_the_steps_of_the_others(n: int, far: float) -> None:
    X, y = separable(n)
    X[7] = [far, 0.5 * far, -far]
    model = SVC(kernel="poly", degree=3, gamma=1.0, coef0=1.0, stop="gap", tol=1e-4).fit(X, y)
    assert model.certificate_.status.name == "converged" and model.n_iter_[0] < 200 * n
    # Half the squared norm and the slacks, from coefficients of the 20 features of degree 3 at most.
    w, signs = model.coef_[0], 2 * y - 1
    slack = np.maximum(0.0, 1.0 - signs * model.decision_function(X))
    assert model.certificate_.primal == pytest.approx(0.5 * w @ w + slack.sum(), rel=1e-6)


def test_a_huge_cost_with_another_solver() -> None:
    X, y = separable(30)
    model = SVC(C=1e14, gamma=3.0, solver=ProjectedGradient(tol=1e-3, accelerated=True)).fit(X, y)
    hard = SVC(C=np.inf, gamma=3.0).fit(X, y)
    assert model.certificate_.relative_gap < 1e-2
    np.testing.assert_allclose(model.decision_function(X), hard.decision_function(X), atol=1e-2)


def test_the_steps_of_an_answer_without_slack_are_those_of_both_solves() -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(600, 20))
    K = np.exp(-0.05 * ((x[:, None] - x) ** 2).sum(axis=2))
    problem = PairProblem(PrecomputedGram(K), np.sign(x[:, 0]), np.full(600, 1e3))
    machine = CSVC(SMO(max_iter=10**6))
    first = machine.solver.solve(machine.box(problem)).certificate
    answer = machine.solve(problem).certificate
    assert first.relative_gap > 1e-3 > answer.relative_gap
    assert answer.iterations > first.iterations
