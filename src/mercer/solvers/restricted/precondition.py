"""An approximate inverse of the Hessian of a restricted problem, from a sample of the rows or from the landmarks."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np

from mercer._errors import NumericalError
from mercer._types import Matrix, Positions, Vector
from mercer.engine import lapack, memory, threads, tiles
from mercer.solvers.restricted.clusters import Clusters
from mercer.solvers.restricted.passes import Passes, RowsWithState
from mercer.solvers.restricted.whitening import Whitening

# Rows of the sample, as multiples of the landmarks: with s rows the estimate is off by a factor of 1 +- sqrt(m / s).
_LEAST, _MOST = 4, 20
# Between these, a sample that takes as long as about five passes, each of which takes n / m times this many rows.
_ROWS_PER_PASS = 30
# Squares in float32 stay far from overflow.
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
        n, m, _ = rows.shape
        count = sample_size(n, m)
        with memory.reserve(sample_bytes(n, m, copies), f"kernel values of {count:,} rows and {m:,} landmarks"):
            K, part = rows.sample(count, random)
            return cls(white.features(K), part.targets, part.weights[:, 0] * (n / len(K)), count == n)

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
        H = _square(features, weights, float(np.min(penalty)))
        H[np.diag_indices_from(H)] += penalty
        if lapack.factor_cholesky(H):
            raise NumericalError(
                f"the system for {len(H)} landmarks with alpha={np.max(penalty):g} is singular to working precision. "
                "Raise alpha."
            )
        return H


def _square(features: Matrix, weights: Vector, penalty: float) -> Matrix:
    """The upper triangle of ``Phi^T W Phi``.

    In float32, in half of the time, where its rounding is below the penalty: the estimate is rougher than that anyway.
    """
    size = float(weights @ np.einsum("ij,ij->i", features, features))
    single = float(np.finfo(np.float32).eps) * size < penalty and size < _LARGEST_SINGLE
    m = features.shape[1]
    H = np.zeros((m, m), np.float32 if single else np.float64)
    roots = np.sqrt(weights)[:, None]
    strip = np.empty((min(len(features), _STRIP), m), H.dtype)

    def weigh(rows: slice, start: int) -> None:
        weighted = strip[rows.start - start : rows.stop - start]
        np.multiply(features[rows], roots[rows], out=weighted, casting="same_kind")

    for rows in tiles.spans(len(features), _STRIP):
        parts = (
            slice(rows.start + part.start, rows.start + part.stop)
            for part in tiles.spans(rows.stop - rows.start, _PART)
        )
        threads.run([partial(weigh, part, rows.start) for part in parts])
        lapack.add_square_of_columns(H, strip[: rows.stop - rows.start])
    return H.astype(np.float64, copy=False)


def solve(factor: Matrix, vectors: Matrix) -> Matrix:
    """The inverse of what was factored times vectors, (m, k)."""
    rows = np.array(vectors.T, dtype=np.float64, order="C")
    lapack.solve_cholesky(factor, rows)
    return rows.T


@dataclass(frozen=True, eq=False)
class EstimatedInverse:
    """The inverse of the estimated Hessian, for columns with penalties of their own."""

    factors: list[tuple[Positions, Matrix]]

    @classmethod
    def of(cls, hessian: Sampled | Clusters, alphas: Vector) -> EstimatedInverse:
        """One factor for each penalty."""
        return cls([(np.flatnonzero(alphas == alpha), hessian.factor(float(alpha))) for alpha in np.unique(alphas)])

    def __call__(self, vectors: Matrix) -> Matrix:
        """The inverse times vectors, (m, k)."""
        out = np.empty_like(vectors)
        for columns, factor in self.factors:
            out[:, columns] = solve(factor, vectors[:, columns])
        return out
