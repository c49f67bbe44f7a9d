"""Distances from the span of support vectors, against least squares in the feature space."""

from __future__ import annotations

import numpy as np
import pytest

import mercer
from mercer._errors import MemoryBudgetError
from mercer.gram import PrecomputedGram
from mercer.solvers.svm.span import squared_spans

RNG = np.random.default_rng(0)
PHI = RNG.normal(size=(12, 9))
FREE, BOUNDED = np.array([0, 2, 3, 7, 8]), np.array([1, 5])


def distance(p: int, others: np.ndarray, *, affine: bool) -> float:
    """The squared distance of a row from the linear or affine span of others."""
    if affine:
        directions = PHI[others[1:]] - PHI[others[0]]
        target = PHI[p] - PHI[others[0]]
    else:
        directions, target = PHI[others], PHI[p]
    rest = target - directions.T @ np.linalg.lstsq(directions.T, target, rcond=None)[0]
    return float(rest @ rest)


@pytest.mark.parametrize("offset", [True, False])
def test_they_are_distances(offset: bool) -> None:
    result = squared_spans(PrecomputedGram(PHI @ PHI.T), FREE, BOUNDED, offset=offset)
    for p in range(12):
        if p not in FREE and p not in BOUNDED:
            assert result[p] == 0.0
            continue
        assert result[p] == pytest.approx(distance(p, FREE[p != FREE], affine=offset), rel=1e-8)


def test_equal_rows_are_in_the_span() -> None:
    K = PrecomputedGram(PHI[[0, 0, 1, 2]] @ PHI[[0, 0, 1, 2]].T)
    result = squared_spans(K, np.array([0, 1, 2, 3]), np.array([], dtype=int), offset=True)
    assert result[:2].max() < 1e-6 < result[2:].min()


def test_without_other_free_rows_the_offset_is_not_known() -> None:
    K, none = PrecomputedGram(PHI @ PHI.T), np.array([], dtype=int)
    assert np.isinf(squared_spans(K, none, BOUNDED, offset=True)[BOUNDED]).all()
    assert np.isinf(squared_spans(K, FREE[:1], none, offset=True)[0])
    own = (PHI**2).sum(axis=1)
    np.testing.assert_allclose(squared_spans(K, none, BOUNDED, offset=False)[BOUNDED], own[BOUNDED])
    assert squared_spans(K, FREE[:1], none, offset=False)[0] == pytest.approx(own[0])


def test_the_memory_budget() -> None:
    with mercer.config(memory=200), pytest.raises(MemoryBudgetError):
        squared_spans(PrecomputedGram(PHI @ PHI.T), FREE, BOUNDED, offset=True)
