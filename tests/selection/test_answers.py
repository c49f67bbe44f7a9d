"""What scorers ask of the fits of a search, and the answers that stand for fits."""

from __future__ import annotations

from contextlib import ExitStack
from typing import Any

import numpy as np
import pytest
from sklearn.metrics import f1_score, make_scorer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from mercer import SVC, SVR, GridSearchCV, KernelLogisticRegression
from mercer.selection.answers import Answered, AskedMethods, ScoredRows
from mercer.selection.fold_rows import Fold, SearchData
from search_cases import both, curve, two_classes

FOLD = Fold(0, np.arange(60), np.arange(60, 90))


def data(train_scores: bool = False) -> SearchData:
    X, y = two_classes(100)
    return SearchData(X, y, None, len(y), (FOLD,), train_scores)


@pytest.mark.parametrize(
    ("estimator", "scoring", "names"),
    [
        (SVC(), None, ("score",)),
        (SVC(), "roc_auc", ("decision_function",)),
        (SVC(), ["accuracy", "roc_auc"], ("predict", "decision_function")),
        (make_pipeline(StandardScaler(), SVC()), {"own": make_scorer(f1_score)}, ("predict",)),
        (KernelLogisticRegression(), "neg_log_loss", ("predict_proba",)),
        (SVC(), "neg_log_loss", ()),
    ],
)
def test_methods_that_scorers_ask_for(estimator: Any, scoring: Any, names: tuple[str, ...]) -> None:
    assert AskedMethods(scoring, data())(estimator) == names


def test_answers_stand_for_a_fit() -> None:
    some = data(train_scores=True)
    model, again = SVC().fit(some.X[:60], some.y[:60]), []

    def fit_again() -> Any:
        again.append(1)
        return model, lambda positions: some.X[positions]

    with ExitStack() as stack:
        rows = ScoredRows(FOLD, some, False, stack)
        answers = rows.answers((model, lambda positions: some.X[positions]), ("predict", "score"))
    assert answers is not None
    answered, _ = Answered(model, answers, FOLD, fit_again).made()
    np.testing.assert_array_equal(answered.predict(FOLD.test), model.predict(some.X[60:90]))
    assert answered.score(FOLD.train, some.y[:60]) == model.score(some.X[:60], some.y[:60])
    np.testing.assert_array_equal(answered.classes_, model.classes_)
    assert not again and not hasattr(answered, "predict_proba") and not hasattr(answered, "dual_coef_")
    # What nobody knew would be asked.
    np.testing.assert_array_equal(answered.predict(np.arange(5)), model.predict(some.X[:5]))
    np.testing.assert_array_equal(answered.decision_function(FOLD.test), model.decision_function(some.X[60:90]))
    assert len(again) == 2


def test_no_answers_where_a_prediction_fails() -> None:
    some = data()
    with ExitStack() as stack:
        rows = ScoredRows(FOLD, some, False, stack)
        assert rows.answers((SVC(), lambda positions: some.X[positions]), ("predict",)) is None


def test_fits_are_dropped_and_scores_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    X, y = curve(60)
    grid = {"C": [0.1, 1.0, 10.0], "gamma": [0.5, 1.0]}
    scoring = ["r2", "neg_mean_absolute_error"]
    kept = []
    made = Answered.made
    monkeypatch.setattr(Answered, "made", lambda self: kept.append(self) or made(self))
    search = GridSearchCV(SVR(), grid, scoring=scoring, refit="r2", cv=3, return_train_score=True)
    both(search, X, y)
    assert len(kept) == 18
