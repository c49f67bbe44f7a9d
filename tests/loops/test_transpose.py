import numpy as np
import pytest

from mercer.loops.transpose import mirror, transpose


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("shape", [(1, 1), (8, 8), (7, 17), (64, 3), (37, 50)])
@pytest.mark.parametrize("order", ["C", "F"])
def test_is_the_transposed_matrix(shape, dtype, order, rng):
    tile, out = rng.standard_normal(shape).astype(dtype), np.full((shape[1] + 2, shape[0] + 3), -9, dtype, order)
    transpose(tile, out[1:-1, 2:-1])
    np.testing.assert_array_equal(out[1:-1, 2:-1], tile.T)
    # Nothing beside it is written to.
    assert np.count_nonzero(out == -9) == out.size - tile.size


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int64])
@pytest.mark.parametrize("n", [1, 7, 8, 21, 50])
@pytest.mark.parametrize("order", ["C", "F"])
def test_mirrored_below_the_diagonal(n, dtype, order, rng):
    tile = np.asarray(100 * rng.standard_normal((n, n)), dtype, order)
    expected = np.triu(tile) + np.triu(tile, 1).T
    mirror(tile)
    np.testing.assert_array_equal(tile, expected)
