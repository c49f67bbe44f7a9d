"""Rows that come in parts, in files or on a cluster: what a learner over landmarks makes of them."""

from __future__ import annotations

import functools
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from mercer._types import AnyArray, Matrix, Vector
from mercer.data.blocks.blocks import Blocks
from mercer.data.blocks.dask_source import is_dask
from mercer.engine import memory
from mercer.estimators.shared.certificates import joined
from mercer.estimators.shared.on_blocks import BlockFit, Targets, named
from mercer.estimators.shared.on_dask import DaskFit, predicted
from mercer.estimators.shared.restricted_risk import OnLandmarks
from mercer.estimators.shared.whole_rows import takes_parts
from mercer.landmarks.choose import Landmarks
from mercer.solvers.restricted.criteria import Criterion
from mercer.solvers.restricted.newton import RestrictedNewton, RestrictedRisk


def start(learner: Any, X: Any, y: Any, sample_weight: Any) -> BlockFit | DaskFit | None:
    """Begin a fit to rows in parts, and to arrays if there is a checkpoint; None for other fits to arrays."""
    if is_dask(X):
        return DaskFit.of(learner, X, y, sample_weight)
    if isinstance(X, Blocks):
        return BlockFit.of(learner, X, y, sample_weight)
    if learner.checkpoint is not None:
        return BlockFit.of(learner, Blocks.from_arrays(X, y, sample_weight=sample_weight), None, None)
    return None


@dataclass(frozen=True, eq=False)
class LabelTargets:
    """From labels to signs for two classes, to indicators for more, with the cost of each row.

    Parameters
    ----------
    classes : ndarray of shape (k,)
    costs : ndarray of shape (k,)
        The factor of the loss of each class.
    """

    classes: AnyArray
    costs: Vector

    def __call__(self, y: Any) -> tuple[Matrix, Vector]:
        labels = np.asarray(y)
        codes = np.minimum(np.searchsorted(self.classes, labels), len(self.classes) - 1)
        # Labels whose rows have no weight are not among the classes.
        known = self.classes[codes] == labels
        k = len(self.classes)
        targets = np.where(codes == 1, 1.0, -1.0)[:, None] if k == 2 else np.eye(k)[codes]
        return targets, np.where(known, self.costs[codes], 0.0)


def solve_in_parts(
    learner: Any, started: BlockFit | DaskFit, X: Any, targets: Targets, criterion: Criterion, outputs: int, passes: int
) -> OnLandmarks:
    """Minimise a loss over landmarks for rows in parts, with half the squared norm as penalty.

    Parameters
    ----------
    learner : KernelEstimator
        It has a kernel, ``tol``, ``fit_intercept``, ``verbose`` and the parameters of landmarks.
    started : BlockFit or DaskFit
    X : rows
        The checked rows of its sample.
    targets : callable
        From the targets of a block to what the criterion takes, and factors of the weights.
    criterion : Criterion
    outputs : int
        How many functions it has.
    passes : int
        The most passes over the rows.
    """
    start_time = time.perf_counter()
    intercept = bool(learner.fit_intercept)
    with memory.track() as account:
        parts = started.restriction(learner, X)
        settings = [repr(criterion), outputs, intercept, float(learner.tol), repr(targets)]
        with started.rows(learner, parts, X, targets, settings) as rows:
            problem = RestrictedRisk(rows, parts.white, criterion, 1.0, outputs, intercept)
            solution = RestrictedNewton(float(learner.tol), passes, verbose=bool(learner.verbose)).solve(problem)
    m = parts.landmarks.rows.shape[0]
    certificate = joined([solution.certificate], time.perf_counter() - start_time, account.peak)
    # Positions would be those in the sample.
    landmarks = Landmarks(parts.landmarks.rows, None)
    return OnLandmarks(
        replace(parts, landmarks=landmarks),
        np.ascontiguousarray(solution.value[:m].T),
        solution.value[m] if intercept else np.zeros(outputs),
        np.linalg.norm(problem.split(solution.state)[0], axis=0),
        [solution.certificate],
        certificate,
    )


def in_parts(method: Callable[..., Any]) -> Callable[..., Any]:
    """Let a method that predicts for rows take blocks, whose answers are joined, and collections of Dask."""

    @functools.wraps(method)
    def predict(self: Any, X: Any) -> Any:
        if isinstance(X, Blocks):
            return np.concatenate([method(self, named(block.X, X.columns)) for block in X])
        return predicted(method, self, X) if is_dask(X) else method(self, X)

    return takes_parts(predict)
