"""Rows as they are passed, before a kernel reads them: counting and selecting them, and lists of numbers as arrays."""

from __future__ import annotations

from typing import Any

import numpy as np

from mercer._errors import DataError


def pick(X: Any, index: slice | np.ndarray) -> Any:
    """Select rows of a table, an array, a sparse matrix, a container or a list.

    >>> pick(["a", "b", "c"], np.array([2, 0]))
    ['c', 'a']
    """
    if hasattr(X, "iloc"):
        return X.iloc[index]
    if hasattr(X, "shape"):
        return X[index]
    return X[index] if isinstance(index, slice) else [X[i] for i in index]


def as_array(X: Any) -> Any:
    """A list of rows of numbers as an array, which functions of the rows expect; anything else unchanged."""
    if not isinstance(X, (list, tuple)) or not X or not isinstance(X[0], (list, tuple, np.ndarray)):
        return X
    try:
        array = np.asarray(X)
    except ValueError:
        # Rows of different lengths, such as series.
        return X
    if array.ndim != 2 or array.dtype.kind not in "fiub":
        return X
    masked = next((row for row, x in enumerate(X) if isinstance(x, np.ma.MaskedArray) and np.ma.is_masked(x)), None)
    if masked is not None:
        raise DataError(f"row {masked} of X has masked entries; fill them in (row.filled(...)).")
    return array


def count(X: Any) -> int:
    """The number of rows of any container."""
    shape = getattr(X, "shape", None)
    if shape == () or not (shape or hasattr(X, "__len__")):
        raise DataError(f"X must be a table, or a sequence of rows, but is {X!r}.")
    n = int(shape[0]) if shape else len(X)
    if n == 0:
        raise DataError(f"X is empty: {f'its shape is {shape}' if shape else 'it has no rows'}.")
    return n
