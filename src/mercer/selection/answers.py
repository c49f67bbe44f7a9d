"""What scorers need from the fits of a search: it is computed where a fit was made, so that the fit can be dropped."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Mapping
from contextlib import ExitStack
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.metrics import r2_score
from sklearn.model_selection import cross_validate
from sklearn.pipeline import Pipeline
from sklearn.utils import get_tags

from mercer._types import AnyArray, Positions
from mercer.gram.evaluated import EvaluatedGram, gathered
from mercer.selection.fold_rows import Fold, Made, SearchData, take_rows

ON_ROWS = frozenset(
    {"predict", "predict_proba", "predict_log_proba", "decision_function", "score", "score_samples", "transform"}
)
"""Methods of estimators whose first argument are rows."""
# What scorers read from a fitted classifier beside its methods.
_ATTRIBUTES = ("classes_",)
# scikit-learn's searches score with the weights of a fit.
_WEIGHTED, _WEIGHTS = "score with weights", {"sample_weight"}

Answers = dict[tuple[str, bool], Any]
"""Results of methods by name, and whether they are for the training rows."""


class _AskedError(Exception):
    """Raised by the methods of :class:`_Listener`, whose scores are of no interest."""


class _Listener(BaseEstimator):
    """Stands for an estimator, and records which of its methods are called."""

    def __init__(self, estimator: Any) -> None:
        self.estimator = estimator
        self.names: list[str] = []

    def __sklearn_clone__(self) -> _Listener:
        return self

    def __sklearn_tags__(self) -> Any:
        tags = get_tags(self.estimator)
        tags.input_tags.pairwise = False
        return tags

    def fit(self, X: Any, y: Any = None) -> _Listener:
        if y is not None and np.ndim(y) == 1:
            self.classes_ = np.unique(y)
        return self

    def __getattr__(self, name: str) -> Any:
        if name not in ON_ROWS or not hasattr(self.estimator, name):
            raise AttributeError(name)

        def method(*arguments: Any, **options: Any) -> Any:
            self.names.append(name)
            raise _AskedError

        method.__name__ = name
        return method


class AskedMethods:
    """Knows which methods of an estimator the scorers of a search call.

    Parameters
    ----------
    scoring : str, callable, list, tuple or dict, optional
        As in scikit-learn's searches.
    data : SearchData
    """

    def __init__(self, scoring: Any, data: SearchData) -> None:
        self._scoring, self._data = scoring, data
        self._known: dict[tuple[Any, ...], tuple[str, ...]] = {}

    def __call__(self, estimator: Any) -> tuple[str, ...]:
        """Return the names for an estimator, not fitted; none where they are not known before they are called."""
        learner = estimator.steps[-1][1] if isinstance(estimator, Pipeline) else estimator
        # What scorers choose depends on the class, and on the methods that it has with its parameters.
        kind = type(estimator), type(learner), tuple(sorted(name for name in ON_ROWS if hasattr(estimator, name)))
        if kind not in self._known:
            self._known[kind] = self._listen(estimator)
        return self._known[kind]

    def _listen(self, estimator: Any) -> tuple[str, ...]:
        listener, fold, data = _Listener(estimator), self._data.folds[0], self._data
        folds = [(fold.train, fold.test)]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                cross_validate(listener, np.arange(data.n)[:, None], data.y, scoring=self._scoring, cv=folds)
            except Exception:  # The search itself meets it again, and reports it.
                return ()
        return tuple(dict.fromkeys(listener.names))


class ScoredRows:
    """The rows of one fold that its fits are scored on.

    Parameters
    ----------
    fold : Fold
    data : SearchData
    several : bool
        Whether several fits with one kernel follow each other, so that its values are copied side by side for all.
    stack : ExitStack
        Keeps their memory reserved until it is closed.
    """

    def __init__(self, fold: Fold, data: SearchData, several: bool, stack: ExitStack) -> None:
        self._fold, self._data, self._several, self._stack = fold, data, several, stack
        self._gathered: dict[bool, Any] = {}

    def answers(self, made: Made, names: Iterable[str]) -> Answers | None:
        """Return the results of methods of a fit for these rows; None if one of them fails."""
        model, rows_at = made
        answers: Answers = {}
        try:
            for of_train in (False, True) if self._data.train_scores else (False,):
                positions = self._fold.train if of_train else self._fold.test
                rows = self._values(rows_at(positions), of_train)
                for name in names:
                    with_targets = name == "score" and self._data.y is not None
                    targets = (take_rows(self._data.y, positions),) if with_targets else ()
                    answers[name, of_train] = getattr(model, name)(rows, *targets)
                    if targets and self._data.weight is not None:
                        weight = take_rows(self._data.weight, positions)
                        answers[_WEIGHTED, of_train] = model.score(rows, *targets, sample_weight=weight), weight
        except Exception:  # The scorer calls the method again, with all memory, and reports the error.
            return None
        return answers

    def side_by_side(self, made: Made, names: Iterable[str], count: int) -> list[Answers] | None:
        """Return the results for ``count`` fits whose predictions one regressor makes side by side, or None.

        ``names`` may be ``"predict"`` and ``"score"``, the coefficient of determination.
        """
        model, rows_at = made
        answers: list[Answers] = [{} for _ in range(count)]
        try:
            for of_train in (False, True) if self._data.train_scores else (False,):
                positions = self._fold.train if of_train else self._fold.test
                predicted = model.predict(self._values(rows_at(positions), of_train))
                if "score" in names:
                    y = np.asarray(take_rows(self._data.y, positions))
                    weight = None if self._data.weight is None else take_rows(self._data.weight, positions)
                    plain = _scores(y, predicted, None, count)
                    weighted = plain if weight is None else _scores(y, predicted, weight, count)
                    for one, score, other in zip(answers, plain, weighted, strict=True):
                        one["score", of_train] = score
                        if weight is not None:
                            one[_WEIGHTED, of_train] = other, weight
                if "predict" in names:
                    parts = predicted.reshape(len(positions), count, *np.shape(self._data.y)[1:])
                    for number, one in enumerate(answers):
                        one["predict", of_train] = parts[:, number]
        except Exception:  # Each fit alone meets it again.
            return None
        return answers

    def _values(self, rows: Any, of_train: bool) -> Any:
        if not self._several or not isinstance(rows, EvaluatedGram):
            return rows
        if of_train not in self._gathered:
            self._gathered[of_train] = gathered(rows, self._stack)
        return self._gathered[of_train]


def _scores(y: AnyArray, predicted: AnyArray, weight: Any, count: int) -> list[float]:
    """The coefficient of determination of each of several predictions, the mean over the targets."""
    targets = np.tile(y.reshape(len(y), -1), (1, count))
    scores = r2_score(targets, predicted, sample_weight=weight, multioutput="raw_values")
    return list(map(float, np.reshape(scores, (count, -1)).mean(axis=1)))


class Answered:
    """Stands for a fitted estimator that is not kept, with the results that were computed before.

    Parameters
    ----------
    model : estimator
        Fitted; not stored.
    answers : Answers
    fold : Fold
        The rows that the answers are for.
    again : callable
        Returns the same fit with the rows to predict for, if another result is requested.
    """

    def __init__(self, model: Any, answers: Answers, fold: Fold, again: Callable[[], Made]) -> None:
        self._answers, self._fold, self._again = answers, fold, again
        self._methods = frozenset(name for name in ON_ROWS if hasattr(model, name))
        self._attributes: Mapping[str, Any] = {
            name: getattr(model, name) for name in _ATTRIBUTES if hasattr(model, name)
        }

    def made(self) -> Made:
        """Return what a search hands out: this, and the rows to predict for, which are positions."""
        return self, _as_they_are

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        if name in self._attributes:
            return self._attributes[name]
        if name not in self._methods:
            raise AttributeError(f"{name} is not known of a fit that was dropped after its predictions")

        def method(positions: Positions, *arguments: Any, **options: Any) -> Any:
            return self._answer(name, positions, arguments, options)

        method.__name__ = name
        return method

    def _answer(self, name: str, positions: Positions, arguments: tuple[Any, ...], options: Mapping[str, Any]) -> Any:
        usual = not options and len(arguments) <= (name == "score")
        for of_train in (False, True):
            part = self._fold.train if of_train else self._fold.test
            if usual and (name, of_train) in self._answers and np.array_equal(part, positions):
                return self._answers[name, of_train]
            known = self._answers.get((_WEIGHTED, of_train)) if name == "score" and set(options) == _WEIGHTS else None
            if known is not None and np.array_equal(part, positions) and np.array_equal(known[1], *options.values()):
                return known[0]
        model, rows_at = self._again()
        return getattr(model, name)(rows_at(positions), *arguments, **options)


def _as_they_are(positions: Positions) -> Positions:
    return positions
