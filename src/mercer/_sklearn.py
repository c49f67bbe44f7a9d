"""Checks that scikit-learn keeps private, each with a stand-in of the same behaviour where a version lacks it.

No other module imports a private name of scikit-learn.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.utils import check_array, column_or_1d, validation

from mercer._errors import DataError


def _own_check_y(y: Any, multi_output: bool = False, y_numeric: bool = False, estimator: Any = None) -> Any:
    """Targets (n,), or (n, t) with ``multi_output``: finite, real, and numbers if ``y_numeric``."""
    if not multi_output:
        y = column_or_1d(y, warn=True)
    y = check_array(
        y,
        accept_sparse="csr" if multi_output else False,
        ensure_2d=False,
        dtype=None,
        input_name="y",
        ensure_min_samples=1 if multi_output else 0,
        estimator=estimator,
    )
    return y.astype(np.float64) if y_numeric and y.dtype.kind == "O" else y


def _own_check_sample_weight(sample_weight: Any, X: Any, *, dtype: Any = np.float64) -> Any:
    """Finite weights (n,) for the rows of ``X``; ones for None, and a number for all."""
    n = X.shape[0] if hasattr(X, "shape") else len(X)
    if sample_weight is None or np.ndim(sample_weight) == 0:
        return np.full(n, 1.0 if sample_weight is None else sample_weight, dtype)
    weight = check_array(sample_weight, ensure_2d=False, dtype=dtype, order="C", input_name="sample_weight")
    if weight.ndim != 1:
        raise DataError(f"sample_weight must be 1D array or scalar, got {weight.ndim}D array.")
    if len(weight) != n:
        raise DataError(f"sample_weight.shape == {weight.shape}, expected {(n,)}!")
    return weight


def _own_check_n_features(estimator: Any, X: Any, reset: bool) -> None:
    """Set ``n_features_in_`` by the columns of ``X``, or compare them with it."""
    if reset:
        estimator.n_features_in_ = X.shape[1]
    elif X.shape[1] != getattr(estimator, "n_features_in_", X.shape[1]):
        raise DataError(
            f"X has {X.shape[1]} features, but {type(estimator).__name__} is expecting {estimator.n_features_in_} "
            "features as input."
        )


def _own_check_feature_names(estimator: Any, X: Any, *, reset: bool) -> None:
    """Set ``feature_names_in_`` by the names of the columns of ``X``, or compare them with it."""
    validation.validate_data(estimator, X, reset=reset, skip_check_array=True)


def _own_check_feature_names_in(estimator: Any, input_features: Any = None) -> Any:
    """The names of the columns that a transformer was fitted to; ``x0, x1, ...`` where they have none."""
    fitted_names = getattr(estimator, "feature_names_in_", None)
    n = estimator.n_features_in_
    if input_features is None:
        return np.asarray([f"x{i}" for i in range(n)], dtype=object) if fitted_names is None else fitted_names
    names = np.asarray(input_features, dtype=object)
    if fitted_names is not None and not np.array_equal(fitted_names, names):
        raise DataError("input_features is not equal to feature_names_in_")
    if len(names) != n:
        raise DataError(f"input_features should have length equal to number of features ({n}), got {len(names)}")
    return names


def check_parameters(cls: type, parameters: dict[str, Any]) -> None:
    """Raise ``ValueError`` if scikit-learn would refuse a parameter in a fit; nothing where a version cannot tell."""
    module = "sklearn.utils._param_validation"
    if importlib.util.find_spec(module) is not None:
        check = getattr(importlib.import_module(module), "validate_parameter_constraints", None)
        if check is not None:
            check(getattr(cls, "_parameter_constraints", {}), parameters, cls.__name__)


def _scikit_learns(name: str, own: Callable[..., Any]) -> Callable[..., Any]:
    function: Callable[..., Any] = getattr(validation, name, own)
    return function


check_y = _scikit_learns("_check_y", _own_check_y)
check_rows_weight = _scikit_learns("_check_sample_weight", _own_check_sample_weight)
check_n_features = _scikit_learns("_check_n_features", _own_check_n_features)
check_feature_names = _scikit_learns("_check_feature_names", _own_check_feature_names)
check_feature_names_in = _scikit_learns("_check_feature_names_in", _own_check_feature_names_in)
