"""What a model predicts for rows whose targets are known, and the scores of that."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from mercer._errors import DataError
from mercer._types import AnyArray, Matrix, Vector
from mercer.data.squares import squared_errors
from mercer.data.table import row_place
from mercer.plotting.margins import margins_of
from mercer.plotting.rows import codes_of, labels_of
from mercer.reports.scores import Scores, probability_scores, scores
from mercer.reports.subject import Subject

# Shares of a normal distribution that lie within one and within so many standard deviations.
_INTERVALS = {0.5: 0.6744897501960817, 0.8: 1.2815515655446004, 0.95: 1.959963984540054}


@dataclass(frozen=True, eq=False)
class Judged:
    """Targets of n rows and what a model predicts for them.

    Parameters
    ----------
    task : {"classification", "regression"}
    truth, predicted : ndarray of shape (n,) or (n, targets)
    kind : {"held out", "new", "fit"}
        Whether the rows were held out from the fit, are of unknown origin, or are those of the fit.
    classes : ndarray of shape (k,), optional
    shares : ndarray of shape (n, k), optional
        Probabilities of the classes.
    decision : ndarray, optional
        Values of ``decision_function``.
    intervals : dict of float to ndarray of shape (n, 2), optional
        Central intervals of new observations, by the probability with which they contain one.
    locate : callable
        Maps the number of a row to a description of its place.
    """

    task: str
    truth: AnyArray
    predicted: AnyArray
    kind: str
    classes: AnyArray | None = None
    shares: Matrix | None = None
    decision: AnyArray | None = None
    intervals: dict[float, Matrix] | None = None
    locate: Callable[[int], str] = row_place

    @classmethod
    def of(cls, subject: Subject, X: Any, y: Any, kind: str, locate: Callable[[int], str] = row_place) -> Judged | None:
        """Predict; None if the model predicts no target.

        Raises
        ------
        DataError
            If targets are missing, of another number than the rows, or of unknown classes.
        """
        if subject.task is None:
            return None
        model = subject.model
        predicted = np.asarray(model.predict(X))
        n = len(predicted)
        if subject.task == "classification":
            classes = np.asarray(subject.learner.classes_)
            truth = labels_of(y, n)
            codes_of(truth, classes)
            shares = np.asarray(model.predict_proba(X)) if hasattr(model, "predict_proba") else None
            # Values of pairs of classes have no margin.
            pairs = getattr(subject.learner, "decision_function_shape", "ovr") == "ovo" and len(classes) > 2
            decide = hasattr(model, "decision_function") and not pairs
            decision = np.asarray(model.decision_function(X)) if decide and shares is None else None
            return cls(subject.task, truth, predicted, kind, classes, shares, decision, locate=locate)
        truth = _numbers(y, predicted.shape)
        intervals = _intervals(subject, X) if predicted.ndim == 1 else None
        return cls(subject.task, truth, predicted, kind, intervals=intervals, locate=locate)

    @property
    def n(self) -> int:
        """The number of rows."""
        return len(self.truth)

    @property
    def is_finite(self) -> bool:
        """Whether all predictions are numbers."""
        return self.task == "classification" or bool(np.isfinite(self.predicted).all())

    @property
    def losses(self) -> Vector:
        """1 for a wrong class and 0 for the right one; squared errors, averaged over the targets; (n,).

        They are compared with others of the same targets alone: :func:`~mercer.data.squares.squared_errors` chooses a
        unit.
        """
        return losses(self.task, self.truth, self.predicted)

    def scores(self) -> Scores:
        """Return those of the predictions and of the probabilities; NaN where predictions are not finite."""
        if not self.is_finite:
            return dict.fromkeys(("r2", "rmse", "mae"), float("nan"))
        values = scores(self.task, self.truth, self.predicted)
        if self.shares is not None and self.classes is not None and np.isfinite(self.shares).all():
            values.update(probability_scores(self.truth, self.shares, self.classes))
        return values

    def own_shares(self) -> Vector | None:
        """Return the probability of the true class of each row, (n,)."""
        if self.shares is None or self.classes is None:
            return None
        return np.asarray(self.shares[np.arange(self.n), codes_of(self.truth, self.classes)])

    def margins(self) -> Vector | None:
        """Return ``y f(x)``, or by how much the decision value of the true class is above all others, (n,)."""
        if self.decision is None or self.classes is None or not np.isfinite(self.decision).all():
            return None
        # Of the classes of the fit, whether these rows have them all or not.
        return margins_of(self.decision, codes_of(self.truth, self.classes))


def losses(task: str, truth: AnyArray, predicted: AnyArray) -> Vector:
    """Return 1 for a wrong class and 0 for the right one, or squared errors, averaged over the targets.

    >>> losses("regression", np.array([1.0, 2.0]), np.array([1.0, 4.0])).tolist()
    [0.0, 4.0]
    """
    if task == "classification":
        return np.asarray(truth != predicted, dtype=np.float64)
    return squared_errors(truth, predicted)


def _numbers(y: Any, shape: tuple[int, ...]) -> AnyArray:
    try:
        truth = np.asarray(y, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise DataError(f"y must be numbers, because the model predicts numbers, but is not: {error}.") from error
    if truth.shape != shape and truth.size == np.prod(shape) and truth.ndim in (1, 2):
        truth = truth.reshape(shape)
    if truth.shape != shape:
        raise DataError(f"y must have the shape {shape} of the predictions, but has {truth.shape}.")
    bad = ~np.isfinite(truth.reshape(len(truth), -1)).all(axis=1)
    if bad.any():
        raise DataError(
            f"y is missing or infinite in {int(bad.sum())} rows, first in row {int(bad.argmax())}; leave them out."
        )
    return truth


def _intervals(subject: Subject, X: Any) -> dict[float, Matrix] | None:
    """Central intervals, of models that have quantiles or standard deviations of observations."""
    model = subject.model
    if hasattr(model, "predict_quantiles"):
        levels = [end for share in _INTERVALS for end in (0.5 - share / 2, 0.5 + share / 2)]
        ends = np.asarray(model.predict_quantiles(X, levels))
        return {share: ends[:, 2 * i : 2 * i + 2] for i, share in enumerate(_INTERVALS)}
    if "observation" not in inspect.signature(subject.learner.predict).parameters:
        return None
    mean, deviation = model.predict(X, return_std=True, observation=True)
    return {
        share: np.column_stack([mean - width * deviation, mean + width * deviation])
        for share, width in _INTERVALS.items()
    }
