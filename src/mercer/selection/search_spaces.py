"""The spaces of a search without a grid: one for each kernel to choose from."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.pipeline import Pipeline

from mercer._errors import DataError, MercerError, ParameterError
from mercer.data.seeds import generator
from mercer.kernels import as_kernel
from mercer.kernels.convert import is_named
from mercer.selection.candidates import learner_of
from mercer.selection.evaluated import prefix_of
from mercer.selection.fold_rows import SearchData, take_rows
from mercer.selection.ranges import SAMPLE_ROWS, Space, by_rows, penalties_of, scale_axes
from mercer.selection.shared_fits import require_square, takes_matrices
from mercer.selection.tolerances import tolerance_for


def spaces_of(
    estimator: Any,
    kernels: Sequence[Any] | None,
    data: SearchData,
    random_state: Any,
    only: Sequence[str] | None = None,
) -> list[Space]:
    """Return what to search with each kernel.

    Parameters
    ----------
    estimator : estimator
    kernels : sequence or None
        None for the kernel of the learner.
    data : SearchData
    random_state : int, RandomState instance or None
        Of the sample of rows.
    only : sequence of str, optional
        Names of the penalties that are searched, ``"gamma"``, and ``"kernel"`` for its free parameters; all by default.

    Returns
    -------
    list of Space

    Raises
    ------
    ParameterError
        If there is nothing to search.
    DataError
        If the rows cannot be read for one of the kernels. What a user-defined kernel raises is passed on if none of the
        others can be used.
    """
    learner = learner_of(estimator)
    rows = _rows(estimator, data)
    seed = int(generator(random_state).randint(2**31 - 1))
    penalties = penalties_of(learner, data.y, data.weight, min(len(fold.train) for fold in data.folds))
    if only is not None:
        _check_names(only, [penalty.name for penalty in penalties], [learner.kernel] if kernels is None else kernels)
        penalties = tuple(penalty for penalty in penalties if penalty.name in only)
    options = {name: getattr(learner, name) for name in ("gamma", "degree", "coef0") if hasattr(learner, name)}
    learns = learner.learns_kernel
    tol = tolerance_for(learner, data.y)
    fixed = {} if tol is None else {"tol": tol}
    spaces = []
    # What kernels of users raised; the candidates with one of several such kernels fail, and are named.
    reasons: list[Exception] = []
    for position, kernel in enumerate([learner.kernel] if kernels is None else kernels):
        one = learner if kernels is None else clone(learner).set_params(kernel=kernel)
        try:
            if takes_matrices(one):
                require_square(rows)
            sample = _sample(one, rows, seed)
        except MercerError as error:
            if kernels is None:
                raise
            raise DataError(f"kernels[{position}], {kernel!r}, cannot be used with the rows: {error}") from error
        except Exception as reason:  # A user-defined kernel may raise anything.
            sample = None
            reasons.append(reason)
        given, kernel = kernel, by_rows(kernel, sample)
        named = kernels is not None or kernel is not given
        # Whole numbers of several kernels are part of the choice among them.
        axes = () if learns or kernel is None else scale_axes(kernel, sample, options, whole=kernels is None)
        if only is not None and _name_of_axes(kernel) not in only:
            axes = ()
        spaces.append(Space(prefix_of(estimator), kernel, named, penalties, axes, sample, options, fixed))
    if len(reasons) == len(spaces):
        raise reasons[0]
    if only is not None and "kernel" in only and not any(space.scales for space in spaces):
        raise ParameterError(
            f"parameters holds 'kernel', which stands for the free parameters of a kernel, but {spaces[0].kernel!r} "
            "has none on these rows. Leave 'kernel' out, or pass kernels=[...] to choose among several."
        )
    if len(spaces) == 1 and not spaces[0].axes:
        why = (
            f"parameters={list(only)!r} leaves out all that could be searched"
            if only is not None
            else "it has no penalty that is a number, and its kernel "
            f"{'is chosen by the fit itself' if learns else 'has no free parameter on these rows'}"
        )
        raise ParameterError(
            f"there is nothing to search for {learner!r}: {why}. Pass kernels=[...] to choose among several, or fit it "
            "as it is."
        )
    return spaces


def _check_names(only: Sequence[str], penalties: Sequence[str], kernels: Sequence[Any]) -> None:
    """Raise unless the names are those of penalties, and of what one of the kernels has."""
    known = [*penalties, "gamma", "kernel"]
    is_list = isinstance(only, Iterable) and not isinstance(only, str)
    strange = [name for name in only if name not in known] if is_list else []
    if strange or not is_list:
        raise ParameterError(
            f"parameters must be a list of some of {', '.join(known)}, but "
            f"{f'holds {strange[0]!r}' if strange else f'is {only!r}'}; those that are not numbers are not searched."
        )
    if "kernel" in only and all(_name_of_axes(kernel) != "kernel" for kernel in kernels):
        raise ParameterError(
            f"parameters holds 'kernel', which stands for the free parameters of a mercer.kernels.Kernel, but kernel "
            f"is {kernels[0]!r}. Pass 'gamma' in its place."
        )


def _name_of_axes(kernel: Any) -> str:
    """What stands for the free parameters of a kernel in ``parameters``."""
    return "gamma" if is_named(kernel) else "kernel"


def _rows(estimator: Any, data: SearchData) -> Any:
    """The rows of all folds after the steps before the learner."""
    used = np.unique(np.concatenate([part for fold in data.folds for part in (fold.train, fold.test)]))
    rows = data.X if len(used) == data.n else take_rows(data.X, used)
    if isinstance(estimator, Pipeline) and len(estimator.steps) > 1:
        y = None if data.y is None else take_rows(data.y, used)
        rows = clone(estimator)[:-1].fit_transform(rows, y)
    return rows


def _sample(learner: Any, rows: Any, seed: int) -> Any:
    """Some rows as the learner takes them."""
    if is_named(learner.kernel) and not takes_matrices(learner):
        # A name that does not exist.
        as_kernel(learner.kernel, gamma=1.0)
    checked = learner.checked_rows(rows)
    n = checked.shape[0]
    if n > SAMPLE_ROWS and not takes_matrices(learner):
        checked = checked[np.sort(np.random.default_rng(seed).choice(n, SAMPLE_ROWS, replace=False))]
    return checked.toarray() if sp.issparse(checked) else checked
