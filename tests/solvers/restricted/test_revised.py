"""Rows whose targets are computed anew in each pass, beside rows in memory that keep them."""

from __future__ import annotations

import numpy as np

from mercer.gram import Gram
from mercer.kernels import RBF
from mercer.solvers.restricted.blocked import BlockedRows
from mercer.solvers.restricted.passes import Part, RevisableRows, RowsWithState, StoredRows
from mercer.solvers.restricted.revised import RevisedRows

RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 2))
Y = RNG.normal(size=(60, 1))
WEIGHTS = RNG.uniform(0.5, 2.0, 60)
V, W = RNG.normal(size=(2, 8, 2))


def stored(rows: slice) -> StoredRows:
    return StoredRows(Gram(RBF(1.0), X[rows], X[:8], dtype=np.float64), Y[rows], WEIGHTS[rows])


def blocked() -> BlockedRows:
    def read(first: int):
        return (stored(slice(20 * number, 20 * number + 20)) for number in range(first, 3))

    return BlockedRows((60, 8, 1), read, stored(slice(None)).sample)


def revise(part: Part, F: np.ndarray) -> np.ndarray:
    return np.hstack([part.targets[:, :1], np.tanh(F[:, :1] + part.targets[:, -1:])])


def visit(part: Part, F: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    return part.weights * part.targets * F, (part.targets * F).sum(axis=0)


def test_passes_see_the_targets_that_rows_in_memory_keep() -> None:
    kept, products, sums = stored(slice(None)).revised(V, revise, visit, (2, 2))
    anew, *found = blocked().revised(V, revise, visit, (2, 2))
    assert isinstance(anew, RevisedRows) and anew.shape == kept.shape == (60, 8, 2)
    for _ in range(3):
        np.testing.assert_allclose(found[0], products)
        np.testing.assert_allclose(found[1], sums)
        kept, products, sums = kept.revised(W, revise, visit, (2, 2))
        anew, *found = anew.revised(W, revise, visit, (2, 2))
    for own, other in zip(anew.sweep(V, visit, (2, 2)), kept.sweep(V, visit, (2, 2)), strict=True):
        np.testing.assert_allclose(own, other)


def test_a_sample_has_them_as_well() -> None:
    kept = stored(slice(None)).revised(V, revise, visit, (2, 2))[0].sample(60, np.random.RandomState(0))
    anew = blocked().revised(V, revise, visit, (2, 2))[0].sample(60, np.random.RandomState(0))
    np.testing.assert_allclose(anew[1].targets, kept[1].targets)
    np.testing.assert_array_equal(anew[0], kept[0])


def test_in_float32_they_are_close() -> None:
    anew = blocked().revised(V, revise, visit, (2, 2))[0]
    single = anew.single()
    assert single is not None
    np.testing.assert_allclose(single.sweep(V, visit, (2, 2))[0], anew.sweep(V, visit, (2, 2))[0], rtol=1e-3, atol=1e-3)


def test_nothing_is_marked_where_nothing_is_kept() -> None:
    assert isinstance(blocked(), RevisableRows) and not isinstance(blocked(), RowsWithState)
