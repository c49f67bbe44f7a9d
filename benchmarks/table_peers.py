"""Other estimators for tables: at their defaults, and tuned for a given time."""

from __future__ import annotations

import contextlib
import importlib
import importlib.metadata
import importlib.util
import io
import os
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from table_data import Split

# The other peers read this themselves.
THREADS = int(os.environ.get("OMP_NUM_THREADS", "-1"))
PACKAGES = {"CatBoost": "catboost", "LightGBM": "lightgbm", "XGBoost": "xgboost", "xRFM": "xrfm"}


def for_trees(split: Split) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Training and test rows with dates as numbers and text as categories, new ones as one that is not in training."""
    X, X_test = (frame.set_axis([f"c{c}" for c in frame.columns], axis=1) for frame in (split.X, split.X_test))
    for column in X.columns:
        if X[column].dtype.kind == "M":
            X[column], X_test[column] = X[column].astype("int64") / 1e9, X_test[column].astype("int64") / 1e9
        elif X[column].dtype.kind not in "biuf":
            known = sorted(X[column].unique())
            kind = pd.CategoricalDtype([*known, "(other)"])
            X_test[column] = X_test[column].where(X_test[column].isin(known), "(other)").astype(kind)
            X[column] = X[column].astype(kind)
    return X, X_test


def _of(module: str, name: str, **options: Any) -> Any:
    return getattr(importlib.import_module(module), name)(**options)


def peers(classifies: bool) -> dict[str, Callable[..., Any]]:
    """Estimators of other packages by name, which take their parameters; the first is what is compared with."""
    kind = "Classifier" if classifies else "Regressor"
    hist = HistGradientBoostingClassifier if classifies else HistGradientBoostingRegressor
    found: dict[str, Callable[..., Any]] = {}
    if importlib.util.find_spec("catboost"):
        found["CatBoost"] = lambda **o: _of(
            "catboost", f"CatBoost{kind}", verbose=0, allow_writing_files=False, thread_count=THREADS, **o
        )
    if importlib.util.find_spec("lightgbm"):
        found["LightGBM"] = lambda **o: _of("lightgbm", f"LGBM{kind}", verbose=-1, **o)
    if importlib.util.find_spec("xgboost"):
        found["XGBoost"] = lambda **o: _of("xgboost", f"XGB{kind}", enable_categorical=True, **o)
    found["HistGradientBoosting"] = lambda **o: hist(categorical_features="from_dtype", **o)
    if importlib.util.find_spec("xrfm"):
        found["xRFM"] = lambda **o: FeatureMachine(classifies=classifies, **o)
    return found


def version(name: str) -> str:
    """That of the package of a peer."""
    return importlib.metadata.version(PACKAGES.get(name.partition(",")[0], "scikit-learn"))


class FeatureMachine:
    """``xRFM`` on a data frame, as its README prepares one: scaled columns, indicators, a fifth for validation."""

    def __init__(self, classifies: bool, **options: Any) -> None:
        self.classifies, self.options = classifies, options
        if classifies:
            self.predict_proba = self._probabilities
        else:
            self.predict = self._numbers

    def fit(self, X: pd.DataFrame, y: np.ndarray) -> FeatureMachine:
        torch = importlib.import_module("torch")
        torch.manual_seed(0)
        words = [column for column in X.columns if X[column].dtype == "category"]
        self._words, self._numeric = words, [column for column in X.columns if column not in words]
        self._indicators = OneHotEncoder(handle_unknown="ignore", sparse_output=False)
        self._scaler, self._target = StandardScaler(), StandardScaler()
        if self._numeric:
            self._scaler.fit(self._filled(X))
        if words:
            self._indicators.fit(X[words])
            self.options["categorical_info"] = self._categories(len(self._numeric))
        rest, validation = train_test_split(
            np.arange(len(y)), test_size=0.2, random_state=0, stratify=y if self.classifies else None
        )
        if self.classifies:
            self.classes_ = np.unique(y)
        else:
            y = self._target.fit_transform(y[:, None]).astype(np.float32)
        Z = self._columns(X)
        metric = "logloss" if self.classifies else "mse"
        self._model = _of("xrfm", "xRFM", device="cpu", tuning_metric=metric, verbose=False, **self.options)
        with contextlib.redirect_stdout(io.StringIO()):
            self._model.fit(Z[rest], y[rest], Z[validation], y[validation])
        return self

    def _categories(self, first: int) -> dict[str, Any]:
        torch = importlib.import_module("torch")
        sizes = [len(values) for values in self._indicators.categories_]
        starts = first + np.cumsum([0, *sizes[:-1]])
        return {
            "numerical_indices": torch.arange(first),
            "categorical_indices": [torch.arange(start, start + size) for start, size in zip(starts, sizes)],
            "categorical_vectors": [torch.eye(size) for size in sizes],
        }

    def _filled(self, X: pd.DataFrame) -> np.ndarray:
        return X[self._numeric].fillna(0.0).to_numpy(np.float64)

    def _columns(self, X: pd.DataFrame) -> np.ndarray:
        parts = [self._scaler.transform(self._filled(X))] if self._numeric else []
        parts += [self._indicators.transform(X[self._words])] if self._words else []
        return np.concatenate(parts, axis=1).astype(np.float32)

    def _numbers(self, X: pd.DataFrame) -> np.ndarray:
        return self._target.inverse_transform(np.asarray(self._model.predict(self._columns(X))).reshape(-1, 1))[:, 0]

    def _probabilities(self, X: pd.DataFrame) -> np.ndarray:
        P = np.asarray(self._model.predict_proba(self._columns(X)), dtype=np.float64)
        # Its probabilities are clipped regressions, of which all may be zero.
        P = np.clip(P, 1e-6, None)
        return P / P.sum(axis=1, keepdims=True)


DRAWS: dict[str, Callable[[np.random.Generator], dict[str, Any]]] = {
    "CatBoost": lambda r: {
        "learning_rate": 10 ** r.uniform(-2, -0.5),
        "depth": int(r.integers(3, 9)),
        "l2_leaf_reg": 10 ** r.uniform(-1, 1.5),
        "iterations": int(r.choice([300, 1000])),
    },
    "LightGBM": lambda r: {
        "learning_rate": 10 ** r.uniform(-2, -0.5),
        "num_leaves": int(2 ** r.integers(2, 8)),
        "min_child_samples": int(2 ** r.integers(1, 7)),
        "n_estimators": int(r.choice([100, 300, 1000])),
        "reg_lambda": 10 ** r.uniform(-3, 1.5),
    },
}


def fitted(name: str, make: Callable[..., Any], X: pd.DataFrame, y: np.ndarray, **options: Any) -> Any:
    """A peer with its parameters, fitted."""
    if name.startswith("CatBoost"):
        options["cat_features"] = [column for column in X.columns if X[column].dtype == "category"]
    return make(**options).fit(X, y)


def tuned(name: str, make: Callable[..., Any], X: pd.DataFrame, y: np.ndarray, seconds: float) -> Any:
    """The best of random parameters on a fifth of the rows, tried for that processor time, fitted to all rows."""
    random, begun = np.random.default_rng(0), time.process_time()
    classifies = y.dtype.kind != "f"
    rest, held_out = train_test_split(
        np.arange(len(y)), test_size=0.2, random_state=0, stratify=y if classifies else None
    )
    best, best_error = {}, np.inf
    options: dict[str, Any] = {}
    while time.process_time() - begun < seconds:
        model = fitted(name, make, X.iloc[rest], y[rest], **options)
        error = float(np.mean(errors(model, X.iloc[held_out], y[held_out])))
        if error < best_error:
            best, best_error = options, error
        options = DRAWS[name](random)
    return fitted(name, make, X, y, **best)


def errors(model: Any, X: pd.DataFrame, y: np.ndarray) -> np.ndarray:
    """The squared error of each row, or the log loss."""
    if not hasattr(model, "predict_proba"):
        return np.square(np.asarray(model.predict(X)).ravel() - y)
    P = np.clip(np.asarray(model.predict_proba(X), dtype=np.float64), 1e-15, 1.0)
    known = np.searchsorted(model.classes_, y)
    return -np.log(P[np.arange(len(y)), known])
