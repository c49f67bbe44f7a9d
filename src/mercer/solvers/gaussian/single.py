r"""Predictive variances in float32 with a bound on their error, at half the cost of float64.

With ``A = L L^T`` and ``W = L^-1``, ``q = |W k|^2`` is what the rows explain of the variance ``k(x, x)``. It is close
to k(x, x), so that an error of 1e-6 of it can be one of 1e-3 of the variance. Most of k lies along few directions, near
the leading eigenvectors of A: those of the range of U (n, r), whose part is taken away in float64,

    q = |h|^2 + |W k'|^2,   h = R^-1 U^T A^-1 k,   k' = k - U R^-T h,   R R^T = U^T A^-1 U,

for any U, since k' and the part taken away are orthogonal in the inner product of ``A^-1``. The product ``v = W k'``
is in float32. With rounding errors that are independent, of mean 0 (Higham and Mary, "A new approach to probabilistic
rounding error analysis", SIAM J. Sci. Comput. 41, 2019), that of v_i has at most the variance
``(kappa u)^2 sum_j W_ij^2 k'_j^2``, and that of ``|v|^2`` by Hoeffding's inequality is below

    2 lambda kappa u (sum_i v_i^2 sum_j W_ij^2 k'_j^2)^(1/2)

except with a probability of ``2 exp(-lambda^2 / 2)``. The inner sums are bounded by blocks of i, with the largest v_i^2
of each. How errors add up inside a product depends on the BLAS: kappa is measured in float64 in some rows, where the
bound is checked as well.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import scipy.linalg

from mercer._types import Array, Matrix, Vector
from mercer.engine import lapack
from mercer.engine.tiles import scratch, spans

# Below this many training rows the tiles of float64 stay in the cache, and below this many new rows for each of them
# the inverse is not worth its cost.
LEAST_ROWS, LEAST_NEW = 512, 2
# Relative error of a variance that is accepted: half of it in the deviation.
TOLERANCE = 2e-4
PROBES = 64
# If float32 fails on more than this share of the probes, it is not worth using.
_DOUBTFUL = 0.25
_DIRECTIONS, _BLOCKS = 48, 32
# Of Hoeffding's inequality: 3e-8 that a row's error is above its bound.
_LAMBDA = 6.0
_UNIT = 2.0**-24


@dataclass(frozen=True, eq=False)
class SingleFactor:
    """``W`` in float32 with the directions that float64 takes care of.

    Parameters
    ----------
    inverse : ndarray of shape (n, n), float32
        ``W scale`` in the upper triangle, as :mod:`mercer.engine.lapack` has it.
    sizes : ndarray of shape (n, blocks), float32
        Sums of ``(W_ij scale)^2`` over blocks of i.
    scale : float
        A power of 2 near the root of the mean variance, so that nothing under- or overflows.
    project, directions : ndarray of shape (r, n)
        ``R^-1 U^T A^-1`` and ``R^-1 U^T``.
    kappa : float
        Of the bound; infinite before it was measured.
    """

    inverse: Array
    sizes: Array
    scale: float
    project: Matrix
    directions: Matrix
    kappa: float = np.inf

    @classmethod
    def of(cls, factor: Matrix) -> SingleFactor | None:
        """From ``L``; None if it is so near to singular that there is nothing to gain."""
        n = len(factor)
        scale = 2.0 ** np.round(np.log2(np.sqrt(np.einsum("ij,ij->", factor, factor) / n)))
        inverse = factor.copy()
        if lapack.invert_triangle(inverse) != 0:
            return None
        starts = [rows.start for rows in spans(n, -(-n // _BLOCKS))]
        single, sizes = np.empty((n, n), np.float32), np.empty((n, len(starts)), np.float32)
        with np.errstate(over="ignore"):
            for rows in spans(n, 64):
                scaled = inverse[rows] * scale
                single[rows] = scaled
                sizes[rows] = np.add.reduceat(scaled * scaled, starts, axis=1)
        U = _leading(factor, min(_DIRECTIONS, n))
        solved = U.copy()
        lapack.multiply_triangle(inverse, solved)
        gram = solved @ solved.T
        lapack.multiply_triangle(inverse, solved, transposed=True)
        try:
            R = scipy.linalg.cholesky(gram, lower=True)
        except np.linalg.LinAlgError:
            return None
        project, directions = (scipy.linalg.solve_triangular(R, rows, lower=True) for rows in (solved, U))
        return cls(single, sizes, float(scale), np.ascontiguousarray(project), np.ascontiguousarray(directions))

    @np.errstate(over="ignore", invalid="ignore")
    def explained(self, block: Matrix, v: Array) -> tuple[Vector, Vector]:
        """``q`` for rows of kernel values (m, n), and bounds on its errors; ``v`` (m, n) in float32 is overwritten.

        Where float32 overflows, the bound is infinite or NaN.
        """
        h = block @ self.project.T
        spread = self._rest(block, h, v)
        lapack.multiply_triangle(self.inverse, v)
        q, product = np.zeros(len(v)), np.zeros(len(v))
        for number, columns in enumerate(self._blocks()):
            with scratch((len(v), columns.stop - columns.start), np.dtype(np.float64)) as squares:
                np.multiply(v[:, columns], v[:, columns], out=squares, dtype=np.float64)
                q += squares.sum(axis=1)
                product += squares.max(axis=1) * spread[:, number]
        error = self.kappa * _UNIT
        bound = 2.0 * _LAMBDA * error * np.sqrt(product) + 4.0 * error**2 * spread.sum(axis=1)
        return np.einsum("ij,ij->i", h, h) + self.scale**2 * q, self.scale**2 * bound

    def _rest(self, block: Matrix, h: Matrix, out: Array) -> Matrix:
        """``k' / scale^2`` in float32, and for every block of i ``sum_j W_ij^2 k'_j^2``, (m, blocks)."""
        spread = np.zeros((len(out), self.sizes.shape[1]))
        unit = self.scale**-2
        for columns in spans(out.shape[1]):
            shape = len(out), columns.stop - columns.start
            with scratch(shape, np.dtype(np.float64)) as rest, scratch(shape, np.dtype(np.float32)) as squares:
                np.matmul(h, self.directions[:, columns], out=rest)
                np.subtract(block[:, columns], rest, out=rest)
                np.multiply(rest, unit, out=out[:, columns], casting="same_kind")
                np.multiply(out[:, columns], out[:, columns], out=squares)
                spread += squares @ self.sizes[columns]
        return spread

    def _blocks(self) -> list[slice]:
        return spans(len(self.inverse), -(-len(self.inverse) // _BLOCKS))

    @np.errstate(over="ignore", invalid="ignore", divide="ignore")
    def measured(self, factor: Matrix, block: Matrix, room: Vector) -> SingleFactor | None:
        """With kappa from rows of kernel values (m, n), whose prior variances are ``room``.

        None where float32 is too coarse for many of these rows, or an error is above its bound.
        """
        h = block @ self.project.T
        v, exact = np.empty(block.shape, np.float32), (block - h @ self.directions) * self.scale**-2
        spread = self._rest(block, h, v).sum(axis=1)
        lapack.multiply_triangle(self.inverse, v)
        lapack.solve_triangle(factor, exact)
        ratio = np.linalg.norm(v - self.scale * exact, axis=1) / (_UNIT * np.sqrt(spread))
        # Nothing is learned from rows that have no kernel values, or too large ones for float32.
        ratio = ratio[np.isfinite(ratio)]
        measured = replace(self, kappa=float(ratio.max(initial=0.0)))
        if not measured.kappa:
            return None
        q, bound = measured.explained(block, v)
        exact[...] = block
        lapack.solve_triangle(factor, exact)
        right = np.einsum("ij,ij->i", exact, exact)
        doubtful = ~(bound <= TOLERANCE * (room - right))
        wrong = np.abs(q - right) > bound
        return None if wrong.any() or doubtful.mean() > _DOUBTFUL else measured


def _leading(factor: Matrix, count: int) -> Matrix:
    """Orthonormal rows near the leading eigenvectors of ``L L^T``, by two steps of subspace iteration."""
    U = np.random.default_rng(0).standard_normal((count, len(factor)))
    for _ in range(2):
        lapack.multiply_triangle(factor, U, transposed=True)
        lapack.multiply_triangle(factor, U)
        U = np.ascontiguousarray(scipy.linalg.qr(U.T, mode="economic")[0].T)
    return U
