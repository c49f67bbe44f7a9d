import numpy as np
import pytest

from mercer.loops.transpose import mirror, transpose


@pytest.mark.parametrize("shape", [(1, 1), (8, 8), (7, 17), (64, 3)])
def test_is_the_transposed_matrix(shape, rng):
    tile, out = rng.standard_normal(shape), np.zeros(shape[::-1])
    transpose(tile, out)
    np.testing.assert_array_equal(out, tile.T)


@pytest.mark.parametrize("n", [1, 7, 8, 21])
def test_mirrored_below_the_diagonal(n, rng):
    tile = rng.standard_normal((n, n))
    expected = np.triu(tile) + np.triu(tile, 1).T
    mirror(tile)
    np.testing.assert_array_equal(tile, expected)
