"""Intervals of fits over landmarks, whose training rows are passed once more."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any

import numpy as np

from mercer._errors import DataError, ParameterError
from mercer._types import Matrix, Vector
from mercer.data.blocks.blocks import Blocks
from mercer.data.blocks.dask_source import is_dask
from mercer.data.distinct import row_keys
from mercer.engine import memory, threads
from mercer.estimators.shared.intervals import warn_if_few
from mercer.estimators.shared.restricted import restriction_to
from mercer.estimators.shared.targets import check_numbers
from mercer.estimators.shared.weights import check_sample_weight
from mercer.landmarks.choose import Landmarks
from mercer.solvers.restricted.left_out import FeatureRows, FeatureSums, LeftOutRows
from mercer.solvers.restricted.left_out_ends import Scores, jackknife_ends

OVER_LANDMARKS = "jackknife+ by exact leave-one-out over the same landmarks"

_WAY_OUT = (
    "Raise the budget with mercer.config(memory=...), or use mercer.ConformalRegressor(learner, cv=0.3), whose fit to "
    "70 % of the rows keeps no such matrix, and one number for each of the others."
)
# Numbers that are kept for each row beside those of its targets.
_VECTORS = 6
# An objective above the least one by this share, or by so many times the gap that the fit has proved, is that of
# other rows; but for rounding, as a share of the squared targets.
_SHARE, _TIMES, _ROUNDING = 1e-4, 10.0, 1e-10


def require_training(learner: Any, training: Any, *, on_landmarks: bool) -> None:
    """Raise ParameterError unless training rows are passed if, and only if, the fit kept its landmarks alone."""
    name = type(learner).__name__
    if training is not None and not on_landmarks:
        raise ParameterError(f"this {name} kept its training rows; leave out training.")
    if on_landmarks and training is None:
        raise ParameterError(
            'interval needs the training rows, and a fit with approximation="nystroem" keeps its landmarks alone. '
            "Pass the rows once more, interval(X, training=(X_train, y_train)), or fit "
            f"mercer.ConformalRegressor({name}(...)) in its place."
        )


def leaves_landmarks_alone(learner: Any, landmarks: Any, rows: Any) -> bool:
    """Whether the function space is the same without any single row of the fit.

    The landmarks were given and are none of the rows, or else all rows are landmarks: the solution without a row is
    then the same with and without its landmark.
    """
    inside = np.isin(row_keys(rows), row_keys(landmarks))
    return bool(inside.all() or not (isinstance(learner.landmarks, str) or inside.any()))


def training_rows(learner: Any, training: Any, targets: tuple[int, ...]) -> tuple[Any, Matrix, Vector | None]:
    """Checked rows, targets (n, t) and weights of a pair or triple; ``targets`` is the shape of a row's targets.

    Raises
    ------
    ParameterError
        If it is neither, or the rows come in parts.
    DataError
        If the data are not those of a fit.
    """
    if isinstance(training, Blocks) or is_dask(training) or not isinstance(training, (tuple, list)):
        raise ParameterError(
            "training must be the arrays (X, y) or (X, y, sample_weight) of the fit, but is a "
            f"{type(training).__name__}. Of rows in parts, pass those that memory has room for to "
            "mercer.ConformalRegressor(learner, cv=0.3)."
        )
    if len(training) not in (2, 3):
        raise ParameterError(
            f"training must be (X, y) or (X, y, sample_weight) of the fit, but has {len(training)} parts."
        )
    if isinstance(training[0], Blocks) or is_dask(training[0]):
        raise ParameterError(
            f"the rows of training must be an array, but are a {type(training[0]).__name__}, which comes in parts. "
            "Pass those that memory has room for to mercer.ConformalRegressor(learner, cv=0.3)."
        )
    X = learner._check_X(training[0], reset=False)
    y = check_numbers(learner, training[1], X, several=True)
    if y.shape[1:] != targets:
        raise DataError(
            f"training has targets of shape {y.shape}, but this {type(learner).__name__} was fitted to "
            f"{'one target' if not targets else f'{targets[0]} targets'} for each row."
        )
    weights = None if len(training) == 2 or training[2] is None else check_sample_weight(training[2], X)
    return X, y.reshape(len(y), -1), weights


def room_for(n: int, m: int, t: int) -> AbstractContextManager[None]:
    """Reserve memory for matrices of m landmarks, and for weights, leverages, and errors of t targets of n rows."""
    nbytes = 8 * (3 * m * m + (_VECTORS + 2 * t) * n)
    return memory.reserve(nbytes, f"the systems of {m:,} landmarks and the errors of {n:,} rows", _WAY_OUT)


def require_same_rows(
    learner: Any, left_out: LeftOutRows, sums: FeatureSums, coefficients: Matrix, proven: float
) -> None:
    """Raise DataError if the objective of coefficients (m, t) for the rows is above the least one.

    ``proven`` is the gap that the fit has proved.
    """
    gap, least = float(left_out.gap(coefficients).sum()), float(left_out.least(sums).sum())
    allowed = max(_SHARE * least, _TIMES * proven, _ROUNDING * float(sums.squares.sum()))
    if gap > allowed:
        raise DataError(
            f"training does not hold the rows that this {type(learner).__name__} was fitted to: for these, its "
            f"objective is {gap:.3g} above the least one of {least:.3g}. Pass the rows, targets and weights of the fit."
        )


def ridge_intervals(learner: Any, X: Any, training: Any, coverage: float) -> tuple[Matrix, Matrix, bool]:
    """Both ends, (s, t), for new rows X of a fitted ``KernelRidge``, and whether its rows chose nothing.

    The last is True for rows without weights that neither chose the penalty nor the kernel nor the landmarks.

    Raises
    ------
    ParameterError, DataError
        If ``training`` does not hold the rows of the fit.
    NumericalError
        If the system is singular to working precision.
    MemoryBudgetError
        If three matrices of the landmarks and about 20 numbers for each row do not fit the memory budget.
    """
    coefficients = learner.dual_coef_.reshape(len(learner.dual_coef_), -1)
    rows, targets, counts = training_rows(learner, training, learner.dual_coef_.shape[1:])
    if counts is not None and not counts.all():
        used = np.flatnonzero(counts)
        rows, targets, counts = rows[used], targets[used], counts[used]
    weights = np.ones(len(targets)) if counts is None else counts
    warn_if_few(float(weights.sum()), coverage)
    m, t = coefficients.shape
    lower, upper = np.empty((X.shape[0], t)), np.empty((X.shape[0], t))
    parts = restriction_to(Landmarks(learner.X_fit_, None), learner.kernel_, rows, learner.n_jobs)
    cross, alphas = learner._gram(X, learner.X_fit_, dtype=np.float64), np.broadcast_to(learner.alpha_, t)
    with room_for(len(targets), m, t), threads.workers(learner.n_jobs):
        features = FeatureRows(parts.gram, parts.white)
        sums = FeatureSums.of(features, targets, weights)
        for alpha in np.unique(alphas):
            columns = np.flatnonzero(alphas == alpha)
            own, y = sums.of_targets(columns), targets[:, columns]
            left_out = LeftOutRows.of(features, own, y, np.minimum(weights, 1.0), float(alpha))
            require_same_rows(learner, left_out, own, coefficients[:, columns], learner.certificate_.gap)
            scores = Scores(np.abs(left_out.errors), counts)
            lower[:, columns], upper[:, columns] = jackknife_ends(left_out, cross, scores, coverage)
    given = counts is None and not isinstance(learner.alpha, str) and learner._is_kernel_given(learner.X_fit_)
    return lower, upper, given and leaves_landmarks_alone(learner, learner.X_fit_, rows)
