"""What rounding can make of products with a kernel matrix, for bounds that have to hold nevertheless."""

from __future__ import annotations

import numpy as np

from mercer._types import Matrix, Vector


def product_rounding(diagonal: Vector, V: Matrix) -> Matrix:
    """How far the entries of ``K V`` may be off by rounding of K and of the product in float64, (n, k).

    An entry of K is at most the geometric mean of two on the diagonal. The errors of a sum of n terms are random for
    practical purposes, so that they grow with the root of n and with that of the sum of squares.

    Parameters
    ----------
    diagonal : ndarray of shape (n,)
        That of K.
    V : ndarray of shape (n, k)

    References
    ----------
    N. J. Higham, T. Mary, "A new approach to probabilistic rounding error analysis", SIAM J. Sci. Comput. 41 (2019),
    A2815-A2835.

    Examples
    --------
    >>> bool((product_rounding(np.array([1e16, 1e16]), np.ones((2, 1))) > 1.0).all())
    True
    """
    with np.errstate(over="ignore"):
        roots = np.sqrt(np.abs(diagonal))[:, None]
        size = np.sqrt(((roots * V) ** 2).sum(axis=0))
        return np.asarray(np.sqrt(len(V)) * np.finfo(np.float64).eps * roots * size)


def eigenvalue_rounding(n: int, largest: float, size: float) -> float:
    """How far rounding of n rows with k(x, x) of at most ``largest`` moves eigenvalues, in units of that of ``size``.

    >>> eigenvalue_rounding(100, 1e16, 1.0) > 1.0, eigenvalue_rounding(100, 1.0, 10.0) < 1e-15
    (True, True)
    """
    return float(np.sqrt(n) * np.finfo(np.float64).eps * largest / size) if size > np.finfo(np.float64).tiny else 0.0
