import numpy as np
import pytest

from mercer.kernels.elementary import exponential
from mercer.loops.exponential import exponential_float32, exponential_float64

FORMS = [
    pytest.param(exponential_float32, np.float32, -87.3, 88.7, id="float32"),
    pytest.param(exponential_float64, np.float64, -708.0, 709.7, id="float64"),
]


@pytest.mark.parametrize("function, dtype, low, high", FORMS)
def test_is_within_two_units_in_the_last_place(function, dtype, low, high, rng):
    # Half powers of two are where the whole number and the rest are least sure of each other.
    middles = (np.arange(-120, 120) + 0.5) * np.log(2)
    x = np.concatenate([rng.uniform(low, high, 100_000), rng.uniform(-1, 1, 100_000), middles, [low, high]])
    x = np.clip(x.astype(dtype), dtype(low), dtype(high))
    exact = np.exp(x.astype(np.longdouble))
    function(x)
    assert (np.abs(x - exact) / exact).max() < (1 if dtype == np.float32 else 1.5) * np.finfo(dtype).eps


@pytest.mark.parametrize("function, dtype, low, high", FORMS)
def test_ends_of_the_range(function, dtype, low, high):
    large = float(np.finfo(dtype).max)
    x = [0.0, -0.0, low - 1, -large, -np.inf, high + 1, large, np.inf, np.nan]
    tile = np.tile(np.array(x, dtype), (3, 5))
    function(tile)
    expected = np.array([1, 1, 0, 0, 0, np.inf, np.inf, np.inf, np.nan], dtype)
    np.testing.assert_array_equal(tile, np.tile(expected, (3, 5)))


def test_other_arrays_are_left_to_numpy(rng):
    whole = rng.normal(size=(6, 8))
    expected = whole.copy()
    expected[:, ::2] = np.exp(expected[:, ::2])
    part = whole[:, ::2]
    assert exponential(part) is part
    np.testing.assert_array_equal(whole, expected)
    half = rng.normal(size=4).astype(np.float16)
    np.testing.assert_array_equal(exponential(half.copy()), np.exp(half))
