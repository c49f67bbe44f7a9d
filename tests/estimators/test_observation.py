"""Variances of the function and of new observations, and hyper-parameters that nothing changes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from mercer import GaussianProcessClassifier, GaussianProcessOrdinalRegression, GaussianProcessRegressor, kernels
from mercer._errors import ParameterError
from mercer.kernels import RBF, Linear, Matern, Polynomial, White

RNG = np.random.default_rng(0)
X, NEW = RNG.normal(size=(30, 2)), RNG.normal(size=(50, 2))
Y = np.sin(X[:, 0]) + 0.3 * RNG.normal(size=30)
SMOOTH = 1.7 * RBF([1.0, 2.0]) + 0.1


def model(form: str, **more: Any) -> GaussianProcessRegressor:
    """Three ways to say that the noise has the variance 0.2."""
    given: dict[str, Any] = {
        "noise": {"kernel": SMOOTH, "noise": 0.2},
        "white": {"kernel": SMOOTH + White(0.2)},
        "half": {"kernel": SMOOTH + 0.5 * White(0.2), "noise": 0.1},
    }[form]
    return GaussianProcessRegressor(optimizer=None, alpha=0.05, **given, **more)


@pytest.mark.parametrize("normalize", [False, True])
def test_all_forms_of_the_noise_say_the_same(normalize: bool) -> None:
    fits = [model(form, normalize_y=normalize).fit(X, Y) for form in ("noise", "white", "half")]
    for observation in (True, False):
        for option in ("return_std", "return_cov"):
            first, *others = (fit.predict(NEW, **{option: True}, observation=observation) for fit in fits)
            for other in others:
                np.testing.assert_allclose(other[0], first[0], rtol=1e-8, atol=1e-10)
                np.testing.assert_allclose(other[1], first[1], rtol=1e-8, atol=1e-10)
        first, *others = (fit.leave_one_out(observation=observation) for fit in fits)
        for other in others:
            np.testing.assert_allclose(other.variance, first.variance, rtol=1e-7, atol=1e-9)
            np.testing.assert_allclose(other.log_density, first.log_density, rtol=1e-7)


@pytest.mark.parametrize("form", ["noise", "white", "half"])
def test_the_two_differ_by_the_noise(form: str) -> None:
    fit = model(form).fit(X, Y)
    scale = 0.2 + 0.05
    (_, whole), (_, own) = (fit.predict(NEW, return_std=True, observation=observation) for observation in (True, False))
    np.testing.assert_allclose(whole**2 - own**2, scale, rtol=1e-9)
    (_, whole), (_, own) = (fit.predict(NEW, return_cov=True, observation=observation) for observation in (True, False))
    np.testing.assert_allclose(whole - own, scale * np.eye(50), atol=1e-9)
    whole, own = fit.leave_one_out(), fit.leave_one_out(observation=False)
    np.testing.assert_allclose(whole.variance - own.variance, scale, rtol=1e-7)
    np.testing.assert_array_equal(fit.leave_one_out(observation=True).variance, whole.variance)
    # By the definition of leaving a row out.
    mask = np.arange(30) != 7
    mean, std = model(form).fit(X[mask], Y[mask]).predict(X[7:8], return_std=True, observation=False)
    assert own.mean[7] == pytest.approx(mean[0], rel=1e-8) and own.variance[7] == pytest.approx(std[0] ** 2, rel=1e-7)


def test_defaults_stay_what_they_were() -> None:
    by_noise, by_white = model("noise").fit(X, Y), model("white").fit(X, Y)
    own = by_noise.predict(NEW, return_std=True, observation=False)[1]
    np.testing.assert_allclose(by_noise.predict(NEW, return_std=True)[1], own, rtol=1e-12)
    variance = by_white.predict(NEW, return_std=True, observation=True)[1] ** 2
    np.testing.assert_allclose(by_white.predict(NEW, return_std=True)[1] ** 2, variance - 0.05, rtol=1e-9)


def test_before_a_fit_and_wrong_values() -> None:
    prior = model("half")
    np.testing.assert_allclose(prior.predict(NEW, return_std=True, observation=False)[1] ** 2, 1.8, rtol=1e-12)
    np.testing.assert_allclose(prior.predict(NEW, return_std=True, observation=True)[1] ** 2, 2.05, rtol=1e-12)
    np.testing.assert_allclose(prior.predict(NEW, return_std=True)[1] ** 2, 1.9, rtol=1e-12)
    cov = prior.predict(NEW, return_cov=True, observation=False)[1]
    np.testing.assert_allclose(cov, SMOOTH(NEW), atol=1e-12)
    for call in (lambda: prior.predict(NEW, observation="yes"), lambda: prior.fit(X, Y).leave_one_out(observation=2)):
        with pytest.raises(ParameterError, match="observation must be True"):
            call()


def test_known_variances_of_rows_and_matrices() -> None:
    each = GaussianProcessRegressor(SMOOTH, alpha=np.linspace(0.1, 1.0, 30), noise=0.2, optimizer=None).fit(X, Y)
    (_, whole), (_, own) = (
        each.predict(NEW, return_std=True, observation=observation) for observation in (True, False)
    )
    np.testing.assert_allclose(whole**2 - own**2, 0.2, rtol=1e-9)
    gap = each.leave_one_out().variance - each.leave_one_out(observation=False).variance
    np.testing.assert_allclose(gap, 0.2 + np.linspace(0.1, 1.0, 30), rtol=1e-7)
    given = GaussianProcessRegressor("precomputed", alpha=0.1, noise=0.2, optimizer=None).fit(SMOOTH(X), Y)
    gap = given.leave_one_out().variance - given.leave_one_out(observation=False).variance
    np.testing.assert_allclose(gap, 0.3, rtol=1e-7)


KERNELS = [
    RBF(3.0),
    0.7 * RBF([1.1, 3.3]) + White(0.3),
    Matern(7.7, nu=2.5).fixed("length_scale") * 1.3,
    Polynomial(3, 0.7),
    (0.3 * RBF(3.0)).fixed("factor") + kernels.Periodic(0.3, period=1.1).bounded(period=(1.0, 3.0)),
    Linear() + 0.3,
]


@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
def test_a_round_trip_through_theta_changes_nothing(kernel: kernels.Kernel) -> None:
    assert kernel.with_theta(kernel.theta) == kernel
    assert kernel.with_theta(kernel.theta).with_theta(kernel.theta) == kernel


@pytest.mark.parametrize("value", [3.0, 0.1, 0.2, 0.7, 1.1, 49.0, 1e-3])
def test_a_kernel_that_is_not_optimised_is_the_one_that_was_given(value: float) -> None:
    kernel = value * RBF([value, 3.0]) + White(value)
    assert GaussianProcessRegressor(RBF(value), optimizer=None).fit(X, Y).kernel_ == RBF(value)
    fit = GaussianProcessRegressor(kernel, optimizer=None, noise=value).fit(X, Y)
    assert fit.kernel_ == kernel and fit.noise_ == value
    labels = np.digitize(X[:, 0], [0.0])
    assert GaussianProcessClassifier(kernel, optimizer=None).fit(X, labels).kernel_ == kernel
    assert GaussianProcessOrdinalRegression(kernel, optimizer=None).fit(X, labels).kernel_ == kernel
    # What a search moves says nothing of what is fixed.
    searched = GaussianProcessRegressor(kernel.fixed("left.factor"), alpha=0.1).fit(X, Y)
    assert searched.kernel_.get_params()["left__factor"] == value
