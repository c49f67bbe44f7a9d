"""Copies of a learner, each fitted without a part of the rows: intervals, prediction sets and probabilities from them.

The CV+ of Barber, Candès, Ramdas and Tibshirani ("Predictive inference with the jackknife+", Annals of Statistics 49,
2021) for numbers, and of Romano, Sesia and Candès ("Classification with valid and adaptive coverage", NeurIPS 2020) for
classes. With one copy, which has not seen the rows that it is compared with, both are split conformal prediction.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator, clone

from mercer._errors import ParameterError
from mercer._types import Matrix, Positions, Vector
from mercer.data.fitted import Fitted
from mercer.data.statements import Each, Floats, Is, Whole
from mercer.engine import memory, threads
from mercer.engine.progress import Progress
from mercer.engine.tiles import spans
from mercer.estimators.shared.intervals import Intervals, PredictionSets, check_coverage, warn_if_few
from mercer.estimators.shared.sigmoid import fit_sigmoid, probability
from mercer.gram.hold import capacity
from mercer.solvers.conformal import guaranteed_by_folds, jackknife_plus, nonconforming

# New rows that are worked on at once, and arrays of these by the rows of the errors.
_ROWS = 256
_FEWEST = 8
_ARRAYS = 4

# Rows of a fit, and the others that it is compared with.
Split = tuple[Positions, Positions]


def take(X: Any, rows: Positions) -> Any:
    """Some rows of an array, a sparse matrix, a container of objects, a list, or a data frame."""
    if isinstance(X, (list, tuple)):
        return [X[row] for row in rows]
    return X.iloc[rows] if hasattr(X, "iloc") else X[rows]


def _is_fitted(part: Any) -> bool:
    return all(any(name.endswith("_") for name in vars(model)) for model in part.models)


def _fits(learner: Any, X: Any, y: np.ndarray, splits: Iterable[Split]) -> tuple[tuple[Any, ...], Positions, Positions]:
    """Fitted copies, the rows that at least one has not seen, and the number of that one."""
    if (
        getattr(learner, "kernel", None) is not None
        and isinstance(learner.kernel, str)
        and learner.kernel == "precomputed"
    ):
        raise ParameterError("folds need the rows themselves, and kernel is 'precomputed'; pass a kernel.")
    parts = list(splits)
    progress = Progress(len(parts), "fits without a part")
    models, rows, numbers = [], [], []
    for number, (training, others) in enumerate(parts):
        models.append(clone(learner).fit(take(X, training), y[training]))
        rows.append(others)
        numbers.append(np.full(len(others), number))
        progress.advance()
    return tuple(models), np.concatenate(rows), np.concatenate(numbers)


@dataclass(frozen=True, eq=False)
class CrossFitNumbers:
    """Copies of a regressor, and the errors of the rows that they have not seen.

    Parameters
    ----------
    models : tuple of estimators
        k fitted copies; one for split conformal prediction.
    parts : ndarray of shape (n,)
        The copy that has not seen a row.
    errors : ndarray of shape (n,)
        Targets minus its predictions.
    """

    models: tuple[Any, ...]
    parts: Positions
    errors: Vector
    _fitted: ClassVar[Fitted] = Fitted(
        {"models": Each(Is(BaseEstimator), size="k"), "parts": Whole("n", below="k"), "errors": Floats("n")},
        rules=(("a copy of the learner is not fitted", _is_fitted),),
    )

    @classmethod
    def of(cls, learner: Any, X: Any, y: Vector, splits: Iterable[Split]) -> Self:
        """Fit a copy of the learner for each split."""
        models, rows, parts = _fits(learner, X, y, splits)
        errors = np.empty(len(rows))
        for number, model in enumerate(models):
            own = parts == number
            errors[own] = y[rows[own]] - np.asarray(model.predict(take(X, rows[own])), dtype=np.float64)
        return cls(models, parts, errors)

    @classmethod
    def held_out(cls, model: Any, parts: Iterable[tuple[Any, Vector]]) -> Self:
        """For parts (X, y) that a fitted regressor has not seen: split conformal prediction, without a fit."""
        errors = np.concatenate([y - np.asarray(model.predict(X), dtype=np.float64) for X, y in parts])
        return cls((model,), np.zeros(len(errors), dtype=np.intp), errors)

    def interval(self, X: Any, coverage: float) -> Intervals:
        """Intervals of new rows, by CV+ or split conformal prediction."""
        coverage = check_coverage(coverage)
        warn_if_few(len(self.errors), coverage)
        predicted = np.column_stack([np.asarray(model.predict(X), dtype=np.float64) for model in self.models])
        lower, upper = np.empty(len(predicted)), np.empty(len(predicted))
        k, n = len(self.models), len(self.errors)
        if k == 1:
            # All intervals are equally wide.
            low, high = jackknife_plus(np.zeros((1, n)), np.abs(self.errors), coverage)
            return Intervals(
                predicted[:, 0] + low,
                predicted[:, 0] + high,
                coverage,
                method_of(k),
                guaranteed_by_folds(coverage, n, k),
            )
        step = max(capacity(8 * _ARRAYS * n, _ROWS), _FEWEST)
        with memory.reserve(
            8 * _ARRAYS * n * min(step, len(predicted)), f"predictions for {step} new rows by {k} fits"
        ):
            for some in spans(len(predicted), step):
                threads.checkpoint()
                ends = jackknife_plus(predicted[some][:, self.parts], np.abs(self.errors), coverage)
                lower[some], upper[some] = ends
        return Intervals(lower, upper, coverage, method_of(k), guaranteed_by_folds(coverage, n, k))


@dataclass(frozen=True, eq=False)
class CrossFitClasses:
    """Copies of a classifier, and how well the rows that they have not seen conform to their classes.

    Parameters
    ----------
    models : tuple of estimators
        k fitted copies; one for split conformal prediction.
    parts : ndarray of shape (n,)
        The copy that has not seen a row.
    scores : ndarray of shape (n,)
        The probability that it gives to the row's class, or the decision value.
    slopes, offsets : ndarray of shape (c,)
        A and B of the sigmoid ``1 / (1 + exp(A f + B))`` of the decision values f of each class; none for a classifier
        that has probabilities of its own.
    """

    models: tuple[Any, ...]
    parts: Positions
    scores: Vector
    slopes: Vector
    offsets: Vector
    _fitted: ClassVar[Fitted] = Fitted(
        {
            "models": Each(Is(BaseEstimator), size="k"),
            "parts": Whole("n", below="k"),
            "scores": Floats("n"),
            "slopes": Floats("c"),
            "offsets": Floats("c"),
        },
        rules=(("a copy of the learner is not fitted", _is_fitted),),
    )

    @classmethod
    def of(cls, learner: Any, X: Any, y: np.ndarray, classes: np.ndarray, splits: Iterable[Split]) -> Self:
        """Fit a copy of the learner for each split; fit sigmoids if it has decision values alone."""
        models, rows, parts = _fits(learner, X, y, splits)
        values = np.empty((len(rows), len(classes)))
        for number, model in enumerate(models):
            own = parts == number
            values[own] = class_values(model, take(X, rows[own]), classes)
        return cls._of_values(models, parts, values, np.searchsorted(classes, y[rows]))

    @classmethod
    def held_out(cls, model: Any, parts: Iterable[tuple[Any, np.ndarray]], classes: np.ndarray) -> Self:
        """For parts (X, y) that a fitted classifier has not seen: split conformal prediction, without a fit."""
        predictions = [(class_values(model, X, classes), np.searchsorted(classes, y)) for X, y in parts]
        values, codes = (np.concatenate(side) for side in zip(*predictions, strict=True))
        return cls._of_values((model,), np.zeros(len(codes), dtype=np.intp), values, codes)

    @classmethod
    def _of_values(cls, models: tuple[Any, ...], parts: Positions, values: Matrix, codes: Positions) -> Self:
        """From the values (n, c) of rows with the given numbers of classes."""
        n, k = values.shape
        slopes, offsets = np.empty(0), np.empty(0)
        if not hasattr(models[0], "predict_proba"):
            sigmoids = [fit_sigmoid(values[:, c], codes == c, np.ones(n)) for c in range(k)]
            slopes, offsets = (np.array(column) for column in zip(*sigmoids, strict=True))
        return cls(models, parts, values[np.arange(n), codes], slopes, offsets)

    def fits(self, model: Any, classes: np.ndarray) -> bool:
        """Whether every copy, and the fit to all rows, know no other classes, and sigmoids are there if needed."""
        known = [np.asarray(vars(one).get("classes_", ())) for one in (model, *self.models)]
        needed = 0 if hasattr(model, "predict_proba") else len(classes)
        same = np.array_equal(known[0], classes) and all(len(k) and np.isin(k, classes).all() for k in known)
        return bool(same and len(self.slopes) == needed)

    def probabilities(self, model: Any, X: Any, classes: np.ndarray) -> Matrix:
        """Probabilities (m, c) from the decision values of the fit to all rows, by the sigmoids."""
        shares = probability(class_values(model, X, classes), self.slopes, self.offsets)
        return np.asarray(shares / shares.sum(axis=1, keepdims=True))

    def sets(self, X: Any, classes: np.ndarray, predicted: np.ndarray, coverage: float) -> PredictionSets:
        """Prediction sets of new rows, by CV+ or split conformal prediction; they contain what is predicted."""
        coverage = check_coverage(coverage)
        warn_if_few(len(self.scores), coverage)
        members = np.zeros((len(predicted), len(classes)))
        for number, model in enumerate(self.models):
            own = np.sort(self.scores[self.parts == number])
            # How many of the left-out rows conform better.
            members += len(own) - np.searchsorted(own, class_values(model, X, classes), side="right")
        k, n = len(self.models), len(self.scores)
        inside = members < nonconforming(coverage, n)
        inside |= predicted[:, None] == classes
        return PredictionSets(inside, classes, coverage, method_of(k), guaranteed_by_folds(coverage, n, k))


def method_of(copies: int) -> str:
    """The method, by the number of fits.

    >>> method_of(5), method_of(1)
    ('CV+ of 5 folds', 'split conformal prediction')
    """
    return "split conformal prediction" if copies == 1 else f"CV+ of {copies} folds"


def class_values(model: Any, X: Any, classes: np.ndarray) -> Matrix:
    """How well each row conforms to each class, (m, c): probabilities, or else decision values.

    A class that the model has not seen has the value 0 or, of decision values, one less than the least.

    Raises
    ------
    ParameterError
        If decision values are those of pairs of classes.
    """
    if hasattr(model, "predict_proba"):
        values, least = np.asarray(model.predict_proba(X), dtype=np.float64), 0.0
    else:
        values = np.asarray(model.decision_function(X), dtype=np.float64)
        values = np.column_stack([-values, values]) if values.ndim == 1 else values
        least = float(values.min(initial=0.0)) - 1.0
    if values.shape[1] != len(model.classes_):
        raise ParameterError(
            f"{type(model).__name__} gives decision values of pairs of classes; pass decision_function_shape='ovr'."
        )
    whole = np.full((len(values), len(classes)), least)
    whole[:, np.searchsorted(classes, model.classes_)] = values
    return whole
