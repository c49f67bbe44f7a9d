"""Scores of predictions, and the models that every fit is compared with."""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import numpy as np
from sklearn.compose import TransformedTargetRegressor
from sklearn.dummy import DummyClassifier, DummyRegressor
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.metrics import (
    accuracy_score,
    balanced_accuracy_score,
    mean_absolute_error,
    precision_recall_fscore_support,
    roc_auc_score,
)
from sklearn.preprocessing import StandardScaler
from threadpoolctl import threadpool_limits

from mercer.data.squares import r_squared, root_mean_square
from mercer.reports.plain_features import Features
from mercer.reports.score_words import TREES

Scores = dict[str, float]
CLEAR = 2.0
"""A difference of fewer standard errors than this is not reported as one."""
# Columns times classes for which trees take about a second.
_TREES = 100


def scores(task: str, y: np.ndarray, predicted: np.ndarray) -> Scores:
    """Return accuracy and balanced accuracy, or R², root mean squared and mean absolute error.

    Numbers may have any unit: their squares need not be in the range of float64.

    >>> scores("classification", np.array(["a", "b"]), np.array(["a", "a"]))
    {'accuracy': 0.5, 'balanced_accuracy': 0.5}
    >>> scores("regression", np.array([1e-170, 3e-170]), np.array([2e-170, 2e-170]))["r2"]
    0.0
    """
    if task == "classification":
        with warnings.catch_warnings():
            # A predicted class need not occur among the rows: that deserves no warning.
            warnings.simplefilter("ignore", UserWarning)
            balanced = float(balanced_accuracy_score(y, predicted))
        return {"accuracy": float(accuracy_score(y, predicted)), "balanced_accuracy": balanced}
    # R² compares with the spread of y, which a single row does not have.
    r2 = r_squared(y, predicted) if len(y) > 1 else float("nan")
    return {
        "r2": r2,
        "rmse": float(root_mean_square(y - predicted).mean()),
        "mae": float(mean_absolute_error(y, predicted)),
    }


def by_class(y: np.ndarray, predicted: np.ndarray) -> dict[str, dict[str, float]]:
    """Return rows, precision and recall of the classes that occur; the precision of no predictions is NaN.

    >>> by_class(np.array(["a", "a", "b"]), np.array(["a", "b", "b"]))["b"]
    {'rows': 1, 'precision': 0.5, 'recall': 1.0}
    """
    labels = np.unique(y)
    precision, recall, _, rows = precision_recall_fscore_support(y, predicted, labels=labels, zero_division=np.nan)
    return {
        str(label): {"rows": int(n), "precision": float(p), "recall": float(r)}
        for label, n, p, r in zip(labels, rows, precision, recall, strict=True)
    }


def lead(losses: np.ndarray, others: np.ndarray) -> float:
    """Return by how many standard errors the mean of ``losses`` (n,) is below that of ``others`` for the same rows.

    >>> lead(np.zeros(9), np.array([0.0, 1.0, 0.0] * 3)), lead(np.ones(2), np.ones(2))
    (2.0, 0.0)
    """
    difference = others - losses
    mean = float(difference.mean())
    if len(difference) < 2 or not math.isfinite(mean):
        return 0.0
    error = float(difference.std(ddof=1)) / math.sqrt(len(difference))
    return mean / error if error > 0 else math.copysign(math.inf, mean) if mean else 0.0


def probability_scores(y: np.ndarray, shares: np.ndarray, classes: np.ndarray) -> Scores:
    """Return the log loss of probabilities (n, k), and for two classes, both of which occur, the area under the curve.

    >>> values = probability_scores(np.array([0, 1]), np.array([[0.25, 0.75], [0.75, 0.25]]), np.array([1, 0]))
    >>> values["auc"], round(values["log_loss"], 4)
    (1.0, 0.2877)
    """
    order = np.argsort(classes, kind="stable")
    codes = order[np.searchsorted(classes, y, sorter=order)]
    own = np.maximum(shares[np.arange(len(y)), codes], np.finfo(np.float64).tiny)
    loss = {"log_loss": -float(np.log(own).mean())}
    return {**curve_scores(codes == 1, shares[:, 1]), **loss} if len(classes) == 2 else loss


def curve_scores(second: np.ndarray, values: np.ndarray) -> Scores:
    """Return the area under the curve of values that are large for the second of two classes, if both occur."""
    return {"auc": float(roc_auc_score(second, values))} if 0 < second.sum() < len(second) else {}


def scores_of(task: str, y: np.ndarray, model: Any, X: Any, predicted: np.ndarray | None = None) -> Scores:
    """Return the scores of a fitted model on rows: of what it predicts, and of its probabilities or decision values."""
    values = scores(task, y, model.predict(X) if predicted is None else predicted)
    # A class of which no row was in the training part has no probability.
    if task != "classification" or not np.isin(y, model.classes_).all():
        return values
    if hasattr(model, "predict_proba"):
        shares = np.asarray(model.predict_proba(X))
        return {**values, **(probability_scores(y, shares, model.classes_) if np.isfinite(shares).all() else {})}
    if hasattr(model, "decision_function") and len(model.classes_) == 2:
        decision = np.asarray(model.decision_function(X))
        return {**values, **(curve_scores(y == model.classes_[1], decision) if np.isfinite(decision).all() else {})}
    return values


def baseline_scores(
    task: str, rows: Features, y: np.ndarray, y_test: np.ndarray
) -> tuple[dict[str, Scores], dict[str, np.ndarray]]:
    """Return the scores of the rivals, and what each predicts for the test rows."""
    results, predictions = {}, {}
    with one_openmp_thread():
        for name, rival in rivals(task, rows, y).items():
            model = rival.fitted(np.arange(len(y)), y)
            predicted = model.predict(rival.Z)
            if task == "classification" or np.isfinite(predicted).all():
                results[name], predictions[name] = scores_of(task, y_test, model, rival.Z, predicted), predicted
    return results, predictions


def one_openmp_thread() -> Any:
    """A context in which trees use one thread: more cost more than they gain, and hang in a process that is forked."""
    return threadpool_limits(1, "openmp")


@dataclass(frozen=True, eq=False)
class Rival:
    """A simple model, the rows from which it can learn, and those to judge it by."""

    model: Any
    X: Any
    Z: Any

    def fitted(self, rows: np.ndarray, y: np.ndarray) -> Any:
        """The model, fitted to some rows with targets (n,)."""
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            # A yardstick remains one where it stops short of its optimum.
            warnings.simplefilter("ignore")
            return self.model.fit(self.X[rows], y)


def rivals(task: str, rows: Features, y: np.ndarray) -> dict[str, Rival]:
    """Return the models beside which a learner is judged, by their names.

    Gradient-boosted trees and a linear model, if there are features, and a constant. Trees are left out where they
    would take more than about a second: their time grows with columns times classes.

    >>> list(rivals("regression", Features(np.zeros((3, 0)), np.zeros((2, 0))), np.arange(3.0)))
    ['mean of the target']
    """
    found: dict[str, Rival] = {}
    trees = rows.columns if y.ndim == 1 else None
    values = len(np.unique(y)) if task == "classification" else 2
    if trees is not None and trees[0].shape[1] * (values if values > 2 else 1) <= _TREES and values > 1:
        found[TREES] = Rival(_trees(task, rows.codes), *trees)
    if rows.X.shape[1]:
        name, linear = (
            ("logistic regression", LogisticRegression(max_iter=1000))
            if task == "classification"
            else ("linear (ridge) regression", Ridge())
        )
        found[f"{name}{rows.what}"] = Rival(linear, rows.X, rows.Z)
    if task == "classification":
        return {**found, "most frequent class": Rival(DummyClassifier(strategy="prior"), rows.X, rows.Z)}
    return {**found, "mean of the target": Rival(DummyRegressor(), rows.X, rows.Z)}


def _trees(task: str, codes: Any) -> Any:
    """scikit-learn's, as they are by default, but for the rows that are held out from more than 10,000."""
    boosted: Any = import_module("sklearn.ensemble")
    way = {"categorical_features": codes, "early_stopping": False, "random_state": 0}
    if task == "classification":
        return boosted.HistGradientBoostingClassifier(**way)
    # In their own units, derivatives of huge or tiny targets have no digits in float32.
    return TransformedTargetRegressor(boosted.HistGradientBoostingRegressor(**way), transformer=StandardScaler())
