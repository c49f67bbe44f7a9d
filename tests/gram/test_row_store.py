"""Rows of a matrix that are kept from one gradient update to the next."""

import numpy as np
import pytest

from mercer.gram import Gram
from mercer.gram.row_store import RowStore
from mercer.kernels import RBF


@pytest.mark.parametrize("room", [0, 3, 100])
def test_rows_are_right_whatever_is_kept(room, rng):
    X = rng.standard_normal((5000, 4))
    gram = Gram(RBF(1.0), X, dtype=np.float32)
    F = np.zeros(5000)
    expected = np.zeros(5000)
    store = RowStore(gram, np.empty(room * 5000, np.float32), None)
    for _ in range(5):
        index, weights = rng.permutation(40)[:8], rng.standard_normal(8)
        store.subtract(F, index, weights)
        expected -= gram.block(None, index).astype(np.float64) @ weights
    np.testing.assert_allclose(F, expected, atol=1e-5)
