"""Choose support points that are linearly independent by a margin, and invert their Gram matrix."""

from __future__ import annotations

import numpy as np

from mercer._types import Integers, Vector
from mercer.engine import decompositions, lapack, threads

_ROUNDING = 1e-15


def independent_points(K: Vector, tau: float) -> tuple[Integers, Vector]:
    r"""Points of which none is in the span of the others, and the inverse of their Gram matrix.

    Returns ``basis`` (r,), the longest beginning of the order of a pivoted Cholesky factorisation for which

    .. math:: \operatorname{dist}^2(\phi(x_j), \operatorname{span}_{i \ne j} \phi(x_i)) = 1 / (K^{-1})_{jj}
              \ge \tau \, k(x_j, x_j)

    for each point, and :math:`K^{-1}` (r, r) of these points in this order.

    Parameters
    ----------
    K : ndarray of shape (m, m)
        The Gram matrix of all points.
    tau : float
        The least share, above 0.

    Examples
    --------
    >>> K = np.array([[1.0, 1.0, 0.5], [1.0, 1.0, 0.5], [0.5, 0.5, 1.0]])
    >>> basis, inverse = independent_points(K, 1e-6)
    >>> basis.tolist(), inverse.round(2).tolist()
    ([0, 2], [[1.33, -0.67], [-0.67, 1.33]])
    """
    lengths = np.sqrt(np.maximum(K.diagonal(), 0.0))
    scale = np.divide(1.0, lengths, out=np.zeros_like(lengths), where=lengths > 0)
    if not scale.any():
        return np.empty(0, dtype=np.intp), np.zeros((0, 0))
    with threads.one_blas_thread():
        factor = np.array(scale[:, None] * K * scale, order="C")
        order, rank = decompositions.factor_pivoted(factor, tau)
        upper = np.ascontiguousarray(factor[:rank, :rank])
        del factor
        lapack.invert_triangle(upper)
        inverse = upper.T
        # The inverse of a leading block of the factor is the leading block of its inverse.
        diagonal, r = np.zeros(rank), 0
        while r < rank:
            diagonal[: r + 1] += inverse[r, : r + 1] ** 2
            if diagonal.max() * tau > 1.0:
                break
            r += 1
        basis = order[:r]
        inverse = np.tril(inverse[:r, :r])
        inverse *= scale[basis]
        return basis, lapack.multiply(np.ascontiguousarray(inverse.T), inverse)


def project(K: Vector, basis: Integers, inverse: Vector, theta: Vector) -> tuple[Vector, Vector]:
    r"""The projection of :math:`\sum_j \theta_j k(x_j, \cdot)` on the span of the chosen points.

    Returns its weights (k, r), and the lengths (k,) of what is lost; ``theta`` (k, m) weighs all points of ``K``.

    Examples
    --------
    >>> K = np.array([[1.0, 0.6], [0.6, 1.0]])
    >>> kept, lost = project(K, np.array([0]), np.array([[1.0]]), np.array([[1.0, 2.0]]))
    >>> kept.tolist(), lost.tolist()
    ([[2.2]], [1.6])
    """
    others = np.setdiff1d(np.arange(len(K)), basis)
    own = theta[:, basis]
    if not len(others):
        return own, np.zeros(len(theta))
    shares = inverse @ K[np.ix_(basis, others)]
    rest = K[np.ix_(others, others)] - K[np.ix_(others, basis)] @ shares
    weights = theta[:, others]
    squares = np.einsum("ki,ij,kj->k", weights, rest, weights)
    # A difference below rounding counts as rounding.
    rounding = _ROUNDING * (weights**2 @ K.diagonal()[others])
    return own + weights @ shares.T, np.sqrt(np.maximum(squares, rounding))
