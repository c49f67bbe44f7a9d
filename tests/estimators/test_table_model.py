"""A learner together with the encoding of its table."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone, is_classifier, is_regressor
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.preprocessing import StandardScaler

from mercer import SVC, KernelRidge
from mercer._errors import DataError, SchemaError
from mercer.estimators.table import TableModel
from mercer.kernels import RBF, Linear


@pytest.fixture
def frame():
    rng = np.random.default_rng(0)
    return pd.DataFrame(
        {"age": rng.uniform(20, 60, 80), "size": rng.normal(size=80), "town": rng.choice(["Ulm", "Zug"], 80)}
    )


def test_a_classifier_learns_labels(frame):
    y = np.where(frame["age"] > 40, "old", "young")
    model = TableModel(SVC(C=10.0)).fit(frame, y)
    assert is_classifier(model) and model.classes_.tolist() == ["old", "young"]
    assert model.score(frame, y) == np.mean(model.predict(frame) == y) > 0.95


def test_a_regression_has_the_same_answer_in_any_unit(frame):
    y = 1000.0 + 3.0 * frame["age"].to_numpy()
    model = TableModel(KernelRidge(alpha=0.1, kernel="rbf"))
    assert is_regressor(model)
    metres = clone(model).fit(frame, y)
    millimetres = clone(model).fit(frame, 1000.0 * y)
    assert np.allclose(1000.0 * metres.predict(frame), millimetres.predict(frame), rtol=1e-9)
    assert metres.score(frame, y) > 0.95


def test_the_estimator_sees_the_encoded_table(frame):
    numbers = frame[["age", "size"]]
    y = (frame["age"] > 40).to_numpy()
    model = TableModel(SVC()).fit(numbers, y)
    alone = SVC().fit(StandardScaler().fit_transform(numbers), y)
    assert np.array_equal(model.estimator_.dual_coef_, alone.dual_coef_)


def test_a_kernel_may_name_columns(frame):
    y = (frame["age"] > 40).to_numpy()
    model = TableModel(SVC(kernel=2.0 * RBF(1.0).on("age") + Linear().on(["town", "size"]))).fit(frame, y)
    assert model.estimator_.kernel_ == 2.0 * RBF(1.0).on([0]) + Linear().on([2, 3, 1])
    with pytest.raises(DataError, match=r"the column 'agee', which the model does not have; did you mean 'age'"):
        TableModel(SVC(kernel=RBF(1.0).on("agee"))).fit(frame, y)


def test_new_tables_are_checked(frame):
    model = TableModel(SVC()).fit(frame, frame["age"] > 40)
    with pytest.raises(SchemaError, match=r"new.csv lacks 1 of the 3 columns"):
        model.predict(frame.drop(columns="age"), source="new.csv")
    assert list(model.schema_.kinds) == ["age", "size", "town"]


def test_it_is_cloned_copied_pickled_and_searched(frame):
    y = np.where(frame["age"] > 40, "old", "young")
    model = TableModel(SVC(), impute="median", target="group").fit(frame, y)
    assert clone(model).get_params()["impute"] == "median" and not hasattr(clone(model), "estimator_")
    for twin in (copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
        assert np.array_equal(twin.predict(frame), model.predict(frame))
    search = GridSearchCV(TableModel(SVC()), {"estimator__C": [0.01, 10.0], "normalize": ["standard", "unit"]}, cv=3)
    assert search.fit(frame, y).best_params_["estimator__C"] == 10.0
    assert cross_val_score(model, frame, y, cv=3).mean() > 0.8


def test_arrays_are_tables_too():
    X = np.random.default_rng(0).normal(size=(30, 2))
    model = TableModel(SVC()).fit(X, X[:, 0] > 0)
    assert list(model.schema_.kinds) == ["x0", "x1"]
    assert model.score(X, X[:, 0] > 0) > 0.9
    with pytest.raises(DataError, match=r"shape \(30,\)"):
        model.predict(X[:, 0])


def test_columns_that_are_numbered_are_found_again():
    X = pd.DataFrame(np.random.default_rng(0).normal(size=(40, 2)))
    y = np.where(X[0] > 0, "up", "down")
    assert (TableModel(SVC()).fit(X, y).predict(X) == y).mean() > 0.9
