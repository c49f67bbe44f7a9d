"""Every estimator that learns from rows, with targets for it, and what shared tests compare of it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.base import clone

import mercer
from mercer import (
    SVC,
    SVR,
    GaussianProcessClassifier,
    GaussianProcessOrdinalRegression,
    GaussianProcessRegressor,
    KernelKMeans,
    KernelLocalOutlierFactor,
    KernelLogisticRegression,
    KernelNeighborsClassifier,
    KernelNeighborsRegressor,
    KernelOrdinalRegression,
    KernelPCA,
    KernelPerceptron,
    KernelRidge,
    KernelSGDClassifier,
    NuSVC,
    NuSVR,
    OneClassSVM,
    kernels,
    losses,
)

X = np.random.default_rng(0).normal(size=(90, 3))
CLASSES = np.where(X[:, 0] * X[:, 1] > 0, "same", "other")
NUMBERS = np.sin(X[:, 0])
SUM = kernels.RBF(1.0) + kernels.Linear()
SUPERVISED = [
    pytest.param(SVC(), CLASSES, id="SVC"),
    pytest.param(NuSVC(nu=0.3, gamma=0.1), CLASSES, id="NuSVC"),
    pytest.param(KernelLogisticRegression(), CLASSES, id="KernelLogisticRegression"),
    pytest.param(KernelOrdinalRegression(), CLASSES, id="KernelOrdinalRegression"),
    pytest.param(GaussianProcessClassifier(), CLASSES, id="GaussianProcessClassifier"),
    # Without its search, whose gradient needs LAPACK's inverse: its last bits differ with the number of threads.
    # What holds with a search is in the file of its own tests.
    pytest.param(GaussianProcessOrdinalRegression(optimizer=None), CLASSES, id="GaussianProcessOrdinalRegression"),
    pytest.param(KernelRidge(kernel="rbf"), NUMBERS, id="KernelRidge"),
    pytest.param(mercer.KernelLMS(tol=0.02), NUMBERS, id="KernelLMS"),
    pytest.param(KernelRidge("loo", kernel="rbf"), NUMBERS, id="KernelRidge, leave-one-out"),
    pytest.param(mercer.MultipleKernelRidge(n_iter=20), NUMBERS, id="MultipleKernelRidge"),
    pytest.param(
        mercer.MultipleKernelRidge(search="random", n_iter=3, random_state=0), NUMBERS, id="MultipleKernelRidge, random"
    ),
    pytest.param(KernelRidge("gcv", kernel="rbf"), NUMBERS, id="KernelRidge, gcv"),
    pytest.param(KernelRidge("evidence", kernel="rbf"), NUMBERS, id="KernelRidge, evidence"),
    pytest.param(
        KernelSGDClassifier(alpha=0.01, fit_intercept=True, random_state=0), CLASSES, id="KernelSGDClassifier"
    ),
    pytest.param(KernelPerceptron(random_state=0), CLASSES, id="KernelPerceptron"),
    pytest.param(mercer.OnlineKernelLogisticRegression(random_state=0), CLASSES, id="OnlineKernelLogisticRegression"),
    pytest.param(
        mercer.OnlineKernelLogisticRegression("hinge", alpha=1e-3, budget_strategy="truncation", random_state=0),
        CLASSES,
        id="OnlineKernelLogisticRegression, hinge",
    ),
    pytest.param(mercer.OnlineKernelRegressor(random_state=0), NUMBERS, id="OnlineKernelRegressor"),
    pytest.param(GaussianProcessRegressor(alpha=0.1), NUMBERS, id="GaussianProcessRegressor"),
    pytest.param(SVR(), NUMBERS, id="SVR"),
    pytest.param(NuSVR(), NUMBERS, id="NuSVR"),
    pytest.param(mercer.MultipleKernelSVC(kernel=SUM, tol=1e-7), CLASSES, id="MultipleKernelSVC"),
    pytest.param(mercer.MultipleKernelSVR(kernel=SUM, tol=1e-7), NUMBERS, id="MultipleKernelSVR"),
    pytest.param(mercer.KernelQuantileRegression(0.4), NUMBERS, id="KernelQuantileRegression"),
    pytest.param(mercer.KernelMachine(alpha=0.5), NUMBERS, id="KernelMachine, squared"),
    pytest.param(mercer.KernelMachine("logistic", fit_intercept=True), CLASSES, id="KernelMachine, logistic"),
    pytest.param(mercer.KernelMachine("huber", losses.NormPower(3.0)), NUMBERS, id="KernelMachine, huber"),
]
CASES = [*SUPERVISED, pytest.param(OneClassSVM(), NUMBERS, id="OneClassSVM")]

TRANSFORMERS = [pytest.param(KernelPCA(5, kernel="rbf", random_state=0), NUMBERS, id="KernelPCA")]
CLUSTERERS = [pytest.param(KernelKMeans(3, random_state=0), NUMBERS, id="KernelKMeans")]
# They keep their rows and solve nothing, so that they have no certificate, and no work that a fit could tell of.
NEIGHBORS = [
    pytest.param(KernelNeighborsClassifier(), CLASSES, id="KernelNeighborsClassifier"),
    pytest.param(KernelNeighborsRegressor(weights="distance"), NUMBERS, id="KernelNeighborsRegressor"),
]
OUTLIERS = [pytest.param(KernelLocalOutlierFactor(), NUMBERS, id="KernelLocalOutlierFactor")]

HERE: dict[str, Any] = {"approximation": "nystroem", "n_landmarks": 20, "random_state": 0}
# Fits over landmarks, beside those of all rows.
RESTRICTED = [
    pytest.param(KernelRidge(kernel="rbf", **HERE), NUMBERS, id="KernelRidge, landmarks"),
    pytest.param(KernelLogisticRegression(**HERE), CLASSES, id="KernelLogisticRegression, landmarks"),
    pytest.param(SVC(**HERE), CLASSES, id="SVC, landmarks"),
    pytest.param(SVR(**HERE), NUMBERS, id="SVR, landmarks"),
    pytest.param(mercer.KernelMachine("logistic", fit_intercept=True, **HERE), CLASSES, id="KernelMachine, landmarks"),
    pytest.param(mercer.KernelQuantileRegression(0.4, **HERE), NUMBERS, id="KernelQuantileRegression, landmarks"),
    pytest.param(KernelPCA(5, kernel="rbf", **HERE), NUMBERS, id="KernelPCA, landmarks"),
]

ALL = [*CASES, *TRANSFORMERS, *CLUSTERERS, *NEIGHBORS, *OUTLIERS]
# The first case of each class.
ONE_EACH = list({type(case.values[0]): case for case in reversed(ALL)}.values())

every_learner = pytest.mark.parametrize(("model", "y"), ALL)
every_worker = pytest.mark.parametrize(("model", "y"), [*CASES, *TRANSFORMERS, *CLUSTERERS])
every_estimator = pytest.mark.parametrize(("model", "y"), [*CASES, *CLUSTERERS, *NEIGHBORS, *OUTLIERS])
every_solver = pytest.mark.parametrize(("model", "y"), CASES)
supervised = pytest.mark.parametrize(("model", "y"), [*SUPERVISED, *NEIGHBORS])


def bits(model: Any, rows: Any = X) -> tuple[np.ndarray, np.ndarray]:
    names = ("decision_function", "predict_proba", "predict")
    if isinstance(model, KernelPCA):
        return model.eigenvectors_, model.transform(rows)
    if isinstance(model, KernelKMeans):
        return model.labels_, model.transform(rows)
    if isinstance(model, KernelNeighborsClassifier | KernelNeighborsRegressor | KernelLocalOutlierFactor):
        weights = model.kneighbors(rows, return_distance=False)
    else:
        weights = model.alpha_ if isinstance(model, GaussianProcessRegressor) else model.dual_coef_
    return weights, next(getattr(model, name) for name in names if hasattr(model, name))(rows)


def assert_same_bits(model: Any, other: Any) -> None:
    for a, b in zip(bits(model), bits(other), strict=True):
        np.testing.assert_array_equal(a, b)


def refitted(model: Any, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    return bits(clone(model).fit(X, y))


def many_rows(model: Any) -> np.ndarray:
    """Enough rows for several tiles; each six times, but for the estimators that merge equal rows."""
    merging = isinstance(
        model,
        KernelSGDClassifier
        | KernelOrdinalRegression
        | GaussianProcessOrdinalRegression
        | KernelKMeans
        | SVC
        | NuSVC
        | SVR
        | NuSVR
        | OneClassSVM,
    )
    jitter = np.linspace(0, 1e-3, 540)[:, None] if merging else 0.0
    return np.tile(X, (6, 1)) + jitter
