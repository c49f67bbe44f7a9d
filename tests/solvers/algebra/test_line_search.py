"""Steps along slopes that rise, straight, curved and with jumps."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from mercer.solvers.algebra.line_search import flat_step, halved_step

SLOPES: list[Callable[[float], float]] = [
    lambda t: t - 1.0,
    lambda t: t - 0.01,
    lambda t: np.tanh(100.0 * (t - 0.03)),
    lambda t: -1.0 if t < 0.6 else 5.0,
    lambda t: np.expm1(30.0 * (t - 0.2)),
    lambda t: np.inf if t > 0.3 else t - 0.25,
]


@pytest.mark.parametrize("slope", SLOPES)
@pytest.mark.parametrize("left", [0.1, 0.25])
def test_the_slope_that_is_left_is_small(slope: Callable[[float], float], left: float) -> None:
    t = flat_step(slope, left=left)
    # Where a slope jumps, the step ends at the jump.
    assert 0 < t <= 1 and (abs(slope(t)) <= left * abs(slope(0.0)) or t == pytest.approx(0.6, abs=1e-3))


def test_steps_longer_than_one_are_taken_where_they_are_allowed() -> None:
    assert flat_step(lambda t: t - 40.0) == 1.0
    assert flat_step(lambda t: t - 40.0, longest=5.0) == 5.0
    assert abs(flat_step(lambda t: t - 40.0, longest=np.inf) - 40.0) <= 10.0
    # A straight line has no best step; rounding has no direction.
    assert flat_step(lambda t: -1.0, longest=np.inf) == flat_step(lambda t: 1e-30) == 1.0


def test_halves_end() -> None:
    tried: list[float] = []
    assert halved_step(lambda t: tried.append(t), 0.5, 0.1) is None
    assert tried == [0.5, 0.25, 0.125]
