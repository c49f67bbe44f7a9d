"""The search without a grid: what it tries, what it reports, and how it ends."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from mercer import SVC, SVR, GridSearchCV, KernelRidge, KernelSearchCV, NuSVC
from mercer._errors import DataError
from search_cases import curve, three_classes, two_classes

RATES = [0.01, 0.1, 1.0]
LEARNERS: list[tuple[Any, Any, dict[str, Any]]] = [
    (SVC(), three_classes, {"C": [0.1, 1.0, 10.0], "gamma": RATES}),
    (NuSVC(), three_classes, {"nu": [0.1, 0.3, 0.5], "gamma": RATES}),
    (SVR(), curve, {"C": [0.1, 1.0, 10.0], "gamma": RATES}),
    (KernelRidge(kernel="rbf"), curve, {"alpha": [1e-3, 0.1, 1.0], "gamma": RATES}),
    (make_pipeline(StandardScaler(), SVC()), two_classes, {"svc__C": [0.1, 1.0, 10.0], "svc__gamma": RATES}),
]


@pytest.mark.parametrize(
    ("estimator", "data", "grid"), LEARNERS, ids=[f"{n}-{type(case[0]).__name__}" for n, case in enumerate(LEARNERS)]
)
def test_the_best_is_not_worse_than_that_of_a_coarse_grid(estimator: Any, data: Any, grid: dict[str, Any]) -> None:
    X, y = data()
    search = KernelSearchCV(estimator, cv=3, random_state=0).fit(X[::2], y[::2])
    assert set(grid) <= set(search.best_params_)
    peer = GridSearchCV(estimator, grid, cv=3, refit=False).fit(X[::2], y[::2])
    assert search.best_score_ >= peer.best_score_ - peer.cv_results_["std_test_score"][peer.best_index_] / np.sqrt(3)
    fitted = search.best_estimator_.get_params()
    assert {name: fitted[name] for name in search.best_params_} == search.best_params_
    np.testing.assert_array_equal(search.predict(X), search.best_estimator_.predict(X))


def test_no_targets() -> None:
    with pytest.raises(DataError, match="requires y to be passed, but the target y is None"):
        KernelSearchCV(SVC()).fit(np.eye(4))
