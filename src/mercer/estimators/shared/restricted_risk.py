"""Learners of a convex loss over landmarks: the problems of a fit, their solution, and what both have in common."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from mercer._errors import ParameterError
from mercer._types import AnyArray, Matrix, Vector
from mercer.engine import memory
from mercer.estimators.shared.base import KernelEstimator
from mercer.estimators.shared.certificates import joined
from mercer.estimators.shared.expansion import unless_stored
from mercer.estimators.shared.on_blocks import RowSource, Targets
from mercer.estimators.shared.restricted import Restriction, continued
from mercer.landmarks.choose import Landmarks
from mercer.losses import EpsilonInsensitive, Huber, Loss, OwnLoss, Quantile, Squared
from mercer.solvers.restricted.criteria import Criterion, Envelope, Smooth
from mercer.solvers.restricted.newton import RestrictedNewton, RestrictedRisk
from mercer.solvers.solution import Certificate, Status

# The first envelope of a loss of residuals is so many times wider than the targets spread, and the last one closer than
# any tolerance needs.
_WIDE = 4.0
# These depend on the differences of targets and predictions alone.
_OF_RESIDUALS = (EpsilonInsensitive, Huber, Quantile, Squared)


@dataclass(frozen=True, eq=False)
class ClassTargets:
    """From labels to indicators of the classes, or to signs, with the cost of each row.

    Parameters
    ----------
    classes : ndarray of shape (k,)
    costs : ndarray of shape (k,)
        The factor of the loss of each class.
    positive : int, optional
        The number of the class whose sign is 1; by default there is an indicator for each class.
    negative : int, optional
        The number of the only other class whose rows count; by default all do.
    """

    classes: AnyArray
    costs: Vector
    positive: int | None = None
    negative: int | None = None

    def __call__(self, y: Any) -> tuple[Matrix, Vector]:
        labels = np.asarray(y)
        codes = np.minimum(np.searchsorted(self.classes, labels), len(self.classes) - 1)
        # Labels of rows without weight may be none of the classes.
        counts = self.classes[codes] == labels
        if self.negative is not None:
            counts &= (codes == self.positive) | (codes == self.negative)
        signs = np.where(codes == self.positive, 1.0, -1.0)[:, None]
        targets = np.eye(len(self.classes))[codes] if self.positive is None else signs
        return targets, np.where(counts, self.costs[codes], 0.0)


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
class Task:
    """One problem over the rows of a fit.

    Parameters
    ----------
    targets : callable
        From the targets of rows to what the criterion takes, and factors of their weights; rows of factor 0 are left
        out.
    criterion : Criterion
    outputs : int
        How many functions it has.
    shift : float
        What was subtracted from the targets, and is added to the offset.
    """

    targets: Targets
    criterion: Criterion
    outputs: int = 1
    shift: float = 0.0

    @classmethod
    def of_numbers(cls, loss: Loss, y: Vector, cost: float, *, intercept: bool) -> Task:
        """A loss of numbers, of which ``y`` (s,) are all or a sample.

        Examples
        --------
        >>> from mercer.losses import Quantile
        >>> task = Task.of_numbers(Quantile(0.5), np.array([1.0, 3.0, 7.0]), 1.0, intercept=True)
        >>> task.shift, task.targets([1.0])[0].tolist(), task.criterion.width
        (3.0, [[-2.0]], 32.0)
        """
        # Where targets are far from 0 a small sum of the multipliers would cost the dual objective much.
        shift = float(np.median(y)) if intercept and isinstance(loss, _OF_RESIDUALS) else 0.0
        return cls(NumberTargets(loss, shift, cost), criterion_of(loss, y - shift), shift=shift)


@dataclass(frozen=True, eq=False)
class OnLandmarks:
    """The solutions of all problems of a fit, k functions in their order.

    Parameters
    ----------
    parts : Restriction
        With the positions of the landmarks among all rows.
    dual_coef : ndarray of shape (k, m)
    offsets, norms : ndarray of shape (k,)
    certificates : list of Certificate
        One for each problem.
    certificate : Certificate
        Of all together, with the time and memory of the whole fit.
    """

    parts: Restriction
    dual_coef: Matrix
    offsets: Vector
    norms: Vector
    certificates: list[Certificate]
    certificate: Certificate

    @property
    def landmarks(self) -> Landmarks:
        """The landmarks."""
        return self.parts.landmarks

    def values(self) -> Matrix:
        """The functions at the rows with a weight, (n, k)."""
        gram = self.parts.gram
        return np.asarray(gram @ np.ascontiguousarray(self.dual_coef.T), dtype=np.float64) + self.offsets


def solve_on_landmarks(
    learner: Any, source: RowSource, tasks: Sequence[Task], *, intercept: bool, alpha: float = 1.0, passes: int = -1
) -> OnLandmarks:
    """Solve problems over the same landmarks, for ``kernel_``, ``tol`` and the parameters of landmarks of a learner.

    Parameters
    ----------
    learner : KernelEstimator
        It has a kernel.
    source : RowSource
        Its rows are checked.
    tasks : sequence of Task
    intercept : bool
    alpha : float
        The factor of half the squared norm.
    passes : int
        The most passes over the rows for each problem; -1 for the solver's own limit.

    Returns
    -------
    OnLandmarks
    """
    start_time = time.perf_counter()
    limit: dict[str, Any] = {} if passes == -1 else {"max_iter": passes}
    solver = RestrictedNewton(float(learner.tol), verbose=bool(getattr(learner, "verbose", False)), **limit)
    coefficients, offsets, norms, certificates = [], [], [], []
    with memory.track() as account:
        parts = source.restriction(learner)
        m, done, start = parts.landmarks.rows.shape[0], 0, continued(learner, parts)
        for task in tasks:
            settings = [repr(task.criterion), task.outputs, intercept, float(learner.tol), repr(task.targets)]
            with source.rows(learner, parts, task.targets, settings) as rows:
                problem = RestrictedRisk(rows, parts.white, task.criterion, alpha, task.outputs, intercept)
                own = slice(done, done + task.outputs)
                done += task.outputs
                begin = None if start is None else problem.join(start[0][:, own], start[1][own] - task.shift)
                solution = solver.solve(problem, begin)
            coefficients.append(solution.value[:m].T)
            offsets.append(solution.value[m] + task.shift if intercept else np.zeros(task.outputs))
            norms.append(np.linalg.norm(problem.split(solution.state)[0], axis=0))
            certificates.append(solution.certificate)
            if solution.certificate.status is Status.interrupted and len(certificates) < len(tasks):
                # Without the other problems there is no model.
                raise KeyboardInterrupt
    return OnLandmarks(
        parts,
        np.ascontiguousarray(np.vstack(coefficients)),
        np.concatenate(offsets),
        np.concatenate(norms),
        certificates,
        joined(certificates, time.perf_counter() - start_time, account.peak),
    )


def criterion_of(loss: Loss, y: Vector) -> Criterion:
    """What is minimised for a loss of one prediction and targets like y (s,).

    Raises
    ------
    ParameterError
        For a user-defined loss without ``curvature``, whose envelopes are not known to have one either.

    Examples
    --------
    >>> from mercer.losses import Logistic
    >>> criterion_of(Logistic(), np.array([1.0, -1.0]))
    Smooth(loss=Logistic())
    """
    if isinstance(loss, OwnLoss) and not loss.smooth:
        raise ParameterError(
            f'approximation="nystroem" needs the second derivative of a user-defined loss, and {loss.name} has no '
            "method curvature(y, f). Add it, or leave out approximation."
        )
    if loss.smooth and (loss.targets != "numbers" or isinstance(loss, Squared)):
        return Smooth(loss)
    if loss.targets == "signs":
        # A step of this size reaches the margin from 0 for all rows.
        return Envelope(loss, _WIDE)
    # From 0 all targets are within the reach of the first envelope.
    steepest = float(np.abs(loss.gradient(y, np.zeros_like(y))).max(initial=0.0)) or 1.0
    width = _WIDE * (float(np.abs(y).max(initial=0.0)) or 1.0) / steepest
    return Envelope(loss, width)


def keep_landmarks(learner: Any, fitted: OnLandmarks, of_all_rows: Sequence[str]) -> None:
    """Set the attributes that hold an expansion over landmarks; those that only a fit to all rows has are removed."""
    forget(learner, *of_all_rows)
    learner.support_vectors_ = fitted.landmarks.rows
    learner.landmark_indices_ = fitted.landmarks.indices
    learner.dual_coef_ = fitted.dual_coef
    learner.intercept_ = fitted.offsets
    learner.certificate_ = fitted.certificate


def refuse_certificate(learner: KernelEstimator) -> None:
    """Raise if the problem of all rows is requested, but the learner has one over landmarks."""
    if learner.is_on_landmarks:
        raise ParameterError(
            f"{type(learner).__name__} has approximation={learner.approximation!r}, whose coefficients are those of "
            "landmarks, and certificates of given coefficients are for those of all rows; leave out approximation. "
            "mercer.certify_landmarks takes fits over landmarks."
        )


def forget(learner: object, *names: str) -> None:
    """Remove attributes of the other form of a fit, where an earlier one has left them."""
    for name in names:
        if name in vars(learner):
            delattr(learner, name)


def of_all_rows(name: str, instead: str) -> Any:
    """An attribute of a fit to all rows; after a fit over landmarks, reading it says what to use instead.

    Examples
    --------
    >>> class Model:
    ...     support_ = of_all_rows("support_", "Use landmark_indices_.")
    >>> model = Model()
    >>> model.support_ = 3
    >>> model.support_
    3
    """

    def get(model: Any) -> Any:
        check_is_fitted(model)
        if "landmark_indices_" in vars(model):
            raise AttributeError(f'{name} does not exist after a fit with approximation="nystroem". {instead}')
        raise AttributeError(f"{type(model).__name__!r} object has no attribute {name!r}")

    get.__doc__ = f"{name} of a fit to all rows."
    return unless_stored(get)


def one_form(*names: str) -> tuple[str, Callable[[Any], bool]]:
    """The rule that a fit is over landmarks, or has the named attributes of a fit to all rows."""

    def holds(model: Any) -> bool:
        stored = vars(model)
        present = [name in stored for name in names]
        return not any(present) if "landmark_indices_" in stored else all(present)

    return "attributes of a fit to all rows are missing, or do not go with landmarks", holds
