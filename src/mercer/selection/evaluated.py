"""Candidates on the folds of a search: fitted together, scored, and with an interval for each score."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from sklearn.pipeline import Pipeline

from mercer._types import Vector
from mercer.selection.candidates import groups_of
from mercer.selection.fold_rows import Fold, SearchData, take_rows
from mercer.selection.held_out import CANDIDATE, HeldOut
from mercer.selection.shared_fits import SharedFits

Interval = tuple[float, float]


@dataclass(frozen=True, eq=False)
class Evaluated:
    """One candidate at one tolerance, on all folds.

    Attributes
    ----------
    parameters : dict
        Of the estimator, without the tolerance.
    tol : float or None
        The tolerance of the fits; None for the estimator's own.
    scores, lower, upper : ndarray of shape (folds,)
        What was measured, and the interval of the score of the exact solution; NaN where there is none.
    seconds, score_seconds : ndarray of shape (folds,)
        Of the fits, and of their scores.
    why : str
        Why there is no interval; empty if there is one.
    error : str
        What a fit raised; empty if none did.
    """

    parameters: Mapping[str, Any]
    tol: float | None
    scores: Vector
    lower: Vector
    upper: Vector
    seconds: Vector
    score_seconds: Vector
    why: str = ""
    error: str = ""

    @property
    def mean(self) -> float:
        """The mean score; NaN if a fit failed."""
        return float(np.mean(self.scores))

    @property
    def interval(self) -> Interval:
        """The interval of the mean score."""
        return float(np.mean(self.lower)), float(np.mean(self.upper))


def prefix_of(estimator: Any) -> str:
    """What precedes the learner's parameters: in a pipeline, the name of the last step.

    >>> prefix_of("learner"), prefix_of(Pipeline([("scale", None), ("learn", None)]))
    ('', 'learn__')
    """
    return f"{estimator.steps[-1][0]}__" if isinstance(estimator, Pipeline) else ""


BoundScore = Callable[[Any, Callable[[Any], Any], Fold, Any], "Bound"]


@dataclass(frozen=True)
class Bound:
    """The interval of one score, or why there is none."""

    lower: float = np.nan
    upper: float = np.nan
    why: str = ""


@dataclass(eq=False)
class Evaluator:
    """Fits and scores candidates in the order in which they are asked for.

    Parameters
    ----------
    estimator : estimator
    data : SearchData
    scorer : callable
        As scikit-learn's.
    n_jobs : int or None
    bound : callable
        From a fitted learner, its rows, the fold and its targets to a :class:`Bound`.
    """

    estimator: Any
    data: SearchData
    scorer: Any
    n_jobs: int | None
    bound: BoundScore
    fits: SharedFits = field(init=False)

    def __post_init__(self) -> None:
        self.fits = SharedFits(self.data, [], self.n_jobs, False)
        self._asked = 0

    @property
    def prefix(self) -> str:
        """Of the learner's parameters."""
        return prefix_of(self.estimator)

    def groups(self, parameters: Sequence[Mapping[str, Any]], tol: float | None) -> list[list[int]]:
        """Return the positions of candidates that are fitted together, in the order of their first."""
        groups = groups_of(self.estimator, [self._with_tol(one, tol) for one in parameters])
        return sorted((sorted(group.numbers) for group in groups), key=min)

    def evaluate(self, parameters: Sequence[Mapping[str, Any]], tol: float | None) -> list[Evaluated]:
        """Fit and score some candidates on all folds.

        Parameters
        ----------
        parameters : list of dict
        tol : float or None
            The tolerance; None for the estimator's own.

        Returns
        -------
        list of Evaluated
        """
        groups = groups_of(self.estimator, [self._with_tol(one, tol) for one in parameters])
        first, self._asked = self._asked, self._asked + len(parameters)
        numbered = [replace(group, numbers=tuple(first + n for n in group.numbers)) for group in groups]
        self.fits.extend(numbered)
        made = {}
        for group in numbered:
            for number in group.numbers:
                made[number] = self._score(number, parameters[number - first], tol)
        return [made[first + n] for n in range(len(parameters))]

    def _with_tol(self, parameters: Mapping[str, Any], tol: float | None) -> dict[str, Any]:
        return dict(parameters) if tol is None else {**parameters, f"{self.prefix}tol": tol}

    def _score(self, number: int, parameters: Mapping[str, Any], tol: float | None) -> Evaluated:
        folds = self.data.folds
        scores, lower, upper, seconds, score_seconds = np.full((5, len(folds)), np.nan)
        why = error = ""
        for fold in folds:
            try:
                held = HeldOut(self.estimator, self.fits).set_params(**{CANDIDATE: number})
                held.fit(np.asarray(fold.train)[:, None])
                begin = time.perf_counter()
                y = None if self.data.y is None else take_rows(self.data.y, fold.test)
                rows = np.asarray(fold.test)[:, None]
                scores[fold.number] = self.scorer(held, rows) if y is None else self.scorer(held, rows, y)
                bound = self.bound(held.fitted_, held.rows_, fold, y)
                lower[fold.number], upper[fold.number] = bound.lower, bound.upper
                why = why or bound.why
                score_seconds[fold.number] = time.perf_counter() - begin
            except Exception as reason:  # What a fit raises is reported for the candidate that it belongs to.
                error = error or f"{type(reason).__name__}: {reason}"
            seconds[fold.number] = self.fits.seconds[number, fold.number]
        return Evaluated(parameters, tol, scores, lower, upper, seconds, score_seconds, why, error)
