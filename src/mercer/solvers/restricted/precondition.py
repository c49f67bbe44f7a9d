"""An approximate inverse of the Hessian of a restricted problem, from a sample of the rows or from the landmarks."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Protocol

import numpy as np
from numpy.typing import DTypeLike

from mercer._errors import NumericalError
from mercer._types import AnyArray, Matrix, Positions, Vector
from mercer.engine import lapack, memory, threads, tiles
from mercer.solvers.restricted.passes import Part, Passes, RowsWithState
from mercer.solvers.restricted.whitening import Whitening

# Rows of the sample, as multiples of the landmarks: with s rows the estimate is off by a factor of 1 +- sqrt(m / s).
_LEAST, _MOST = 4, 20
# Between these, a sample that takes as long as about five passes, each of which takes n / m times this many rows.
_ROWS_PER_PASS = 30
# Squares in float32 stay far from the ends of its range.
_LARGEST_SINGLE = 1e30
# Rows of the sample whose weighted features are in memory at once.
_STRIP = 1024
# Of these, by one task.
_PART = 128


def sample_size(n: int, m: int) -> int:
    """How many of n rows are drawn for m landmarks.

    >>> sample_size(1_000_000, 2000), sample_size(1000, 2000)
    (40000, 1000)
    """
    return min(n, max(_LEAST * m, min(_MOST * m, 5 * _ROWS_PER_PASS * n // m)))


def features_bytes(count: int, m: int, copies: int = 1) -> int:
    """Memory for kernel values or features of rows and m landmarks, which take their place, in bytes.

    >>> features_bytes(2000, 100)
    3238400
    """
    return 8 * (copies * count + 2 * _STRIP) * m


def sample_bytes(n: int, m: int, copies: int = 1) -> int:
    """Memory for the sample of n rows and its features, in bytes; weighted features of some of them are copies.

    >>> sample_bytes(1_000_000, 2000)
    672768000
    """
    return features_bytes(sample_size(n, m), m, copies)


def most_marked(n: int, m: int) -> int:
    """How many of n rows that a pass has marked are looked at for m landmarks, at most.

    >>> most_marked(1_000_000, 2000), most_marked(1000, 2000)
    (75000, 1000)
    """
    return min(n, max(_LEAST * m, 5 * _ROWS_PER_PASS * n // m))


@dataclass(frozen=True, eq=False)
class Sampled:
    """Features of a sample of the rows, from which Hessians are estimated.

    Parameters
    ----------
    features : ndarray of shape (s, m)
    targets : ndarray of shape (s, t)
    weights : ndarray of shape (s,)
        Those of the rows, times n / s.
    has_all_rows : bool
        Whether s is n.
    """

    features: Matrix
    targets: Matrix
    weights: Vector
    has_all_rows: bool

    @classmethod
    def of(cls, rows: Passes, white: Whitening, random: np.random.RandomState, copies: int = 1) -> Sampled:
        """Draw the sample, with room for copies of its features."""
        K, part, weights, has_all_rows = draw(rows, random, copies)
        return cls(white.features(K), part.targets, weights, has_all_rows)

    @classmethod
    def marked(cls, rows: RowsWithState, white: Whitening) -> Sampled | None:
        """The rows that the last pass has marked, all of them; None if their products take longer than some passes."""
        n, m, _ = rows.shape
        most = most_marked(n, m)
        with memory.reserve(features_bytes(most, m, copies=2), f"kernel values of marked rows and {m:,} landmarks"):
            sample = rows.marked(most)
            if sample is None:
                return None
            K, part = sample
            return cls(white.features(K), part.targets, part.weights[:, 0], has_all_rows=False)

    def products(self) -> Matrix:
        """The estimated ``Phi^T W T`` of the targets T, (m, t)."""
        return self.features.T @ (self.weights[:, None] * self.targets)

    def factor(self, penalty: float | Vector, curvature: Vector | None = None, *, offset: bool = False) -> Matrix:
        """The Cholesky factor of the estimated Hessian, ``sum_i w_i c_i phi_i phi_i'`` plus a diagonal.

        Parameters
        ----------
        penalty : float or ndarray
            The diagonal, above 0.
        curvature : ndarray of shape (s,), optional
            The c of the losses; 1 by default.
        offset : bool
            Whether there is a further feature, 1 for all rows.

        Returns
        -------
        ndarray of shape (m, m), or (m + 1, m + 1) with an offset
        """
        weights, features = self.weights, self.features
        if curvature is not None:
            # Of piecewise linear losses most rows have none.
            curved = np.flatnonzero(curvature > 0)
            weights, features = weights[curved] * curvature[curved], features[curved]
        if offset:
            features = np.column_stack([features, np.ones(len(features))])
        size = float(weights @ np.einsum("ij,ij->i", features, features))
        single = suits_single(size, float(np.min(penalty)))
        H = square(features, weights, np.float32 if single else np.float64)
        return factored(H.astype(np.float64, copy=False), penalty)


def draw(rows: Passes, random: np.random.RandomState, copies: int = 1) -> tuple[Matrix, Part, Vector, bool]:
    """Kernel values of a sample, its rows, their weights as parts of all rows, and whether these are all."""
    n, m, _ = rows.shape
    count = sample_size(n, m)
    with memory.reserve(sample_bytes(n, m, copies), f"kernel values of {count:,} rows and {m:,} landmarks"):
        K, part = rows.sample(count, random)
        return K, part, part.weights[:, 0] * (n / len(K)), count == n


def suits_single(trace: float, penalty: float) -> bool:
    """Whether a Hessian in float32, in half of the time, is as good: where its rounding is below the penalty.

    The estimate is rougher than that anyway.

    >>> suits_single(1e5, 1.0), suits_single(1e5, 1e-3)
    (True, False)
    """
    return float(np.finfo(np.float32).eps) * trace < penalty and 1 / _LARGEST_SINGLE < trace < _LARGEST_SINGLE


def square(rows: Matrix, weights: Vector, dtype: DTypeLike, factor: AnyArray | None = None) -> AnyArray:
    """The upper triangle of ``Phi^T W Phi`` in a precision.

    Parameters
    ----------
    rows : ndarray of shape (s, m)
        Features, or kernel values where a factor is given.
    weights : ndarray of shape (s,)
    dtype : dtype
    factor : ndarray of shape (m, m), optional
        Of the landmarks, in the precision in which it makes features of kernel values.
    """
    m = rows.shape[1]
    H = np.zeros((m, m), dtype)
    roots = np.sqrt(weights)[:, None]
    strip = np.empty((min(len(rows), _STRIP), m), H.dtype if factor is None else factor.dtype)

    def weigh(part: slice, start: int) -> None:
        weighted = strip[part.start - start : part.stop - start]
        # Threads have warnings of their own. Callers look at the diagonal.
        with np.errstate(over="ignore", invalid="ignore"):
            np.multiply(rows[part], roots[part], out=weighted, casting="same_kind")

    for some in tiles.spans(len(rows), _STRIP):
        parts = (
            slice(some.start + part.start, some.start + part.stop)
            for part in tiles.spans(some.stop - some.start, _PART)
        )
        threads.run([partial(weigh, part, some.start) for part in parts])
        weighted = strip[: some.stop - some.start]
        if factor is not None:
            lapack.solve_triangle(factor, weighted)
        lapack.add_square_of_columns(H, weighted.astype(dtype, copy=False))
    return H


def factored(H: Matrix, penalty: float | Vector) -> Matrix:
    """The Cholesky factor of a Hessian plus a diagonal, in place."""
    H[np.diag_indices_from(H)] += penalty
    if lapack.factor_cholesky(H):
        raise NumericalError(
            f"the system for {len(H)} landmarks with alpha={np.max(penalty):g} is singular to working precision. "
            "Raise alpha."
        )
    return H


def solve(factor: Matrix, vectors: Matrix) -> Matrix:
    """The inverse of what was factored times vectors, (m, k)."""
    rows = np.array(vectors.T, dtype=np.float64, order="C")
    lapack.solve_cholesky(factor, rows)
    return rows.T


class EstimatedHessian(Protocol):
    """What the Hessian is estimated from: a sample of the rows, or the landmarks."""

    @property
    def has_all_rows(self) -> bool:
        """Whether its solution is that of all rows."""

    def products(self) -> Matrix:
        """The estimated ``Phi^T W T`` of the targets T, (m, t)."""

    def factor(self, penalty: float, /) -> Matrix:
        """The Cholesky factor of the estimated ``Phi^T W Phi + penalty I``, (m, m), in the upper triangle."""


@dataclass(frozen=True, eq=False)
class EstimatedInverse:
    """The inverse of the estimated Hessian, for columns with penalties of their own."""

    factors: list[tuple[Positions, Matrix]]

    @classmethod
    def of(cls, hessian: EstimatedHessian, alphas: Vector) -> EstimatedInverse:
        """One factor for each penalty."""
        return cls([(np.flatnonzero(alphas == alpha), hessian.factor(float(alpha))) for alpha in np.unique(alphas)])

    def __call__(self, vectors: Matrix) -> Matrix:
        """The inverse times vectors, (m, k)."""
        out = np.empty_like(vectors)
        for columns, factor in self.factors:
            out[:, columns] = solve(factor, vectors[:, columns])
        return out
