"""Means, deviations and labels, strip by strip."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from mercer import Blocks
from mercer.data.blocks import moments
from mercer.data.blocks.block import Block
from mercer.data.blocks.moments import Labels, Statistics


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
def test_they_are_those_of_all_rows(rng, sparse, weighted):
    X = (rng.normal(size=(5000, 3)) + 1e4) * (rng.random((5000, 3)) < 0.5)
    y = X[:, 0] ** 2
    weights = rng.random(5000) if weighted else np.ones(5000)
    rows = sp.csr_matrix(X) if sparse else X
    survey = Blocks(rows, y, sample_weight=weights if weighted else None, rows_per_block=700).survey()
    mean = np.average(X, axis=0, weights=weights)
    np.testing.assert_allclose(survey.mean, mean, rtol=1e-13)
    np.testing.assert_allclose(survey.scale, np.sqrt(np.average((X - mean) ** 2, axis=0, weights=weights)), rtol=1e-12)
    np.testing.assert_allclose(survey.target_mean, np.average(y, weights=weights), rtol=1e-13)
    assert survey.weight == pytest.approx(weights.sum(), rel=1e-13) and survey.n == 5000


def test_large_offsets_cost_no_digits():
    X = np.tile([[1e9], [1e9 + 1]], (5000, 1))
    assert Blocks(X).survey().scale.item() == pytest.approx(0.5, rel=1e-9)


@pytest.mark.parametrize("sparse", [False, True])
def test_bits_do_not_depend_on_blocks(rng, sparse, monkeypatch):
    monkeypatch.setattr(moments, "_SPARSE_STRIP", 512)
    X, weights = rng.normal(size=(3000, 4)), rng.random(3000)
    found = set()
    for rows in (1000, 1024, 37, 3000):
        statistics = Statistics(sparse)
        for start in range(0, 3000, rows):
            block = Block(X, X[:, 0], weights).take(slice(start, start + rows))
            statistics.add(block._replace(X=sp.csr_matrix(block.X)) if sparse else block)
        statistics.finish()
        found.add((statistics.X.mean.tobytes(), statistics.X.deviation.tobytes(), statistics.y.mean.tobytes()))
    assert len(found) == 1


def test_whole_weights_are_repeated_rows(rng):
    X, weights = rng.normal(size=(200, 2)), rng.integers(0, 4, 200)
    first = Blocks(X, weights > 1, sample_weight=weights).survey()
    second = Blocks(X.repeat(weights, axis=0), (weights > 1).repeat(weights)).survey()
    np.testing.assert_allclose(first.mean, second.mean, rtol=1e-13)
    np.testing.assert_allclose(first.scale, second.scale, rtol=1e-13)
    assert first.class_weight.tolist() == second.class_weight.tolist() and first.weight == second.weight


def test_labels():
    labels = Labels()
    labels.add(np.array(["b", "a", "b"], object), np.array([1.0, 2.0, 3.0]))
    labels.add(np.array(["c"], object), np.ones(1))
    classes, weights = labels.result(np.dtype(object))
    assert classes.tolist() == ["a", "b", "c"] and weights.tolist() == [2.0, 4.0, 1.0]


@pytest.mark.parametrize("y", [np.arange(1001), np.array([0.5, 1.0])])
def test_quantities_are_no_labels(y):
    survey = Blocks(np.zeros((len(y), 1)), y).survey()
    assert survey.classes is None and survey.class_weight is None
    assert Blocks(np.zeros((1000, 1)), np.arange(1000)).survey().classes.tolist() == list(range(1000))


def test_classes_of_no_weight_are_left_out():
    survey = Blocks(np.zeros((3, 1)), ["a", "b", "c"], sample_weight=[1, 0, 2]).survey()
    assert survey.classes.tolist() == ["a", "c"] and survey.target_mean is None
    assert Blocks(np.zeros((3, 1))).survey().classes is None
