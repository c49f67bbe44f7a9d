"""What every estimator with a kernel shares: parameters of the kernel, validation, the Gram matrices."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.validation import _check_y, check_consistent_length, validate_data

from mercer._errors import DataError, IndefiniteKernelError, ParameterError
from mercer.data.advice import advised
from mercer.data.columns import MixedRows
from mercer.data.objects import Objects
from mercer.engine.tiles import TILE
from mercer.gram import Gram, PrecomputedGram
from mercer.gram.evaluated import evaluated
from mercer.gram.precomputed import check_square
from mercer.kernels import Kernel, as_kernel
from mercer.kernels.convert import check_rates
from mercer.kernels.domain import checked_objects
from mercer.kernels.function import rests_on_a_function
from mercer.kernels.modifiers import On, Warped
from mercer.kernels.objects import ObjectKernel
from mercer.solvers.curvature import require_conditionally_positive, require_kernel, require_positive
from mercer.solvers.matrix import Vector


class KernelEstimator(BaseEstimator):
    """Base of the estimators; needs the constructor parameters ``kernel, gamma, degree, coef0, n_jobs``.

    After ``_fit_kernel`` an estimator has ``kernel_``, the fitted kernel (None for ``"precomputed"``).
    """

    kernel: Any
    gamma: Any
    degree: Any
    coef0: Any
    n_jobs: Any

    def set_params(self, **params: Any) -> Self:
        """Set parameters; ``kernel__NAME`` replaces the kernel by one with another ``NAME``."""
        inside = {k.removeprefix("kernel__"): v for k, v in params.items() if k.startswith("kernel__")}
        super().set_params(**{k: v for k, v in params.items() if not k.startswith("kernel__")})
        if inside:
            if not isinstance(self.kernel, Kernel):
                if hasattr(self.kernel, "set_params"):
                    return super().set_params(**{f"kernel__{k}": v for k, v in inside.items()})
                raise ParameterError(
                    f"kernel__{next(iter(inside))} names a parameter of the kernel, and kernel={self.kernel!r} "
                    "has none; pass a kernel object such as mercer.kernels.RBF(1.0)."
                )
            self.kernel = self.kernel.with_params(**inside)
        return self

    @property
    def _is_precomputed(self) -> bool:
        return isinstance(self.kernel, str) and self.kernel == "precomputed"

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = self._is_precomputed
        tags.input_tags.sparse = not self._is_precomputed
        return tags

    def _check_X(self, X: Any, *, reset: bool) -> Any:
        """``X`` as a C-ordered array or CSR of float32 or float64, checked as scikit-learn does.

        What a kernel on other things compares comes as one of the containers of :mod:`mercer.data`.
        """
        rows = self._objects(X, reset=reset)
        if rows is not None:
            return rows
        with advised():
            return validate_data(
                self, X, reset=reset, accept_sparse=False if self._is_precomputed else "csr",
                dtype=[np.float64, np.float32], order="C",
            )  # fmt: skip

    def _check_X_and_numbers(self, X: Any, y: Any, *, several: bool = False) -> tuple[Any, Vector]:
        """``X`` as above, and targets y (n,), or with ``several`` also (n, t), in float64."""
        if y is None:
            raise DataError(
                f"{type(self).__name__} requires y to be passed, but the target y is None; pass one number for each "
                "row of X."
            )
        X = self._check_X(X, reset=True)
        with advised():
            y = _check_y(y, multi_output=several, y_numeric=True, estimator=self)
            check_consistent_length(X, y)
        return X, np.asarray(y, dtype=np.float64)

    def _objects(self, X: Any, *, reset: bool) -> Objects | MixedRows | None:
        """The rows as objects, or as columns of several kinds; None where the kernel compares vectors."""
        fitted = None if reset else getattr(self, "kernel_", None)
        # A learner of several parts has a kernel for each, all on the same rows.
        fitted = fitted[0] if isinstance(fitted, tuple) else fitted
        return checked_objects(self, self.kernel if fitted is None else fitted, X, reset=reset)

    def _fit_kernel(self, X: Any, *, allow_indefinite: bool, intercept: bool, gamma: Any = None) -> None:
        """Set ``kernel_``; refuse a kernel that the learner cannot use. ``gamma`` stands in for the parameter."""
        # Also what this kernel does not use: the next one may.
        check_rates(self.gamma, self.degree, self.coef0)
        if self._is_precomputed:
            check_square(X)
            self.kernel_ = None
            return
        kernel = self._make_kernel(X, self.gamma if gamma is None else gamma)
        names = getattr(self, "feature_names_in_", None)
        self.kernel_ = bind_columns(kernel, None if names is None else tuple(names))
        usable = ("positive", "conditional") if intercept else ("positive",)
        if kernel.definiteness in usable or allow_indefinite:
            return
        part = kernel.indefinite_part()
        whole = "" if part == kernel else f" in {kernel!r}"
        raise IndefiniteKernelError(
            f"{type(self).__name__} needs a positive semi-definite kernel, and {part!r}{whole} is "
            f"{'only conditionally positive' if kernel.definiteness == 'conditional' else 'indefinite'}. "
            "Choose another kernel, or pass allow_indefinite=True to get a stationary point without a guarantee."
            + (" kernel.centered(X) makes it positive." if kernel.definiteness == "conditional" else "")
        )

    def _is_taken_on_trust(self) -> bool:
        """Whether nothing but the user's word says that the kernel is positive: for a matrix, and for a function."""
        return self.kernel_ is None or rests_on_a_function(self.kernel_)

    def _is_convex(self, intercept: bool, allow_indefinite: bool) -> bool:
        """Whether the machine's problem is convex; what was taken on trust is not where indefinite ones are allowed."""
        if self._is_taken_on_trust() and allow_indefinite:
            return False
        usable = ("positive", "conditional") if intercept else ("positive",)
        return self.kernel_ is None or self.kernel_.definiteness in usable

    def _check_curvature(
        self, gram: Any, positions: NDArray[np.intp], precision: Any, *, intercept: bool, allow_indefinite: bool
    ) -> None:
        """Look for negative curvature in what was taken on trust; ``positions`` are those of the rows in X."""
        if self.kernel_ is not None and self._is_taken_on_trust():
            # What says of itself that it is indefinite has been allowed already.
            curved = allow_indefinite or self.kernel_.definiteness == "indefinite"
            require_kernel(gram, positions, precision, balanced=intercept, curved=curved)
        elif self.kernel_ is None and not allow_indefinite:
            (require_conditionally_positive if intercept else require_positive)(gram)

    def _make_kernel(self, X: Any, gamma: Any) -> Kernel:
        """The kernel that the parameters describe."""
        return as_kernel(self.kernel, gamma=gamma, degree=self.degree, coef0=self.coef0, X=X)

    def _gram(self, X: Any, Z: Any = None, dtype: Any = None) -> Gram | PrecomputedGram:
        """The Gram matrix of the fitted kernel; for ``"precomputed"``, ``X`` is the matrix."""
        if self.kernel_ is None:
            gram = PrecomputedGram(X, symmetric=Z is None)
            return gram if dtype is None else gram.astype(dtype)
        lazy = Gram(self.kernel_, X, Z, dtype=dtype, n_jobs=self.n_jobs)
        # Solvers look at an entry many times, and one between two objects takes long.
        return evaluated(lazy) if Z is None and lazy.tile < TILE else lazy


def bind_columns(kernel: Kernel, names: tuple[str, ...] | None) -> Kernel:
    """Column names in ``kernel.on([...])`` replaced by their positions, since estimators pass arrays on."""
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
                f"{kernel!r} names columns, and X has no column names; pass a pandas DataFrame or use positions."
            )
        return tuple(int(c) for c in kernel.columns)
    for column in kernel.columns:
        if column not in names if isinstance(column, str) else not -len(names) <= column < len(names):
            raise ParameterError(
                f"{kernel!r}: there is no column {column!r}; the columns are {', '.join(names[:20])}."
            )
    return tuple(names.index(c) if isinstance(c, str) else c for c in kernel.columns)
