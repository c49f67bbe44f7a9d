"""Explicit features of composed kernels, as new arrays that are reserved from the memory budget first."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import ExitStack
from typing import Any

import numpy as np
import scipy.sparse as sp

from mercer._errors import MemoryBudgetError
from mercer._types import Array
from mercer.engine import memory
from mercer.kernels.base import Expression
from mercer.kernels.inputs import Rows

# A value in float64, and beside it in a sparse array the number of a column.
_VALUE, _COLUMN = 8, 4


def feature_bytes(features: Any) -> int:
    """Memory of features in float64.

    >>> feature_bytes(np.ones((3, 2), np.float32)), feature_bytes(sp.csr_array(np.eye(3)))
    (48, 36)
    """
    return (_VALUE + _COLUMN) * int(features.nnz) if sp.issparse(features) else _VALUE * int(features.size)


def _unreserved(features: Any, rows: Rows) -> int:
    """Memory of features that are not the rows themselves: nobody has reserved it yet."""
    return 0 if rows.holds(features) else feature_bytes(features)


def multiplied(features: Any, factors: Array, rows: Rows) -> Any | None:
    """Features (n, p) of rows with row i multiplied by ``factors[i]``, in float64; None without room for them.

    Features in float32 are those of the rows, and exact. Their product in float32 would belong to another kernel, and
    the residual of a system would be that of this other one.

    >>> rows = Rows(np.ones((2, 1), np.float32))
    >>> multiplied(rows.vectors, np.array([0.1, 0.2]), rows).ravel().tolist()
    [0.1, 0.2]
    """
    nbytes = feature_bytes(features) + _unreserved(features, rows)
    if nbytes > memory.room(nbytes):
        return None
    if not sp.issparse(features):
        return np.multiply(features, factors[:, None], dtype=np.float64)
    values = features.data * np.repeat(factors.astype(np.float64, copy=False), np.diff(features.indptr))
    return sp.csr_matrix((values, features.indices, features.indptr), shape=features.shape)


def joined(terms: Iterable[Expression], rows: Rows, most: int) -> Any | None:
    """The features of all terms side by side; None where a term has none, or there are too many, or too little room."""
    parts: list[Any] = []
    with ExitStack() as stack:
        for term in terms:
            features = term._explicit_features(rows, most)
            if features is None:
                return None
            try:
                # Of the part itself, and of its place in the result.
                nbytes = feature_bytes(features) + _unreserved(features, rows)
                stack.enter_context(memory.reserve(nbytes, "explicit features of a sum"))
            except MemoryBudgetError:
                return None
            parts.append(features)
            most -= features.shape[1]
        return sp.hstack(parts, format="csr") if any(map(sp.issparse, parts)) else np.hstack(parts)
