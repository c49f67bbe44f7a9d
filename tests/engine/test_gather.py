"""Picking rows by all threads against plain indexing."""

import numpy as np
import pytest
import scipy.sparse as sp

from mercer.engine.gather import gather


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_it_is_indexing(rng, dtype):
    wide = rng.standard_normal((9000, 300)).astype(dtype)
    index = rng.permutation(9000)
    np.testing.assert_array_equal(gather(wide, index), wide[index])
    np.testing.assert_array_equal(gather(wide, index - 9000), wide[index])
    np.testing.assert_array_equal(gather(wide[:, 0], index), wide[index, 0])
    np.testing.assert_array_equal(gather(wide, slice(3, 9)), wide[3:9])
    assert gather(wide, index[:0]).shape == (0, 300)


def test_rows_of_a_sparse_matrix(rng):
    X = sp.random_array((50, 20), density=0.2, rng=rng, format="csr")
    np.testing.assert_array_equal(gather(X, np.array([4, 1])).toarray(), X.toarray()[[4, 1]])
