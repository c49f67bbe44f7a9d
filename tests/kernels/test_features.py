"""Kernels that count features: the products of counts, however they are held and whichever rows are asked for."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pytest

from mercer import config
from mercer.data.objects import Anything, Objects
from mercer.gram import Gram
from mercer.kernels.features import FeatureKernel, Features, _StoreRows
from mercer.kernels.inputs import Rows
from mercer.kernels.parameters import number
from mercer.kernels.plan import Plan
from mercer.loops import counts


@dataclass(frozen=True, repr=False)
class _Bags(FeatureKernel):
    """Rows are mappings from numbers to counts; odd and even numbers are weighed apart."""

    even: float = number(2.0, low=0.0, closed=True)
    odd: float = number(3.0, low=0.0, closed=True)

    rows_of: ClassVar[type[Objects]] = Anything

    def _packing(self) -> str:
        return "bags"

    def _level_weights(self) -> np.ndarray:
        return np.array([self.even, self.odd])

    def _level_slopes(self) -> np.ndarray:
        return np.eye(2)

    def _features(self, objects: Any) -> Features:
        ids = np.array([key for bag in objects for key in bag for _ in range(2)], np.uint64)
        # Each comes twice, so that counts have to be added.
        halves = np.array([value for bag in objects for value in bag.values() for _ in range(2)], float) / 2
        starts = np.concatenate([[0], np.cumsum([2 * len(bag) for bag in objects])]).astype(np.int64)
        return Features(ids, halves, starts, (ids % np.uint64(2)).astype(np.int64))


def _bags(n: int, seed: int) -> list[dict[int, float]]:
    """Some features are in nearly every row, some in a few, and some in one only; one row is empty."""
    rng = np.random.default_rng(seed)
    often, seldom = rng.integers(0, 6, (n, 4)), rng.integers(10, 200, (n, 5))
    large = rng.integers(2**60, 2**64, (n, 2), np.uint64)
    rows = [Counter(map(int, [*often[i], *seldom[i], *large[i]])) for i in range(n)]
    rows[1] = Counter()
    return [dict(row) for row in rows]


def _naive(kernel: _Bags, X: list[dict[int, float]], Z: list[dict[int, float]], level: int | None = None) -> np.ndarray:
    weights = [kernel.even, kernel.odd] if level is None else np.eye(2)[level]
    return np.array([[sum(weights[f % 2] * x[f] * z.get(f, 0) for f in x) for z in Z] for x in X])


@pytest.fixture(scope="module")
def bags() -> tuple[list[dict[int, float]], list[dict[int, float]]]:
    return _bags(70, 0), _bags(33, 1)


@pytest.mark.parametrize("kernel", [_Bags(), _Bags(0.0, 1.0), _Bags(1.0, 0.0)])
def test_against_sums_by_hand(kernel: _Bags, bags: Any) -> None:
    X, Z = bags
    np.testing.assert_allclose(kernel(X), _naive(kernel, X, X), rtol=1e-14, atol=1e-13)
    np.testing.assert_allclose(kernel(X, Z), _naive(kernel, X, Z), rtol=1e-14, atol=1e-13)
    np.testing.assert_allclose(kernel.diagonal(X), np.diag(_naive(kernel, X, X)), rtol=1e-14, atol=1e-13)
    # The same container on both sides of a block that is no Gram matrix.
    both = Anything.of(X)
    np.testing.assert_allclose(kernel(both, both[::-1]), _naive(kernel, X, X[::-1]), rtol=1e-14, atol=1e-13)


def test_slopes_of_the_levels(bags: Any) -> None:
    X, Z = bags
    kernel = _Bags(0.5, 0.0)
    weights = np.random.default_rng(2).normal(size=(len(X), len(Z)))
    got = kernel.bounded(even=(0.1, 1.0)).pullback(X, Z, weights)
    # A number at zero on a log scale stays there, so that only the other is free.
    np.testing.assert_allclose(got, 0.5 * (weights * _naive(kernel, X, Z, 0)).sum())
    kernel = _Bags(0.5, 4.0)
    square = np.random.default_rng(3).normal(size=(len(X), len(X)))
    expected = [(square * _naive(kernel, X, X, level)).sum() * value for level, value in enumerate((0.5, 4.0))]
    np.testing.assert_allclose(kernel.pullback(X, None, square), expected)


def test_dense_and_sparse_parts_are_both_there(bags: Any) -> None:
    rows = Rows(Anything.of(bags[0]))
    plan = Plan(_Bags(), rows, rows)
    plan.prepare()
    operand = next(iter(plan._operands.values()))[0][0]
    assert isinstance(operand, _StoreRows)
    # Six features are frequent; of the others only those that two rows have are kept.
    frequencies = Counter(f for bag in bags[0] for f in bag)
    assert operand.dense.shape == (70, 6)
    assert operand.store.width == sum(count > 1 for count in frequencies.values()) - 6


def test_what_does_not_fit_is_held_sparse(bags: Any) -> None:
    with config(memory=200_000):
        np.testing.assert_allclose(_Bags()(bags[0]), _naive(_Bags(), bags[0], bags[0]), rtol=1e-14, atol=1e-13)


def test_rows_in_any_order_and_repeated(bags: Any) -> None:
    X = bags[0]
    K = _naive(_Bags(), X, X)
    gram = Gram(_Bags(), X)
    some, others = np.array([5, 3, 3, 60, 0]), np.array([3, 60, 61, 3])
    np.testing.assert_allclose(gram.block(some, others), K[np.ix_(some, others)], rtol=1e-14, atol=1e-13)
    np.testing.assert_allclose(gram.restrict(some, some).dense(), K[np.ix_(some, some)], rtol=1e-14, atol=1e-13)


def test_single_precision(bags: Any) -> None:
    X, Z = bags
    K = Gram(_Bags(), X, Z, dtype=np.float32).dense()
    assert K.dtype == np.float32
    np.testing.assert_allclose(K, _naive(_Bags(), X, Z), rtol=1e-6)


def test_nothing_in_common_and_nothing_at_all() -> None:
    assert not _Bags()([{2: 1.0}], [{4: 1.0}, {}]).any()
    assert not _Bags()([{}, {}]).any()


def test_the_table_of_many_features() -> None:
    # More than the table has room for at first, several times over, and some whose hashes meet.
    rng = np.random.default_rng(0)
    ids = np.concatenate([rng.integers(0, 2**63, 3000, np.uint64), np.arange(3000, dtype=np.uint64) << np.uint64(40)])
    ids = np.concatenate([ids, ids[::-1]])
    starts = np.array([0, 6000, 6000, 12000])
    columns, values, offsets = np.empty(12000, np.int32), np.empty(12000), np.empty(4, np.int64)
    firsts = counts.tabulate(ids, np.ones(12000), starts, columns, values, offsets, np.zeros(1, np.uint8))
    assert offsets.tolist() == [0, 6000, 6000, 12000] and np.array_equal(firsts, np.arange(6000))
    assert np.array_equal(ids[firsts][columns[6000:]], ids[6000:]) and (values == 1).all()
    result = np.empty(3, np.int32)
    counts.look_up(ids[:6000], np.array([ids[17], 12345, ids[5999]], np.uint64), result)
    assert result.tolist() == [17, -1, 5999]
