"""Passes that use each entry of a matrix twice."""

from __future__ import annotations

import numpy as np
import pytest

from mercer.engine import strips
from mercer.engine.strips import FirstRows, sweep

RNG = np.random.default_rng(0)
K = RNG.normal(size=(1500, 30))
V = RNG.normal(size=(30, 3))


def fill(rows, columns, out):
    out[...] = K[rows, columns]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("stored", [False, True])
@pytest.mark.parametrize("scale", [1e-150, 1.0, 1e150])
def test_products_have_the_units_of_what_a_visit_returns(dtype, stored, scale):
    def visit(rows, F):
        return scale * F[:, :2], (F**2).sum(axis=0)

    entries = K.astype(dtype) if stored else fill
    products, sums = sweep(entries, K.shape, np.dtype(dtype), V, visit, (2, 3))
    accuracy = 1e-12 if dtype == np.float64 else 1e-5
    expected = K.T @ (K @ V)[:, :2]
    np.testing.assert_allclose(products / scale, expected, atol=accuracy * np.abs(expected).max())
    np.testing.assert_allclose(sums, ((K @ V) ** 2).sum(axis=0), rtol=accuracy)


def test_in_float32_all_units_are_rounded_alike():
    def at(scale):
        return sweep(K.astype(np.float32), K.shape, np.dtype(np.float32), V, lambda rows, F: (scale * F, F[0]), (3, 3))

    np.testing.assert_allclose(at(2.0**-300)[0] * 2.0**300, at(1.0)[0], rtol=1e-15)


def test_without_columns_there_are_sums_alone():
    products, sums = sweep(fill, K.shape, K.dtype, V, lambda rows, F: (F[:, :0], F.sum(axis=0)), (0, 3))
    assert products.shape == (30, 0)
    np.testing.assert_allclose(sums, (K @ V).sum(axis=0))


@pytest.mark.parametrize("kept", [0, 1, 700, 1500])
@pytest.mark.parametrize("blocks", [1, 3])
def test_first_rows_are_evaluated_once(kept, blocks, monkeypatch):
    # Strips of 64 rows, each in one or three blocks of columns.
    monkeypatch.setattr(strips, "_BYTES", 8 * 64 * (30 if blocks == 1 else 10))
    evaluated = np.zeros(K.shape, dtype=int)

    def counting(rows, columns, out):
        evaluated[rows, columns] += 1
        fill(rows, columns, out)

    first = FirstRows(counting, np.empty((kept, 30)))

    def visit(rows, F):
        return F, (F**2).sum(axis=0)

    expected = sweep(fill, K.shape, K.dtype, V, visit, (3, 3), 1)
    for jobs in (1, 2, 1):
        found = sweep(first, K.shape, K.dtype, V, visit, (3, 3), jobs)
        for a, b in zip(found, expected, strict=True):
            np.testing.assert_array_equal(a, b)
    # All strips that end within the rows that are kept.
    whole = len(K) if kept == len(K) else kept // 64 * 64
    assert (evaluated[:whole] == 1).all() and (evaluated[whole:] == 3).all()
    np.testing.assert_array_equal(first.values[:whole], K[:whole])


def test_first_rows_after_an_interruption():
    calls = []

    def interrupted(rows, columns, out):
        calls.append(rows)
        if len(calls) == 2:
            raise KeyboardInterrupt
        fill(rows, columns, out)

    first = FirstRows(interrupted, np.full(K.shape, np.nan))

    def visit(rows, F):
        return F, F[0]

    with pytest.raises(KeyboardInterrupt):
        sweep(first, K.shape, K.dtype, V, visit, (3, 3), 1)
    found = sweep(first, K.shape, K.dtype, V, visit, (3, 3), 1)
    np.testing.assert_array_equal(found[0], sweep(fill, K.shape, K.dtype, V, visit, (3, 3), 1)[0])
