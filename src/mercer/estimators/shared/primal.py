"""The weight vectors w of fitted functions: their lengths, and their entries where the kernel has finitely many
features.

A function ``f(x) = sum_i a_i k(x_i, x)`` is ``<w, phi(x)>`` with ``w = sum_i a_i phi(x_i)``.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.utils.validation import check_is_fitted

from mercer._errors import NumericalError, ParameterError
from mercer._types import Vector
from mercer.data.columns import MixedRows
from mercer.data.objects import Objects
from mercer.engine.tiles import spans
from mercer.estimators.shared.base import KernelEstimator
from mercer.estimators.shared.layout import dense, read_only
from mercer.gram import Gram, PrecomputedGram
from mercer.kernels import Kernel, Linear
from mercer.kernels.algebra import Sum
from mercer.kernels.vector.columnwise import White
from mercer.maps._finite import features_of
from mercer.maps._monomials import in_figures
from mercer.maps.explicit import ExplicitMap

MOST_FEATURES = 100_000
"""The most features for which w is written out; kernels on more columns than that may have one a column."""
# Features that are made at once.
_ENTRIES = 2**21


class Fallback:
    """What :func:`unless_stored` makes of a method."""

    def __init__(self, get: Callable[[Any], Any]) -> None:
        self._get, self.__doc__ = get, get.__doc__

    def __get__(self, model: Any, owner: type) -> Any:
        return self if model is None else self._get(model)


def unless_stored(get: Callable[[Any], Any]) -> Any:
    """Decorate a method as a property over which an attribute that the object stores takes precedence.

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


class FeatureSpaceVectors(KernelEstimator, ABC):
    """Base of the learners that learn sums ``sum_i a_i phi(x_i)``: these in the features of a finite feature map."""

    @abstractmethod
    def _expansion_rows(self) -> Any:
        """The rows of the expansions; for ``"precomputed"`` their matrix, or an empty array where it is not kept."""

    def _expansion_weights(self) -> Vector:
        """The coefficients of the expansions, (outputs, rows)."""
        return np.atleast_2d(dense(self.dual_coef_))

    def _function_kernel(self) -> Kernel | None:
        """The kernel of the functions; ``kernel_`` may have parts that no function is made of."""
        kernel: Kernel | None = self.kernel_
        return kernel

    @property
    def feature_map_(self) -> ExplicitMap:
        """The fitted map to the features that the columns of ``coef_`` belong to.

        Its ``get_feature_names_out`` names them. For the linear kernel they are the columns of X.

        Raises
        ------
        AttributeError
            If the kernel has no finite feature map, or one of more than 100,000 features.
        """
        check_is_fitted(self)
        kernel, rows = self._function_kernel(), self._expansion_rows()
        if kernel is None or isinstance(rows, Objects | MixedRows):
            what = 'the features behind kernel="precomputed"' if kernel is None else f"the features of {kernel!r}"
            raise AttributeError(f"coef_ needs columns of numbers, and {what} are not known; use dual_coef_.")
        width = self.n_features_in_
        example = rows[:1] if rows.shape[0] else np.zeros((1, width))
        names = getattr(self, "feature_names_in_", None)
        try:
            phi = _fitted_map(kernel, example, max(MOST_FEATURES, width))
        except NumericalError as error:
            raise AttributeError(f"coef_ cannot be written out: {error}") from error
        if names is not None:
            phi.feature_names_in_ = names
        return phi

    def _coefficients(self) -> Vector:
        """The sums in these features, (outputs, features)."""
        return self._feature_product(self.feature_map_)(slice(None), self._expansion_weights().T).T

    def _feature_product(self, phi: ExplicitMap) -> Callable[[slice, Vector], Vector]:
        """The function of ``part`` and V that returns ``F[part].T @ V`` for the features F of the rows."""
        rows, width, is_linear = self._expansion_rows(), phi.n_output_features_, phi.kernel_ == Linear()

        def product(part: slice, V: Vector) -> Vector:
            """A block of features after the other: the whole may be much larger than the rows."""
            some = rows[part]
            total = np.zeros((width, V.shape[1]))
            for block in spans(some.shape[0], max(1, some.shape[0] if is_linear else _ENTRIES // width)):
                X = some[block].astype(np.float64, copy=False)
                total += (X if is_linear else phi.transform(X)).T @ V[block]
            return total

        return product


class PrimalCoefficients(FeatureSpaceVectors):
    """Base of the learners whose functions are ``f(x) = <w, phi(x)>``: w, for kernels with a finite feature map."""

    @property
    def coef_(self) -> Any:
        """w of each function, (outputs, p), read-only, for kernels with a finite feature map.

        The p columns belong to the features of ``feature_map_``: the columns of X for the linear kernel.

        Raises
        ------
        AttributeError
            If the kernel has no finite feature map, or one of more than 100,000 features.
        """
        return read_only(self._coefficients())


class PrimalWeights(PrimalCoefficients):
    """The same, and the lengths of w for any kernel."""

    @property
    def norm_(self) -> Vector:
        r""":math:`\|w\| = \sqrt{a^\top K a}` of each function, (outputs,), in the feature space of any kernel.

        NaN where :math:`a^\top K a` is below zero by more than rounding: an indefinite kernel has no such space.

        Raises
        ------
        AttributeError
            After a fit to a precomputed matrix that is not kept.
        """
        check_is_fitted(self)
        rows = self._expansion_rows()
        if self._function_kernel() is None and 0 in rows.shape:
            return read_only(self._norms_without_rows())
        return read_only(self._norms(rows))

    def _norms_without_rows(self) -> Vector:
        """From what a fit to a precomputed matrix keeps."""
        A = self._expansion_weights()
        if not A.any():
            return np.zeros(len(A))
        raise AttributeError(
            "norm_ needs the kernel values between the rows of the expansion, and a fit to a precomputed matrix keeps "
            "none. With K their matrix and a their row of dual_coef_ it is np.sqrt(a @ K @ a)."
        )

    def _norms(self, rows: Any) -> Vector:
        try:
            few = self.feature_map_.n_output_features_ <= rows.shape[0]
        except AttributeError:
            few = False
        if few:
            # A sum of squares: nothing cancels.
            return np.asarray(np.linalg.norm(self._coefficients(), axis=1))
        if not rows.shape[0]:
            return np.zeros(len(self._expansion_weights()))
        kernel = self._function_kernel()
        gram: Any = (
            PrecomputedGram(rows) if kernel is None else Gram(kernel, rows, dtype=np.float64, n_jobs=self.n_jobs)
        )
        squares, sizes = self._squared_norms(gram)
        rounding = gram.shape[0] * float(np.finfo(np.result_type(gram.dtype, np.float32)).eps) * sizes
        # Beyond rounding a negative square is no square of a length.
        return np.sqrt(np.where(squares < -rounding, np.nan, np.maximum(squares, 0.0)))

    def _squared_norms(self, gram: Any) -> tuple[Vector, Vector]:
        """``a'Ka`` of each function, and the size of the terms that it is a sum of."""
        A = self._expansion_weights()
        lengths = np.sqrt(np.abs(gram.diagonal()))
        return np.einsum("ij,ji->i", A, np.asarray(gram @ A.T, dtype=np.float64)), (np.abs(A) @ lengths) ** 2


class TargetWeights(PrimalWeights):
    """The same for learners of numbers, whose ``dual_coef_`` is (n,), or (n, t) for t targets."""

    dual_coef_: Vector

    @property
    def coef_(self) -> Vector:
        """w, (p,) or (t, p), read-only, for kernels with a finite feature map: ``predict(X) = phi(X) @ coef_.T``.

        The p columns belong to the features of ``feature_map_``: the columns of X for the linear kernel.

        Raises
        ------
        AttributeError
            If the kernel has no finite feature map, or one of more than 100,000 features.
        """
        coef = self._coefficients()
        return read_only(coef[0] if self.dual_coef_.ndim == 1 else coef)

    def _expansion_weights(self) -> Vector:
        return self.dual_coef_.reshape(len(self.dual_coef_), -1).T


class LatentWeights(PrimalWeights):
    """The same for learners of ordered classes, which have one function and call it latent."""

    X_fit_: Any

    @property
    def coef_(self) -> Vector:
        """w, (p,), read-only, for kernels with a finite feature map: ``latent(X) = phi(X) @ coef_``.

        The p columns belong to the features of ``feature_map_``: the columns of X for the linear kernel.

        Raises
        ------
        AttributeError
            If the kernel has no finite feature map, or one of more than 100,000 features.
        """
        return read_only(self._coefficients()[0])

    def _expansion_rows(self) -> Any:
        return self.X_fit_


def without_noise(kernel: Kernel | None) -> Kernel | None:
    """The kernel without its ``White`` terms, which are 0 between new rows and others; itself where it is all noise.

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
    """The map of the kernel; an AttributeError says why there is none."""
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
