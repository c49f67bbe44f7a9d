"""Tiles: shapes about their borders, symmetric or not, and the same bits for any number of threads."""

from __future__ import annotations

import threading
import time

import numpy as np
import pytest

from mercer.engine import tiles
from mercer.engine.progress import on_progress

SIZES = [1, 511, 512, 513, 1025]


def _fill(rows: slice, columns: slice, out: np.ndarray) -> None:
    i, j = np.arange(rows.start, rows.stop)[:, None], np.arange(columns.start, columns.stop)
    out[...] = np.cos(0.2257 * (i * j) + 0.01 * (i + j))


def _whole(n: int, m: int) -> np.ndarray:
    K = np.empty((n, m))
    _fill(slice(0, n), slice(0, m), K)
    return K


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("m", SIZES)
def test_every_entry_is_filled_once(n: int, m: int) -> None:
    K = _whole(n, m)
    V = np.sin(np.arange(2.0 * m)).reshape(m, 2)
    for n_jobs in (1, 2):
        out = np.full((n, m), np.nan)
        tiles.dense(_fill, out, symmetric=False, n_jobs=n_jobs)
        assert np.array_equal(out, K)
        product = tiles.product(_fill, (n, m), K.dtype, V, symmetric=False, n_jobs=n_jobs)
        np.testing.assert_allclose(product, K @ V, atol=1e-10)


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_symmetric_matrices_use_every_tile_twice(n: int, dtype: type) -> None:
    K = _whole(n, n)
    visited: list[tuple[int, int]] = []

    def fill(rows: slice, columns: slice, out: np.ndarray) -> None:
        visited.append((rows.start, columns.start))
        _fill(rows, columns, out)

    out = np.full((n, n), np.nan, dtype)
    tiles.dense(fill, out, symmetric=True, n_jobs=1)
    np.testing.assert_allclose(out, K, atol=1e-6)
    assert all(row <= column for row, column in visited)
    assert len(set(visited)) == len(visited)
    V = np.sin(np.arange(3.0 * n)).reshape(n, 3).astype(dtype)
    products = [tiles.product(_fill, (n, n), np.dtype(dtype), V, True, n_jobs) for n_jobs in (1, 2, 3, 7)]
    np.testing.assert_allclose(products[0], K @ V, atol=1e-3 if dtype == np.float32 else 1e-10)
    assert all(np.array_equal(p, products[0]) for p in products)


def test_reductions_visit_every_tile_and_keep_their_order() -> None:
    def visit(rows: slice, columns: slice) -> np.ndarray:
        tile = np.empty((rows.stop - rows.start, columns.stop - columns.start))
        _fill(rows, columns, tile)
        return np.array([tile.sum(), tile.size])

    sums = [tiles.reduce(visit, (1025, 513), 2, n_jobs) for n_jobs in (1, 2, 3)]
    assert sums[0][1] == 1025 * 513
    assert sums[0][0] == pytest.approx(_whole(1025, 513).sum())
    assert all(np.array_equal(s, sums[0]) for s in sums)


@pytest.mark.parametrize("n", [1, 384, 385, 512, 1000, 2047, 2048])
def test_reductions_over_a_triangle_visit_each_tile_once(n: int) -> None:
    seen = np.zeros((n, n), np.int8)

    def visit(rows: slice, columns: slice) -> np.ndarray:
        seen[rows, columns] += 1
        return np.ones(1)

    tiles.reduce(visit, (n, n), 1, 2, symmetric=True)
    above = np.triu_indices(n)
    assert (seen[above] == 1).all()
    # Whole tiles on the diagonal, and none below.
    assert (seen + seen.T <= 2).all()


def test_spans_cover_and_end_where_they_should() -> None:
    assert tiles.spans(0) == []
    assert tiles.spans(5, 5) == [slice(0, 5)]
    assert [s.stop - s.start for s in tiles.spans(1025)] == [512, 512, 1]


def test_work_arrays_of_nested_blocks_are_apart() -> None:
    with tiles.scratch((4, 3), np.dtype(float)) as outer:
        outer[...] = 1
        with tiles.scratch((600, 600), np.dtype(float)) as inner:
            inner[...] = 2
            assert not np.shares_memory(outer, inner)
        with tiles.scratch((4, 3), np.dtype(float)) as again:
            assert np.shares_memory(again, inner) or again.size <= inner.size
        assert (outer == 1).all()
    with pytest.raises(ZeroDivisionError), tiles.scratch((2, 2), np.dtype(float)):
        1 // 0  # noqa: B018
    with tiles.scratch((4, 3), np.dtype(float)) as first_again:
        assert np.shares_memory(first_again, outer)


@pytest.mark.parametrize("way", ["dense", "product", "symmetric product", "reduce"])
def test_a_failure_ends_the_work_of_others_at_their_next_tile(way: str) -> None:
    failed = threading.Event()
    begun_after: list[int] = []

    def fill(rows: slice, columns: slice, out: np.ndarray) -> None:
        if failed.is_set():
            begun_after.append(columns.start)
        if rows.start == 0:
            time.sleep(0.02)
            failed.set()
            raise ValueError("a broken kernel")
        time.sleep(0.002)
        out[...] = 0.0

    def visit(rows: slice, columns: slice) -> np.ndarray:
        fill(rows, columns, np.zeros(1))
        return np.zeros(1)

    wide, square = (1024, 40 * 512), 24 * 512
    single = np.dtype(np.float32)
    work = {
        "dense": lambda: tiles.dense(fill, np.empty(wide, single), symmetric=False, n_jobs=2),
        "product": lambda: tiles.product(fill, wide, single, np.ones((wide[1], 1)), symmetric=False, n_jobs=2),
        "symmetric product": lambda: tiles.product(
            fill, (square, square), single, np.ones((square, 1)), symmetric=True, n_jobs=2
        ),
        "reduce": lambda: tiles.reduce(visit, wide, 1, n_jobs=2),
    }[way]
    with pytest.raises(ValueError, match="a broken kernel"):
        work()
    # A few may slip in between the failure and the word of it; a whole strip has 40 tiles.
    assert len(begun_after) < 10


def test_a_gradient_tells_how_far_it_is() -> None:
    heard: list[tuple[str, int, int | None]] = []
    with on_progress(lambda *what: heard.append(what)):
        tiles.reduce(lambda rows, columns: np.ones(1), (1025, 513), 1, n_jobs=1)
    assert heard == [("kernel gradient", i, 3) for i in (1, 2, 3)]


@pytest.mark.parametrize("n", [1, 3, 60, 200])
def test_few_rows_have_wider_tiles_that_threads_share(n: int) -> None:
    m, visited = 20_000, []

    def fill(rows: slice, columns: slice, out: np.ndarray) -> None:
        visited.append((rows, columns))
        _fill(rows, columns, out)

    outs = []
    for n_jobs in (1, 2):
        visited.clear()
        outs.append(np.full((n, m), np.nan))
        tiles.dense(fill, outs[-1], symmetric=False, n_jobs=n_jobs)
        assert sorted(i for _, columns in visited for i in range(columns.start, columns.stop)) == list(range(m))
        assert {(rows.start, rows.stop) for rows, _ in visited} == {(0, n)}
    assert np.array_equal(outs[0], _whole(n, m)) and np.array_equal(outs[1], outs[0])
    largest = max((columns.stop - columns.start) * n for _, columns in visited)
    assert largest <= tiles.TILE * max(128, n)


@pytest.mark.parametrize("order", ["C", "F"])
def test_converted_copies_in_another_precision(order: str) -> None:
    rng = np.random.default_rng(0)
    matrix = np.asarray(rng.normal(size=(700, 2_100)), order=order)
    matrix[3, 5], matrix[600, 7] = 1e300, np.nan
    with np.errstate(over="ignore"):
        expected = matrix.astype(np.float32)
    copy = tiles.converted(matrix, np.dtype(np.float32))
    assert copy.flags.c_contiguous and copy.dtype == np.float32
    np.testing.assert_array_equal(copy, expected)
    same = tiles.converted(matrix, matrix.dtype)
    assert not np.shares_memory(same, matrix)
    np.testing.assert_array_equal(same, matrix)
    assert tiles.converted(np.empty((0, 3)), np.dtype(np.float32)).shape == (0, 3)
