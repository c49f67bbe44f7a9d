"""Means of clusters: moves are the same as a new start, bounds miss no row, precisions and layouts agree."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from mercer import Gram
from mercer.engine.progress import Progress
from mercer.gram import PrecomputedGram
from mercer.kernels import RBF, Linear
from mercer.solvers.clustering.bounds import Bounds
from mercer.solvers.clustering.descent import Descent, Rules
from mercer.solvers.clustering.dual_means import DualMeans
from mercer.solvers.clustering.entries import Entries
from mercer.solvers.clustering.kmeans import Clustering, solve
from mercer.solvers.clustering.means import Assignment, Means, inertia, squares
from mercer.solvers.clustering.primal_means import Coordinates, PrimalMeans
from mercer.solvers.clustering.starts import Start, plus_plus

RNG = np.random.default_rng(0)
N, K = 700, 4
X = RNG.normal(size=(N, 3))
WEIGHT = RNG.uniform(0.5, 2.0, N)
LABELS = RNG.integers(0, K, N).astype(np.int32)
EPS = float(np.finfo(np.float64).eps)


def all_means(weight: np.ndarray = WEIGHT) -> dict[str, Means]:
    """Of the linear kernel, in every way."""
    gram = PrecomputedGram(X @ X.T)
    norms = (X**2).sum(axis=1)
    return {
        "stored": DualMeans(Entries(gram), norms, weight, K),
        "evaluated": DualMeans(Entries(Gram(Linear(), X)), norms, weight, K),
        "coordinates": PrimalMeans(Coordinates(X, X.shape), norms, weight, K),
        "sparse": PrimalMeans(Coordinates(sp.csr_matrix(X), X.shape), norms, weight, K),
        "made": PrimalMeans(Coordinates(lambda rows: X[rows], X.shape), norms, weight, K),
    }


def by_hand(labels: np.ndarray) -> np.ndarray:
    return np.array([np.average(X[labels == c], axis=0, weights=WEIGHT[labels == c]) for c in range(K)])


@pytest.mark.parametrize("name", all_means())
@pytest.mark.parametrize("share", [0.05, 0.9])
def test_moves_are_the_same_as_a_new_start(name: str, share: float) -> None:
    means = all_means()[name]
    means.begin(LABELS)
    new = LABELS.copy()
    moved = np.flatnonzero(np.random.default_rng(1).random(N) < share)
    new[moved] = (new[moved] + 1 + moved % 3) % K
    shift = means.move(moved, LABELS[moved], new)
    centres = by_hand(new)
    assert shift == pytest.approx(((centres - by_hand(LABELS)) ** 2).sum(), rel=1e-9)
    np.testing.assert_allclose(squares(means), (centres**2).sum(axis=1), rtol=1e-9, atol=1e-14)
    distances = ((X[:, None] - centres) ** 2).sum(axis=2)
    assert inertia(means, WEIGHT) == pytest.approx(WEIGHT @ distances[np.arange(N), new], rel=1e-12)
    assignment = means.nearest(new, whole=True)
    np.testing.assert_array_equal(assignment.labels, distances.argmin(axis=1))
    np.testing.assert_allclose(assignment.squared, distances.min(axis=1), atol=1e-12)
    np.testing.assert_allclose(assignment.excess, distances[np.arange(N), new] - distances.min(axis=1), atol=1e-12)


@pytest.mark.parametrize("name", all_means())
def test_distances_from_rows(name: str) -> None:
    rows = np.array([3, 600, 44])
    expected = ((X[:, None] - X[rows]) ** 2).sum(axis=2)
    np.testing.assert_allclose(all_means()[name].to_rows(rows), expected, atol=1e-13)


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 10_000), st.integers(1, 6), st.floats(0.0, 1.0))
def test_bounds_miss_no_row(seed: int, steps: int, size: float) -> None:
    rng = np.random.default_rng(seed)
    points, centres = rng.normal(size=(50, 2)), rng.normal(size=(3, 2))
    bounds = Bounds(50, 3)

    def look(rows: np.ndarray) -> None:
        away = np.linalg.norm(points[rows, None] - centres, axis=2)
        labels[rows] = away.argmin(axis=1)
        bounds.keep(rows, away, Assignment(labels[rows], away.min(axis=1) ** 2, np.zeros(len(rows))))

    labels = np.zeros(50, np.int32)
    slack = 16 * EPS
    assert len(bounds.undecided(labels, slack, False, None)) == 50
    look(np.arange(50))
    for _ in range(steps):
        shift = size * rng.normal(size=centres.shape)
        centres = centres + shift
        bounds.move(np.linalg.norm(shift, axis=1), known=True)
        rows = bounds.undecided(labels, slack, False, None)
        look(rows)
        # Those left out are where they belong, too.
        np.testing.assert_array_equal(labels, np.linalg.norm(points[:, None] - centres, axis=2).argmin(axis=1))
    bounds.move(np.zeros(3), known=False)
    assert len(bounds.undecided(labels, slack, False, None)) == 50


def test_bounds_leave_rows_out() -> None:
    means: Any = all_means()["coordinates"]
    run = Descent(means, WEIGHT, LABELS, 0, Rules(100, 0.0), Progress(None, ""))
    counts: list[int] = []
    take = means._coordinates.take
    means._coordinates.take = lambda rows: counts.append(len(rows)) or take(rows)
    run.explore()
    # Two looks of an iteration without bounds: at all rows, and at those that move.
    assert run.steps > 5 and sum(counts) < 0.7 * N * run.steps


def test_all_kinds_take_the_same_steps() -> None:
    runs = {}
    for name, means in all_means().items():
        runs[name] = Descent(means, WEIGHT, LABELS, 0, Rules(100, 0.0), Progress(None, ""))
        runs[name].explore()
    first = runs["stored"]
    assert (np.diff(first.history) < 0).all()
    for run in runs.values():
        np.testing.assert_array_equal(run.labels, first.labels)
        np.testing.assert_allclose(run.history, first.history, rtol=1e-12)


def test_a_step_that_raises_the_inertia_is_taken_back() -> None:
    # No kernel matrix: rows are nearer to others than to themselves.
    K_ = np.array([[0.0, 2.0, -1.0], [2.0, 0.0, 1.0], [-1.0, 1.0, 0.0]])
    problem = Clustering(
        PrecomputedGram(K_),
        np.ones(3),
        2,
        Start("labels", np.array([0, 0, 1])),
        1,
        50,
        0.0,
        np.random.RandomState(0),
        convex=False,
    )
    for labels in ([0, 0, 1], [0, 1, 1], [0, 1, 0]):
        solution = solve(Clustering(**{**vars(problem), "start": Start("labels", np.array(labels))}))
        assert (np.diff(solution.value.history[:-1]) <= 0).all()
        assert solution.status.name in ("converged", "stationary")


def test_seeds_are_far_apart() -> None:
    points = np.array([[0.0], [0.1], [50.0], [50.1], [99.0], [99.1]])
    for seed in range(10):
        means = PrimalMeans(Coordinates(points, (6, 1)), (points**2).sum(axis=1), np.ones(6), 3)
        labels = plus_plus(means, np.ones(6), 3, np.random.RandomState(seed))
        assert [labels[0] == labels[1], labels[2] == labels[3], labels[4] == labels[5]] == [True] * 3
        assert len(set(labels)) == 3


def test_values_too_near_to_each_other_for_float32() -> None:
    rows = np.random.default_rng(3).normal(size=(300, 2))
    gram = Gram(RBF(1e4), rows)
    rough = DualMeans(Entries(gram.astype(np.float32)), gram.diagonal(), np.ones(300), 3)
    exact = DualMeans(Entries(gram.astype(np.float64)), gram.diagonal(), np.ones(300), 3)
    start = np.random.default_rng(4).integers(0, 3, 300).astype(np.int32)
    run = Descent(rough, np.ones(300), start, 0, Rules(100, 0.0), Progress(None, ""))
    run.explore()
    final = Descent(exact, np.ones(300), run.labels, run.steps, Rules(100, 0.0), Progress(None, ""))
    status, results = final.finish(last=False)
    assert status.name in ("converged", "stalled")
    # As near as float64 can tell, these are k-means clusters of the rows themselves.
    centres = np.array([rows[results.labels == c].mean(axis=0) for c in range(3)])
    squared = ((rows[:, None] - centres) ** 2).sum(axis=2)
    assert (squared[np.arange(300), results.labels] - squared.min(axis=1)).max() <= 64 * EPS * 1e8
