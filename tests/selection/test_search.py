"""Searches with shared kernel work against scikit-learn's, which fits every candidate alone."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from scipy.stats import loguniform
from sklearn.compose import ColumnTransformer
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import accuracy_score, f1_score, make_scorer
from sklearn.model_selection import GroupKFold, KFold, ShuffleSplit, StratifiedKFold
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import MinMaxScaler, StandardScaler

import mercer
from mercer import (
    SVC,
    SVR,
    GaussianProcessRegressor,
    GridSearchCV,
    KernelLMS,
    KernelLogisticRegression,
    KernelMachine,
    KernelOrdinalRegression,
    KernelQuantileRegression,
    KernelRidge,
    NuSVC,
    NuSVR,
    RandomizedSearchCV,
)
from mercer._errors import DataError
from mercer.kernels import RBF, Matern, Spectrum
from search_cases import both, curve, three_classes, two_classes

THREE = KFold(3, shuffle=True, random_state=0)
PATHS: list[tuple[Any, dict[str, list[Any]], Any]] = [
    (SVC(), {"C": [10.0, 0.1, 1.0], "gamma": [0.01, 0.1, "scale"]}, two_classes),
    (SVC(), {"C": [0.1, np.inf, 10.0]}, three_classes),
    (SVC(kernel="linear", tol=1e-4), {"C": [0.1, 1.0], "class_weight": [None, "balanced"]}, two_classes),
    (NuSVC(), {"nu": [0.1, 0.3], "gamma": [0.01, 0.1]}, two_classes),
    (SVR(), {"C": [1.0, 10.0], "epsilon": [0.1, 0.2, 0.3], "gamma": [0.5, 1.0]}, curve),
    (NuSVR(gamma=0.5), {"nu": [0.3, 0.6], "C": [1.0, 5.0]}, curve),
    (KernelRidge(kernel="rbf"), {"alpha": [0.01, 1.0], "gamma": [0.1, 1.0]}, curve),
    (KernelLogisticRegression(), {"C": [0.1, 10.0], "gamma": [0.01, 0.1]}, two_classes),
    (KernelLogisticRegression(), {"C": [0.1, 10.0]}, three_classes),
    (KernelMachine("huber"), {"alpha": [0.1, 1.0], "kernel": [RBF(1.0), Matern(2.0)]}, curve),
    (KernelQuantileRegression(), {"C": [0.1, 1.0], "kernel": [RBF(1.0), RBF(2.0)]}, lambda: curve(60)),
    (KernelOrdinalRegression(), {"C": [0.1, 1.0], "gamma": [0.1, 1.0]}, three_classes),
    (KernelLMS(), {"max_iter": [5, 10], "gamma": [0.1, 1.0]}, curve),
]


@pytest.mark.parametrize(
    ("estimator", "grid", "data"),
    PATHS,
    ids=[f"{number}-{type(case[0]).__name__}" for number, case in enumerate(PATHS)],
)
def test_scores_are_those_of_fits_alone(estimator: Any, grid: dict[str, list[Any]], data: Any) -> None:
    X, y = data()
    ours, peer = both(GridSearchCV(estimator, grid, cv=THREE, return_train_score=True), X, y)
    assert "kernel matrices evaluated" in ours.sharing_
    assert ours.best_params_ == peer.best_params_ and ours.best_score_ == pytest.approx(peer.best_score_, abs=1e-9)
    assert ours.best_index_ == peer.best_index_
    np.testing.assert_array_equal(ours.predict(X), peer.predict(X))


def test_one_matrix_for_each_kernel_and_one_path_for_each_fold() -> None:
    X, y = two_classes()
    search = GridSearchCV(SVC(), {"C": [0.1, 1.0, 10.0], "gamma": [0.01, 0.1]}, cv=4).fit(X, y)
    assert search.sharing_.startswith("2 kernel matrices evaluated for 24 fits; 8 paths along C")


def test_a_kernel_that_depends_on_the_rows_has_a_matrix_for_each_fold() -> None:
    X, y = two_classes()
    search = GridSearchCV(SVC(gamma="scale"), {"C": [0.1, 1.0]}, cv=4).fit(X, y)
    assert search.sharing_.startswith("4 kernel matrices evaluated for 8 fits")


@pytest.mark.parametrize(
    "pipeline",
    [
        make_pipeline(StandardScaler(), SVC()),
        Pipeline([("columns", ColumnTransformer([("some", StandardScaler(), [0, 1, 2, 3])])), ("svc", SVC())]),
        make_pipeline(SVC()),
    ],
    ids=["scaler", "columns", "alone"],
)
def test_pipelines(pipeline: Pipeline) -> None:
    X, y = two_classes()
    grid = {"svc__C": [0.1, 1.0, 10.0], "svc__gamma": [0.01, 0.1]}
    ours, peer = both(GridSearchCV(pipeline, grid, cv=THREE, return_train_score=True), X, y)
    assert "kernel matrices evaluated" in ours.sharing_ and ours.best_params_ == peer.best_params_
    assert isinstance(ours.best_estimator_, Pipeline)


def test_parameters_of_the_steps_before_the_learner() -> None:
    X, y = two_classes()
    pipeline = make_pipeline(StandardScaler(), SVC())
    grid = [
        {"standardscaler__with_mean": [True, False], "svc__C": [0.1, 1.0]},
        {"standardscaler": [MinMaxScaler(), "passthrough"], "svc__C": [1.0]},
    ]
    both(GridSearchCV(pipeline, grid, cv=THREE), X, y)


def test_a_step_may_become_an_estimator_that_shares_nothing() -> None:
    X, y = two_classes()
    pipeline = Pipeline([("scale", StandardScaler()), ("learn", SVC())])
    grid = [{"learn__C": [0.1, 1.0]}, {"learn": [LogisticRegression()]}]
    both(GridSearchCV(pipeline, grid, cv=THREE), X, y)


@pytest.mark.parametrize(
    "scoring",
    ["roc_auc", ["accuracy", "f1"], {"own": make_scorer(f1_score, pos_label=0), "auc": "roc_auc"}],
    ids=["name", "list", "dict"],
)
def test_scoring(scoring: Any) -> None:
    X, y = two_classes()
    refit = True if isinstance(scoring, str) else next(iter(scoring))
    grid = {"C": [0.1, 1.0], "gamma": [0.01, 0.1]}
    ours, peer = both(GridSearchCV(SVC(), grid, scoring=scoring, refit=refit, cv=THREE), X, y)
    assert ours.best_index_ == peer.best_index_ and ours.score(X, y) == peer.score(X, y)


def test_probabilities_as_scores() -> None:
    X, y = two_classes()
    model = KernelLogisticRegression()
    both(GridSearchCV(model, {"C": [0.1, 1.0]}, scoring="neg_log_loss", cv=THREE), X, y, atol=1e-7)


def test_a_scorer_that_sees_the_rows_shares_nothing() -> None:
    X, y = two_classes()

    def of_rows(model: Any, rows: np.ndarray, labels: np.ndarray) -> float:
        assert rows.shape[1] == X.shape[1]
        return float(accuracy_score(labels, model.predict(rows)))

    ours, _ = both(GridSearchCV(SVC(), {"C": [0.1, 1.0]}, scoring=of_rows, cv=THREE), X, y)
    assert ours.sharing_.startswith("nothing: scoring is a function")


def test_refit_by_a_function_and_not_at_all() -> None:
    X, y = two_classes()
    grid = {"C": [0.1, 1.0, 10.0]}
    ours, _ = both(GridSearchCV(SVC(), grid, refit=lambda results: 2, cv=THREE), X, y)
    assert ours.best_params_ == {"C": 10.0} and ours.best_estimator_.C == 10.0
    none, peer = both(GridSearchCV(SVC(), grid, refit=False, cv=THREE), X, y)
    assert none.best_index_ == peer.best_index_ and not hasattr(none, "best_estimator_")
    with pytest.raises(IndexError, match="best_index_"):
        GridSearchCV(SVC(), grid, refit=lambda results: 3, cv=THREE).fit(X, y)
    with pytest.raises(TypeError, match="best_index_"):
        GridSearchCV(SVC(), grid, refit=lambda results: 0.5, cv=THREE).fit(X, y)


@pytest.mark.parametrize(
    "cv",
    [
        3,
        StratifiedKFold(3),
        ShuffleSplit(3, random_state=0),
        [([0, 1, 2, 40, 41, 60], [5, 50])],
        [(np.arange(150) % 3 > 0, np.arange(150) % 3 == 0)],
    ],
    ids=["folds", "stratified", "shuffled", "positions", "masks"],
)
def test_splitters(cv: Any) -> None:
    X, y = three_classes()
    both(GridSearchCV(SVC(), {"C": [0.1, 1.0], "gamma": [0.1, 1.0]}, cv=cv), X, (y > 0).astype(int))


def test_groups_and_weights() -> None:
    X, y = two_classes()
    rng = np.random.default_rng(0)
    groups, weight = rng.integers(0, 6, len(y)), rng.uniform(0.5, 2.0, len(y))
    weight[:5] = 0.0
    grid = {"C": [0.1, 1.0, 10.0], "gamma": [0.1, "scale"]}
    both(GridSearchCV(SVC(), grid, cv=GroupKFold(3)), X, y, {"groups": groups, "sample_weight": weight})
    pipeline = make_pipeline(StandardScaler(), SVC())
    both(GridSearchCV(pipeline, {"svc__C": [0.1, 1.0]}, cv=THREE), X, y, {"svc__sample_weight": weight})


def test_random_candidates() -> None:
    X, y = curve()
    choices = {"alpha": loguniform(1e-3, 10.0), "gamma": [0.1, 1.0]}
    search = RandomizedSearchCV(KernelRidge(kernel="rbf"), choices, n_iter=6, cv=THREE, random_state=3)
    ours, peer = both(search, X, y)
    assert ours.best_params_ == peer.best_params_


def test_strings_frames_sparse_rows_and_several_targets() -> None:
    rng = np.random.default_rng(0)
    words = ["".join(rng.choice(list("abc" if i % 2 else "bcd"), 12)) for i in range(60)]
    labels = np.arange(60) % 2
    grid = {"kernel": [Spectrum(2).normalized(), Spectrum(3).normalized()], "C": [0.1, 1.0]}
    both(GridSearchCV(SVC(), grid, cv=THREE), words, labels)
    X, y = two_classes()
    frame = pd.DataFrame(X, columns=[f"c{i}" for i in range(X.shape[1])])
    named = {"kernel": [RBF(2.0).on(["c1", "c3"]), RBF(3.0).on(["c0", "c4"])], "C": [0.1, 1.0]}
    ours, _ = both(GridSearchCV(SVC(), named, cv=THREE), frame, pd.Series(y))
    assert list(ours.feature_names_in_) == list(frame)
    both(GridSearchCV(SVC(), {"C": [0.1, 1.0], "gamma": [0.01, 0.1]}, cv=THREE), sp.csr_array(X), y)
    both(GridSearchCV(SVC(), {"C": [0.1, 1.0]}, cv=THREE), X.astype(np.float32), y, atol=1e-6)
    A, b = curve()
    both(GridSearchCV(KernelRidge(kernel="rbf"), {"alpha": [0.1, 1.0]}, cv=THREE), A, np.column_stack([b, b**2]))


def test_precomputed_matrices() -> None:
    X, y = two_classes()
    ours, _ = both(GridSearchCV(SVC(kernel="precomputed"), {"C": [0.01, 0.1]}, cv=THREE), X @ X.T, y)
    assert "3 paths along C" in ours.sharing_


def test_an_estimator_without_shared_matrices_is_fitted_alone() -> None:
    X, y = curve(40)
    model = GaussianProcessRegressor(RBF(1.0), optimizer=None)
    ours, _ = both(GridSearchCV(model, {"alpha": [0.1, 1.0]}, cv=THREE), X, y)
    assert ours.sharing_.startswith("nothing: the fits of GaussianProcessRegressor")


@pytest.mark.parametrize("budget", ["800KB", "2MB"])
def test_a_small_budget_is_slower_but_right(budget: str) -> None:
    X, y = two_classes(300)
    grid = {"C": [0.1, 1.0], "gamma": [0.01, 0.1]}
    peer = GridSearchCV(SVC(), grid, cv=THREE).fit(X, y)
    with mercer.config(memory=budget):
        ours = GridSearchCV(SVC(cache_size=0.1), grid, cv=THREE).fit(X, y)
    np.testing.assert_allclose(ours.cv_results_["mean_test_score"], peer.cv_results_["mean_test_score"])


def test_any_number_of_threads_gives_the_same_bits() -> None:
    X, y = curve()
    grid = {"alpha": [0.1, 1.0], "gamma": [0.1, 1.0]}
    one, many = (GridSearchCV(KernelRidge(kernel="rbf"), grid, n_jobs=n).fit(X, y) for n in (1, 4))
    np.testing.assert_array_equal(one.cv_results_["mean_test_score"], many.cv_results_["mean_test_score"])


def test_parameters_that_do_not_exist_raise_before_any_work() -> None:
    X, y = two_classes()
    with pytest.raises(ValueError, match="gama"):
        GridSearchCV(SVC(), {"gama": [1.0]}).fit(X, y)
    with pytest.raises(ValueError, match="non-empty"):
        GridSearchCV(SVC(), {"C": []}).fit(X, y)


def test_a_fold_with_one_class_raises_before_any_work() -> None:
    X = np.arange(12.0)[:, None]
    y = np.repeat([0, 1], [8, 4])
    with pytest.raises(DataError, match="training part of fold 1 has 8 rows of one class only, 0"):
        GridSearchCV(SVC(), {"C": [1.0]}, cv=[(np.arange(12), [0]), (np.arange(8), np.arange(8, 12))]).fit(X, y)


def test_candidates_that_fail_have_the_error_score_and_are_named() -> None:
    X, y = two_classes()
    search = GridSearchCV(SVC(), {"C": [1.0, -1.0], "gamma": [0.1]}, cv=THREE)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        search.fit(X, y)
    scores = search.cv_results_["mean_test_score"]
    assert np.isfinite(scores[0]) and np.isnan(scores[1]) and search.best_params_["C"] == 1.0
    messages = [str(warning.message) for warning in caught]
    assert any("'C': -1.0" in message and "C must be" in message for message in messages)
    with pytest.raises(ValueError, match="C must be"):
        GridSearchCV(SVC(), {"C": [1.0, -1.0]}, cv=THREE, error_score="raise").fit(X, y)


def test_rows_and_labels_of_different_length() -> None:
    X, y = two_classes()
    with pytest.raises(ValueError, match="inconsistent"):
        GridSearchCV(SVC(), {"C": [1.0]}).fit(X, y[:-1])
