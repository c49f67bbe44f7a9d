"""Quadratic terms of box problems, and systems with these and a positive diagonal, as interior point methods have."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve

from mercer._types import Array, Matrix, Vector
from mercer.gram.features import ExplicitFeatures

Factor = Callable[[Matrix], Matrix]
"""What solves for columns (n, k)."""

# The digits that the difference of two large terms loses come back so.
_REFINEMENTS = 2


class Quadratic(Protocol):
    """The term ``z'K z / 2`` of n weights."""

    def product(self, Z: Matrix) -> Matrix:
        """``K Z`` for Z of shape (n,) or (n, k)."""

    def factor(self, diagonal: Vector) -> Factor | None:
        """Factor ``K + diag(diagonal)``; None where that breaks down."""


@dataclass(frozen=True, eq=False)
class StoredQuadratic:
    """K is a matrix.

    >>> K = StoredQuadratic(np.array([[2.0, 0.0], [0.0, 1.0]]))
    >>> K.factor(np.ones(2))(np.array([[3.0], [4.0]])).round(9).tolist()
    [[1.0], [2.0]]
    """

    K: Array

    def product(self, Z: Matrix) -> Matrix:
        return np.asarray(self.K @ Z, dtype=np.float64)

    def factor(self, diagonal: Vector) -> Factor | None:
        A = np.array(self.K, dtype=np.float64)
        A.flat[:: len(A) + 1] += diagonal + 1e-13 * np.abs(self.K.diagonal()).max()
        try:
            chol = cho_factor(A, lower=True, overwrite_a=True, check_finite=False)
        except LinAlgError:
            return None
        return lambda columns: np.asarray(cho_solve(chol, columns, check_finite=False), dtype=np.float64)


@dataclass(frozen=True, eq=False)
class FeatureQuadratic:
    r"""``K = F F^T`` with p explicit features, of which a factor has p columns (the formula of Woodbury).

    .. math:: (D + F F^\top)^{-1} R = D^{-1} R - D^{-1} F (I + F^\top D^{-1} F)^{-1} F^\top D^{-1} R

    >>> K = FeatureQuadratic(ExplicitFeatures(np.array([[1.0], [2.0]])))
    >>> K.factor(np.ones(2))(np.array([[6.0], [12.0]])).round(9).tolist()
    [[1.0], [2.0]]
    """

    features: ExplicitFeatures

    def product(self, Z: Matrix) -> Matrix:
        columns = Z[:, None] if Z.ndim == 1 else Z
        return (self.features @ self.features.pull(columns)).reshape(Z.shape)

    def factor(self, diagonal: Vector) -> Factor | None:
        weights = 1.0 / diagonal
        inner = self.features.square(weights)
        inner.flat[:: len(inner) + 1] += 1.0
        try:
            chol = cho_factor(inner, lower=False, overwrite_a=True, check_finite=False)
        except LinAlgError:
            return None

        def once(R: Matrix) -> Matrix:
            scaled = weights[:, None] * R
            inside = cho_solve(chol, self.features.pull(scaled), check_finite=False)
            return np.asarray(scaled - weights[:, None] * (self.features @ inside))

        def solve(R: Matrix) -> Matrix:
            X = once(R)
            for _ in range(_REFINEMENTS):
                X = X + once(R - diagonal[:, None] * X - self.product(X))
            return X

        return solve


@dataclass(frozen=True, eq=False)
class DoubledQuadratic:
    r"""The term ``(p - q)'K (p - q) / 2`` of ``z = (p, q)``, by elimination.

    With ``d = p - q`` a system is ``D_p p = r_p - K d``, ``D_q q = r_q + K d``, so that
    ``(K + E) d = E (r_p / D_p - r_q / D_q)`` with ``1 / E = 1 / D_p + 1 / D_q``.

    >>> K = DoubledQuadratic(StoredQuadratic(np.eye(1)))
    >>> K.product(np.array([3.0, 1.0])).tolist(), K.factor(np.ones(2))(np.array([[3.0], [0.0]])).round(9).tolist()
    ([2.0, -2.0], [[2.0], [1.0]])
    """

    of_difference: Quadratic

    def product(self, Z: Matrix) -> Matrix:
        half = self.of_difference.product(np.subtract(*np.split(Z, 2)))
        return np.concatenate([half, -half])

    def factor(self, diagonal: Vector) -> Factor | None:
        n = len(diagonal) // 2
        harmonic = 1.0 / (1.0 / diagonal[:n] + 1.0 / diagonal[n:])
        inner = self.of_difference.factor(harmonic)
        if inner is None:
            return None
        D = diagonal[:, None]

        def solve(columns: Matrix) -> Matrix:
            alone = columns / D
            d = inner(harmonic[:, None] * (alone[:n] - alone[n:]))
            product = self.of_difference.product(d)
            p, q = alone[:n] - product / D[:n], alone[n:] + product / D[n:]
            # Of the two the one with the larger diagonal, which is next to zero, keeps its digits in the division.
            clear = D[:n] > D[n:]
            return np.concatenate([np.where(clear, p, d + q), np.where(clear, p - d, q)])

        return solve
