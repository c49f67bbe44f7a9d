"""Problems in which many rows are copies of one another, or nearly, so that most pairs have next to no curvature."""

import numpy as np
import pytest

from mercer import Gram, kernels
from mercer.gram import PrecomputedGram
from mercer.solvers.solution import Status
from mercer.solvers.svm.box_qp import BoxQP
from mercer.solvers.svm.iterate import Iterate
from mercer.solvers.svm.smo import SMO
from mercer.solvers.svm.working_set import select


def copies(n: int, spread: float) -> BoxQP:
    """A regression on ``n`` rows that are ``spread`` from one of 200, a quarter of them from the same one."""
    rng = np.random.default_rng(0)
    centers = rng.normal(size=(200, 5))
    X = centers[np.minimum((200 * rng.random(n) ** 4).astype(int), 199)] + spread * rng.normal(size=(n, 5))
    gram = Gram(kernels.RBF.from_gamma(0.05), X)
    return BoxQP(gram, np.sin(2 * X[:, 0]), -np.ones(n), np.ones(n), tube=0.05)


@pytest.mark.parametrize(
    ("spread", "tol"),
    # The smallest tolerance is below rounding in float32, and one solve in float64 leaves rows out in its last round.
    [(0.0, 1e-4), pytest.param(1e-6, 1e-4, marks=pytest.mark.slow), pytest.param(0.0, 1e-6, marks=pytest.mark.slow)],
)
def test_copies_take_few_steps(spread, tol):
    n = 16_000
    answer = SMO(tol=tol, max_iter=100 * n).solve(copies(n, spread))
    assert answer.status is Status.converged
    assert answer.certificate.kkt_violation <= tol


@pytest.mark.parametrize("tube", [0.0, 0.1])
def test_the_objective_of_a_part_rises_by_what_that_of_all_rows_does(tube):
    rng = np.random.default_rng(1)
    n, rows = 12, np.array([1, 4, 5, 9])
    A = rng.normal(size=(n, n))
    K, linear = A @ A.T, rng.normal(size=n)
    problem = BoxQP(PrecomputedGram(K), linear, -np.ones(n), np.ones(n), tube=tube, totals=())
    point = Iterate.begin(problem, rng.uniform(-1, 1, n))
    point.F = linear - K @ point.beta
    part, before = point.take(rows), point.dual()
    assert part.dual() == 0.0
    change = rng.uniform(-0.1, 0.1, len(rows))
    part.beta, part.F = part.beta + change, part.F - K[np.ix_(rows, rows)] @ change
    point.beta[rows] += change
    point.F -= K[:, rows] @ change
    tolerance = n * np.finfo(float).eps * float(np.abs(K).sum())
    assert part.dual() == pytest.approx(point.dual() - before, abs=tolerance)


def test_half_of_the_violators_are_drawn_from_all_where_asked():
    values = np.arange(1000.0)
    rising, falling = values.copy(), np.full(1000, 1.0)
    worst = select(rising.copy(), falling.copy(), 80, np.empty(0, np.intp))
    selection = select(rising.copy(), falling.copy(), 80, np.empty(0, np.intp), np.random.default_rng(0))
    assert set(range(960, 1000)) <= set(worst)
    assert set(range(980, 1000)) <= set(selection)
    assert len(set(selection) & set(range(960))) > 10
    assert len(np.unique(selection)) == len(selection)
