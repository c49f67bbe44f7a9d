"""A symmetric matrix of low rank as ``Q B Q^T`` with a narrow Q: smooth kernels, and linear ones of few columns."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.linalg
from scipy.linalg import blas, lapack

from mercer._types import Matrix, Vector
from mercer.engine import lapack as engine_lapack
from mercer.engine.progress import Progress
from mercer.solvers.linear.band import BandForm, reduce_to_band
from mercer.solvers.linear.linear_system import ScaledGram
from mercer.solvers.linear.shifted_band import ShiftedBand

# Pivots at once; those of less than a share of the largest wait for their turn.
_BLOCK = 32
_COMPARABLE = 0.05
# What is left of the diagonal counts as rounding below this many units of the largest entry, and below twice the size
# of its negative entries; this share of the largest entry does not.
_ROUNDINGS = 32.0 * float(np.finfo(float).eps)
_NEGATIVE = 1e-11
# From this share of the most columns on it is tested whether some rows already have a higher rank.
_ASKED = 1 / 8
# Vectors that test whether what is left is nothing beside the diagonal, too.
_PROBES = 4


@dataclass(frozen=True, eq=False)
class LowRankForm:
    """``A = Q B Q^T`` with Q of shape (n, r); the same interface as a :class:`BandForm`.

    Coordinates of a vector are r in Q, and n for what is orthogonal to it.

    Parameters
    ----------
    inner : BandForm
        B, of size r; its own orthogonal factor is part of Q.
    Q : ndarray of shape (n, r), F-ordered
    """

    inner: BandForm
    Q: Matrix

    @property
    def shape(self) -> tuple[int, int]:
        """Of A."""
        return len(self.Q), len(self.Q)

    def into(self, V: Matrix) -> Matrix:
        """Coordinates of the columns of V, (r + n, k)."""
        inside = self.Q.T @ V
        outside = V - self.Q @ inside
        # Once more, so that what is left is orthogonal to Q by its own measure.
        again = self.Q.T @ outside
        return np.vstack([inside + again, outside - self.Q @ again])

    def back(self, V: Matrix) -> Matrix:
        """Vectors, (n, k), by their coordinates."""
        r = self.Q.shape[1]
        return np.asarray(self.Q @ V[:r] + V[r:])


class ShiftedLowRank:
    """``A + shift I`` for a matrix of low rank; the same interface as a :class:`ShiftedBand`.

    Examples
    --------
    >>> from mercer.gram import PrecomputedGram
    >>> X = np.array([[1.0], [2.0], [2.0]])
    >>> form = find_low_rank(ScaledGram(PrecomputedGram(X @ X.T)), most=2)
    >>> shifted = ShiftedLowRank(form, 1.0)
    >>> shifted.regular, round(float(np.exp(shifted.log_determinant)), 9), round(shifted.inverse_trace, 9)
    (True, 10.0, 2.1)
    >>> shifted.inverse_diagonal(form.Q).round(9).tolist()
    [0.9, 0.6, 0.6]
    """

    def __init__(self, form: LowRankForm, shift: float, floor: float = 0.0) -> None:
        self._n, self._r = form.Q.shape
        self._shift = shift
        self._inner = ShiftedBand(form.inner, shift, floor)
        self.regular = self._inner.regular and (self._r == self._n or shift > floor)

    @property
    def log_determinant(self) -> float:
        """Of ``A + shift I``."""
        return self._inner.log_determinant + (self._n - self._r) * float(np.log(self._shift))

    def solve(self, V: Matrix) -> Matrix:
        """The inverse, in coordinates: V of shape (r + n, k)."""
        return np.vstack([self._inner.solve(V[: self._r]), V[self._r :] / self._shift])

    @property
    def inverse_trace(self) -> float:
        """Of the inverse."""
        return self._inner.inverse_trace + (self._n - self._r) / self._shift

    def inverse_diagonal(self, Q: Matrix, n_jobs: int | None = None) -> Vector:
        """The diagonal of the inverse."""
        outside = np.maximum(1.0 - np.einsum("ij,ij->i", Q, Q), 0.0)
        return self._inner.inverse_diagonal(Q, n_jobs) + outside / self._shift


def find_low_rank(matrix: ScaledGram, most: int, n_jobs: int | None = None) -> LowRankForm | None:
    """The form of a positive semi-definite matrix whose rank, up to rounding, is at most ``most``; else None.

    Parameters
    ----------
    matrix : ScaledGram of shape (n, n)
        At most ``most`` of its rows are evaluated. A matrix that is not positive semi-definite has no such form.
    most : int
    n_jobs : int, optional
        Threads for the reduction of the factor.

    Notes
    -----
    A pivoted Cholesky factorisation, by blocks of large pivots, of :math:`n r^2` operations, which gives up at
    ``most`` columns. After an eighth of them, a Cholesky factorisation of a principal part of more than ``most`` rows
    shows in most cases that the rank is higher, which ends the search at 1 % of what a dense reduction costs. No entry
    of what is left out is larger than 32 units of rounding of the largest entry or than twice the rounding errors of
    the matrix itself, which make entries on the diagonal of the rest negative.

    References
    ----------
    H. Harbrecht, M. Peters and R. Schneider, "On the low-rank approximation by the pivoted Cholesky decomposition",
    Appl. Numer. Math. 62 (2012), 428-440.

    Examples
    --------
    >>> from mercer.gram import PrecomputedGram
    >>> X = np.arange(12.0).reshape(6, 2)
    >>> find_low_rank(ScaledGram(PrecomputedGram(X @ X.T)), most=3).Q.shape
    (6, 2)
    >>> find_low_rank(ScaledGram(PrecomputedGram(np.eye(6))), most=3) is None
    True
    """
    factor, rounding = _pivoted_factor(matrix, most)
    if factor is None or not factor.size or not _is_all(matrix, factor, rounding):
        return None
    basis, triangle = scipy.linalg.qr(factor, mode="economic", overwrite_a=True, check_finite=False)
    inner = reduce_to_band(np.ascontiguousarray(triangle @ triangle.T), n_jobs=n_jobs)
    return LowRankForm(inner, np.asfortranarray(basis @ inner.back(np.eye(len(triangle)))))


def _pivoted_factor(matrix: ScaledGram, most: int) -> tuple[Matrix | None, float]:
    """G with ``matrix = G G^T`` as far as the diagonal shows, or None if it has more columns; and what is rounding."""
    left = matrix.diagonal().copy()
    n = len(left)
    scale = float(left.max())
    rounding = _ROUNDINGS * scale
    factor = np.empty((n, most), order="F")
    rank = 0
    progress = Progress(most, "rank of the kernel matrix")
    sampled = False
    while (largest := float(left.max())) > rounding:
        count = min(_BLOCK, most - rank)
        if count <= 0:
            return None, rounding
        if not sampled and rank >= _ASKED * most:
            sampled = True
            if _some_rows_are_independent(matrix, most + 1, scale):
                return None, rounding
        candidates = np.argpartition(left, n - count)[n - count :]
        current = factor[:, :rank]
        # Rows of the matrix, which are its columns, too.
        columns = matrix.rows(candidates).T - current @ current[candidates].T
        # What was subtracted step by step has more rounding errors; if none is accepted, this is what ends the loop.
        left[candidates] = columns[candidates, np.arange(count)]
        block, pivots, accepted, _ = lapack.dpstrf(
            columns[candidates], tol=max(rounding, _COMPARABLE * largest), lower=1
        )
        order = pivots[:accepted] - 1
        new = blas.dtrsm(1.0, block[:accepted, :accepted], columns[:, order], side=1, lower=1, trans_a=1)
        factor[:, rank : rank + accepted] = new
        left -= np.einsum("ij,ij->i", new, new)
        left[candidates[order]] = 0.0
        rank += accepted
        rounding = max(rounding, -2.0 * float(left.min()))
        if rounding > _NEGATIVE * scale:
            return None, rounding
        progress.advance(accepted)
    return factor[:, :rank], rounding


def _some_rows_are_independent(matrix: ScaledGram, count: int, scale: float) -> bool:
    """Whether ``count`` rows, taken at random, have a principal part without eigenvalues that could be rounding.

    Every such part of a matrix of lower rank, plus a positive semi-definite rest whose diagonal is at most a share
    ``_NEGATIVE`` of the ``scale``, has an eigenvalue of at most ``count`` times that.
    """
    n = len(matrix.diagonal())
    if count > n:
        return False
    part = matrix.part(np.sort(np.random.default_rng(0).choice(n, count, replace=False)))
    part[np.diag_indices(count)] -= 2.0 * count * _NEGATIVE * scale
    return engine_lapack.factor_cholesky(part) == 0


def _is_all(matrix: ScaledGram, factor: Matrix, rounding: float) -> bool:
    """Whether nothing but rounding is left beside the diagonal, either, which an indefinite matrix may have."""
    n = len(factor)
    probe = np.random.default_rng(0).standard_normal((n, _PROBES))
    rest = matrix @ probe - factor @ (factor.T @ probe)
    # The norm of a positive semi-definite rest is at most its trace; twice that leaves room for rounded products.
    return bool(np.linalg.norm(rest, axis=0).max() <= 2.0 * n * rounding * np.sqrt(n))
