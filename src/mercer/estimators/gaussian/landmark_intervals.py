"""Intervals of processes over landmarks, whose training rows are passed once more."""

from __future__ import annotations

from typing import Any

import numpy as np

from mercer._errors import ParameterError
from mercer._types import Matrix, Vector
from mercer.engine import threads
from mercer.estimators.gaussian.intervals import common_noise
from mercer.estimators.gaussian.options import function_variance, row_variances
from mercer.estimators.shared.expansion import without_noise
from mercer.estimators.shared.intervals import warn_if_few
from mercer.estimators.shared.landmark_intervals import (
    leaves_landmarks_alone,
    require_same_rows,
    room_for,
    training_rows,
)
from mercer.estimators.shared.restricted import restriction_to
from mercer.gram.protocol import GramMatrix
from mercer.kernels.inputs import Rows
from mercer.kernels.plan import diagonal
from mercer.landmarks.choose import Landmarks
from mercer.solvers.restricted.left_out import FeatureRows, FeatureSums, LeftOutRows
from mercer.solvers.restricted.left_out_ends import Scores, jackknife_ends


def process_intervals(
    learner: Any, X: Any, cross: GramMatrix, training: Any, coverage: float
) -> tuple[Matrix, Matrix, bool]:
    """Both ends, (s, t), for new rows X of a fitted process, in the units of its normalised targets.

    The third is True if the rows have chosen neither hyper-parameters nor landmarks.

    Parameters
    ----------
    learner : GaussianProcessRegressor
    X : rows
    cross : GramMatrix
        Their kernel values with the landmarks, (s, m).
    training : tuple
        Rows and targets.
    coverage : float

    Raises
    ------
    ParameterError, DataError
        If ``training`` does not hold the rows of the fit.
    NumericalError, MemoryBudgetError
        As for :func:`mercer.estimators.shared.landmark_intervals.ridge_intervals`.
    """
    shape = learner.alpha_.shape[1:]
    rows, y, weights = training_rows(learner, training, shape)
    if weights is not None:
        raise ParameterError(
            "training must be (X, y) for a process, which has no sample weights, but has three parts. Variances of "
            "rows are alpha."
        )
    kernel, n = learner.kernel_, len(y)
    targets = (y - np.ravel(learner._y_mean)) / np.ravel(learner._y_scale)
    function = function_variance(kernel, Rows(rows))
    noise = row_variances(learner.alpha, n) + (learner.noise_ or 0.0) + diagonal(kernel, Rows(rows)) - function
    warn_if_few(n, coverage)
    parts = restriction_to(Landmarks(learner.X_train_, None), without_noise(kernel), rows, learner.n_jobs)
    with room_for(n, len(learner.alpha_), targets.shape[1]), threads.workers(learner.n_jobs):
        features, taken = FeatureRows(parts.gram, parts.white), 1.0 / noise
        sums = FeatureSums.of(features, targets, taken)
        left_out = LeftOutRows.of(features, sums, targets, taken, 1.0)
        require_same_rows(learner, left_out, sums, learner.alpha_.reshape(len(learner.alpha_), -1), proven=0.0)
        # Of the function in left-out rows, and by how much squared shares of their errors raise that in new ones.
        rest = 1.0 - taken * left_out.leverages
        variances = np.maximum(function - left_out.explained, 0.0) + left_out.leverages / rest
        common = common_noise(noise, variances + noise)
        radii = np.abs(left_out.errors) / np.sqrt(variances + common)[:, None]

        def deviations(part: slice, leverages: Vector, explained: Vector) -> Vector:
            prior = function_variance(kernel, Rows(X[part]))
            return np.asarray(np.sqrt(np.maximum(prior - explained, 0.0) + leverages + common))

        scores = Scores(radii, None, 1.0 / (taken * rest))
        lower, upper = jackknife_ends(left_out, cross, scores, coverage, deviations)
    given = learner.search_ is None and learner._is_kernel_given(learner.X_train_)
    given = given and not learner.normalize_y and np.ndim(learner.alpha) == 0
    return lower, upper, given and leaves_landmarks_alone(learner, learner.X_train_, rows)
