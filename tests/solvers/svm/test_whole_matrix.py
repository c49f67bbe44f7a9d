"""The whole matrix is held where most rows are needed and it fits the memory budget."""

import numpy as np
import pytest

import mercer
from mercer import Gram, kernels
from mercer.solvers.svm import active_set, whole_matrix
from mercer.solvers.svm.box_qp import BoxQP
from mercer.solvers.svm.smo import SMO


@pytest.mark.parametrize("intercept", [True, pytest.param(False, marks=pytest.mark.slow)])
def test_the_memory_budget_and_not_the_cache_decides_whether_the_matrix_is_held(intercept, monkeypatch):
    passes, subtract = [], whole_matrix._subtract
    # 4200 rows are like more than 8192: a part comes before all.
    monkeypatch.setattr(active_set, "FIRST", 1024)
    monkeypatch.setattr(whole_matrix, "_subtract", lambda *a: passes.append(1) or subtract(*a))
    rng = np.random.default_rng(0)
    n, d = 4200, 70
    X = rng.normal(size=(n, d))
    # Next to noise: nearly all rows become support vectors.
    y = np.where(X[:, 0] + 2.0 * rng.normal(size=n) > 0, 1.0, -1.0)
    problem = BoxQP.classification(Gram(kernels.RBF.from_gamma(1 / d), X), y, np.full(n, 3.0), intercept=intercept)
    whole, little = 4 * n * n, 2**20
    solution = SMO(cache_bytes=little, n_jobs=2).solve(problem)
    # Steps go on to the tolerance before the gradients are computed in float64.
    assert 1 <= len(passes) <= 2
    with mercer.config(memory=whole + whole // 2):
        other = SMO(cache_bytes=little, n_jobs=2).solve(problem)
    assert solution.certificate.peak_bytes > whole > other.certificate.peak_bytes
    for answer in (solution, other):
        assert answer.certificate.kkt_violation <= 1e-3
        assert len(np.flatnonzero(answer.value.beta)) > 0.5 * n
    assert solution.certificate.dual == pytest.approx(other.certificate.dual, rel=1e-5)
    # Steps that choose among all rows are fewer.
    assert solution.certificate.iterations < other.certificate.iterations
