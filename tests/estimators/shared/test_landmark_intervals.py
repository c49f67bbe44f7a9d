"""Intervals of fits over landmarks against refits over the same landmarks, without each row in turn."""

from __future__ import annotations

import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone

import mercer
from mercer import Blocks, ConformalRegressor, GaussianProcessRegressor, KernelRidge
from mercer._errors import DataError, MemoryBudgetError, MercerWarning, NumericalError, ParameterError
from mercer.engine import memory
from mercer.kernels import RBF, White

RNG = np.random.default_rng(0)
X, NEW = RNG.normal(size=(40, 2)), RNG.normal(size=(7, 2))
Y = np.sin(X[:, 0]) + 0.1 * RNG.normal(size=40)
Z = RNG.normal(size=(9, 2))
# Far from all rows.
NEW[0] += 10.0
OPTIONS: dict[str, Any] = {"kernel": "rbf", "gamma": 0.5, "approximation": "nystroem"}


def refitted(kernel: Any, y: np.ndarray, rows: np.ndarray, alpha: float, coverage: float) -> tuple[Any, Any]:
    """The definition: normal equations without each observation, whose row is named, in turn."""
    low, high, K = [], [], kernel(Z)
    for j, row in enumerate(rows):
        A = kernel(X[np.delete(rows, j)], Z)
        beta = np.linalg.solve(A.T @ A + alpha * K, A.T @ y[np.delete(rows, j)])
        error = abs(y[row] - (kernel(X[row][None], Z) @ beta)[0])
        low.append(kernel(NEW, Z) @ beta - error)
        high.append(kernel(NEW, Z) @ beta + error)
    rank = int(np.floor(round((1 - coverage) * (len(rows) + 1), 9)))
    return np.sort(low, axis=0)[rank - 1], np.sort(high, axis=0)[-rank]


@pytest.mark.parametrize("coverage", [0.5, 0.8, 0.9])
@pytest.mark.parametrize("alpha", [1e-2, 1.0])
def test_intervals_are_those_of_refits(alpha: float, coverage: float) -> None:
    ridge = KernelRidge(alpha, landmarks=Z, **OPTIONS).fit(X, Y)
    found = ridge.interval(NEW, coverage, training=(X, Y))
    lower, upper = refitted(ridge.kernel_, Y, np.arange(40), alpha, coverage)
    np.testing.assert_allclose(found.lower, np.minimum(lower, upper), atol=1e-8)
    np.testing.assert_allclose(found.upper, np.maximum(lower, upper), atol=1e-8)
    assert found.guaranteed == pytest.approx(2 * coverage - 1)
    assert found.method == "jackknife+ by exact leave-one-out over the same landmarks"


def test_weights_are_repetitions() -> None:
    ridge, weights = KernelRidge(0.3, landmarks=Z, **OPTIONS), RNG.integers(0, 4, 40)
    found = ridge.fit(X, Y, weights).interval(NEW, 0.8, training=(X, Y, weights))
    lower, upper = refitted(ridge.kernel_, Y, np.repeat(np.arange(40), weights), 0.3, 0.8)
    np.testing.assert_allclose(found.lower, lower, atol=1e-8)
    np.testing.assert_allclose(found.upper, upper, atol=1e-8)
    assert found.guaranteed == 0.0


def test_every_target_has_its_own_intervals() -> None:
    both, alpha = np.c_[Y, Y**2, Y - X[:, 1]], [0.3, 1.0, 0.3]
    found = KernelRidge(alpha, landmarks=Z, **OPTIONS).fit(X, both).interval(NEW, 0.8, training=(X, both))
    for j in range(3):
        alone = KernelRidge(alpha[j], landmarks=Z, **OPTIONS).fit(X, both[:, j])
        lower, upper = refitted(alone.kernel_, both[:, j], np.arange(40), alpha[j], 0.8)
        np.testing.assert_allclose(found.lower[:, j], lower, atol=1e-8)
        np.testing.assert_allclose(found.upper[:, j], upper, atol=1e-8)


@pytest.mark.parametrize("weights", [None, RNG.uniform(0.2, 3.0, 40)], ids=["alike", "weighted"])
def test_all_rows_as_landmarks_give_the_intervals_of_the_exact_fit(weights: Any) -> None:
    exact = KernelRidge(0.3, kernel="rbf", gamma=0.5).fit(X, Y, weights).interval(NEW, 0.8)
    over = KernelRidge(0.3, landmarks=X, **OPTIONS).fit(X, Y, weights)
    found = over.interval(NEW, 0.8, training=(X, Y, weights))
    np.testing.assert_allclose(found.lower, exact.lower, atol=1e-8)
    np.testing.assert_allclose(found.upper, exact.upper, atol=1e-8)
    assert found.guaranteed == exact.guaranteed


def test_few_rows_decide_and_small_budgets_give_the_same() -> None:
    rng = np.random.default_rng(1)
    rows, new = rng.normal(size=(3000, 2)), rng.normal(size=(300, 2))
    y = np.sin(rows[:, 0]) + 0.2 * rng.standard_t(3, size=3000)
    ridge = KernelRidge(1.0, landmarks=rng.normal(size=(30, 2)), **OPTIONS).fit(rows, y)
    whole = ridge.interval(new, training=(rows, y))
    A = ridge.kernel_(rows, ridge.X_fit_)
    H = A.T @ A + ridge.kernel_(ridge.X_fit_)
    beta, turned = np.linalg.solve(H, A.T @ y), np.linalg.solve(H, A.T)
    errors = (y - A @ beta) / (1 - np.einsum("ij,ji->i", A, turned))
    B = ridge.kernel_(new, ridge.X_fit_)
    low = np.sort((B @ beta)[:, None] - (B @ turned) * errors - np.abs(errors), axis=1)
    np.testing.assert_allclose(whole.lower, low[:, 299], atol=1e-8)
    # All numbers of all pairs of rows would take 7 MB.
    with mercer.config(memory="700KiB"):
        np.testing.assert_allclose(ridge.interval(new, training=(rows, y)).lower, whole.lower, atol=1e-10)
    with mercer.config(memory="200KiB"), pytest.raises(MemoryBudgetError, match=r"ConformalRegressor\(learner, cv=0.3"):
        ridge.interval(new, training=(rows, y))


def test_what_is_allocated_was_reserved() -> None:
    rng = np.random.default_rng(0)
    rows, new = rng.normal(size=(50_000, 3)), rng.normal(size=(2000, 3))
    y = rows + rng.standard_t(3, size=(50_000, 3))
    ridge = KernelRidge(1.0, n_landmarks=5, landmarks="uniform", random_state=0, **OPTIONS).fit(rows, y)
    ridge.interval(new[:10], training=(rows, y))
    # Each thread keeps a tile of its own, which is not in the account.
    with mercer.config(n_jobs=1), memory.track() as account:
        tracemalloc.start()
        ridge.interval(new, training=(rows, y))
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    # Beside it are the rows themselves, which the kernel keeps with their squares.
    assert peak < account.peak + 2 * rows.nbytes


@pytest.mark.filterwarnings("ignore:KernelRidge. the mean squared error")
def test_new_targets_are_covered_as_often_as_was_asked_for() -> None:
    covered = []
    for seed in range(20):
        rng = np.random.default_rng(seed)
        rows = rng.uniform(-2, 2, size=(400, 1))
        y = np.sin(2 * rows[:, 0]) + 0.2 * (2.5 + rows[:, 0]) * (rng.exponential(size=400) - 1)
        ridge = KernelRidge(0.5, n_landmarks=10, random_state=0, **OPTIONS).fit(rows[:200], y[:200])
        found = ridge.interval(rows[200:], training=(rows[:200], y[:200]))
        covered.append(np.mean((found.lower <= y[200:]) & (y[200:] <= found.upper)))
    assert 0.88 < np.mean(covered) < 0.93


@pytest.mark.parametrize(
    ("options", "guaranteed"),
    [
        ({"landmarks": Z}, 0.8),
        ({"landmarks": X[:9]}, 0.0),
        ({"landmarks": "uniform", "n_landmarks": 9}, 0.0),
        ({"landmarks": "kmeans", "n_landmarks": 9}, 0.0),
        ({"landmarks": "uniform", "n_landmarks": 40}, 0.8),
        ({"landmarks": Z, "alpha": "loo"}, 0.0),
        ({"landmarks": Z, "gamma": "scale"}, 0.0),
    ],
    ids=str,
)
def test_what_is_guaranteed_is_said(options: dict[str, Any], guaranteed: float) -> None:
    ridge = KernelRidge(**{"alpha": 0.1, "random_state": 0, **OPTIONS, **options}).fit(X, Y)
    found = ridge.interval(NEW, training=(X, Y))
    assert found.guaranteed == guaranteed and (found.lower < found.upper).all()


def test_a_saved_model_needs_the_rows_and_nothing_else(tmp_path: Path) -> None:
    ridge = KernelRidge(0.3, n_landmarks=9, random_state=0, **OPTIONS).fit(X, Y)
    mercer.save(ridge, tmp_path / "m.mercer")
    loaded = mercer.load(tmp_path / "m.mercer")
    for found, own in zip(
        vars(loaded.interval(NEW, training=(X, Y))).values(),
        vars(ridge.interval(NEW, training=(X, Y))).values(),
        strict=True,
    ):
        np.testing.assert_array_equal(found, own)


def test_other_rows_are_an_error() -> None:
    weights = RNG.integers(1, 4, 40)
    ridge = KernelRidge(0.3, landmarks=Z, **OPTIONS).fit(X, Y, weights)
    for training in ((X, Y), (X, Y + 1.0, weights), (X[:30], Y[:30], weights[:30])):
        with pytest.raises(DataError, match="training does not hold the rows that this KernelRidge was fitted to"):
            ridge.interval(NEW, training=training)
    with pytest.raises(DataError, match=r"training has targets of shape \(40, 2\), but .* was fitted to one target"):
        ridge.interval(NEW, training=(X, np.c_[Y, Y]))
    assert np.isfinite(ridge.interval(NEW, training=(X, Y, weights)).lower).all()


def test_training_is_needed_by_fits_over_landmarks_alone() -> None:
    ridge = KernelRidge(0.3, landmarks=Z, **OPTIONS).fit(X, Y)
    with pytest.raises(ParameterError, match=r"interval\(X, training=\(X_train, y_train\)\), or fit mercer.Conf"):
        ridge.interval(NEW)
    for training, words in (
        (X, "is a ndarray"),
        ((X,), "has 1 parts"),
        ((X, Y, None, None), "has 4 parts"),
        (Blocks(X, Y), "is a Blocks"),
        ((Blocks(X, Y), Y), "are a Blocks"),
    ):
        with pytest.raises(ParameterError, match=words):
            ridge.interval(NEW, training=training)
    with pytest.raises(ParameterError, match="kept its training rows; leave out training"):
        KernelRidge().fit(X, Y).interval(NEW, training=(X, Y))


def test_a_row_that_decides_its_own_prediction_is_an_error() -> None:
    rows, y = np.array([[0.0], [1.0], [100.0]]), np.array([0.0, 1.0, 2.0])
    ridge = KernelRidge(1e-14, landmarks=rows, **OPTIONS).fit(rows, y)
    with pytest.raises(NumericalError, match="goes through the target of row"):
        ridge.interval(rows, 0.5, training=(rows, y))


def test_few_rows_have_unbounded_intervals_with_a_warning() -> None:
    ridge = KernelRidge(1.0, landmarks=Z, **OPTIONS).fit(X[:8], Y[:8])
    with pytest.warns(MercerWarning, match="unbounded for 8 rows; they need 9"):
        found = ridge.interval(NEW, 0.9, training=(X[:8], Y[:8]))
    assert np.isinf(found.upper).all() and np.isinf(found.lower).all()


def test_folds_and_held_out_rows_work_with_landmarks() -> None:
    rng = np.random.default_rng(2)
    rows = rng.normal(size=(2000, 2))
    y = np.sin(rows[:, 0]) + 0.2 * rng.normal(size=2000)
    learner = KernelRidge(0.5, n_landmarks=20, random_state=0, **OPTIONS)
    for cv in (3, 0.3):
        # The kernel matrix of all rows would take 32 MB.
        with mercer.config(memory="4MiB"):
            found = ConformalRegressor(learner, cv=cv).fit(rows[:1500], y[:1500]).interval(rows[1500:])
        assert 0.85 < np.mean((found.lower <= y[1500:]) & (y[1500:] <= found.upper)) < 0.95


KERNELS = [(RBF(1.0), None, 0.1), (1.5 * RBF(1.0) + White(0.2), 0.3, 0.6)]


@pytest.mark.parametrize(("kernel", "noise", "variance"), KERNELS, ids=["alpha", "all"])
def test_a_process_has_the_intervals_of_refits(kernel: Any, noise: float | None, variance: float) -> None:
    process = GaussianProcessRegressor(
        kernel, alpha=0.1, noise=noise, optimizer=None, approximation="nystroem", landmarks=Z
    )
    found = process.fit(X, Y).interval(NEW, 0.8, training=(X, Y))

    def moments(model: Any, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        mean, std = model.predict(rows, return_std=True, observation=False)
        return mean, np.sqrt(std**2 + variance)

    low, high = [], []
    for row in range(40):
        rows = np.delete(np.arange(40), row)
        model = process.fit(X[rows], Y[rows])
        (mean, spread), (own, unit) = moments(model, NEW), moments(model, X[[row]])
        radius = spread * abs(Y[row] - own) / unit
        low.append(mean - radius)
        high.append(mean + radius)
    np.testing.assert_allclose(found.lower, np.sort(low, axis=0)[7], atol=1e-8)
    np.testing.assert_allclose(found.upper, np.sort(high, axis=0)[-8], atol=1e-8)
    assert found.guaranteed == 0.6


@pytest.mark.parametrize("alpha", [0.1, RNG.uniform(0.05, 0.5, 40)], ids=["alike", "each"])
@pytest.mark.parametrize("normalize", [False, True])
def test_all_rows_as_landmarks_give_the_intervals_of_the_exact_process(normalize: bool, alpha: Any) -> None:
    both = np.c_[Y + 3.0, Y**2]
    exact = GaussianProcessRegressor(RBF(1.0), alpha=alpha, normalize_y=normalize, optimizer=None).fit(X, both)
    over = clone(exact).set_params(approximation="nystroem", landmarks=X).fit(X, both)
    found, expected = over.interval(NEW, 0.8, training=(X, both)), exact.interval(NEW, 0.8)
    np.testing.assert_allclose(found.lower, expected.lower, atol=1e-6)
    np.testing.assert_allclose(found.upper, expected.upper, atol=1e-6)
    assert found.guaranteed == expected.guaranteed


def test_a_saved_process_with_searched_parameters_takes_its_rows(tmp_path: Path) -> None:
    process = GaussianProcessRegressor(
        RBF(1.0), noise=0.1, approximation="nystroem", n_landmarks=12, random_state=0
    ).fit(X, Y)
    mercer.save(process, tmp_path / "m.mercer")
    found = mercer.load(tmp_path / "m.mercer").interval(NEW, training=(X, Y))
    np.testing.assert_array_equal(found.lower, process.interval(NEW, training=(X, Y)).lower)
    assert found.guaranteed == 0.0
    # Far from all rows the process is less sure.
    assert (found.upper - found.lower)[0] > (found.upper - found.lower)[1:].max()
    with pytest.raises(DataError, match="does not hold the rows that this GaussianProcessRegressor was fitted to"):
        process.interval(NEW, training=(X, Y[::-1]))
    with pytest.raises(ParameterError, match="which has no sample weights, but has three parts"):
        process.interval(NEW, training=(X, Y, np.ones(40)))
    with pytest.raises(ParameterError, match="interval needs the training rows"):
        process.interval(NEW)
