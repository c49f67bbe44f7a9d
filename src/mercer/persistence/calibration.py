"""Statements about the scikit-learn classes that make up a fitted ``calibrated()`` classifier."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from sklearn import calibration
from sklearn.base import BaseEstimator
from sklearn.calibration import CalibratedClassifierCV
from sklearn.isotonic import IsotonicRegression

from mercer.data.fitted import Fitted
from mercer.data.statements import Count, Each, Flag, Floats, Is, Labels, Maybe, Number, Statement, Word

# Private classes of scikit-learn. Those that the installed version lacks cannot occur in a file.
_HIDDEN = ("_SigmoidCalibration", "_TemperatureScaling")
_CLASSES = {name: getattr(calibration, name) for name in _HIDDEN if hasattr(calibration, name)}
_ONE: type = getattr(calibration, "_CalibratedClassifier", type(None))
_METHODS = {"sigmoid": "_SigmoidCalibration", "isotonic": "IsotonicRegression", "temperature": "_TemperatureScaling"}

DERIVED: Mapping[type, str] = {IsotonicRegression: "f_"}
"""Attributes that are functions: they are not written, but rebuilt from the other attributes."""


def make_derived(model: Any) -> None:
    """Set the attribute in ``DERIVED`` of a fitted model."""
    if isinstance(model, IsotonicRegression) and "X_thresholds_" in vars(model):
        model._build_f(model.X_thresholds_, model.y_thresholds_)


def _ascends(model: Any) -> bool:
    return len(model.X_thresholds_) > 0 and bool((np.diff(model.X_thresholds_) > 0).all())


def _calibrates(model: Any) -> bool:
    """Whether every part has a fitted classifier for the same classes and columns, with its calibrators."""
    return bool(model.calibrated_classifiers_) and all(_is_whole(model, part) for part in model.calibrated_classifiers_)


def _is_whole(model: Any, part: Any) -> bool:
    inner, k = part.estimator, len(model.classes_)
    if not isinstance(inner, BaseEstimator) or not np.array_equal(vars(inner).get("classes_", ()), model.classes_):
        return False
    count = k if k > 2 and part.method != "temperature" else 1
    named = all(type(c).__name__ == _METHODS.get(part.method) and _is_fitted(c) for c in part.calibrators)
    # With more than two classes, there is one calibrator for each.
    shape = vars(inner).get("decision_function_shape", "ovr")
    columns = vars(inner).get("n_features_in_") == vars(model).get("n_features_in_")
    return named and len(part.calibrators) == count and columns and shape == "ovr" and part.method == model.method


def _is_fitted(calibrator: Any) -> bool:
    return any(name.endswith("_") for name in vars(calibrator))


_COLUMNS: dict[str, Statement] = {"n_features_in_": Count("d"), "feature_names_in_": Labels("d", texts=True)}
_NUMBERS = Floats("n", types=("f8", "f4"))

STATED: Mapping[type, Fitted] = {
    CalibratedClassifierCV: Fitted(
        {"classes_": Labels("k", least=2), "calibrated_classifiers_": Each(Is(_ONE))},
        _COLUMNS,
        {"estimator": Maybe(Is(BaseEstimator)), "method": Word(tuple(_METHODS))},
        rules=(("its parts do not match", _calibrates),),
    ),
    _ONE: Fitted(
        {
            "estimator": Is(BaseEstimator),
            "calibrators": Each(Is(BaseEstimator)),
            "classes": Labels("k", least=2),
            "method": Word(tuple(_METHODS)),
        }
    ),
    IsotonicRegression: Fitted(
        {
            "X_thresholds_": _NUMBERS,
            "y_thresholds_": _NUMBERS,
            "X_min_": Number(),
            "X_max_": Number(),
            "increasing_": Flag(),
        },
        {"f_": Is(object)},
        {"out_of_bounds": Word(("clip",))},
        rules=(("its thresholds do not ascend", _ascends),),
    ),
    **{
        cls: Fitted({"a_": Number(), "b_": Number()} if name == "_SigmoidCalibration" else {"beta_": Number(least=0)})
        for name, cls in _CLASSES.items()
    },
}
