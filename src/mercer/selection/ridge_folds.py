"""Ridge regression on all folds of a search and for all its penalties at once."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import Any

import numpy as np

from mercer._errors import MemoryBudgetError, NumericalError
from mercer.estimators.kernel_ridge import KernelRidge
from mercer.estimators.shared.definiteness import is_taken_on_trust, is_usable
from mercer.kernels import Kernel
from mercer.selection.candidates import Group, learner_of
from mercer.selection.fold_rows import Fold, FoldRows, SearchData
from mercer.solvers.linear.principal_systems import PartSolution, PrincipalSystems, SharedGradients

# Of fewer rows a factorisation takes a few milliseconds.
_FROM = 512


def is_solved_together(group: Group) -> bool:
    """Whether the candidates of a group differ in the penalty of kernel ridge regression."""
    return group.along == "alpha" and isinstance(learner_of(group.estimator), KernelRidge)


def solve_folds(
    data: SearchData, group: Group, kernel: Kernel | None, folds: Sequence[tuple[Fold, FoldRows]], n_jobs: int | None
) -> list[PartSolution] | None:
    """Return the answers for each fold, or None where the fits have to be made one by one.

    Parameters
    ----------
    data : SearchData
    group : Group
        Candidates that differ in alpha.
    kernel : Kernel or None
        Of all fits on these folds.
    folds : sequence of (Fold, FoldRows)
        With the same matrices.
    n_jobs : int or None
        Threads.
    """
    shifts = np.array(sorted(set(group.values)))
    if kernel is None or is_taken_on_trust(kernel) or not is_usable(kernel, False) or len(shifts) < 2:
        return None
    matrices = folds[0][1].matrices
    if any(len(np.unique(rows.fitted)) < len(rows.fitted) for _, rows in folds):
        return None
    if min(len(rows.fitted) for _, rows in folds) < _FROM:
        return None
    y, weight = _numbers(data.y), None if data.weight is None else _numbers(data.weight)
    if y is None or (data.weight is not None and (weight is None or weight.ndim != 1 or not (weight >= 0).all())):
        return None
    # Fits or scores that lack memory beside this matrix may have enough without it.
    with suppress(MemoryBudgetError, NumericalError):
        gram = matrices.matrix(kernel, learner_of(group.estimator).most_shared_rows)
        if gram is None or gram.stored_as(np.float64) is None:
            return None
        n = gram.shape[0]
        targets, weights = np.zeros((n, 1 if y.ndim == 1 else y.shape[1])), np.ones(n)
        for fold, rows in folds:
            targets[rows.fitted] = y[fold.train].reshape(len(fold.train), -1)
            if weight is not None:
                weights[rows.fitted] = weight[fold.train]
        parts = tuple(rows.fitted[weights[rows.fitted] > 0] for _, rows in folds)
        if any(len(part) < _FROM for part in parts):
            return None
        weighted = None if (weights == 1.0).all() else weights
        return SharedGradients().solve(PrincipalSystems(gram, targets, parts, shifts, weighted), n_jobs=n_jobs)
    return None


def _numbers(values: Any) -> np.ndarray | None:
    """Finite numbers in float64, (n,) or (n, t); None for anything else."""
    array = np.asarray(values)
    if array.dtype.kind not in "fiub" or array.ndim not in (1, 2) or not array.size:
        return None
    array = array.astype(np.float64)
    return array if np.isfinite(array).all() else None
