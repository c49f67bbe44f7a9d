"""Steps among the active rows of a stored matrix give the answer of steps among all rows."""

from __future__ import annotations

import numpy as np
import pytest

from mercer.gram import PrecomputedGram
from mercer.kernels import RBF
from mercer.loops.picked import pick_entries
from mercer.solvers.solution import Status
from mercer.solvers.svm import shrinking
from mercer.solvers.svm.block import resolves
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
    p = problem(rng)
    point = Iterate.begin(p, np.where(p.linear > 0, 100.0, -100.0) * (rng.random(900) < 0.5))
    point.F = 1e-3 * rng.standard_normal(900)
    # Entries of some hundreds, as of counts of features.
    diagonal, single = np.full(900, 400.0), np.dtype(np.float32)
    assert not resolves(single, diagonal, point, 1e-6)
    assert resolves(single, diagonal, point, 1e-6, begin=point.beta)
    assert not resolves(single, diagonal, point, 1e-6, begin=np.zeros(900))


def test_free_sets_are_not_tried_before_steps_have_taken_as_long(rng, monkeypatch):
    tried = []
    monkeypatch.setattr(shrinking, "interior_round", lambda *a, **options: tried.append(1) or False)
    p = problem(rng)
    start = Start(matrix=np.float32(p.gram.stored_array()))
    # A float64 gradient a little above what steps in float32 have reached is no reason to.
    monkeypatch.setattr(shrinking, "_FEWEST", 10**6)
    assert SMO().solve(p, start).status is Status.converged and not tried
    monkeypatch.setattr(shrinking, "_FEWEST", 10)
    monkeypatch.setattr(shrinking, "_FACTOR_STEPS", 10**6)
    assert SMO().solve(p, start).status is Status.converged and tried


def test_where_free_sets_fail_an_interior_point_method_ends_the_part(rng, monkeypatch):
    # Counts of few symbols: the matrix of the free weights is singular, sets do not settle, and pairs crawl.
    F = rng.multinomial(60, rng.dirichlet(np.ones(40)), 900).astype(float)
    y = np.where((F - F.mean(axis=0)) @ rng.standard_normal(40) + 4.0 * rng.standard_normal(900) > 0, 1.0, -1.0)
    p = BoxQP.classification(PrecomputedGram(F @ F.T), y, np.full(900, 10.0))
    start, ends = Start(matrix=np.float32(p.gram.stored_array())), []
    inner = shrinking.interior_round

    def counted(K, point, **options):
        better = inner(K, point, **options)
        if options == {"free_sets": False}:
            ends.append((len(K), better, point.violation()))
        return better

    monkeypatch.setattr(shrinking, "interior_round", counted)
    few = SMO(tol=1e-4).solve(p, start)
    assert ends and all(q <= 450 and better and violation < 1e-2 for q, better, violation in ends)
    monkeypatch.setattr(shrinking, "_INTERIOR", 0)
    ends.clear()
    many = SMO(tol=1e-4).solve(p, start)
    assert not ends and few.certificate.iterations < 0.8 * many.certificate.iterations
    for answer in (few, many):
        assert answer.status is Status.converged and answer.certificate.kkt_violation <= 1e-4
    assert few.certificate.dual == pytest.approx(many.certificate.dual, rel=1e-5)
