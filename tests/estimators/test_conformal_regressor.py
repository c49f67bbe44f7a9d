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
