"""Intervals by the jackknife+ against refits without each row, and what they say of themselves."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import mercer
from mercer import GaussianProcessRegressor, KernelRidge
from mercer._errors import MemoryBudgetError, MercerWarning, ParameterError
from mercer.kernels import RBF, White

RNG = np.random.default_rng(0)
X, NEW = RNG.normal(size=(25, 2)), RNG.normal(size=(6, 2))
Y = np.sin(X[:, 0]) + 0.1 * RNG.normal(size=25)
# Far from all rows.
NEW[0] += 10.0


def refitted(
    fit: Callable[[np.ndarray], Any], spread: Callable[[Any, np.ndarray], np.ndarray], rows: np.ndarray, coverage: float
) -> tuple[np.ndarray, np.ndarray]:
    """The definition: a fit without each observation, whose row is named, in turn."""
    low, high = [], []
    for j, row in enumerate(rows):
        model = fit(np.delete(rows, j))
        error = np.abs(Y[row] - model.predict(X[row][None])[0]) / spread(model, X[row][None])[0]
        low.append(model.predict(NEW) - error * spread(model, NEW))
        high.append(model.predict(NEW) + error * spread(model, NEW))
    rank = int(np.floor(round((1 - coverage) * (len(rows) + 1), 9)))
    return np.sort(low, axis=0)[rank - 1], np.sort(high, axis=0)[-rank]


def one(_: Any, rows: np.ndarray) -> np.ndarray:
    return np.ones(len(rows))


@pytest.mark.filterwarnings("ignore:KernelRidge. the mean squared error")
@pytest.mark.parametrize("alpha", [1e-3, 0.3])
@pytest.mark.parametrize("kernel", ["rbf", "linear", "sigmoid"])
def test_ridge_has_the_intervals_of_refits(kernel: str, alpha: float) -> None:
    ridge = KernelRidge(alpha, kernel=kernel, gamma=0.5, allow_indefinite=True)
    found = ridge.fit(X, Y).interval(NEW, 0.8)
    lower, upper = refitted(lambda rows: ridge.fit(X[rows], Y[rows]), one, np.arange(25), 0.8)
    np.testing.assert_allclose(found.lower, lower, rtol=1e-7, atol=1e-9)
    np.testing.assert_allclose(found.upper, upper, rtol=1e-7, atol=1e-9)
    assert found.guaranteed == 0.6


def test_weights_of_ridge_are_repetitions() -> None:
    ridge, weights = KernelRidge(0.3, kernel="rbf", gamma=0.5), RNG.integers(0, 4, 25)
    found = ridge.fit(X, Y, weights).interval(NEW, 0.8)
    lower, upper = refitted(lambda rows: ridge.fit(X[rows], Y[rows]), one, np.repeat(np.arange(25), weights), 0.8)
    np.testing.assert_allclose(found.lower, lower, atol=1e-12)
    np.testing.assert_allclose(found.upper, upper, atol=1e-12)
    assert found.guaranteed == 0.0


def test_every_target_of_ridge_has_its_own_intervals() -> None:
    both, alpha = np.c_[Y, Y**2], [0.3, 1.0]
    found = KernelRidge(alpha, kernel="rbf", gamma=0.5).fit(X, both).interval(NEW, 0.8)
    for j in range(2):
        alone = KernelRidge(alpha[j], kernel="rbf", gamma=0.5).fit(X, both[:, j]).interval(NEW, 0.8)
        np.testing.assert_allclose(found.lower[:, j], alone.lower, atol=1e-12)
        np.testing.assert_allclose(found.upper[:, j], alone.upper, atol=1e-12)


def test_a_kernel_of_low_rank_needs_no_kernel_matrix() -> None:
    rows = RNG.normal(size=(900, 3))
    y = rows @ [1.0, -2.0, 0.5] + RNG.normal(size=900)
    ridge = KernelRidge(0.3).fit(rows, y)
    with mercer.config(memory=4 * 900**2):
        found = ridge.interval(rows[:5])
    inverse = np.linalg.inv(rows @ rows.T + 0.3 * np.eye(900))
    errors, moves = inverse @ y / inverse.diagonal(), rows[:5] @ rows.T @ inverse
    low = np.sort((moves @ y)[:, None] - moves * errors - np.abs(errors), axis=1)
    np.testing.assert_allclose(found.lower, low[:, 89], atol=1e-8)


def test_precomputed_values_give_the_intervals_of_the_kernel() -> None:
    kernel = RBF(1.0)
    K, cross = kernel(X), kernel(NEW, X)
    for given, own in (
        (KernelRidge(0.3, kernel="precomputed"), KernelRidge(0.3, kernel=kernel)),
        (GaussianProcessRegressor("precomputed", alpha=0.3, optimizer=None), KernelRidge(0.3, kernel=kernel)),
    ):
        np.testing.assert_allclose(given.fit(K, Y).interval(cross).lower, own.fit(X, Y).interval(NEW).lower, atol=1e-10)


@pytest.mark.parametrize(
    ("mean", "kernel", "noise", "variance"),
    [
        ("zero", RBF(1.0), None, 0.1),
        ("constant", RBF(1.0) + White(0.2), 0.3, 0.6),
        ("linear", RBF(1.0) + White(0.2), 0.3, 0.6),
    ],
    ids=["zero", "constant", "linear"],
)
def test_a_process_has_the_intervals_of_refits(mean: str, kernel: Any, noise: float | None, variance: float) -> None:
    process = GaussianProcessRegressor(kernel, alpha=0.1, noise=noise, mean=mean, optimizer=None)

    def spread(model: Any, rows: np.ndarray) -> np.ndarray:
        return np.sqrt(np.square(model.predict(rows, return_std=True, observation=False)[1]) + variance)

    found = process.fit(X, Y).interval(NEW, 0.8)
    lower, upper = refitted(lambda rows: process.fit(X[rows], Y[rows]), spread, np.arange(25), 0.8)
    np.testing.assert_allclose(found.lower, lower, atol=1e-9)
    np.testing.assert_allclose(found.upper, upper, atol=1e-9)
    assert found.guaranteed == 0.6


def test_normalised_targets_give_intervals_in_their_own_units() -> None:
    process = GaussianProcessRegressor(RBF(1.0), alpha=0.1, normalize_y=True, optimizer=None)
    small, large = (process.fit(X, factor * Y + 5.0).interval(NEW) for factor in (1.0, 1000.0))
    np.testing.assert_allclose(1000.0 * (small.lower - 5.0), large.lower - 5.0, rtol=1e-9)
    assert large.guaranteed == 0.0


@pytest.mark.parametrize(
    "model",
    [
        KernelRidge("loo", kernel="rbf"),
        KernelRidge(0.1, kernel="rbf", gamma="scale"),
        KernelRidge(0.1, kernel="rbf", gamma="loo"),
        GaussianProcessRegressor(RBF(1.0), noise=0.1),
        GaussianProcessRegressor(RBF(1.0), alpha=np.full(25, 0.1), optimizer=None),
    ],
    ids=str,
)
def test_nothing_is_guaranteed_where_all_rows_chose(model: Any) -> None:
    found = model.fit(X, Y).interval(NEW)
    assert found.guaranteed == 0.0
    assert "without a guarantee" in found.explain()
    assert (found.lower < found.upper).all()


def test_new_observations_are_covered_as_often_as_was_asked_for() -> None:
    covered = []
    for seed in range(20):
        rng = np.random.default_rng(seed)
        rows = rng.uniform(-2, 2, size=(300, 1))
        # Skewed, and wider on one side.
        y = np.sin(2 * rows[:, 0]) + 0.2 * (2.5 + rows[:, 0]) * (rng.exponential(size=300) - 1)
        found = KernelRidge(0.5, kernel="rbf", gamma=1.0).fit(rows[:100], y[:100]).interval(rows[100:], 0.9)
        covered.append(np.mean((found.lower <= y[100:]) & (y[100:] <= found.upper)))
    assert 0.88 < np.mean(covered) < 0.93


@pytest.mark.parametrize("coverage", [0, 1, 1.2, -0.1, np.nan, "0.9", True, None])
@pytest.mark.parametrize("model", [KernelRidge(), GaussianProcessRegressor(alpha=0.1, optimizer=None)], ids=str)
def test_a_coverage_that_is_none_is_an_error(model: Any, coverage: Any) -> None:
    with pytest.raises(ParameterError, match="coverage must be a number between 0 and 1"):
        model.fit(X, Y).interval(NEW, coverage)


@pytest.mark.parametrize("learner", [KernelRidge, GaussianProcessRegressor])
def test_fits_over_landmarks_have_no_rows_to_leave_out(learner: Any) -> None:
    model = learner(kernel=RBF(1.0), alpha=0.1, approximation="nystroem", n_landmarks=5).fit(X, Y)
    with pytest.raises(ParameterError, match="interval needs the training rows"):
        model.interval(NEW)


def test_few_rows_have_unbounded_intervals_with_a_warning() -> None:
    model = KernelRidge(kernel="rbf").fit(X[:8], Y[:8])
    with pytest.warns(MercerWarning, match="unbounded for 8 rows; they need 9"):
        found = model.interval(NEW, 0.9)
    assert np.isinf(found.upper).all()


def test_a_matrix_beyond_the_budget_is_an_error_before_it_is_made() -> None:
    rows = RNG.normal(size=(1500, 5))
    model = KernelRidge(kernel="rbf").fit(rows, rows[:, 0])
    with mercer.config(memory="4MiB"), pytest.raises(MemoryBudgetError):
        model.interval(NEW[:1].repeat(5, axis=1)[:, :5])


def test_parts_of_the_new_rows_have_the_same_intervals() -> None:
    rows = RNG.normal(size=(700, 2))
    for model in (KernelRidge(kernel="rbf"), GaussianProcessRegressor(RBF(1.0), alpha=0.1, optimizer=None)):
        whole = model.fit(X, Y).interval(rows)
        np.testing.assert_allclose(whole.lower[600:], model.interval(rows[600:]).lower, rtol=1e-12)
