"""Certificates of machines and quantiles over landmarks for the problem of all rows, beside the exact learners."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

from mercer import KernelMachine, KernelQuantileRegression, certify_landmarks
from mercer._errors import DataError, ParameterError
from mercer.kernels import RBF, Linear, Matern
from mercer.losses import EpsilonInsensitive, Huber, Quantile
from mercer.solvers.solution import Status

RNG = np.random.default_rng(0)
X = RNG.normal(size=(200, 3))
Y = np.sin(2 * X).sum(axis=1) + 0.1 * RNG.normal(size=200)
FEW = {"approximation": "nystroem", "n_landmarks": 30, "random_state": 0}
OF_SIGNS = ("hinge", "squared_hinge", "logistic", "modified_huber")


def exact(model: Any) -> Any:
    """The same learner without landmarks."""
    return type(model)(**{**model.get_params(deep=False), "tol": 1e-9, "approximation": None})


def not_violated(model: Any, rows: np.ndarray, y: np.ndarray, weight: np.ndarray | None) -> None:
    """Neither the gap nor a bound of a prediction is."""
    random = np.random.default_rng(1)
    ask = "decision_function" if hasattr(model, "decision_function") else "predict"
    model.fit(rows, y, weight)
    full = exact(model).fit(rows, y, weight)
    certificate = certify_landmarks(model, rows, y, sample_weight=weight)
    assert certificate.gap >= certificate.primal - full.certificate_.primal - 1e-7 * certificate.primal
    assert certificate.primal == pytest.approx(model.certificate_.primal, rel=1e-6)
    new = np.vstack([rows[:30], random.normal(size=(30, rows.shape[1]))])
    far = np.abs(getattr(model, ask)(new) - getattr(full, ask)(new))
    bound = certificate.prediction_bound(new)
    assert bound.shape == far.shape
    assert (far <= bound).all()


def random_machine(number: int) -> None:
    """One problem with a random loss, kernel, penalty and size."""
    random = np.random.default_rng(number)
    n = int(random.integers(6, 160))
    rows = random.normal(size=(n, int(random.integers(1, 5))))
    numbers = (np.sin(rows.sum(axis=1)) + 0.3 * random.standard_t(3, size=n)) * 10.0 ** random.uniform(-1, 1)
    weight = np.maximum(random.integers(-1, 3, n), [1.0] * 3 + [0.0] * (n - 3)) if number % 2 else None
    of_numbers = ("squared", Huber(0.3), EpsilonInsensitive(0.1), Quantile(0.8), "poisson")
    loss = (*OF_SIGNS, *of_numbers)[number % 9]
    y: np.ndarray = numbers
    if loss in OF_SIGNS:
        y = np.digitize(numbers, np.quantile(numbers, [0.5] if number % 4 else [0.3, 0.6]))
        y[:3] = [0, 1, int(number % 4 == 0) + 1]
    elif loss == "poisson":
        y = random.poisson(np.exp(np.clip(np.sin(rows.sum(axis=1)), -3, 3))).astype(float)
    model = KernelMachine(
        loss,
        alpha=10.0 ** random.uniform(-2, 1),
        kernel=[RBF(10.0 ** random.uniform(-0.5, 0.7)), Matern(1.0), Linear()][number % 3],
        fit_intercept=bool(number % 5),
        approximation="nystroem",
        n_landmarks=int(random.integers(1, 50)),
        random_state=0,
    )
    not_violated(model, rows, y, weight)


def random_quantiles(number: int) -> None:
    """The same for quantiles at one or several levels."""
    random = np.random.default_rng(number)
    n = int(random.integers(6, 160))
    rows = random.normal(size=(n, int(random.integers(1, 5))))
    y = np.sin(rows.sum(axis=1)) + 0.3 * random.standard_t(3, size=n)
    model = KernelQuantileRegression(
        [0.3, [0.7], [0.1, 0.5, 0.9]][number % 3],
        C=10.0 ** random.uniform(-1, 1),
        kernel=[RBF(10.0 ** random.uniform(-0.5, 0.7)), Matern(1.0)][number % 2],
        non_crossing=False,
        approximation="nystroem",
        n_landmarks=int(random.integers(1, 50)),
        random_state=0,
    )
    not_violated(model, rows, y, random.integers(1, 3, n).astype(float) if number % 2 else None)


@pytest.mark.parametrize("number", range(9))
def test_no_bound_is_violated(number: int) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        random_machine(number)
        if number < 4:
            random_quantiles(number)


@pytest.mark.slow
@pytest.mark.parametrize("first", range(4, 74, 10))
def test_no_bound_is_violated_in_many_problems(first: int) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for number in range(first, first + 10):
            random_machine(number)
            random_quantiles(number)


@pytest.mark.parametrize("loss", ["squared", "huber", "poisson", "epsilon_insensitive", *OF_SIGNS])
def test_the_gap_is_near_what_all_rows_gain(loss: str) -> None:
    y = Y > 0 if loss in OF_SIGNS else np.exp(Y).round() if loss == "poisson" else Y
    model = KernelMachine(loss, alpha=0.5, kernel=RBF(1.5), fit_intercept=True, **FEW).fit(X, y)
    certificate = certify_landmarks(model, X, y)
    gained = certificate.primal - exact(model).fit(X, y).certificate_.primal
    assert 0 < gained <= certificate.gap < 2.5 * gained
    assert certificate.status is Status.given and "all pairs of 200 rows" in certificate.storage


def test_a_sample_of_the_rows_covers_the_gap() -> None:
    model = KernelMachine("huber", alpha=0.5, kernel=RBF(1.5), **FEW).fit(X, Y)
    whole, held = certify_landmarks(model, X, Y).gap, 0
    for seed in range(20):
        low, high = certify_landmarks(model, X, Y, n_rows=40, confidence=0.9, random_state=seed).gap_interval
        held += low <= whole <= high
    assert held >= 17


def test_what_cannot_be_certified_is_said() -> None:
    class LogCosh:
        def value(self, y: Any, f: Any) -> Any:
            return np.logaddexp(f - y, y - f) - np.log(2)

        def gradient(self, y: Any, f: Any) -> Any:
            return np.tanh(f - y)

        def curvature(self, y: Any, f: Any) -> Any:
            return 1 - np.tanh(f - y) ** 2

    model = KernelMachine(LogCosh(), kernel=RBF(1.5), **FEW).fit(X, Y)
    with pytest.raises(ParameterError, match="LogCosh is user-defined"):
        certify_landmarks(model, X, Y)
    counts = KernelMachine("poisson", kernel=RBF(1.5), **FEW).fit(X, np.exp(Y).round())
    with pytest.raises(DataError, match="needs targets of 0 or more"):
        certify_landmarks(counts, X, Y)
    counts.dual_coef_ *= 1e6
    with pytest.raises(DataError, match="the objective of this KernelMachine at its training rows is inf"):
        certify_landmarks(counts, X, np.exp(Y).round())
    labels = KernelMachine("logistic", kernel=RBF(1.5), **FEW).fit(X, Y > 0)
    with pytest.raises(DataError, match="label 'no', which the fit did not see"):
        certify_landmarks(labels, X, np.where(Y > 0, "yes", "no"))
