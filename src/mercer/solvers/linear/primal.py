r"""Kernel systems in the space of explicit features, where these are fewer than the rows.

With :math:`K = F F^\top`, :math:`\Phi = S F` and :math:`b = S t` the solution of :math:`(S K S + \mu I) z = b` is

.. math:: z = (b - \Phi v) / \mu, \qquad (\Phi^\top \Phi + \mu I)\, v = \Phi^\top b ,

so one square matrix of p features takes the place of that of n rows. The residual of the system over the rows is
:math:`-\Phi \rho / \mu` with that of the normal equations, :math:`\rho = \mu (\Phi^\top z - v)`.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass

import numpy as np
import scipy.linalg

from mercer._errors import MemoryBudgetError
from mercer._types import Matrix, Vector
from mercer.engine import lapack, memory, threads
from mercer.gram.features import ExplicitFeatures, square_work_bytes, sum_bytes
from mercer.gram.hold import fits
from mercer.solvers.algebra.conjugate_gradients import Refined, lengths
from mercer.solvers.linear.linear_system import LinearSystem

PRIMAL = "normal equations of explicit features"
# Below this many rows a factor of K takes milliseconds.
LEAST_ROWS = 512
# With more features than this share of the rows, a factor of K in float32 takes as long as one of the features.
_SHARE = 0.75
# Sparse features give way to conjugate gradients where the square of all would take longer than tens of products.
MOST_SPARSE = 4096
_TOL, _ROUNDINGS, _ROUNDS = 1e-12, 16.0, 8
_EPS = float(np.finfo(float).eps)
# Refinements of a solution without a penalty, what may be left of the targets, and steps of inverse iteration.
_POLISH, _LEFT, _STEPS = 2, 1e-9, 4


def most_features(n: int) -> int:
    """Up to how many features a system over n rows is solved by normal equations.

    >>> most_features(100), most_features(1000)
    (0, 750)
    """
    return int(_SHARE * n) if n >= LEAST_ROWS else 0


def square_bytes(p: int) -> int:
    """Memory of the normal equations: the square of p features, its factor, and a copy.

    >>> square_bytes(1000)
    24000000
    """
    return 3 * 8 * p * p


def normal_bytes(n: int, p: int, k: int, entries: int, is_sparse: bool) -> int:
    """Memory of the normal equations for k targets: square matrices, and what sums over the rows take beside these.

    >>> normal_bytes(1000, 10, 2, 10_000, is_sparse=False) - square_bytes(10)
    160
    """
    return square_bytes(p) + square_work_bytes(entries, is_sparse) + sum_bytes(n, p, k)


def explicit_features(
    system: LinearSystem, most: int, stack: ExitStack, most_dense: int | None = None
) -> ExplicitFeatures | None:
    """The features of a system's matrix, with their memory reserved; None if there are more, or no room for them."""
    features = system.gram.explicit_features(most, most_dense) if system.convex and most else None
    if features is None:
        return None
    try:
        stack.enter_context(memory.reserve(features.nbytes, f"{features.shape[1]} explicit features"))
    except MemoryBudgetError:
        return None
    return features


@dataclass(frozen=True, eq=False)
class ScaledFeatures:
    """``Phi = S F`` with the diagonal matrix S of ``scale``; without a scale, F itself."""

    features: ExplicitFeatures
    scale: Vector | None = None

    @property
    def weights(self) -> Vector | None:
        return None if self.scale is None else self.scale**2

    def __matmul__(self, V: Matrix) -> Matrix:
        """``Phi V``, (n, k)."""
        product = self.features @ V
        return product if self.scale is None else self.scale[:, None] * product

    def pull(self, U: Matrix) -> Matrix:
        """``Phi^T U``, (p, k)."""
        return self.features.pull(U if self.scale is None else self.scale[:, None] * U)

    def residual(self, v: Matrix, b: Matrix, shift: float) -> tuple[Matrix, Matrix, Matrix]:
        """z at v, the residual of the normal equations (p, k), and that of the system over the rows (n, k)."""
        z = (b - self @ v) / shift
        rho = shift * (self.pull(z) - v)
        return z, rho, self @ (rho / -shift)


@dataclass(frozen=True, eq=False)
class NormalEquations:
    """``Phi^T Phi``, from which systems with any shift are solved.

    Parameters
    ----------
    phi : ScaledFeatures
    square : ndarray of shape (p, p)
        Its upper triangle.
    largest : float
        An upper bound of its eigenvalues.
    noise : float
        A shift below this is rounding beside the diagonal of K.
    is_usual : bool, default=True
        Whether there are as few features as for penalties above 0.
    """

    phi: ScaledFeatures
    square: Matrix
    largest: float
    noise: float
    is_usual: bool = True

    @classmethod
    def of(cls, system: LinearSystem, stack: ExitStack, most: int | None = None) -> NormalEquations | None:
        """The normal equations of a system; None where it has no features, too many, or too little memory is left.

        Parameters
        ----------
        system : LinearSystem
        stack : ExitStack
            Of the reservations.
        most : int, optional
            The most features where these are for a solution without a penalty; by default as many as pay for others.
        """
        n = system.shape[0]
        usual = most_features(n)
        features = explicit_features(system, usual if most is None or not usual else most, stack)
        if features is None:
            return None
        p = features.shape[1]
        is_usual = p <= usual and not (features.is_sparse and p > MOST_SPARSE)
        nbytes = normal_bytes(*features.shape, system.shape[1], features.entries, features.is_sparse)
        if not fits(nbytes) or not (is_usual or most is not None):
            return None
        stack.enter_context(memory.reserve(nbytes, f"the normal equations of {p} explicit features"))
        phi = ScaledFeatures(features, system.scaled().scale)
        square = features.square(phi.weights)
        if not np.isfinite(np.trace(square)):
            # What overflows is reported by whatever looks at the entries of K.
            return None
        noise = np.sqrt(system.shape[0]) * _EPS * float(system.scaled().diagonal().max())
        return cls(phi, square, float(np.trace(square)), noise, is_usual)

    @property
    def size(self) -> int:
        """The number of features p."""
        return len(self.square)

    @property
    def used(self) -> int:
        """How many features are not 0 in all rows."""
        return int(np.count_nonzero(self.square.diagonal()))

    def solve(self, shift: float, b: Matrix) -> Refined | None:
        """Solve ``(S K S + shift I) z = b``; None if that is singular to working precision."""
        if not shift > self.noise:
            return None
        factor = self.square.copy()
        factor.flat[:: len(factor) + 1] += shift
        if lapack.factor_cholesky(factor):
            return None

        def inverse(V: Matrix) -> Matrix:
            rows = np.ascontiguousarray(V.T)
            lapack.solve_cholesky(factor, rows)
            return np.ascontiguousarray(rows.T)

        v = inverse(self.phi.pull(b))
        best: Refined | None = None
        for steps in range(1, _ROUNDS):
            z, rho, r = self.phi.residual(v, b, shift)
            error, aim = lengths(r), _TOL * lengths(b)
            if best is not None and not error.max(initial=0.0) < 0.5 * lengths(best.residual).max(initial=0.0):
                break
            rounding = _ROUNDINGS * _EPS * self.largest * lengths(z)
            best = Refined(z, r, steps, bool((error <= np.maximum(aim, rounding)).all()))
            if (error <= aim).all():
                break
            v = v + inverse(rho)
        return best

    def least_norm(self, b: Matrix) -> tuple[Refined, Vector] | None:
        r"""The least-squares solution of ``S K S z = b`` of least norm, :math:`\Phi (\Phi^\top \Phi)^{-2} \Phi^\top b`.

        Also the relative length of what is left of each column in the range of the matrix. None if the features depend
        on one another to working precision.
        """
        # Columns of zeros, as of words that no row has, have no part in any function.
        used = np.flatnonzero(self.square.diagonal())
        factor = np.ascontiguousarray(self.square[np.ix_(used, used)])
        if not len(used) or lapack.factor_cholesky(factor):
            return None

        def inverse(V: Matrix) -> Matrix:
            rows = np.ascontiguousarray(V[used].T)
            lapack.solve_cholesky(factor, rows)
            out = np.zeros_like(V)
            out[used] = rows.T
            return out

        n = self.phi.features.shape[0]
        if not _least_eigenvalue(inverse, self.size) > n * _EPS * self.largest:
            return None
        v = inverse(self.phi.pull(b))
        z = self.phi @ inverse(v)
        for _ in range(_POLISH):
            v = v + inverse(self.phi.pull(b - self.phi @ v))
            z = z + self.phi @ inverse(v - self.phi.pull(z))
        residual = b - self.phi @ self.phi.pull(z)
        # The projection of what is left on the range, by its length there.
        pulled = self.phi.pull(residual)
        left = np.sqrt(np.maximum((pulled * inverse(pulled)).sum(axis=0), 0.0))
        size = lengths(b)
        violation = np.divide(left, size, out=np.zeros_like(size), where=size > 0)
        return (Refined(z, residual, 0, True), violation) if (violation <= _LEFT).all() else None

    def eigenpairs(self) -> tuple[Vector, Matrix] | None:
        """Eigenvalues of ``S K S``, ascending, and eigenvectors (n, p), except of its null space; None without room."""
        (n, p), scale = self.phi.features.shape, self.phi.scale
        if not fits(3 * 8 * n * p):
            return None
        with memory.reserve(3 * 8 * n * p, f"the singular vectors of {p} explicit features"), threads.one_blas_thread():
            dense = self.phi.features.dense()
            if scale is not None:
                dense *= scale[:, None]
            basis, triangle = scipy.linalg.qr(dense, mode="economic", overwrite_a=True, check_finite=False)
            left, values, _ = scipy.linalg.svd(triangle, full_matrices=False, check_finite=False)
            return values[::-1] ** 2, np.asarray(basis @ left[:, ::-1])


def _least_eigenvalue(inverse: Callable[[Matrix], Matrix], p: int) -> float:
    """The least eigenvalue of a matrix of p rows, hardly from above, by some steps of inverse iteration."""
    v = np.random.default_rng(0).standard_normal((p, 1))
    least = np.inf
    for _ in range(_STEPS):
        v /= max(float(lengths(v)[0]), np.finfo(float).tiny)
        v = inverse(v)
        least = 1.0 / max(float(lengths(v)[0]), np.finfo(float).tiny)
    return least
