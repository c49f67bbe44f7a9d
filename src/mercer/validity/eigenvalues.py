"""Eigenvalues of a symmetric operator: all of them, or the ends and a trace by Lanczos."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg import eigh, eigh_tridiagonal, eigvalsh
from scipy.sparse.linalg import ArpackNoConvergence, LinearOperator, eigsh

from mercer._errors import NumericalError
from mercer._types import AnyArray
from mercer.solvers.algebra.lanczos import tridiagonal

# Each stage starts from the vector of the one before, so the last that converges gives the answer.
_STAGES = (1e-1, 1e-3, 1e-6)
_KRYLOV, _RESTARTS = 32, 3
_SKETCH, _PROBES, _STEPS = 24, 16, 48


@dataclass(frozen=True)
class Spectrum:
    """The ends of a spectrum; ``residual`` is ``|Kc - smallest c|``, and 0 if they are known to rounding."""

    smallest: float
    largest: float
    residual: float

    @property
    def scale(self) -> float:
        """The largest absolute eigenvalue."""
        return max(abs(self.smallest), abs(self.largest))


def quadratic(K: AnyArray | LinearOperator, c: AnyArray) -> float:
    """``c'Kc`` in float64."""
    return float(c @ (K @ c))


def lowest(S: AnyArray) -> AnyArray:
    """A unit eigenvector of the smallest eigenvalue of a symmetric matrix."""
    return eigh(S, subset_by_index=[0, 0])[1][:, 0]


def full(S: AnyArray) -> tuple[Spectrum, AnyArray]:
    """The ends of the spectrum of a symmetric float64 matrix, and all of its eigenvalues."""
    values = eigvalsh(S)
    return Spectrum(float(values[0]), float(values[-1]), 0.0), values


def off_constants(S: AnyArray, scale: float) -> AnyArray:
    """``S`` on the vectors that sum to 0, and ``scale`` on the constant ones, so that those are never lowest."""
    means = S.mean(axis=0)
    return S - means - means[:, None] + (means.mean() + scale / len(S))


def off_constants_operator(operator: LinearOperator, scale: float) -> LinearOperator:
    """The same for an operator."""

    def multiply(v: AnyArray) -> AnyArray:
        v = v.ravel()
        inside = operator @ (v - v.mean())
        return inside - inside.mean() + scale * v.mean()

    return LinearOperator(operator.shape, matvec=multiply, dtype=np.float64)


def ends(operator: LinearOperator, rng: np.random.Generator) -> tuple[Spectrum, AnyArray]:
    """Both ends of the spectrum, and a vector whose Rayleigh quotient is the lower one."""
    start = rng.standard_normal(operator.shape[0])
    top = _extreme(operator, "LM", start)
    scale = quadratic(operator, top)
    if scale < 0:
        low, high_value = top, quadratic(operator, lowest_vector(_negative(operator), -scale, start))
    else:
        low, high_value = lowest_vector(operator, scale, start), scale
    product = operator @ low
    smallest = float(low @ product)
    residual = float(np.linalg.norm(product - smallest * low))
    return Spectrum(smallest, high_value, residual), low


def lowest_vector(operator: LinearOperator, scale: float, start: AnyArray) -> AnyArray:
    """A unit vector at the lower end of the spectrum.

    The upper end of ``scale - K`` is looked for: Lanczos then measures its progress against ``scale``, and not
    against an eigenvalue that may be 0.
    """
    shifted = LinearOperator(
        operator.shape, matvec=lambda v: scale * v.ravel() - operator @ v.ravel(), dtype=np.float64
    )
    return _extreme(shifted, "LA", start)


def _negative(operator: LinearOperator) -> LinearOperator:
    return LinearOperator(operator.shape, matvec=lambda v: -(operator @ v.ravel()), dtype=np.float64)


def _extreme(operator: LinearOperator, which: str, start: AnyArray) -> AnyArray:
    # Only a zero matrix sends a random vector to 0, and there every vector is at the end of the spectrum.
    if not np.any(operator @ start):
        return start / np.linalg.norm(start)
    vector, converged = start, False
    for tolerance in _STAGES:
        try:
            _, vectors = eigsh(
                operator,
                k=1,
                which=which,
                v0=vector,
                tol=tolerance,
                maxiter=_RESTARTS,
                ncv=min(_KRYLOV, operator.shape[0] - 1),
            )
        except ArpackNoConvergence:
            break
        vector, converged = vectors[:, 0], True
    if not converged:
        raise NumericalError(
            f"Lanczos found no end of the spectrum of this {operator.shape[0]} x {operator.shape[0]} matrix in "
            f"{_KRYLOV * _RESTARTS} products; raise full_spectrum_up_to to have all eigenvalues computed."
        )
    return vector / np.linalg.norm(vector)


def effective_dimension(operator: LinearOperator, ridge: float, rng: np.random.Generator) -> tuple[float, float]:
    """``tr K (K + ridge)^-1`` of a positive semi-definite operator, and an estimate of its error.

    The trace over a sketch of the range of ``K``, where most of it is, is taken column by column; over the rest
    it is estimated from vectors of random signs: Meyer et al. (2021), *Hutch++*, algorithm 1. Each term
    ``v'f(K)v`` comes from Lanczos quadrature: Ubaru, Chen & Saad (2017), *Fast estimation of tr(f(A))*, SIAM J.
    Matrix Anal. Appl. 38, algorithm 1. All vectors advance together, a product with a block a step. The error is
    two standard errors of the mean over the random vectors, plus what the last quarter of the steps changed.
    """
    n = operator.shape[0]
    sketch, _ = np.linalg.qr(operator @ rng.choice([-1.0, 1.0], size=(n, _SKETCH)))
    probes = rng.choice([-1.0, 1.0], size=(n, _PROBES))
    probes -= sketch @ (sketch.T @ probes)
    block = np.hstack([sketch, probes])
    weights = np.einsum("ij,ij->j", block, block)
    diagonals, offsets = tridiagonal(operator, block, _STEPS)
    late, early = (
        weights * [_quadrature(a[:k], b[: k - 1], ridge) for a, b in zip(diagonals.T, offsets.T)]
        for k in (len(diagonals), max(1, 3 * len(diagonals) // 4))
    )
    estimate, before = (terms[:_SKETCH].sum() + terms[_SKETCH:].mean() for terms in (late, early))
    error = 2 * late[_SKETCH:].std(ddof=1) / np.sqrt(_PROBES) + abs(estimate - before)
    return float(estimate), float(error)


def _quadrature(alpha: AnyArray, beta: AnyArray, ridge: float) -> float:
    # The default driver fails on some matrices of repeated eigenvalues.
    nodes, vectors = eigh_tridiagonal(alpha, beta, lapack_driver="stev")
    nodes = np.maximum(nodes, 0.0)
    return float(vectors[0] ** 2 @ (nodes / (nodes + ridge)))
