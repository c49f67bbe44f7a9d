"""Candidates on the folds of a search: fitted together, scored, and with an interval for each score."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np
from sklearn.pipeline import Pipeline

from mercer._errors import MercerWarning
from mercer._types import Vector
from mercer.engine import threads
from mercer.engine.progress import is_raised_by_hook
from mercer.loops.compilation import working_time
from mercer.selection.candidates import groups_of
from mercer.selection.fold_rows import Fold, SearchData, take_rows
from mercer.selection.held_out import CANDIDATE, HeldOut
from mercer.selection.shared_fits import SharedFits

Interval = tuple[float, float]

_NO_NAN = "Use folds with more rows of each class, or another scoring: R^2 needs two rows, areas need two classes."


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

    @classmethod
    def unscored(cls, parameters: Mapping[str, Any], tol: float | None, folds: int) -> Evaluated:
        """Return a candidate whose fits were stopped by the end of the time budget."""
        scores, lower, upper, seconds, score_seconds = np.full((5, folds), np.nan)
        why = "the time budget ended before its scores were known"
        return cls(parameters, tol, scores, lower, upper, seconds, score_seconds, why)

    @property
    def mean(self) -> float:
        """The mean score; NaN if a fit failed, or was stopped."""
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


DEFERRED = "the time budget ended before the bounds of all scores were computed"
"""Why a candidate has no interval yet, where many pairs of classes take longer to bound than to fit."""

BoundScore = Callable[[Any, Callable[[Any], Any], Fold, Any], "Bound"]


@dataclass(frozen=True)
class Bound:
    """The interval of one score, or why there is none."""

    lower: float = np.nan
    upper: float = np.nan
    why: str = ""


@dataclass(frozen=True)
class _Scored:
    """A candidate on one fold."""

    score: float = np.nan
    bound: Bound = Bound()
    seconds: float = np.nan
    error: str = ""


@dataclass(eq=False)
class Evaluator:
    """Fits and scores candidates in the requested order.

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

    def evaluate(
        self, parameters: Sequence[Mapping[str, Any]], tol: float | None, bounded: bool = True
    ) -> list[Evaluated]:
        """Fit and score some candidates on all folds.

        Parameters
        ----------
        parameters : list of dict
        tol : float or None
            The tolerance; None for the estimator's own.
        bounded : bool, default=True
            Whether to compute the intervals.

        Returns
        -------
        list of Evaluated
        """
        groups = groups_of(self.estimator, [self._with_tol(one, tol) for one in parameters])
        first, self._asked = self._asked, self._asked + len(parameters)
        numbered = [replace(group, numbers=tuple(first + n for n in group.numbers)) for group in groups]
        self.fits.extend(numbered)
        made = {}
        with warnings.catch_warnings():
            # Of kernels that are too narrow, or fits that are worse than the mean: their scores say so.
            warnings.simplefilter("ignore", MercerWarning)
            for group in numbered:
                scored = self._score_group(group.numbers, bounded)
                for number, of_folds in zip(group.numbers, scored):
                    made[number] = self._joined(number, parameters[number - first], tol, of_folds)
        return [made[first + n] for n in range(len(parameters))]

    def _with_tol(self, parameters: Mapping[str, Any], tol: float | None) -> dict[str, Any]:
        return dict(parameters) if tol is None else {**parameters, f"{self.prefix}tol": tol}

    def _score_group(self, numbers: Sequence[int], bounded: bool) -> list[list[_Scored]]:
        """Take the fits of candidates that were fitted together, and score them, fold by fold on the threads."""
        held = [[self._held(number, fold) for fold in self.data.folds] for number in numbers]
        scored: list[list[_Scored]] = [[_Scored()] * len(self.data.folds) for _ in numbers]

        def score(fold: Fold) -> None:
            for row, of_folds in zip(scored, held):
                row[fold.number] = self._score(of_folds[fold.number], fold, bounded)

        threads.run([partial(score, fold) for fold in self.data.folds], self.n_jobs)
        return scored

    def _held(self, number: int, fold: Fold) -> HeldOut | Exception:
        held: HeldOut = HeldOut(self.estimator, self.fits).set_params(**{CANDIDATE: number})
        try:
            return held.fit(np.asarray(fold.train)[:, None])
        except Exception as reason:  # What a fit raises is reported for the candidate that it belongs to.
            if self.fits.ended_by is not None:
                raise
            return reason

    def _score(self, held: HeldOut | Exception, fold: Fold, bounded: bool) -> _Scored:
        if isinstance(held, Exception):
            return _Scored(error=f"{type(held).__name__}: {held}")
        begin = working_time()
        try:
            y = None if self.data.y is None else take_rows(self.data.y, fold.test)
            rows = np.asarray(fold.test)[:, None]
            options = self.data.score_options(fold)
            score = float(self.scorer(held, rows) if y is None else self.scorer(held, rows, y, **options))
        except Exception as reason:  # As above: a prediction may fail, too.
            if is_raised_by_hook(reason):
                raise
            return _Scored(error=f"{type(reason).__name__}: {reason}")
        if np.isnan(score):
            return _Scored(
                error=f"the score of fold {fold.number} is NaN, with {len(fold.test)} held-out rows. {_NO_NAN}"
            )
        if not bounded:
            return _Scored(score, Bound(why=DEFERRED), working_time() - begin)
        try:
            bound = self.bound(held.fitted_, held.rows_, fold, y)
        except Exception as reason:  # The score is right without it, and the search says why there is none.
            if is_raised_by_hook(reason):
                raise
            bound = Bound(why=f"its computation failed: {type(reason).__name__}: {reason}")
        return _Scored(score, bound, working_time() - begin)

    def _joined(
        self, number: int, parameters: Mapping[str, Any], tol: float | None, scored: Sequence[_Scored]
    ) -> Evaluated:
        return Evaluated(
            parameters,
            tol,
            np.array([one.score for one in scored]),
            np.array([one.bound.lower for one in scored]),
            np.array([one.bound.upper for one in scored]),
            np.array([self.fits.seconds[number, fold.number] for fold in self.data.folds]),
            np.array([one.seconds for one in scored]),
            next((one.bound.why for one in scored if one.bound.why), ""),
            next((one.error for one in scored if one.error), ""),
        )
