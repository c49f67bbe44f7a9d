"""The candidates of a search in groups that share kernel work."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.pipeline import Pipeline

from mercer.estimators.shared.base import KernelEstimator
from mercer.kernels import Kernel
from mercer.kernels.convert import read_expression
from mercer.kernels.kinds import choices
from mercer.selection.path import FitsAlong

Parameters = Mapping[str, Any]

_OF_KERNEL = ("kernel", "gamma", "degree", "coef0", "kernel_params")
# Parameters along which a machine is solved from one value to the next, the best one first.
_PATHS = ("C", "nu", "epsilon", "alpha")


@dataclass(frozen=True, eq=False)
class Group:
    """Candidates that differ in one parameter at most.

    Attributes
    ----------
    numbers : tuple of int
        The candidates, in ascending order of their values.
    estimator : estimator
        With the parameters of the first.
    before : Hashable
        What the preprocessing, and the reading of rows, of all candidates of the group have in common.
    along : str
        The parameter of the learner that differs, or "".
    values : tuple of float
        Its values, ascending.
    """

    numbers: tuple[int, ...]
    estimator: Any
    before: Hashable
    along: str = ""
    values: tuple[float, ...] = ()


def learner_of(estimator: Any) -> Any:
    """The estimator itself, or the last step of a pipeline."""
    return estimator.steps[-1][1] if isinstance(estimator, Pipeline) and estimator.steps else estimator


def can_share(estimator: Any) -> bool:
    """Whether fits of the estimator can use kernel matrices that exist already.

    A user-defined subclass may do anything with the rows before it fits to them, or predicts for them. A fit that
    searches for parameters of its kernel has a matrix of its own.
    """
    learner = learner_of(estimator)
    own = type(learner).__module__.partition(".")[0] == __name__.partition(".")[0]
    return own and isinstance(learner, KernelEstimator) and learner.can_share


def with_parameters(estimator: Any, parameters: Parameters) -> Any:
    """A copy of the estimator with the parameters of a candidate; estimators among them are copied too."""
    copied = clone(estimator)
    return copied.set_params(**clone(parameters, safe=False)) if parameters else copied


def groups_of(estimator: Any, candidates: Sequence[Parameters]) -> list[Group]:
    """The candidates in groups, those with the same preprocessing next to each other, and within them the same kernel.

    Raises
    ------
    ValueError
        If the estimator lacks one of the parameters.

    Examples
    --------
    >>> from mercer import SVC
    >>> grid = [{"C": C, "gamma": g} for C in (10.0, 1.0) for g in (0.1, 1.0)]
    >>> [(group.numbers, group.along, group.values) for group in groups_of(SVC(), grid)]
    [((2, 0), 'C', (1.0, 10.0)), ((3, 1), 'C', (1.0, 10.0))]
    """
    prefix = f"{estimator.steps[-1][0]}__" if isinstance(estimator, Pipeline) else ""
    members: dict[Hashable, list[int]] = {}
    order: dict[Hashable, tuple[int, int]] = {}
    path = _path_of(learner_of(estimator), candidates, prefix)
    numbers: dict[Hashable, int] = {}
    for number, parameters in enumerate(candidates):
        before, kernel, rest = _parts(parameters, prefix, path)
        alone = path and not _is_on_path(parameters.get(prefix + path))
        key = (before, kernel, rest, number if alone else None)
        members.setdefault(key, []).append(number)
        order.setdefault(key, (numbers.setdefault(before, number), numbers.setdefault((before, kernel), number)))
    groups: list[Group] = []
    for key in sorted(members, key=lambda key: (*order[key], members[key][0])):
        group = members[key]
        own = with_parameters(estimator, candidates[group[0]])
        along = path if len(group) > 1 and _is_solved_along(own) else ""
        before = key[0], _reading(learner_of(own))  # type: ignore[index]
        if along:
            group = sorted(group, key=lambda number: float(candidates[number][prefix + along]))
            values = tuple(float(candidates[number][prefix + along]) for number in group)
            groups.append(Group(tuple(group), own, before, along, values))
        else:
            groups += [Group((n,), with_parameters(estimator, candidates[n]), before) for n in group]
    first: dict[Hashable, int] = {}
    for one in groups:
        first.setdefault(one.before, len(first))
    return sorted(groups, key=lambda one: first[one.before])


def _is_solved_along(estimator: Any) -> bool:
    """Whether solutions along a path are those of fits alone: a solver that may stop early depends on its start."""
    learner = learner_of(estimator)
    if not (can_share(estimator) and isinstance(learner, FitsAlong)):
        return False
    # The limit of a Newton method is there for problems that it cannot solve, unless somebody has lowered it.
    limit, usual = (getattr(one, "max_iter", -1) for one in (learner, type(learner)()))
    return bool(limit == -1 or 0 < usual <= limit)


def _reading(learner: Any) -> Hashable:
    """Equal values for learners that read rows in the same way: as vectors, as objects, or the columns of a table."""
    kernel = read_expression(getattr(learner, "kernel", None))
    if not isinstance(kernel, Kernel):
        return "function" if callable(kernel) else "vectors"
    kind = kernel.kind_of_rows()
    return frozenset((on.columns, on.kernel.kind_of_rows()) for on in choices(kernel)) if kind == "table" else kind


def _path_of(learner: Any, candidates: Sequence[Parameters], prefix: str) -> str:
    """The parameter with the most values among those along which a machine can be solved."""
    counts = {
        name: len({_token(parameters[prefix + name]) for parameters in candidates if prefix + name in parameters})
        for name in _PATHS
    }
    best = max(_PATHS, key=lambda name: counts[name])
    return best if counts[best] > 1 else ""


def _parts(parameters: Parameters, prefix: str, path: str) -> tuple[Hashable, Hashable, Hashable]:
    """What the parameters say of the preprocessing, of the kernel, and of the rest but the path."""
    parts: tuple[list[Hashable], list[Hashable], list[Hashable]] = [], [], []
    for name, value in sorted(parameters.items()):
        own = name.removeprefix(prefix) if name.startswith(prefix) else ""
        if own == path and path:
            continue
        of_kernel = own in _OF_KERNEL or own.startswith("kernel__")
        parts[0 if not own else 1 if of_kernel else 2].append((name, _token(value)))
    before, kernel, rest = map(tuple, parts)
    return before, kernel, rest


def _token(value: Any) -> Hashable:
    """Something that is equal for equal values only."""
    try:
        hash(value)
    except TypeError:
        return (type(value), id(value))
    return (type(value), value)


def _is_on_path(value: Any) -> bool:
    """Whether it is a finite number above 0."""
    return isinstance(value, Real) and not isinstance(value, bool | np.bool_) and 0 < float(value) < np.inf
