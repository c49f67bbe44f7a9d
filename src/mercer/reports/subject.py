"""The model of a report: the learner inside it, the rows as the learner gets them, and those that it keeps."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from sklearn.base import is_classifier, is_regressor

from mercer.certification.data_of_fit import alike
from mercer.data.columns import MixedRows
from mercer.data.objects import Objects
from mercer.estimators.shared.base import KernelEstimator
from mercer.estimators.table import TableModel
from mercer.selection.layers import layers_of, learner_inside, require_fitted, rows_for_learner

_KEPT = ("X_fit_", "X_train_", "support_vectors_")


@dataclass(frozen=True, eq=False)
class Subject:
    """A fitted model of any depth: searches and pipelines of estimators, and models of tables from the command line.

    Parameters
    ----------
    model : estimator
        It is fitted.

    Examples
    --------
    >>> from mercer import SVC
    >>> Subject.of(SVC().fit([[0.0], [1.0]], [0, 1])).name
    'SVC'
    """

    model: Any

    @classmethod
    def of(cls, model: Any) -> Subject:
        """Return the subject for a fitted model.

        Raises
        ------
        ParameterError
            If it is a class, or not an estimator.
        sklearn.exceptions.NotFittedError
            If it is not fitted.
        """
        require_fitted(model, "model")
        return cls(model)

    @cached_property
    def search(self) -> Any:
        """The search that chose the learner, or None."""
        return next((layer for layer in layers_of(self.model) if hasattr(layer, "best_estimator_")), None)

    @cached_property
    def learner(self) -> Any:
        """The learner inside everything else."""
        return learner_inside(self.model)

    @property
    def name(self) -> str:
        """The name of the learner's class."""
        return type(self.learner).__name__

    @property
    def task(self) -> str | None:
        """``"classification"`` or ``"regression"``; None for what predicts no target."""
        return "classification" if is_classifier(self.learner) else "regression" if is_regressor(self.learner) else None

    @property
    def kernel(self) -> Any:
        """The fitted kernel, with the names of columns where they are known; None for a matrix that was given."""
        return getattr(self.model if isinstance(self.model, TableModel) else self.learner, "kernel_", None)

    @property
    def is_tabular(self) -> bool:
        """Whether the learner reads data frames itself."""
        return hasattr(self.learner, "encoder_")

    @property
    def is_precomputed(self) -> bool:
        """Whether rows are rows of a kernel matrix."""
        kernel = getattr(self.learner, "kernel", None)
        return isinstance(kernel, str) and kernel == "precomputed"

    def seen(self, X: Any) -> Any:
        """Return rows as the learner gets them from what is around it."""
        return rows_for_learner(self.model, X)

    def checked(self, X: Any) -> Any:
        """Return rows as the kernel gets them: numbers, a CSR matrix or a container of objects."""
        seen = self.seen(X)
        if self.is_tabular:
            return self.learner.encoder_.transform(seen)
        return self.learner.checked_rows(seen) if isinstance(self.learner, KernelEstimator) else seen

    @property
    def kept(self) -> Any:
        """The rows that the learner keeps, as the kernel gets them, or None."""
        holder = getattr(self.learner, "model_", self.learner)
        if self.is_precomputed:
            return None
        for name in _KEPT:
            rows = getattr(holder, name, None)
            if rows is not None and rows.shape[0]:
                return rows
        return None

    @property
    def rows_of_fit(self) -> int | None:
        """The number of rows to which the learner was fitted, or None if it does not keep that.

        >>> from mercer import SVC
        >>> Subject.of(SVC().fit([[0.0], [1.0], [2.0]], [0, 1, 1])).rows_of_fit
        3
        """
        shape = getattr(self.learner, "shape_fit_", None)
        if shape is not None:
            return int(shape[0])
        count = getattr(self.learner, "n_samples_fit_", None)
        if count is not None:
            return int(count)
        # Landmarks, rows with a weight, and the dictionaries of online learners are not all rows of the fit.
        is_part = hasattr(self.learner, "support_") or getattr(self.learner, "approximation", "unknown") is not None
        return None if is_part or self.kept is None else int(self.kept.shape[0])

    def are_of_the_fit(self, checked: Any) -> bool:
        """Whether checked rows are those to which the learner was fitted, judged by the rows that it keeps."""
        kept, support = self.kept, getattr(self.learner, "support_", None)
        if support is None:
            support = getattr(self.learner, "landmark_indices_", None)
        if kept is None:
            return False
        n = checked.shape[0]
        if support is None:
            return n == kept.shape[0] and same_rows(checked, kept)
        shape = getattr(self.learner, "shape_fit_", (n,))
        if shape[0] != n or len(support) != kept.shape[0] or (len(support) and int(max(support)) >= n):
            return False
        return same_rows(checked[support], kept)


def same_rows(one: Any, other: Any) -> bool:
    """Whether two sets of rows are the same, up to single precision.

    >>> same_rows(np.eye(2), np.eye(2, dtype=np.float32)), same_rows(np.eye(2), np.eye(3))
    (True, False)
    """
    if tuple(one.shape) != tuple(other.shape):
        return False
    kinds = [type(rows) for rows in (one, other) if isinstance(rows, (Objects, MixedRows))]
    return len({*kinds}) < 2 and len(kinds) != 1 and bool(np.all(alike(one, other)))
