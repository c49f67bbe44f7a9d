"""Eigenvalues of a symmetric matrix from its products: Krylov spaces of a vector and of a block, subspace iteration."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np
from numpy.linalg import eigh

from mercer._types import Array, Vector
from mercer.engine import threads
from mercer.engine.progress import Progress
from mercer.engine.trace import record

# More vectors in a block than eigenpairs are wanted, and blocks that a basis holds before it is shortened.
EXTRA, BLOCKS = 8, 10
# Blocks from one look at the Ritz values to the next: each takes as long as several small products.
_CHECK = 3
_CLIP = 1e-14


class Operator(Protocol):
    """A symmetric matrix that multiplies."""

    @property
    def shape(self) -> tuple[int, int]: ...
    def __matmul__(self, V: Array) -> Array: ...


@dataclass(frozen=True)
class RitzPairs:
    """Approximate eigenpairs, largest value first.

    ``residuals`` are the lengths of ``A v - value v``, ``lowest`` the smallest value that was met,
    ``products`` the number of blocks that were multiplied, and ``converged`` whether every residual is small enough.
    """

    values: Vector
    vectors: Array
    residuals: Vector
    lowest: float
    products: int
    converged: bool


def basis_columns(n: int, k: int) -> int:
    """Columns of the basis that :func:`block_lanczos` holds."""
    return min(n, BLOCKS * (k + EXTRA))


def block_lanczos(
    operator: Operator, k: int, rng: np.random.RandomState, tol: float, floor: float, max_products: int
) -> RitzPairs:
    """The ``k`` largest eigenpairs, until every residual is at most ``tol`` times the largest value plus ``floor``.

    A product with a block costs hardly more than one with a vector where the matrix has to be read from memory, or
    evaluated, for each. The basis is kept orthogonal to rounding, so that no eigenvalue is found twice; where it is
    full it is shortened to the best Ritz vectors and goes on from there.

    Source: Golub and Van Loan, "Matrix Computations" (4th edition, 2013), section 10.3.6; the restart is that of
    Wu and Simon (2000), "Thick-restart Lanczos method", SIAM J. Matrix Anal. Appl. 22.

    Examples
    --------
    >>> pairs = block_lanczos(np.diag(np.arange(50.0)), 2, np.random.RandomState(0), 1e-12, 0.0, 100)
    >>> pairs.values.round(9).tolist(), pairs.converged
    ([49.0, 48.0], True)
    """
    n, width = operator.shape[0], k + EXTRA
    if basis_columns(n, k) >= n:
        # The basis would be the whole space.
        values, vectors = eigh(np.asarray(operator @ np.eye(n)))
        return RitzPairs(values[::-1][:k], vectors[:, ::-1][:, :k], np.zeros(k), float(values[0]), 1, True)
    basis = np.empty((n, basis_columns(n, k)), order="F")
    projected = np.zeros((basis.shape[1],) * 2)
    block = _orthonormal(rng.standard_normal((n, width)))
    progress = Progress(None, "eigenvectors")
    filled, lowest, products = 0, np.inf, 0
    while True:
        threads.checkpoint()
        stop = filled + block.shape[1]
        basis[:, filled:stop] = block
        product = np.asarray(operator @ block)
        products += 1
        progress.advance()
        coupling = basis[:, :stop].T @ product
        projected[:stop, filled:stop] = coupling
        projected[filled:stop, :stop] = coupling.T
        # Threads of BLAS would wait for each other: next to the product these are small.
        with threads.one_blas_thread():
            rest, factor = _beyond(basis[:, :stop], product, coupling)
        full = stop + width > basis.shape[1]
        # Where nothing is left, the space is invariant.
        if full or products % _CHECK == 0 or products >= max_products or not factor.any():
            values, turns = _ritz(projected[:stop, :stop])
            lowest = min(lowest, float(values[-1]))
            residuals = np.linalg.norm(factor @ turns[filled:, :k], axis=0)
            record("products", products, {"residual": float(residuals.max())})
            small = bool((residuals <= tol * np.abs(values).max() + floor).all())
            if small or products >= max_products:
                return RitzPairs(values[:k], basis[:, :stop] @ turns[:, :k], residuals, lowest, products, small)
        if full:
            stop = _shorten(basis, projected, values, turns, 3 * width)
        filled, block = stop, rest


def _ritz(projected: Array) -> tuple[Vector, Array]:
    """Eigenvalues, largest first, and vectors of the projection on a basis."""
    with threads.one_blas_thread():
        values, turns = eigh((projected + projected.T) / 2)
    return values[::-1], turns[:, ::-1]


def _shorten(basis: Array, projected: Array, values: Vector, turns: Array, count: int) -> int:
    """Keep the best Ritz vectors only, on which the projection is diagonal; returns how many."""
    basis[:, :count] = basis[:, : len(turns)] @ turns[:, :count]
    projected[:] = 0.0
    np.fill_diagonal(projected[:count, :count], values[:count])
    return count


def _orthonormal(block: Array) -> Array:
    """An orthonormal basis of the columns by products of matrices, from the eigenvectors of their Gram matrix.

    Source: Stathopoulos and Wu (2002), "A block orthogonalization procedure with constant synchronization
    requirements", SIAM J. Sci. Comput. 23, algorithm SVQB. Directions that are lost in rounding come out shorter than
    1, and a second and a third pass lengthen them.
    """
    for _ in range(3):
        inner = block.T @ block
        scale = 1.0 / np.sqrt(np.maximum(inner.diagonal(), np.finfo(np.float64).tiny))
        values, turns = eigh(inner * scale * scale[:, None])
        values = np.maximum(values, max(_CLIP * values[-1], np.finfo(np.float64).tiny))
        block = block @ (scale[:, None] * turns / np.sqrt(values))
        if values[0] > 0.5:
            break
    return block


def _beyond(basis: Array, product: Array, coupling: Array) -> tuple[Array, Array]:
    """``Q, R`` with ``product - basis basis' product = Q R``, Q orthonormal and orthogonal to the basis to rounding."""
    rest = product - basis @ coupling
    rest -= basis @ (basis.T @ rest)
    block = _orthonormal(rest)
    # Columns of which rounding alone was left point anywhere, also into the basis.
    block -= basis @ (basis.T @ block)
    block = _orthonormal(block)
    return block, block.T @ rest


def subspace_iteration(operator: Operator, k: int, rng: np.random.RandomState, steps: int) -> RitzPairs:
    """The ``k`` largest eigenpairs, approximately, from ``steps`` powers of a random block.

    Source: Halko, Martinsson and Tropp (2011), "Finding structure with randomness", algorithms 4.4 and 5.3, with the
    Rayleigh-Ritz values of the last block.

    Examples
    --------
    >>> pairs = subspace_iteration(np.diag(2.0 ** np.arange(30)), 2, np.random.RandomState(0), 7)
    >>> (pairs.values / 2.0**28).round(6).tolist()
    [2.0, 1.0]
    """
    n = operator.shape[0]
    progress = Progress(steps + 2, "eigenvectors")
    block: Array = rng.normal(size=(n, min(n, k + 10)))
    for _ in range(steps + 1):
        threads.checkpoint()
        block = _orthonormal(np.asarray(operator @ block))
        progress.advance()
    product = np.asarray(operator @ block)
    progress.advance()
    projected = block.T @ product
    values, turns = eigh((projected + projected.T) / 2)
    best, top = turns[:, ::-1][:, :k], values[::-1][:k]
    vectors = block @ best
    residuals = np.linalg.norm(product @ best - vectors * top, axis=0)
    return RitzPairs(top, vectors, residuals, float(values[0]), steps + 2, True)


# What a projection leaves of a step is rounding below this many units of eps; the most projections of a step.
_LOST, _PASSES = 1e3, 8
# Products that look for the largest eigenvalue at most, and the residual, in its units, that is small enough.
STEPS = 64
_RESIDUAL = 1e-9


class Ritz(NamedTuple):
    """An approximate eigenvalue, its unit vector v, and the length of ``A v - value v``."""

    value: float
    vector: Vector
    residual: float


class Krylov:
    """An orthonormal basis of the Krylov space of a vector, with the product of each of its vectors.

    All products are kept, and not the three terms of a recurrence: where the space ends, further vectors are random
    and their products as accurate as the others.

    Parameters
    ----------
    multiply : callable
        From a vector (n,) to its product with a symmetric matrix.
    start : ndarray of shape (n,)
    most : int
        The most vectors.
    balanced : bool, default=False
        Whether to stay with vectors that sum to 0.
    precision : dtype, default=float64
        Of the products: what is left of a step counts as zero below their rounding.

    Examples
    --------
    >>> space = Krylov(lambda v: np.array([1.0, 2.0, 5.0]) * v, np.ones(3), 3)
    >>> for _ in range(3):
    ...     space.extend()
    >>> space.ritz()[0].round(9).tolist()
    [1.0, 2.0, 5.0]
    """

    def __init__(
        self,
        multiply: Callable[[Vector], Vector],
        start: Vector,
        most: int,
        *,
        balanced: bool = False,
        precision: np.typing.DTypeLike = np.float64,
    ) -> None:
        self.multiply, self.balanced = multiply, balanced
        self._lost = _LOST * float(np.finfo(precision).eps)
        self._random = np.random.default_rng(1)
        self._basis = np.zeros((min(most, max(len(start) - balanced, 1)), len(start)))
        self._products = np.zeros_like(self._basis)
        self._next, self.size = start, 0

    @property
    def is_full(self) -> bool:
        """Whether there is no room for more vectors, or the space has no more of them."""
        return self.size == len(self._basis)

    def extend(self) -> None:
        """Add a vector: one product."""
        k = self.size
        self._basis[k] = self._direction(self._next)
        self._products[k] = self._next = self.multiply(self._basis[k])
        self.size += 1

    def ritz(self) -> tuple[Vector, float]:
        """Rayleigh quotients, ascending, and the residual of the vector of the largest."""
        values, turns = self._projection()
        return values, self._pair(values[-1], turns[:, -1]).residual

    def ends(self) -> tuple[Ritz, Ritz]:
        """The lowest and the largest Rayleigh quotient with their unit vectors."""
        values, turns = self._projection()
        return self._pair(values[0], turns[:, 0]), self._pair(values[-1], turns[:, -1])

    def _projection(self) -> tuple[Vector, Array]:
        projected = self._basis[: self.size] @ self._products[: self.size].T
        values, turns = eigh((projected + projected.T) / 2)
        return values, turns

    def _pair(self, value: float, turn: Array) -> Ritz:
        vector: Vector = turn @ self._basis[: self.size]
        product = turn @ self._products[: self.size]
        difference = product - value * vector
        if self.balanced:
            difference -= difference.mean()
        return Ritz(float(value), vector, float(np.linalg.norm(difference)))

    def _direction(self, step: Vector) -> Vector:
        """The part of ``step`` orthogonal to the basis, as a unit vector; a random one where that part is rounding."""
        basis = self._basis[: self.size]
        for _ in range(_PASSES):
            before = float(np.linalg.norm(step))
            step = step - step.mean() if self.balanced else step
            step = step - basis.T @ (basis @ step)
            length = float(np.linalg.norm(step))
            if length <= self._lost * before:
                step = self._random.standard_normal(len(step))
                continue
            step = step / length
            # Where little was left, the rest is orthogonal to few digits.
            if length > 0.5 * before:
                return step
        # One row, whose weight has to be 0.
        return np.zeros_like(step)


def largest_eigenvalue(
    multiply: Callable[[Vector], Vector], n: int, start: Vector | None = None
) -> tuple[float, float]:
    """The largest eigenvalue of a symmetric matrix by Lanczos, and the residual of the vector it belongs to.

    It is never overestimated except by rounding, and the matrix has an eigenvalue within the residual of it.

    Parameters
    ----------
    multiply : callable
        From a vector (n,) to its product with the matrix.
    n : int
    start : ndarray of shape (n,), optional
        Where to begin, not zero; a fixed random vector by default.

    References
    ----------
    Golub and Van Loan, "Matrix Computations" (4th edition, 2013), section 10.1.

    Examples
    --------
    >>> value, residual = largest_eigenvalue(lambda v: np.array([1.0, 2.0, 5.0]) * v, 3)
    >>> round(value, 9), residual < 1e-9
    (5.0, True)
    """
    space = Krylov(multiply, np.random.default_rng(0).standard_normal(n) if start is None else start, STEPS)
    while True:
        threads.checkpoint()
        space.extend()
        values, residual = space.ritz()
        if space.is_full or residual <= _RESIDUAL * abs(values[-1]):
            return float(values[-1]), residual


def tridiagonal(operator: Operator, V: Array, steps: int) -> tuple[Array, Array]:
    """Diagonals ``(steps, probes)`` and off-diagonals ``(steps - 1, probes)`` of Lanczos from each column of V.

    All columns advance together, a product with a block a step. Nothing is orthogonalised again: the
    repeated eigenvalues that result do no harm in a quadrature.

    Examples
    --------
    >>> diagonals, beside = tridiagonal(np.diag([1.0, 3.0]), np.ones((2, 1)), 2)
    >>> diagonals.round(9).ravel().tolist(), beside.round(9).ravel().tolist()
    ([2.0, 2.0], [1.0])
    """
    V = V / np.linalg.norm(V, axis=0)
    before = np.zeros_like(V)
    beta = np.zeros(V.shape[1])
    diagonals, offsets = [], []
    for _ in range(min(steps, len(V))):
        W = operator @ V - beta * before
        alpha = np.einsum("ij,ij->j", V, W)
        W -= alpha * V
        diagonals.append(alpha)
        beta = np.linalg.norm(W, axis=0)
        offsets.append(beta)
        # A probe that has found its whole invariant subspace goes on with zeros, which have no weight.
        before, V = V, np.divide(W, beta, out=np.zeros_like(W), where=beta > 1e-13 * np.abs(alpha).max())
    return np.array(diagonals), np.array(offsets[:-1])
