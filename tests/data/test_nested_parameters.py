"""Parameters of solvers and losses by the names of scikit-learn's searches."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from mercer import SVC, SVR, KernelMachine
from mercer._errors import ParameterError
from mercer.kernels import RBF
from mercer.losses import Huber, Quantile
from mercer.maps import NystroemMap
from mercer.solvers import SMO, ProjectedGradient

RNG = np.random.default_rng(0)
X = RNG.normal(size=(40, 2))
NUMBERS = X[:, 0] ** 2 + 0.1 * RNG.normal(size=40)


def test_a_grid_over_the_tolerance_of_a_solver() -> None:
    base = SMO(tol=1e-2, cache_bytes=2**20)
    grid = {"solver__tol": [0.5, 1e-6], "C": [1.0, 10.0]}
    search = GridSearchCV(SVC(solver=base), grid, cv=2).fit(X, NUMBERS > 1)
    for params, score in zip(search.cv_results_["params"], search.cv_results_["mean_test_score"], strict=True):
        by_hand = SVC(C=params["C"], solver=SMO(tol=params["solver__tol"], cache_bytes=2**20))
        assert GridSearchCV(by_hand, {}, cv=2).fit(X, NUMBERS > 1).best_score_ == score
    assert search.best_estimator_.solver == SMO(tol=search.best_params_["solver__tol"], cache_bytes=2**20)
    assert base == SMO(tol=1e-2, cache_bytes=2**20)


def test_a_grid_over_the_parameter_of_a_loss() -> None:
    model = KernelMachine(Quantile(0.5), kernel="rbf")
    search = GridSearchCV(make_pipeline(StandardScaler(), model), {"kernelmachine__loss__level": [0.2, 0.8]}, cv=2)
    best = search.fit(X, NUMBERS).best_estimator_[-1]
    assert best.loss == Quantile(search.best_params_["kernelmachine__loss__level"]) and model.loss == Quantile(0.5)


def test_the_names_are_listed_and_set_in_any_order() -> None:
    model = SVR(solver=ProjectedGradient(tol=0.1))
    assert model.get_params()["solver__tol"] == 0.1 and "solver__tol" not in model.get_params(deep=False)
    assert clone(model).get_params() == model.get_params()
    model.set_params(solver__tol=0.2, C=3.0, solver=SMO())
    assert model.solver == SMO(tol=0.2) and model.C == 3.0
    model.set_params(solver__max_iter=7, solver__stop="gap")
    assert model.solver == SMO(tol=0.2, max_iter=7, stop="gap")


def test_the_kernel_of_a_map_is_set_by_name() -> None:
    kernel = RBF(1.0)
    model = NystroemMap(kernel=kernel, n_components=5, random_state=0).set_params(kernel__length_scale=3.0)
    expected = NystroemMap(kernel=RBF(3.0), n_components=5, random_state=0).fit_transform(X)
    np.testing.assert_array_equal(model.fit_transform(X), expected)
    assert kernel == RBF(1.0)


@pytest.mark.parametrize(
    ("model", "params", "message"),
    [
        (SVC(), {"solver__tol": 0.1}, r"solver__tol names a parameter of the solver, but solver='smo' has none.*SMO\("),
        (SVC(solver=SMO()), {"solver__delta": 0.1}, r"SMO\(.* has no parameter 'delta'; it has tol, stop, max_iter"),
        (SVC(solver=SMO()), {"solver__tol": -1.0}, r"SMO: tol must be a finite number above 0, but is -1\.0"),
        (SVC(), {"C__low": 1.0}, r"C__low names a parameter of the C, but C=1\.0 has none"),
        (KernelMachine(Huber()), {"loss__delta": 0.0}, r"delta must be .* above 0, but is 0\.0"),
    ],
)
def test_parameters_that_are_refused(model: Any, params: dict[str, Any], message: str) -> None:
    before = model.get_params()
    with pytest.raises(ParameterError, match=message):
        model.set_params(**params)
    assert model.get_params() == before
    with pytest.raises(ParameterError, match=message):
        GridSearchCV(model, {key: [value] for key, value in params.items()}).fit(X, NUMBERS > 1)
