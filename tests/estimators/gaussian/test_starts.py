"""Where searches for hyper-parameters start by default, and what they reach from there."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from mercer import GaussianProcessClassifier, GaussianProcessRegressor
from mercer.data.strings import Strings
from mercer.estimators.gaussian.starts import data_starts
from mercer.kernels import RBF, Constant, Kernel, Polynomial, Spectrum, White

pytestmark = pytest.mark.filterwarnings("ignore::mercer._errors.MercerWarning")

RNG = np.random.default_rng(0)
X = RNG.uniform(0, 10, (40, 1))
Y = np.sin(1.5 * X[:, 0]) + 0.2 * RNG.normal(size=40)


def named(kernel: Kernel, rows: Any, scale: float = 9.0) -> list[dict[str, float]]:
    free = [p for p in kernel.parameters if p.free]
    starts = data_starts(kernel, rows, None, scale, free, [])
    return [dict(zip([p.name for p in free], np.exp(start).tolist(), strict=True)) for start in starts]


@pytest.mark.parametrize("options", [{}, {"approximation": "nystroem", "n_landmarks": 30, "random_state": 0}])
def test_regression_in_any_unit_reaches_the_same_evidence(options: dict[str, Any]) -> None:
    kernel = 1.0 * RBF(1.0) + White(0.1)
    model = GaussianProcessRegressor(kernel, **options)
    here = model.fit(X, Y).log_marginal_likelihood_value_
    there = GaussianProcessRegressor(kernel, **options).fit(1e-3 * X, Y)
    alone = GaussianProcessRegressor(kernel, n_restarts_optimizer=0, **options).fit(1e-3 * X, Y)
    assert there.log_marginal_likelihood_value_ == pytest.approx(here, abs=0.1)
    assert alone.log_marginal_likelihood_value_ < here - 5
    assert len(alone.search_.trials) == 1


@pytest.mark.parametrize("approximation", ["laplace", "ep"])
def test_classification_in_any_unit_reaches_the_same_evidence(approximation: str) -> None:
    model = GaussianProcessClassifier(1.0 * RBF(1.0), approximation=approximation)
    here = model.fit(X, Y > 0).log_marginal_likelihood_value_
    alone = GaussianProcessClassifier(1.0 * RBF(1.0), approximation=approximation, n_restarts_optimizer=0)
    assert model.fit(1e-3 * X, Y > 0).log_marginal_likelihood_value_ == pytest.approx(here, abs=0.1)
    assert alone.fit(1e-3 * X, Y > 0).log_marginal_likelihood_value_ < here - 1


def test_two_ends_that_agree_are_enough() -> None:
    model = GaussianProcessRegressor(1.0 * RBF(1.0) + White(0.1)).fit(X, Y)
    assert np.ptp([trial.value for trial in model.search_.trials]) < 1e-2
    assert len(model.search_.trials) == 2


def test_a_number_and_a_function_mean_what_they_did() -> None:
    kernel = 1.0 * RBF(1.0) + White(0.1)
    drawn = GaussianProcessRegressor(kernel, n_restarts_optimizer=2, random_state=0).fit(X, Y)
    assert len(drawn.search_.trials) == 3

    def keep(objective: Any, start: Any, bounds: Any) -> tuple[Any, float]:
        return start, objective(start, eval_gradient=False)

    for model, y in ((GaussianProcessRegressor(kernel), Y), (GaussianProcessClassifier(kernel), Y > 0)):
        assert len(model.set_params(optimizer=keep).fit(X, y).search_.trials) == 1
        assert len(model.set_params(optimizer="fmin_l_bfgs_b").fit(X, y).search_.trials) > 1


def test_any_number_of_threads_gives_the_same() -> None:
    kernel = 1.0 * RBF(1.0) + White(0.1)
    one, more = (GaussianProcessRegressor(kernel, n_jobs=jobs).fit(1e-3 * X, Y) for jobs in (1, 2))
    assert len(one.search_.trials) > 2 and one.search_ == more.search_


def test_parameters_start_where_the_data_are() -> None:
    rows = np.stack([np.arange(12.0), np.zeros(12), 10.0 * np.arange(12.0)], axis=1)
    kernel = 2.0 * RBF([1.0, 1.0]).on([0, 2]) + 3.0 * RBF([7.0, 7.0, 7.0]) + Constant(1.0) + White(1.0)
    short, central = named(kernel, rows)
    lengths = {name: value for name, value in central.items() if "length_scale" in name}
    whole = 4.0 * np.sqrt(101.0)
    expected = [4.0 * 2**0.5, 40.0 * 2**0.5, 4.0 * 3**0.5, whole, 40.0 * 3**0.5]
    np.testing.assert_allclose(list(lengths.values()), expected)
    np.testing.assert_allclose([short[name] for name in lengths], np.array(expected) / 4)
    rest = sorted(value for name, value in central.items() if name not in lengths)
    np.testing.assert_allclose(rest, [0.9, 9.0, 9.0, 9.0])


def test_what_is_fixed_or_bounded_stays() -> None:
    kernel = (2.0 * RBF(1.0).bounded(length_scale=(0.5, 2.0))).fixed("factor") + White(0.3).fixed("variance")
    assert [list(start.values()) for start in named(kernel, 100.0 * X)] == [pytest.approx([2.0])]
    model = GaussianProcessRegressor(kernel).fit(X, Y)
    assert model.kernel_.terms[0].factor == 2.0 and model.kernel_.terms[1].variance == 0.3


def test_starts_that_are_the_same_count_once() -> None:
    assert len(named(Polynomial(2), X)) == len(named(2.0 * Spectrum(2), Strings.of(["ab", "abb"]))) == 1
    several = np.stack([Y, 0.0 * Y], axis=1)
    assert GaussianProcessRegressor().fit(X, several).search_ is not None
    assert GaussianProcessRegressor(1.0 * RBF(1.0), alpha=0.1, mean="constant").fit(X, Y + 1e3).kernel_.factor < 100
