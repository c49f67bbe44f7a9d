"""The inverse square root of the kernel matrix of landmarks, which may be singular."""

from __future__ import annotations

import numpy as np
import scipy.linalg

from mercer._types import Matrix


def inverse_root(K: Matrix) -> Matrix:
    """``K^(-1/2)`` on the span of the eigenvectors whose eigenvalues are above rounding, 0 elsewhere.

    Examples
    --------
    >>> inverse_root(np.diag([4.0, 0.0])).tolist()
    [[0.5, 0.0], [0.0, 0.0]]
    """
    values, vectors = scipy.linalg.eigh((K + K.T) / 2)
    large = values > len(K) * np.finfo(float).eps * max(values[-1], 0.0)
    roots = np.zeros_like(values)
    roots[large] = 1 / np.sqrt(values[large])
    root: Matrix = (vectors * roots) @ vectors.T
    return root
