"""Ridge regression with learned weights of kernels."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

import mercer
from mercer import KernelRidge, MultipleKernelRidge
from mercer._errors import DataError, MemoryBudgetError, ParameterError
from mercer.estimators.shared.terms import terms_of
from mercer.kernels import RBF, Kernel, Linear, Spectrum

RNG = np.random.default_rng(0)
X = RNG.normal(size=(120, 3))
Y = np.c_[np.sin(2 * X[:, 1]), np.cos(2 * X[:, 0])] + 0.1 * RNG.normal(size=(120, 2))
COLUMNS = RBF(1.0).on([0]) + RBF(1.0).on([1]) + RBF(1.0).on([2])
NEW = RNG.normal(size=(50, 3))


def weighted(model: MultipleKernelRidge, weights: np.ndarray) -> Kernel:
    """The sum with its weights as an ordinary kernel."""
    assert model.kernel_ is not None
    parts = zip(weights, model.term_scales_, terms_of(model.kernel_))
    return sum(float(w / s) * term for w, s, term in parts if w > 0)  # type: ignore[return-value]


@pytest.mark.parametrize("search", ["gradient", "random"])
def test_it_is_ridge_regression_with_the_weighted_sum(search: str) -> None:
    model = MultipleKernelRidge(COLUMNS, search=search, n_iter=10, random_state=0).fit(X, Y)
    weights = np.broadcast_to(model.weights_.reshape(3, -1), (3, 2))
    np.testing.assert_allclose(weights.sum(axis=0), 1.0)
    for t in range(2):
        ridge = KernelRidge(model.alpha_[t], kernel=weighted(model, weights[:, t])).fit(X, Y[:, t])
        np.testing.assert_allclose(model.predict(NEW)[:, t], ridge.predict(NEW), rtol=1e-7, atol=1e-9)
        error = np.mean((ridge.loo_predictions_ - Y[:, t]) ** 2)
        assert model.loo_errors_[t] == pytest.approx(error, rel=1e-7)
    assert model.certificate_.kkt_violation < 1e-10


def test_a_column_that_tells_nothing_gets_no_weight() -> None:
    model = MultipleKernelRidge(COLUMNS).fit(X, Y[:, 0])
    assert model.weights_.shape == (3,)
    assert model.weights_[1] > 0.9 > 0.05 > model.weights_[[0, 2]].max()


def test_the_gradient_is_better_than_draws() -> None:
    y = Y.sum(axis=1)
    tuned = MultipleKernelRidge(COLUMNS).fit(X, y)
    drawn = MultipleKernelRidge(COLUMNS, search="random", n_iter=30, random_state=0).fit(X, y)
    equal = MultipleKernelRidge(COLUMNS, search="random", n_iter=1).fit(X, y)
    # Penalties come from a grid.
    assert tuned.loo_errors_ <= drawn.loo_errors_ * 1.05
    assert drawn.loo_errors_ <= equal.loo_errors_


def test_each_target_has_its_own_weights_by_draws() -> None:
    model = MultipleKernelRidge(COLUMNS, search="random", n_iter=50, random_state=0).fit(X, Y)
    assert model.weights_.shape == (3, 2)
    assert model.weights_.argmax(axis=0).tolist() == [1, 0]


def test_integer_weights_are_repetitions() -> None:
    weight = RNG.integers(0, 3, 120)
    for search in ("gradient", "random"):
        model = MultipleKernelRidge(COLUMNS, search=search, n_iter=4, random_state=0)
        one = model.fit(X, Y, weight).predict(NEW)
        two = model.fit(np.repeat(X, weight, axis=0), np.repeat(Y, weight, axis=0)).predict(NEW)
        np.testing.assert_allclose(one, two, rtol=1e-3, atol=1e-4)


def test_mixed_tables() -> None:
    words = ["".join(RNG.choice(list("ab"), 8)) for _ in range(60)]
    table = pd.DataFrame({"text": words, "number": RNG.normal(size=60)})
    y = np.array([word.count("ab") for word in words], dtype=float)
    kernel = Spectrum(2).normalized().on(["text"]) + RBF(1.0).on(["number"])
    model = MultipleKernelRidge(kernel).fit(table, y)
    assert model.weights_[0] > 0.9 and model.score(table, y) > 0.9


def test_a_kernel_that_is_no_sum_is_one_term(tmp_path: Any) -> None:
    alphas = [0.01, 0.1, 1.0]
    model = MultipleKernelRidge(RBF(1.0), alphas=alphas).fit(X, Y[:, 0])
    ridge = KernelRidge("loo", kernel=RBF(1.0), alphas=alphas).fit(X, Y[:, 0])
    assert model.weights_.tolist() == [1.0] and model.alpha_[0] == ridge.alpha_
    np.testing.assert_allclose(model.predict(NEW), ridge.predict(NEW), rtol=1e-8)
    given = MultipleKernelRidge("precomputed", alphas=alphas).fit(RBF(1.0)(X), Y[:, 0])
    np.testing.assert_allclose(given.predict(RBF(1.0)(NEW, X)), ridge.predict(NEW), rtol=1e-8)
    mercer.save(given, tmp_path / "model.mercer")
    np.testing.assert_array_equal(mercer.load(tmp_path / "model.mercer").dual_coef_, given.dual_coef_)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"search": "grid"}, "search must be"),
        ({"n_iter": 0}, "n_iter must be"),
        ({"alphas": []}, "alphas"),
        ({"alphas": [-1.0]}, "alphas"),
        ({"random_state": "x"}, "random_state"),
    ],
    ids=str,
)
def test_wrong_parameters(parameters: dict[str, Any], message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        MultipleKernelRidge(COLUMNS, **parameters).fit(X, Y)


def test_hostile_inputs() -> None:
    with pytest.raises(DataError):
        MultipleKernelRidge(COLUMNS).fit(X, np.full(120, np.nan))
    with mercer.config(memory=200_000), pytest.raises(MemoryBudgetError, match="terms"):
        MultipleKernelRidge(Linear() + RBF(1.0)).fit(X, Y)
