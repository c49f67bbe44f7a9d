"""The parameters of the kernel of all subsets of columns, by the errors in held-out rows."""

from __future__ import annotations

import numpy as np
import pytest

from mercer.estimators.tabular import anova
from mercer.estimators.tabular.anova import AnovaSearch, HeldOut, Trial
from mercer.kernels import RBF, Anova


def rows_of(n: int) -> tuple[np.ndarray, np.ndarray]:
    """A rough function of a rank, effects of categories, and a column that says nothing."""
    random = np.random.default_rng(0)
    ranks, codes, noise = random.uniform(size=n), random.integers(0, 8, n), random.uniform(size=n)
    effects = random.normal(size=8)
    y = np.sign(np.sin(40 * ranks)) + effects[codes] + 0.3 * random.normal(size=n)
    return np.column_stack([ranks, codes, noise]), ((y - y.mean()) / y.std())[:, None]


def test_the_error_is_that_of_least_squares(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(anova, "_LANDMARKS", 23)
    X, y = rows_of(120)
    rows = HeldOut.of(X, y, np.random.RandomState(0))
    assert len(rows.rows) == 90 and len(rows.others) == 30
    kernel = RBF(0.7)
    error, penalty = rows.error(kernel)
    mean = rows.targets.mean(axis=0)
    landmarks = rows.rows[:23]
    K = kernel(rows.rows, landmarks)
    coefficients = np.linalg.solve(K.T @ K + penalty * kernel(landmarks), K.T @ (rows.targets - mean))
    function, truth = kernel(rows.others, landmarks) @ coefficients, rows.truth - mean
    np.testing.assert_allclose(error, np.square(truth - function).mean() / np.square(truth).mean(), rtol=1e-6)


def test_with_few_rows_the_error_is_that_of_all_of_them() -> None:
    X, y = rows_of(120)
    rows, kernel = HeldOut.of(X, y, np.random.RandomState(0)), RBF(0.7)
    error, penalty = rows.error(kernel)
    mean = rows.targets.mean(axis=0)
    c = np.linalg.solve(kernel(rows.rows) + penalty * np.eye(90), rows.targets - mean)
    left = rows.truth - mean - kernel(rows.others, rows.rows) @ c
    np.testing.assert_allclose(error, np.square(left).mean() / np.square(rows.truth - mean).mean(), rtol=1e-6)


def test_the_search_finds_what_matters() -> None:
    X, y = rows_of(300)
    rows = HeldOut.of(X, y, np.random.RandomState(0))
    trial, count = AnovaSearch(rows, np.array([True, False, True])).best()
    assert trial.error < 0.35 and count <= 150
    assert trial.widths[0] < 0.3 and trial.widths[1] == 1.0
    assert trial.weights[2] < trial.weights[0]
    assert trial.error == rows.error(trial.kernel)[0] < rows.error(Anova(1.0, 1.0))[0]


def test_parameters_stay_within_their_bounds() -> None:
    trial = Trial(np.array([10.0]), np.array([1e-3]))
    moved = [one for sequence in trial.neighbours(0, ordered=True) for one in sequence]
    assert moved and all(1e-3 <= one.widths[0] <= 1 and 1e-3 <= one.weights[0] <= 10 for one in moved)
    assert all(one.widths[0] == 1e-3 for sequence in trial.neighbours(0, ordered=False) for one in sequence)
