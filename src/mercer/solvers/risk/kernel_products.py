"""Products with K, and linear systems in parts of it: by factorisation if K is stored, else by conjugate gradients."""

from __future__ import annotations

from contextlib import ExitStack

import numpy as np
from numpy.typing import NDArray

from mercer._errors import NumericalError
from mercer._types import Matrix, Positions
from mercer.engine import memory, tiles
from mercer.gram.hold import REMEDY, check_finite, hold_exact
from mercer.gram.protocol import GramMatrix
from mercer.solvers.algebra.conjugate_gradients import Map, lengths, refine
from mercer.solvers.algebra.symmetric_store import SymmetricStore
from mercer.solvers.linear.cholesky import MIXED_FROM

# Vectors of length n that Newton's method and conjugate gradients hold at once.
_VECTORS = 24
# What a system is solved to, and how many steps of conjugate gradients that may take.
_DIRECT_TOL = 1e-13
_STEPS_TOL = 1e-7
_POLISH = 4
_MOST = 500
# Added to a diagonal that is not positive but for rounding, relative to its largest entry.
_JITTERS = (0.0, 1e-15, 1e-12, 1e-9)


class KernelProducts:
    """K in float64 where the budget has room for it and its factor, else its lazy products.

    Parameters
    ----------
    gram : GramMatrix
    stack : ExitStack
        Keeps the memory reserved.
    lazy : bool, optional
        True never to hold K, False always; None as the budget allows.

    Examples
    --------
    >>> from mercer.gram import PrecomputedGram
    >>> with ExitStack() as stack:
    ...     K = KernelProducts(PrecomputedGram(np.array([[2.0, 1.0], [1.0, 2.0]])), stack)
    ...     K @ np.ones((2, 1))
    array([[3.],
           [3.]])
    """

    def __init__(self, gram: GramMatrix, stack: ExitStack, lazy: bool | None = None) -> None:
        n = gram.shape[0]
        stack.enter_context(memory.reserve(8 * _VECTORS * n, f"{_VECTORS} vectors of {n} numbers"))
        self.gram = self._factor = gram if gram.dtype == np.float64 else gram.astype(np.float64)
        self.matrix: Matrix | None = None
        self.sentence = "evaluated by tiles, as method='newton-cg' does"
        if not lazy:
            # Beside it the system of a Newton step, and its factor in float32.
            required = REMEDY if lazy is False else ""
            storage = hold_exact(gram, stack, beside=0 if required else 12 * n * n, required=required)
            self.sentence = storage.sentence
            if storage.array is not None:
                self.matrix, self._factor = np.asarray(storage.array, dtype=np.float64), storage.gram
                check_finite(self.matrix)

    def __matmul__(self, V: Matrix) -> Matrix:
        """``K V``, (n, m)."""
        product = np.asarray(self._factor @ V, dtype=np.float64)
        if not np.isfinite(product).all() and np.isfinite(V).all():
            raise NumericalError(
                "the kernel matrix gave NaN or infinity. Check the kernel for values that overflow, and scale the "
                "columns of X (sklearn.preprocessing.StandardScaler)."
            )
        return product

    def diagonal(self) -> NDArray[np.float64]:
        """``K_ii``, (n,)."""
        return np.asarray(self.gram.diagonal(), dtype=np.float64)

    def solve(self, shift: float, rows: Positions, directions: Matrix, b: Matrix) -> Matrix:
        r"""X with :math:`(\text{shift}\, I + S^\top (I \otimes K) S) X = b`.

        Column a of S is the direction ``directions[a]`` (m,) at row ``rows[a]``, so that the matrix is the part of K
        at these rows times the inner products of the directions.
        """
        if not len(rows):
            return b.copy()
        if self.matrix is None:
            return self._by_steps(shift, rows, directions, b)
        a = len(rows)
        with memory.reserve(8 * a * a, f"the matrix of a Newton step ({a} x {a})"):
            whole = a == len(self.matrix) and bool((rows == np.arange(a)).all())
            system = tiles.converted(self.matrix, self.matrix.dtype) if whole else self.matrix[np.ix_(rows, rows)]
            for span in range(0, a, 1024):
                part = slice(span, span + 1024)
                system[part] *= directions[part] @ directions.T
            system.flat[:: a + 1] += shift
            return solve_definite(system, b)

    def _by_steps(self, shift: float, rows: Positions, directions: Matrix, b: Matrix) -> Matrix:
        n, m = self.gram.shape[0], directions.shape[1]

        def apply(V: Matrix) -> Matrix:
            spread = np.zeros((n, m, V.shape[1]))
            np.add.at(spread, rows, directions[:, :, None] * V[:, None, :])
            product = (self @ spread.reshape(n, -1)).reshape(spread.shape)
            return shift * V + np.einsum("aj,ajk->ak", directions, product[rows])

        scale = shift + self.diagonal()[rows] * np.square(directions).sum(axis=1)
        return refine(apply, lambda V: V / scale[:, None], b, tol=_STEPS_TOL, limit=_MOST).x


def solve_definite(system: Matrix, b: Matrix) -> Matrix:
    """X with ``system X = b``; the system, which should be positive definite, is overwritten.

    Large ones are factored in float32 and refined; one that is singular but for rounding gets a little on its diagonal.
    """
    store = SymmetricStore(system)
    if len(b) >= MIXED_FROM:
        solution = _in_single(system, store, b)
        if solution is not None:
            return solution
    largest = float(store.diagonal.max())
    for jitter in _JITTERS:
        if store.factor_cholesky(jitter * largest):
            return refine(_shifted(store, jitter * largest), store.solve, b, tol=_DIRECT_TOL, limit=_POLISH).x
    raise NumericalError(
        "the matrix of a Newton step is not positive definite: the kernel matrix has an eigenvalue below zero. Check "
        "it with mercer.validity.check, or pass allow_indefinite=True."
    )


def _shifted(store: SymmetricStore, shift: float) -> Map:
    return lambda V: store.product(V) + shift * V


def _in_single(system: Matrix, store: SymmetricStore, b: Matrix) -> Matrix | None:
    n = len(b)
    with memory.reserve(4 * n * n, f"the float32 factor of a Newton step ({n} x {n})"):
        factor = SymmetricStore(tiles.converted(system, np.dtype(np.float32)))
        if not factor.factor_cholesky(0.0):
            return None

        def inverse(V: Matrix) -> Matrix:
            size = lengths(V)
            size[size == 0] = 1.0
            return factor.solve((V / size).astype(np.float32)).astype(np.float64) * size

        refined = refine(store.product, inverse, b, tol=_DIRECT_TOL)
    return refined.x if refined.converged else None
