"""Certificates of random fits beside optima that plain minimisation finds in the space of the columns."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import logsumexp

from mercer import KernelLogisticRegression, KernelMachine, KernelRidge
from mercer.losses import Huber, Poisson, SquaredHinge


def rows_of(rng: np.random.Generator) -> np.ndarray:
    """Rows of one to three columns, near 0 or far from it, of any spread."""
    n, d = int(rng.integers(6, 40)), int(rng.integers(1, 4))
    return rng.choice([0.0, 1.0, 100.0, 1e4, 1e6]) + 10.0 ** rng.uniform(-2, 3) * rng.normal(size=(n, d))


def learner_of(kind: str, rng: np.random.Generator, X: np.ndarray, options: dict[str, Any]) -> tuple[Any, ...]:
    """A learner, targets, the sum of the losses at values (n, k), the factor of half the squared norm, and k."""
    n, C = len(X), 10.0 ** rng.uniform(-2, 4)
    slope = (X - X.mean(axis=0)).sum(axis=1) / X.std()
    if kind == "logistic":
        k = int(rng.integers(2, 6))
        codes = rng.permutation(np.append(np.arange(k), rng.choice(k, n - k, p=rng.dirichlet(np.full(k, 0.6)))))
        learner, Y, signs = (
            KernelLogisticRegression(C=C, kernel="linear", **options),
            np.eye(k)[codes],
            2.0 * codes - 1.0,
        )
        if k == 2:
            return learner, codes, lambda F: C * np.logaddexp(0.0, -signs * F[:, 0]).sum(), 1.0, 1
        return learner, codes, lambda F: C * (logsumexp(F, axis=1) - (Y * F).sum(axis=1)).sum(), 1.0, k
    if kind == "ridge":
        y = slope + 0.1 * rng.normal(size=n)
        del options["fit_intercept"], options["tol"]
        return KernelRidge(1 / C, kernel="linear", **options), y, lambda F: ((y - F[:, 0]) ** 2).sum(), 2 / C, 1
    loss, y = {
        "huber": (Huber(0.5), slope + rng.standard_t(2, size=n)),
        "poisson": (Poisson(), rng.poisson(3, n).astype(float)),
        "squared hinge": (SquaredHinge(), np.where(slope + rng.normal(size=n) > 0, 1.0, -1.0)),
    }[kind]
    learner = KernelMachine(loss, alpha=1 / C, kernel="linear", **options)
    return learner, y, lambda F: loss.value(y, F[:, 0]).sum(), 1 / C, 1


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(40))
@pytest.mark.parametrize("kind", ["logistic", "ridge", "huber", "poisson", "squared hinge"])
def test_no_dual_value_is_above_an_objective(kind: str, seed: int) -> None:
    rng = np.random.default_rng([seed, 77])
    X, intercept = rows_of(rng), bool(rng.random() < 0.7) and kind != "ridge"
    d = X.shape[1]
    options: dict[str, Any] = {"tol": 10.0 ** rng.uniform(-4, -1), "fit_intercept": intercept}
    if rng.random() < 0.5:
        # As many landmarks as columns or more: the functions are the same.
        options |= {"approximation": "nystroem", "landmarks": X[: d + int(rng.integers(0, 3))]}
    learner, y, losses, factor, k = learner_of(kind, rng, X, options)
    if kind == "squared hinge" and len(np.unique(y)) < 2:
        pytest.skip("one class")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        certificate = learner.fit(X, y).certificate_
    # An offset takes up the means of the columns.
    features = X - X.mean(axis=0) if intercept else X
    unit = np.abs(features).max()

    def objective(g: np.ndarray) -> float:
        W, offsets = g[: k * d].reshape(d, k), g[k * d :] if intercept else 0.0
        with np.errstate(over="ignore"):
            value = losses(features / unit @ W + offsets) + factor / 2 * ((W / unit) ** 2).sum()
        return float(min(value, 1e300))

    best = minimize(objective, np.zeros(k * d + k * intercept), method="BFGS", options={"gtol": 1e-9}).fun
    assert certificate.dual <= best * (1 + 1e-6) + 1e-12
    assert certificate.primal >= certificate.dual - 1e-9 * abs(certificate.dual)
