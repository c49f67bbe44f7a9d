"""Eigenvalues of a symmetric operator: all of them, or the ends and a trace by Lanczos."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg import eigh, eigh_tridiagonal, eigvalsh
from scipy.sparse.linalg import LinearOperator

from mercer._types import AnyArray
from mercer.engine import memory, threads
from mercer.gram.hold import capacity
from mercer.solvers.algebra.lanczos import Krylov, Ritz, tridiagonal

# Residuals of both ends, in units of the largest eigenvalue, at which the search stops; its most and fewest products,
# and the products from one look at the Ritz values to the next.
_RESIDUAL = 1e-8
_MOST, _LEAST, _CHECK = 128, 32, 8
# A vector of the basis and its product.
_BYTES = 16
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


def ends(operator: LinearOperator, rng: np.random.Generator) -> tuple[Spectrum, AnyArray]:
    """Both ends of the spectrum, and a unit vector whose Rayleigh quotient is the lower one."""
    low, high = _ritz_ends(operator, rng)
    return Spectrum(low.value, high.value, low.residual), low.vector


def lowest_off_constants(operator: LinearOperator, rng: np.random.Generator) -> AnyArray:
    """A unit vector at the lower end of the spectrum on the vectors that sum to 0."""
    return _ritz_ends(operator, rng, balanced=True)[0].vector


def _ritz_ends(operator: LinearOperator, rng: np.random.Generator, balanced: bool = False) -> tuple[Ritz, Ritz]:
    """Of one Krylov space: both ends are what it finds first."""
    n = operator.shape[0]
    most = max(capacity(_BYTES * n, _MOST), _LEAST)
    with memory.reserve(_BYTES * n * most, f"{2 * most} vectors of {n} numbers"):
        space = Krylov(lambda v: operator @ v, rng.standard_normal(n), most, balanced=balanced)
        while True:
            threads.checkpoint()
            space.extend()
            if not (space.is_full or space.size % _CHECK == 0):
                continue
            low, high = space.ends()
            if space.is_full or max(low.residual, high.residual) <= _RESIDUAL * max(abs(low.value), abs(high.value)):
                return low, high


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
