"""Prior densities: against SciPy's, against finite differences, and bound to parameters by name."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from mercer import priors
from mercer._errors import ParameterError
from mercer.kernels import RBF, Linear, NegativeDistance, Polynomial
from mercer.priors import Gamma, HalfNormal, InverseGamma, LogNormal, Normal, Prior, bind_priors

PAIRS: list[tuple[Prior, Any]] = [
    (Normal(0.3, 2.0), stats.norm(0.3, 2.0)),
    (LogNormal(0.3, 0.6), stats.lognorm(0.6, scale=math.exp(0.3))),
    (Gamma(2.5, 1.7), stats.gamma(2.5, scale=1 / 1.7)),
    (InverseGamma(2.5, 1.7), stats.invgamma(2.5, scale=1.7)),
    (HalfNormal(0.8), stats.halfnorm(scale=0.8)),
]
every_prior = pytest.mark.parametrize(("prior", "density"), PAIRS, ids=lambda p: type(p).__name__)


def test_the_list_is_complete() -> None:
    assert {type(p).__name__ for p, _ in PAIRS} == set(priors.__all__) - {"Prior"}


@every_prior
@given(value=st.floats(1e-3, 1e3))
def test_densities_and_slopes(prior: Prior, density: Any, value: float) -> None:
    assert prior.log_density(value) == pytest.approx(density.logpdf(value), rel=1e-10, abs=1e-10)
    step = 1e-6 * value
    slope = (prior.log_density(value + step) - prior.log_density(value - step)) / (2 * step)
    rounding = 1e-15 * abs(prior.log_density(value)) / step
    assert prior.slope(value) == pytest.approx(slope, rel=1e-6, abs=1e-6 + 4 * rounding)


@every_prior
def test_outside_of_the_range_there_is_no_density(prior: Prior, density: Any) -> None:
    assert prior.log_density(-1.0) == pytest.approx(density.logpdf(-1.0))


@every_prior
@pytest.mark.parametrize("wrong", [math.nan, math.inf, "1", None, True])
def test_parameters_that_make_no_density(prior: Prior, density: Any, wrong: Any) -> None:
    with pytest.raises(ParameterError, match=r"must be a finite number, but is"):
        type(prior)(wrong)
    scale = {Gamma: "rate", InverseGamma: "scale", LogNormal: "log_deviation"}.get(type(prior), "deviation")
    with pytest.raises(ParameterError, match=f"{type(prior).__name__}: {scale} must be above 0, but is 0"):
        type(prior)(**{scale: 0})


def test_bound_to_parameters_by_name() -> None:
    kernel = 2.0 * RBF([1.0, 3.0]) + Linear() * 4.0 + Polynomial(2)
    names = [p.name for p in kernel.parameters if p.free]
    priors_by_name = {
        "terms[0].kernel.length_scale": Gamma(3.0, 1.0),
        "terms[0].kernel.length_scale[1]": Normal(1.0, 1.0),
        "terms[1].factor": LogNormal(),
    }
    prior = bind_priors(priors_by_name, kernel.parameters)
    assert prior is not None
    value, gradient = prior(kernel.theta)
    expected = Gamma(3.0, 1.0).log_density(1.0) + Normal(1.0, 1.0).log_density(3.0) + LogNormal().log_density(4.0)
    assert value == pytest.approx(expected, rel=1e-12)
    for i, name in enumerate(names):
        up, down = (kernel.theta + step * np.eye(len(names))[i] for step in (1e-6, -1e-6))
        assert gradient[i] == pytest.approx((prior(up)[0] - prior(down)[0]) / 2e-6, abs=1e-7), name
    assert np.count_nonzero(gradient) == 3


def test_names_and_priors_that_are_refused() -> None:
    kernel = RBF(2.0)
    assert bind_priors(None, kernel.parameters) is None and bind_priors({}, kernel.parameters) is None
    with pytest.raises(
        ParameterError, match="'scale', which is not a free parameter; the free parameters are length_scale"
    ):
        bind_priors({"scale": Normal()}, kernel.parameters)
    with pytest.raises(ParameterError, match="not a free parameter; the free parameters are none"):
        bind_priors({"length_scale": Normal()}, kernel.fixed().parameters)
    with pytest.raises(ParameterError, match=r"prior of length_scale must be one of mercer\.priors.*is 3"):
        bind_priors({"length_scale": 3}, kernel.parameters)  # type: ignore[dict-item]
    with pytest.raises(ParameterError, match="must be a dict from names"):
        bind_priors([("length_scale", Normal())], kernel.parameters)  # type: ignore[arg-type]
    assert bind_priors(None, NegativeDistance().parameters) is None
