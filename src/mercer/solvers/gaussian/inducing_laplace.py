r"""Laplace's approximation over landmarks: the evidence with the prior that they give, and its gradient.

In the symbols of :mod:`mercer.solvers.gaussian.inducing_mode`, the latent functions have the prior ``N(0, Q)``,
``Q = F F^T = K_nm K_mm^-1 K_mn``, and

    log q(y) = log p(y | F u) - |u|^2 / 2 - log |A| / 2

at the mode u. With every row as a landmark, Q is K, and this is the exact classifier's. For the pairs ``e`` of classes
with weights w, let ``B_e = (e (x) I)^T A^-1 (e (x) I)``, and for each row

    nu_e = F_i B_e F_i^T,    s_j = -1/2 sum_e nu_e d w_e / d f_j

s is the derivative of ``-log |A| / 2`` by the latent values. With ``h = A^-1 F^T s``, the derivatives are

    by K_nm    (g (u + h)^T + (s - W F h) u^T - sum_e diag(w_e) F B_e) L^-1
    by K_mm    -L^-T R L^-1 / 2,    R = u u^T + u h^T + h u^T - sum_j (I - (A^-1)_jj)

where products of (n, c) or (m, c) sum over the classes. They are those of Rasmussen and Williams (2006), section 5.5.1,
with F in place of the root of K.
"""

from __future__ import annotations

import time
from contextlib import AbstractContextManager

import numpy as np

from mercer._errors import NumericalError
from mercer._types import Matrix, Vector
from mercer.engine import lapack, memory, threads
from mercer.solvers.gaussian.inducing import kernel_blocks, symmetric
from mercer.solvers.gaussian.inducing_mode import InducingClassification, InducingMode, find_inducing_mode
from mercer.solvers.restricted.evidence_blocks import class_evidence_bytes
from mercer.solvers.solution import Solution

_FEWER = "Pass a smaller n_landmarks, or raise the budget with mercer.config(memory=...)."


class InducingEvidence:
    """``theta -> (evidence, gradient)`` for a search; each evaluation starts where the last one ended.

    Parameters
    ----------
    problem : InducingClassification
    max_iter : int, default=100
        The most Newton steps of an evaluation.
    n_jobs : int, optional
    """

    def __init__(self, problem: InducingClassification, *, max_iter: int = 100, n_jobs: int | None = None) -> None:
        self.problem, self.max_iter, self.n_jobs = problem, max_iter, n_jobs
        self._start: Matrix | None = None

    @property
    def bytes_each(self) -> int:
        """What an evaluation stores."""
        return class_evidence_bytes(*self.problem.covariance.shape, self.problem.classes)

    def fresh(self) -> InducingEvidence:
        """The same with a start of its own, as each ascent of a search needs it."""
        return InducingEvidence(self.problem, max_iter=self.max_iter, n_jobs=self.n_jobs)

    def of(self, problem: InducingClassification) -> InducingEvidence:
        """That of other rows with the same landmarks, which starts where this one has ended."""
        other = InducingEvidence(problem, max_iter=self.max_iter, n_jobs=self.n_jobs)
        other._start = self._start
        return other

    def solve(self, theta: Vector) -> Solution[InducingMode, Matrix]:
        """The mode at ``theta``.

        Raises
        ------
        MemoryBudgetError
            If the matrices would not fit the memory budget; raised before they are allocated.
        IndefiniteKernelError, NumericalError
            As of :func:`~mercer.solvers.gaussian.inducing_mode.find_inducing_mode`.
        """
        start_time = time.perf_counter()
        with memory.track() as account, self._room(), threads.workers(self.n_jobs):
            mode = self._mode(theta)
        return Solution(
            mode, mode.status, mode.certificate(time.perf_counter() - start_time, account.peak), mode.point.u
        )

    def __call__(self, theta: Vector) -> tuple[float, Vector]:
        with self._room(), threads.workers(self.n_jobs):
            mode = self._mode(theta)
            return mode.point.evidence, evidence_gradient(self.problem, mode)

    def _mode(self, theta: Vector) -> InducingMode:
        mode = find_inducing_mode(self.problem, theta, start=self._start, max_iter=self.max_iter)
        self._start = mode.point.u
        return mode

    def _room(self) -> AbstractContextManager[None]:
        m = self.problem.covariance.shape[1]
        return memory.reserve(self.bytes_each, f"the matrices of {m:,} landmarks and blocks of rows", _FEWER)


def evidence_gradient(problem: InducingClassification, mode: InducingMode) -> Vector:
    """The gradient of the evidence by the parameters of the covariance, in two passes over the rows."""
    inverse = mode.point.factor.copy()
    if lapack.invert_cholesky(inverse):
        raise NumericalError(
            "the system of the landmarks is singular to working precision; bound the kernel's variance "
            "(kernel.bounded)."
        )
    symmetric(inverse)
    beta = mode.weights
    s, pulled, by_determinant = _by_determinant(problem, mode, _pair_blocks(problem, mode, inverse), beta)
    h = mode.point.solve(pulled)
    by_mode = _by_mode(problem, mode, s, beta, np.ascontiguousarray(mode.white.coefficients(h)))
    by_landmarks = mode.values.pull_landmarks(_landmark_weights(mode, inverse, h))
    return by_determinant + by_mode + by_landmarks


def _pair_blocks(problem: InducingClassification, mode: InducingMode, inverse: Matrix) -> list[Matrix]:
    """``B_e L^-1`` for each pair."""
    m = mode.point.u.shape[0]
    parts = [slice(j * m, (j + 1) * m) for j in range(problem.functions)]
    blocks = []
    for a, b in problem.loss(slice(0)).pairs:
        block = inverse[parts[a], parts[a]].copy()
        if a != b:
            block += inverse[parts[b], parts[b]]
            block -= inverse[parts[a], parts[b]]
            block -= inverse[parts[b], parts[a]]
        lapack.solve_triangle(mode.white.factor, block, transposed=True)
        blocks.append(block)
    return blocks


def _by_determinant(
    problem: InducingClassification, mode: InducingMode, blocks: list[Matrix], beta: Matrix
) -> tuple[Matrix, Matrix, Vector]:
    """``s`` (n, c), ``F^T s`` (m, c), and the derivatives with u and the latent values fixed."""
    values, latent = mode.values, mode.point.latent
    s, pulled, slopes = np.empty(latent.shape), np.zeros(beta.shape), np.zeros(problem.covariance.size)
    for rows, K in kernel_blocks(problem.covariance.shape, values):
        slope = problem.loss(rows).slope(latent[rows])
        F, w = mode.white.features(K.copy()), slope.pair_weights()
        weights, nu = lapack.multiply(slope.pull, beta.T), np.empty(w.shape)
        for k, block in enumerate(blocks):
            part = lapack.multiply(F, block)
            nu[:, k] = np.einsum("ij,ij->i", part, K)
            part *= w[:, k, None]
            weights -= part
        s[rows] = -0.5 * slope.pull_pairs(nu)
        pulled += lapack.multiply(F.T, s[rows])
        slopes = slopes + values.pull_block(rows, weights)
    return s, pulled, slopes


def _by_mode(problem: InducingClassification, mode: InducingMode, s: Matrix, beta: Matrix, eta: Matrix) -> Vector:
    """The derivatives through the mode, with ``eta = L^-T h``."""
    values, latent = mode.values, mode.point.latent
    slopes = np.zeros(problem.covariance.size)
    for rows, K in kernel_blocks(problem.covariance.shape, values):
        slope = problem.loss(rows).slope(latent[rows])
        moved = s[rows] - slope.curve(lapack.multiply(K, eta))
        weights = lapack.multiply(moved, beta.T)
        weights += lapack.multiply(slope.pull, eta.T)
        slopes = slopes + values.pull_block(rows, weights)
    return slopes


def _landmark_weights(mode: InducingMode, inverse: Matrix, h: Matrix) -> Matrix:
    """``-L^-T R L^-1 / 2``."""
    u = mode.point.u
    m, c = u.shape
    R = u @ u.T + u @ h.T + h @ u.T
    for j in range(c):
        part = slice(j * m, (j + 1) * m)
        R += inverse[part, part]
    np.einsum("ii->i", R)[...] -= c
    for _ in range(2):
        # R L^-1, and then (R L^-1)^T L^-1, since R is symmetric.
        R = np.ascontiguousarray(R.T)
        lapack.solve_triangle(mode.white.factor, R, transposed=True)
    return -0.5 * R
