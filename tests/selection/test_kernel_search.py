"""The search without a grid: what it tries, what it reports, and how it ends."""

from __future__ import annotations

import math
import time
import warnings
from typing import Any, Self

import numpy as np
import pytest
from scipy.spatial.distance import cdist
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.exceptions import DataConversionWarning, UndefinedMetricWarning
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GroupKFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

import mercer
from mercer import (
    SVC,
    SVR,
    GaussianProcessClassifier,
    GridSearchCV,
    KernelRidge,
    KernelSearchCV,
    NuSVC,
    NuSVR,
    OneClassSVM,
)
from mercer._errors import DataError, MercerWarning, ParameterError
from mercer.data.series import Series
from mercer.data.strings import Strings
from mercer.engine import threads
from mercer.kernels import (
    RBF,
    BagOfWords,
    BlendedSpectrum,
    Constant,
    DynamicTimeWarping,
    GlobalAlignment,
    Spectrum,
    Subsequence,
    SubsetTree,
    from_function,
)
from mercer.selection import kernel_search
from mercer.selection.evaluated import Evaluator
from mercer.selection.ranges import scale_axes
from mercer.selection.time_budget import TimeBudget
from search_cases import curve, three_classes, two_classes

RATES = [0.01, 0.1, 1.0]
LEARNERS: list[tuple[Any, Any, dict[str, Any]]] = [
    (SVC(), three_classes, {"C": [0.1, 1.0, 10.0], "gamma": RATES}),
    (NuSVC(), three_classes, {"nu": [0.1, 0.3, 0.5], "gamma": RATES}),
    (SVR(), curve, {"C": [0.1, 1.0, 10.0], "gamma": RATES}),
    (KernelRidge(kernel="rbf"), curve, {"alpha": [1e-3, 0.1, 1.0], "gamma": RATES}),
    (make_pipeline(StandardScaler(), SVC()), two_classes, {"svc__C": [0.1, 1.0, 10.0], "svc__gamma": RATES}),
]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("estimator", "data", "grid"), LEARNERS, ids=[f"{n}-{type(case[0]).__name__}" for n, case in enumerate(LEARNERS)]
)
def test_the_best_is_not_worse_than_that_of_a_coarse_grid(estimator: Any, data: Any, grid: dict[str, Any]) -> None:
    X, y = data()
    search = KernelSearchCV(estimator, cv=2, random_state=0).fit(X[::2], y[::2])
    assert set(grid) <= set(search.best_params_)
    peer = GridSearchCV(estimator, grid, cv=2, refit=False).fit(X[::2], y[::2])
    assert search.best_score_ >= peer.best_score_ - peer.cv_results_["std_test_score"][peer.best_index_] / np.sqrt(2)
    fitted = search.best_estimator_.get_params()
    assert {name: fitted[name] for name in search.best_params_} == search.best_params_
    np.testing.assert_array_equal(search.predict(X), search.best_estimator_.predict(X))


def test_targets_that_cannot_be_learned_raise_before_any_work() -> None:
    X, y = curve(20)
    with pytest.raises(ValueError, match="Unknown label type: continuous"):
        KernelSearchCV(SVC()).fit(X, y)
    y[3] = np.nan
    with pytest.raises(ValueError, match="y contains NaN"):
        KernelSearchCV(SVR()).fit(X, y)


def test_a_best_candidate_that_is_worse_than_nothing_is_told() -> None:
    x = np.r_[np.linspace(-1, 1, 20), 3.0, 3.0]
    y = np.r_[10 + x[:20], 10.0, 10.0]
    search = KernelSearchCV(
        KernelRidge(kernel="linear"), cv=[(np.arange(20), [20, 21])], scoring="neg_mean_absolute_error"
    )
    with pytest.warns(MercerWarning, match=r"score -\d\S* in the folds, and predicting the mean of the targets has "):
        search.fit(x[:, None], y)
    X, y = two_classes(60)
    with warnings.catch_warnings():
        warnings.simplefilter("error", MercerWarning)
        KernelSearchCV(SVC(), cv=2, scoring="roc_auc").fit(X, y)


def test_no_targets() -> None:
    with pytest.raises(DataError, match="requires y to be passed, but the target y is None"):
        KernelSearchCV(SVC()).fit(np.eye(4))


def test_kernels_to_choose_among_on_strings() -> None:
    rng = np.random.default_rng(0)
    words = ["".join(rng.choice(list("aab" if i % 2 else "abb"), 12)) for i in range(40)]
    kernels = [Spectrum(1).normalized(), Spectrum(2).normalized()]
    search = KernelSearchCV(SVC(), kernels=kernels, cv=2, random_state=0).fit(words, np.arange(40) % 2)
    assert search.best_params_["kernel"] in kernels and set(search.best_params_) == {"kernel", "C"}
    assert {str(params["kernel"]) for params in search.cv_results_["params"]} == set(map(str, kernels))
    assert len(search.predict(words)) == 40


def test_free_parameters_of_a_kernel() -> None:
    X = np.random.default_rng(0).uniform(-1, 1, (40, 2))
    kernel = Constant(2.0).fixed() * RBF([1.0, 1.0])
    search = KernelSearchCV(KernelRidge(0.01, kernel=kernel), cv=2, parameters=["kernel"], random_state=0)
    search.fit(X, np.sin(4 * X[:, 0]))
    best = {parameter.name: parameter.value for parameter in search.best_params_["kernel"].parameters}
    # The last column says nothing of y.
    assert best["right.length_scale[1]"] > 2.0 * best["right.length_scale[0]"]
    assert [value for name, value in best.items() if name.startswith("left")] == [2.0]


def _grow(rng: np.random.Generator, depth: int, share: float) -> tuple[Any, ...]:
    if depth == 0:
        return ("a" if rng.random() < share else "b",)
    return ("XY"[rng.integers(2)], _grow(rng, depth - 1, share), _grow(rng, depth - 1, share))


def _objects(kind: str) -> list[Any]:
    """60 rows of two classes that differ in how often a symbol occurs, or a wave."""
    rng = np.random.default_rng(0)
    if kind == "trees":
        return [_grow(rng, 4, 0.35 + 0.3 * (row % 2)) for row in range(60)]
    if kind == "series":
        return [np.sin(np.arange(12) * (1 + 0.3 * (row % 2))) + 0.5 * rng.normal(size=12) for row in range(60)]
    return ["".join(rng.choice(list("ab"), 9, p=[0.35 + 0.3 * (row % 2), 0.65 - 0.3 * (row % 2)])) for row in range(60)]


@pytest.mark.parametrize(
    ("kind", "kernel", "name", "grid"),
    [
        ("trees", SubsetTree(decay=0.9).normalized(), "kernel__decay", [0.9, 0.5, 0.25, 0.1, 0.02]),
        ("strings", BlendedSpectrum(3, decay=4.0).normalized(), "kernel__decay", [4.0]),
        ("strings", Subsequence(3, decay=0.9).normalized(), "kernel__decay", [0.9, 0.5, 0.25, 0.1]),
        ("series", GlobalAlignment(0.05).normalized(), "kernel__sigma", [0.05, 0.2, 1.0, 4.0]),
    ],
)
@pytest.mark.filterwarnings("ignore::mercer._errors.DegenerateKernelWarning")
def test_parameters_of_kernels_on_objects_are_searched(kind: str, kernel: Any, name: str, grid: list[float]) -> None:
    X, y = _objects(kind), np.arange(60) % 2
    search = KernelSearchCV(SVC(kernel=kernel), cv=3, parameters=["kernel"], random_state=0).fit(X, y)
    path = name.removeprefix("kernel__")
    last = "kernel." * hasattr(kernel, "kernel") + path
    assert repr(last) in search.stop_reason_

    def score(value: float) -> float:
        own = kernel.with_params(**{last.replace(".", "__"): value})
        return float(cross_val_score(SVC(kernel=own), X, y, cv=3).mean())

    # The search goes on from the best of its neighbours; up to a row or two between the values of a grid.
    assert search.best_score_ >= max(map(score, grid)) - 2 / 60
    assert search.best_score_ > score(grid[0]) or search.best_params_["kernel"] == kernel
    for parameters, mean in zip(search.cv_results_["params"], search.cv_results_["mean_test_score"]):
        assert mean == pytest.approx(cross_val_score(SVC(**parameters), X, y, cv=3).mean(), abs=1e-12)


def test_a_certificate_names_what_was_searched() -> None:
    X, y = _objects("strings"), np.arange(60) % 2
    search = KernelSearchCV(SVC(kernel=BlendedSpectrum(2)), cv=3, parameters=["C"], random_state=0).fit(X, y)
    assert search.stop_reason_.endswith("Searched: 'C'.")
    search.set_params(parameters=None).fit(X, y)
    assert search.stop_reason_.endswith("Searched: 'length', 'decay', 'C'.")
    search.set_params(kernels=[Spectrum(1), Spectrum(2)]).fit(X, y)
    assert search.stop_reason_.endswith("Searched: 'kernel', 'C'.")
    # Rules become numbers, which are searched.
    kernel = Constant(2.0) * GlobalAlignment("median")
    series = KernelSearchCV(SVC(kernel=kernel), cv=3, parameters=["kernel"], random_state=0).fit(_objects("series"), y)
    assert not series.best_params_["kernel"].needs_data
    assert series.stop_reason_.endswith("Searched: 'kernel.triangular', 'factor', 'kernel.sigma'.")
    for only in (["kernel"], ["C", "kernel"]):
        search = KernelSearchCV(SVC(kernel=BagOfWords()), cv=3, parameters=only)
        with pytest.raises(
            ParameterError, match=r"'kernel', which stands for .*, but BagOfWords\(.* has none .* kernels="
        ):
            search.fit(X, y)
        # As the message says.
        search.set_params(kernels=[Spectrum(1), Spectrum(2)], parameters=["C"]).fit(X, y)


def test_whole_numbers_of_kernels_are_searched_with_one_matrix_for_all_penalties_and_folds() -> None:
    rng = np.random.default_rng(0)
    # Equally many of each symbol, in another order: the spectrum of one symbol knows nothing.
    X = ["".join(rng.permutation(["ab", "cd"] if row % 2 else ["ac", "bd"]).tolist() * 3) for row in range(60)]
    y = np.arange(60) % 2
    search = KernelSearchCV(SVC(kernel=Spectrum(1).normalized()), cv=3, random_state=0).fit(X, y)
    assert search.best_score_ == 1.0 and search.best_params_["kernel"].kernel.length > 1
    # The cheapest comes first.
    assert search.cv_results_["params"][0]["kernel"] == Spectrum(1).normalized()
    kernels = {one["kernel"] for one in search.cv_results_["params"]}
    assert kernels == {Spectrum(length).normalized() for length in range(1, 7)}
    assert int(search.sharing_.split()[0]) < len(search.cv_results_["params"])
    # Values that do not suit the others are left out, and the present one is among those tried.
    weighted = BlendedSpectrum(2, weights=[1.0, 2.0])
    assert [axis.name for axis in scale_axes(weighted, Strings.of(X), {})] == ["decay", "weights[0]", "weights[1]"]
    (axis,) = scale_axes(Spectrum(9), Strings.of(X), {})
    assert (axis.values, axis.at(axis.middle)) == ((1, 2, 3, 4, 5, 6, 9), 9)
    for window, tried in ((None, (1, 2, 3, None)), (5, (1, 2, 3, 5, None))):
        series = Series.of([np.zeros(12), np.ones(9)])
        assert scale_axes(DynamicTimeWarping(window), series, {})[0].values == tried


def test_folds_share_the_matrix_of_a_kernel_with_a_rule() -> None:
    X, y = _objects("series"), np.arange(60) % 2
    search = KernelSearchCV(SVC(kernel=GlobalAlignment().normalized()), cv=3, parameters=["C"], random_state=0)
    assert search.fit(X, y).sharing_.startswith("1 kernel matri")
    assert search.best_params_["kernel"] == GlobalAlignment().with_data(Series.of(X)).normalized()


def test_matrices_have_a_penalty_only() -> None:
    X, y = two_classes(60)
    search = KernelSearchCV(SVC(kernel="precomputed"), cv=2, random_state=0).fit(X @ X.T, y)
    assert set(search.best_params_) == {"C"} and search.certified_
    assert search.predict(X @ X.T).shape == (60,)


def test_results_have_the_layout_of_scikit_learn() -> None:
    X, y = two_classes(80)
    search = KernelSearchCV(SVC(), cv=2, random_state=0).fit(X, y)
    results, scores = search.cv_results_, search.cv_results_["mean_test_score"]
    peer = GridSearchCV(SVC(), {"C": [1.0], "gamma": [1.0]}, cv=2).fit(X, y)
    assert set(peer.cv_results_) <= set(results)
    assert results["params"][search.best_index_] == search.best_params_ and search.best_score_ == scores.max()
    assert results["rank_test_score"][search.best_index_] == 1
    assert (search.bounds_[:, 0] <= scores).all() and (scores <= search.bounds_[:, 1]).all()
    assert search.table_["mean_test_score"].is_monotonic_decreasing and len(search.table_) == len(scores)
    # The scores are those of fits alone.
    alone = cross_val_score(SVC(**search.best_params_), X, y, cv=2).mean()
    assert alone == pytest.approx(search.best_score_)
    assert search.score(X, y) == search.best_estimator_.score(X, y) and list(search.classes_) == [0, 1]


def test_any_number_of_threads_gives_the_same_search() -> None:
    X, y = curve(40)
    search = KernelSearchCV(KernelRidge(kernel="rbf"), cv=2, parameters=["gamma"], random_state=1)
    one, many = (clone(search).set_params(n_jobs=n).fit(X, y) for n in (1, 4))
    assert one.best_params_ == many.best_params_ and one.cv_results_["params"] == many.cv_results_["params"]
    np.testing.assert_array_equal(one.cv_results_["mean_test_score"], many.cv_results_["mean_test_score"])
    np.testing.assert_array_equal(one.bounds_, many.bounds_)


def test_weights_and_groups() -> None:
    X, y = two_classes(80)
    weight, groups = np.linspace(0.5, 2.0, 80), np.arange(80) % 4
    pipeline = make_pipeline(StandardScaler(), SVC())
    search = KernelSearchCV(pipeline, cv=GroupKFold(2), random_state=0)
    search.fit(X, y, groups=groups, svc__sample_weight=weight)
    cv = list(GroupKFold(2).split(X, y, groups))
    grid = {name: [value] for name, value in search.best_params_.items()}
    peer = GridSearchCV(pipeline, grid, cv=cv).fit(X, y, svc__sample_weight=weight)
    assert peer.best_score_ == pytest.approx(search.best_score_)


def test_a_budget_that_is_over_leaves_the_best_so_far() -> None:
    X, y = two_classes(80)
    search = KernelSearchCV(SVC(), cv=2, time_budget=1e-6, random_state=0).fit(X, y)
    # Whether so few rows are fitted before the end of the time is noticed is open.
    assert search.stop_reason_.startswith("budget") and len(search.bounds_) == 1
    assert not search.certified_
    assert search.predict(X).shape == (80,)


def endless(A: Any, B: Any) -> Any:
    # In a fit of a search: before, the kernel is tried, and its size is looked at.
    while getattr(threads._inside, "stop", None) is not None:
        time.sleep(0.001)
        threads.checkpoint()
    return np.exp(-cdist(A, B))


def test_a_first_candidate_that_does_not_end_is_taken_without_a_score() -> None:
    X, y = two_classes(80)
    search = KernelSearchCV(SVC(kernel=from_function(endless)), cv=2, time_budget=0.3, random_state=0)
    with pytest.warns(MercerWarning, match="before the first candidate had a score"):
        search.fit(X, y)
    assert len(search.bounds_) == 1 and np.isnan(search.best_score_) and not search.certified_
    assert search.bounds_reason_ == "the time budget ended before its scores were known"
    assert search.predict(X).shape == (80,)


def test_the_refit_is_expected_to_evaluate_its_matrix(monkeypatch: pytest.MonkeyPatch) -> None:
    X, y = two_classes(80)
    expected = []

    class Watched(TimeBudget):
        def suffices(self, *arguments: Any) -> bool:
            expected.append(self.refit)
            return super().suffices(*arguments)

    def slow(A: Any, B: Any) -> Any:
        time.sleep(0.2)
        return np.exp(-cdist(A, B))

    monkeypatch.setattr(kernel_search, "TimeBudget", Watched)
    KernelSearchCV(SVC(kernel=from_function(slow)), cv=2, random_state=0).fit(X, y)
    # The folds take their parts of the matrix, in no time.
    assert min(expected) >= 0.2


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_a_candidate_that_does_not_end_is_left_when_the_budget_is_over(n_jobs: int) -> None:
    X, y = two_classes(80)
    kernels = [RBF(0.5), from_function(endless)]
    search = KernelSearchCV(SVC(), kernels=kernels, cv=2, time_budget=3.0, n_jobs=n_jobs, random_state=0)
    start = time.monotonic()
    search.fit(X, y)
    assert time.monotonic() - start < 30.0
    assert search.stop_reason_.startswith("budget") and isinstance(search.best_params_["kernel"], RBF)
    assert search.predict(X).shape == (80,)


class Interrupts(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Passes rows on, and stops by hand the fit after so many."""

    fits = 0

    def __init__(self, after: int = 10**9) -> None:
        self.after = after

    def fit(self, X: Any, y: Any = None) -> Self:
        type(self).fits += 1
        if type(self).fits > self.after:
            raise KeyboardInterrupt
        return self

    def transform(self, X: Any) -> Any:
        return X


def test_ctrl_c_keeps_the_best_so_far() -> None:
    X, y = two_classes(80)
    search = KernelSearchCV(SVC(), cv=2, refit=False, random_state=0)
    count = 0

    def stop(what: str, done: int, total: int | None) -> None:
        nonlocal count
        count += what == "search"
        if what == "search" and count == 7:
            raise KeyboardInterrupt

    with mercer.on_progress(stop), pytest.warns(MercerWarning, match="interrupted after 7 candidates"):
        search.fit(X, y)
    assert search.stop_reason_.startswith("interrupted") and len(search.bounds_) == 7
    assert search.best_score_ == search.cv_results_["mean_test_score"].max()
    count = 6
    with mercer.on_progress(stop), pytest.warns(MercerWarning, match="fits it to all rows now"):
        assert KernelSearchCV(SVC(), cv=2, random_state=0).fit(X, y).predict(X).shape == (80,)


def test_ctrl_c_before_any_result_raises() -> None:
    X, y = two_classes(80)
    Interrupts.fits = 0
    with pytest.raises(KeyboardInterrupt):
        KernelSearchCV(make_pipeline(Interrupts(after=1), SVC()), cv=2).fit(X, y)


def test_candidates_that_fail_are_named() -> None:
    X, y = two_classes(60)

    def raises(x: Any, z: Any) -> float:
        raise RuntimeError("no such pair")

    search = KernelSearchCV(SVC(), kernels=[raises, "rbf"], cv=2, random_state=0)
    with pytest.warns(MercerWarning, match=r"left out 5 of \d+ candidates.*\nall 5 with the kernel <.*no such pair"):
        search.fit(X, y)
    assert search.best_params_["kernel"] == "rbf"
    # What failed has no score, and does not keep the best of the others from being certain.
    assert search.certified_ and search.stop_reason_.startswith("certified")
    assert np.isnan(search.bounds_).any(axis=1).sum() == 5
    with pytest.raises(DataError, match=r"All 5 candidates failed:\nall 5 with the kernel.*no such pair"):
        KernelSearchCV(SVC(), kernels=[raises], cv=2).fit(X, y)


def test_a_single_candidate_that_can_be_fitted_is_not_certain() -> None:
    X, y = two_classes(60)

    def raises(x: Any, z: Any) -> float:
        raise RuntimeError("no such pair")

    search = KernelSearchCV(SVC(), kernels=["linear", raises], parameters=[], cv=2)
    with pytest.warns(MercerWarning, match="left out 1 of 2 candidates"):
        search.fit(X, y)
    assert not search.certified_ and search.stop_reason_.startswith("done")


@pytest.mark.parametrize(
    ("search", "message"),
    [
        (KernelSearchCV(LogisticRegression()), "knows the ranges of Mercer's learners"),
        (KernelSearchCV(SVC(), time_budget=0), "time_budget must be a number of seconds above 0"),
        (KernelSearchCV(SVC(), scoring=["accuracy", "f1"]), "scoring must be the name of one metric"),
        (KernelSearchCV(SVC(kernel="rfb")), "there is no kernel 'rfb'; did you mean 'rbf'"),
        (KernelSearchCV(OneClassSVM()), "OneClassSVM has no score by which candidates could be compared"),
        (KernelSearchCV(GaussianProcessClassifier(RBF(1.0))), "there is nothing to search"),
        (KernelSearchCV(SVC(), cv=[(np.arange(30), np.arange(30, 60)), (np.arange(3), [59])]), "one class only"),
    ],
    ids=["estimator", "budget", "metrics", "name", "no score", "nothing", "one class"],
)
def test_errors_before_any_work(search: Any, message: str) -> None:
    X, y = two_classes(60)
    y[:3] = 0
    with pytest.raises(ValueError, match=message):
        search.fit(X, y)
    assert not hasattr(search, "cv_results_")


@pytest.mark.parametrize(
    ("entry", "message"), [("a", "could not convert"), (np.nan, "contains NaN")], ids=["text", "nan"]
)
def test_rows_that_cannot_be_fitted_raise_before_any_work(entry: Any, message: str) -> None:
    X, y = two_classes(40)
    X = X.astype(object)
    X[3, 0] = entry
    with pytest.raises(ValueError, match=message):
        KernelSearchCV(SVC()).fit(X, y)


@pytest.mark.slow
def test_contenders_are_tightened_and_others_are_not() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1300, 2))
    y = X[:, 0] ** 2 + X[:, 1] + 0.4 * rng.normal(size=1300) > 0.5
    search = KernelSearchCV(SVC(), time_budget=600, random_state=0, cv=2).fit(X, y)
    tolerances, lower, upper = search.cv_results_["tol"], *search.bounds_.T
    own = np.where(np.isnan(tolerances), SVC().tol, tolerances)
    # What stayed at the loose tolerance cannot win, and some were fitted more exactly than by default.
    assert (upper[own > SVC().tol] < lower.max()).all() and own.min() < SVC().tol
    scores = search.cv_results_["mean_test_score"]
    assert ((lower <= scores) & (scores <= upper)).all()
    assert search.certified_ or search.stop_reason_.startswith("done")
    exact = cross_val_score(SVC(**search.best_params_, tol=1e-9), X, y, cv=2).mean()
    assert lower[search.best_index_] <= exact <= upper[search.best_index_]


@pytest.mark.slow
@parametrize_with_checks([KernelSearchCV(SVC(), cv=2), KernelSearchCV(KernelRidge(kernel="rbf"), cv=2)])
def test_checks_of_scikit_learn(estimator: Any, check: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    # No check looks at how fine the search is.
    monkeypatch.setattr("mercer.selection.coarse_to_fine.FINEST", math.log(10.0))
    check(estimator)


def test_scores_that_are_not_numbers_say_why() -> None:
    X, y = two_classes(12)
    y[:] = [0, 1] * 6
    search = KernelSearchCV(SVC(), cv=[(np.arange(10), [10])], scoring="roc_auc")
    message = r"All \d+ candidates failed:\n.*the score of fold 0 is NaN, with 1 held-out rows"
    with pytest.warns(UndefinedMetricWarning), pytest.raises(DataError, match=message):
        search.fit(X, y)


def test_a_column_of_labels_is_told_once() -> None:
    X, y = two_classes(40)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        search = KernelSearchCV(SVC(), cv=2, parameters=["C"], random_state=0).fit(X, y[:, None])
    assert [warning.category for warning in caught] == [DataConversionWarning]
    alone = KernelSearchCV(SVC(), cv=2, parameters=["C"], random_state=0).fit(X, y)
    assert search.best_params_ == alone.best_params_ and search.best_score_ == alone.best_score_


@pytest.mark.slow
@pytest.mark.parametrize(
    ("learner", "parameters", "sizes"),
    [
        (SVR(), ["C", "epsilon"], (1e-100, 1e100)),
        (NuSVR(), ["C"], (1e-100,)),
        (KernelRidge(kernel="rbf"), ["alpha"], (1e100,)),
    ],
    ids=["SVR", "NuSVR", "KernelRidge"],
)
def test_the_size_of_the_targets_makes_no_difference(
    learner: Any, parameters: list[str], sizes: tuple[float, ...]
) -> None:
    X, y = curve(30)
    scores = []
    for size in (1.0, *sizes):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            search = KernelSearchCV(learner, cv=2, parameters=parameters, random_state=0).fit(X, size * y)
        assert search.score(X, size * y) > 0.5
        scores.append(search.best_score_)
    np.testing.assert_allclose(scores, scores[0], atol=0.1)


def test_bounds_of_many_pairs_of_classes_come_last(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    X, y = two_classes(60)
    usual = KernelSearchCV(SVC(), cv=2, random_state=0, refit=False).fit(X, y)
    asked = []
    evaluate = Evaluator.evaluate

    def noted(self: Evaluator, parameters: Any, tol: Any, bounded: bool = True) -> Any:
        asked.append(bounded)
        return evaluate(self, parameters, tol, bounded)

    monkeypatch.setattr(Evaluator, "evaluate", noted)
    monkeypatch.setattr(kernel_search, "_PAIRS", 0)
    search = KernelSearchCV(SVC(), cv=2, random_state=0, refit=False, log=tmp_path / "log").fit(X, y)
    assert asked == sorted(asked) and {*asked} == {False, True}
    assert search.best_params_ == usual.best_params_ and search.certified_ == usual.certified_
    assert np.isfinite(search.bounds_).all() and search.bounds_reason_ == ""
    asked.clear()
    again = clone(search).fit(X, y)
    assert True not in asked
    np.testing.assert_array_equal(again.bounds_, search.bounds_)
