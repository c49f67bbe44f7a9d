"""Learners that take steps, with user-defined losses and others that have no compiled code."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

from mercer import KernelMachine, KernelSGDClassifier, OnlineKernelLogisticRegression, OnlineKernelRegressor, losses
from mercer._errors import DataError, MercerWarning, ParameterError

RNG = np.random.default_rng(0)
X = RNG.normal(size=(90, 2))
LABELS = np.where(X[:, 0] * X[:, 1] > 0, "same", "other")
THREE = RNG.permutation(np.arange(90) % 3)
NUMBERS = np.sin(X[:, 0]) + 0.1 * RNG.normal(size=90)


class OwnLogistic:
    """The logistic loss, as a user would write it."""

    targets = "signs"
    step_bound = 0.25

    def value(self, y: np.ndarray, f: np.ndarray) -> np.ndarray:
        return np.logaddexp(0, -y * f)

    def gradient(self, y: np.ndarray, f: np.ndarray) -> np.ndarray:
        return -y / (1 + np.exp(y * f))

    def slopes(self, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return np.where(y > 0, -1.0, 0.0), np.where(y > 0, 0.0, 1.0)


class OwnSquare:
    step_bound = 1.0

    def value(self, y: np.ndarray, f: np.ndarray) -> np.ndarray:
        return 0.5 * (y - f) ** 2

    def gradient(self, y: np.ndarray, f: np.ndarray) -> np.ndarray:
        return f - y


class Quartic(OwnSquare):
    """Which does not say how long steps may be."""

    step_bound = property()

    def value(self, y: np.ndarray, f: np.ndarray) -> np.ndarray:
        return (y - f) ** 4

    def gradient(self, y: np.ndarray, f: np.ndarray) -> np.ndarray:
        return 4 * (f - y) ** 3


class Concave(OwnSquare):
    targets = "signs"

    def value(self, y: np.ndarray, f: np.ndarray) -> np.ndarray:
        return 1 - np.exp(-((y - f) ** 2))

    def gradient(self, y: np.ndarray, f: np.ndarray) -> np.ndarray:
        return 2 * (f - y) * np.exp(-((y - f) ** 2))


BUDGETS = [(None, "projection"), (15, "projection"), (15, "truncation"), (15, "smallest"), (15, "merging")]


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("parameters", [{"feature_map": "identity"}, {"gamma": 0.5}], ids=["features", "kernel"])
def test_stochastic_descent_takes_the_same_steps(parameters: dict[str, Any], sparse: bool) -> None:
    rows = sp.csr_array(X) if sparse else X
    own, builtin = (
        KernelSGDClassifier(loss, alpha=0.05, tol=1e-3, max_iter=64, random_state=0, **parameters).fit(rows, LABELS)
        for loss in (OwnLogistic(), "logistic")
    )
    assert own.t_ == builtin.t_
    np.testing.assert_allclose(own.decision_function(rows), builtin.decision_function(rows), rtol=1e-9, atol=1e-12)
    assert own.certificate_.primal == pytest.approx(builtin.certificate_.primal, rel=1e-9)
    # Its conjugate comes from a search.
    assert own.certificate_.dual == pytest.approx(builtin.certificate_.dual, rel=1e-5)


@pytest.mark.parametrize(("budget", "strategy"), BUDGETS)
@pytest.mark.parametrize("y", [LABELS, THREE], ids=["two", "three"])
def test_online_classification_takes_the_same_steps(budget: int | None, strategy: str, y: np.ndarray) -> None:
    class OwnHinge:
        targets, step_bound = "signs", 1.0

        def value(self, y: np.ndarray, f: np.ndarray) -> np.ndarray:
            return np.maximum(0, 1 - y * f)

        def gradient(self, y: np.ndarray, f: np.ndarray) -> np.ndarray:
            return np.where(y * f < 1, -y, 0.0)

    own, builtin = (
        OnlineKernelLogisticRegression(
            loss, gamma=0.5, budget=budget, budget_strategy=strategy, alpha=0.01, max_iter=2, random_state=0
        ).fit(X, y)
        for loss in (OwnHinge(), "hinge")
    )
    np.testing.assert_allclose(own.decision_function(X), builtin.decision_function(X), rtol=1e-7, atol=1e-9)
    np.testing.assert_allclose(own.progressive_loss_, builtin.progressive_loss_, rtol=1e-9)
    assert own.n_changes_ == builtin.n_changes_ and not hasattr(own, "predict_proba")


@pytest.mark.parametrize(("budget", "strategy"), BUDGETS)
def test_online_regression_takes_the_same_steps(budget: int | None, strategy: str) -> None:
    y = np.column_stack([NUMBERS, X[:, 1]])
    own, builtin = (
        OnlineKernelRegressor(loss, gamma=0.5, budget=budget, budget_strategy=strategy, random_state=0)
        .fit(X, y)
        .partial_fit(X[:7] + 0.1, y[:7])
        for loss in (OwnSquare(), "squared")
    )
    np.testing.assert_allclose(own.predict(X), builtin.predict(X), rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(own.progressive_loss_, builtin.progressive_loss_, rtol=1e-7)


def test_losses_of_the_library_without_compiled_code() -> None:
    levels = [losses.Quantile(), losses.Quantile(0.9)]
    half, high = (
        OnlineKernelRegressor(loss, gamma=0.5, power_t=0.5, max_iter=40, random_state=0).fit(X, NUMBERS).predict(X)
        for loss in ("quantile", levels[1])
    )
    for level, best, other in ((levels[0], half, high), (levels[1], high, half)):
        constant = np.full(90, np.quantile(NUMBERS, level.level))
        costs = [level.value(NUMBERS, f).sum() for f in (best, other, constant)]
        assert 2.0 * costs[0] < costs[2] and costs[0] < costs[1]
    counts = np.random.default_rng(1).poisson(np.exp(1 + np.sin(X[:, 0])))
    model = OnlineKernelRegressor("poisson", gamma=0.5, eta0=0.05, max_iter=20, random_state=0).fit(X, counts)
    assert (model.predict(X) > 0).all() and model.score(X, np.exp(1 + np.sin(X[:, 0]))) > 0.5
    with pytest.warns(MercerWarning, match="the mean poisson loss on the training rows is .* that of the constant"):
        OnlineKernelRegressor("poisson", gamma=0.5, eta0=1e-6, max_iter=1, random_state=0).fit(X, counts)
    with pytest.raises(DataError, match="targets of 0 or more"):
        model.fit(X, counts - 5)


def test_modified_huber_minimised_by_newton_and_by_steps() -> None:
    exact = KernelMachine("modified_huber", alpha=0.05 * 90, gamma=0.5).fit(X, LABELS)
    steps = KernelSGDClassifier("modified_huber", alpha=0.05, gamma=0.5, tol=1e-4, random_state=0).fit(X, LABELS)
    # One weighs the penalty against the sum of the losses, the other against their mean.
    assert steps.certificate_.dual <= exact.certificate_.primal / 90 * (1 + 1e-9) <= steps.certificate_.primal + 1e-9
    assert np.mean(exact.predict(X) == steps.predict(X)) > 0.95


def test_both_names_of_a_loss() -> None:
    for machine in ("logistic", "log_loss"):
        assert KernelMachine(machine, gamma=0.5).fit(X, LABELS).predict_proba(X).shape == (90, 2)
        assert OnlineKernelLogisticRegression(machine, random_state=0).fit(X, THREE).predict_proba(X).shape == (90, 3)


@pytest.mark.parametrize(
    ("model", "words"),
    [
        (KernelSGDClassifier(OwnSquare()), "'OwnSquare' is for numbers, but the targets here are labels"),
        (OnlineKernelRegressor(OwnLogistic()), "'OwnLogistic' is for labels, but the targets here are numbers"),
        (OnlineKernelLogisticRegression("squared"), "there is no loss 'squared' here; the losses are hinge, squared_h"),
        (KernelSGDClassifier(Concave()), "Concave is not convex"),
        (OnlineKernelLogisticRegression(Concave()), "Concave is not convex"),
        (KernelSGDClassifier(losses.Hinge), "loss is the class Hinge; pass an object of it"),
        (
            OnlineKernelRegressor(Quartic()),
            "'Quartic' has no bound on its second derivative.*pass eta0, or give a user-defined loss",
        ),
        (OnlineKernelRegressor("poisson"), "'poisson' has no bound on its second derivative.*pass eta0"),
    ],
)
def test_what_cannot_be_learnt_with_is_refused_with_the_reason(model: Any, words: str) -> None:
    y = np.abs(NUMBERS) if isinstance(model, OnlineKernelRegressor) else LABELS
    with pytest.raises(ParameterError, match=words):
        model.fit(X, y)


def test_a_loss_that_sets_no_bound_on_steps_needs_those_of_pegasos() -> None:
    class Free(OwnLogistic):
        step_bound = property()

    with pytest.raises(ParameterError, match=r"step_bound, a bound on its second derivative, or pass learning_rate"):
        KernelSGDClassifier(Free()).fit(X, LABELS)
    assert KernelSGDClassifier(Free(), learning_rate="pegasos", alpha=0.1, tol=0.1).fit(X, LABELS).t_ > 0
