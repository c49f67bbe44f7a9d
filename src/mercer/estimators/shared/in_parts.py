"""Rows that come in parts, in files or on a cluster: what a learner over landmarks makes of them."""

from __future__ import annotations

import functools
import time
from collections.abc import Callable, Sequence
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
from mercer.estimators.shared.restricted import continued
from mercer.estimators.shared.restricted_risk import OnLandmarks, require_all, task_of
from mercer.estimators.shared.whole_rows import answers_parts
from mercer.landmarks.choose import Landmarks
from mercer.losses import Loss
from mercer.solvers.restricted.criteria import Criterion
from mercer.solvers.restricted.newton import RestrictedNewton, RestrictedRisk


def start(learner: Any, X: Any, y: Any, sample_weight: Any) -> BlockFit | DaskFit | None:
    """Begin a fit to rows in parts, and to arrays if there is a checkpoint; None for other fits to arrays."""
    if is_dask(X):
        return DaskFit.of(learner, X, y, sample_weight)
    if isinstance(X, Blocks):
        return BlockFit.of(learner, X, y, sample_weight)
    if getattr(learner, "checkpoint", None) is not None:
        return BlockFit.of(learner, Blocks.from_arrays(X, y, sample_weight=sample_weight), None, None)
    return None


def _codes(classes: AnyArray, y: Any) -> tuple[AnyArray, AnyArray]:
    """The numbers of labels among the classes, and which are among them: those of rows without weight may not be."""
    labels = np.asarray(y)
    codes = np.minimum(np.searchsorted(classes, labels), len(classes) - 1)
    return codes, classes[codes] == labels


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
        codes, known = _codes(self.classes, y)
        k = len(self.classes)
        targets = np.where(codes == 1, 1.0, -1.0)[:, None] if k == 2 else np.eye(k)[codes]
        return targets, np.where(known, self.costs[codes], 0.0)


@dataclass(frozen=True, eq=False)
class SignTargets:
    """From labels to signs: 1 for one class and -1 for the others, with the cost of each row.

    Parameters
    ----------
    classes : ndarray of shape (k,)
    costs : ndarray of shape (k,)
        The factor of the loss of each class.
    positive : int
        The number of the class.
    """

    classes: AnyArray
    costs: Vector
    positive: int

    def __call__(self, y: Any) -> tuple[Matrix, Vector]:
        codes, known = _codes(self.classes, y)
        return np.where(codes == self.positive, 1.0, -1.0)[:, None], np.where(known, self.costs[codes], 0.0)


@dataclass(frozen=True, eq=False)
class PairTargets:
    """From labels to signs: 1 for one class and -1 for another, with the cost of each row; 0 for those of all others.

    Parameters
    ----------
    classes : ndarray of shape (k,)
    costs : ndarray of shape (k,)
        The factor of the loss of each class.
    positive, negative : int
        The numbers of the two classes.
    """

    classes: AnyArray
    costs: Vector
    positive: int
    negative: int

    def __call__(self, y: Any) -> tuple[Matrix, Vector]:
        codes, known = _codes(self.classes, y)
        known &= (codes == self.positive) | (codes == self.negative)
        return np.where(codes == self.positive, 1.0, -1.0)[:, None], np.where(known, self.costs[codes], 0.0)


@dataclass(frozen=True, eq=False)
class NumberTargets:
    """Numbers that a loss takes, less a shift, with the same cost for all rows.

    Parameters
    ----------
    loss : Loss
    shift : float
    cost : float
    """

    loss: Loss
    shift: float = 0.0
    cost: float = 1.0

    def __call__(self, y: Any) -> tuple[Matrix, Vector]:
        numbers = np.asarray(y, dtype=np.float64)
        self.loss.check_targets(numbers)
        return (numbers - self.shift)[:, None], np.full(len(numbers), self.cost)


@dataclass(frozen=True, eq=False)
class PartTask:
    """One problem over all rows: how their targets are transformed, the criterion, the number of its functions.

    ``shift`` was subtracted from the targets, and is added to the offset.
    """

    targets: Targets
    criterion: Criterion
    outputs: int = 1
    shift: float = 0.0

    @classmethod
    def of_numbers(cls, loss: Loss, y: Vector, cost: float, *, intercept: bool) -> PartTask:
        """A loss of numbers, of which ``y`` (s,) are a sample."""
        task = task_of(loss, y, np.ones(len(y)), intercept=intercept)
        return cls(NumberTargets(loss, task.shift, cost), task.criterion, shift=task.shift)


def solve_in_parts(
    learner: Any,
    started: BlockFit | DaskFit,
    X: Any,
    tasks: Sequence[PartTask],
    *,
    intercept: bool,
    alpha: float = 1.0,
    passes: int = -1,
) -> OnLandmarks:
    """Minimise losses over the same landmarks for rows in parts, with half the squared norm as penalty.

    Parameters
    ----------
    learner : KernelEstimator
        It has a kernel, ``tol``, ``verbose`` and the parameters of landmarks.
    started : BlockFit or DaskFit
    X : rows
        The checked rows of its sample.
    tasks : sequence of PartTask
    intercept : bool
    alpha : float
        The factor of half the squared norm.
    passes : int
        The most passes over the rows for each problem; -1 for the solver's own limit.
    """
    start_time = time.perf_counter()
    limit: dict[str, Any] = {} if passes == -1 else {"max_iter": passes}
    solver = RestrictedNewton(float(learner.tol), verbose=bool(getattr(learner, "verbose", False)), **limit)
    coefficients, offsets, norms, certificates = [], [], [], []
    with memory.track() as account:
        parts = started.restriction(learner, X)
        m, done, before = parts.landmarks.rows.shape[0], 0, continued(learner, parts)
        for task in tasks:
            settings = [repr(task.criterion), task.outputs, intercept, float(learner.tol), repr(task.targets)]
            with started.rows(learner, parts, X, task.targets, settings) as rows:
                problem = RestrictedRisk(rows, parts.white, task.criterion, alpha, task.outputs, intercept)
                own = slice(done, done + task.outputs)
                done += task.outputs
                begin = None if before is None else problem.join(before[0][:, own], before[1][own] - task.shift)
                solution = solver.solve(problem, begin)
            coefficients.append(solution.value[:m].T)
            offsets.append(solution.value[m] + task.shift if intercept else np.zeros(task.outputs))
            norms.append(np.linalg.norm(problem.split(solution.state)[0], axis=0))
            certificates.append(solution.certificate)
            require_all(certificates, len(tasks))
    certificate = joined(certificates, time.perf_counter() - start_time, account.peak)
    # Positions would be those in the sample.
    return OnLandmarks(
        replace(parts, landmarks=Landmarks(parts.landmarks.rows, None)),
        np.ascontiguousarray(np.vstack(coefficients)),
        np.concatenate(offsets),
        np.concatenate(norms),
        certificates,
        certificate,
    )


def in_parts(method: Callable[..., Any]) -> Callable[..., Any]:
    """Let a method that predicts for rows take blocks, whose answers are joined, and collections of Dask."""

    @functools.wraps(method)
    def predict(self: Any, X: Any, *arguments: Any, **options: Any) -> Any:
        if isinstance(X, Blocks):
            return np.concatenate([method(self, named(block.X, X.columns), *arguments, **options) for block in X])
        return predicted(method, self, X) if is_dask(X) else method(self, X, *arguments, **options)

    return answers_parts(predict)
