"""A function over landmarks at the rows of its fit, beside the expansion over all rows that its slopes make."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from mercer._types import Matrix, RowsLike, Vector
from mercer.certification.data_of_fit import rows_like_those_of_the_fit
from mercer.engine import memory
from mercer.gram import Gram
from mercer.solvers.restricted.exact import RowSample, Squares, squares
from mercer.solvers.restricted.whitening import Whitening

# Rounding of a sum of products, in units of the precision and of the sum of their sizes.
_ROUNDING = 8.0 * float(np.finfo(np.float64).eps)


@dataclass(frozen=True, eq=False)
class RowsOfFit:
    """Functions without their offsets, at the rows of a fit that have a weight.

    Parameters
    ----------
    model : KernelEstimator
        It is fitted.
    X : rows
        The checked rows with a weight, n of them.
    landmarks : rows
        m of them.
    coefficients : ndarray of shape (m, k)
    sample : RowSample or None
        Which rows stand for all pairs; None for all.
    """

    model: Any
    X: Any
    landmarks: Any
    coefficients: Matrix
    sample: RowSample | None

    @cached_property
    def values(self) -> Matrix:
        """The functions at the rows, (n, k)."""
        return self.values_at(self.X)

    def values_at(self, X: Any) -> Matrix:
        """The functions at other checked rows, (s, k)."""
        gram = Gram(self.model.kernel_, X, self.landmarks, dtype=np.float64, n_jobs=self.model.n_jobs)
        return np.asarray(gram @ self.coefficients, dtype=np.float64)

    @cached_property
    def square_norms(self) -> Vector:
        """Upper bounds of the squared norms of the functions, larger by rounding, (k,)."""
        m = self.landmarks.shape[0]
        with memory.reserve(2 * 8 * m * m, f"the kernel matrix of {m:,} landmarks and its factor"):
            Z = self.landmarks.astype(np.float64, copy=False)
            white = Whitening.of(np.asarray(self.model.kernel_.block(Z), dtype=np.float64))
        return np.asarray((white.coordinates(self.coefficients) ** 2).sum(axis=0))

    @cached_property
    def lengths(self) -> Vector:
        """The lengths of the rows in the space of the kernel, the roots of k(x, x), (n,)."""
        return self.lengths_of(self.X)

    def lengths_of(self, X: Any) -> Vector:
        """The lengths of other checked rows."""
        return np.sqrt(np.maximum(np.asarray(self.model.kernel_.diagonal(X), dtype=np.float64), 0.0))

    def squares(self, C: Matrix) -> Squares:
        """Intervals of ``c_j' K c_j`` for coefficients of the rows, (n, k); see :func:`exact.squares`."""
        gram = Gram(self.model.kernel_, self.X, dtype=np.float64, n_jobs=self.model.n_jobs)
        found = squares(gram, C, self.values, self.sample)
        hidden = self.hidden(C)
        return Squares(np.maximum(found.low - hidden, 0.0), found.high + hidden, found.rows)

    def hidden(self, C: Matrix) -> Vector:
        """The rounding of the squared lengths of expansions over the rows, (k,)."""
        return np.asarray(_ROUNDING * (self.lengths @ np.abs(C)) ** 2)

    def rounding(self, lengths: Vector) -> Matrix:
        """The rounding of the functions at rows of these lengths, (s, k)."""
        sizes = self.lengths_of(self.landmarks) @ np.abs(self.coefficients)
        return np.asarray(_ROUNDING * np.outer(lengths, sizes))

    def new_rows(self, X: RowsLike) -> Any:
        """Rows of a later question, checked as those of the fit.

        Raises
        ------
        DataError
            If they have other columns.
        """
        return rows_like_those_of_the_fit(self.model, X)
