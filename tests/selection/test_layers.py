"""Fitted models of several layers: the learner inside, the rows that it gets, and one refusal of anything else."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler

import mercer
from mercer import SVC, GridSearchCV, explain
from mercer._errors import ParameterError
from mercer.estimators.table import TableModel
from mercer.plotting import GramDisplay
from mercer.selection.layers import layers_of, learner_inside, require_fitted, rows_for_learner

X = np.random.default_rng(0).normal(5.0, 3.0, size=(40, 2))
y = X[:, 0] > X[:, 1]

ENTRANCES: list[Callable[[Any], Any]] = [
    mercer.report,
    lambda model: explain.contributions(model, X[0]),
    lambda model: GramDisplay.from_estimator(model, X),
]


def _pipeline() -> Pipeline:
    return Pipeline([("same", "passthrough"), ("scale", StandardScaler()), ("svc", SVC())])


def test_the_learner_is_inside_a_search_of_pipelines() -> None:
    search = GridSearchCV(_pipeline(), {"svc__C": [1.0, 2.0]}, cv=2).fit(X, y)
    learner = search.best_estimator_.steps[-1][1]
    assert [type(layer) for layer in layers_of(search)] == [GridSearchCV, Pipeline, SVC]
    assert learner_inside(search) is learner and require_fitted(search) is learner
    seen = rows_for_learner(search, X)
    np.testing.assert_allclose(seen.mean(axis=0), 0.0, atol=1e-12)
    np.testing.assert_array_equal(learner.decision_function(seen), search.decision_function(X))


def test_the_learner_is_inside_the_model_of_a_table() -> None:
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(X, columns=["a", "b"])
    model = TableModel(_pipeline()).fit(frame, y)
    assert type(learner_inside(model)) is SVC
    np.testing.assert_array_equal(learner_inside(model).predict(rows_for_learner(model, frame)), model.predict(frame))


@pytest.mark.parametrize("entrance", ENTRANCES)
def test_what_is_not_a_fitted_estimator_is_said_alike(entrance: Callable[[Any], Any]) -> None:
    with pytest.raises(ParameterError, match=r"(model|estimator) must be a fitted estimator, but is <class"):
        entrance(SVC)
    # However long it is.
    with pytest.raises(ParameterError, match=r"must be a fitted estimator, but is 'aaaa") as error:
        entrance("a" * 10_000)
    assert len(str(error.value)) < 200
    with pytest.raises(NotFittedError):
        entrance(SVC())
