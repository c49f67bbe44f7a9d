"""Attributes in the layout of X: CSR after a fit to CSR, as in scikit-learn's support vector machines."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from mercer._types import Vector


def laid_out_as(X: Any, values: Vector) -> Any:
    """Return ``values`` (k, m) as a CSR matrix of the class of ``X`` if that is sparse, else as they are.

    Examples
    --------
    >>> laid_out_as(sp.csr_array(np.eye(2)), np.array([[1.0, 0.0]])).nnz
    1
    """
    return type(X)(values) if sp.issparse(X) else values


def dense(values: Any) -> Vector:
    """Return ``values`` as an array, whatever their layout.

    Examples
    --------
    >>> dense(sp.csr_array(np.eye(2))).tolist(), dense(np.ones(1)).tolist()
    ([[1.0, 0.0], [0.0, 1.0]], [1.0])
    """
    return np.asarray(values.toarray() if sp.issparse(values) else values)


def read_only(values: Any) -> Any:
    """Make ``values`` read-only and return them, because changing a computed attribute would not change the model.

    Examples
    --------
    >>> read_only(np.ones(1)).flags.writeable
    False
    """
    (values.data if sp.issparse(values) else values).flags.writeable = False
    return values
