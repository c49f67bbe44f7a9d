"""How much a Gaussian process's predictions for new rows change when a training row is left out."""

from __future__ import annotations

import numpy as np
import scipy.linalg

from mercer._types import Matrix, Vector
from mercer.engine import lapack
from mercer.solvers.gaussian.posterior import Posterior


def left_out_moves(
    posterior: Posterior, block: Matrix, prior: Vector | None, H: Matrix | None
) -> tuple[Matrix, Matrix, Vector | None]:
    r"""Means of new rows, the shares v of left-out errors in them, and variances.

    The mean is linear in the targets, :math:`f(x) = \sum_i v_i(x)\, y_i`, and without row i

    .. math:: f_{-i}(x) = f(x) - v_i(x)\, (y_i - f_{-i}(x_i)), \qquad
              \sigma^2_{-i}(x) = \sigma^2(x) + v_i(x)^2\, \sigma^2_{-i}(x_i)

    with :math:`v = A^{-1} k(x)`, and for a mean function of the basis Q,
    :math:`v = P\, k(x) + A^{-1} Q\, (Q^\top A^{-1} Q)^{-1} q(x)`; see :mod:`mercer.solvers.gaussian.trend`.

    Parameters
    ----------
    posterior : Posterior
        Of n rows.
    block : ndarray of shape (m, n), C-ordered
        Kernel values of new and training rows.
    prior : ndarray of shape (m,), optional
        Variances of the new rows before any row was seen.
    H : ndarray of shape (m, r), optional
        Their basis functions.

    Returns
    -------
    mean : ndarray of shape (m, t)
    moves : ndarray of shape (m, n)
    variance : ndarray of shape (m,) or None
        0 or more; None without ``prior``.

    Examples
    --------
    >>> posterior = Posterior(np.array([[2.0]]), np.array([[0.5]]), None)
    >>> mean, moves, variance = left_out_moves(posterior, np.array([[2.0]]), np.array([3.0]), None)
    >>> mean.tolist(), moves.tolist(), variance.tolist()
    ([[1.0]], [[0.5]], [2.0])
    """
    mean = block @ posterior.alpha
    moves = block.copy()
    lapack.solve_cholesky(posterior.factor, moves)
    variance = None if prior is None else prior - np.einsum("ij,ij->i", block, moves)
    trend = posterior.trend
    if trend is not None and H is not None:
        rest = H @ trend.transform - block @ trend.solved
        scaled = scipy.linalg.solve_triangular(trend.lower, rest.T, lower=True)
        moves += scaled.T @ trend.reduced.T
        mean += (H @ trend.transform) @ trend.coefficients
        if variance is not None:
            variance += np.einsum("ij,ij->j", scaled, scaled)
    return mean, moves, None if variance is None else np.maximum(variance, 0.0)
