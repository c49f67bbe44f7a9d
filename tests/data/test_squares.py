"""Squares of numbers whose squares float64 lacks."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.metrics import r2_score, root_mean_squared_error

from mercer.data.squares import r_squared, root_mean_square, squared_errors, standard_deviation

RNG = np.random.default_rng(0)
SIZES = [2.0**-1000, 2.0**-520, 1.0, 2.0**600]


@pytest.mark.parametrize("shape", [(40,), (40, 3)])
@pytest.mark.parametrize("size", SIZES)
def test_scores_have_the_bits_of_those_in_a_usual_unit(shape, size):
    y, f = RNG.normal(size=shape) + 2.0, RNG.normal(size=shape)
    assert r_squared(size * y, size * f) == r2_score(y, f)
    assert root_mean_square(size * (y - f)).mean() == size * root_mean_squared_error(y, f)
    assert standard_deviation(size * y) == pytest.approx(size * y.std(), rel=1e-15)


def test_constant_targets_are_scored_as_scikit_learn_does():
    y = np.full(5, 0.1)
    for f in (y, y + 1.0):
        assert r_squared(y, f) == r2_score(y, f)


@pytest.mark.parametrize("size", SIZES)
def test_squared_errors_can_be_compared_in_every_unit(size):
    y, near, far = RNG.normal(size=(3, 40))
    shares = squared_errors(size * y, size * near) / squared_errors(size * y, size * far)
    np.testing.assert_allclose(shares, (y - near) ** 2 / (y - far) ** 2, rtol=1e-12)


def test_errors_beyond_all_squares_are_finite():
    worst = squared_errors(np.array([1e-170, 2e-170]), np.array([1.0, 2e-170]))
    assert worst[0] > 1e100 and worst[1] == 0 and np.isfinite(worst.std())
    assert r_squared(np.array([1e-170, 2e-170]), np.array([1.0, 1.0])) == -np.inf
