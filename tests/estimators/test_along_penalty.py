"""Fits along a penalty, each from the answer for its neighbour."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.base import clone

from mercer import KernelLogisticRegression, KernelMachine, KernelOrdinalRegression, KernelQuantileRegression, svm_path
from mercer.kernels import RBF
from mercer.selection.path import FitsAlong
from mercer.solvers.solution import Status

RNG = np.random.default_rng(0)
X = RNG.standard_normal((150, 3))
Y = np.sin(2.0 * X[:, 0]) + X[:, 1] + 0.3 * RNG.standard_normal(150)
SIGNS = (Y > 0).astype(int)
ORDERED = np.digitize(Y, [-1.0, 0.0, 1.0])
WEIGHT = RNG.integers(0, 3, 150).astype(float)

CASES: list[tuple[Any, str, Any]] = [
    (KernelLogisticRegression(gamma=0.2), "C", SIGNS),
    (KernelLogisticRegression(gamma=0.2, fit_intercept=False), "C", ORDERED),
    (KernelOrdinalRegression(gamma=0.2), "C", ORDERED),
    (KernelOrdinalRegression(gamma=0.2, slope="evidence"), "C", ORDERED),
    (KernelMachine("huber", gamma=0.2), "alpha", Y),
    (KernelMachine("logistic", gamma=0.2, fit_intercept=True), "alpha", ORDERED),
    (KernelMachine("squared_hinge", solver="multipliers", gamma=0.2), "alpha", SIGNS),
    (KernelMachine("epsilon_insensitive", gamma=0.2, fit_intercept=True), "alpha", Y),
    (KernelMachine("squared", "norm", gamma=0.2), "alpha", Y),
    (KernelQuantileRegression([0.3, 0.7], kernel=RBF(1.5)), "C", Y),
]


def _values(model: Any) -> np.ndarray:
    name = next(name for name in ("decision_function", "latent", "predict") if hasattr(model, name))
    return np.asarray(getattr(model, name)(X))


@pytest.mark.parametrize(
    ("learner", "parameter", "y"), CASES, ids=[f"{n}-{type(case[0]).__name__}" for n, case in enumerate(CASES)]
)
def test_a_path_has_the_solutions_of_fits_alone(learner: Any, parameter: str, y: Any) -> None:
    values = [0.1, 1.0, 10.0]
    assert isinstance(learner, FitsAlong)
    path = learner.fit_along(parameter, values, X, y, WEIGHT)
    for value, model in zip(values, path, strict=True):
        alone = clone(learner).set_params(**{parameter: value}).fit(X, y, WEIGHT)
        assert model.certificate_.status is Status.converged and model.get_params() == alone.get_params()
        assert set(vars(model)) - {"_matrices"} == set(vars(alone))
        expected = _values(alone)
        np.testing.assert_allclose(_values(model), expected, rtol=0, atol=1e-4 * np.abs(expected).max())
        assert model.certificate_.primal == pytest.approx(alone.certificate_.primal, rel=1e-6)


def test_an_indefinite_kernel_has_fits_alone() -> None:
    learner = KernelMachine("logistic", kernel="sigmoid", gamma=0.5, coef0=-1.0, allow_indefinite=True)
    path = learner.fit_along("alpha", [0.1, 1.0], X, SIGNS)
    alone = clone(learner).set_params(alpha=0.1).fit(X, SIGNS)
    np.testing.assert_array_equal(path[0].dual_coef_, alone.dual_coef_)


def test_newton_steps_are_fewer_along_the_penalty() -> None:
    learner, Cs = KernelLogisticRegression(gamma=0.2), np.geomspace(1.0, 100.0, 8).tolist()
    path = learner.fit_along("C", Cs, X, SIGNS)
    alone = [clone(learner).set_params(C=C).fit(X, SIGNS) for C in Cs]
    assert sum(int(model.n_iter_[0]) for model in path) < sum(int(model.n_iter_[0]) for model in alone)


def test_svm_path_takes_them() -> None:
    path = svm_path(X, SIGNS, [1.0, 0.1], estimator=KernelLogisticRegression(gamma=0.2))
    assert [model.C for model in path] == [1.0, 0.1] and "along C: 2 fits" in repr(path)
