"""A factor of the leading part of a positive semi-definite matrix, as large as pays for a preconditioner."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.linalg import blas, lapack

from mercer._types import Matrix, Vector
from mercer.engine import arrays, threads
from mercer.solvers.linear.linear_system import ScaledGram

# Pivots at once; those of less than a share of the largest wait for their turn.
_BLOCK = 64
_COMPARABLE = 0.05
# This many blocks without a lower cost end the search for the best rank.
_PATIENCE = 3
_ROUNDINGS = 32.0 * float(np.finfo(float).eps)


def partial_factor(matrix: ScaledGram, most: int, cost: Callable[[int, float], float]) -> tuple[Matrix, Vector]:
    """Return ``G`` (r, n) and the diagonal of ``A - G^T G``, for the rank r of the least cost.

    Parameters
    ----------
    matrix : ScaledGram of shape (n, n)
        A. One that is not positive semi-definite has a factor of few rows or none.
    most : int
        The largest rank.
    cost : callable
        From a rank, and the largest entry of the diagonal that is left, to a number.

    Notes
    -----
    A pivoted Cholesky factorisation by blocks of large pivots, of :math:`n r^2` operations.

    Examples
    --------
    >>> from mercer.gram import PrecomputedGram
    >>> x = np.array([[1.0], [2.0], [3.0]])
    >>> G, left = partial_factor(ScaledGram(PrecomputedGram(x @ x.T)), 3, lambda rank, left: left)
    >>> G.round(9).tolist(), left.round(9).tolist()
    ([[1.0, 2.0, 3.0]], [0.0, 0.0, 0.0])
    """
    left = matrix.diagonal().copy()
    n, rank = len(left), 0
    scale = float(left.max())
    factor = arrays.empty((most, n), np.float64)
    best, least, diagonal, worse = 0, cost(0, scale), left.copy(), 0
    while rank < most and float(left.max()) > _ROUNDINGS * scale and worse < _PATIENCE:
        threads.checkpoint()
        count = min(_BLOCK, most - rank)
        candidates = np.argpartition(left, n - count)[n - count :]
        rows = matrix.rows(candidates) - factor[:rank, candidates].T @ factor[:rank]
        tol = _COMPARABLE * float(left.max())
        block, pivots, accepted, _ = lapack.dpstrf(np.asfortranarray(rows[:, candidates]), tol=tol, lower=1)
        if not accepted:
            break
        order = pivots[:accepted] - 1
        new = blas.dtrsm(1.0, block[:accepted, :accepted], np.asfortranarray(rows[order]), lower=1)
        factor[rank : rank + accepted] = new
        left -= np.einsum("ij,ij->j", new, new)
        left[candidates[order]] = 0.0
        np.maximum(left, 0.0, out=left)
        rank += accepted
        price = cost(rank, float(left.max()))
        worse += 1
        if price < least:
            best, least, diagonal, worse = rank, price, left.copy(), 0
    return factor[:best], diagonal
