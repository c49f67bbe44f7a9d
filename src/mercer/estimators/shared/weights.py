"""Check sample weights, and fit the parameters of a kernel that depend on them."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import clone

from mercer._errors import DataError, MercerWarning, warn_user
from mercer._sklearn import check_rows_weight
from mercer._types import CheckedRows, RowsLike, Vector
from mercer.data.column_statistics import variance_of_entries
from mercer.data.sklearn_errors import advised
from mercer.data.vectors import refuse_unreal
from mercer.estimators.shared.base import KernelEstimator
from mercer.gram.protocol import GramMatrix
from mercer.kernels import Kernel
from mercer.kernels.convert import WITHOUT_RATE, is_named, rate_of_scale

# Weights up to this have squares, and products with kernel values, in float32 or float64 as solvers need them. What is
# smaller than the largest by this factor changes no sum.
_LARGEST = 1e30


def check_sample_weight(sample_weight: ArrayLike | None, X: CheckedRows) -> Vector:
    """Return one weight for each row of ``X``, (n,), in float64: ones for None; none negative, and not all zero.

    Weights below 1e-30 times the largest change no sum, and are 0 in the answer.

    Raises
    ------
    DataError
        If there are more or fewer weights than rows, or one is negative or not finite, or all are zero, or the
        largest is outside of 1e-30 to 1e30.

    Examples
    --------
    >>> check_sample_weight(None, np.eye(2)), check_sample_weight([0, 3], np.eye(2))
    (array([1., 1.]), array([0., 3.]))
    """
    weight = _one_for_each_row(sample_weight, X)
    if (weight < 0).any():
        raise DataError(
            f"sample_weight has {int((weight < 0).sum())} negative values (the least is {weight.min()}); "
            "weights count rows, so they must be 0 or more."
        )
    return weight


def check_svm_weight(sample_weight: ArrayLike | None, X: CheckedRows) -> Vector:
    """Return one weight for each row of ``X``, (n,), with 0 in place of negative weights, and a warning.

    So a row of weight zero or below is left out, as in scikit-learn's support vector machines.

    Raises
    ------
    DataError
        If there are more or fewer weights than rows, or one is not finite, or none is above zero.

    Examples
    --------
    >>> check_svm_weight([0, 3], np.eye(2))
    array([0., 3.])
    """
    weight = _one_for_each_row(sample_weight, X)
    if not (weight > 0).any():
        raise DataError(
            f"sample_weight is negative or zero for each of the {len(weight)} rows, and such rows are left out, so "
            "no rows remain; give positive weights to the rows that count."
        )
    negative = weight < 0
    if negative.any():
        warn_user(
            f"sample_weight has {int(negative.sum())} negative values (the least is {weight.min()}); these rows are "
            "left out, like rows of weight 0. Weights count rows, so they should be 0 or more.",
            MercerWarning,
        )
    return np.where(negative, 0.0, weight)


def _one_for_each_row(sample_weight: ArrayLike | None, X: CheckedRows) -> Vector:
    """Return finite weights, one for each row of ``X`` and not all zero, (n,); ones for None."""
    if sample_weight is None:
        return np.ones(X.shape[0])
    refuse_unreal(sample_weight, "sample_weight")
    with advised():
        weights = np.asarray(sample_weight)
        if weights.ndim == 1 and len(weights) != X.shape[0]:
            raise DataError(
                f"sample_weight has {len(weights)} values, and X has {X.shape[0]} rows; pass one weight for each row."
            )
        if weights.ndim < 2 and weights.dtype.kind in "biuf" and not weights.any():
            raise DataError(
                f"sample_weight is zero for each of the {X.shape[0]} rows, so no rows remain; give positive weights "
                "to the rows that count."
            )
        weight = np.array(check_rows_weight(sample_weight, X, dtype=np.float64), dtype=np.float64)
    largest = float(np.abs(weight).max())
    if not 1.0 / _LARGEST <= largest <= _LARGEST:
        raise DataError(
            f"the largest sample_weight is {largest:.3g}; products of such weights leave the range of floating-point "
            f"numbers. Divide all weights by one number, so that the largest lies between {1.0 / _LARGEST:g} and "
            f"{_LARGEST:g}."
        )
    weight[np.abs(weight) < largest / _LARGEST] = 0.0
    return weight


def weighted_scale(X: CheckedRows, weight: Vector) -> float:
    """Return ``1 / (d * variance)`` over all entries of ``X`` (n, d), with each row counted by its weight.

    This is what ``gamma="scale"`` stands for; 1 where all entries are equal.

    Examples
    --------
    >>> weighted_scale(np.array([[0.0], [4.0], [9.0]]), np.array([1.0, 1.0, 0.0]))
    0.25
    """
    if (weight == weight[0]).all():
        return rate_of_scale(X)
    share = weight / (weight.sum() * X.shape[1])
    with np.errstate(over="ignore", invalid="ignore"):
        variance = variance_of_entries(X, share)
    return rate_of_scale(X, variance)


def fit_weighted_kernel(learner: KernelEstimator, X: CheckedRows, weight: Vector, *, intercept: bool) -> Any:
    """Set ``learner.kernel_``, and return the rows as a side of its matrices.

    ``gamma="scale"`` uses the weighted variance of the rows.
    """
    by_scale = isinstance(learner.gamma, str) and learner.gamma == "scale"
    named = is_named(learner.kernel) and learner.kernel not in WITHOUT_RATE and not learner._is_precomputed
    gamma = weighted_scale(X, weight) if by_scale and named else None
    return learner._fit_kernel(X, intercept=intercept, gamma=gamma)


def weighted_gram(
    learner: KernelEstimator, X: CheckedRows, weight: Vector, *, intercept: bool
) -> tuple[GramMatrix, bool]:
    """Fit the kernel; return K of the rows with a weight, in float64, and whether the problem on it is convex."""
    side = fit_weighted_kernel(learner, X, weight, intercept=intercept)
    rows = np.flatnonzero(weight)
    gram: GramMatrix = learner._gram(side, dtype=None if learner.kernel_ is None else np.float64)
    if len(rows) < X.shape[0]:
        gram = gram.restrict(rows, rows)
    return gram, learner._is_convex(gram, rows, X.dtype, intercept=intercept)


def kernel_of_fit(learner: KernelEstimator, X: RowsLike, weight: Vector | None) -> Kernel | None:
    """Return the kernel that a fit of the learner to these rows would use, with its parameters, or None for a matrix.

    ``learner`` is not changed, and warnings are left to ``fit``.
    """
    model = clone(learner)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        rows = model._check_X(X, reset=True)
        fit_weighted_kernel(model, rows, np.ones(rows.shape[0]) if weight is None else weight, intercept=True)
    kernel: Kernel | None = model.kernel_
    return kernel
