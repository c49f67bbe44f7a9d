"""Repeated rows and their weights against a dictionary of rows."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from mercer.data.columns import MixedRows
from mercer.data.strings import Strings
from mercer.estimators.tabular.repeats import merged


@pytest.mark.parametrize("kind", ["numbers", "numbers and text"])
@pytest.mark.parametrize("weighted", [False, True])
def test_each_row_occurs_once_with_the_sum_of_its_weights(kind: str, weighted: bool) -> None:
    rng = np.random.default_rng(0)
    numbers, y = rng.integers(0, 3, (200, 2)).astype(float), rng.choice(["a", "b"], 200)
    texts = rng.choice(["x", "xyz", "y"], 200)
    weights = rng.integers(1, 5, 200).astype(float)
    features = numbers if kind == "numbers" else MixedRows([*numbers.T, Strings.of(texts.tolist())])
    keys = [
        (*row, label, text if kind != "numbers" else "") for row, label, text in zip(numbers, y, texts, strict=True)
    ]
    expected: Counter[tuple[object, ...]] = Counter()
    for key, weight in zip(keys, weights, strict=True):
        expected[key] += weight if weighted else 1  # type: ignore[assignment]
    rows, counts = merged(features, y, weights if weighted else None)
    assert counts is not None and {keys[row]: count for row, count in zip(rows, counts, strict=True)} == expected
    # The first of equal rows, in the order of the table.
    assert rows.tolist() == sorted(keys.index(key) for key in expected)


def test_rows_that_all_differ_have_no_weights() -> None:
    rows, weights = merged(np.arange(5.0)[:, None], np.zeros(5), None)
    assert rows.tolist() == [0, 1, 2, 3, 4] and weights is None
    assert merged(np.zeros((3, 1)), np.array([1, 2, 1]), np.ones(3))[0].tolist() == [0, 1]
