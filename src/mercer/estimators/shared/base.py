"""Base of all estimators with a kernel: parameters of the kernel, validation, Gram matrices."""

from __future__ import annotations

import copy
import inspect
from functools import cache
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, clone
from sklearn.utils.validation import check_array, check_is_fitted, validate_data

from mercer._documentation import documented
from mercer._errors import DataError, MercerWarning, ParameterError, warn_user
from mercer._types import CheckedRows, RowsLike, Vector
from mercer.data.columns import MixedRows
from mercer.data.fitted import Fitted, statements
from mercer.data.nested_parameters import get_params, set_params
from mercer.data.objects import Objects
from mercer.data.sklearn_errors import advised
from mercer.data.statements import Count, Is, Labels
from mercer.data.vectors import refuse_unreal, with_sums
from mercer.engine.threads import hold_one_blas_thread
from mercer.engine.tiles import TILE
from mercer.engine.trace import keep_steps
from mercer.estimators.shared.definiteness import (
    STATIONARY,
    Policy,
    is_taken_on_trust,
    judge_kernel,
    judge_matrix,
    require_rule,
)
from mercer.estimators.shared.degenerate import warn_if_degenerate
from mercer.estimators.shared.landmark_path import LandmarkPath
from mercer.estimators.shared.statements import KERNEL_FITS, FittedKernel, Jobs
from mercer.estimators.shared.targets import check_numbers
from mercer.estimators.shared.whole_rows import refuse_parts
from mercer.gram import Gram, PrecomputedGram
from mercer.gram.evaluated import EvaluatedGram
from mercer.gram.hold import evaluated
from mercer.gram.precomputed import check_square
from mercer.gram.protocol import GramMatrix
from mercer.kernels import Kernel, as_kernel
from mercer.kernels.convert import check_rates, is_named
from mercer.kernels.domain import checked_objects
from mercer.kernels.inputs import Rows
from mercer.kernels.modifiers import On, Warped
from mercer.kernels.objects import ObjectKernel
from mercer.loops.picked import is_finite
from mercer.solvers.curvature import SAMPLE

if TYPE_CHECKING:
    from mercer.estimators.shared.expansion import KernelExpansion
    from mercer.estimators.shared.restricted import Beside


class MatrixSource(Protocol):
    """Kernel matrices of the rows of a fit that exist already."""

    def matrix(self, kernel: Kernel) -> GramMatrix | None:
        """The matrix of the rows, in the order in which ``fit`` gets them, or None if there is none."""


@documented
class KernelEstimator(BaseEstimator):
    """Base of the estimators; needs the constructor parameters ``kernel, gamma, degree, coef0, allow_indefinite,
    n_jobs``.

    After ``_fit_kernel`` an estimator has ``kernel_``, the fitted kernel (None for ``"precomputed"``).
    """

    kernel: Any
    gamma: Any
    degree: Any
    coef0: Any
    n_jobs: Any
    allow_indefinite: Any

    # Kernel matrices of the rows of the next fit, where a search has evaluated them.
    _matrices: MatrixSource | None = None
    # The function from which the next fit over landmarks starts.
    _continues: KernelExpansion | None = None
    # Whether ``n_landmarks`` may be ``"auto"``.
    may_leave_landmarks_open: ClassVar[bool] = False
    # What other parameters must be with an approximation.
    _beside_landmarks: ClassVar[tuple[Beside, ...]] = ()
    # Whether ``fit`` takes all its kernel values from ``_gram`` of all its rows, and predicts from kernel values alone.
    shares_matrices: ClassVar[bool] = False
    # For more rows a search evaluates no matrix for several fits, unless entries are expensive: solvers that need few
    # rows of K compute these faster than a search stores all.
    most_shared_rows: ClassVar[float] = np.inf
    # The precision of kernel values that a prediction needs; None for that of the rows.
    predicts_in: ClassVar[type | None] = None
    # How an indefinite kernel is treated; None for a learner that needs no definiteness.
    _if_indefinite: ClassVar[Policy | None] = STATIONARY
    _fitted = Fitted(
        sometimes={
            "n_features_in_": Count("d", least=1),
            "feature_names_in_": Labels("d", texts=True),
            "landmark_path_": Is(LandmarkPath),
        },
        always={"kernel_": FittedKernel()},
        parameters={"n_jobs": Jobs()},
        rules=(KERNEL_FITS,),
    )

    get_params = get_params
    set_params = set_params

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        hold_one_blas_thread(cls)
        refuse_parts(cls)
        keep_steps(cls)

    @property
    def _not_in_file(self) -> tuple[str, ...]:
        """Attributes that a model file does not have."""
        return ("trace_",)

    @classmethod
    @cache
    def _get_param_names(cls) -> list[str]:
        """scikit-learn's, once a class: it inspects the signature for every copy that a path or a search makes."""
        names: list[str] = super()._get_param_names()
        return names

    @property
    def _is_precomputed(self) -> bool:
        return isinstance(self.kernel, str) and self.kernel == "precomputed"

    @property
    def _needs_no_kernel(self) -> bool:
        """Whether a fit may have left ``kernel_`` None."""
        return self._is_precomputed

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = self._is_precomputed
        tags.input_tags.sparse = not self._is_precomputed
        return tags

    def _check_X(self, X: RowsLike, *, reset: bool) -> Any:
        """``X`` as a C-ordered array or CSR of float32 or float64, checked as scikit-learn does.

        What a kernel on other things compares comes as one of the containers of :mod:`mercer.data`.
        """
        rows = self._objects(X, reset=reset)
        if rows is not None:
            return rows
        if isinstance(X, EvaluatedGram) and self._is_precomputed and not reset:
            return X
        refuse_unreal(X, "X")
        precomputed = self._is_precomputed
        with advised():
            X = validate_data(
                self,
                X,
                reset=reset,
                accept_sparse=False if precomputed else "csr",
                dtype=[np.float64, np.float32],
                order="C",
                ensure_all_finite=not precomputed,
            )
            # A pass over a matrix takes as long as a small fit. For a fit, ``check_square`` makes the only one.
            if precomputed and not reset and not is_finite(X):
                check_array(X, estimator=self, input_name="X")
        return with_sums(X)

    def _new_rows(self, X: RowsLike) -> Any:
        """Return checked rows for a prediction; raises NotFittedError before a fit."""
        check_is_fitted(self)
        return self._check_X(X, reset=False)

    def _check_X_and_numbers(self, X: RowsLike, y: ArrayLike, *, several: bool = False) -> tuple[Any, Vector]:
        """Return ``X`` as above, and targets y (n,), or with ``several`` also (n, t), in float64."""
        if y is None:
            raise DataError(
                f"{type(self).__name__} requires y to be passed, but the target y is None; pass one number for each "
                "row of X."
            )
        X = self._check_X(X, reset=True)
        return X, check_numbers(self, y, X, several=several)

    def _objects(self, X: RowsLike, *, reset: bool) -> Objects | MixedRows | None:
        """Return the rows as objects or as columns of several kinds; None if the kernel compares vectors."""
        fitted = None if reset else getattr(self, "kernel_", None)
        # A learner of several parts has a kernel for each, all on the same rows.
        fitted = fitted[0] if isinstance(fitted, tuple) else fitted
        return checked_objects(self, self.kernel if fitted is None else fitted, X, reset=reset)

    def _fit_kernel(self, X: CheckedRows, *, intercept: bool, gamma: Any = None) -> Any:
        """Set ``kernel_``; for an indefinite kernel, warn or raise as ``allow_indefinite`` says.

        ``gamma`` stands in for the parameter. With an ``intercept`` conditionally positive kernels will do. Returns the
        rows as a side of the matrices of the fit, for which they are then prepared once.
        """
        # Also what this kernel does not use: the next one may.
        check_rates(self.gamma if gamma is None else gamma, self.degree, self.coef0)
        require_rule(self)
        if self._is_precomputed:
            check_square(X)
            self.kernel_ = None
            self._warn_if_degenerate(X)
            return X
        self._warn_of_unused()
        kernel = self._make_kernel(X, self.gamma if gamma is None else gamma)
        names = X.names if isinstance(X, MixedRows) else getattr(self, "feature_names_in_", None)
        self.kernel_ = bind_columns(kernel, None if names is None else tuple(names)).with_data(X)
        judge_kernel(self, kernel, intercept)
        rows = self._rows(X)
        # A search may end at other parameters, and checks again there.
        if not self.learns_kernel or not self.kernel_.theta.size:
            self._warn_if_degenerate(X if self.is_on_landmarks else rows)
        return rows

    @property
    def learns_kernel(self) -> bool:
        """Whether the fit changes the free parameters of the kernel."""
        return getattr(self, "optimizer", None) is not None

    def _is_kernel_given(self, X: CheckedRows) -> bool:
        """Whether no parameter of the fitted kernel was computed from the rows of the fit, X."""
        if self.kernel_ is None:
            return True
        if self.learns_kernel or self.gamma == "scale":
            return False
        names = X.names if isinstance(X, MixedRows) else getattr(self, "feature_names_in_", None)
        kernel = self._make_kernel(X, self.gamma)
        given: bool = bind_columns(kernel, None if names is None else tuple(names)) == self.kernel_
        return given

    @property
    def can_share(self) -> bool:
        """Whether a fit with these parameters can use kernel matrices that exist already."""
        return self.shares_matrices and not self.learns_kernel and not self.is_on_landmarks

    @property
    def is_on_landmarks(self) -> bool:
        """Whether a fit is restricted to functions over landmarks."""
        return getattr(self, "approximation", None) == "nystroem"

    @property
    def continues(self) -> KernelExpansion | None:
        """The function from which a fit over landmarks starts, if it goes on from another one."""
        return self._continues

    def _warn_if_degenerate(self, X: CheckedRows | Rows) -> None:
        """Warn if ``kernel_`` is diagonal or constant on the rows; for functions see ``_is_convex``."""
        if self.kernel_ is None or not self._is_taken_on_trust():
            warn_if_degenerate(self, self.kernel_, X)

    def _warn_of_unused(self) -> None:
        """Warn if ``gamma``, ``degree`` or ``coef0`` is set and the kernel is not a name, so that it ignores them."""
        if is_named(self.kernel) or self.kernel is None:
            return
        defaults = inspect.signature(type(self).__init__).parameters
        for name in ("gamma", "degree", "coef0"):
            value = getattr(self, name)
            if name in defaults and value != defaults[name].default:
                warn_user(
                    f"{type(self).__name__}: {name}={value!r} is not used, because kernel={self.kernel!r} is not a "
                    f"name such as 'rbf'. Set the parameters on the kernel object, and leave out {name}.",
                    MercerWarning,
                )

    def _is_taken_on_trust(self) -> bool:
        """Whether only the user states that the kernel is positive: for a matrix, and for a function."""
        return is_taken_on_trust(self.kernel_)

    def _is_convex(self, gram: GramMatrix, positions: NDArray[np.intp], precision: Any, *, intercept: bool) -> bool:
        """Whether the problem on this matrix is convex; see :func:`judge_matrix`."""
        return judge_matrix(self, gram, positions, precision, intercept)

    def _make_kernel(self, X: CheckedRows, gamma: Any) -> Kernel:
        """Return the kernel that the parameters describe."""
        return as_kernel(self.kernel, gamma=gamma, degree=self.degree, coef0=self.coef0, X=X)

    def _rows(self, X: CheckedRows) -> Any:
        """Return ``X`` as a side of several matrices, which then share what is computed from the rows."""
        return X if self.kernel_ is None else Rows(X)

    def take_matrices_from(self, source: MatrixSource | None) -> Self:
        """Let ``fit`` use kernel matrices that exist already, where a source has them; for searches.

        Parameters
        ----------
        source : MatrixSource or None
            Its rows are those that ``fit`` will get.

        Returns
        -------
        self
        """
        self._matrices = source
        return self

    def checked_rows(self, X: RowsLike) -> Any:
        """Return rows as ``fit`` takes them: an array, a CSR matrix, or a container of objects.

        Parameters
        ----------
        X : array-like, sparse matrix or objects
            Rows.

        Returns
        -------
        ndarray, csr_matrix, Objects or MixedRows

        Raises
        ------
        DataError
            If the learner cannot be fitted to them.
        """
        return clone(self)._check_X(X, reset=True)

    def kernel_for(self, X: CheckedRows) -> Kernel | None:
        """Return the kernel with which a fit to these rows would begin; nothing is fitted.

        Parameters
        ----------
        X : ndarray, csr_matrix, Objects or MixedRows
            As :meth:`checked_rows` returns them. Rates such as ``gamma="scale"`` are taken from them.

        Returns
        -------
        Kernel or None
            None for ``"precomputed"``.
        """
        if self._is_precomputed:
            return None
        chosen = isinstance(self.gamma, str) and self.gamma not in ("scale", "auto")
        names = X.names if isinstance(X, MixedRows) else getattr(self, "feature_names_in_", None)
        kernel = self._make_kernel(X, "scale" if chosen else self.gamma)
        return bind_columns(kernel, None if names is None else tuple(names)).with_data(X)

    def on_kernel_values(self) -> Self:
        """Return a copy of this fitted learner that predicts from kernel values of new rows with the training rows.

        Returns
        -------
        learner of the same class
            As if it had been fitted with ``kernel="precomputed"``.
        """
        model = copy.copy(self)
        model.kernel, model.kernel_ = "precomputed", None
        if hasattr(model, "feature_names_in_"):
            del model.feature_names_in_
        return model

    def _given_matrix(self) -> GramMatrix | None:
        """The matrix of ``kernel_`` on the rows of this fit, where a search has evaluated it."""
        return None if self._matrices is None or self.kernel_ is None else self._matrices.matrix(self.kernel_)

    def _gram(self, X: CheckedRows | Rows, Z: Any = None, dtype: Any = None) -> Any:
        """Return the Gram matrix of the fitted kernel; for ``"precomputed"``, ``X`` is the matrix."""
        if self.kernel_ is None:
            if isinstance(X, EvaluatedGram):
                return X if dtype is None else X.astype(dtype)
            # Of a fit, whose matrix was checked.
            gram = PrecomputedGram(X, symmetric=Z is None, finite=Z is None)
            return gram if dtype is None else gram.astype(dtype)
        given = self._given_matrix() if Z is None else None
        if given is not None:
            return given.astype(np.float64 if dtype is None else dtype)
        lazy = Gram.of_checked(self.kernel_, X, Z, dtype, self.n_jobs)
        if Z is not None:
            return lazy
        # Solvers look at an entry many times, and one between two objects takes long. Of few rows an examination of a
        # function looks at all entries.
        expensive = lazy.tile < TILE or (self._is_taken_on_trust() and lazy.shape[0] <= SAMPLE)
        return evaluated(lazy) if expensive else lazy


def adopt(learner: Any, fitted: Any) -> None:
    """Give a learner what another one of its class has learned, in place of what an earlier fit has left."""
    cls: type = type(learner)
    stated, attributes = statements(cls), vars(learner)
    for name in () if stated is None else stated.attributes:
        attributes.pop(name, None)
    kept = learner.get_params(deep=False).keys() | {"_continues"}
    attributes.update({name: value for name, value in vars(fitted).items() if name not in kept})


def bind_columns(kernel: Kernel, names: tuple[str, ...] | None) -> Kernel:
    """Replace column names in ``kernel.on([...])`` by positions, because estimators pass on arrays."""
    if isinstance(kernel, On):
        positions = _positions(kernel, names)
        # A choice within a choice counts among what the outer one has left.
        left = None if names is None else tuple(names[p] for p in positions)
        return On(bind_columns(kernel.kernel, left), positions)
    # What a map returns, and a member of a bag, has columns of its own.
    inside = None if isinstance(kernel, (Warped, ObjectKernel)) else names
    parts = tuple(bind_columns(child, inside) for _, child in kernel.children())  # type: ignore[arg-type]
    bound: Kernel = kernel.with_children(parts) if parts else kernel
    return bound


def _positions(kernel: On, names: tuple[str, ...] | None) -> tuple[int, ...]:
    if names is None:
        if any(isinstance(c, str) for c in kernel.columns):
            raise ParameterError(
                f"{kernel!r} names columns, but X has no column names; pass a pandas DataFrame or use positions."
            )
        return tuple(int(c) for c in kernel.columns)
    for column in kernel.columns:
        if column not in names if isinstance(column, str) else not -len(names) <= column < len(names):
            raise ParameterError(f"{kernel!r}: there is no column {column!r}; the columns are {', '.join(names[:20])}.")
    return tuple(names.index(c) if isinstance(c, str) else c for c in kernel.columns)
