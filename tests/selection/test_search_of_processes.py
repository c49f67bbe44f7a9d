"""Searches over Gaussian processes with fixed kernels: one matrix for each kernel, and the scores of fits alone."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import loguniform
from sklearn.model_selection import ShuffleSplit
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from mercer import (
    GaussianProcessClassifier,
    GaussianProcessOrdinalRegression,
    GaussianProcessRegressor,
    GridSearchCV,
    KernelRidge,
    KernelSearchCV,
    RandomizedSearchCV,
    config,
)
from mercer.engine.memory import track
from mercer.kernels import RBF, Kernel, Matern, Spectrum, Subsequence, White
from search_cases import both, curve, three_classes, two_classes

pytestmark = pytest.mark.filterwarnings("ignore::mercer._errors.MercerWarning")

EXACT = 1e-10
# Training parts that have rows in common, and others of their own.
TWO = ShuffleSplit(2, test_size=1 / 3, random_state=0)
# The logarithms of some of these numbers have other exponentials.
KERNELS: list[Kernel] = [4.9 * RBF(1.3), 3.7 * Matern(2.1) + White(0.3), (2.3 * RBF(0.7) + White(0.2)) * Matern(4.1)]


def regressor(**options: Any) -> GaussianProcessRegressor:
    # With much less noise, rounding of the matrix decides what equal rows predict.
    return GaussianProcessRegressor(**{"optimizer": None, "alpha": 0.01, **options})


def classifier(**options: Any) -> GaussianProcessClassifier:
    return GaussianProcessClassifier(optimizer=None, **options)


def ordinal(**options: Any) -> GaussianProcessOrdinalRegression:
    return GaussianProcessOrdinalRegression(optimizer=None, **options)


def targets(count: int) -> tuple[np.ndarray, np.ndarray]:
    X, y = curve(45)
    return X, np.stack([y * (1.0 + t) + 10.0 * t for t in range(count)], axis=1)


def shared(estimator: Any, grid: dict[str, Any], X: Any, y: Any, matrices: int, **options: Any) -> GridSearchCV:
    """Compare a search with fits alone, also on training rows; and count its matrices."""
    search = GridSearchCV(estimator, grid, cv=options.pop("cv", TWO), return_train_score=True, **options)
    both(search, X, y, atol=EXACT)
    assert search.sharing_.startswith(f"{matrices} kernel matrices evaluated for ")
    return search


@pytest.mark.slow
@pytest.mark.parametrize(
    ("options", "count"),
    [
        ({}, 1),
        ({"normalize_y": True}, 3),
        ({"mean": "constant"}, 3),
        ({"mean": "constant", "noise": 0.3, "normalize_y": True}, 1),
    ],
    ids=["zero", "normalized", "constant", "noise"],
)
def test_regression(options: dict[str, Any], count: int) -> None:
    X, y = targets(count)
    grid = {"kernel": KERNELS, "alpha": [0.01, 1.0]}
    shared(regressor(**options), grid, X, y, 3, scoring=["r2", "neg_mean_squared_error"], refit="r2")


def test_regression_by_its_own_score_with_noise_that_varies() -> None:
    X, y = curve(60)
    variances = [np.linspace(0.1, 1.0, 40), 0.3]
    shared(regressor(kernel=KERNELS[1]), {"alpha": variances, "noise": [None, 0.1, 2.7]}, X, y, 1)


PROBABLE = ["accuracy", "neg_log_loss"]


@pytest.mark.parametrize(
    ("approximation", "scoring"),
    [("laplace", None), ("laplace", PROBABLE), ("ep", "neg_log_loss"), ("ep", "roc_auc")],
    ids=["score", "both", "log", "auc"],
)
def test_two_classes(approximation: str, scoring: Any) -> None:
    X, y = two_classes(40)
    grid = {"kernel": KERNELS, "max_iter_predict": [100]}
    options = {"scoring": scoring, "refit": "accuracy" if scoring is PROBABLE else True}
    shared(classifier(approximation=approximation), grid, X, y, 3, **options)


def test_three_classes() -> None:
    X, y = three_classes()
    shared(classifier(), {"kernel": KERNELS[1:]}, X[::5], y[::5], 2, scoring=PROBABLE, refit="accuracy")


@pytest.mark.parametrize("scheme", ["one_vs_rest", "one_vs_one"])
def test_classifiers_of_two_are_fitted_alone(scheme: str) -> None:
    X, y = three_classes()
    search = GridSearchCV(classifier(multi_class=scheme), {"kernel": KERNELS[:2]}, cv=TWO)
    both(search, X[::5], y[::5], atol=EXACT)
    assert search.sharing_.startswith("nothing: the fits of GaussianProcessClassifier have no kernel matrix")


@pytest.mark.parametrize("scoring", [None, "neg_log_loss"])
def test_ordered_classes(scoring: Any) -> None:
    X, y = three_classes()
    # All rows twice, in different folds and in the same.
    X, y = np.r_[X[::10], X[::10]], np.r_[y[::10], y[::10]]
    grid = {"kernel": KERNELS[1:], "slope": ["evidence", 2.0]}
    shared(ordinal(), grid, X, y, 2, scoring=scoring)


@pytest.mark.parametrize("make", [regressor, classifier, ordinal])
def test_rows_that_folds_and_data_repeat(make: Any) -> None:
    X, y = curve(40)
    X[20:30] = X[:10]
    y = y if make is regressor else (y > 0).astype(int)
    rng = np.random.default_rng(0)
    # Training rows are among those that are scored, and are drawn more than once.
    cv = [(rng.integers(0, 30, 40), np.arange(20, 40)) for _ in range(2)]
    shared(make(), {"kernel": KERNELS[:2]}, X, y, 2, cv=cv)


@pytest.mark.parametrize("make", [regressor, classifier, ordinal])
@pytest.mark.parametrize("form", [np.float32, sp.csr_array], ids=["float32", "sparse"])
def test_single_precision_and_sparse_rows(make: Any, form: Any) -> None:
    X, y = curve(45)
    y = y if make is regressor else (y > 0).astype(int)
    rows = X.astype(np.float32) if form is np.float32 else sp.csr_array(X * (X > 0))
    search = shared(make(), {"kernel": KERNELS[:2]}, rows, y, 2)
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()


def words(n: int) -> list[str]:
    rng = np.random.default_rng(0)
    return ["".join(rng.choice(list("abcd" if i % 2 else "bcde"), 8)) for i in range(n)]


@pytest.mark.parametrize("make", [regressor, classifier, ordinal])
def test_strings(make: Any) -> None:
    texts, labels = words(36), np.arange(36) % 2
    kernels = [2.0 * Subsequence(2).normalized(), 3.0 * Spectrum(2).normalized() + White(0.1)]
    # The comparisons of pairs behind the first are a matrix of their own.
    shared(make(), {"kernel": kernels}, texts, labels, 3)


@pytest.mark.parametrize("make", [regressor, classifier, ordinal])
def test_in_a_pipeline(make: Any) -> None:
    X, y = curve(45)
    y = y if make is regressor else (y > 0).astype(int)
    learner = make()
    name = type(learner).__name__.lower()
    # Each fold has rows of its own.
    shared(make_pipeline(StandardScaler(), learner), {f"{name}__kernel": KERNELS}, X, y, 6)


@pytest.mark.parametrize(
    ("make", "budget"),
    [
        *((regressor, budget) for budget in ("60KB", "100KB", "200KB")),
        *((make, budget) for make in (classifier, ordinal) for budget in ("60KB", "100KB")),
    ],
)
def test_no_room_for_the_matrix(make: Any, budget: str) -> None:
    X, y = curve(60)
    y = y if make is regressor else (y > 0).astype(int)
    grid = {"kernel": KERNELS[:2]}
    peer = GridSearchCV(make(), grid, cv=TWO, refit=False).fit(X, y).cv_results_
    with config(memory=budget), track() as account:
        ours = GridSearchCV(make(), grid, cv=TWO, refit=False).fit(X, y).cv_results_
    assert account.reserved == 0 and np.isfinite(peer["mean_test_score"]).all()
    np.testing.assert_allclose(ours["mean_test_score"], peer["mean_test_score"], rtol=0, atol=EXACT)


@settings(max_examples=4, deadline=None, derandomize=True)
@given(
    st.integers(0, 2**32 - 1),
    st.sampled_from([regressor, classifier, ordinal]),
    st.floats(0.2, 5.0),
    st.floats(0.1, 20.0),
    st.booleans(),
)
def test_scores_are_those_of_fits_alone(seed: int, make: Any, scale: float, factor: float, noisy: bool) -> None:
    rng = np.random.default_rng(seed)
    n = int(rng.integers(24, 50))
    X = np.round(rng.normal(size=(n, 2)), int(rng.integers(0, 3)))
    values = X[:, 0] + 0.3 * rng.normal(size=n)
    kernel = factor * RBF(scale) + (White(0.1) if noisy else 0.1)
    if make is regressor:
        shared(make(kernel=kernel), {"alpha": [0.1, 1.0]}, X, values, 1)
        return
    y = np.argsort(np.argsort(values)) * (3 if make is ordinal else 2) // n
    shared(make(kernel=kernel), {"max_iter_predict": [99, 100]}, X, y, 1, scoring="neg_log_loss")


def test_a_linear_mean_reads_the_rows() -> None:
    X, y = curve(45)
    search = GridSearchCV(regressor(mean="linear"), {"kernel": KERNELS[:2], "alpha": [0.1, 1.0]}, cv=TWO)
    both(search, X, y, atol=EXACT)
    assert search.sharing_.startswith("nothing: the fits of GaussianProcessRegressor have no kernel matrix")
    # One candidate of several, among those that share.
    shared(regressor(kernel=KERNELS[0], alpha=0.1), {"mean": ["zero", "linear", "constant"]}, X, y, 1)


def test_kernels_that_are_learnt_have_a_matrix_each() -> None:
    X, y = curve(30)
    search = GridSearchCV(GaussianProcessRegressor(RBF(1.0)), {"alpha": [0.1, 1.0]}, cv=2).fit(X, y)
    assert search.sharing_ == (
        "nothing: the fits of GaussianProcessRegressor learn their kernels, and each has a matrix of its own; "
        "optimizer=None keeps the kernel as it is"
    )


def test_other_searches() -> None:
    X, y = curve(60)
    choices = {"kernel": KERNELS[:2], "alpha": loguniform(1e-3, 1.0)}
    random = RandomizedSearchCV(regressor(), choices, n_iter=6, random_state=0, cv=TWO)
    both(random, X, y, atol=EXACT)
    assert random.sharing_.startswith("2 kernel matrices evaluated for 12 fits")


def test_a_search_without_a_grid() -> None:
    X, y = curve(40)
    labels = (y > 0).astype(int)
    search = KernelSearchCV(classifier(), kernels=KERNELS[:2], cv=3, random_state=0).fit(X, labels)
    count = len({repr(parameters) for parameters in search.cv_results_["params"]})
    assert search.sharing_ == f"{count} kernel matrices evaluated for {3 * count} fits"
    best = search.best_estimator_
    alone = GridSearchCV(best, {"max_iter_predict": [100]}, cv=3).fit(X, labels)
    assert search.best_score_ == pytest.approx(alone.best_score_, abs=EXACT)


def test_ridge_with_noise_of_each_row_shares_predictions_and_has_bounds() -> None:
    X, y = curve(60)
    kernel = RBF(1.0) + White(0.1)
    ridge = KernelRidge(alpha=0.1, kernel=kernel)
    shared(ridge, {"alpha": [0.1, 1.0]}, X, y, 1)
    search = KernelSearchCV(ridge, cv=TWO, random_state=0, parameters=["alpha"]).fit(X, y)
    peer = GridSearchCV(ridge, {"alpha": [p["alpha"] for p in search.cv_results_["params"]]}, cv=TWO).fit(X, y)
    exact, (lower, upper) = peer.cv_results_["mean_test_score"], search.bounds_.T
    assert ((lower <= exact) & (exact <= upper)).all() and (upper - lower).max() < 1e-6
