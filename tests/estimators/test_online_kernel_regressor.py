"""Online regression against the same steps in an explicit space, and what is its own beside the classifier."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone

from mercer import KernelLMS, OnlineKernelRegressor, losses
from mercer._errors import DataError, NumericalError, ParameterError
from mercer.kernels import RBF
from mercer.maps import PolynomialMap

RNG = np.random.default_rng(12)
X = RNG.normal(size=(120, 3))
Y = X[:, 0] * X[:, 1] + np.sin(X[:, 2]) + 0.1 * RNG.normal(size=120)
TWO = np.column_stack([Y, X[:, 0] ** 2 - 1])
NEW = RNG.normal(size=(30, 3))
RATES = RNG.uniform(0.0, 0.05, size=120)
MAP = PolynomialMap(degree=2).fit(X)
LOSSES = {
    "squared_error": lambda e: losses.Squared(),
    "epsilon_insensitive": losses.EpsilonInsensitive,
    "huber": losses.Huber,
}


@pytest.mark.parametrize("y", [Y, TWO], ids=["one target", "two"])
@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize(("alpha", "bias"), [(0.0, True), (0.4, False)])
def test_update_by_update_the_steps_in_the_space_of_the_map(y, loss, alpha, bias):
    features, new, targets = MAP.transform(X), MAP.transform(NEW), y.reshape(len(y), -1)
    w, b, cost = np.zeros((targets.shape[1], features.shape[1])), np.zeros(targets.shape[1]), LOSSES[loss](0.5)
    model = OnlineKernelRegressor(loss, epsilon=0.5, kernel=MAP.kernel, alpha=alpha, fit_intercept=bias, budget=None)
    at = 0
    for size in (1, 1, 4, 40, 70):
        rows, predictions = slice(at, at + size), []
        for i in range(at, at + size):
            values = w @ features[i] + b
            predictions.append(cost.value(targets[i], values).sum())
            slope = cost.gradient(targets[i], values)
            w = (1 - RATES[i] * alpha) * w - RATES[i] * np.outer(slope, features[i])
            b = b - RATES[i] * slope * bias
        model.partial_fit(X[rows], y[rows], step_sizes=RATES[rows])
        expected = new @ w.T + b
        np.testing.assert_allclose(
            model.predict(NEW), expected[:, 0] if y.ndim == 1 else expected, rtol=1e-9, atol=1e-9
        )
        np.testing.assert_allclose(model.progressive_loss_, [np.mean(predictions)], rtol=1e-9)
        at += size


def test_with_small_steps_it_comes_to_the_same_as_batches():
    """A pass of steps of size e is a batch step of size e, up to terms of e squared."""
    online = OnlineKernelRegressor(
        kernel=RBF(1.0), learning_rate="constant", eta0=1e-4, fit_intercept=False, budget=None, max_iter=50
    ).fit(X, Y)
    batch = KernelLMS(RBF(1.0), learning_rate=1e-4, max_iter=50, tol=0).fit(X, Y)
    size = np.abs(batch.predict(NEW)).max()
    largest = batch.largest_eigenvalue_ * 1e-4
    assert np.abs(online.predict(NEW) - batch.predict(NEW)).max() < largest * size


@pytest.mark.parametrize("strategy", ["truncation", "smallest", "projection", "merging"])
@pytest.mark.parametrize("form", [np.asarray, sp.csr_matrix])
def test_budgets(strategy, form):
    model = OnlineKernelRegressor(
        "huber", epsilon=1.0, kernel=RBF(1.0), alpha=0.01, budget=40, budget_strategy=strategy, random_state=0
    )
    if strategy == "merging" and form is sp.csr_matrix:
        with pytest.raises(DataError, match="not sparse"):
            model.fit(form(X), TWO)
        return
    model.fit(form(X), TWO)
    assert model.dual_coef_.shape == (2, 40) and model.budget_error_.shape == (2,) and (model.budget_error_ > 0).all()
    assert np.isfinite(model.truncation_bound_) == (strategy == "truncation")
    assert (model.budget_error_ <= model.truncation_bound_).all()
    if strategy in ("projection", "merging"):
        assert model.score(form(X), TWO) > 0.6


def test_a_budget_that_holds_everything_costs_nothing():
    model = OnlineKernelRegressor(kernel=RBF(1.0), budget=None, random_state=0).fit(X, Y)
    for strategy in ("truncation", "projection", "merging"):
        with_budget = clone(model).set_params(budget=120, budget_strategy=strategy).fit(X, Y)
        np.testing.assert_allclose(with_budget.predict(NEW), model.predict(NEW), rtol=1e-7, atol=1e-8)
        assert with_budget.budget_error_[0] < 1e-4


def test_streams():
    model = OnlineKernelRegressor(kernel=RBF(1.0), shuffle=False, max_iter=1, budget=25)
    whole = clone(model).fit(X, Y)
    for rows in np.array_split(np.arange(120), 7):
        model.partial_fit(X[rows], Y[rows])
    np.testing.assert_allclose(model.predict(NEW), whole.predict(NEW), rtol=1e-6, atol=1e-7)
    with pytest.raises(DataError, match=r"y has 2 target\(s\) a row, but had 1"):
        model.partial_fit(X, TWO)
    with pytest.raises(DataError, match="X has 2 features"):
        model.partial_fit(X[:, :2], Y)
    with pytest.raises(DataError, match="inconsistent"):
        model.partial_fit(X, Y[:4])


@pytest.mark.parametrize(
    ("parameters", "words"),
    [
        ({"loss": "square"}, "there is no loss 'square'; the losses are squared, epsilon_insensitive, huber"),
        ({"loss": "huber", "epsilon": 0}, "epsilon must be a finite number above 0 for the loss 'huber'"),
        ({"loss": "epsilon_insensitive", "epsilon": -1}, "epsilon must be a finite number above 0 for"),
        ({"budget": 1.5}, "budget must be a whole number"),
    ],
)
def test_parameters_that_make_no_sense(parameters, words):
    with pytest.raises(ParameterError, match=words):
        OnlineKernelRegressor(**parameters).fit(X, Y)


def test_steps_that_overshoot():
    with pytest.raises(NumericalError, match=r"steps of up to 5 are too long.*less than 2 / k\(x, x\)"):
        OnlineKernelRegressor(kernel=RBF(1.0), learning_rate="constant", eta0=5.0, max_iter=500).fit(X, Y)
