"""Repeated rows of a table as one row with a weight, so that weights and repetitions are the same problem."""

from __future__ import annotations

from typing import Any

import numpy as np

from mercer._types import Positions, Vector
from mercer.data.columns import MixedRows


def merged(features: Any, y: np.ndarray, weights: Vector | None) -> tuple[Positions, Vector | None]:
    """The first of all equal rows with equal targets, in their order, and the weight of each; None where all have 1.

    Examples
    --------
    >>> rows, weights = merged(np.array([[1.0], [2.0], [1.0], [1.0]]), np.array(["a", "b", "a", "b"]), None)
    >>> rows.tolist(), weights.tolist()
    ([0, 1, 3], [2.0, 1.0, 1.0])
    """
    columns = features.columns if isinstance(features, MixedRows) else features.T
    codes = np.unique(y, return_inverse=True)[1].astype(np.int64)
    for column in columns:
        # Numbers below n^2 each, so that the pairs are exact.
        values = np.unique(_keys(column), return_inverse=True)[1]
        codes = np.unique(codes * (values.max() + 1) + values, return_inverse=True)[1].astype(np.int64)
    first, place = np.unique(codes, return_index=True, return_inverse=True)[1:]
    totals = np.bincount(place, weights)
    order = np.argsort(first)
    rows, counts = first[order], totals[order].astype(np.float64)
    return rows, None if (counts == 1.0).all() else counts


def _keys(column: Any) -> np.ndarray:
    """The numbers of a column, or one for each text; an array of texts would give all the length of the longest."""
    if isinstance(column, np.ndarray):
        return column
    numbers: dict[Any, int] = {}
    return np.array([numbers.setdefault(text, len(numbers)) for text in column.items])
