"""Support vector classifiers over landmarks: a function of all landmarks for each pair of classes."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import combinations
from typing import Any, Protocol

import numpy as np

from mercer._types import AnyArray, CheckedRows, Matrix, Vector
from mercer.engine import memory
from mercer.engine.tiles import TILE
from mercer.estimators.shared.expansion import KernelExpansion
from mercer.estimators.shared.in_parts import PairTargets, PartTask, solve_in_parts
from mercer.estimators.shared.labels import class_factors, encoded
from mercer.estimators.shared.on_blocks import BlockFit
from mercer.estimators.shared.on_dask import DaskFit
from mercer.estimators.shared.restricted_risk import OnLandmarks, keep_landmarks, solve_on_landmarks, task_of
from mercer.estimators.shared.weights import check_sample_weight, fit_weighted_kernel
from mercer.estimators.svm.class_rows import ClassRows
from mercer.estimators.svm.one_vs_one import tally
from mercer.gram.hold import capacity
from mercer.gram.protocol import GramMatrix
from mercer.losses import Hinge
from mercer.solvers.svm.pair_answers import Certificates, PairLayout

# The most memory that decision values of all pairs take at once.
_BLOCK = 256 * 2**20

OF_ALL_ROWS = ("support_", "n_support_", "margins_", "_role_codes")
"""What only a fit to all rows has."""


@dataclass(frozen=True, eq=False)
class LandmarkPairs(KernelExpansion):
    """The functions of all pairs of classes over the same landmarks.

    Parameters
    ----------
    classes : int
        k; with two, positive values are for the second class, else for the first one of a pair.
    """

    classes: int = field(kw_only=True)

    def pair_values(self, gram: GramMatrix) -> Matrix:
        """Decision values, (m, k (k - 1) / 2), positive for the first class of a pair."""
        values = np.asarray(gram @ np.ascontiguousarray(self.dual_coef.T), dtype=np.float64) + self.offsets
        return -values if self.classes == 2 else values

    def tally(self, gram: GramMatrix, *, strict: bool) -> tuple[Vector, Vector]:
        """Votes and sums of decision values, (m, k) each; see :func:`mercer.estimators.svm.one_vs_one.tally`."""
        m, each = gram.shape[0], 8 * len(self.dual_coef)
        # Whole tiles, so that the memory budget does not change the bits.
        step = max(capacity(each * TILE, _BLOCK // (each * TILE), parts=4), 1) * TILE
        won, sums = np.zeros((2, m, self.classes))
        for begin in range(0, m, step):
            rows = slice(begin, min(begin + step, m))
            part = gram if step >= m else gram.restrict(rows, None)
            with memory.reserve(each * (rows.stop - begin), "decision values of the pairs of classes"):
                won[rows], sums[rows] = tally(self.pair_values(part), self.classes, strict=strict)
        return won, sums


class PairModel(Protocol):
    """The interface of a classifier for :func:`fit_pairs_on_landmarks` and :func:`fit_pairs_in_parts`."""

    C: Any
    class_weight: Any
    max_iter: Any
    classes_: AnyArray
    class_weight_: Vector
    shape_fit_: tuple[int, ...]
    n_iter_: Any
    certificates_: Any
    _probA: Vector
    _probB: Vector

    @property
    def _has_intercept(self) -> bool: ...
    def _bounds(self, data: ClassRows) -> Vector: ...
    def _check_X(self, X: Any, *, reset: bool) -> Any: ...


def fit_pairs_on_landmarks(model: PairModel, X: CheckedRows, data: ClassRows) -> None:
    """Solve for each pair of classes, over the same landmarks, and set what was learned."""
    bounds, intercept, layout, k = model._bounds(data), model._has_intercept, PairLayout(data.sizes), len(data.names)
    weight = np.zeros(X.shape[0])
    weight[data.rows] = data.weight
    # The positions of the rows of ``data``, which are sorted by class, among all rows with a weight.
    place = np.searchsorted(np.flatnonzero(weight), data.rows)
    tasks = []
    for i, j in combinations(range(k), 2):
        rows = layout.rows((i, j))
        rows = rows[np.argsort(place[rows])]
        signs = np.where(data.codes[rows] == _signed(i, j, k)[0], 1.0, -1.0)
        task = task_of(Hinge(), signs, bounds[rows], intercept=intercept)
        tasks.append(task if k == 2 else task.at(place[rows]))
    fitted = solve_on_landmarks(model, X, weight, tasks, intercept=intercept, passes=int(model.max_iter))
    _keep(model, fitted, X.shape)


def fit_pairs_in_parts(model: PairModel, started: BlockFit | DaskFit) -> None:
    """The same for rows in parts: each pair passes over all of them, and has kernel values of its own."""
    X, _, sample_weight = started.training()
    X = model._check_X(X, reset=True)
    present, totals = started.classes
    classes, codes = encoded(type(model).__name__, present, np.arange(len(present)))
    intercept, k = model._has_intercept, len(classes)
    estimator: Any = model
    fit_weighted_kernel(estimator, X, check_sample_weight(sample_weight, X), intercept=intercept)
    # The sample need not have all classes.
    model.classes_, model.class_weight_ = classes, class_factors(model.class_weight, classes, codes, totals)
    costs = float(model.C) * model.class_weight_
    criterion = task_of(Hinge(), np.ones(1), np.ones(1), intercept=intercept).criterion
    pairs = [_signed(i, j, k) for i, j in combinations(range(k), 2)]
    tasks = [PartTask(PairTargets(classes, costs, *pair), criterion) for pair in pairs]
    fitted = solve_in_parts(model, started, X, tasks, intercept=intercept, passes=int(model.max_iter))
    _keep(model, fitted, (started.n, *X.shape[1:]))


def _signed(i: int, j: int, classes: int) -> tuple[int, int]:
    """The positive class, as in scikit-learn the second of two and the first of a pair of several, and the negative."""
    return (j, i) if classes == 2 else (i, j)


def _keep(model: PairModel, fitted: OnLandmarks, shape: tuple[int, ...]) -> None:
    """Set what was learned from rows of this shape."""
    keep_landmarks(model, fitted, OF_ALL_ROWS)
    model.shape_fit_ = shape
    model.certificates_ = Certificates.empty(len(fitted.certificates))
    for number, certificate in enumerate(fitted.certificates):
        model.certificates_.put(number, certificate)
    model.n_iter_ = model.certificates_.iterations.astype(np.int32)
    model._probA, model._probB = np.empty((2, 0))
