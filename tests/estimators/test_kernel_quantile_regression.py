"""Quantile regression against a linear programme, and quantiles that do not cross."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.linear_model import QuantileRegressor

import mercer
from mercer import KernelQuantileRegression
from mercer._errors import ParameterError
from mercer.solvers.risk.ordered_rows import pinball

RNG = np.random.default_rng(0)
X = RNG.uniform(0, 6, (80, 1))
Y = np.sin(X[:, 0]) + (0.1 + 0.1 * X[:, 0]) * RNG.standard_normal(80)
NEW = np.linspace(-1, 7, 200)[:, None]
LEVELS = [0.1, 0.25, 0.5, 0.75, 0.9]


@pytest.mark.parametrize("level", [0.2, 0.5, 0.85])
def test_at_a_small_penalty_it_is_the_linear_programme(level: float) -> None:
    rows, C = RNG.normal(size=(60, 2)), 1e5
    y = rows @ [1.0, -0.5] + RNG.standard_t(3, 60)
    reference = QuantileRegressor(quantile=level, alpha=0.0, solver="highs").fit(rows, y)
    model = KernelQuantileRegression(level, kernel="linear", C=C).fit(rows, y)

    def losses(predicted: np.ndarray) -> float:
        return float(pinball(y, np.array([level]), predicted[:, None]).sum())

    best = losses(reference.predict(rows))
    # The penalty is at most that of the programme's slopes, and the gap at most 1e-6 of all.
    slack = 0.5 * float(reference.coef_ @ reference.coef_) / C + 1e-6 * best
    assert best * (1 - 1e-9) <= losses(model.predict(rows)) <= best + slack + 1e-6 * best


def test_shares_below_are_the_levels() -> None:
    for level in (0.1, 0.5, 0.9):
        below = Y - KernelQuantileRegression(level, C=3.0).fit(X, Y).predict(X)
        # With an offset no more than the level are strictly below, and no fewer are below or on it.
        assert (below < -1e-7).mean() <= level <= (below < 1e-7).mean()


@pytest.mark.parametrize("C", [1.0, 100.0])
def test_quantiles_that_do_not_cross(C: float) -> None:
    separate = KernelQuantileRegression(LEVELS, C=C, gamma=5.0, non_crossing=False).fit(X, Y)
    model = KernelQuantileRegression(LEVELS, C=C, gamma=5.0).fit(X, Y)
    assert separate.crossings_ > 0 and model.crossings_ == separate.crossings_
    assert (np.diff(separate.predict(X)) < 0).any()
    # At the training rows the functions themselves are in order, but for the rounding of other products.
    functions = model.kernel_(X, model.support_vectors_) @ model.dual_coef_.T + model.intercept_
    assert np.diff(functions).min() > -1e-9
    assert (np.diff(model.predict(NEW)) >= 0).all()
    assert model.certificate_.relative_gap < 1e-6 and model.certificate_.status.name == "converged"
    # The constraint costs something, and not more than the separate fits leave to sorting.
    assert model.certificate_.primal >= separate.certificate_.dual
    one = KernelQuantileRegression(0.5, C=C, gamma=5.0).fit(X, Y)
    np.testing.assert_allclose(separate.predict(NEW)[:, 2], one.predict(NEW), atol=1e-8)


def test_where_nothing_crosses_levels_are_fitted_each_by_itself() -> None:
    model = KernelQuantileRegression([0.1, 0.9], gamma=0.1).fit(X, Y)
    assert model.crossings_ == 0
    for j, level in enumerate((0.1, 0.9)):
        alone = KernelQuantileRegression(level, gamma=0.1).fit(X, Y)
        np.testing.assert_allclose(model.predict(X)[:, j], alone.predict(X), atol=1e-9)


def test_the_order_of_the_levels_is_that_of_the_predictions() -> None:
    model = KernelQuantileRegression([0.9, 0.1, 0.5], C=100.0, gamma=5.0).fit(X, Y)
    ordered = KernelQuantileRegression([0.1, 0.5, 0.9], C=100.0, gamma=5.0).fit(X, Y)
    np.testing.assert_allclose(model.predict(NEW), ordered.predict(NEW)[:, [2, 0, 1]], atol=1e-9)


def test_sorting_never_raises_the_losses_of_a_row() -> None:
    F, y, levels = RNG.normal(size=(500, 5)), RNG.normal(size=500), np.array(LEVELS)
    before, after = (pinball(y, levels, part).sum(axis=1) for part in (F, np.sort(F, axis=1)))
    assert (after <= before + 1e-12).all()


def test_weights_are_repetition() -> None:
    times = np.random.default_rng(1).integers(0, 4, 80)
    kernel = mercer.kernels.RBF(0.5)
    for levels in (0.3, [0.25, 0.5, 0.75]):
        weighted = KernelQuantileRegression(levels, kernel=kernel, C=10.0, tol=1e-10).fit(X, Y, times)
        repeated = KernelQuantileRegression(levels, kernel=kernel, C=10.0, tol=1e-10).fit(
            np.repeat(X, times, axis=0), np.repeat(Y, times)
        )
        assert weighted.certificate_.primal == pytest.approx(repeated.certificate_.primal, rel=1e-8)


def test_score_is_the_share_of_the_loss_that_is_explained() -> None:
    model = KernelQuantileRegression([0.1, 0.5], C=10.0).fit(X, Y)
    assert 0.2 < model.score(X, Y) < 1.0
    assert np.ndim(model.predict(X)) == 2 and KernelQuantileRegression(0.5).fit(X, Y).predict(X).shape == (80,)


def test_an_indefinite_kernel_gives_stationary_points_in_order() -> None:
    kernel = mercer.kernels.Sigmoid(0.3)
    model = KernelQuantileRegression([0.2, 0.5, 0.8], kernel=kernel, C=0.1, allow_indefinite=True).fit(X, Y)
    assert not model.certificate_.convex and (np.diff(model.predict(NEW)) >= 0).all()


@pytest.mark.parametrize(
    ("parameters", "words"),
    [
        ({"quantiles": 1.0}, "quantiles must be a number between 0 and 1"),
        ({"quantiles": []}, "quantiles must be"),
        ({"quantiles": [0.5, 0.5]}, "several distinct ones"),
        ({"quantiles": "median"}, "but is 'median'"),
        ({"C": np.inf}, "C must be a finite number above 0"),
        ({"non_crossing": "yes"}, "non_crossing must be True or False"),
        ({"max_iter": 0.5}, "max_iter must be a whole number"),
    ],
)
def test_what_is_refused(parameters: dict[str, Any], words: str) -> None:
    with pytest.raises(ParameterError, match=words):
        KernelQuantileRegression(**parameters).fit(X, Y)
