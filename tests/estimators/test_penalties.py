"""What alpha and C weigh: learners give the same function where docs/notation.md says so."""

from __future__ import annotations

import numpy as np
import pytest

from mercer import (
    SVC,
    SVR,
    BayesianLinearRegression,
    GaussianProcessRegressor,
    KernelLogisticRegression,
    KernelMachine,
    KernelQuantileRegression,
    KernelRidge,
    KernelSGDClassifier,
    OnlineKernelRegressor,
    losses,
)
from mercer.kernels import RBF

RNG = np.random.default_rng(2)
X = RNG.normal(size=(60, 2))
Y = np.sin(2 * X[:, 0]) + 0.2 * RNG.normal(size=60)
LABELS = np.where(X[:, 0] * X[:, 1] > 0.1, 1, -1)
NEW = RNG.normal(size=(20, 2))
K = RBF(1.0)
C, ALPHA, N = 2.0, 0.3, len(X)
TIGHT = {"tol": 1e-9}

PAIRS = {
    "SVC": (SVC(C=C, kernel=K, tol=1e-8), KernelMachine("hinge", alpha=1 / C, kernel=K, fit_intercept=True, **TIGHT)),
    "SVR": (
        SVR(C=C, kernel=K, epsilon=0.1, tol=1e-8),
        KernelMachine(losses.EpsilonInsensitive(0.1), alpha=1 / C, kernel=K, fit_intercept=True, **TIGHT),
    ),
    "logistic": (
        KernelLogisticRegression(C=C, kernel=K, tol=1e-9),
        KernelMachine("logistic", alpha=1 / C, kernel=K, fit_intercept=True, **TIGHT),
    ),
    "quantile": (
        KernelQuantileRegression(0.3, C=C, kernel=K, tol=1e-9),
        KernelMachine(losses.Quantile(0.3), alpha=1 / C, kernel=K, fit_intercept=True, **TIGHT),
    ),
    "ridge": (KernelRidge(ALPHA, kernel=K), KernelMachine("squared", alpha=ALPHA, kernel=K, **TIGHT)),
    "stochastic descent": (
        KernelSGDClassifier(kernel=K, alpha=1 / (C * N), tol=1e-3, max_iter=20_000, random_state=0),
        SVC(C=C, kernel=K, fit_intercept=False, tol=1e-8),
    ),
    "online": (
        OnlineKernelRegressor(
            kernel=K,
            alpha=ALPHA / N,
            fit_intercept=False,
            budget=None,
            max_iter=1000,
            learning_rate="constant",
            eta0=0.005,
            random_state=0,
        ),
        KernelRidge(ALPHA, kernel=K),
    ),
    "Gaussian process": (GaussianProcessRegressor(K, alpha=ALPHA, optimizer=None), KernelRidge(ALPHA, kernel=K)),
    "Bayesian": (BayesianLinearRegression(0.6, 2.0, fit_intercept=False), KernelRidge(0.3, kernel="linear")),
}
# Of the function's size; stochastic steps come near, and those of one size stay as far away as they are long.
NEAR = {"stochastic descent": 0.02, "online": 0.02}


@pytest.mark.parametrize("name", PAIRS)
def test_a_conversion_gives_the_same_function(name):
    values = []
    for model in PAIRS[name]:
        classifies = hasattr(model, "decision_function") or getattr(model, "loss", "") in ("hinge", "logistic")
        model.fit(X, LABELS if classifies else Y)
        values.append(np.ravel(model.decision_function(NEW) if classifies else model.predict(NEW)))
    assert np.abs(values[0] - values[1]).max() <= NEAR.get(name, 1e-4) * np.abs(values[1]).max()
