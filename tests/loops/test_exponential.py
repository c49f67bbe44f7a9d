import numpy as np
import pytest

from mercer.loops.exponential import exponential


def test_is_within_one_unit_in_the_last_place(rng):
    x = np.concatenate([rng.uniform(-87, 88.5, 100_000), rng.uniform(-1, 1, 100_000)]).astype(np.float32)
    exact = np.exp(x.astype(np.float64))
    exponential(x)
    assert (np.abs(x - exact) / exact).max() < np.finfo(np.float32).eps


@pytest.mark.parametrize(
    "x, value",
    [(0.0, 1.0), (-0.0, 1.0), (-88.0, 0.0), (-np.inf, 0.0), (88.8, np.inf), (np.inf, np.inf), (np.nan, np.nan)],
)
def test_ends_of_the_range(x, value):
    tile = np.full((3, 5), x, np.float32)
    exponential(tile)
    np.testing.assert_array_equal(tile, np.float32(value))
