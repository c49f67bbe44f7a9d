"""Samples in one pass: uniform, and the same for any cut."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import chi2

from mercer import Blocks
from mercer.data.blocks.block import Block
from mercer.data.blocks.reservoir import Reservoir


def drawn(X, size, cuts, seed, weights=None):
    reservoir = Reservoir(size, np.random.RandomState(seed))
    edges = [0, *sorted(cuts), len(X)]
    for start, stop in pairwise(edges):
        reservoir.add(Block(X, None, weights).take(slice(start, stop)))
    return reservoir.sample.X.ravel()


@given(n=st.integers(1, 60), size=st.integers(1, 70), seed=st.integers(0, 99), data=st.data())
def test_the_cut_does_not_matter(n, size, seed, data):
    X = np.arange(float(n))[:, None]
    cuts = data.draw(st.lists(st.integers(0, n), max_size=5))
    sample = drawn(X, size, cuts, seed)
    np.testing.assert_array_equal(sample, drawn(X, size, [], seed))
    assert len(sample) == min(size, n) and (np.diff(sample) > 0).all()


def test_every_set_of_rows_is_as_likely():
    counts = np.zeros((6, 6))
    X = np.arange(6.0)[:, None]
    for seed in range(1500):
        first, second = drawn(X, 2, [3], seed).astype(int)
        counts[first, second] += 1
    pairs = counts[np.triu_indices(6, 1)]
    assert ((pairs - 100) ** 2 / 100).sum() < chi2.ppf(0.999, 14)


def test_rows_of_no_weight_are_not_drawn():
    X, weights = np.arange(10.0)[:, None], np.array([1.0, 0.0] * 5)
    assert drawn(X, 5, [4], 0, weights).tolist() == [0, 2, 4, 6, 8]
    assert drawn(X, 9, [4], 0, weights).tolist() == [0, 2, 4, 6, 8]


@pytest.mark.parametrize("rows", [1, 7, 100])
def test_targets_and_weights_come_along(rows):
    X = np.arange(50.0)[:, None]
    sample = Blocks(X, X[:, 0] * 2, sample_weight=X[:, 0] + 1, rows_per_block=rows).sample(10, random_state=3)
    assert sample.y.tolist() == (2 * sample.X[:, 0]).tolist()
    assert sample.sample_weight.tolist() == (sample.X[:, 0] + 1).tolist()
    assert sample.X.tolist() == Blocks(X).survey(10, random_state=3).sample.X.tolist()
