"""Preconditioned conjugate gradients, and refinement with them: residuals in float64, a factor of less precision."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from mercer._types import Matrix, Vector

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


def lengths(V: Matrix) -> Vector:
    """The Euclidean length of every column."""
    return np.sqrt(np.einsum("ij,ij->j", V, V))


def _ratio(a: Vector, b: Vector) -> Vector:
    """``a / b``, and 0 where ``b`` is not above 0: a column that is done stays as it is."""
    if isinstance(b, float):
        # One system: numbers are much faster than arrays of none or one.
        return a / b if b > 0 else 0.0 * a
    ratio: Vector = a / np.where(b > 0, b, np.inf)
    return ratio


def by_column(V: Matrix, R: Matrix) -> Vector:
    """The inner product of every column of ``V`` with that of ``R``."""
    product: Vector = np.einsum("ij,ij->j", V, R)
    return product


def pair(KU: Matrix, U: Matrix) -> Matrix:
    """Both in one array (2, n, k); faster than ``np.stack``."""
    both = np.empty((2, *U.shape))
    both[0], both[1] = KU, U
    return both


def of_pair(V: Matrix, R: Matrix) -> Vector:
    """The inner product of R with the first part of a :func:`pair`: that of U and R in the space of K."""
    product: Vector = np.vdot(V[0], R)
    return product


class ConjugateGradients:
    r"""Solve ``A x = b`` step by step; the caller decides after each step whether to go on.

    The flexible form is used, whose coefficients allow for a preconditioner M that is symmetric up to its rounding
    only. Directions and x are of the shape that M returns, residuals of that of b. The two may differ: where M r is
    a product ``K U``, keeping the pair ``(K U, U)`` gives x as such a pair, for no further product.

    Parameters
    ----------
    apply : callable
        ``V -> A V``, A positive definite.
    precondition : callable
        ``R -> M R`` with M close to the inverse of A.
    b : ndarray
    inner : callable, default=by_column
        The inner product of a direction and a residual: one number, or one for each column, which are then systems of
        their own that advance together.
    first : ndarray, optional
        ``M b``, where it is known.

    Attributes
    ----------
    x, residual : ndarray
        The answer so far, from zero on, and what it leaves of b.
    steps : int
        Products with A.

    References
    ----------
    Y. Notay, "Flexible conjugate gradients", SIAM J. Sci. Comput. 22 (2000), FCG(1); A. Günnel, R. Herzog and
    E. Sachs, "A note on preconditioners and scalar products in Krylov subspace methods for self-adjoint problems in
    Hilbert space", ETNA 41 (2014), for residuals in the dual space.

    Examples
    --------
    >>> A, b = np.array([[2.0, 1.0], [1.0, 3.0]]), np.array([[3.0], [4.0]])
    >>> search = ConjugateGradients(lambda V: A @ V, lambda R: R, b)
    >>> while search.advance() and np.abs(search.residual).max() > 1e-12:
    ...     pass
    >>> search.x.round(10).tolist(), search.steps
    ([[1.0], [1.0]], 2)
    """

    def __init__(
        self,
        apply: Map,
        precondition: Map,
        b: Matrix,
        inner: Callable[[Matrix, Matrix], Vector] = by_column,
        first: Matrix | None = None,
    ) -> None:
        self._apply, self._precondition, self._inner = apply, precondition, inner
        self._preconditioned: Matrix | None = precondition(b) if first is None else first
        self._direction = self.x = np.zeros_like(self._preconditioned)
        self._change, self._product = b, np.zeros(())
        self.residual, self.steps = b, 0

    @property
    def preconditioned(self) -> Matrix:
        """``M residual``, computed once."""
        if self._preconditioned is None:
            self._preconditioned = self._precondition(self.residual)
        return self._preconditioned

    def advance(self) -> bool:
        """Take a step: one product with A. False where none lowers the error: A is not positive there, or all is 0."""
        z = self.preconditioned
        if self.steps:
            # By the change of the residual: z has no inner product with the residual before it but for rounding.
            self._direction = z + _ratio(self._inner(z, self._change), self._product) * self._direction
        else:
            self._direction = z
        self._product = self._inner(z, self.residual)
        curved = self._apply(self._direction)
        length = _ratio(self._product, self._inner(self._direction, curved))
        self.steps += 1
        if not (length > 0).any():
            return False
        self.x = self.x + length * self._direction
        before, self.residual = self.residual, self.residual - length * curved
        self._change, self._preconditioned = self.residual - before, None
        return True

    def correct(self, residual: Matrix) -> None:
        """Go on from the true residual of x, of which rounding has led :attr:`residual` away; directions are kept."""
        before = self.residual - self._change
        self.residual, self._change, self._preconditioned = residual, residual - before, None


def refine(apply: Map, precondition: Map, b: Matrix, *, tol: float = 1e-12, limit: int = 16) -> Refined:
    """Solve ``A x = b`` for all columns by conjugate gradients preconditioned with an approximate inverse.

    Sweeps are repeated from the true residual until it is at most ``tol * ||b||``, or of the size of the rounding of
    ``A x`` itself, or no longer falls by half.

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


def _sweep(apply: Map, precondition: Map, b: Matrix, aim: Vector, limit: int) -> tuple[Matrix, int]:
    """Conjugate gradients from zero: the answer, and products with A."""
    search = ConjugateGradients(apply, precondition, b)
    while search.advance():
        error = lengths(search.residual)
        if (error <= aim).all() or not np.isfinite(error).all() or search.steps >= limit:
            break
    return search.x, search.steps
