"""The largest eigenpairs of a symmetric operator from blocks of products: block Lanczos, and subspace iteration."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.linalg import eigh

from mercer.engine import threads
from mercer.engine.progress import Progress
from mercer.solvers.matrix import Array, Vector

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

    ``residuals`` are the lengths of ``A v - value v``, ``lowest`` the smallest value that was come across,
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
    held, lowest, products = 0, np.inf, 0
    while True:
        threads.checkpoint()
        stop = held + block.shape[1]
        basis[:, held:stop] = block
        product = np.asarray(operator @ block)
        products += 1
        progress.advance()
        coupling = basis[:, :stop].T @ product
        projected[:stop, held:stop] = coupling
        projected[held:stop, :stop] = coupling.T
        # Threads of BLAS would wait for each other: next to the product these are small.
        with threads.one_blas_thread():
            rest, factor = _beyond(basis[:, :stop], product, coupling)
        full = stop + width > basis.shape[1]
        # Where nothing is left, the space is invariant.
        if full or products % _CHECK == 0 or products >= max_products or not factor.any():
            values, turns = _ritz(projected[:stop, :stop])
            lowest = min(lowest, float(values[-1]))
            residuals = np.linalg.norm(factor @ turns[held:, :k], axis=0)
            small = bool((residuals <= tol * np.abs(values).max() + floor).all())
            if small or products >= max_products:
                return RitzPairs(values[:k], basis[:, :stop] @ turns[:, :k], residuals, lowest, products, small)
        if full:
            stop = _shorten(basis, projected, values, turns, 3 * width)
        held, block = stop, rest


def _ritz(projected: Array) -> tuple[Vector, Array]:
    """Eigenvalues, largest first, and vectors of the projection on a basis."""
    with threads.one_blas_thread():
        values, turns = eigh((projected + projected.T) / 2)
    return values[::-1], turns[:, ::-1]


def _shorten(basis: Array, projected: Array, values: Vector, turns: Array, kept: int) -> int:
    """Keep the best Ritz vectors only, on which the projection is diagonal; returns how many."""
    basis[:, :kept] = basis[:, : len(turns)] @ turns[:, :kept]
    projected[:] = 0.0
    np.fill_diagonal(projected[:kept, :kept], values[:kept])
    return kept


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
