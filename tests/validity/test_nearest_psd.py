"""A positive matrix in the place of one that is not: the spectrum changes as it is said to."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mercer._errors import DataError, ParameterError
from mercer.gram import Gram
from mercer.kernels import RBF, NegativeDistance
from mercer.validity import check, nearest
from spectra import planted

RNG = np.random.default_rng(0)
X = RNG.standard_normal((40, 3))


eigenvalues = st.lists(st.floats(-10, 10, allow_subnormal=False), min_size=1, max_size=9)


@settings(max_examples=40, deadline=None)
@given(values=eigenvalues, method=st.sampled_from(["clip", "flip", "shift"]))
def test_nearest_changes_the_spectrum_as_it_says(values, method):
    values = np.sort(values)
    K = planted(values)
    result = nearest(K, method)
    low = min(values[0], 0.0)
    expected = {"clip": np.maximum(values, 0), "flip": np.sort(np.abs(values)), "shift": values - low}[method]
    scale = max(np.abs(values).max(), 1.0)
    assert np.allclose(np.linalg.eigvalsh(result.matrix), expected, atol=1e-12 * scale)
    assert np.array_equal(result.matrix, result.matrix.T)
    assert check(result.matrix, tolerance=1e-13 * scale).valid
    assert result.distance == pytest.approx(np.linalg.norm(result.matrix - K))
    assert result.smallest == pytest.approx(values[0], abs=1e-12 * scale)
    assert result.shift == pytest.approx(-low if method == "shift" else 0.0, abs=1e-12 * scale)


def test_clipping_is_nearest_in_the_frobenius_norm():
    K = planted([-2.0, -0.5, 1.0, 3.0])
    result = nearest(K)
    assert result.distance == pytest.approx(np.hypot(2.0, 0.5))
    for seed in range(20):
        factor = np.random.default_rng(seed).standard_normal((4, 4)) * 0.3
        other = result.matrix + factor @ factor.T - 0.1 * result.matrix
        assert np.linalg.eigvalsh(other)[0] >= -1e-12
        assert np.linalg.norm(other - K) > result.distance


def test_nearest_leaves_what_is_positive_alone():
    K = RBF(1.0)(X)
    for method in ("clip", "flip", "shift"):
        result = nearest(K, method)
        assert np.array_equal(result.matrix, (K + K.T) / 2)
        assert result.changed == 0
        assert "left as they are" in str(result)


def test_shifting_moves_the_diagonal_only():
    K = planted([-2.0, 1.0, 3.0])
    result = nearest(K, "shift")
    off = ~np.eye(3, dtype=bool)
    assert np.array_equal(result.matrix[off], K[off])
    assert result.matrix.diagonal() - K.diagonal() == pytest.approx(2.0)
    assert "2 was added to the diagonal, and so to all 3 eigenvalues" in str(result)
    assert "1 of 3 eigenvalues" in str(nearest(K, "clip"))
    assert "sign turned" in str(nearest(K, "flip"))


def test_nearest_takes_lazy_matrices_keeps_the_dtype_and_refuses_nonsense():
    gram = Gram(NegativeDistance(1.0), X.astype(np.float32))
    result = nearest(gram)
    assert result.matrix.dtype == np.float32
    assert check(result.matrix).valid
    assert np.allclose(nearest([[0, 2], [0, 0]]).matrix, 0.5)
    with pytest.raises(ParameterError, match="one of 'clip', 'flip', 'shift', but is 'cut'"):
        nearest(np.eye(2), "cut")
    with pytest.raises(DataError, match="must be square"):
        nearest(np.ones((2, 3)))
    with pytest.raises(DataError, match="is empty"):
        nearest(np.empty((0, 0)))
