"""The models beside which a model is judged: a constant, a linear one, and gradient-boosted trees."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
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
from mercer.reports.plain_features import Features, features, features_of_columns
from mercer.reports.scores import Rival, Scores, one_openmp_thread, rivals, scores
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
    """A constant and, where rows have numeric features, trees and a linear model, and how they were fitted.

    Parameters
    ----------
    how : str
    models : tuple of Baseline
        The constant last; empty if there are too few rows.
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
    """Fit the other models and predict the judged rows.

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
        The most training rows, drawn at random, that they learn from: with more a linear model is hardly
        better and takes long. None for all.
    """
    fitted, y = (X, judged.truth) if train is None else train
    rows = _plain(subject, fitted, X)
    if train is None and judged.kind != "fit":
        splits, how = _folds(judged, seed, most_rows), f"fitted to the other folds of {_FOLDS} of these rows"
        if not splits:
            return Baselines(f"{counted(judged.n, 'row')} are too few for simple models to learn from", ())
    else:
        splits, how = [(_sample(len(y), seed, most_rows), np.arange(judged.n))], "fitted to the training rows"
    models = []
    for name, rival in rivals(judged.task, rows, y).items():
        predicted = np.empty_like(judged.truth, dtype=np.float64 if judged.task == "regression" else judged.truth.dtype)
        for learn, test in splits:
            predicted[test] = _predicted(rival, learn, y, test)
        if judged.task == "classification" or np.isfinite(predicted).all():
            found = scores(judged.task, judged.truth, predicted)
            models.append(Baseline(name, found, losses(judged.task, judged.truth, predicted)))
    return Baselines(how, tuple(models))


def _predicted(rival: Rival, learn: AnyArray, y: AnyArray, test: AnyArray) -> AnyArray:
    if y.dtype.kind != "f" and len(np.unique(y[learn])) == 1:
        return np.full(len(test), y[learn[0]])
    with one_openmp_thread():
        return np.asarray(rival.fitted(learn, y[learn]).predict(rival.Z[test]))


def _plain(subject: Subject, X: Any, Z: Any) -> Features:
    """Two sets of rows as numbers, without columns if they have none."""
    if subject.is_precomputed:
        return _without_columns(X, Z)
    if subject.is_tabular:
        return _indexed(features_of_columns(subject.learner.encoder_, subject.seen(X), subject.seen(Z)))
    one, other = subject.checked(X), subject.checked(Z)
    if isinstance(one, Objects):
        one, other = MixedRows([one]), MixedRows([other])
    if isinstance(one, MixedRows):
        return _indexed(features(one, other))
    if not sp.issparse(one) and (np.ndim(one) != 2 or np.asarray(one).dtype.kind not in "fiub"):
        return _without_columns(X, Z)
    if not isinstance(subject.model, TableModel):
        scaler = StandardScaler(with_mean=not sp.issparse(one)).fit(one)
        one, other = scaler.transform(one), scaler.transform(other)
    return _indexed(Features.of_numbers(one, other))


def _without_columns(X: Any, Z: Any) -> Features:
    one, other = (np.zeros((rows.shape[0] if hasattr(rows, "shape") else len(rows), 0)) for rows in (X, Z))
    return Features(one, other)


def _indexed(rows: Features) -> Features:
    """The features for linear models in a form that is indexed by positions."""
    X, Z = (sp.csr_matrix(side) if sp.issparse(side) else np.asarray(side) for side in (rows.X, rows.Z))
    return replace(rows, X=X, Z=Z)


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
