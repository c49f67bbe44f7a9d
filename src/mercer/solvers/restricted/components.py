"""Principal components of functions over landmarks: the covariance of the features of all rows, in one pass."""

from __future__ import annotations

import time
from dataclasses import dataclass

import numpy as np

from mercer._types import Matrix, Vector
from mercer.engine import decompositions, lapack, memory
from mercer.solvers.restricted.passes import Part, Passes
from mercer.solvers.restricted.whitening import Whitening
from mercer.solvers.rounding import eigenvalue_rounding
from mercer.solvers.solution import Certificate, Solution, Status

# Eigenvalues below this share of the largest are rounding, as for all rows.
_ROUNDING = 1e-12
_FEWER = "Pass a smaller n_landmarks, or raise the budget with mercer.config(memory=...)."


@dataclass(frozen=True, eq=False)
class Components:
    """The leading directions of largest variance.

    Parameters
    ----------
    values : ndarray of shape (k,)
        Eigenvalues of the centred matrix ``H K_nm K_mm^-1 K_mn H``, descending.
    coefficients : ndarray of shape (m, k)
        Of the landmarks in the coordinates of a row before centring; 0 for a direction without variance.
    offsets : ndarray of shape (k,)
        What centring adds to them.
    """

    values: Vector
    coefficients: Matrix
    offsets: Vector


def memory_of(m: int) -> int:
    """Memory of :func:`components` for m landmarks, in bytes.

    >>> memory_of(1000)
    32000000
    """
    return 4 * 8 * m * m


def components(rows: Passes, white: Whitening, k: int) -> Solution[Components, None]:
    r"""Find principal components of the features :math:`\varphi_i = L^{-1} k_m(x_i)` of n rows.

    .. math:: \sum_i (\varphi_i - \bar\varphi)(\varphi_i - \bar\varphi)^\top u_j = \lambda_j u_j, \qquad
              t_j(x) = u_j^\top (\varphi(x) - \bar\varphi)

    The features are those of the Nystroem approximation of K. It takes one pass, :math:`4 n m^2` operations, and one
    decomposition of an (m, m) matrix.

    Parameters
    ----------
    rows : Passes
        n rows; their targets and weights have no effect.
    white : Whitening
        Of the landmarks.
    k : int
        How many components; those above m have no variance.

    Returns
    -------
    Solution
        Its certificate has the remaining variance, times n, of the features.

    Examples
    --------
    >>> from mercer.gram import Gram
    >>> from mercer.solvers.restricted.passes import StoredRows
    >>> from mercer.kernels import Linear
    >>> X = np.array([[1.0], [2.0], [6.0]])
    >>> rows = StoredRows(Gram(Linear(), X, X[:1]), np.zeros((3, 0)), np.ones(3))
    >>> found = components(rows, Whitening.of(Linear()(X[:1])), 1)
    >>> found.value.values.round(9).tolist()
    [14.0]
    """
    start_time = time.perf_counter()
    n, m, _ = rows.shape

    def visit(part: Part, F: Matrix) -> tuple[Matrix, Vector]:
        return F, F.sum(axis=0)

    what = f"the covariance of the features of {m:,} landmarks"
    with memory.track() as account, memory.reserve(memory_of(m), what, _FEWER):
        inverse = white.coefficients(np.eye(m))
        products, sums = rows.sweep(inverse, visit, (m, m))
        # L^-1 K_mn Phi, less what centring takes away.
        S = np.ascontiguousarray(white.pull(products))
        mean_square = float(np.trace(S)) / n
        S -= np.outer(sums, sums / n)
        S = np.ascontiguousarray((S + S.T) / 2)
        total = float(np.trace(S))
        values, vectors = decompositions.all_eigenpairs(S.copy())
        values, U = values[::-1][:k], np.ascontiguousarray(vectors[::-1][:k].T)
        residuals = np.linalg.norm(lapack.multiply(S, U) - U * values, axis=0)
        largest = float(max(values[0], 0.0))
        values = np.where(values > _ROUNDING * largest, values, 0.0)
        U = np.where(values > 0, U, 0.0)
        missing = max(k - m, 0)
        values, U = np.pad(values, (0, missing)), np.pad(U, ((0, 0), (0, missing)))
        result = Components(values.copy(), white.coefficients(U), -(sums / n) @ U)
    left = max(total - float(values.sum()), 0.0)
    violation = float(residuals.max(initial=0.0)) / largest if largest > 0 else 0.0
    # Features divide by pivots that may be as small as jitter, whose root is that of rounding.
    size = mean_square / float(np.sqrt(np.finfo(np.float64).eps))
    violations = {"eigenpair": violation, "rounding": eigenvalue_rounding(n, size, largest)}
    certificate = Certificate(
        left,
        left,
        max(violations.values()),
        1,
        time.perf_counter() - start_time,
        account.peak,
        Status.direct,
        violations,
    )
    return Solution(result, Status.direct, certificate, None)
