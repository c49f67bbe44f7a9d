"""Refinement: residuals in float64, corrections by a factor of less precision."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mercer._types import Matrix

Map = Callable[[Matrix], Matrix]

# A residual of this many roundings of ||A|| ||x|| is what a float64 factorisation gives as well.
_ROUNDINGS = 16.0


@dataclass(frozen=True)
class Refined:
    """Outcome of :func:`refine`: the answer, its true residual, products with A, whether it is good enough."""

    x: Matrix
    residual: Matrix
    steps: int
    converged: bool


def lengths(V: Matrix) -> NDArray[np.float64]:
    """The Euclidean length of every column."""
    return np.sqrt(np.einsum("ij,ij->j", V, V))


def _ratio(a: NDArray[np.float64], b: NDArray[np.float64]) -> NDArray[np.float64]:
    """``a / b``, and 0 where ``b`` is not above 0: a column that is done stays as it is."""
    return np.divide(a, b, out=np.zeros_like(a), where=b > 0)


def refine(apply: Map, precondition: Map, b: Matrix, *, tol: float = 1e-12, limit: int = 16) -> Refined:
    """Solve ``A x = b`` for all columns by conjugate gradients preconditioned with an approximate inverse.

    The flexible form is used, whose coefficients allow for a preconditioner that is symmetric up to its rounding
    only. Sweeps are repeated from the true residual until it is at most ``tol * ||b||``, or of the size
    of the rounding of ``A x`` itself, or no longer falls by half.

    Parameters
    ----------
    apply : callable
        ``V -> A V`` in float64, A positive definite.
    precondition : callable
        ``V -> M V`` with M close to the inverse of A.
    b : ndarray of shape (n, k)
    tol : float, default=1e-12
        Relative residual at which to stop.
    limit : int, default=16
        The most products with A.

    References
    ----------
    Y. Notay, "Flexible conjugate gradients", SIAM J. Sci. Comput. 22 (2000), FCG(1).

    Examples
    --------
    >>> import numpy as np
    >>> A = np.array([[2.0, 1.0], [1.0, 3.0]])
    >>> done = refine(lambda V: A @ V, lambda V: V / 2.5, np.array([[3.0], [4.0]]))
    >>> done.x.round(10).tolist(), done.converged
    ([[1.0], [1.0]], True)
    """
    size = lengths(b)
    x, r = np.zeros_like(b), b
    steps = 0
    rounding: float | None = None
    best = Refined(x, b, 0, bool((size == 0).all()))
    while steps < limit and not best.converged:
        dx, used = _sweep(apply, precondition, r, tol * size, limit - 1 - steps)
        x = x + dx
        r = b - apply(x)
        steps += used + 1
        error = lengths(r)
        if rounding is None and (error > tol * size).any():
            rounding = _ROUNDINGS * float(np.finfo(float).eps) * _norm(apply, len(b))
        good = bool((error <= np.maximum(tol * size, (rounding or 0.0) * lengths(x))).all())
        before = _ratio(lengths(best.residual), size).max()
        after = _ratio(error, size).max()
        if not after < before:
            # Also where something overflowed: the answer so far is the better one.
            return Refined(best.x, best.residual, steps, False)
        best = Refined(x, r, steps, good)
        if after > before / 2:
            break
    return Refined(best.x, best.residual, steps, best.converged)


def _norm(apply: Map, n: int) -> float:
    """The spectral norm from below, by two steps of power iteration; kernels like to have ones near the top."""
    v = np.random.default_rng(0).standard_normal((n, 1)) + 1.0
    for _ in range(2):
        v /= max(float(lengths(v)[0]), np.finfo(float).tiny)
        v = apply(v)
    return float(lengths(v)[0])


def _sweep(apply: Map, precondition: Map, b: Matrix, aim: NDArray[np.float64], limit: int) -> tuple[Matrix, int]:
    """Conjugate gradients from zero: the answer, and products with A."""
    x, r = np.zeros_like(b), b
    z = precondition(r)
    p, rz = z, np.einsum("ij,ij->j", r, z)
    for step in range(1, max(limit, 1) + 1):
        q = apply(p)
        a = _ratio(rz, np.einsum("ij,ij->j", p, q))
        x = x + a * p
        r_new = r - a * q
        error = lengths(r_new)
        if (error <= aim).all() or not np.isfinite(error).all() or step == max(limit, 1):
            break
        z = precondition(r_new)
        beta = _ratio(np.einsum("ij,ij->j", z, r_new - r), rz)
        r, rz, p = r_new, np.einsum("ij,ij->j", z, r_new), z + beta * p
    return x, step
