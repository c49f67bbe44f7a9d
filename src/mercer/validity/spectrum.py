"""Eigenvalues of a symmetric operator: all of them, or the ends and a trace by Lanczos."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg import eigh, eigh_tridiagonal, eigvalsh
from scipy.sparse.linalg import ArpackNoConvergence, LinearOperator, eigsh

from mercer._errors import NumericalError

Array = np.ndarray

# Each stage starts from the vector of the one before, so the last that converges gives the answer.
_STAGES = (1e-2, 1e-4, 1e-6, 1e-8)
_KRYLOV, _RESTARTS = 32, 6
_PROBES, _STEPS = 8, 48


@dataclass(frozen=True)
class Spectrum:
    """What is known of the eigenvalues; ``residual`` is ``|Kc - smallest c|`` (0: known to rounding)."""

    smallest: float
    largest: float
    values: Array | None
    residual: float

    @property
    def scale(self) -> float:
        """The largest absolute eigenvalue."""
        return max(abs(self.smallest), abs(self.largest))


def quadratic(K: Array | LinearOperator, c: Array) -> float:
    """``c'Kc`` in float64."""
    return float(c @ (K @ c))


def lowest(S: Array) -> Array:
    """A unit eigenvector of the smallest eigenvalue of a symmetric matrix."""
    return eigh(S, subset_by_index=[0, 0])[1][:, 0]


def full(S: Array) -> Spectrum:
    """The whole spectrum of a symmetric float64 matrix."""
    values = eigvalsh(S)
    return Spectrum(float(values[0]), float(values[-1]), values, 0.0)


def off_constants(S: Array, scale: float) -> Array:
    """``S`` on the vectors that sum to 0, and ``scale`` on the constant ones, so that those are never lowest."""
    means = S.mean(axis=0)
    return S - means - means[:, None] + (means.mean() + scale / len(S))


def off_constants_operator(operator: LinearOperator, scale: float) -> LinearOperator:
    """The same for an operator."""

    def multiply(v: Array) -> Array:
        v = v.ravel()
        inside = operator @ (v - v.mean())
        return inside - inside.mean() + scale * v.mean()

    return LinearOperator(operator.shape, matvec=multiply, dtype=np.float64)


def ends(operator: LinearOperator, rng: np.random.Generator) -> tuple[Spectrum, Array]:
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
    return Spectrum(smallest, high_value, None, residual), low


def lowest_vector(operator: LinearOperator, scale: float, start: Array) -> Array:
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


def _extreme(operator: LinearOperator, which: str, start: Array) -> Array:
    vector = start
    found = False
    for tolerance in _STAGES:
        try:
            _, vectors = eigsh(
                operator, k=1, which=which, v0=vector, tol=tolerance, maxiter=_RESTARTS,
                ncv=min(_KRYLOV, operator.shape[0] - 1),
            )  # fmt: skip
        except ArpackNoConvergence:
            break
        vector, found = vectors[:, 0], True
    if not found:
        raise NumericalError(
            f"Lanczos found no end of the spectrum of this {operator.shape[0]} x {operator.shape[0]} matrix in "
            f"{_KRYLOV * _RESTARTS} products; raise full_spectrum_up_to to have all eigenvalues computed."
        )
    return vector / np.linalg.norm(vector)


def effective_dimension(operator: LinearOperator, ridge: float, rng: np.random.Generator) -> tuple[float, float]:
    """``tr K (K + ridge)^-1`` and an estimate of its error, by Lanczos quadrature from random signs.

    All probes advance together, a product with a block of vectors a step. The error is that of the mean over the
    probes plus what the last quarter of the steps changed. Ubaru, Chen & Saad (2017), *Fast estimation of tr(f(A))
    via stochastic Lanczos quadrature*, SIAM J. Matrix Anal. Appl. 38, algorithm 1.
    """
    n = operator.shape[0]
    diagonals, offsets = _tridiagonal(operator, rng.choice([-1.0, 1.0], size=(n, _PROBES)))
    late, early = (
        np.array([_quadrature(a[:k], b[: k - 1], ridge) for a, b in zip(diagonals.T, offsets.T)]) * n
        for k in (len(diagonals), max(1, 3 * len(diagonals) // 4))
    )
    error = late.std(ddof=1) / np.sqrt(_PROBES) + abs(late.mean() - early.mean())
    return float(late.mean()), float(error)


def _tridiagonal(operator: LinearOperator, V: Array) -> tuple[Array, Array]:
    """Diagonals ``(steps, probes)`` and off-diagonals ``(steps - 1, probes)`` of Lanczos from each column of V."""
    V = V / np.linalg.norm(V, axis=0)
    before = np.zeros_like(V)
    beta = np.zeros(V.shape[1])
    diagonals, offsets = [], []
    for _ in range(min(_STEPS, len(V))):
        W = operator @ V - beta * before
        alpha = np.einsum("ij,ij->j", V, W)
        W -= alpha * V
        diagonals.append(alpha)
        beta = np.linalg.norm(W, axis=0)
        offsets.append(beta)
        # A probe that has found its whole invariant subspace goes on with zeros, which have no weight.
        before, V = V, np.divide(W, beta, out=np.zeros_like(W), where=beta > 1e-13 * np.abs(alpha).max())
    return np.array(diagonals), np.array(offsets[:-1])


def _quadrature(alpha: Array, beta: Array, ridge: float) -> float:
    nodes, vectors = eigh_tridiagonal(alpha, beta)
    nodes = np.maximum(nodes, 0.0)
    return float(vectors[0] ** 2 @ (nodes / (nodes + ridge)))
