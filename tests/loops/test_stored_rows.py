import numpy as np
import pytest

from mercer.loops.stored_rows import subtract_rows


@pytest.mark.parametrize("real", [np.float32, np.float64])
def test_subtract_rows(real, rng):
    rows = rng.standard_normal((9, 5000)).astype(real)
    F, index, weights = rng.standard_normal(5000), np.array([6, 0, 3, 8, 1, 7]), rng.standard_normal(6)
    expected = F - weights @ rows[index].astype(np.float64)
    subtract_rows(F, rows, index, weights)
    np.testing.assert_allclose(F, expected, rtol=1e-12, atol=1e-12)
