"""What classification and regression by nearest rows share: the search for them, and their weights."""

from __future__ import annotations

from numbers import Integral
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_is_fitted

from mercer._errors import DataError, MercerWarning, ParameterError, warn_user
from mercer._registered import CommandLine
from mercer._types import Array, CheckedRows, RowsLike, Vector
from mercer.data.fitted import Fitted
from mercer.data.objects import short
from mercer.data.statements import Count, Floats, Maybe, Word
from mercer.engine import settings
from mercer.estimators.distances.diagonal import diagonal_of_new
from mercer.estimators.shared.base import KernelEstimator
from mercer.estimators.shared.statements import FitRows
from mercer.gram import Gram
from mercer.gram.smallest import smallest
from mercer.kernels.convert import KernelLike
from mercer.kernels.geometry import Ranking, ranking
from mercer.kernels.inputs import Rows

# Differences of k below so many units in the last place of what they are differences of are rounding.
_ROUNDING = 4


def _knows_its_diagonal(model: KernelEstimator) -> bool:
    if model.kernel_ is None:
        return model._own is not None and np.array_equal(model._own, model.X_fit_.diagonal())
    return (model._own is None) == (ranking(model.kernel_).finish is not None)


class KernelNeighbors(KernelEstimator):
    """Base of the learners by nearest rows."""

    _if_indefinite = None
    n_neighbors: Any
    weights: Any
    X_fit_: Any
    n_samples_fit_: int
    _own: Vector | None

    _command_line = CommandLine(
        "neighbors",
        advised=False,
        without_certificate=lambda _: (
            "The nearest rows are found exactly; nothing is minimised, so there is no duality gap."
        ),
    )
    _fitted = Fitted(
        {"X_fit_": FitRows("n"), "n_samples_fit_": Count("n"), "_own": Maybe(Floats("n"))},
        parameters={"n_neighbors": Count(least=1, most="n"), "weights": Maybe(Word(("uniform", "distance")))},
        rules=(("the diagonal of the kernel matrix and the kernel do not agree", _knows_its_diagonal),),
    )

    def __init__(
        self,
        n_neighbors: int = 5,
        *,
        weights: Any = "uniform",
        kernel: KernelLike = "linear",
        gamma: float | str | None = None,
        degree: int = 3,
        coef0: float = 1,
        allow_indefinite: bool | str = "warn",
        n_jobs: int | None = None,
    ) -> None:
        self.n_neighbors = n_neighbors
        self.weights = weights
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.allow_indefinite = allow_indefinite
        self.n_jobs = n_jobs

    def _warn_if_degenerate(self, X: CheckedRows | Rows) -> None:
        # Rows are ordered by their distances, where the kernel is a function of these.
        if self.kernel_ is None or ranking(self.kernel_).finish is None:
            super()._warn_if_degenerate(X)

    def kneighbors(
        self,
        X: RowsLike | None = None,
        n_neighbors: int | None = None,
        return_distance: bool = True,
        *,
        diagonal: ArrayLike | None = None,
    ) -> Any:
        r"""The nearest training rows of every row, by the distance in feature space.

        .. math:: d(x, z)^2 = k(x, x) - 2 k(x, z) + k(z, z)

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, n_features), optional
            For ``kernel="precomputed"``, kernel values of new and training rows, shape (n, n_samples). None for the
            training rows themselves, each without itself as a neighbour.
        n_neighbors : int, optional
            Number of neighbours; None for the parameter of that name.
        return_distance : bool, default=True
            Whether to return distances as well.
        diagonal : array-like of shape (n,), optional
            For ``kernel="precomputed"``: ``k(x, x)`` of the new rows, which the matrix does not contain. It is needed
            for distances, unless it is the same number for all training rows, which is then used for the new rows.

        Returns
        -------
        distances : ndarray of shape (n, n_neighbors)
            In ascending order, in the precision of X; only with ``return_distance``.
        indices : ndarray of int of shape (n, n_neighbors)
            Positions of the rows in the training data. Among rows at equal distances the first ones are taken.

        Raises
        ------
        DataError, ParameterError, KernelValueError, MemoryBudgetError
            If the rows or a parameter cannot be used, or the result does not fit in memory; see the messages.
        """
        check_is_fitted(self)
        count = self._count(n_neighbors, X is None)
        if diagonal is not None and (self.kernel_ is not None or X is None):
            raise ParameterError("diagonal applies only to new rows of kernel='precomputed'; leave it out.")
        rows = self.X_fit_ if X is None else self._check_X(X, reset=False)
        rank = Ranking(None) if self.kernel_ is None else ranking(self.kernel_)
        if rank.finish is not None:
            assert rank.kernel is not None
            gram = Gram(rank.kernel, rows, None if X is None else self.X_fit_, n_jobs=self.n_jobs)
            t, indices = smallest(gram, count, own=X is None)
            return (np.sqrt(np.maximum(rank.finish(t), 0)), indices) if return_distance else indices
        scores, indices = smallest(
            self._gram(rows, None if X is None else self.X_fit_), count, offset=self._own, factor=-2.0, own=X is None
        )
        if not return_distance:
            return indices
        mine = self._diagonal_of(X, rows, diagonal)
        return self._from_scores(scores, mine[:, None], rows.dtype, indices), indices

    def kneighbors_graph(
        self,
        X: RowsLike | None = None,
        n_neighbors: int | None = None,
        mode: str = "connectivity",
        *,
        diagonal: ArrayLike | None = None,
    ) -> sp.csr_matrix:
        """The nearest training rows as a sparse matrix.

        Parameters
        ----------
        X, n_neighbors
            As for :meth:`kneighbors`.
        mode : {"connectivity", "distance"}, default="connectivity"
            Whether the entries are 1, or distances.
        diagonal : array-like of shape (n,), optional
            As for :meth:`kneighbors`.

        Returns
        -------
        graph : csr_matrix of shape (n, n_samples)
        """
        if mode not in ("connectivity", "distance"):
            raise ParameterError(f"mode must be 'connectivity' or 'distance', but is {mode!r}.")
        if mode == "distance":
            values, indices = self.kneighbors(X, n_neighbors, diagonal=diagonal)
        else:
            indices = self.kneighbors(X, n_neighbors, return_distance=False, diagonal=diagonal)
            values = np.ones(indices.shape)
        n, count = indices.shape
        starts = np.arange(0, n * count + 1, count)
        return sp.csr_matrix((values.ravel(), indices.ravel(), starts), shape=(n, self.n_samples_fit_))

    def _check_controls(self) -> None:
        settings.resolve_jobs(self.n_jobs)
        check_count(self.n_neighbors)
        if not callable(self.weights) and not (
            self.weights is None or (isinstance(self.weights, str) and self.weights in ("uniform", "distance"))
        ):
            raise ParameterError(
                f"weights must be 'uniform', 'distance', None or a function of distances, but is {self.weights!r}."
            )

    def _keep(self, X: CheckedRows) -> None:
        """Check the kernel, and keep the rows."""
        gram = self._gram(self._fit_kernel(X, intercept=True))
        # A fit needs no entry, and a kernel that does not fit the rows is to be refused by it.
        gram.block(np.arange(1), np.arange(1))
        # A function must be symmetric. It need not be positive semi-definite.
        self._is_convex(gram, np.arange(X.shape[0]), X.dtype, intercept=True)
        by_statistic = self.kernel_ is not None and ranking(self.kernel_).finish is not None
        self._own = None if by_statistic else np.asarray(gram.diagonal(), dtype=np.float64)
        self.X_fit_ = X
        self.n_samples_fit_ = X.shape[0]
        if self.n_samples_fit_ > 1 and isinstance(X, np.ndarray) and bool((X[:1] == X).all()):
            warn_user(
                f"{type(self).__name__}: all {len(X)} rows of X are equal, so only their order decides which are near; "
                "check the columns of X.",
                MercerWarning,
            )

    def _count(self, n_neighbors: Any, among_themselves: bool) -> int:
        count = check_count(self.n_neighbors if n_neighbors is None else n_neighbors)
        available = self.n_samples_fit_ - among_themselves
        if count > available:
            others = " beside each row itself" if among_themselves else ""
            raise ParameterError(
                f"Expected n_neighbors <= n_samples_fit, but n_neighbors = {count}, n_samples_fit = "
                f"{self.n_samples_fit_}: there are {available} training rows{others}; ask for at most that many."
            )
        return count

    def _diagonal_of(self, X: RowsLike | None, rows: Any, diagonal: ArrayLike | None) -> Array:
        """``k(x, x)`` of rows, in float64."""
        assert self._own is not None
        if X is None:
            return self._own
        if self.kernel_ is not None:
            return Gram(self.kernel_, rows, n_jobs=self.n_jobs).diagonal()
        way_out = "compute neighbours without distances (return_distance=False, weights='uniform')"
        return diagonal_of_new(diagonal, self._own, len(rows), rows.dtype, way_out)

    def _from_scores(self, scores: Array, mine: Array, dtype: np.dtype, indices: NDArray[np.intp]) -> Any:
        """Distances from ``k(z, z) - 2 k(x, z)``; what is within rounding of 0 is 0."""
        assert self._own is not None
        squared = scores + mine
        rounding = _ROUNDING * float(np.finfo(dtype).eps) * (np.abs(mine) + np.abs(self._own[indices]))
        squared[squared <= rounding] = 0
        return np.sqrt(squared).astype(dtype, copy=False)

    def _weighted(self, X: RowsLike, diagonal: ArrayLike | None) -> tuple[NDArray[np.intp], Vector | None]:
        """Neighbours and their weights; None for equal ones."""
        if self.weights is None or (isinstance(self.weights, str) and self.weights == "uniform"):
            return self.kneighbors(X, return_distance=False, diagonal=diagonal), None
        distances, indices = self.kneighbors(X, diagonal=diagonal)
        if not callable(self.weights):
            at = distances == 0
            with np.errstate(divide="ignore"):
                weights = np.where(at.any(axis=1, keepdims=True), at, 1 / distances.astype(np.float64))
            return indices, weights
        weights = np.asarray(self.weights(distances), dtype=np.float64)
        if weights.shape != distances.shape or not np.isfinite(weights).all() or (weights < 0).any():
            raise DataError(
                f"weights(distances) must return finite numbers of 0 or more of the shape {distances.shape}, and "
                f"returned an array of shape {weights.shape}"
                + ("." if weights.shape != distances.shape else " with others among them.")
            )
        empty = np.flatnonzero(~weights.any(axis=1))
        if len(empty):
            raise DataError(
                f"weights(distances) gave every neighbour of {len(empty)} rows the weight 0 (first in row "
                f"{empty[0]}); return a positive weight for at least one neighbour."
            )
        return indices, weights


def check_count(value: Any) -> int:
    """A number of neighbours, checked.

    >>> check_count(3)
    3
    """
    if isinstance(value, bool) or not isinstance(value, Integral) or int(value) < 1:
        raise ParameterError(f"n_neighbors must be a whole number of 1 or more, but is {short(value)}.")
    return int(value)
