"""``k(x, x)`` of new rows, which a precomputed matrix does not hold."""

from __future__ import annotations

from typing import Any

import numpy as np

from mercer._errors import DataError, ParameterError
from mercer._types import Vector

# Differences in units of rounding that say nothing.
_ROUNDING = 1e3


def diagonal_of_new(given: Any, own: Vector, m: int, dtype: np.dtype, way_out: str) -> Vector:
    """What is given, checked; else the number that all training rows have for theirs, ``own``.

    Raises
    ------
    DataError
        If it is not one finite number for each of the m rows.
    ParameterError
        If nothing is given, and the training rows have different numbers; with the way out.

    Examples
    --------
    >>> diagonal_of_new(None, np.ones(5), 2, np.dtype(float), "").tolist()
    [1.0, 1.0]
    """
    if given is not None:
        diagonal = np.asarray(given, dtype=np.float64)
        if diagonal.shape != (m,) or not np.isfinite(diagonal).all():
            raise DataError(
                f"diagonal must be {m} finite numbers, k(x, x) of each new row, but has the shape "
                f"{diagonal.shape}" + ("." if np.isfinite(diagonal).all() else " and entries that are not finite.")
            )
        return diagonal
    first = own[0]
    if np.abs(own - first).max() > _ROUNDING * np.finfo(dtype).eps * abs(first):
        raise ParameterError(
            f"distances need k(x, x) of the new rows, which the matrix does not contain; pass diagonal=, or {way_out}."
        )
    return np.full(m, first)
