"""A function over landmarks judged by all rows: products with the whole kernel matrix, and variances of few rows."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.special import stdtrit

from mercer._errors import NumericalError
from mercer._types import Matrix, Vector
from mercer.engine import lapack, memory
from mercer.gram import Gram
from mercer.gram.protocol import GramMatrix

# Rows of a block of variances.
_BLOCK = 1024
# The share of a uniform distribution in the chances of rows.
_UNIFORM = 0.1
# The diagonal is raised by this share of its largest entry, times the number of rows, against rounding.
_JITTER = 4.0 * float(np.finfo(np.float64).eps)


@dataclass(frozen=True, eq=False)
class RowSample:
    """Some of the rows in place of all: how many, the confidence of intervals, and the generator that draws them.

    The confidence is that of all intervals together.
    """

    rows: int
    confidence: float
    random: np.random.RandomState

    def shared(self, problems: int) -> RowSample:
        """For one of several problems, so that their intervals hold together (Bonferroni's inequality).

        >>> RowSample(50, 0.9, np.random.RandomState(0)).shared(4).confidence
        0.975
        """
        return replace(self, confidence=1.0 - (1.0 - self.confidence) / problems)


@dataclass(frozen=True, eq=False)
class Squares:
    """Intervals of ``c_j' K c_j``, (k,) each, and the number of rows of K that were evaluated.

    They are points if that is all rows.
    """

    low: Vector
    high: Vector
    rows: int


def squares(gram: GramMatrix, C: Matrix, near: Matrix, sample: RowSample | None = None) -> Squares:
    r"""Return ``c_j' K c_j`` for the columns of C, by one pass over all pairs of rows, or over a sample of the rows.

    From r rows, drawn with replacement and chances :math:`p_i`,

    .. math:: c^\top K c = c^\top f + \sum_i c_i\, (K c - f)_i

    is estimated with the mean of :math:`z_i = c_i (K c - f)_i / p_i` for the second sum. Its interval is that of
    Student with a share :math:`\delta` of errors, and :math:`\log(2 / \delta) \max_i |z_i - \bar z| / r` to each side,
    as in Bernstein's inequality, since few rows of a skewed distribution show neither its mean nor its variance. All k
    together have the confidence of the sample, and each a higher one. If f is near ``K c`` away from row i, z is nearly
    the same for all rows with chances in proportion to :math:`c_i^2`; those of several columns are averages.

    Parameters
    ----------
    gram : GramMatrix
        K, (n, n).
    C : ndarray of shape (n, k)
    near : ndarray of shape (n, k)
        f, values that are near ``K C``.
    sample : RowSample, optional
        All rows by default.

    Examples
    --------
    >>> from mercer.kernels import Linear
    >>> X, C = np.arange(6.0)[:, None], np.ones((6, 1))
    >>> squares(Gram(Linear(), X), C, np.zeros((6, 1))).high.tolist()
    [225.0]
    >>> some = RowSample(5, 0.95, np.random.RandomState(0))
    >>> found = squares(Gram(Linear(), X), C, np.zeros((6, 1)), some)
    >>> found.low.item() < 225.0 < found.high.item(), found.rows
    (True, 3)
    """
    n = len(C)
    if sample is None or sample.rows >= n:
        whole = np.maximum((C * np.asarray(gram @ C)).sum(axis=0), 0.0)
        return Squares(whole, whole, n)
    r, squared = sample.rows, C**2
    totals = squared.sum(axis=0)
    # Each column has the same part, whatever its scale.
    shares = np.divide(squared, totals, out=np.full_like(squared, 1.0 / n), where=totals > 0)
    chances = (1 - _UNIFORM) * shares.mean(axis=1) + _UNIFORM / n
    chosen, again = np.unique(sample.random.choice(n, r, p=chances / chances.sum()), return_inverse=True)
    products = np.asarray(gram.restrict(chosen, None) @ C) - near[chosen]
    terms = (C[chosen] * products / chances[chosen, None])[again]
    mean = terms.mean(axis=0)
    error = 1.0 - sample.shared(max(C.shape[1], 1)).confidence
    student = float(stdtrit(r - 1, 1.0 - error / 2)) * terms.std(axis=0, ddof=1) / np.sqrt(r)
    reach = student + math.log(2.0 / error) * np.abs(terms - mean).max(axis=0) / r
    middle = (C * near).sum(axis=0) + mean
    return Squares(np.maximum(middle - reach, 0.0), np.maximum(middle + reach, 0.0), len(chosen))


@dataclass(frozen=True, eq=False)
class SubsetVariance:
    r"""The posterior variance of a Gaussian process with the kernel, from some of the rows.

    .. math:: v_S(x) = k(x, x) - k_S(x)^\top (K_{SS} + N_S)^{-1} k_S(x)

    It is at least the one from all rows, whichever rows are in S.

    Parameters
    ----------
    kernel : Kernel
    rows : array, CSR matrix, Objects or MixedRows
        S, s rows.
    factor : ndarray of shape (s, s)
        Of their matrix.
    n_jobs : int, optional

    Examples
    --------
    >>> from mercer.kernels import RBF
    >>> variance = SubsetVariance.of(RBF(1.0), np.zeros((1, 1)), np.ones(1))
    >>> variance(np.array([[0.0], [9.0]])).round(9).tolist()
    [0.5, 1.0]
    """

    kernel: Any
    rows: Any
    factor: Matrix
    n_jobs: int | None = None

    @classmethod
    def of(cls, kernel: Any, rows: Any, noise: Vector, n_jobs: int | None = None) -> SubsetVariance:
        """Factor the matrix of s rows with the noise variances (s,)."""
        s = rows.shape[0]
        with memory.reserve(8 * s * s, f"the kernel matrix of {s:,} rows for bounds of predictions"):
            K = np.array(Gram(kernel, rows, dtype=np.float64, n_jobs=n_jobs).dense(), dtype=np.float64, order="C")
            # A larger noise raises the variance, so that the bound holds.
            K[np.diag_indices(s)] += noise + s * _JITTER * float(K.diagonal().max(initial=0.0))
            if lapack.factor_cholesky(K):
                raise NumericalError(
                    f"the kernel matrix of {s:,} rows has a negative eigenvalue beyond rounding, so that there are no "
                    "bounds of predictions. Raise alpha."
                )
        return cls(kernel, rows, K, n_jobs)

    def __call__(self, X: Any) -> Vector:
        """The variances at new rows, (m,)."""
        m, s = X.shape[0], len(self.factor)
        values = np.array(self.kernel.diagonal(X), dtype=np.float64)
        rounding = s * _JITTER * values
        for start in range(0, m, _BLOCK):
            part = slice(start, min(start + _BLOCK, m))
            with memory.reserve(8 * s * (part.stop - start), "variances of a block of rows"):
                K = np.ascontiguousarray(
                    Gram(self.kernel, X[part], self.rows, dtype=np.float64, n_jobs=self.n_jobs).dense(),
                    dtype=np.float64,
                )
                lapack.solve_triangle(self.factor, K)
                values[part] -= np.einsum("ij,ij->i", K, K)
        # What is lost where the differences cancel.
        return np.maximum(values, 0.0) + rounding
