"""Intervals of held-out scores of the exact solution, from the duality gap of a fit."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
from sklearn.base import ClassifierMixin, RegressorMixin, is_classifier

from mercer._types import Matrix, Vector
from mercer.estimators.shared.base import KernelEstimator
from mercer.selection.candidates import learner_of
from mercer.selection.evaluated import Bound
from mercer.selection.fold_rows import Fold, SearchData
from mercer.selection.prediction_bounds import Fitted, NoBoundError, intervals

# By the names of scikit-learn's functions.
_OF_LABELS = ("accuracy_score", "balanced_accuracy_score")
_OF_NUMBERS = ("r2_score", "mean_squared_error", "root_mean_squared_error", "mean_absolute_error")
# Rounding of a mean of errors, as a share.
_ROUNDING = 1e-13


@dataclass(frozen=True, eq=False)
class ScoreBounds:
    """Bounds the scores of fits by one metric.

    Parameters
    ----------
    metric : str
        The name of scikit-learn's function; "" where none is known.
    why : str
        Why there is no bound for this metric; empty if there is one.
    data : SearchData
    """

    metric: str
    why: str
    data: SearchData

    @classmethod
    def of(cls, estimator: Any, scorer: Any, data: SearchData) -> ScoreBounds:
        """Return the bounds for the metric of a scorer.

        Parameters
        ----------
        estimator : estimator
        scorer : callable
            As ``sklearn.metrics.check_scoring`` returns.
        data : SearchData

        Returns
        -------
        ScoreBounds
        """
        function = getattr(scorer, "_score_func", None)
        if function is None:
            learner = type(learner_of(estimator))
            own = {ClassifierMixin.score: "accuracy_score", RegressorMixin.score: "r2_score"}
            # Learners wrap it for rows in parts.
            score = inspect.unwrap(getattr(learner, "score", lambda: None))
            metric = own.get(score, "") if hasattr(scorer, "_estimator") else ""
        else:
            sign = -1 if getattr(function, "__name__", "").endswith("_error") else 1
            plain = not getattr(scorer, "_kwargs", None) and getattr(scorer, "_sign", 0) == sign
            metric = getattr(function, "__name__", "") if plain else ""
        known = _OF_LABELS if is_classifier(estimator) else _OF_NUMBERS
        named = metric or getattr(function, "__name__", "") or f"the score of {type(learner_of(estimator)).__name__}"
        why = "" if metric in known else f"no bound is known for the metric {named}"
        if data.score_weight is not None:
            why = "no bound is known for weighted scores"
        return cls(metric if not why else "", why, data)

    def __call__(self, model: Any, rows: Callable[[Any], Any], fold: Fold, y: Any) -> Bound:
        """Return the interval of the score of the exact solution on a fold, or why there is none."""
        if self.why:
            return Bound(why=self.why)
        if not isinstance(model, KernelEstimator):
            return Bound(why="the candidates were fitted one by one, with their preprocessing")
        try:
            lower, upper = intervals(Fitted(model, rows, fold, self.data))
        except NoBoundError as reason:
            return Bound(why=str(reason))
        if self.metric in _OF_LABELS:
            return _bound_of_labels(self.metric, *_labels(model, lower, upper), np.asarray(y).ravel())
        return _bound_of_numbers(self.metric, lower, upper, np.asarray(y, dtype=np.float64).reshape(lower.shape))


def _labels(model: Any, lower: Matrix, upper: Matrix) -> tuple[np.ndarray, np.ndarray]:
    """The labels that are certain, and whether they are: (m,) each."""
    classes = model.classes_
    if len(classes) == 2:
        return classes[(lower[:, 0] > 0).astype(np.intp)], (lower[:, 0] > 0) | (upper[:, 0] < 0)
    if getattr(model, "break_ties", False):
        return np.repeat(classes[:1], len(lower)), np.zeros(len(lower), bool)
    k = len(classes)
    least, most = np.zeros((2, len(lower), k), dtype=np.intp)
    for number, (i, j) in enumerate(combinations(range(k), 2)):
        first, second = lower[:, number] > 0, upper[:, number] < 0
        least[:, i] += first
        least[:, j] += second
        most[:, i] += ~second
        most[:, j] += ~first
    winner = least.argmax(axis=1)
    every = np.arange(len(lower))
    votes = least[every, winner]
    most[every, winner] = -1
    return classes[winner], votes > most.max(axis=1)


def _bound_of_labels(metric: str, labels: np.ndarray, certain: np.ndarray, y: np.ndarray) -> Bound:
    right, wrong = certain & (labels == y), certain & (labels != y)
    if metric == "accuracy_score":
        return Bound(float(np.mean(right)), float(np.mean(~wrong)))
    groups = [y == label for label in np.unique(y)]
    lower = np.mean([np.mean(right[group]) for group in groups])
    return Bound(float(lower), float(np.mean([np.mean(~wrong[group]) for group in groups])))


def _bound_of_numbers(metric: str, lower: Matrix, upper: Matrix, y: Matrix) -> Bound:
    if not (np.isfinite(lower).all() and np.isfinite(upper).all()):
        return Bound(-np.inf, 1.0 if metric == "r2_score" else 0.0)
    largest = np.maximum(np.abs(y - lower), np.abs(upper - y))
    least = np.maximum(np.maximum(lower - y, y - upper), 0.0)
    if metric == "mean_absolute_error":
        return _rounded(-float(largest.mean()), -float(least.mean()))
    worst, best = (largest**2).mean(axis=0), (least**2).mean(axis=0)
    if metric == "mean_squared_error":
        return _rounded(-float(worst.mean()), -float(best.mean()))
    if metric == "root_mean_squared_error":
        return _rounded(-float(np.sqrt(worst).mean()), -float(np.sqrt(best).mean()))
    if len(y) < 2:
        return Bound(why="R^2 needs two held-out rows")
    return _rounded(float(_r2(worst, y).mean()), float(_r2(best, y).mean()))


def _r2(errors: Vector, y: Matrix) -> Vector:
    """R^2 for mean squared errors, as scikit-learn: of equal targets 1 where there is no error, else 0."""
    variance = y.var(axis=0)
    share = np.divide(errors, variance, out=np.where(errors > 0, 1.0, 0.0), where=variance > 0)
    return np.asarray(1.0 - share)


def _rounded(lower: float, upper: float) -> Bound:
    room = _ROUNDING * (1.0 + max(abs(lower), abs(upper)))
    return Bound(lower - room, upper + room)
