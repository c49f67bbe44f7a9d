"""The ball in which the exact solution lies, and the offsets that it allows."""

from __future__ import annotations

import math

import numpy as np
import pytest

from mercer.solvers.ball import radius, shift_of_kinks, shift_of_slope


def test_radius() -> None:
    assert radius(0.5, 0.0, strength=4.0) == pytest.approx(0.5)
    assert radius(0.5, 0.0, is_pair=True) == pytest.approx(math.sqrt(0.5))
    # A gap of 0 of large objectives is rounding.
    assert 0 < radius(0.0, 1e6) < 1e-3
    assert radius(math.inf, 1.0) == math.inf and radius(1.0, 1.0, strength=0.0) == math.inf


@pytest.mark.parametrize("seed", range(5))
def test_the_minimum_is_inside_for_all_kinks_in_reach(seed: int) -> None:
    rng = np.random.default_rng(seed)
    kinks, steps, reach = rng.normal(size=9), rng.uniform(0.1, 1.0, 9), rng.uniform(0.0, 0.5, 9)
    total = float(steps[:4].sum())
    low, high = shift_of_kinks(kinks, steps, total, reach)
    for _ in range(20):
        moved = kinks + rng.uniform(-1.0, 1.0, 9) * reach
        at, same = shift_of_kinks(moved, steps, total, np.zeros(9))
        assert at == same and low <= at <= high
        # The slope changes its sign there.
        assert steps[moved < at - 1e-9].sum() <= total + 1e-9 <= steps[moved <= at + 1e-9].sum() + 2e-9


def test_a_smooth_risk_without_a_minimum_has_no_finite_interval() -> None:
    low, high = shift_of_slope(lambda change: float(-np.exp(-change).sum()), np.array([0.1]), 1.0)
    assert low > 0 and high == math.inf
