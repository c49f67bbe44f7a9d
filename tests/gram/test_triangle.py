"""A triangle in float32: the product of the whole matrix, within the memory budget, and finite or not used."""

from __future__ import annotations

from contextlib import ExitStack

import numpy as np
import pytest

from gram.naive_gram import NaiveGram
from mercer import config
from mercer.engine import memory, threads, tiles
from mercer.gram import Gram, PrecomputedGram
from mercer.gram.triangle import Triangle, reserve_triangle, triangle_bytes
from mercer.kernels import RBF


def rows(n: int) -> np.ndarray:
    return np.random.default_rng(0).normal(size=(n, 3))


@pytest.mark.parametrize("n", [1, 5, 512, 513, 1300])
def test_products_are_those_of_the_matrix(n: int) -> None:
    gram, V = Gram(RBF(1.0), rows(n)), np.random.default_rng(1).normal(size=(n, 2))
    triangle = Triangle(n)
    assert triangle.evaluate(gram.astype(np.float32))
    exact = gram @ V
    np.testing.assert_allclose(triangle @ V, exact, atol=1e-5 * np.abs(exact).max())
    assert triangle.nbytes == triangle_bytes(n) == triangle._entries.nbytes
    # Less than the whole matrix as soon as there is more than one tile.
    assert triangle.nbytes == 4 * n * n if n <= tiles.TILE else triangle.nbytes < 4 * n * n


def test_every_entry_is_computed_once_and_by_any_matrix() -> None:
    n, counted = 1100, []

    class Counting(NaiveGram):
        def fill(self, rows: slice, columns: slice, out: np.ndarray) -> None:
            counted.append(out.size)
            super().fill(rows, columns, out)

    K = Gram(RBF(1.0), rows(n)).dense().astype(np.float32)
    triangle = Triangle(n)
    assert triangle.evaluate(Counting(K))
    for _ in range(3):
        np.testing.assert_allclose(triangle @ np.ones((n, 1)), K.sum(axis=1, keepdims=True), rtol=1e-5)
    assert 4 * sum(counted) == triangle.nbytes


def test_bits_do_not_depend_on_threads() -> None:
    n, V = 1300, np.random.default_rng(1).normal(size=(1300, 7))
    triangle = Triangle(n)
    triangle.evaluate(Gram(RBF(1.0), rows(n)).astype(np.float32))
    products = []
    for count in (1, 2, 3):
        with threads.workers(count):
            products.append(triangle @ V)
    assert all((product == products[0]).all() for product in products)


def test_entries_out_of_range_are_said() -> None:
    K = np.eye(600)
    assert Triangle(600).evaluate(PrecomputedGram(K).astype(np.float32))
    K[550, 590] = K[590, 550] = 1e60
    assert not Triangle(600).evaluate(PrecomputedGram(K).astype(np.float32))


def test_it_takes_at_most_half_of_what_is_free() -> None:
    size = triangle_bytes(2000)
    with config(memory=2 * size), ExitStack() as stack:
        triangle = reserve_triangle(2000, stack)
        assert triangle is not None and memory.budget() == size
        assert reserve_triangle(2000, stack) is None
    with config(memory=2 * size - 1), ExitStack() as stack:
        assert reserve_triangle(2000, stack) is None and memory.budget() == 2 * size - 1
