"""Support vector classifiers over landmarks: a function of all landmarks for each pair of classes."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import combinations
from typing import Any, Protocol, cast

import numpy as np

from mercer._types import AnyArray, Matrix, Vector
from mercer.engine import memory
from mercer.engine.tiles import TILE
from mercer.estimators.shared.expansion import KernelExpansion
from mercer.estimators.shared.on_blocks import RowSource
from mercer.estimators.shared.restricted_risk import (
    ClassTargets,
    OnLandmarks,
    Task,
    criterion_of,
    keep_landmarks,
    solve_on_landmarks,
)
from mercer.estimators.shared.weights import check_svm_weight, fit_weighted_kernel
from mercer.estimators.svm.one_vs_one import tally
from mercer.gram.hold import capacity
from mercer.gram.protocol import GramMatrix
from mercer.losses import Hinge
from mercer.solvers.svm.pair_answers import Certificates

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
    """The interface of a classifier for :func:`fit_pairs_on_landmarks`."""

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
    def _check_X(self, X: Any, *, reset: bool) -> Any: ...


def fit_pairs_on_landmarks(model: PairModel, source: RowSource) -> RowSource:
    """Solve for each pair of classes, over the same landmarks, set what was learned, and return the checked rows.

    In memory each pair passes over its own rows; of rows in parts each passes over all.
    """
    X, y, sample_weight = source.training()
    X = model._check_X(X, reset=True)
    weight = check_svm_weight(sample_weight, X)
    source = source.classified(model, X, y, weight)
    intercept, estimator = model._has_intercept, cast(Any, model)
    fit_weighted_kernel(estimator, X, weight, intercept=intercept)
    classes, costs, k = model.classes_, float(model.C) * model.class_weight_, len(model.classes_)
    # As in scikit-learn the second of two classes is positive, and the first of a pair of several.
    pairs = [(1, 0)] if k == 2 else combinations(range(k), 2)
    criterion = criterion_of(Hinge(), np.ones(1))
    tasks = [Task(ClassTargets(classes, costs, *pair), criterion) for pair in pairs]
    fitted = solve_on_landmarks(model, source, tasks, intercept=intercept, passes=int(model.max_iter))
    _keep(model, fitted, (source.n, *X.shape[1:]))
    return source


def _keep(model: PairModel, fitted: OnLandmarks, shape: tuple[int, ...]) -> None:
    """Set what was learned from rows of this shape."""
    keep_landmarks(model, fitted, OF_ALL_ROWS)
    model.shape_fit_ = shape
    model.certificates_ = Certificates.empty(len(fitted.certificates))
    for number, certificate in enumerate(fitted.certificates):
        model.certificates_.put(number, certificate)
    model.n_iter_ = model.certificates_.iterations.astype(np.int32)
    model._probA, model._probB = np.empty((2, 0))
