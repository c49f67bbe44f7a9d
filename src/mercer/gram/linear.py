"""Products with the Gram matrix of a linear kernel through the columns: ``K V = X (Z^T V)``."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import scipy.sparse as sp

from mercer._types import Matrix
from mercer.engine import threads
from mercer.engine.tiles import spans
from mercer.kernels.base import LinearParts

# Rows in a task: few enough for a float64 copy to stay in the cache.
_SPAN = 4096
# An entry of K costs about as much as this many columns.
_GAIN = 4


def worth_it(left: LinearParts, right: LinearParts) -> bool:
    """Whether this is faster than computing the entries of K, because the rows have few columns."""
    n, m = left[0][1].shape[0], right[0][1].shape[0]
    columns = sum(max(_width(A), _width(B)) for (_, A), (_, B) in zip(left, right, strict=True))
    return columns * _GAIN <= min(n, m)


def _width(A: Any) -> float:
    """The columns that a product with V reads and writes for a row."""
    n, p = A.shape
    # The sums over strips of sparse rows have all columns.
    return float(min(p, A.nnz / max(n, 1) + p / min(_SPAN, max(n, 1)))) if sp.issparse(A) else float(p)


def linear_product(left: LinearParts, right: LinearParts, V: Matrix, n_jobs: int | None = None) -> Matrix:
    """Return ``sum over parts of weight * A (B^T V)`` in float64; bit-identical for any number of threads.

    Parameters
    ----------
    left, right : list of (float, array or csr_matrix)
        Pairs of a weight and A of shape (n, d), and the same for B of shape (m, d).
    V : ndarray of shape (m, k)

    Examples
    --------
    >>> A = np.array([[1.0, 2.0], [3.0, 4.0]])
    >>> linear_product([(2.0, A)], [(2.0, A)], np.ones((2, 1))).ravel().tolist()
    [32.0, 72.0]
    """
    out = np.zeros((left[0][1].shape[0], V.shape[1]))
    if len(out) <= _SPAN and len(V) <= _SPAN:
        n_jobs = 1
    for (weight, A), (_, B) in zip(left, right, strict=True):
        strips = spans(B.shape[0], _SPAN)
        sums = np.zeros((len(strips), B.shape[1], V.shape[1]))
        threads.run([partial(_gather, B, V, rows, sums[i]) for i, rows in enumerate(strips)], n_jobs)
        # The sum has the order of the strips, whichever thread computed them.
        inner = weight * sums.sum(axis=0)
        threads.run([partial(_spread, A, inner, rows, out) for rows in spans(A.shape[0], _SPAN)], n_jobs)
    return out


def _gather(B: Any, V: Matrix, rows: slice, out: Matrix) -> None:
    threads.checkpoint()
    out[...] = B[rows].astype(np.float64, copy=False).T @ V[rows]


def _spread(A: Any, inner: Matrix, rows: slice, out: Matrix) -> None:
    threads.checkpoint()
    out[rows] += A[rows].astype(np.float64, copy=False) @ inner
