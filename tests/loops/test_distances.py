"""Squared distances by products: against differences, in both loops."""

from __future__ import annotations

import numpy as np
import pytest

from mercer import config
from mercer.gram import Gram
from mercer.kernels import RBF, Matern
from mercer.loops import distances


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("shape", [(1, 1), (17, 3), (64, 512), (65, 513), (200, 1100)])
@pytest.mark.parametrize("d", [1, 3, 24])
def test_distances_of_few_columns(shape, d, dtype):
    rng = np.random.default_rng(0)
    n, m = shape
    A, B = rng.normal(size=(n, d)).astype(dtype), rng.normal(size=(m, d)).astype(dtype)
    # Equal rows, whose distance cancellation has spoilt.
    A[-1], B[-1] = A[0], A[0]
    a, b = (A**2).sum(axis=1), (B**2).sum(axis=1)
    expected = -0.5 * ((A.astype(float)[:, None] - B.astype(float)[None]) ** 2).sum(axis=2)
    out, lost, threshold = np.empty(shape, dtype), np.empty(n, np.int64), dtype(1e-2)
    left, right = distances.NormedRows(A, a), distances.NormedRows(B, b)
    distances.squared_distances(left, right, dtype(-0.5), threshold, lost, out)
    sizes = a[:, None] + b[None]
    sizes = a[:, None] + b[None]
    by_two = A @ B.T
    counts = np.empty(n, np.int64)
    distances.finish_squared_distances(by_two, a, b, dtype(-0.5), threshold, counts)
    tolerance = 8 * d * np.finfo(dtype).eps * sizes.max()
    for values, lines in ((out, lost), (by_two, counts)):
        spoilt = np.isnan(values)
        np.testing.assert_array_equal(lines, spoilt.sum(axis=1))
        np.testing.assert_allclose(values[~spoilt], expected[~spoilt], atol=tolerance)
        assert lines[0] >= 1 and lines[-1] >= 1
        # Rounding decides on distances at the threshold itself.
        clear = np.abs(-2 * expected - threshold * sizes) > 2 * tolerance
        np.testing.assert_array_equal(spoilt[clear], (-2 * expected <= threshold * sizes)[clear])
    rows = A.astype(float), B.astype(float)
    distances.repair_distances(out, *rows, np.ones(d), distances.SQUARED, -0.5, lost)
    np.testing.assert_allclose(out, expected, rtol=200 * d * float(np.finfo(dtype).eps) / float(threshold))
    assert out[0, -1] == out[-1, -1] == 0.0


@pytest.mark.parametrize("kernel", [RBF(0.7), Matern(0.7, nu=1.5)])
@pytest.mark.parametrize("d", [2, 24, 25])
def test_a_kernel_value_hardly_depends_on_the_rows_beside_it(kernel, d):
    # With few rows or more than 24 columns, another loop finishes the distances.
    rng = np.random.default_rng(1)
    X, Z = rng.normal(size=(300, d)), rng.normal(size=(700, d))
    whole = Gram(kernel, X, Z).block()
    gram = Gram(kernel, X, Z)
    for rows in (slice(0, 1), slice(5, 20), slice(100, 117), np.arange(0, 300, 3)):
        np.testing.assert_allclose(gram.block(rows), whole[rows], rtol=1e-11, atol=1e-14)


def test_a_missing_value_is_not_hidden():
    A = np.ones((20, 2))
    A[3] = np.nan
    out, lost = np.empty((20, 20)), np.empty(20, np.int64)
    side = distances.NormedRows(A, (A**2).sum(axis=1))
    distances.squared_distances(side, side, 1.0, 1e-2, lost, out)
    distances.repair_distances(out, A, A, np.ones(2), distances.SQUARED, 1.0, lost)
    missing = np.isnan(A).any(axis=1)
    np.testing.assert_array_equal(np.isnan(out), missing[:, None] | missing)


def test_the_bits_do_not_depend_on_threads():
    X = np.random.default_rng(2).normal(size=(1500, 5))
    values = []
    for jobs in (1, 2, 5):
        with config(n_jobs=jobs):
            values.append(Gram(RBF(1.0), X, X[:700]).dense())
    np.testing.assert_array_equal(values[0], values[1])
    np.testing.assert_array_equal(values[0], values[2])
