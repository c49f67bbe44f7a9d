"""Losses of ordered classes: against finite differences, quadrature, mirrors and limits."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.stats import gumbel_l, gumbel_r, logistic, norm

from mercer.solvers.risk.cumulative_links import LINKS, Slopes

every_link = pytest.mark.parametrize("link", LINKS.values(), ids=LINKS)
# By name: the distributions, and their densities without what makes SciPy's slow.
DISTRIBUTIONS = {"logit": logistic, "probit": norm, "cloglog": gumbel_l, "loglog": gumbel_r}
DENSITIES = {
    "logit": lambda z: 0.25 / math.cosh(0.5 * z) ** 2 if abs(z) < 700 else 0.0,
    "probit": lambda z: math.exp(-0.5 * z * z) / math.sqrt(2.0 * math.pi),
    "cloglog": lambda z: math.exp(z - math.exp(min(z, 700.0))),
    "loglog": lambda z: math.exp(-z - math.exp(min(-z, 700.0))),
}


def intervals(scale: float, seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Upper and lower ends and gaps of 600 intervals, a third of them without one end; and which have both."""
    rng = np.random.default_rng(seed)
    lower, gap = scale * rng.normal(size=600), np.exp(1.5 * rng.normal(size=600))
    kind = rng.integers(0, 3, 600)
    upper = np.where(kind == 2, np.inf, lower + gap)
    return upper, np.where(kind == 0, -np.inf, lower), np.where(kind == 1, gap, np.inf), kind == 1


@every_link
def test_values_are_the_logarithms_of_the_mass(link):
    upper, lower, gap = (ends[:90] for ends in intervals(1.5)[:3])
    mass = [quad(DENSITIES[link.name], a, b, epsabs=0, epsrel=1e-11)[0] for a, b in zip(lower, upper)]
    np.testing.assert_allclose(link.value(upper, lower, gap), -np.log(mass), rtol=1e-9, atol=1e-10)
    z = np.linspace(-3, 3, 13)
    np.testing.assert_allclose(link.cumulative(z), DISTRIBUTIONS[link.name].cdf(z), rtol=1e-13)
    share = np.linspace(0.01, 0.99, 13)
    np.testing.assert_allclose(link.cumulative(link.quantile(share)), share, rtol=1e-13)


DERIVATIVES = [
    ("value", "upper", "upper"),
    ("value", "lower", "lower"),
    ("latent", "upper", "cross_upper"),
    ("latent", "lower", "cross_lower"),
    ("upper", "lower", "mixed"),
    ("lower", "upper", "mixed"),
    ("curvature", "upper", "third_upper"),
    ("curvature", "lower", "third_lower"),
]


@every_link
@pytest.mark.parametrize("scale", [1.0, 5.0, 20.0])
def test_derivatives_are_those_of_finite_differences(link, scale):
    upper, lower, gap, both = intervals(scale)
    # The smallest gap is 0.01; a step of 1e-4 of the gap has an error of (1e-4)^2 of the derivative, and rounding adds
    # eps / 1e-4 of the function in units of the gap.
    step = 1e-4 * np.minimum(gap, 1.0)

    def at(end: str, sign: float) -> Slopes:
        h = sign * step
        up, low = (h, 0.0) if end == "upper" else (0.0, h)
        return link.slopes(upper + up, lower + low, np.where(both, gap + up - low, np.inf))

    slopes = link.slopes(upper, lower, gap)
    for of, by, name in DERIVATIVES:
        result = (getattr(at(by, 1.0), of) - getattr(at(by, -1.0), of)) / (2.0 * step)
        expected = getattr(slopes, name)
        room = 1e-7 * np.abs(expected) + 1e-10 * (1.0 + np.abs(getattr(slopes, of))) / step
        assert (np.abs(result - expected) <= room).all(), name


@every_link
def test_derivatives_agree_with_one_another(link):
    upper, lower, gap, _ = intervals(3.0)
    s = link.slopes(upper, lower, gap)
    np.testing.assert_array_equal(s.value, link.value(upper, lower, gap))
    np.testing.assert_allclose(s.latent, -(s.upper + s.lower), atol=1e-12 * np.abs(s.upper).max())
    np.testing.assert_allclose(s.curvature, -(s.cross_upper + s.cross_lower), rtol=1e-9, atol=1e-12)
    assert (s.value >= 0).all() and (s.curvature >= 0).all()
    # Convex in both ends: the diagonal of the Hessian, and its determinant in relative terms.
    across, below = -s.cross_upper - s.mixed, -s.cross_lower - s.mixed
    assert (across >= 0).all() and (below >= 0).all()
    assert (across * below - s.mixed**2 >= -1e-12 * across * below).all()


@every_link
def test_tails_and_narrow_intervals_stay_finite(link):
    with np.errstate(all="raise", under="ignore"):
        for middle in (-500.0, -40.0, -1.0, 0.0, 1.0, 40.0, 500.0):
            for gap in (1e-12, 1e-6, 1e-3, 1.0, 100.0):
                s = link.slopes(np.array([middle + gap]), np.array([middle]), np.array([gap]))
                # e^500 is what the losses of the extreme value distributions reach, and a number.
                assert all(np.isfinite(value).all() for value in vars(s).values()), (middle, gap)
                assert s.value[0] >= 0 and s.curvature[0] >= 0


@pytest.mark.parametrize("u", [-1e4, -300.0, -30.0])
def test_the_normal_tail_is_that_of_mills_ratio(u):
    s = LINKS["probit"].slopes(np.array([u]), np.array([-np.inf]), np.array([np.inf]))
    # phi(u) / Phi(u) = -u + 1 / -u - 2 / (-u)^3 + ..., with an error below the next term, 10 / |u|^5.
    assert abs(s.latent[0] - (-u - 1.0 / u + 2.0 / u**3)) <= 10.0 / abs(u) ** 5 + 1e-14 * abs(u)
    # Its slope, 1 - 1 / u^2 + 6 / u^4, is what is left of products of the size of u^2.
    assert abs(s.curvature[0] - (1.0 - 1.0 / u**2 + 6.0 / u**4)) <= 50.0 / u**6 + 1e-14 * u * u


@pytest.mark.parametrize("middle", [0.0, -3.0, 30.0])
def test_the_series_of_narrow_normal_intervals_joins_the_formula(middle):
    gap = 5e-3 / (1.0 + abs(middle)) * np.array([1.0 - 1e-7, 1.0 + 1e-7])
    s = LINKS["probit"].slopes(middle + gap / 2, middle - gap / 2, gap)
    # The gaps differ by 2e-7; the values by the logarithm of that, second derivatives by twice as much.
    for name, growth in (("value", 1.0), ("upper", 1.0), ("lower", 1.0), ("latent", 0.0), ("curvature", 0.0)):
        below, above = getattr(s, name)
        assert abs(below - above) <= 3e-7 * growth * max(1.0, abs(below)) + 1e-9 * max(1.0, abs(middle)), name


@given(st.floats(-30, 30), st.floats(1e-6, 30))
def test_loglog_is_the_mirror_image_of_cloglog(middle, gap):
    upper, lower, length = np.array([middle + gap]), np.array([middle]), np.array([gap])
    a = LINKS["loglog"].slopes(upper, lower, length)
    b = LINKS["cloglog"].slopes(-lower, -upper, length)
    assert a.value == b.value and a.curvature == b.curvature
    assert a.upper == -b.lower and a.latent == -b.latent and a.cross_upper == b.cross_lower


@given(st.floats(-700, 700), st.floats(1e-9, 50))
def test_the_logistic_loss_against_higher_precision(middle, gap):
    # (1 - e^-gap) / ((1 + e^-u) (1 + e^l)), by logarithms whose terms are exact.
    expected = np.logaddexp(0.0, -(middle + gap)) + np.logaddexp(0.0, middle) - math.log(-math.expm1(-gap))
    result = LINKS["logit"].value(np.array([middle + gap]), np.array([middle]), np.array([gap]))[0]
    assert result == pytest.approx(expected, rel=1e-13)
