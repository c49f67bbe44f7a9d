"""The preconditioner from landmarks that stand for the rows closest to them."""

from __future__ import annotations

import numpy as np
import pytest

from mercer import config
from mercer._errors import NumericalError
from mercer.gram import Gram
from mercer.gram.precomputed import PrecomputedGram
from mercer.kernels import RBF, Linear
from mercer.solvers.restricted import clusters, least_squares, precondition
from mercer.solvers.restricted.clusters import Clusters
from mercer.solvers.restricted.least_squares import RestrictedCG
from mercer.solvers.restricted.least_squares_problem import RestrictedLeastSquares
from mercer.solvers.restricted.passes import StoredRows
from mercer.solvers.restricted.whitening import Whitening
from mercer.solvers.solution import Status

KERNEL = RBF(1.5)
RNG = np.random.default_rng(0)
Z = RNG.normal(size=(40, 3))


def whitening(kernel=KERNEL):
    return Whitening.of(np.asarray(kernel(Z)))


def product(factor):
    return np.triu(factor).T @ np.triu(factor)


@pytest.mark.parametrize("penalty, rtol", [(1.0, 1e-5), (1e-6, 1e-9)])
def test_of_rows_that_are_landmarks_the_hessian_is_exact(penalty, rtol):
    """In float32 for the large penalty, in float64 for the small one."""
    white, weights = whitening(), RNG.uniform(0.5, 2.0, 120)
    rows = np.repeat(np.arange(40), 3)
    K = np.asarray(KERNEL(Z[rows], Z))
    targets = RNG.normal(size=(120, 2))
    estimated = Clusters.of(PrecomputedGram(K, symmetric=False), weights, targets, white)
    found = product(estimated.factor(penalty))
    features = white.features(K.copy())
    np.testing.assert_allclose(estimated.products(), features.T @ (weights[:, None] * targets), atol=1e-8)
    exact = features.T @ (weights[:, None] * features) + penalty * np.eye(40)
    np.testing.assert_allclose(found, exact, rtol=0, atol=rtol * exact.max())


@pytest.mark.parametrize("stored", [True, False])
def test_rows_belong_to_the_closest_landmark_in_feature_space(stored):
    X = RNG.normal(size=(700, 3))
    kernel = Linear() + 1.0
    gram = PrecomputedGram(np.asarray(kernel(X, Z)), symmetric=False) if stored else Gram(kernel, X, Z)
    found = Clusters.of(gram, np.ones(700), X, whitening(kernel), n_jobs=2)
    closest = ((X[:, None] - Z) ** 2).sum(axis=2).argmin(axis=1)
    np.testing.assert_array_equal(found.weights, np.bincount(closest, minlength=40))
    np.testing.assert_allclose(found.targets[:, 2], np.bincount(closest, X[:, 2], 40), atol=1e-12)


def test_of_many_rows_a_sample_is_assigned():
    """Of 3000 rows of one landmark and 1000 of another 40 are drawn: the share of the first is .75 on average."""
    rows = np.repeat([0, 1], [3000, 1000])
    white = Whitening.of(np.eye(2))
    seeds = range(50)
    gram, targets = PrecomputedGram(np.eye(2)[rows], symmetric=False), np.zeros((4000, 1))
    found = np.array([Clusters.of(gram, np.full(4000, 2.0), targets, white, seed).weights for seed in seeds])
    np.testing.assert_allclose(found.sum(axis=1), 8000.0)
    assert len(np.unique(found[:, 0])) > 5
    # The mean of 50 draws has a standard error of .01 of the whole.
    assert found[:, 0].mean() / 8000 == pytest.approx(0.75, abs=0.05)


def test_a_matrix_that_is_not_positive_is_refused():
    with pytest.raises(NumericalError, match="singular to working precision"):
        Clusters(whitening(), np.ones(40), np.ones((40, 1))).factor(-1e3)


def stated(n=3000, m=150, alphas=(0.3, 1.0)):
    X = RNG.normal(size=(n, 4))
    Y = np.column_stack([np.sin(2 * X).sum(axis=1), X[:, 0] * X[:, 1]]) + 0.1 * RNG.normal(size=(n, 2))
    landmarks = X[RNG.choice(n, m, replace=False)]
    rows = StoredRows(Gram(KERNEL, X, landmarks), Y, RNG.uniform(0.5, 2.0, n))
    return RestrictedLeastSquares(rows, Whitening.of(np.asarray(KERNEL(landmarks))), np.array(alphas))


def test_the_solution_is_that_with_a_sample_of_the_rows(monkeypatch):
    problem = stated()
    sampled = RestrictedCG().solve(problem)
    monkeypatch.setattr(clusters, "_STEPS", 0)
    drawn = []
    monkeypatch.setattr(precondition.Sampled, "of", lambda *arguments: drawn.append(arguments))
    found = RestrictedCG().solve(problem)
    assert not drawn
    assert found.status is sampled.status is Status.converged
    assert found.certificate.primal == pytest.approx(sampled.certificate.primal, rel=2e-6)
    assert found.certificate.peak_bytes < sampled.certificate.peak_bytes
    assert found.certificate.iterations < least_squares._PATIENCE


def test_where_landmarks_do_not_serve_a_sample_follows(monkeypatch):
    problem = stated(alphas=(1e-3, 1e-3))
    sampled = RestrictedCG().solve(problem)
    monkeypatch.setattr(clusters, "_STEPS", 0)
    found = RestrictedCG().solve(problem)
    assert found.status is Status.converged
    assert least_squares._PATIENCE < found.certificate.iterations <= 200
    assert found.certificate.primal == pytest.approx(sampled.certificate.primal, rel=2e-6)
    assert RestrictedCG(max_iter=30).solve(problem).status is Status.iteration_limit


def test_without_room_for_a_sample_landmarks_go_on(monkeypatch):
    monkeypatch.setattr(clusters, "_STEPS", 0)
    monkeypatch.setattr(precondition.Sampled, "of", None)
    problem = stated(alphas=(1e-3, 1e-3))
    with config(memory=2 * 8 * 150**2 + 10**5):
        found = RestrictedCG().solve(problem)
    assert found.status is Status.converged
    assert found.certificate.iterations > least_squares._PATIENCE


def test_values_that_are_not_stored_have_the_same_answer(monkeypatch):
    problem = stated(8000, 20)
    expected = RestrictedCG().solve(problem)
    monkeypatch.setattr(clusters, "_STEPS", 0)
    monkeypatch.setattr(precondition.Sampled, "of", None)
    with config(memory=10**5):
        found = RestrictedCG().solve(problem)
    assert found.status is Status.converged
    assert found.certificate.primal == pytest.approx(expected.certificate.primal, rel=2e-6)


def test_expensive_values_that_are_not_stored_are_sampled(monkeypatch):
    """Each further step would evaluate all of them."""
    monkeypatch.setattr(clusters, "_STEPS", 0)
    monkeypatch.setattr(Gram, "expensive", True)
    problem = stated(8000, 20)
    monkeypatch.setattr(Clusters, "of", None)
    with config(memory=precondition.sample_bytes(8000, 20) + 2 * 10**5):
        assert RestrictedCG().solve(problem).status is Status.converged
