"""A seeded fit gives the same bits for any number of threads, of Mercer or of BLAS, and whoever else is at work."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone
from threadpoolctl import threadpool_limits

import mercer
from estimator_table import ALL, CLASSES, RESTRICTED
from mercer import BayesianLinearRegression, KernelPCA, KernelQuantileRegression, KernelRidge
from mercer.maps import NystroemMap

# Above 127 rows OpenBLAS uses its own threads, above 512 our factorisations are cut into blocks.
FEW, MANY = 260, 700
RNG = np.random.default_rng(5)
X = RNG.normal(size=(MANY, 3))
LABELS = np.where(X[:, 0] * X[:, 1] > 0, "same", "other")
NUMBERS = np.sin(X[:, 0]) + 0.1 * RNG.normal(size=MANY)
NEW = RNG.normal(size=(300, 3))
OTHERS = [
    pytest.param(BayesianLinearRegression(), NUMBERS, id="BayesianLinearRegression"),
    pytest.param(KernelPCA(7, kernel="rbf", eigen_solver="dense"), NUMBERS, id="KernelPCA, dense"),
    pytest.param(KernelRidge(0.1, kernel="linear"), NUMBERS, id="KernelRidge, linear"),
    pytest.param(KernelRidge(0.1, kernel="sigmoid", allow_indefinite=True), NUMBERS, id="KernelRidge, indefinite"),
    pytest.param(KernelQuantileRegression([0.2, 0.8]), NUMBERS, id="KernelQuantileRegression, two levels"),
    pytest.param(NystroemMap(n_components=60, random_state=0), NUMBERS, id="NystroemMap"),
]
EVERY = [*ALL, *OTHERS, *RESTRICTED]


def results(model: Any, y: np.ndarray, rows: int) -> dict[str, bytes]:
    """The fitted arrays and the answers in new rows."""
    targets = LABELS if y is CLASSES else NUMBERS
    fitted = clone(model)
    if "random_state" in fitted.get_params():
        fitted.set_params(random_state=0)
    fitted.fit(X[:rows], targets[:rows])
    results = {k: v.tobytes() for k, v in vars(fitted).items() if k.endswith("_") and isinstance(v, np.ndarray)}
    for name in ("decision_function", "predict_proba", "predict", "transform", "loo_predictions_"):
        answer = getattr(fitted, name, None)
        if answer is not None:
            results[name] = np.asarray(answer(NEW) if callable(answer) else answer).tobytes()
    return results


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("rows", [FEW, pytest.param(550, marks=pytest.mark.slow)])
@pytest.mark.parametrize(("model", "y"), EVERY)
def test_any_number_of_threads(model: Any, y: np.ndarray, rows: int) -> None:
    with mercer.config(n_jobs=1), threadpool_limits(1, user_api="blas"):
        alone = results(model, y, rows)
    with mercer.config(n_jobs=2), threadpool_limits(2, user_api="blas"):
        shared = results(model, y, rows)
    assert [name for name in alone if alone[name] != shared[name]] == [] and alone.keys() == shared.keys()


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_other_calls_at_the_same_time() -> None:
    cases = [p.values for p in EVERY]
    rows = 150
    alone = [results(*case, rows) for case in cases]
    order = np.random.default_rng(0).permutation(len(cases))
    # Whoever set a limit first must not keep Mercer's callers in other threads from setting theirs.
    with threadpool_limits(2, user_api="blas"), ThreadPoolExecutor(8) as callers:
        answers = list(callers.map(lambda i: results(*cases[i], rows), order))
    differing = {
        (type(cases[i][0]).__name__, name)
        for i, other in zip(order, answers, strict=True)
        for name in alone[i]
        if alone[i][name] != other[name]
    }
    assert not differing
