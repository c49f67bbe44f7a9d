"""scikit-learn's checks of regressors and classifiers with guaranteed coverage, and what they keep of their data."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.model_selection import cross_val_score

from mercer import SVC, ConformalClassifier, ConformalRegressor
from mercer._errors import DataError, ParameterError

RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 2))


@pytest.mark.parametrize(
    ("model", "y"),
    [(ConformalRegressor(Ridge()), X[:, 0]), (ConformalClassifier(LogisticRegression()), X[:, 0] > 0)],
    ids=["numbers", "classes"],
)
def test_it_stands_where_any_estimator_can(model: Any, y: np.ndarray) -> None:
    with pytest.raises(NotFittedError):
        model.predict(X)
    assert cross_val_score(model, X, y, cv=2).min() > 0.8
    frame = pd.DataFrame(X, columns=["a", "b"])
    of_frame, of_array = model.fit(frame, y).predict(frame), model.fit(X, y).predict(X)
    np.testing.assert_allclose(of_frame.astype(float), of_array.astype(float))
    before = model.get_params()["estimator"]
    assert not hasattr(before, "coef_") and model.n_features_in_ == 2
    # The same seed gives the same parts.
    again = type(model)(before).fit(X, y)
    np.testing.assert_array_equal(again.cross_fit_.parts, model.cross_fit_.parts)


def test_sparse_rows_reach_the_estimator() -> None:
    y = X[:, 0] > 0
    model, sparse = ConformalClassifier(SVC(kernel="linear")), sp.csr_matrix(X)
    np.testing.assert_array_equal(
        model.fit(sparse, y).predict_set(sparse).members, model.fit(X, y).predict_set(X).members
    )


def test_an_estimator_of_the_other_kind_is_refused() -> None:
    X, y = np.arange(40.0)[:, None], np.arange(40.0)
    with pytest.raises(ParameterError, match="estimator of ConformalRegressor must be a regressor, but is SVC"):
        ConformalRegressor(SVC()).fit(X, y)
    with pytest.raises(ParameterError, match="estimator of ConformalClassifier must be a classifier, but is Ridge"):
        ConformalClassifier(Ridge()).fit(X, y > 20)


@pytest.mark.parametrize("coverage", [1e-300, 1 - 1e-16, 0.0, 1.0])
def test_a_share_of_none_or_all_is_refused(coverage: float) -> None:
    X = np.arange(40.0)[:, None]
    with pytest.raises(ParameterError, match="coverage must be a number between 0 and 1"):
        ConformalRegressor(Ridge()).fit(X, X[:, 0]).interval(X, coverage)


@pytest.mark.parametrize(
    ("model", "bad", "words"),
    [
        (ConformalRegressor(Ridge()), np.nan, r"contains NaN.* 1 of 60 rows are not finite, first nan in row 7; drop"),
        (ConformalRegressor(Ridge()), -np.inf, "contains infinity.* 1 of 60 rows .* first -inf in row 7; drop"),
        (ConformalRegressor(Ridge()), "far", "ConformalRegressor learns numbers, but y holds"),
        (ConformalClassifier(LogisticRegression()), np.nan, r"1 labels are missing, the first \(nan\) in row 7"),
        (ConformalClassifier(LogisticRegression()), None, r"1 labels are missing, the first \(None\) in row 7"),
        (ConformalClassifier(LogisticRegression()), np.inf, "contains infinity.* first inf in row 7; drop"),
    ],
)
def test_targets_that_are_no_targets_are_named_by_their_row(model: Any, bad: Any, words: str) -> None:
    y = np.where(X[:, 0] > 0, 1.0, 0.0).astype(object)
    y[7] = bad
    with pytest.raises(DataError, match=words):
        model.fit(X, y if isinstance(bad, str | None) else y.astype(float))


def test_one_class_is_shown_as_a_number() -> None:
    with pytest.raises(DataError, match=r"one class alone, 1\.0; a classifier"):
        ConformalClassifier(LogisticRegression()).fit(X, np.ones(60))
