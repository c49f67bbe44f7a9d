"""Steps among the active rows of a stored matrix give the answer of steps among all rows."""

from __future__ import annotations

import numpy as np
import pytest

from mercer.gram import PrecomputedGram
from mercer.kernels import RBF
from mercer.loops.picked import pick_entries
from mercer.solvers.solution import Status
from mercer.solvers.svm import shrinking
from mercer.solvers.svm.box_qp import BoxQP
from mercer.solvers.svm.iterate import Iterate
from mercer.solvers.svm.shrinking import active_rows, by_active_rows
from mercer.solvers.svm.smo import SMO
from mercer.solvers.svm.solver import Start


def problem(rng, n=900, C=100.0, intercept=True):
    X = rng.standard_normal((n, 4))
    y = np.where(X[:, 0] * X[:, 1] + 0.5 * rng.standard_normal(n) > 0, 1.0, -1.0)
    gram = PrecomputedGram(RBF(3.0)(X))
    return BoxQP.classification(gram, y, np.full(n, C), intercept=intercept)


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("double", [0, 512])
def test_the_answer_is_that_of_all_rows(rng, monkeypatch, intercept, double):
    p, parts = problem(rng, intercept=intercept), []
    monkeypatch.setattr(shrinking, "_DOUBLE", double)
    monkeypatch.setattr(shrinking, "pick_entries", lambda *a: parts.append(len(a[1])) or pick_entries(*a))
    start = Start(matrix=np.float32(p.gram.stored_array()))
    few = SMO(stop="gap", tol=1e-4).solve(p, start)
    if double == 0:
        assert parts and max(parts) <= 0.5 * 900
    monkeypatch.setattr(shrinking, "_MOST", 0.0)
    every = SMO(stop="gap", tol=1e-4).solve(p, start)
    for answer in (few, every):
        assert answer.status is Status.converged and answer.certificate.kkt_violation <= 1e-4
    assert few.certificate.dual == pytest.approx(every.certificate.dual, rel=2e-4)


def test_weights_at_bounds_far_from_the_margin_take_no_part(rng):
    p = problem(rng, C=1.0)
    point = Iterate.begin(p, SMO().solve(p).value.beta)
    point.F = p.linear - p.gram @ point.beta
    rows = active_rows(point, 1e-3)
    assert set(np.flatnonzero(point.free)) <= set(rows.tolist()) and len(rows) < 0.3 * 900
    assert len(rows) <= len(active_rows(point, 1.0)) < 900


def test_without_room_for_a_part_steps_are_among_all_rows(rng, monkeypatch):
    p = problem(rng)
    parts = []
    monkeypatch.setattr(shrinking, "padded", lambda *a: parts.append(1))
    monkeypatch.setattr(shrinking, "fits", lambda nbytes: False)
    point = Iterate.begin(p, None)
    K = p.gram.stored_array()
    peak = by_active_rows(K, p.gram, point, 1e-3, 10**6)
    assert peak == 0 and not parts and point.violation() <= 1e-3
    np.testing.assert_allclose(point.F, p.linear - K @ point.beta, atol=1e-8)


def test_float32_goes_on_where_only_the_change_is_rounded(rng):
    # Of entries of some hundreds, whole numbers, as counts of features have.
    counts = rng.poisson(1.0, size=(700, 60)).astype(float)
    K = counts @ counts.T
    y = np.where(counts[:, 0] + rng.standard_normal(700) > 1.0, 1.0, -1.0)
    p = BoxQP.classification(PrecomputedGram(K), y, np.full(700, 10.0))
    solution = SMO().solve(p, Start(matrix=np.float32(K)))
    assert solution.certificate.storage.startswith("held whole in float32")
    assert solution.status is Status.converged
