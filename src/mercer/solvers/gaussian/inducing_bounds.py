r"""Bounds of the evidence of a Gaussian process from few landmarks, above and below.

In the symbols of :mod:`mercer.solvers.gaussian.inducing`, with the remainder ``E = K - Q``, which is positive
semi-definite, ``log |K + D| >= log |Q + D|``, and for any vector v

    y^T (K + D)^-1 y >= (v^T y)^2 / (v^T (K + D) v),
    v^T K v <= v^T Q v + (sum_i |v_i| sqrt(E_ii))^2

The first line is Cauchy and Schwarz' inequality for ``K + D``, and the second for E. The vectors are
``v = (Q + (1 + c) D)^-1 y``. With a common variance of the noise and ``c s = tr E``, the largest bound by
``v^T E v <= tr E |v|^2`` is that of Titsias, "Variational inference for Gaussian and determinantal point processes"
(2014); this one is never below it. Several c are tried for each target, and the best counts.
"""

from __future__ import annotations

import math

import numpy as np

from mercer._errors import NumericalError
from mercer._types import Matrix, Vector
from mercer.engine import lapack
from mercer.solvers.gaussian.inducing import InducingRegression, Projected, kernel_blocks, lower_bound

_LOG_TWO_PI = math.log(2.0 * math.pi)


def evidence_bounds(problem: InducingRegression, projected: Projected) -> tuple[float, float]:
    """Return bounds of the log evidence of all targets from below and above, in one pass over the rows.

    Both hold for the exact evidence of the kernel and the noise, up to rounding.
    """
    n, t = problem.targets.shape
    raised = _raised_noise(projected)
    numerator, size = _products(problem, projected, raised)
    best = np.divide(numerator**2, size, out=np.zeros_like(size), where=size > 0).max(axis=0)
    upper = -0.5 * (t * (n * _LOG_TWO_PI + projected.log_determinant) + float(best.sum()))
    lower = lower_bound(problem, projected)
    return lower, max(upper, lower)


def _raised_noise(projected: Projected) -> Vector:
    """The candidates for c: none, and the trace of the remainder in units of the noise, or a share of it."""
    n = len(projected.s)
    trace = float(projected.left.sum()) / float(projected.s.mean())
    return np.unique([0.0, trace / n, trace / math.sqrt(n), trace])


def _products(problem: InducingRegression, projected: Projected, raised: Vector) -> tuple[Matrix, Matrix]:
    """``v^T y`` and the bound of ``v^T (K + D) v``, for every c and every target, (c, t)."""
    Y, s = problem.targets, projected.s
    m, t = projected.b.shape
    columns = len(raised) * t
    beta = projected.white.coefficients(np.concatenate([_coordinates(projected, c) for c in raised], axis=1))
    scale, targets = np.repeat(1.0 + raised, t), np.tile(Y, (1, len(raised)))
    left = np.sqrt(projected.left)
    numerator, noise, rest, products = np.zeros(columns), np.zeros(columns), np.zeros(columns), np.zeros((m, columns))
    for rows, K in kernel_blocks(problem.covariance.shape, projected.values):
        v = (targets[rows] - lapack.multiply(K, beta)) / (s[rows, None] * scale)
        numerator += (v * targets[rows]).sum(axis=0)
        noise += (s[rows, None] * v**2).sum(axis=0)
        rest += left[rows] @ np.abs(v)
        products += lapack.multiply(K.T, v)
    along = (projected.white.pull(products) ** 2).sum(axis=0)
    shape = len(raised), t
    return numerator.reshape(shape), (along + noise + rest**2).reshape(shape)


def _coordinates(projected: Projected, c: float) -> Matrix:
    """``(I + S / (1 + c))^-1 b / (1 + c)``."""
    if c == 0.0:
        return projected.u
    factor = projected.S / (1.0 + c)
    np.einsum("ii->i", factor)[...] += 1.0
    if lapack.factor_cholesky(factor):
        raise NumericalError("the system of the landmarks is singular to working precision; raise alpha or noise.")
    u = np.array(projected.b.T / (1.0 + c), order="C")
    lapack.solve_cholesky(factor, u)
    return u.T
