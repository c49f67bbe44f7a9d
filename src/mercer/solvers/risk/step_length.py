"""The largest eigenvalue of a kernel matrix between weights, which says how long steps of gradient descent may be."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.linalg import eigh_tridiagonal

from mercer.engine import threads
from mercer.solvers.matrix import Vector

Multiply = Callable[[Vector], Vector]

# Products with the matrix at most, and the residual of the eigenvalue, in its units, that is small enough.
STEPS = 64
_RESIDUAL = 1e-9


def largest_eigenvalue(multiply: Multiply, n: int, start: Vector | None = None) -> tuple[float, float]:
    """The largest eigenvalue of a symmetric matrix by Lanczos, and the residual of the vector it belongs to.

    The eigenvalue is never overestimated but by rounding, and within the residual of it there is one of the matrix.

    Parameters
    ----------
    multiply : callable
        From a vector (n,) to its product with the matrix.
    n : int
    start : ndarray of shape (n,), optional
        Where to begin, not zero; a fixed random vector by default.

    References
    ----------
    Golub and Van Loan, "Matrix Computations" (4th edition, 2013), section 10.1.

    Examples
    --------
    >>> value, residual = largest_eigenvalue(lambda v: np.array([1.0, 2.0, 5.0]) * v, 3)
    >>> round(value, 9), residual < 1e-9
    (5.0, True)
    """
    v = np.random.default_rng(0).standard_normal(n) if start is None else start
    steps = min(STEPS, n)
    basis = np.zeros((steps, n))
    diagonal, beside = np.zeros(steps), np.zeros(steps)
    value = residual = 0.0
    for k in range(steps):
        threads.checkpoint()
        basis[k] = v / np.linalg.norm(v)
        v = multiply(basis[k])
        diagonal[k] = basis[k] @ v
        # Twice, since what the first time leaves may be rounding.
        for _ in range(2):
            v = v - basis[: k + 1].T @ (basis[: k + 1] @ v)
        beside[k] = float(np.linalg.norm(v))
        values, vectors = eigh_tridiagonal(diagonal[: k + 1], beside[:k], select="i", select_range=(k, k))
        value, residual = float(values[0]), float(beside[k] * abs(vectors[-1, 0]))
        if residual <= _RESIDUAL * abs(value) or beside[k] <= _RESIDUAL * abs(value):
            break
    return value, residual
