"""Find and count equal rows, in an order that depends only on their contents."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from mercer._types import CheckedRows, Vector
from mercer.data.columns import MixedRows
from mercer.data.objects import Objects
from mercer.engine.tiles import spans

Keys = NDArray[np.uint64]
# Rows, and entries, that are looked at together.
_ROWS, _ENTRIES = 4096, 1 << 20
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)


def distinct_rows(X: CheckedRows, codes: NDArray[np.integer], weight: Vector) -> tuple[NDArray[np.intp], Vector]:
    """Return the first of each group of rows that are equal in ``X`` and ``codes``, with their summed weights.

    The order of the answer depends on the rows alone, not on the order in which they come, and is the same for arrays
    and sparse matrices.

    Examples
    --------
    >>> X = np.array([[1.0, 2.0], [0.0, 3.0], [1.0, 2.0]])
    >>> rows, weight = distinct_rows(X, np.array([0, 0, 0]), np.array([1.0, 1.0, 2.0]))
    >>> sorted(zip(rows.tolist(), weight.tolist()))
    [(0, 3.0), (1, 1.0)]
    """
    keys = row_keys(X)
    order = np.lexsort((np.arange(len(keys)), codes, keys))
    keys, codes = keys[order], codes[order]
    alike = np.flatnonzero((keys[1:] == keys[:-1]) & (codes[1:] == codes[:-1]))
    alike = alike[same_rows(X[order[alike]], X[order[alike + 1]])]
    first = np.ones(len(order), dtype=bool)
    first[alike + 1] = False
    return order[first], np.add.reduceat(weight[order], np.flatnonzero(first))


def equal_rows(X: CheckedRows) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Return the first row of each group of equal rows of ``X``, (m,), and the group of every row, (n,).

    As in :func:`distinct_rows`, the order of the groups comes from the contents of the rows.

    Examples
    --------
    >>> first, owner = equal_rows(np.array([[1.0, 2.0], [0.0, 3.0], [1.0, 2.0]]))
    >>> sorted(first.tolist()), bool(owner[0] == owner[2] != owner[1])
    ([0, 1], True)
    """
    keys = row_keys(X)
    order = np.lexsort((np.arange(len(keys)), keys))
    first = np.ones(len(order), dtype=bool)
    alike = np.flatnonzero(keys[order[1:]] == keys[order[:-1]])
    first[alike[same_rows(X[order[alike]], X[order[alike + 1]])] + 1] = False
    owner = np.empty(len(order), dtype=np.intp)
    owner[order] = np.cumsum(first) - 1
    return order[first], owner


def row_keys(X: Any) -> Keys:
    """Return a number for each row of an array or CSR matrix, (n,); rows with equal entries have the same number.

    Examples
    --------
    >>> keys = row_keys(np.array([[1.0, 0.0], [0.0, 1.0], [1.0, -0.0]]))
    >>> bool(keys[0] == keys[2]), bool(keys[0] == keys[1])
    (True, False)
    """
    if isinstance(X, (Objects, MixedRows)):
        return X.keys()
    columns = _mixed(np.arange(1, X.shape[1] + 1, dtype=np.uint64) * _GOLDEN)
    if sp.issparse(X):
        terms = _terms(X.data, columns[X.indices])
        sums = np.concatenate([np.zeros(1, dtype=np.uint64), np.cumsum(terms, dtype=np.uint64)])
        return sums[X.indptr[1:]] - sums[X.indptr[:-1]]
    keys = np.empty(len(X), dtype=np.uint64)
    for rows in spans(len(X), max(1, min(_ROWS, _ENTRIES // max(1, X.shape[1])))):
        keys[rows] = _terms(X[rows], columns).sum(axis=1, dtype=np.uint64)
    return keys


def _terms(values: NDArray[np.floating], columns: Keys) -> Keys:
    """Return the contribution of each entry to the key of its row; zero for entries of 0."""
    bits = np.ascontiguousarray(values, dtype=np.float64).view(np.uint64)
    return np.where(values != 0, _mixed(bits ^ columns), np.uint64(0))


def _mixed(bits: Keys) -> Keys:
    """The finaliser of SplitMix64 (Steele, Lea and Flood, 2014): every bit of the input affects all bits."""
    bits = (bits ^ (bits >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    bits = (bits ^ (bits >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return bits ^ (bits >> np.uint64(31))


def same_rows(A: Any, B: Any) -> NDArray[np.bool_]:
    """Whether each row of ``A`` is equal to the same row of ``B``, (n,)."""
    if isinstance(A, (Objects, MixedRows)):
        return A.same(B)
    if sp.issparse(A):
        return np.asarray((A != B).sum(axis=1)).ravel() == 0
    return np.asarray((A == B).all(axis=1))


def places_among(vectors: Any, old: Any) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Return the places of rows ``old``: those of equal rows of ``vectors``, else behind them; and the latter rows.

    Examples
    --------
    >>> places_among(np.array([[1.0], [2.0]]), np.array([[3.0], [2.0]]))
    (array([2, 1]), array([0]))
    """
    n = vectors.shape[0]
    keys, others = row_keys(vectors), row_keys(old)
    order = np.argsort(keys, kind="stable")
    at = order[np.minimum(np.searchsorted(keys[order], others), n - 1)]
    hit = np.flatnonzero(keys[at] == others)
    hit = hit[same_rows(stacked(vectors[:0], old[hit]), vectors[at[hit]])]
    places = np.full(len(others), -1)
    # Of equal old rows, only the first gets the place of the row equal to them.
    targets, first = np.unique(at[hit], return_index=True)
    places[hit[first]] = targets
    return behind(places, n)


def behind(places: NDArray[np.intp], n: int) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Return the places with -1 replaced by n, n + 1, ..., and the positions of the replaced ones.

    Examples
    --------
    >>> behind(np.array([1, -1, 0, -1]), 5)
    (array([1, 5, 0, 6]), array([1, 3]))
    """
    others = np.flatnonzero(places < 0)
    places = places.copy()
    places[others] = n + np.arange(len(others))
    return places, others


def stacked(X: Any, more: Any) -> Any:
    """Stack both vertically, in the layout of ``X``.

    Examples
    --------
    >>> stacked(np.ones((1, 2)), np.zeros((1, 2))).tolist()
    [[1.0, 1.0], [0.0, 0.0]]
    """
    if isinstance(X, (Objects, MixedRows)):
        return X.joined(more)
    if sp.issparse(X):
        return sp.vstack([X, sp.csr_array(more)], format="csr")
    return np.vstack([X, more.toarray() if sp.issparse(more) else more])
