"""The simple models beside which a model is judged: a constant, and a linear one."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.model_selection import KFold, StratifiedKFold
from sklearn.preprocessing import StandardScaler

from mercer._types import AnyArray, Vector
from mercer.data.columns import MixedRows
from mercer.data.objects import Objects
from mercer.data.words import counted
from mercer.estimators.table import TableModel
from mercer.reports.judged import Judged, losses
from mercer.reports.plain_features import features, features_of_columns
from mercer.reports.scores import Scores, rivals, scores
from mercer.reports.subject import Subject

_FOLDS = 5


@dataclass(frozen=True, eq=False)
class Baseline:
    """A simple model on the judged rows.

    Parameters
    ----------
    name : str
    scores : dict of str to float
    losses : ndarray of shape (n,)
        Of each row.
    """

    name: str
    scores: Scores
    losses: Vector


@dataclass(frozen=True, eq=False)
class Baselines:
    """A constant and, where rows have numeric features, a linear model, and how they were fitted.

    Parameters
    ----------
    how : str
    models : tuple of Baseline
        The linear model first; empty if there are too few rows.
    """

    how: str
    models: tuple[Baseline, ...]


def baselines(
    subject: Subject,
    judged: Judged,
    X: Any,
    train: tuple[Any, AnyArray] | None,
    seed: int,
    most_rows: int | None = 10_000,
) -> Baselines:
    """Fit the simple models and predict the judged rows.

    They learn from the training rows; without them, from the judged rows if the model did, too, and else from four
    fifths of the judged rows for the last one, in turn.

    Parameters
    ----------
    subject : Subject
    judged : Judged
        The rows, as the model predicts them.
    X : rows
        The same rows.
    train : (rows, targets), optional
        Those of the fit.
    seed : int
        Of samples and folds.
    most_rows : int or None, default=10_000
        The most training rows, drawn at random, that the simple models learn from: with more a linear model is hardly
        better and takes long. None for all.
    """
    fitted, y = (X, judged.truth) if train is None else train
    numbers, more, what = _plain(subject, fitted, X)
    if train is None and judged.kind != "fit":
        splits, how = _folds(judged, seed, most_rows), f"fitted to the other folds of {_FOLDS} of these rows"
        if not splits:
            return Baselines(f"{counted(judged.n, 'row')} are too few for simple models to learn from", ())
    else:
        splits, how = [(_sample(len(y), seed, most_rows), np.arange(judged.n))], "fitted to the training rows"
    models = []
    for name, rival in rivals(judged.task, numbers.shape[1], what).items():
        predicted = np.empty_like(judged.truth, dtype=np.float64 if judged.task == "regression" else judged.truth.dtype)
        for learn, test in splits:
            predicted[test] = _predicted(rival, numbers[learn], y[learn], more[test])
        models.append(
            Baseline(name, scores(judged.task, judged.truth, predicted), losses(judged.task, judged.truth, predicted))
        )
    return Baselines(how, tuple(models))


def _predicted(rival: Any, X: Any, y: AnyArray, X_test: Any) -> AnyArray:
    if y.dtype.kind != "f" and len(np.unique(y)) == 1:
        return np.full(X_test.shape[0], y[0])
    with warnings.catch_warnings():
        # A yardstick remains one where it stops short of its optimum.
        warnings.simplefilter("ignore")
        return np.asarray(rival.fit(X, y).predict(X_test))


def _plain(subject: Subject, X: Any, Z: Any) -> tuple[Any, Any, str]:
    """Two sets of rows as matrices of numbers, without columns if they have none."""
    if subject.is_precomputed:
        return *_without_columns(X, Z), ""
    if subject.is_tabular:
        return _indexed(*features_of_columns(subject.learner.encoder_, subject.seen(X), subject.seen(Z)))
    one, other = subject.checked(X), subject.checked(Z)
    if isinstance(one, Objects):
        one, other = MixedRows([one]), MixedRows([other])
    if isinstance(one, MixedRows):
        return _indexed(*features(one, other))
    if not sp.issparse(one) and (np.ndim(one) != 2 or np.asarray(one).dtype.kind not in "fiub"):
        return *_without_columns(X, Z), ""
    if isinstance(subject.model, TableModel):
        return _indexed(one, other, "")
    scaler = StandardScaler(with_mean=not sp.issparse(one)).fit(one)
    return _indexed(scaler.transform(one), scaler.transform(other), "")


def _without_columns(X: Any, Z: Any) -> tuple[AnyArray, AnyArray]:
    one, other = (np.zeros((rows.shape[0] if hasattr(rows, "shape") else len(rows), 0)) for rows in (X, Z))
    return one, other


def _indexed(one: Any, other: Any, what: str) -> tuple[Any, Any, str]:
    """The matrices in a form that is indexed by positions."""
    left, right = (sp.csr_matrix(rows) if sp.issparse(rows) else np.asarray(rows) for rows in (one, other))
    return left, right, what


def _sample(n: int, seed: int, most: int | None) -> AnyArray:
    return np.arange(n) if most is None or n <= most else np.random.default_rng(seed).permutation(n)[:most]


def _folds(judged: Judged, seed: int, most: int | None) -> list[tuple[AnyArray, AnyArray]]:
    if judged.n < 2 * _FOLDS:
        return []
    splitter = (StratifiedKFold if judged.task == "classification" else KFold)(_FOLDS, shuffle=True, random_state=seed)
    with warnings.catch_warnings():
        # A class with fewer rows than folds is missing from some of them.
        warnings.simplefilter("ignore")
        codes = np.unique(judged.truth, return_inverse=True)[1].ravel() if judged.task == "classification" else None
        if codes is not None and np.bincount(codes).max() < _FOLDS:
            return []
        return [(learn[_sample(len(learn), seed, most)], test) for learn, test in splitter.split(judged.truth, codes)]
