"""Statements about fitted transformers of scikit-learn: shapes, ranges, and that they can transform a row."""

from __future__ import annotations

import copy
import importlib
import sys
from collections.abc import Mapping
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn import config_context
from sklearn.compose import ColumnTransformer
from sklearn.impute import MissingIndicator, SimpleImputer
from sklearn.pipeline import FeatureUnion, Pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    LabelEncoder,
    MaxAbsScaler,
    MinMaxScaler,
    Normalizer,
    OneHotEncoder,
    OrdinalEncoder,
    RobustScaler,
    StandardScaler,
)

from mercer._optional import optional
from mercer.data.fitted import Fitted, Statements, combined
from mercer.data.statements import (
    Arrays,
    Count,
    Each,
    Either,
    Floats,
    Is,
    Labels,
    Maybe,
    Number,
    Statement,
    Whole,
    Word,
)
from mercer.persistence.calibration import STATED as CALIBRATION

_KERNEL_MODULE = "sklearn.gaussian_process.kernels"
_KERNELS = (
    "ConstantKernel", "WhiteKernel", "RBF", "Matern", "RationalQuadratic", "ExpSineSquared", "DotProduct",
    "PairwiseKernel", "Sum", "Product", "Exponentiation",
)  # fmt: skip
_UNKNOWN = "a value that is not a category"
_TINY = float(np.finfo(np.float32).tiny)
_COUNTED: dict[str, Statement] = {"n_features_in_": Count("d")}
_NAMED: dict[str, Statement] = {"feature_names_in_": Labels("d", texts=True)}
_TYPES = ("f8", "f4")


def _example(transformer: Any) -> np.ndarray:
    """A row that a fitted transformer accepts: zeros, and the first category of each column."""
    attributes = vars(transformer)
    if "categories_" in attributes:
        return np.array([[values[0] if len(values) else None for values in attributes["categories_"]]], dtype=object)
    if "statistics_" in attributes and attributes["statistics_"].dtype == object:
        return attributes["statistics_"][None]
    if isinstance(transformer, Pipeline):
        return _example(transformer.steps[0][1]) if transformer.steps else np.zeros((1, 0))
    return np.zeros((1, attributes.get("n_features_in_", 0)))


def _transforms(transformer: Any) -> bool:
    outputs = transformer.transform(_example(transformer))
    numbers = outputs.data if sp.issparse(outputs) else np.asarray(outputs)
    return bool(outputs.shape[0] == 1 and (numbers.dtype.kind not in "fiub" or np.isfinite(numbers).all()))


def _encodes(encoder: Any) -> bool:
    """Whether each category has a column; scikit-learn would write beyond the end of a dense matrix without a check."""
    columns = encoder.categories_
    for values in columns:
        if values.dtype.kind not in "OUS" and not (np.diff(values[~np.isnan(values)]) > 0).all():
            return False
    known = max(map(len, columns), default=0)
    rows = np.full((known + (encoder.handle_unknown != "error"), len(columns)), _UNKNOWN, dtype=object)
    for number, values in enumerate(columns):
        rows[:known, number] = np.resize(np.asarray(values, dtype=object), known)
    plain = copy.copy(encoder)
    plain.sparse_output = True
    vars(plain).pop("_sklearn_output_config", None)
    try:
        with config_context(transform_output="default"):
            plain.transform(rows).check_format(full_check=True)
    except ValueError:
        return False
    return True


def _transforms_labels(encoder: Any) -> bool:
    return bool((encoder.transform(encoder.classes_) == np.arange(len(encoder.classes_))).all())


def _transforms_columns(transformer: Any) -> bool:
    d = transformer.n_features_in_
    row = np.zeros((1, d), dtype=object)
    names = vars(transformer).get("feature_names_in_")
    for name, inner, columns in transformer.transformers_:
        if not isinstance(name, str) or isinstance(inner, str):
            continue
        positions: Any = columns
        if isinstance(columns, list):
            positions = [list(names).index(c) if isinstance(c, str) else c for c in columns]
        row[:, positions] = _example(inner)
    if names is not None:
        row = optional("pandas", "encoding columns").DataFrame(row, columns=list(names)).infer_objects()
    return bool(transformer.transform(row).shape[0] == 1)


def _may_transform(part: Any) -> bool:
    return part is None or part in ("passthrough", "drop") or hasattr(part, "transform")


def _chains(pipeline: Pipeline) -> bool:
    """Whether every step accepts the output of the steps before it."""
    steps = pipeline.steps
    if not all(isinstance(step, tuple) and len(step) == 2 and isinstance(step[0], str) for step in steps):
        return False
    if not all(_may_transform(inner) for _, inner in steps[:-1]):
        return False
    fitted = [inner for _, inner in steps if inner is not None and not isinstance(inner, str)]
    if not fitted or "n_features_in_" not in vars(fitted[0]) or isinstance(fitted[0], ColumnTransformer):
        return True
    row: Any = _example(fitted[0])
    for inner in fitted:
        if vars(inner).get("n_features_in_", row.shape[1]) != row.shape[1]:
            return False
        if inner is not fitted[-1] or not hasattr(inner, "predict"):
            row = inner.transform(row)
    return True


def _joins(union: FeatureUnion) -> bool:
    parts = union.transformer_list
    return all(isinstance(part, tuple) and len(part) == 2 and _may_transform(part[1]) for part in parts)


_RULE = ("it cannot transform a row", _transforms)


def _scaler(**entries: Statement) -> Fitted:
    return Fitted({**_COUNTED, **entries}, _NAMED, rules=(_RULE,))


def _numbers(least: float | None = None) -> Statement:
    return Floats("d", least=least, types=_TYPES)


STATED: Mapping[type, Fitted] = {
    **CALIBRATION,
    StandardScaler: _scaler(
        mean_=Maybe(_numbers()), var_=Maybe(_numbers(0.0)), scale_=Maybe(_numbers(_TINY)),
        n_samples_seen_=Either(Number(least=0), Whole("d")),
    ),
    MinMaxScaler: _scaler(
        min_=_numbers(), scale_=_numbers(), data_min_=_numbers(), data_max_=_numbers(), data_range_=_numbers(),
        n_samples_seen_=Count(),
    ),
    MaxAbsScaler: _scaler(max_abs_=_numbers(0.0), scale_=_numbers(_TINY), n_samples_seen_=Count()),
    RobustScaler: _scaler(center_=Maybe(_numbers()), scale_=Maybe(_numbers(_TINY))),
    Normalizer: Fitted(_COUNTED, _NAMED, parameters={"norm": Word(("l1", "l2", "max"))}, rules=(_RULE,)),
    FunctionTransformer: Fitted(_COUNTED, _NAMED, rules=(_RULE,)),
    OneHotEncoder: Fitted(
        {**_COUNTED, "categories_": Each(Is(np.ndarray), "d")}, _NAMED,
        rules=(("a category has no column", _encodes), _RULE),
    ),
    OrdinalEncoder: Fitted({**_COUNTED, "categories_": Each(Is(np.ndarray), "d")}, _NAMED, rules=(_RULE,)),
    LabelEncoder: Fitted({"classes_": Labels("k")}, rules=(("it cannot number its classes", _transforms_labels),)),
    SimpleImputer: Fitted({**_COUNTED, "statistics_": Arrays("d")}, _NAMED, rules=(_RULE,)),
    MissingIndicator: Fitted(
        {**_COUNTED, "features_": Whole("m", below="d")}, _NAMED,
        parameters={"features": Word(("missing-only", "all"))},
    ),
    ColumnTransformer: Fitted(
        {**_COUNTED, "transformers_": Each(Is(tuple)), "output_indices_": Is(dict)}, _NAMED,
        rules=(("it cannot transform a row", _transforms_columns),),
    ),
    Pipeline: Fitted(
        parameters={"steps": Is(list)}, rules=(("a step does not accept the output of the one before", _chains),)
    ),
    FeatureUnion: Fitted(parameters={"transformer_list": Is(list), "transformer_weights": Maybe(Is(dict))},
        rules=(("its parts are not named", _joins),)),
}  # fmt: skip
"""The classes of scikit-learn that a model file may contain, with their statements; its kernels need none."""


def sklearn_kernels(load: bool = False) -> tuple[type, ...]:
    """The kernels of scikit-learn that a file may contain; none if their module is not loaded and ``load`` is False."""
    if load:
        importlib.import_module(_KERNEL_MODULE)
    module = sys.modules.get(_KERNEL_MODULE)
    return () if module is None else tuple(getattr(module, name) for name in _KERNELS)


def stated_elsewhere(cls: type) -> Statements | None:
    """Return the statements about a class of another package; None if there are none."""
    if cls in sklearn_kernels():
        return combined([Fitted()])
    return combined([STATED[cls]]) if cls in STATED else None
