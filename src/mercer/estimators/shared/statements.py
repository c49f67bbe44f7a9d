"""Statements that most estimators with a kernel share about their fitted attributes: kernels, rows and rules."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from numbers import Integral
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp

from mercer._errors import DataError
from mercer.data.objects import Objects
from mercer.data.statements import Context, Floats, RowsOfData, Statement
from mercer.kernels.compares import compares
from mercer.kernels.kernel import Kernel

if TYPE_CHECKING:
    from mercer.estimators.shared.base import KernelEstimator

_ROWS = ("X_fit_", "X_train_", "support_vectors_")
_MOST_JOBS = 1024


@dataclass(frozen=True)
class FittedKernel:
    """A kernel; None for ``kernel="precomputed"`` and for learners on explicit features."""

    def check(self, value: Any, what: str, context: Context) -> None:
        if value is None and context.model._needs_no_kernel:
            return
        if not isinstance(value, Kernel):
            raise DataError(f"{what} must be a kernel, but is of the class {type(value).__name__}")
        if context.model._is_precomputed:
            raise DataError(f"{what} must be None, because the kernel matrix was precomputed")


@dataclass(frozen=True)
class SupportRows:
    """The rows of an expansion; an empty array for ``kernel="precomputed"``."""

    size: str

    def check(self, value: Any, what: str, context: Context) -> None:
        if context.model.kernel_ is None:
            if not isinstance(value, np.ndarray) or value.shape != (0, 0) or value.dtype.kind != "f":
                raise DataError(f"{what} must be an empty array, because the kernel matrix was precomputed")
            return
        RowsOfData(self.size).check(value, what, context)


@dataclass(frozen=True)
class Coefficients:
    """Coefficients of an expansion, as CSR if the rows are CSR."""

    shape: str

    def check(self, value: Any, what: str, context: Context) -> None:
        if not sp.issparse(value):
            Floats(self.shape).check(value, what, context)
            return
        context.shape(what, self.shape, value.shape)
        Floats("?").check(value.data, what, context)


@dataclass(frozen=True)
class FitRows:
    """The rows of the fit; for ``kernel="precomputed"`` the matrix, or an empty array if it is not ``kept``."""

    size: str
    kept: bool = True

    def check(self, value: Any, what: str, context: Context) -> None:
        if context.model.kernel_ is not None:
            RowsOfData(self.size).check(value, what, context)
            return
        # New rows have a column for each row of the fit.
        context.agree(what, self.size, int(context.size("d") or 0))
        if not self.kept:
            SupportRows(self.size).check(value, what, context)
            return
        RowsOfData(self.size, objects=False).check(value, what, context)
        if not isinstance(value, np.ndarray):
            raise DataError(f"{what} must be a kernel matrix, but is of the class {type(value).__name__}")


@dataclass(frozen=True)
class Jobs:
    """A number of threads, or None for all cores."""

    def check(self, value: Any, what: str, context: Context) -> None:
        if value is None:
            return
        number = isinstance(value, Integral) and not isinstance(value, bool) and 0 < abs(int(value)) <= _MOST_JOBS
        if not number:
            raise DataError(f"{what} must be a number of threads, but is {str(value)[:40]}")


@dataclass(frozen=True)
class LikeThe:
    """A value as stated by another statement, with the shape of another attribute."""

    other: str
    inner: Statement

    def check(self, value: Any, what: str, context: Context) -> None:
        self.inner.check(value, what, context)
        shape = getattr(context.model, self.other).shape
        if value.shape != shape:
            raise DataError(f"{what} has the shape {value.shape} where {self.other} has {shape}")


def training_shape(model: KernelEstimator) -> str:
    """Return the sizes in ``shape_fit_``; objects have no columns."""
    return "n, d" if "n_features_in_" in vars(model) else "n"


def kernel_compares_rows(model: KernelEstimator) -> bool:
    """Whether the fitted kernel can compare the rows of the fit, and the columns, if any, are counted."""
    rows = next((vars(model)[name] for name in _ROWS if name in vars(model)), None)
    counted = "n_features_in_" in vars(model)
    # A classifier of several parts has a kernel for each of them.
    kernels: tuple[Any, ...] = model.kernel_ if isinstance(model.kernel_, tuple) else (model.kernel_,)
    if not all(isinstance(kernel, Kernel) for kernel in kernels):
        return counted
    if rows is None:
        return True
    return counted != isinstance(rows, Objects) and all(compares(kernel, rows) for kernel in kernels)


def outputs(k: int | None) -> int:
    """The number of functions of a one-vs-rest classifier of k classes: one for two classes or without classes."""
    return 1 if k is None or k == 2 else k


def has_full_diagonal(name: str) -> tuple[str, Callable[[Any], bool]]:
    """The rule that a triangular factor, if it is stored, is not singular."""

    def holds(model: Any) -> bool:
        return name not in vars(model) or bool((vars(model)[name].diagonal() > 0).all())

    return f"{name} has a zero on its diagonal", holds


def theta_fits(more: Callable[[Any], int]) -> tuple[str, Callable[[Any], bool]]:
    """The rule that ``theta_`` is the end of the search, or has the length of the free parameters."""

    def fits(model: KernelEstimator) -> bool:
        if model.search_ is not None:
            return np.array_equal(model.theta_, model.search_.theta)
        kernels: tuple[Any, ...] = model.kernel_ if isinstance(model.kernel_, tuple) else (model.kernel_,)
        own = sum(len(kernel.theta) for kernel in kernels if kernel is not None)
        return len(model.theta_) == own + more(model)

    return "theta_ is not that of the search and the kernel", fits


def _given_columns(model: KernelEstimator) -> bool:
    if model.kernel_ is not None:
        return True
    support = vars(model).get("support_")
    return support is not None and int(support.max(initial=-1)) < model.n_features_in_


def form_is_whole(model: KernelEstimator) -> bool:
    """Whether a classifier by descent has the attributes of one of its two forms."""
    attributes = vars(model)
    if not model._primal:
        return (
            "dual_coef_" in attributes
            and "support_vectors_" in attributes
            and "coef_" not in attributes
            and _given_columns(model)
        )
    if "coef_" not in attributes or "dual_coef_" in attributes:
        return False
    width = attributes["coef_"].shape[1]
    if "feature_map_" not in attributes:
        return bool(width == model.n_features_in_)
    mapped = attributes["feature_map_"].transform(np.zeros((1, model.n_features_in_)))
    return bool(mapped.shape == (1, width))


ASCENDING = ("the cut-points do not ascend", lambda model: bool((np.diff(model.thresholds_) >= 0).all()))
GIVEN_COLUMNS = ("the support exceeds the columns of the kernel matrix", _given_columns)
KERNEL_FITS = ("the kernel does not compare the rows", kernel_compares_rows)
