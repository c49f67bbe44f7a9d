"""The solution by sets of free weights, against the interior point method."""

from __future__ import annotations

import numpy as np
import pytest

from mercer.gram import PrecomputedGram
from mercer.kernels import RBF
from mercer.solvers.svm import active_set, smo, whole_matrix
from mercer.solvers.svm.box_qp import BoxQP
from mercer.solvers.svm.free_set import solution_by_free_sets
from mercer.solvers.svm.interior import interior_point
from mercer.solvers.svm.quadratic import StoredQuadratic
from mercer.solvers.svm.smo import SMO


def box_problem(rng, n=80, bound=2.0):
    X = rng.standard_normal((n, 3))
    y = np.sign(X[:, 0] + 0.5 * rng.standard_normal(n))
    return RBF(1.0)(X), y, np.minimum(0.0, bound * y), np.maximum(0.0, bound * y)


@pytest.mark.parametrize("sums", [0, 1, 2])
def test_it_is_the_solution_of_the_interior_point_method(rng, sums):
    K, y, lower, upper = box_problem(rng)
    A = np.stack([y > 0, y < 0], axis=1).astype(float) if sums == 2 else np.ones((80, sums))
    totals = np.array([0.0, 20.0, -20.0])[:1] if sums == 1 else np.array([20.0, -20.0])[:sums]
    expected = interior_point(StoredQuadratic(K), y, lower, upper, A, totals)
    # Near it, with the same sums.
    other = interior_point(StoredQuadratic(K), 1.1 * y, lower, upper, A, totals)
    start = 0.8 * expected + 0.2 * other
    result = solution_by_free_sets(K, y, start, lower, upper, A)
    assert result is not None and (result >= lower).all() and (result <= upper).all()
    np.testing.assert_allclose(result, expected, atol=1e-6)
    np.testing.assert_allclose(A.T @ result, totals, atol=1e-9)


def test_none_where_the_sets_do_not_settle(rng):
    # A matrix of rank one has no solution for free weights.
    x = rng.standard_normal(40)
    y = np.sign(rng.standard_normal(40))
    lower, upper = np.minimum(0.0, y), np.maximum(0.0, y)
    assert solution_by_free_sets(np.outer(x, x), y, np.zeros(40), lower, upper, np.ones((40, 1))) is None
    assert solution_by_free_sets(np.full((40, 40), np.nan), y, 0.5 * y, lower, upper, np.ones((40, 1))) is None


@pytest.mark.parametrize("kernel", ["rbf", "linear"])
def test_crawling_pairs_are_left_for_free_sets_early(rng, monkeypatch, kernel):
    made = []

    def counted(K, point, *, free_sets_only=False):
        made.append(free_sets_only)
        return whole_matrix.interior_round(K, point, free_sets_only=free_sets_only)

    monkeypatch.setattr(active_set, "interior_round", counted)
    monkeypatch.setattr(active_set, "_FEWEST", 1)
    monkeypatch.setattr(smo, "WHOLE", 1)
    X = rng.standard_normal((700, 3))
    y = np.sign(X[:, 0] * X[:, 1] + 0.3 * rng.standard_normal(700))
    K = RBF(2.0)(X) if kernel == "rbf" else X @ X.T
    problem = BoxQP.classification(PrecomputedGram(K), y, np.full(700, 1e4))
    solution = SMO().solve(problem)
    assert True in made and solution.certificate.kkt_violation <= 1e-3
