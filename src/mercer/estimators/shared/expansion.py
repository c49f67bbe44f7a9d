r"""Fitted functions ``f(x) = sum_i a_i k(x_i, x) + b`` as objects, and properties of learners that derive from them.

Such a function is ``<w, phi(x)> + b`` with ``w = sum_i a_i phi(x_i)``. The length of w is known for every kernel, and
its entries where the kernel has finitely many features.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import scipy.sparse as sp
from sklearn.utils.validation import check_is_fitted

from mercer._errors import NumericalError, ParameterError
from mercer._types import CheckedRows, Matrix, Positions, RowsLike, Vector
from mercer.data.columns import MixedRows
from mercer.data.objects import Objects
from mercer.engine.tiles import spans
from mercer.estimators.shared.layout import dense, laid_out_as, read_only
from mercer.gram import Gram, PrecomputedGram
from mercer.gram.evaluated import EvaluatedGram
from mercer.gram.protocol import GramMatrix
from mercer.kernels import Kernel, Linear
from mercer.kernels.algebra import Sum
from mercer.kernels.vector.columnwise import White
from mercer.maps._finite import features_of
from mercer.maps._monomials import in_figures
from mercer.maps.explicit import ExplicitMap
from mercer.solvers.rounding import product_rounding

MOST_FEATURES = 100_000
"""The most features for which w is computed; kernels on more columns may still have one for each column."""
# Rows of the sums that tell how much a function differs, and the share of this that rounding may change.
_LOOKED_AT, _SHARE = 64, 1e-3
# Features that are made at once.
_ENTRIES = 2**21


@dataclass(frozen=True, eq=False)
class KernelExpansion:
    """Fitted functions, (outputs,), over the same rows.

    Parameters
    ----------
    kernel : Kernel or None
        The kernel; None for a kernel matrix that was given.
    rows : array, CSR, Objects or MixedRows of s rows
        The rows of the sums; for a matrix that was given, this matrix, or an empty array where it is not kept.
    dual_coef : ndarray of shape (outputs, s)
        The coefficients of the rows.
    offsets : ndarray of shape (outputs,), optional
        What is added; 0 by default.
    columns : ndarray of shape (s,), optional
        The columns of given kernel values of new rows that belong to the sums; all by default.
    n_jobs : int, optional
        Threads.

    Examples
    --------
    >>> X = np.array([[1.0, 0.0], [0.0, 2.0]])
    >>> f = KernelExpansion(Linear(), X, np.array([[3.0, 1.0]]), np.array([0.5]))
    >>> f.values(np.array([[1.0, 1.0]])).tolist(), f.coefficients().tolist(), f.norms().round(3).tolist()
    ([[5.5]], [[3.0, 2.0]], [3.606])
    """

    kernel: Kernel | None
    rows: Any
    dual_coef: Matrix
    offsets: Vector | float = 0.0
    columns: Positions | None = None
    n_jobs: int | None = None

    def gram(self, X: CheckedRows | EvaluatedGram, dtype: Any = None) -> Gram | PrecomputedGram | EvaluatedGram:
        """Return the lazy kernel matrix of new rows and the rows of the sums, (m, s), in ``dtype`` or that of X.

        Of rows in float32 it is in float64 where float32 would leave few digits of the functions.
        """
        if not self.dual_coef.shape[1]:
            return PrecomputedGram(np.empty((X.shape[0], 0)), symmetric=False)
        if isinstance(X, EvaluatedGram):
            return X.restrict(None, self.columns)
        if self.kernel is None:
            block = X if self.columns is None else X[:, self.columns]
            return PrecomputedGram(block, symmetric=False, finite=False)
        if dtype is None and getattr(X, "dtype", None) == np.float32 and self._cancels():
            dtype = np.float64
        return Gram.of_checked(self.kernel, X, self.rows, dtype, self.n_jobs)

    def _cancels(self) -> bool:
        """Whether rounding of kernel values to float32 changes a function by more than a part of its differences."""
        s = self.dual_coef.shape[1]
        some = np.unique(np.linspace(0, s - 1, min(s, _LOOKED_AT)).astype(np.intp))
        gram, V = Gram(self.kernel, self.rows, dtype=np.float64, n_jobs=self.n_jobs), self.dual_coef.T
        spread = np.std(gram.restrict(some, None) @ np.ascontiguousarray(V), axis=0)
        coarser = float(np.finfo(np.float32).eps / np.finfo(np.float64).eps)
        rounding = coarser * product_rounding(gram.diagonal().astype(np.float64), V).max(axis=0)
        return bool((rounding > _SHARE * spread).any())

    def values(self, X: CheckedRows, dtype: Any = None) -> Matrix:
        """Return the functions at new rows, (m, outputs), in float64, from tiles of kernel values in ``dtype``."""
        if not self.dual_coef.shape[1]:
            return np.zeros((X.shape[0], len(self.dual_coef))) + self.offsets
        V = np.ascontiguousarray(self.dual_coef.T)
        return np.asarray(self.gram(X, dtype) @ V, dtype=np.float64) + self.offsets

    def feature_map(self) -> ExplicitMap:
        """The fitted map to the features of the kernel; raises AttributeError with the reason if there is none."""
        kernel, rows = self.kernel, self.rows
        if kernel is None or isinstance(rows, Objects | MixedRows):
            what = 'the features behind kernel="precomputed"' if kernel is None else f"the features of {kernel!r}"
            raise AttributeError(f"coef_ needs columns of numbers, and {what} are not known; use dual_coef_.")
        width = rows.shape[1]
        example = rows[:1] if rows.shape[0] else np.zeros((1, width))
        try:
            return _fitted_map(kernel, example, max(MOST_FEATURES, width))
        except NumericalError as error:
            raise AttributeError(f"coef_ cannot be written out: {error}") from error

    def coefficients(self) -> Matrix:
        """The vectors w in these features, (outputs, features)."""
        return self.feature_product(self.feature_map())(slice(None), self.dual_coef.T).T

    def feature_product(self, phi: ExplicitMap) -> Callable[[slice, Matrix], Matrix]:
        """The function of ``part`` and V that returns ``F[part].T @ V`` for the features F of the rows."""
        rows, width, is_linear = self.rows, phi.n_output_features_, phi.kernel_ == Linear()

        def product(part: slice, V: Matrix) -> Matrix:
            """Multiply block by block, because all features may be much larger than the rows."""
            some = rows[part]
            total = np.zeros((width, V.shape[1]))
            for block in spans(some.shape[0], max(1, some.shape[0] if is_linear else _ENTRIES // width)):
                X = some[block].astype(np.float64, copy=False)
                total += (X if is_linear else phi.transform(X)).T @ V[block]
            return total

        return product

    def norms(self) -> Vector:
        """The lengths of w, (outputs,); NaN where its square is below zero by more than rounding."""
        if self.kernel is None and 0 in self.rows.shape:
            return self._norms_without_rows()
        if not self.rows.shape[0]:
            return np.zeros(np.shape(self.offsets) or len(self.dual_coef))
        try:
            few = self.feature_map().n_output_features_ <= self.rows.shape[0]
        except AttributeError:
            few = False
        if few:
            # A sum of squares: nothing cancels.
            return np.asarray(np.linalg.norm(self.coefficients(), axis=1))
        gram: GramMatrix = (
            PrecomputedGram(self.rows)
            if self.kernel is None
            else Gram(self.kernel, self.rows, dtype=np.float64, n_jobs=self.n_jobs)
        )
        squares, sizes = self._squared_norms(gram)
        rounding = gram.shape[0] * float(np.finfo(np.result_type(gram.dtype, np.float32)).eps) * sizes
        # A square that is negative beyond rounding is not the square of a length.
        return np.sqrt(np.where(squares < -rounding, np.nan, np.maximum(squares, 0.0)))

    def _norms_without_rows(self) -> Vector:
        """Compute ``a'Ka`` from the attributes of a fit to a precomputed matrix."""
        if not self.dual_coef.any():
            return np.zeros(len(self.dual_coef))
        raise AttributeError(
            "norm_ needs the kernel values between the rows of the expansion, and a fit to a precomputed matrix keeps "
            "none. With K their matrix and a their row of dual_coef_ it is np.sqrt(a @ K @ a)."
        )

    def _squared_norms(self, gram: GramMatrix) -> tuple[Vector, Vector]:
        """Return ``a'Ka`` of each function, and the size of the terms in this sum."""
        A = self.dual_coef
        lengths = np.sqrt(np.abs(gram.diagonal()))
        return np.einsum("ij,ji->i", A, np.asarray(gram @ A.T, dtype=np.float64)), (np.abs(A) @ lengths) ** 2


class Expanded(Protocol):
    """The interface of a learner of such functions for the properties below."""

    @property
    def _expansion(self) -> KernelExpansion:
        """The fitted functions; raises AttributeError if there are none."""


class SupportModel(Protocol):
    """A fitted learner that stores the rows with a coefficient."""

    kernel_: Any
    support_vectors_: Any
    dual_coef_: Any
    intercept_: Vector
    n_jobs: int | None


def of_support(model: SupportModel) -> KernelExpansion:
    """Return the functions of a learner that stores the rows with a coefficient."""
    columns = None if model.kernel_ is not None else vars(model).get("support_")
    return KernelExpansion(
        model.kernel_, model.support_vectors_, dense(model.dual_coef_), model.intercept_, columns, model.n_jobs
    )


def values_of(model: Any, X: RowsLike) -> Matrix:
    """Return the fitted functions at a user's rows, (m, outputs); raises NotFittedError before a fit."""
    rows = model._new_rows(X)
    values: Matrix = model._expansion.values(rows, precision_of(model))
    return values


def precision_of(model: Any) -> type | None:
    """The precision of kernel values for predictions: coefficients of landmarks are large and cancel."""
    return np.float64 if "landmark_indices_" in vars(model) else None


def feature_map_of(model: Expanded) -> ExplicitMap:
    """The fitted map to the features that the columns of ``coef_`` belong to.

    Its ``get_feature_names_out`` names them. For the linear kernel they are the columns of X.

    Raises
    ------
    AttributeError
        If the kernel has no finite feature map, or one of more than 100,000 features.
    """
    check_is_fitted(model)
    phi = model._expansion.feature_map()
    names = getattr(model, "feature_names_in_", None)
    if names is not None:
        phi.feature_names_in_ = names
    return phi


def coef_of(model: Expanded) -> Any:
    """w of each function, for kernels with a finite feature map; read-only, and laid out as ``dual_coef_``.

    It is (p,) where ``dual_coef_`` is a vector, else (outputs, p); CSR where that is CSR. The p columns belong to the
    features of ``feature_map_``: the columns of X for the linear kernel.

    Raises
    ------
    AttributeError
        If the kernel has no finite feature map, or one of more than 100,000 features.
    """
    check_is_fitted(model)
    coefficients = model._expansion.coefficients()
    dual_coef: Any = model.dual_coef_  # type: ignore[attr-defined]
    return read_only(coefficients[0] if dual_coef.ndim == 1 else laid_out_as(dual_coef, coefficients))


def norm_of(model: Expanded) -> Vector:
    r""":math:`\|w\| = \sqrt{a^\top K a}` of each function, (outputs,), in the feature space of any kernel.

    NaN where :math:`a^\top K a` is below zero by more than rounding: an indefinite kernel has no such space.

    Raises
    ------
    AttributeError
        After a fit to a precomputed matrix that is not kept.
    """
    check_is_fitted(model)
    norms: Vector = read_only(model._expansion.norms())
    return norms


class Fallback:
    """The property that :func:`unless_stored` creates."""

    def __init__(self, get: Callable[[Any], Any]) -> None:
        self._get, self.__doc__ = get, get.__doc__

    def __get__(self, model: Any, owner: type) -> Any:
        return self if model is None else self._get(model)


def unless_stored(get: Callable[[Any], Any]) -> Any:
    """Create a property over which a stored attribute of the same name takes precedence.

    Examples
    --------
    >>> class Model:
    ...     @unless_stored
    ...     def coef_(self):
    ...         return 1
    >>> model = Model()
    >>> before, model.coef_ = model.coef_, 2
    >>> before, model.coef_
    (1, 2)
    """
    return Fallback(get)


def without_noise(kernel: Kernel | None) -> Kernel | None:
    """Return the kernel without its ``White`` terms, which are 0 for new rows; a kernel of noise alone is unchanged.

    Examples
    --------
    >>> without_noise(2.0 * Linear() + White(0.5))
    2.0 * Linear()
    """
    if not isinstance(kernel, Sum):
        return kernel
    terms = [term for term in kernel.terms if not _is_noise(term)]
    return kernel.with_children(tuple(terms)) if terms else kernel


def _is_noise(kernel: Any) -> bool:
    children = kernel.children()
    return isinstance(kernel, White) or (len(children) == 1 and _is_noise(children[0][1]))


def _fitted_map(kernel: Kernel, example: Any, most: int) -> ExplicitMap:
    """Return the map of the kernel; raises AttributeError with the reason if there is none."""
    row = np.asarray(example.toarray() if sp.issparse(example) else example, dtype=np.float64)
    features = features_of(kernel, row)
    if features is None:
        raise AttributeError(
            f"coef_ exists for kernels with a finite feature map only (linear, polynomial, all-subsets, and sums, "
            f"products and powers of these), and the kernel is {kernel!r}. Use dual_coef_, or a linear learner on the "
            "features of mercer.maps.NystroemMap."
        )
    if features.count > most:
        raise AttributeError(
            f"coef_ would have {in_figures(features.count)} columns, one for each feature of {kernel!r}, and at most "
            f"{most:,} are written out. Use dual_coef_, or a kernel on fewer columns or of a lower degree."
        )
    try:
        return ExplicitMap(kernel).fit(row)
    except ParameterError as error:
        raise AttributeError(f"coef_ cannot be written out: {error}") from error
