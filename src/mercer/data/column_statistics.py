"""Statistics of a table of numbers: its centre, which columns vary, and whether all entries are zeros and ones."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

# Rows that tell where most entries of a column are.
_SAMPLE = 64
# Constant columns are left out where they are at least one in so many.
_FEW_CONSTANT = 32


def variance_of_entries(X: Any, share: NDArray[np.float64] | None = None) -> float:
    """The variance of all entries of ``X`` (n, d), an array or a sparse matrix whose zeros count.

    ``share`` (n,) is the share of each entry of a row in the mean, so that ``d sum(share) = 1``; None for equal ones.
    The mean is subtracted before squares are taken: ``E[x^2] - E[x]^2`` cancels where entries are far from 0.

    >>> import scipy.sparse as sp
    >>> variance_of_entries(np.array([[1e9, 1e9 + 2]])), variance_of_entries(sp.csr_array([[0.0, 2.0]]))
    (1.0, 1.0)
    """
    if not sp.issparse(X):
        if share is None:
            return float(X.var())
        return float(share @ np.square(X - (share @ X).sum()).sum(axis=1))
    rows = sp.csr_array(X)
    if not rows.has_canonical_format:
        rows = rows.copy()
        rows.sum_duplicates()
    n, d = rows.shape
    of_row = np.full(n, 1.0 / (n * d)) if share is None else share
    counts = np.diff(rows.indptr)
    of_entry, values = np.repeat(of_row, counts), rows.data.astype(np.float64)
    mean = float(of_entry @ values)
    values -= mean
    total = float(of_entry @ np.square(values)) + mean * mean * float(of_row @ (d - counts))
    # As of an array: what overflows the precision of X is infinite.
    return float(X.dtype.type(total)) if X.dtype.kind == "f" else total


def middle(X: np.ndarray) -> NDArray[np.float64]:
    """The median of each column, among a few rows taken at random.

    Rows that are far away do not move it, so that the differences of the others from it keep their digits. It is an
    entry of the column: differences of whole numbers stay whole, and rows at equal distances have equal distances to
    the last bit, which decides ties among neighbours.

    >>> middle(np.array([[1e20], [5.0], [6.0]])).tolist()
    [6.0]
    """
    n = len(X)
    some = X if n <= _SAMPLE else X[np.random.default_rng(0).integers(n, size=_SAMPLE)]
    return np.sort(some, axis=0)[(len(some) - 1) // 2].astype(np.float64)


def varying_columns(X: np.ndarray | sp.csr_matrix) -> slice | np.ndarray:
    """The columns that are not constant; all of them where too few are to be worth an array that is not a view."""
    # A few rows tell most columns from constant ones without a pass over them.
    doubtful = np.flatnonzero(np.ptp(X[:64], axis=0) == 0)
    constant = doubtful[(X[:, doubtful] == X[0, doubtful]).all(axis=0)]
    if len(constant) * _FEW_CONSTANT < X.shape[1]:
        return slice(None)
    return np.setdiff1d(np.arange(X.shape[1]), constant)


def is_binary(X: Any) -> bool:
    """Whether all entries of an array or CSR matrix are zeros and ones."""
    values = X.data if sp.issparse(X) else X
    # A look at a few rows tells most tables from binary ones without a pass over them.
    return all(bool(((part == 0) | (part == 1)).all()) for part in (values[:16], values))
