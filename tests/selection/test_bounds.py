"""Intervals of scores: the score of the exact solution is always inside, and the interval shrinks with the gap."""

from __future__ import annotations

import copy
import warnings
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.metrics import check_scoring, make_scorer

from mercer import SVC, SVR, KernelLogisticRegression, KernelRidge, KernelSearchCV, NuSVC
from mercer.estimators.shared.given_coefficients import GivenCoefficients
from mercer.kernels import RBF, White
from mercer.selection.bounds import ScoreBounds
from mercer.selection.evaluated import Evaluator
from mercer.selection.fold_rows import Fold, SearchData
from mercer.selection.prediction_bounds import Fitted, NoBoundError, intervals
from search_cases import curve, three_classes, two_classes

SCORES = {
    True: ("accuracy", "balanced_accuracy"),
    False: ("r2", "neg_mean_squared_error", "neg_root_mean_squared_error", "neg_mean_absolute_error"),
}


class Case:
    """Random rows in one fold, a fit that stopped early, and the exact one."""

    def __init__(self, seed: int, learner: str, classes: int = 2, weighted: bool = False) -> None:
        rng = np.random.default_rng(seed)
        n = int(rng.integers(12, 50))
        X, labels = rng.normal(size=(n, 2)), rng.integers(0, classes, n)
        labels[:classes] = np.arange(classes)
        self.classifies = learner in ("svc", "logistic")
        y = labels if self.classifies else np.sin(X[:, 0]) + 0.3 * rng.normal(size=n)
        weight = rng.uniform(0.1, 3.0, n) if weighted else None
        fold = Fold(0, np.arange(2 * n // 3), np.arange(2 * n // 3, n))
        self.data = SearchData(X, y, weight, n, (fold,))
        self.fold, self.rows = fold, lambda positions: X[positions]
        options: dict[str, Any] = {"gamma": 10.0 ** rng.uniform(-2, 1)}
        if learner != "ridge":
            options |= {"C": 10.0 ** rng.uniform(-2, 3), "fit_intercept": bool(rng.integers(0, 4))}
        steps = int(rng.integers(1, 6)) if learner == "logistic" else int(rng.integers(5, 300))
        early: dict[str, Any] = {"max_iter": steps}
        if learner in ("svc", "svr"):
            early |= {"solver": "projected-gradient", "tol": 10.0 ** rng.uniform(-6, 0)}
        made = {"svc": SVC, "svr": SVR, "logistic": KernelLogisticRegression, "ridge": KernelRidge}[learner]
        if learner == "ridge":
            self.exact = KernelRidge(kernel="rbf", alpha=10.0 ** rng.uniform(-6, 1), **options)
            self.rough = clone(self.exact)
        else:
            self.rough, self.exact = made(**options, **early), made(**options, tol=1e-10)
        _, fit = self.data.targets(fold)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for model in (self.rough, self.exact):
                model.fit(X[fold.train], y[fold.train], **fit)
        if learner == "ridge":
            self._disturb(10.0 ** rng.uniform(-12, 0) * rng.normal(size=len(fold.train)), fit.get("sample_weight"))

    def _disturb(self, share: np.ndarray, weight: Any) -> None:
        """A direct solution has no gap: change its coefficients, and certify them."""
        model = self.rough
        model.dual_coef_ = model.dual_coef_ * (1.0 + share)
        given = GivenCoefficients(model.dual_coef_, None, None)
        train = self.fold.train
        model.certificate_ = model.certificate_of(given, self.data.X[train], self.data.y[train], weight)

    def values(self) -> np.ndarray:
        """What the exact solution predicts for the held-out rows."""
        model, rows = self.exact, self.data.X[self.fold.test]
        if not self.classifies:
            return np.asarray(model.predict(rows)).reshape(len(rows), -1)
        if len(model.classes_) > 2:
            model = copy.copy(model).set_params(decision_function_shape="ovo")
        return np.asarray(model.decision_function(rows)).reshape(len(rows), -1)

    def check(self) -> None:
        lower, upper = intervals(Fitted(self.rough, self.rows, self.fold, self.data))
        values = self.values()
        assert ((lower <= values) & (values <= upper)).all()
        X, y = self.data.X[self.fold.test], self.data.y[self.fold.test]
        for name in SCORES[self.classifies]:
            scorer = check_scoring(self.exact, scoring=name)
            bound = ScoreBounds.of(self.exact, scorer, self.data)(self.rough, self.rows, self.fold, y)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                assert bound.lower <= scorer(self.exact, X, y) <= bound.upper and not bound.why


@settings(max_examples=8, deadline=None, derandomize=True)
@given(
    st.integers(0, 2**32 - 1), st.sampled_from(["svc", "svr", "logistic", "ridge"]), st.integers(2, 4), st.booleans()
)
def test_the_exact_solution_is_inside(seed: int, learner: str, classes: int, weighted: bool) -> None:
    Case(seed, learner, classes if learner == "svc" else 2, weighted).check()


@pytest.mark.slow
@settings(max_examples=100, deadline=None)
@given(
    st.integers(0, 2**32 - 1), st.sampled_from(["svc", "svr", "logistic", "ridge"]), st.integers(2, 4), st.booleans()
)
def test_the_exact_solution_is_inside_on_many(seed: int, learner: str, classes: int, weighted: bool) -> None:
    Case(seed, learner, classes if learner == "svc" else 2, weighted).check()


@pytest.mark.parametrize("learner", ["svc", "svr", "logistic", "ridge"])
def test_the_interval_of_an_exact_solution_is_a_point(learner: str) -> None:
    case = Case(3, learner)
    lower, upper = intervals(Fitted(case.exact, case.rows, case.fold, case.data))
    assert (upper - lower).max() < 2e-3 * max(1.0, np.abs(upper).max())


def test_classes_that_are_all_at_their_bounds_have_the_offset_in_the_middle() -> None:
    X, y = three_classes()
    search = KernelSearchCV(SVC(gamma=0.01), cv=3, random_state=0).fit(X[::5], y[::5])
    assert (np.diff(search.bounds_, axis=1) == 0).all() and search.certified_


@pytest.mark.parametrize(
    ("estimator", "scoring", "why"),
    [
        (NuSVC(nu=0.1), None, "no bound of the predictions of NuSVC"),
        (SVC(), "roc_auc", "no bound is known for the metric roc_auc_score"),
        (KernelRidge(alpha=0.1, kernel="rbf"), make_scorer(lambda y, f: 0.0), "no bound is known for the metric"),
        (SVR(kernel="sigmoid", coef0=-5.0), None, "not positive semi-definite"),
    ],
    ids=["learner", "metric", "own", "indefinite"],
)
@pytest.mark.filterwarnings("ignore::mercer._errors.MercerWarning")
def test_without_a_bound_the_reason_is_given(estimator: Any, scoring: Any, why: str) -> None:
    X, y = curve(30)
    y = y > 0 if isinstance(estimator, SVC | NuSVC) else y
    search = KernelSearchCV(estimator, cv=2, scoring=scoring, time_budget=0.3, random_state=0).fit(X, y)
    assert np.isnan(search.bounds_).all() and not search.certified_ and why in search.bounds_reason_


def test_noise_of_each_row_has_a_bound_where_the_matrix_is_known() -> None:
    case = Case(0, "ridge")
    train, kernel = case.fold.train, RBF(1.0) + White(0.1)
    case.rough.set_params(kernel=kernel, gamma=None).fit(case.data.X[train], case.data.y[train])
    with pytest.raises(NoBoundError, match="noise of each row"):
        intervals(Fitted(case.rough, case.rows, case.fold, case.data))
    X, y = curve(30)
    search = KernelSearchCV(KernelRidge(alpha=0.1, kernel=kernel), cv=2, time_budget=0.3, random_state=0).fit(X, y)
    assert np.isfinite(search.bounds_).all() and search.bounds_reason_ == ""


def test_without_a_penalty_there_is_no_ball() -> None:
    case = Case(0, "ridge")
    case.rough.alpha_ = 0.0
    with pytest.raises(NoBoundError, match="without a penalty"):
        intervals(Fitted(case.rough, case.rows, case.fold, case.data))


def test_labels_may_be_a_column() -> None:
    X, y = three_classes()
    X, y = X[::5], y[::5]
    search, alone = (
        KernelSearchCV(SVC(), cv=2, parameters=["C"], random_state=0).fit(X, labels) for labels in (y[:, None], y)
    )
    assert search.bounds_reason_ == "" and (np.diff(search.bounds_, axis=1) < 1).all()
    np.testing.assert_array_equal(search.bounds_, alone.bounds_)


def test_a_bound_that_fails_leaves_the_score() -> None:
    X, y = two_classes(40)
    data = SearchData(X, y, None, 40, (Fold(0, np.arange(30), np.arange(30, 40)),))

    def fails(*arguments: Any) -> Any:
        raise RuntimeError("no bound")

    (one,) = Evaluator(SVC(), data, check_scoring(SVC()), None, fails).evaluate([{"C": 1.0}], None)
    assert (
        0 < one.mean <= 1
        and np.isnan(one.interval).all()
        and one.why == "its computation failed: RuntimeError: no bound"
    )
