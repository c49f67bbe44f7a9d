"""What a budget costs, over many data sets: no more than ``budget_error_`` says, and nothing where all rows fit."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from sklearn.base import clone

from mercer import OnlineKernelLogisticRegression, OnlineKernelRegressor
from mercer.kernels import RBF
from mercer.solvers.online.independent import independent_points

FRACTIONS = (0.5, 0.2, 0.05)


def _case(seed):
    """Rows, targets and a learner; what one seed gives may have repeated, nearly repeated or few different rows."""
    rng = np.random.default_rng(seed)
    n, d = int(rng.integers(20, 160)), int(rng.integers(1, 5))
    X = rng.normal(size=(n, d))
    form = rng.integers(4)
    if form == 1:
        X[n // 2 :] = X[: n - n // 2]
    elif form == 2:
        X[n // 2 :] = X[: n - n // 2] + 1e-5 * rng.normal(size=(n - n // 2, d))
    elif form == 3:
        X = np.round(X)
    y = np.sin(X[:, 0] * rng.choice([1.0, 3.0])) + rng.choice([0.0, 0.3]) * rng.normal(size=n)
    common = {"gamma": float(rng.choice([0.05, 0.2, 0.5, 2.0])), "random_state": int(seed), "budget": None}
    kind = rng.integers(3)
    if kind == 0 or len(np.unique(y > 0)) == 1:
        return X, y, OnlineKernelRegressor(**common)
    labels = np.digitize(y, [0.0] if kind == 1 else np.quantile(y, [0.3, 0.6]))
    if len(np.unique(labels)) == 1:
        return X, y, OnlineKernelRegressor(**common)
    return X, labels, OnlineKernelLogisticRegression(**common)


def _check_budgets(seed):
    """For steps that do not overshoot, a step brings no two functions apart; so what was dropped bounds the distance.

    With f and the offset as one vector its length is that of what was lost, and a value is its product with one of the
    length ``sqrt(k(x, x) + 1)``.
    """
    X, y, model = _case(seed)
    exact = clone(model).fit(X, y)
    values = exact._values(X)
    rounding = 1e3 * len(X) * np.finfo(np.float64).eps * (1.0 + np.abs(values).max())
    whole = clone(model).set_params(budget=len(X)).fit(X, y)
    np.testing.assert_allclose(whole._values(X), values, rtol=0, atol=rounding)
    assert (whole.budget_error_ == 0).all()
    for fraction in FRACTIONS:
        other = clone(model).set_params(budget=max(int(fraction * len(X)), 1)).fit(X, y)
        bound = np.sqrt(2.0) * other.budget_error_.sum()
        assert np.abs(other._values(X) - values).max() <= bound * (1 + 1e-3) + rounding
        inverse = other._walk["inverse"]
        if len(inverse):
            # And the inverse is still that of the support's matrix, as far as its size allows.
            K = RBF(1.0 / np.sqrt(2.0 * model.gamma))(other.support_vectors_)
            assert np.abs(inverse @ K - np.eye(len(K))).max() < 1e-2
            assert len(independent_points(K, 1e-7)[0]) == len(K)


@pytest.mark.parametrize("seed", range(12))
def test_a_budget_costs_what_it_says(seed):
    _check_budgets(seed)


@pytest.mark.slow
@pytest.mark.parametrize("first", range(25, 175, 50))
def test_a_budget_costs_what_it_says_on_more_data_sets(first):
    for seed in range(first, first + 50):
        _check_budgets(seed)


def test_smaller_budgets_lose_gradually():
    scores = []
    for seed in range(5):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(300, 3))
        y = np.sin(X[:, 0])
        model = OnlineKernelRegressor(gamma=0.5, random_state=0)
        scores.append([clone(model).set_params(budget=b).fit(X, y).score(X, y) for b in (300, 299, 200, 100, 50, 20)])
    means = np.mean(scores, axis=0)
    assert (np.diff(means) <= 1e-3).all()
    # Half of the rows span nearly all that the kernel sees of such data.
    assert np.ptp(np.array(scores)[:, :4], axis=1).max() < 0.01 and means[-1] > 0.8


def test_the_default_budget_on_a_noiseless_sine():
    """With dependent support points in its inverse, a projection made steps of any length: R^2 of -1e23, no warning."""
    X = np.random.default_rng(15).normal(size=(469, 3))
    y = np.sin(X[:, 0])
    model = OnlineKernelRegressor(gamma=0.5, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for budget in (500, 468, 300, 100):
            assert clone(model).set_params(budget=budget).fit(X, y).score(X, y) > 0.99
