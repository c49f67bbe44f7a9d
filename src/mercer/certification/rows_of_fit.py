"""A function over landmarks at the rows of its fit, beside the expansion over all rows that its slopes make."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from mercer._types import Matrix, RowsLike, Vector
from mercer.certification.data_of_fit import landmarks_of, rows_like_those_of_the_fit
from mercer.certification.rows_in_blocks import GramOfBlocks, RowsInBlocks
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
        The checked rows with a weight, n of them; or RowsInBlocks.
    coefficients : ndarray of shape (m, k)
    sample : RowSample or None
        Which rows stand for all pairs; None for all.
    """

    model: Any
    X: Any
    coefficients: Matrix
    sample: RowSample | None

    @property
    def landmarks(self) -> Any:
        """The rows of the expansion, m of them."""
        return landmarks_of(self.model)

    @cached_property
    def values(self) -> Matrix:
        """The functions at the rows, (n, k)."""
        return np.asarray(self._of_each(self.values_at))

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
            K = np.asarray(self.model.kernel_.block(Z), dtype=np.float64)
            white = Whitening.of(K, overwrite=True)
        return np.asarray((white.coordinates(self.coefficients) ** 2).sum(axis=0))

    @cached_property
    def lengths(self) -> Vector:
        """The lengths of the rows in the space of the kernel, the roots of k(x, x), (n,)."""
        return np.asarray(self._of_each(self.lengths_of))

    def lengths_of(self, X: Any) -> Vector:
        """The lengths of other checked rows."""
        return np.sqrt(np.maximum(np.asarray(self.model.kernel_.diagonal(X), dtype=np.float64), 0.0))

    def squares(self, C: Matrix) -> Squares:
        """Intervals of ``c_j' K c_j`` for coefficients of the rows, (n, k); see :func:`exact.squares`."""
        intervals = squares(self.gram, C, self.values, self.sample)
        hidden = self.hidden(C)
        return Squares(np.maximum(intervals.low - hidden, 0.0), intervals.high + hidden, intervals.rows)

    @cached_property
    def gram(self) -> Any:
        """The kernel matrix of the rows, lazily."""
        kernel, jobs = self.model.kernel_, self.model.n_jobs
        if isinstance(self.X, RowsInBlocks):
            return GramOfBlocks(kernel, self.X, jobs)
        return Gram(kernel, self.X, dtype=np.float64, n_jobs=jobs)

    def products(self, left: Any, c: Vector) -> Vector:
        """Kernel values of checked rows (s, d) with the rows, times c (n,)."""
        kernel, jobs, others = self.model.kernel_, self.model.n_jobs, np.flatnonzero(c)
        if not len(others):
            return np.zeros(left.shape[0])
        if isinstance(self.X, RowsInBlocks):
            return self.X.some(others).products(kernel, left, c[others, None], jobs)[:, 0]
        return np.asarray(Gram(kernel, left, self.X[others], dtype=np.float64, n_jobs=jobs) @ c[others])

    def _of_each(self, function: Callable[[Any], Any]) -> Any:
        return self.X.of_each(function) if isinstance(self.X, RowsInBlocks) else function(self.X)

    def hidden(self, C: Matrix) -> Vector:
        """The rounding of the squared lengths of expansions over the rows, (k,)."""
        return np.asarray(_ROUNDING * (self.lengths @ np.abs(C)) ** 2)

    def rounding(self, lengths: Vector) -> Matrix:
        """The rounding of the functions at rows of these lengths, (s, k)."""
        sizes = self.lengths_of(self.landmarks) @ np.abs(self.coefficients)
        return np.asarray(_ROUNDING * np.outer(lengths, sizes))

    def new_rows(self, X: RowsLike) -> Any:
        """Later rows, checked as those of the fit.

        Raises
        ------
        DataError
            If they have other columns.
        """
        return rows_like_those_of_the_fit(self.model, X)
