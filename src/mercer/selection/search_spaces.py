"""The spaces of a search without a grid: one for each kernel to choose from."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.pipeline import Pipeline
from sklearn.utils import check_random_state

from mercer._errors import ParameterError
from mercer.selection.candidates import learner_of
from mercer.selection.evaluated import prefix_of
from mercer.selection.fold_rows import SearchData, take_rows
from mercer.selection.ranges import SAMPLE_ROWS, Space, penalties_of, scale_axes


def spaces_of(estimator: Any, kernels: Sequence[Any] | None, data: SearchData, random_state: Any) -> list[Space]:
    """Return what to search with each kernel.

    Parameters
    ----------
    estimator : estimator
    kernels : sequence or None
        None for the kernel of the learner.
    data : SearchData
    random_state : int, RandomState instance or None
        Of the sample of rows.

    Returns
    -------
    list of Space

    Raises
    ------
    ParameterError
        If there is nothing to search.
    """
    learner = learner_of(estimator)
    if kernels is not None and (isinstance(kernels, str) or not len(kernels)):
        raise ParameterError(f"kernels must be a list of at least one kernel, but is {kernels!r}.")
    rows = _sample(estimator, data, random_state)
    penalties = penalties_of(learner, data.y, data.weight)
    options = {name: getattr(learner, name) for name in ("gamma", "degree", "coef0") if hasattr(learner, name)}
    learns = learner.learns_kernel
    spaces = []
    for kernel in [learner.kernel] if kernels is None else kernels:
        axes = () if learns or kernel is None else scale_axes(kernel, rows, options)
        spaces.append(Space(prefix_of(estimator), kernel, kernels is not None, penalties, axes, rows, options))
    if len(spaces) == 1 and not spaces[0].axes:
        raise ParameterError(
            f"there is nothing to search for {learner!r}: it has no penalty that is a number, and its kernel "
            f"{'is chosen by the fit itself' if learns else 'has no free parameter on these rows'}. Pass kernels=[...] "
            "to choose among several, or fit it as it is."
        )
    return spaces


def _sample(estimator: Any, data: SearchData, random_state: Any) -> Any:
    """Some rows after the steps before the learner, as it takes them; the whole of a kernel matrix."""
    used = np.unique(np.concatenate([part for fold in data.folds for part in (fold.train, fold.test)]))
    rows, learner = data.X if len(used) == data.n else take_rows(data.X, used), learner_of(estimator)
    if isinstance(estimator, Pipeline) and len(estimator.steps) > 1:
        y = None if data.y is None else take_rows(data.y, used)
        rows = clone(estimator)[:-1].fit_transform(rows, y)
    if isinstance(learner.kernel, str) and learner.kernel == "precomputed":
        return np.asarray(rows)
    some = np.arange(len(used))
    if len(some) > SAMPLE_ROWS:
        some = np.sort(check_random_state(random_state).choice(len(some), SAMPLE_ROWS, replace=False))
    checked = learner.checked_rows(take_rows(rows, some))
    return checked.toarray() if sp.issparse(checked) else checked
