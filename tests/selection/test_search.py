"""Searches with shared kernel work against scikit-learn's, which fits every candidate alone."""

from __future__ import annotations

import pickle
import warnings
from typing import Any, Self

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
import sklearn
from scipy.stats import loguniform
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.compose import ColumnTransformer
from sklearn.decomposition import PCA
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import accuracy_score, f1_score, make_scorer
from sklearn.model_selection import GroupKFold, ShuffleSplit, StratifiedKFold, TimeSeriesSplit, cross_val_score
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
    KernelSearchCV,
    KernelSGDClassifier,
    MultipleKernelSVC,
    NuSVC,
    NuSVR,
    RandomizedSearchCV,
)
from mercer._errors import DataError, MercerWarning
from mercer.data.strings import Strings
from mercer.engine.memory import track
from mercer.kernels import RBF, Matern, Spectrum, White, product_of
from search_cases import both, curve, three_classes, two_classes

# Training parts that have rows in common, and others of their own.
TWO = ShuffleSplit(2, test_size=1 / 3, random_state=0)
PATHS: list[tuple[Any, dict[str, list[Any]], Any]] = [
    (SVC(), {"C": [10.0, 0.1, 1.0], "gamma": [0.1, "scale"]}, two_classes),
    (SVC(), {"C": [0.1, np.inf, 10.0]}, three_classes),
    (SVC(kernel="linear", tol=1e-4), {"C": [0.1, 1.0], "class_weight": [None, "balanced"]}, two_classes),
    (NuSVC(), {"nu": [0.1, 0.3], "gamma": [0.01, 0.1]}, two_classes),
    (SVR(), {"C": [1.0, 10.0], "epsilon": [0.1, 0.3], "gamma": [0.5, 1.0]}, lambda: curve(60)),
    (NuSVR(gamma=0.5), {"nu": [0.3, 0.6], "C": [1.0, 5.0]}, curve),
    (KernelRidge(kernel="rbf"), {"alpha": [0.01, 1.0], "gamma": [0.1, 1.0]}, curve),
    (KernelLogisticRegression(), {"C": [0.1, 10.0], "gamma": [0.01, 0.1]}, two_classes),
    (KernelLogisticRegression(), {"C": [0.1, 10.0]}, three_classes),
    (KernelMachine("huber"), {"alpha": [0.1, 1.0], "kernel": [RBF(1.0), Matern(2.0)]}, curve),
    (KernelMachine("hinge"), {"alpha": [1.0, 0.1], "fit_intercept": [True, False]}, two_classes),
    (KernelQuantileRegression(), {"C": [0.1, 1.0], "kernel": [RBF(1.0), RBF(2.0)]}, lambda: curve(60)),
    (KernelQuantileRegression([0.2, 0.8], kernel=RBF(1.0)), {"C": [0.1, 1.0]}, lambda: curve(60)),
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
    ours, peer = both(GridSearchCV(estimator, grid, cv=TWO, return_train_score=True), X, y)
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
        Pipeline([("columns", ColumnTransformer([("some", StandardScaler(), [0, 1, 2, 3])])), ("svc", SVC())]),
        make_pipeline(SVC()),
    ],
    ids=["columns", "alone"],
)
def test_pipelines(pipeline: Pipeline) -> None:
    X, y = two_classes()
    grid = {"svc__C": [0.1, 10.0], "svc__gamma": [0.01, 0.1]}
    ours, peer = both(GridSearchCV(pipeline, grid, cv=TWO, return_train_score=True), X, y)
    assert "kernel matrices evaluated" in ours.sharing_ and ours.best_params_ == peer.best_params_
    assert isinstance(ours.best_estimator_, Pipeline)


def test_parameters_of_the_steps_before_the_learner() -> None:
    X, y = two_classes()
    pipeline = make_pipeline(StandardScaler(), SVC())
    grid = [
        {"standardscaler__with_mean": [True, False], "svc__C": [0.1, 1.0]},
        {"standardscaler": [MinMaxScaler(), "passthrough"], "svc__C": [1.0]},
    ]
    both(GridSearchCV(pipeline, grid, cv=TWO), X, y)


def test_a_step_may_become_an_estimator_that_shares_nothing() -> None:
    X, y = two_classes()
    pipeline = Pipeline([("scale", StandardScaler()), ("learn", SVC())])
    grid = [{"learn__C": [0.1, 1.0]}, {"learn": [LogisticRegression()]}]
    both(GridSearchCV(pipeline, grid, cv=TWO), X, y)


def test_estimators_in_the_grid_have_parameters_of_their_own() -> None:
    X, y = two_classes(100)
    pipeline = Pipeline([("scale", StandardScaler()), ("learn", SVC())])
    given = SVC()
    grid = [
        {"learn": [given, KernelLogisticRegression()], "learn__gamma": [0.01, 1.0], "learn__C": [0.1, 1.0]},
        {"scale": [PCA(random_state=0)], "scale__n_components": [1, 5], "learn__C": [0.1, 1.0]},
    ]
    both(GridSearchCV(pipeline, grid, cv=TWO), X, y)
    assert given.gamma == "scale" and given.C == 1.0


class FailsOnOne(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Shrinks rows, and cannot be fitted where the first row is of ones."""

    def fit(self, X: Any, y: Any = None) -> Self:
        if (X[0] == 1.0).all():
            raise ValueError("the first row is of ones")
        return self

    def transform(self, X: Any) -> Any:
        return 0.01 * X


def test_a_step_that_fails_on_one_fold() -> None:
    X, y = two_classes(120)
    X[0] = 1.0
    cv = [(np.arange(60), np.arange(60, 80)), (np.arange(10, 60), np.arange(80, 120))]
    search = GridSearchCV(make_pipeline(FailsOnOne(), SVC()), {"svc__C": [0.1, 1.0]}, cv=cv, refit=False)
    _, peer = both(search, X, y)
    assert np.isnan(peer.cv_results_["split0_test_score"]).all()


class Values(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Kernel values with the rows that it was fitted to."""

    def fit(self, X: Any, y: Any = None) -> Self:
        self.rows_ = X
        return self

    def transform(self, X: Any) -> Any:
        return RBF(2.0)(X, self.rows_)


def test_a_matrix_made_by_a_step_is_used() -> None:
    X, y = two_classes(80)
    pipeline = make_pipeline(Values(), SVC(kernel="precomputed"))
    # Square, so that it could be mistaken for the matrix.
    both(GridSearchCV(pipeline, {"svc__C": [0.1, 1.0, 10.0]}, cv=TWO), (X @ X.T) / 30.0, y)


class OfLogarithms(KernelRidge):  # type: ignore[misc]
    """A user-defined learner that sees the logarithms of rows."""

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        return super().fit(np.log1p(np.abs(X)), y, sample_weight)

    def predict(self, X: Any) -> Any:
        return super().predict(np.log1p(np.abs(X)))


def test_user_defined_learners_share_nothing() -> None:
    X, y = curve(60)
    ours, _ = both(GridSearchCV(OfLogarithms(kernel="rbf"), {"alpha": [0.1, 1.0]}, cv=TWO), X, y)
    assert ours.sharing_.startswith("nothing: the fits of OfLogarithms")


def test_noise_of_a_row_is_no_part_of_a_prediction() -> None:
    X, y = curve(60)
    rng = np.random.default_rng(0)
    noisy = KernelRidge(kernel=RBF(2.0) + White(0.5))
    both(GridSearchCV(noisy, {"alpha": [0.1, 1.0]}, cv=TWO, return_train_score=True), X, y)
    bootstrap = [(rng.integers(0, 50, 60), np.arange(40, 60)) for _ in range(2)]
    both(GridSearchCV(noisy, {"alpha": [0.1, 1.0]}, cv=bootstrap), X, y)
    both(GridSearchCV(SVR(), {"C": [0.1, 1.0]}, cv=bootstrap, return_train_score=True), X, y)


@pytest.mark.parametrize(
    "scoring",
    ["roc_auc", ["accuracy", "f1"], {"own": make_scorer(f1_score, pos_label=0), "auc": "roc_auc"}],
    ids=["name", "list", "dict"],
)
def test_scoring(scoring: Any) -> None:
    X, y = two_classes()
    refit = True if isinstance(scoring, str) else next(iter(scoring))
    grid = {"C": [0.1, 1.0], "gamma": [0.01, 0.1]}
    ours, peer = both(GridSearchCV(SVC(), grid, scoring=scoring, refit=refit, cv=TWO), X, y)
    assert ours.best_index_ == peer.best_index_ and ours.score(X, y) == peer.score(X, y)


def test_probabilities_as_scores() -> None:
    X, y = two_classes()
    model = KernelLogisticRegression()
    both(GridSearchCV(model, {"C": [0.1, 1.0]}, scoring="neg_log_loss", cv=TWO), X, y, atol=1e-7)


def test_a_scorer_that_sees_the_rows_shares_nothing() -> None:
    X, y = two_classes()

    def of_rows(model: Any, rows: np.ndarray, labels: np.ndarray) -> float:
        assert rows.shape[1] == X.shape[1]
        return float(accuracy_score(labels, model.predict(rows)))

    ours, _ = both(GridSearchCV(SVC(), {"C": [0.1, 1.0]}, scoring=of_rows, cv=TWO), X, y)
    assert ours.sharing_.startswith("nothing: scoring is a function")


def test_refit_by_a_function_and_not_at_all() -> None:
    X, y = two_classes()
    grid = {"C": [0.1, 1.0, 10.0]}
    ours, _ = both(GridSearchCV(SVC(), grid, refit=lambda results: 2, cv=TWO), X, y)
    assert ours.best_params_ == {"C": 10.0} and ours.best_estimator_.C == 10.0
    none, peer = both(GridSearchCV(SVC(), grid, refit=False, cv=TWO), X, y)
    assert none.best_index_ == peer.best_index_ and not hasattr(none, "best_estimator_")
    with pytest.raises(IndexError, match="best_index_"):
        GridSearchCV(SVC(), grid, refit=lambda results: 3, cv=TWO).fit(X, y)
    with pytest.raises(TypeError, match="best_index_"):
        GridSearchCV(SVC(), grid, refit=lambda results: 0.5, cv=TWO).fit(X, y)


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


@pytest.mark.parametrize(
    "cv",
    [
        [(np.arange(60), np.arange(60, 80)), (np.arange(60), np.arange(70, 120))],
        [(np.arange(60), np.arange(60, 80))] * 2,
        [(np.arange(60, dtype=np.int32), np.arange(60, 80, dtype=np.int32))],
        [(np.arange(-60, 0), np.arange(30))],
        [(range(60), range(60, 90))],
    ],
    ids=["other tests", "twice", "int32", "negative", "range"],
)
def test_folds_given_as_lists(cv: Any) -> None:
    X, y = two_classes(120)
    both(GridSearchCV(SVC(), {"C": [0.1, 1.0]}, cv=cv, return_train_score=True), X, y)
    both(GridSearchCV(make_pipeline(StandardScaler(), SVC()), {"svc__C": [0.1, 1.0]}, cv=cv), X, y)


def test_only_rows_of_folds_are_looked_at() -> None:
    X, y = two_classes(120)
    X[100] = np.nan
    ours, _ = both(GridSearchCV(SVC(), {"C": [0.1, 1.0]}, cv=[(np.arange(60), np.arange(60, 90))], refit=False), X, y)
    assert ours.sharing_.startswith("1 kernel matrices")
    # A fold with such a row fails alone.
    folds = [(np.arange(60), np.arange(60, 90)), (np.arange(50, 110), np.arange(20))]
    both(GridSearchCV(SVC(), {"C": [0.1, 1.0]}, cv=folds, refit=False), X, y)


def test_groups_and_weights() -> None:
    X, y = two_classes()
    rng = np.random.default_rng(0)
    groups, weight = rng.integers(0, 6, len(y)), rng.uniform(0.5, 2.0, len(y))
    weight[:5] = 0.0
    grid = {"C": [0.1, 10.0], "gamma": [0.1, "scale"]}
    both(GridSearchCV(SVC(), grid, cv=GroupKFold(3)), X, y, {"groups": groups, "sample_weight": weight})
    pipeline = make_pipeline(StandardScaler(), SVC())
    both(GridSearchCV(pipeline, {"svc__C": [0.1, 1.0]}, cv=TWO), X, y, {"svc__sample_weight": weight})


def test_random_candidates() -> None:
    X, y = curve()
    choices = {"alpha": loguniform(1e-3, 10.0), "gamma": [0.1, 1.0]}
    search = RandomizedSearchCV(KernelRidge(kernel="rbf"), choices, n_iter=6, cv=TWO, random_state=3)
    ours, peer = both(search, X, y)
    assert ours.best_params_ == peer.best_params_


def test_strings_frames_sparse_rows_and_several_targets() -> None:
    rng = np.random.default_rng(0)
    words = ["".join(rng.choice(list("abc" if i % 2 else "bcd"), 12)) for i in range(60)]
    labels = np.arange(60) % 2
    grid = {"kernel": [Spectrum(2).normalized(), Spectrum(3).normalized()], "C": [0.1, 1.0]}
    both(GridSearchCV(SVC(), grid, cv=TWO), words, labels)
    X, y = two_classes()
    frame = pd.DataFrame(X, columns=[f"c{i}" for i in range(X.shape[1])])
    named = {"kernel": [RBF(2.0).on(["c1", "c3"]), RBF(3.0).on(["c0", "c4"])], "C": [0.1, 1.0]}
    ours, _ = both(GridSearchCV(SVC(), named, cv=TWO), frame, pd.Series(y))
    assert list(ours.feature_names_in_) == list(frame)
    both(GridSearchCV(SVC(), {"C": [0.1, 1.0], "gamma": [0.01, 0.1]}, cv=TWO), sp.csr_array(X), y)
    both(GridSearchCV(SVC(), {"C": [0.1, 1.0]}, cv=TWO), X.astype(np.float32), y, atol=1e-6)
    A, b = curve()
    both(GridSearchCV(KernelRidge(kernel="rbf"), {"alpha": [0.1, 1.0]}, cv=TWO), A, np.column_stack([b, b**2]))


def test_each_kernel_reads_rows_in_its_own_way() -> None:
    rng = np.random.default_rng(0)
    words = ["".join(rng.choice(list("ab"), 8)) for _ in range(60)]
    frame = pd.DataFrame({"a": rng.normal(size=60), "t": words, "b": rng.normal(size=60)})
    y = (frame["a"] > 0).astype(int)
    text = Spectrum(2).normalized()
    kernels = [
        RBF(1.0),  # Not on text: these candidates fail.
        product_of({"t": text}),
        product_of({"t": text, ("a", "b"): RBF(1.0)}),
        product_of({"t": text, ("a", "b"): RBF(2.0)}),
    ]
    ours, _ = both(GridSearchCV(SVC(), {"kernel": kernels, "C": [0.1, 1.0]}, cv=TWO), frame, y)
    assert ours.sharing_.startswith("3 kernel matrices")
    to_frame = ColumnTransformer(
        [("scale", StandardScaler(), ["a", "b"])], remainder="passthrough", verbose_feature_names_out=False
    ).set_output(transform="pandas")
    pipeline = Pipeline([("scale", to_frame), ("svc", SVC(kernel=kernels[2]))])
    ours, _ = both(GridSearchCV(pipeline, {"svc__C": [0.1, 1.0]}, cv=TWO), frame, y)
    assert ours.sharing_.startswith("2 kernel matrices")


@pytest.mark.parametrize("form", ["list", "array", "column", "table", "pipeline"])
def test_objects_are_read_once(form: str, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    words = ["".join(rng.choice(list("abc" if i % 2 else "bcd"), 12)) for i in range(40)]
    words[3] = words[5]
    y = np.arange(40) % 2
    column = pd.DataFrame({"t": words})
    X = {"list": words, "array": np.array(words), "column": column, "pipeline": column}.get(form, column.assign(a=y))
    kernels = [Spectrum(2).normalized(), Spectrum(3).normalized()]
    if form == "table":
        kernels = [product_of({"t": kernel, "a": RBF(1.0)}) for kernel in kernels]
    steps = ColumnTransformer([("same", "passthrough", ["t"])], verbose_feature_names_out=False)
    model = make_pipeline(steps.set_output(transform="pandas"), SVC()) if form == "pipeline" else SVC()
    prefix = "svc__" if form == "pipeline" else ""
    grid = {f"{prefix}kernel": kernels, f"{prefix}C": [0.1, 10.0]}
    times: list[str] = []
    read = Strings.read
    monkeypatch.setattr(Strings, "read", staticmethod(lambda item: times.append(item) or read(item)))
    search = GridSearchCV(model, grid, cv=TWO, refit=False).fit(X, y)
    # Steps of a pipeline transform the rows anew for each fold.
    assert len(times) == len(words) * (2 if form == "pipeline" else 1)
    both(search, X, y)


def test_fits_with_a_kernel_of_their_own_share_nothing() -> None:
    X, y = two_classes(60)
    search = GridSearchCV(MultipleKernelSVC(kernel=RBF(1.0) + RBF(5.0)), {"C": [0.1, 1.0]}, cv=2)
    ours, _ = both(search, X, y)
    assert ours.sharing_.startswith("nothing")
    A, b = curve(40)
    ridge = GridSearchCV(KernelRidge(kernel="rbf"), {"gamma": [0.1, "loo"], "alpha": [0.1, 1.0]}, cv=2)
    ours, _ = both(ridge, A, b, atol=1e-6)
    assert ours.sharing_.startswith("1 kernel matrices")


def test_a_solver_that_stops_early_starts_from_scratch() -> None:
    X, y = two_classes(100)
    ours, _ = both(GridSearchCV(SVC(), {"C": [0.1, 1.0, 10.0], "max_iter": [3, -1]}, cv=TWO), X, y)
    assert "2 paths along C" in ours.sharing_


def test_precomputed_matrices() -> None:
    X, y = two_classes()
    ours, _ = both(GridSearchCV(SVC(kernel="precomputed"), {"C": [0.01, 0.1]}, cv=TWO), X @ X.T, y)
    assert "2 paths along C" in ours.sharing_


def test_an_estimator_without_shared_matrices_is_fitted_alone() -> None:
    X, y = curve(40)
    model = GaussianProcessRegressor(RBF(1.0), optimizer=None, mean="linear")
    ours, _ = both(GridSearchCV(model, {"alpha": [0.1, 1.0]}, cv=TWO), X, y)
    assert ours.sharing_.startswith("nothing: the fits of GaussianProcessRegressor")


@pytest.mark.parametrize("budget", ["800KB", "2MB"])
def test_a_small_budget_is_slower_but_right(budget: str) -> None:
    X, y = two_classes(300)
    grid = {"C": [0.1, 1.0], "gamma": [0.01, 0.1]}
    peer = GridSearchCV(SVC(), grid, cv=TWO).fit(X, y)
    with mercer.config(memory=budget):
        ours = GridSearchCV(SVC(cache_size=0.1), grid, cv=TWO).fit(X, y)
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
    # Where nothing is shared too: the first candidate would fail otherwise.
    with pytest.raises(ValueError, match="gama"):
        GridSearchCV(GaussianProcessRegressor(alpha=-1.0), [{"normalize_y": [True]}, {"gama": [1.0]}]).fit(X, y)


@pytest.mark.parametrize("refit", [True, "auc"])
def test_several_metrics_need_one_that_counts(refit: Any) -> None:
    X, y = two_classes()
    with pytest.raises(ValueError, match="accuracy, f1, refit must be one of these names"):
        GridSearchCV(SVC(C=-1.0), {"gamma": [1.0]}, scoring=["accuracy", "f1"], refit=refit).fit(X, y)


@pytest.mark.parametrize("options", [{"refit": 3}, {"n_jobs": "3"}, {"pre_dispatch": 1.5}, {"cv": 1}], ids=str)
def test_options_are_checked_before_any_work(options: dict[str, Any]) -> None:
    X, y = two_classes()
    with pytest.raises(ValueError, match=f"The '{next(iter(options))}' parameter of GridSearchCV"):
        GridSearchCV(SVC(C=-1.0), {"gamma": [1.0]}, **options).fit(X, y)


def test_a_matrix_that_is_not_square_raises_before_any_work() -> None:
    X, y = two_classes(60)
    search = GridSearchCV(SVC(kernel="precomputed"), {"C": [1.0]}, refit=False)
    with pytest.raises(DataError, match=r"shape \(60, 120\).*square matrix"):
        search.fit(np.hstack([X @ X.T] * 2), y)


@pytest.mark.parametrize(
    ("estimator", "grid"),
    [
        (SVC(), {"C": [1.0, 10.0]}),
        (make_pipeline(StandardScaler(), SVC()), {"svc__gamma": [0.1, 1.0]}),
        (KernelLogisticRegression(kernel="rbf"), {"C": [1.0, 10.0]}),
        (KernelSGDClassifier(random_state=0), {"alpha": [0.1, 0.01]}),
    ],
    ids=["SVC", "pipeline", "KernelLogisticRegression", "KernelSGDClassifier"],
)
def test_a_fold_with_one_class_has_the_error_score_as_in_scikit_learn(estimator: Any, grid: Any) -> None:
    X = np.random.default_rng(0).normal(size=(20, 2))
    y = np.repeat([0, 1], [8, 12])
    ours, peer = both(GridSearchCV(estimator, grid, cv=TimeSeriesSplit(4), error_score=0.0), X, y)
    assert ours.cv_results_["split0_test_score"].tolist() == [0.0, 0.0]
    assert ours.best_params_ == peer.best_params_ and ours.best_score_ == peer.best_score_ > 0.0
    with pytest.warns(MercerWarning, match=r"2 of 2 candidates failed on some fold and have error_score there"):
        ours.fit(X, y)


def test_candidates_that_fail_have_the_error_score_and_are_named() -> None:
    X, y = two_classes()
    search = GridSearchCV(SVC(), {"C": [1.0, -1.0], "gamma": [0.1]}, cv=TWO)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        search.fit(X, y)
    scores = search.cv_results_["mean_test_score"]
    assert np.isfinite(scores[0]) and np.isnan(scores[1]) and search.best_params_["C"] == 1.0
    messages = [str(warning.message) for warning in caught]
    assert any("'C': -1.0" in message and "C must be" in message for message in messages)
    with pytest.raises(ValueError, match="C must be"):
        GridSearchCV(SVC(), {"C": [1.0, -1.0]}, cv=TWO, error_score="raise").fit(X, y)
    first = [(np.flatnonzero(y == y[0]), np.arange(9))]
    with pytest.raises(DataError, match="needs at least two classes"):
        GridSearchCV(SVC(), {"C": [1.0]}, cv=first, error_score="raise").fit(X, y)


def test_if_all_candidates_fail_the_error_names_them() -> None:
    X, y = two_classes(60)
    with pytest.raises(ValueError, match="All the 4 fits failed") as caught:
        GridSearchCV(SVC(), {"C": [-1.0, -2.0]}, cv=2).fit(X, y)
    (note,) = caught.value.__notes__
    assert "{'C': -1.0}: C must be" in note and "{'C': -2.0}" in note


def test_a_kernel_that_raises_fails_alone_and_leaves_no_memory_reserved() -> None:
    X, y = two_classes(40)

    def raises(x: Any, z: Any) -> float:
        raise RuntimeError("no such pair")

    grid = {"kernel": ["rbf", raises, RBF(1.0).on([77])], "C": [0.1, 1.0]}
    with track() as account:
        _, peer = both(GridSearchCV(SVC(), grid, cv=TWO), X, y)
    assert np.isnan(peer.cv_results_["mean_test_score"]).sum() == 4
    assert account.reserved == 0 and account.peak > 0


def test_values_beyond_the_range_of_floats_fail_alone() -> None:
    X, y = two_classes(60)
    # Of an offset above 1e16, decision values would be rounding errors.
    grid = {"degree": [1, 30], "C": [0.1, 1.0]}
    _, peer = both(GridSearchCV(SVC(kernel="poly", gamma=1.0, coef0=1e11), grid, cv=TWO), X, y)
    assert np.isnan(peer.cv_results_["mean_test_score"]).any()


def test_rows_labels_and_weights_of_different_length() -> None:
    X, y = two_classes()
    with pytest.raises(ValueError, match="inconsistent"):
        GridSearchCV(SVC(), {"C": [1.0]}).fit(X, y[:-1])
    with pytest.raises(ValueError, match="inconsistent"):
        GridSearchCV(SVC(), {"C": [1.0]}, refit=False).fit(X, y, sample_weight=np.ones(len(y) + 1))


def test_a_search_is_pickled_without_the_rows() -> None:
    X, y = two_classes()
    search = GridSearchCV(SVC(), {"C": [0.01, 1.0]}).fit(X, y)
    copy = pickle.loads(pickle.dumps(search))
    assert copy.score(X, y) == search.score(X, y) and copy.best_params_ == search.best_params_


def test_a_candidate_that_fails_leaves_the_matrices_of_others() -> None:
    X, y = two_classes()
    grid = {"class_weight": [None, {0: -1.0}, "balanced"], "gamma": [0.01, 0.1], "C": [0.1, 1.0]}
    ours, _ = both(GridSearchCV(SVC(), grid, cv=TWO), X, y)
    assert ours.sharing_.startswith("2 kernel matrices")


def test_candidates_that_fail_are_named_where_nothing_is_shared() -> None:
    X, y = curve(40)
    model = GaussianProcessRegressor(RBF(1.0), optimizer=None, mean="linear")
    search = GridSearchCV(model, {"alpha": [0.1, -1.0]}, cv=2)
    with pytest.warns(MercerWarning, match=r"1 of 2 candidates failed.*\n\{'alpha': -1.0\}"):
        search.fit(X, y)


@pytest.mark.parametrize("budget", ["20KB", "60KB", "200KB"])
def test_no_room_beside_shared_matrices(budget: str) -> None:
    X, y = curve(60)
    grid = {"alpha": [0.1, 1.0], "gamma": [0.1, 1.0, 2.0]}
    peer = GridSearchCV(KernelRidge(kernel="rbf"), grid, cv=TWO).fit(X, y)
    with mercer.config(memory=budget), track() as account:
        ours = GridSearchCV(KernelRidge(kernel="rbf"), grid, cv=TWO, return_train_score=True, refit=False).fit(X, y)
    assert np.isfinite(peer.cv_results_["mean_test_score"]).all() and account.reserved == 0
    scores = ours.cv_results_["mean_test_score"]
    np.testing.assert_allclose(scores, peer.cv_results_["mean_test_score"], rtol=1e-9)


def test_solvers_that_need_few_rows_of_a_large_matrix_share_none(monkeypatch: pytest.MonkeyPatch) -> None:
    X, y = two_classes()
    monkeypatch.setattr(SVC, "most_shared_rows", 100)
    ours, _ = both(GridSearchCV(SVC(), {"C": [0.1, 1.0, 10.0]}, cv=TWO, return_train_score=True), X, y)
    assert ours.sharing_.startswith("0 kernel matrices evaluated for 6 fits; 2 paths along C")
    # Those of objects take long.
    words = ["abc" * (i % 7) + "b" * (i % 5) for i in range(120)]
    search = GridSearchCV(SVC(kernel=Spectrum(2).normalized()), {"C": [0.1, 1.0]}, cv=2)
    assert search.fit(words, np.arange(120) % 2).sharing_.startswith("1 kernel matrices")


def test_a_newton_method_that_reaches_its_limit_starts_from_scratch() -> None:
    X, y = two_classes(100)
    usual = KernelLogisticRegression()
    ours, _ = both(GridSearchCV(usual, {"C": [0.1, 1.0, 10.0], "max_iter": [2, 100]}, cv=TWO), X, y)
    assert "2 paths along C" in ours.sharing_
    huber = KernelMachine("huber")
    A, b = curve(60)
    ours, _ = both(GridSearchCV(huber, {"alpha": [0.1, 1.0], "max_iter": [1, -1]}, cv=TWO), A, b)
    assert "2 paths along alpha" in ours.sharing_


def test_copies_of_rows_have_the_offset_of_a_fit_alone() -> None:
    """With all weights at C, many offsets are optimal; a start from another C leaves rounding next to that bound."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(90, 3))
    y = (X[:, 0] * X[:, 1] > 0).astype(int)
    X = np.repeat(X[:10], 9, axis=0)
    Cs = [0.03162, 0.1, 0.3162, 1.0, 10.0]
    search = GridSearchCV(SVC(gamma=2.399), {"C": Cs}, cv=3).fit(X, y)
    alone = [cross_val_score(SVC(gamma=2.399, C=C), X, y, cv=3).mean() for C in Cs]
    np.testing.assert_array_equal(search.cv_results_["mean_test_score"], alone)


def test_routing_without_metadata_shares() -> None:
    X, y = two_classes(40)
    with sklearn.config_context(enable_metadata_routing=True):
        search = GridSearchCV(SVC(), {"C": [1.0, 2.0]}, cv=2).fit(X, y)
        routed = GridSearchCV(
            SVC().set_fit_request(sample_weight=True).set_score_request(sample_weight=True), {"C": [1.0]}, cv=2
        )
        routed.fit(X, y, sample_weight=np.ones(40))
    assert (
        search.sharing_.startswith("2 kernel matrices evaluated for 4 fits")
        and "metadata are routed" in routed.sharing_
    )


def test_callbacks_are_called(capsys: pytest.CaptureFixture[str]) -> None:
    progress_bar = pytest.importorskip("sklearn.callback").ProgressBar
    X, y = two_classes(40)
    search = GridSearchCV(SVC(), {"C": [1.0, 2.0]}, cv=2).set_callbacks(progress_bar()).fit(X, y)
    assert "callbacks" in search.sharing_ and "GridSearchCV" in "".join(capsys.readouterr())


def test_an_estimator_without_a_score_is_named() -> None:
    with pytest.raises(TypeError, match=r"The estimator OneClassSVM\(\) does not"):
        GridSearchCV(mercer.OneClassSVM(), {"nu": [0.1, 0.2]}, cv=2).fit(np.eye(6))


def test_messages_number_the_candidates_and_name_the_estimator(capsys: pytest.CaptureFixture[str]) -> None:
    X, y = two_classes(40)
    GridSearchCV(SVC(), {"C": [1.0, 2.0]}, cv=2, verbose=3).fit(X, y)
    out = capsys.readouterr().out
    assert "C=1.0, candidate=0;" in out and "C=2.0, candidate=1;" in out
    with pytest.raises(AttributeError, match=r"^SVC has none of the following attributes: predict_proba"):
        GridSearchCV(SVC(), {"C": [1.0]}, cv=2, scoring="neg_log_loss", error_score="raise").fit(X, y)


def test_a_parameter_may_have_the_name_of_the_number() -> None:
    X, y = two_classes(40)
    pipeline = Pipeline([("candidate", StandardScaler()), ("svc", SVC())])
    for kind in (GridSearchCV, RandomizedSearchCV):
        options = {"n_iter": 2} if kind is RandomizedSearchCV else {}
        search = kind(pipeline, {"candidate": ["passthrough", MinMaxScaler()]}, cv=2, **options).fit(X, y)
        assert len(search.cv_results_["param_candidate"]) == 2
        assert search.sharing_ == "nothing: a parameter has the name 'candidate', by which the search numbers them"


@pytest.mark.parametrize("number", [1, 4, 9])
@pytest.mark.parametrize(
    "search",
    [
        GridSearchCV(SVC(), {"C": [0.1, 1.0], "gamma": [0.1, 1.0]}),
        GridSearchCV(SVC(), {"C": [0.1, 1.0], "gamma": [0.1, 1.0]}, error_score="raise"),
        KernelSearchCV(SVC(), time_budget=5, random_state=0),
    ],
    ids=["grid", "grid that raises", "without a grid"],
)
def test_an_error_of_a_progress_hook_ends_the_search(search, number):
    steps = []

    def hook(*step):
        steps.append(step)
        if len(steps) >= number:
            raise LookupError("closed by the user")

    X = np.random.default_rng(0).normal(size=(90, 4))
    y = X[:, 0] > 0
    with mercer.on_progress(hook), pytest.raises(LookupError, match="closed by the user"):
        clone(search).fit(X, y)
