"""What every feature map shares: the input and its checks, names of the features, room for the result."""

from __future__ import annotations

import abc
from collections.abc import Callable
from functools import partial
from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from mercer._documentation import documented
from mercer._errors import NumericalError
from mercer._sklearn import check_feature_names_in
from mercer.data.fitted import Fitted
from mercer.data.nested_parameters import get_params, set_params
from mercer.data.sklearn_errors import advised
from mercer.data.statements import Count, Is, Labels
from mercer.data.vectors import refuse_unreal, with_sums
from mercer.engine import memory, threads
from mercer.engine.progress import Progress
from mercer.engine.threads import OneBlasThread
from mercer.engine.tiles import spans
from mercer.kernels import Kernel

# Entries of the result that one task makes: enough to hide what a task costs, few enough for Ctrl-C.
_ENTRIES = 2**21
# What a name of a feature takes, about, as a string in an array of objects.
_NAME_BYTES = 100


@documented
class FeatureMap(TransformerMixin, BaseEstimator, OneBlasThread, abc.ABC):
    """Base of the maps from rows to features whose inner products equal or approximate the values of a kernel.

    ``kernel`` is that kernel, or what the user gave for it; ``kernel_`` is the kernel of the fit.
    """

    kernel: Any
    kernel_: Kernel
    n_output_features_: int
    _fitted = Fitted(
        {"kernel_": Is(Kernel), "n_output_features_": Count("features", least=1)},
        {"n_features_in_": Count("d", least=1), "feature_names_in_": Labels("d", texts=True)},
    )

    get_params = get_params
    set_params = set_params

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags

    def fit(self, X: Any, y: Any = None) -> Self:
        """Check the parameters and learn the columns.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
        y : None
            Not used.

        Raises
        ------
        DataError, ParameterError, NumericalError, MemoryBudgetError
            If the rows or a parameter cannot be used, or the problem exceeds the memory budget; see the messages.
        """
        self._learn(self._check_X(X, reset=True))
        return self

    def transform(self, X: Any) -> Any:
        """Return the features of each row.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)

        Returns
        -------
        array or CSR matrix of shape (n_samples, n_output_features_)
            float32 if X is, else float64.

        Raises
        ------
        DataError, NumericalError, MemoryBudgetError
            If the rows cannot be used, or the features overflow or do not fit the memory budget.
        """
        check_is_fitted(self)
        return self._features(self._check_X(X, reset=False))

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[np.object_]:
        """Return the names of the features.

        Parameters
        ----------
        input_features : array-like of str, optional
            Names of the columns; those of the fit, or ``x0, x1, ...``, if None.

        Raises
        ------
        DataError, MemoryBudgetError
            If the names differ from those of the fit, or do not fit the memory budget.
        """
        check_is_fitted(self, "n_output_features_")
        with advised():
            columns = check_feature_names_in(self, input_features)
        count = self.n_output_features_
        memory.require(_NAME_BYTES * count, f"{type(self).__name__}: the names of {count:,} features")
        return np.array(self._names([str(name) for name in columns]), dtype=object)

    @abc.abstractmethod
    def _learn(self, X: Any) -> None:
        """Check the parameters; set what ``transform`` needs and ``n_output_features_``."""

    @abc.abstractmethod
    def _features(self, X: Any) -> Any:
        """The features of checked rows."""

    def _names(self, columns: list[str]) -> list[str]:
        stem = type(self).__name__.lower()
        return [f"{stem}{i}" for i in range(self.n_output_features_)]

    def _check_X(self, X: Any, *, reset: bool) -> Any:
        """A C-ordered array, or CSR with sorted columns, each once; of float32 or float64."""
        refuse_unreal(X, "X")
        with advised():
            X = validate_data(self, X, reset=reset, accept_sparse="csr", dtype=[np.float64, np.float32], order="C")
        return with_sums(X)

    def _room(self, n: int, entries: int, entry_bytes: int, count: str) -> None:
        """Raise if ``entries`` of the result of ``n`` rows do not fit; ``count`` says how many features there are."""
        memory.require(
            entries * entry_bytes,
            f"{type(self).__name__}: {n:,} rows with {count} features",
            "Use fewer rows or columns or a lower degree, or a learner with the kernel itself, which never computes "
            "the features; or raise the budget with mercer.config(memory=...).",
        )

    def _require_finite(self, values: NDArray[np.floating]) -> None:
        if not np.isfinite(values).all():
            raise NumericalError(
                f"{type(self).__name__}: features overflow in {values.dtype}. Scale the columns of X "
                "(sklearn.preprocessing.StandardScaler)" + ("." if values.dtype == np.float64 else ", or pass float64.")
            )


def by_rows(n: int, width: int, work: Callable[[slice], None]) -> None:
    """Call ``work`` on spans of rows, ``width`` entries of the result each, on all threads."""
    parts = spans(n, max(1, _ENTRIES // max(width, 1)))
    progress = Progress(len(parts), "features")

    def task(part: slice) -> None:
        work(part)
        progress.advance()

    threads.run([partial(task, part) for part in parts])


def csr_of(data: Any, columns: Any, indptr: Any, shape: tuple[int, int]) -> sp.csr_matrix:
    """A CSR matrix of sorted, distinct columns, without a check of them."""
    result = sp.csr_matrix((data, columns, indptr), shape=shape, copy=False)
    result.has_canonical_format = True
    return result


def largest_entry(X: Any) -> float:
    """The largest ``|x_ij|``, 0 if there is none."""
    values = X.data if sp.issparse(X) else X
    return float(max(values.max(initial=0.0), -values.min(initial=0.0)))
