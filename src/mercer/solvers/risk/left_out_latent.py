r"""Latent values of rows without their own label, from one solution: a Newton step, or a cavity.

The posterior of the latent values at the training rows, or a quadratic model of a penalised risk at its minimum, has
the covariance :math:`A = (\mathcal K^{-1} + W)^{-1}`, where W has a block for each row, :math:`\mathcal K` is K for
each latent value of a row, and offsets that are not penalised are integrated out. Without the share s of row i, whose
slope is :math:`a_i = -\ell'_i`, one Newton step leads from its value :math:`f_i` to

.. math:: f_i - (I - s A_{ii} W_i)^{-1} A_{ii}\, s\, a_i, \qquad \Sigma_i = (I - s A_{ii} W_i)^{-1} A_{ii}

(for logistic regression: K. Rahnama Rad and A. Maleki, "A scalable estimate of the out-of-sample prediction error via
approximate leave-one-out", J. R. Stat. Soc. B 82, 2020; for Gaussian processes, where :math:`\Sigma_i` is the variance
of the cavity: Rasmussen and Williams (2006), equation 3.56). For the squared loss this is exact.
"""

from __future__ import annotations

from contextlib import ExitStack

import numpy as np
import scipy.linalg
from numpy.typing import NDArray

from mercer._types import Matrix, Vector
from mercer.engine import threads
from mercer.engine.tiles import spans
from mercer.gram.hold import reserve_square
from mercer.gram.protocol import GramMatrix

Blocks = NDArray[np.float64]


def left_out_latent(
    gram: GramMatrix,
    values: Matrix,
    slopes: Matrix,
    roots: Blocks,
    share: Vector,
    *,
    offsets: bool,
    n_jobs: int | None = None,
) -> tuple[Matrix, Blocks]:
    """Return the latent values of each row without its label, (n, c), and their covariances, (n, c, c).

    Parameters
    ----------
    gram : GramMatrix
        K, (n, n).
    values, slopes : ndarray of shape (n, c)
        f, and a with ``f = K a`` plus offsets.
    roots : ndarray of shape (n, c, c)
        R with ``W_i = R_i R_i^T``.
    share : ndarray of shape (n,)
        The part of each row that is left out, 1 for all of it.
    offsets : bool
        Whether each of the c functions has an offset that is not penalised.
    n_jobs : int, optional

    Raises
    ------
    MemoryBudgetError
        If a matrix of n c rows does not fit the memory budget.
    """
    n, c = values.shape
    with ExitStack() as stack, threads.workers(n_jobs):
        reserve_square(stack, n * c, 24, "the covariance of the latent values of all rows")
        K = np.empty((n, n))
        gram.block(None, None, K)
        covariances = _covariances(K, roots, offsets)
        curvature = roots @ roots.transpose(0, 2, 1)
        left_out = np.eye(c) - share[:, None, None] * covariances @ curvature
        cavity = np.asarray(np.linalg.solve(left_out, covariances), dtype=np.float64)
        step = share[:, None] * np.einsum("ijk,ik->ij", cavity, slopes)
    return values - step, cavity


def _covariances(K: Matrix, roots: Blocks, offsets: bool) -> Blocks:
    """The blocks ``A_ii``, (n, c, c)."""
    n, c, _ = roots.shape
    # Rows of the large matrices: all rows for the first latent value, then for the second.
    B = np.zeros((n * c, n * c))
    for j in range(c):
        for k in range(c):
            mixed = sum(roots[:, m, j, None] * K * roots[:, m, k] for m in range(c))
            B[j * n : (j + 1) * n, k * n : (k + 1) * n] = mixed
    B[np.arange(n * c), np.arange(n * c)] += 1.0
    factor = scipy.linalg.cholesky(B, lower=True, overwrite_a=True, check_finite=False)
    out = np.zeros((n, c, c))
    # Rows of L^-1 R^T K for each latent value, whose products are what the labels explain.
    explained = np.empty((c, n * c, n))
    for m in range(c):
        for j in range(c):
            explained[m, j * n : (j + 1) * n] = roots[:, m, j, None] * K
        explained[m] = scipy.linalg.solve_triangular(factor, explained[m], lower=True, check_finite=False)
    for part in spans(n):
        some = explained[:, :, part]
        out[part] = -np.einsum("kri,mri->ikm", some, some)
        out[part, np.arange(c), np.arange(c)] += K.diagonal()[part, None]
    return out + _of_offsets(factor, explained, roots) if offsets else out


def _of_offsets(factor: Matrix, explained: Blocks, roots: Blocks) -> Blocks:
    """What offsets with a flat prior add to the blocks: ``(H - K P H) (H' P H)^-1 (H - K P H)'``."""
    n, c, _ = roots.shape
    # L^-1 R' H with H the indicators of the latent values.
    whitened = np.zeros((n * c, c))
    for m in range(c):
        for j in range(c):
            whitened[j * n : (j + 1) * n, m] = roots[:, m, j]
    whitened = scipy.linalg.solve_triangular(factor, whitened, lower=True, check_finite=False)
    # A common shift of all classes changes nothing, so that the matrix may be singular.
    inverse = np.linalg.pinv(whitened.T @ whitened, rcond=1e-10, hermitian=True)
    rest = np.eye(c) - np.einsum("mri,rk->imk", explained, whitened)
    return np.asarray(rest @ inverse @ rest.transpose(0, 2, 1))
