"""The features of polynomial kernels: the monomials of the columns, each once, times a weight of its degree."""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mercer._types import Array, Matrix
from mercer.engine import threads
from mercer.engine.tiles import spans
from mercer.loops.monomials import monomials

# Entries of a task: few enough that Ctrl-C works between two.
_ENTRIES = 2**20


def feature_count(d: int, degree: int, lowest: int) -> int:
    """Number of monomials of degrees ``lowest`` (0 or ``degree``) to ``degree`` in ``d`` columns.

    Examples
    --------
    >>> feature_count(3, 2, 0), feature_count(3, 2, 2)
    (10, 6)
    """
    return math.comb(d + degree, degree) if lowest == 0 else math.comb(d + degree - 1, degree)


def counts_by_degree(degree: int, m: int) -> NDArray[np.int64]:
    """``counts[t, k]``: monomials of degree ``t`` in ``k`` columns, for all up to ``degree`` and ``m``."""
    counts = np.zeros((degree + 1, m + 1), np.int64)
    counts[0] = 1
    for t in range(1, degree + 1):
        np.cumsum(counts[t - 1, 1:], out=counts[t, 1:])
    return counts


def degree_factors(degree: int, offset: float) -> NDArray[np.float64]:
    """``sqrt(p! / (p - t)! c^(p - t))`` for the degrees t from 0 to p; infinite where that overflows.

    >>> (degree_factors(2, 1.0) ** 2).round(9).tolist()
    [1.0, 2.0, 2.0]
    """
    with np.errstate(over="ignore", invalid="ignore"):
        falling = np.cumprod([1.0, *np.sqrt(np.arange(degree, 0, -1.0))])
        return np.asarray(falling * np.float64(math.sqrt(offset)) ** np.arange(degree, -1.0, -1.0))


def polynomial_features(X: Array, degree: int, scale: float, offset: float) -> Matrix:
    """F (n, p) in float64 with ``F F^T = (scale X X^T + offset)^degree``, for an array X of shape (n, d).

    Entries that overflow are infinite.

    >>> X = np.array([[1.0, 2.0], [3.0, -1.0]])
    >>> F = polynomial_features(X, 2, 1.0, 1.0)
    >>> F.shape, (F @ F.T).round(9).tolist()
    ((2, 6), [[36.0, 4.0], [4.0, 121.0]])
    """
    lowest = 0 if offset > 0 else degree
    n, d = X.shape
    width = feature_count(d, degree, lowest)
    counts, factors = counts_by_degree(degree, d), degree_factors(degree, offset)
    out = np.empty((n, width))

    def rows(part: slice) -> None:
        some: Any = math.sqrt(scale) * X[part].astype(np.float64)
        monomials(some, np.ones(len(some)), factors, counts, lowest, out[part])

    threads.run([partial(rows, part) for part in spans(n, max(1, _ENTRIES // max(width, 1)))])
    return out
