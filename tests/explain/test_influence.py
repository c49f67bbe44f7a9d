"""The influence of a row against fits without it."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError

from mercer import SVC, GaussianProcessRegressor, KernelRidge
from mercer._errors import MemoryBudgetError, ParameterError
from mercer.engine.settings import config
from mercer.explain import influence
from mercer.kernels import RBF, Spectrum, White

RNG = np.random.default_rng(0)
X, NEW = RNG.normal(size=(10, 2)), RNG.normal(size=(3, 2))
y = RNG.normal(size=10) + 3.0
Y = np.column_stack([y, y**2])


@pytest.fixture(autouse=True)
def _warnings_of_poor_fits() -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def refits(make: Callable[[], Any], targets: Any, new: Any = NEW, weight: Any = None) -> np.ndarray:
    """The changes of the predictions, (m, n) or (m, n, targets)."""
    options = {} if weight is None else {"sample_weight": weight}
    base = make().fit(X, targets, **options).predict(new)
    changes = []
    for i in range(len(X)):
        kept = np.arange(len(X)) != i
        others = {} if weight is None else {"sample_weight": weight[kept]}
        changes.append(make().fit(X[kept], targets[kept], **others).predict(new) - base)
    return np.stack(changes, axis=1)


RIDGES = [KernelRidge(0.3, kernel=RBF(1.0)), KernelRidge(2.0, kernel="linear"), KernelRidge(1e-3, kernel=RBF(0.7))]
MEANS: list[dict[str, Any]] = [
    {},
    {"normalize_y": True},
    {"mean": "constant"},
    {"mean": "linear"},
    {"mean": "constant", "normalize_y": True},
]
PROCESSES = [
    GaussianProcessRegressor(1.0 * RBF(1.0) + White(0.1), alpha=0.05, optimizer=None, **options) for options in MEANS
]


@pytest.mark.parametrize("model", [*RIDGES, *PROCESSES], ids=repr)
@pytest.mark.parametrize("targets", [y, Y], ids=["one", "two"])
def test_it_is_that_of_refits(model: Any, targets: Any) -> None:
    def make() -> Any:
        return type(model)(**model.get_params(deep=False))

    found = influence(make().fit(X, targets), NEW)
    expected = refits(make, targets)
    assert found.shape == expected.shape
    np.testing.assert_allclose(found, expected, atol=1e-9 * np.abs(expected).max())


def test_a_noise_and_variances_of_rows() -> None:
    def make() -> GaussianProcessRegressor:
        return GaussianProcessRegressor(RBF(1.0), alpha=0.02, noise=0.1, optimizer=None)

    np.testing.assert_allclose(influence(make().fit(X, y), NEW), refits(make, y), atol=1e-10)


def test_penalties_of_targets() -> None:
    def make() -> KernelRidge:
        return KernelRidge([0.3, 2.0], kernel=RBF(1.0))

    np.testing.assert_allclose(influence(make().fit(X, Y), NEW), refits(make, Y), atol=1e-10)


def test_by_default_the_rows_are_those_of_the_fit() -> None:
    model = KernelRidge(0.3, kernel=RBF(1.0)).fit(X, y)
    changes = influence(model)
    np.testing.assert_allclose(np.diag(changes), model.loo_predictions_ - model.predict(X), atol=1e-11)
    np.testing.assert_array_equal(changes, influence(model, X))


def test_weights_below_one_leave_out_a_row_as_a_whole() -> None:
    weight = RNG.uniform(0.1, 1.0, len(X))
    found = influence(KernelRidge(0.3, kernel=RBF(1.0)).fit(X, y, sample_weight=weight), NEW)
    expected = refits(lambda: KernelRidge(0.3, kernel=RBF(1.0)), y, weight=weight)
    np.testing.assert_allclose(found, expected, atol=1e-10)


def test_a_weight_of_three_is_three_rows_of_which_one_is_left_out() -> None:
    weight = np.ones(len(X))
    weight[4], weight[7] = 3.0, 0.0
    model = KernelRidge(0.3, kernel=RBF(1.0)).fit(X, y, sample_weight=weight)
    found = influence(model, NEW)
    less = weight.copy()
    less[4] = 2.0
    refit = KernelRidge(0.3, kernel=RBF(1.0)).fit(X, y, sample_weight=less)
    np.testing.assert_allclose(found[:, 4], refit.predict(NEW) - model.predict(NEW), atol=1e-11)
    assert not found[:, 7].any()


def test_rows_that_are_strings() -> None:
    texts, targets = ["abab", "bcbc", "abcd", "dcba"], np.array([1.0, 2.0, 0.0, -1.0])
    model = KernelRidge(1.0, kernel=Spectrum(2)).fit(texts, targets)
    refit = KernelRidge(1.0, kernel=Spectrum(2)).fit(texts[1:], targets[1:])
    change = influence(model, ["abba"])[0, 0]
    assert change == pytest.approx(refit.predict(["abba"])[0] - model.predict(["abba"])[0], abs=1e-12)


def test_a_precomputed_matrix() -> None:
    K, new = X @ X.T + 1.0, NEW @ X.T + 1.0
    model = KernelRidge(0.5, kernel="precomputed").fit(K, y)
    refit = KernelRidge(0.5, kernel="precomputed").fit(K[1:, 1:], y[1:])
    change = influence(model, new)[:, 0]
    np.testing.assert_allclose(change, refit.predict(new[:, 1:]) - model.predict(new), atol=1e-10)
    with pytest.raises(ParameterError, match="pass X"):
        influence(model)


def test_one_row_that_alone_is_the_fit() -> None:
    model = GaussianProcessRegressor(RBF(1.0), alpha=0.5, optimizer=None, normalize_y=True).fit(X[:1], y[:1])
    assert influence(model, NEW).shape == (3, 1)


def test_what_has_no_formula() -> None:
    with pytest.raises(ParameterError, match="leave_one_out"):
        influence(SVC().fit(X, y > 3.0), NEW)
    with pytest.raises(NotFittedError):
        influence(KernelRidge(), NEW)
    landmarks = KernelRidge(approximation="nystroem", n_landmarks=5, kernel="rbf").fit(X, y)
    with pytest.raises(ParameterError, match="landmarks"):
        influence(landmarks, NEW)
    with pytest.raises(ValueError, match="features"):
        influence(KernelRidge().fit(X, y), NEW[:, :1])


def test_the_memory_budget_is_kept() -> None:
    model = KernelRidge(0.3, kernel=RBF(1.0)).fit(X, y)
    new = np.zeros((60_000, 2))
    with config(memory="8MiB"), pytest.raises(MemoryBudgetError, match="influence"):
        influence(model, new)
