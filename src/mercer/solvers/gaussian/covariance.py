"""A kernel with parameters as solvers for Gaussian processes see it: its matrix, and pullbacks of its gradient."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from mercer._types import Array, Vector
from mercer.engine.tiles import Fill, spans
from mercer.gram.protocol import GramMatrix
from mercer.loops.transpose import mirror

# Rows of a tile of which the diagonal alone is wanted.
_BLOCK = 64


class Covariance(Protocol):
    """A kernel matrix over fixed rows that depends on parameters ``theta``; may be called from several threads."""

    @property
    def n(self) -> int:
        """Rows."""
        ...

    @property
    def size(self) -> int:
        """Parameters."""
        ...

    def matrix(self, theta: Vector, out: Array) -> None:
        """Write the whole of K, both triangles, into ``out``, a C-ordered array of float64."""
        ...

    def pullback(self, theta: Vector, weigh: Fill) -> Array:
        """``sum_ij w_ij dK_ij / d theta`` for symmetric weights, which ``weigh(rows, columns, out)`` writes by tiles.

        It is called for slices on the diagonal and above only, from any thread.
        """
        ...


@dataclass(frozen=True, eq=False)
class MatrixCovariance:
    """A kernel matrix that depends on no parameter.

    Examples
    --------
    >>> from mercer.gram import PrecomputedGram
    >>> covariance = MatrixCovariance(PrecomputedGram(np.eye(2)))
    >>> out = np.empty((2, 2))
    >>> covariance.matrix(np.zeros(0), out)
    >>> out.tolist()
    [[1.0, 0.0], [0.0, 1.0]]
    """

    gram: GramMatrix

    @property
    def n(self) -> int:
        return self.gram.shape[0]

    @property
    def size(self) -> int:
        return 0

    def matrix(self, theta: Vector, out: Array) -> None:
        self.gram.astype(np.float64).block(None, None, out=out)

    def pullback(self, theta: Vector, weigh: Fill) -> Array:
        return np.zeros(0)


def pull_matrix(covariance: Covariance, theta: Vector, weights: Array) -> Array:
    """The pullback of weights that are given as one symmetric matrix; its upper triangle is read."""

    def weigh(rows: slice, columns: slice, out: Array) -> None:
        upper_tile(weights, rows, columns, out)

    return covariance.pullback(theta, weigh)


def upper_tile(matrix: Array, rows: slice, columns: slice, out: Array) -> None:
    """A tile of a symmetric matrix of which the upper triangle alone is there."""
    out[...] = matrix[rows, columns]
    if rows == columns:
        mirror(out)


def diagonal_of(weigh: Fill, n: int) -> Vector:
    """The diagonal of a matrix (n, n) that is given by tiles.

    Examples
    --------
    >>> matrix = np.diag(np.arange(100.0))
    >>> float(diagonal_of(lambda rows, columns, out: np.copyto(out, matrix[rows, columns]), 100).sum())
    4950.0
    """
    diagonal = np.empty(n)
    for rows in spans(n, _BLOCK):
        block = np.empty((rows.stop - rows.start,) * 2)
        weigh(rows, rows, block)
        diagonal[rows] = np.diagonal(block)
    return diagonal
