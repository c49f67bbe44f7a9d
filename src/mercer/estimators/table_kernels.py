"""Which columns of a table a kernel compares: by name, or by what they hold if it names none."""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Iterable
from typing import Any

from mercer._errors import DataError, ParameterError
from mercer.data.roles import ROLES, role_of
from mercer.data.schema import Schema
from mercer.data.words import closest_names, listing
from mercer.kernels import RBF, GlobalAlignment, Spectrum, SubsetTree, WeisfeilerLehman
from mercer.kernels.kernel import Kernel
from mercer.kernels.kinds import choices
from mercer.kernels.modifiers import On
from mercer.kernels.objects import ObjectKernel

_DEFAULTS: dict[str, Kernel] = {
    "text": Spectrum(3).normalized(),
    "tree": SubsetTree(0.4).normalized(),
    "graph": WeisfeilerLehman(3).normalized(),
    "series": GlobalAlignment().normalized(),
}
"""The default kernel of each role."""

# Single symbols say little, and longer substrings are seldom shared.
_LENGTHS = range(2, 7)


def default_kernel(schema: Schema) -> Kernel | None:
    """Return a kernel for a table that contains more than numbers and categories; None for other tables.

    It is a sum over the columns of kernels with ``k(x, x) = 1``: rows are similar if they are similar in any of them.

    Examples
    --------
    >>> default_kernel(Schema({"message": "text"}))
    Spectrum(3).normalized()
    >>> default_kernel(Schema({"hour": "number", "message": "text"}))
    RBF(0.707).on(['hour']) + Spectrum(3).normalized().on(['message'])
    """
    roles = schema.roles
    if not roles:
        return None
    if list(schema.kinds) == list(roles) and len(roles) == 1:
        return next(_DEFAULTS[role] for role in roles.values())
    parts = [_DEFAULTS[role].on([name]) for name, role in roles.items()]
    if schema.encoded:
        d = schema.encoded_columns - len(roles)
        parts.insert(0, RBF(round(math.sqrt(d / 2), 3)).on(list(schema.encoded)))
    kernel = parts[0]
    for part in parts[1:]:
        kernel = kernel + part
    return kernel


def text_kernels() -> list[Kernel]:
    """Return what to choose among for one column of text: substrings of one length, and of all lengths up to one.

    All have ``k(x, x) = 1``, and each of several lengths counts the same.

    >>> text_kernels()[5]
    0.5 * Spectrum(2).normalized() + 0.5 * Spectrum(3).normalized()
    """
    single: list[Kernel] = [Spectrum(length).normalized() for length in _LENGTHS]
    several = [single[:count] for count in range(2, len(single) + 1)]
    return single + [functools.reduce(operator.add, [1 / len(parts) * part for part in parts]) for parts in several]


def place(kernel: Any, schema: Schema) -> Any:
    """The kernel with the columns that it compares, where it names none and there is one choice only.

    Raises
    ------
    ParameterError
        If no column, or more than one, contains what it compares; or if it compares numbers only and there are other
        columns.
    DataError
        If it names a column that does not exist.

    Examples
    --------
    >>> place(Spectrum(2), Schema({"age": "number", "name": "text"}))
    Spectrum(2).on(['name'])
    """
    roles = schema.roles
    kind = kernel.kind_of_rows() if isinstance(kernel, Kernel) else "vectors"
    if isinstance(kind, type):
        role = role_of(kind)
        fitting = [name for name, its in roles.items() if its == role]
        if len(fitting) == 1:
            return kernel.on(fitting)
        if fitting:
            raise ParameterError(
                f"{kernel!r} compares {kind.kind}, and several columns hold them: {listing(fitting)}. Choose one, as "
                f"in ({kernel!r}).on([{fitting[0]!r}])."
            )
        raise ParameterError(
            f"{kernel!r} compares {kind.kind}, but no column has this role; "
            + (f'set it with roles={{COLUMN: "{role}"}}.' if role else "choose another kernel.")
        )
    if kind == "table":
        for choice in choices(kernel):
            _check_choice(choice, schema)
    elif roles and kind == "vectors":
        name, role = next(iter(roles.items()))
        raise ParameterError(
            f"the kernel {kernel if isinstance(kernel, str) else repr(kernel)} compares numbers, and the column "
            f"{name!r} holds {ROLES[role].kind}; choose a kernel on them such as {_example(role)}, or one for each "
            f"column, or leave the column out."
        )
    return kernel


def _example(role: str) -> str:
    return repr(_DEFAULTS[role])


def _check_choice(choice: On, schema: Schema) -> None:
    """Raise unless the columns hold what the kernel on them compares."""
    kind = choice.kernel.kind_of_rows()
    for name in choice.columns:
        if not isinstance(name, str):
            continue
        check_name(name, schema.kinds)
        role = schema.roles.get(name)
        own_kind = ROLES[role] if role else "vectors"
        if kind in ("anything", own_kind):
            continue
        if role:
            raise ParameterError(
                f"{choice!r} compares {_called(kind)}, and the column {name!r} holds {ROLES[role].kind}; "
                f"choose a kernel on them such as {_example(role)}."
            )
        role_needed = role_of(kind) if isinstance(kind, type) else None
        raise ParameterError(
            f"{choice!r} compares {_called(kind)}, and the column {name!r} holds a {schema.kinds[name]}"
            + (f'; to compare it in this way, pass roles={{{name!r}: "{role_needed}"}}.' if role_needed else ".")
        )


def _called(kind: Any) -> str:
    return str(kind.kind) if hasattr(kind, "kind") else "numbers"


def check_name(name: str, names: Iterable[str]) -> None:
    """Raise unless there is a column of that name.

    Raises
    ------
    DataError
        If there is none; the message suggests the closest names.
    """
    names = list(dict.fromkeys(names))
    if name in names:
        return
    matches = closest_names(name, names)
    offer = f"did you mean {' or '.join(map(repr, matches))}? " if matches else ""
    raise DataError(
        f"the kernel uses the column {name!r}, which the model does not have; {offer}the columns are {listing(names)}."
    )


def columns_of(kernel: Any, schema: Schema) -> list[str]:
    """Columns of the table that a kernel compares, which :func:`place` has returned; all if it names none.

    >>> columns_of(Spectrum(2).on(["name"]), Schema({"age": "number", "name": "text"}))
    ['name']
    """
    if not schema.roles or not isinstance(kernel, Kernel) or kernel.kind_of_rows() != "table":
        return list(schema.kinds)
    names = schema.encoded_sources()
    used = {c if isinstance(c, str) else names[c] for choice in choices(kernel) for c in choice.columns}
    return [name for name in schema.kinds if name in used]


def by_position(kernel: Any, sources: list[str]) -> Any:
    """The kernel with names of columns of the table replaced by the positions of what they became, in ``sources``.

    Raises
    ------
    DataError
        If the kernel names a column that the model does not use.
    """
    if not isinstance(kernel, Kernel):
        # A word such as "rbf" names no columns.
        return kernel
    # Members of bags have columns of their own.
    children = () if isinstance(kernel, ObjectKernel) else kernel.children()
    if children:
        kernel = kernel.with_children(tuple(by_position(part, sources) for _, part in children))
    if not isinstance(kernel, On) or not any(isinstance(column, str) for column in kernel.columns):
        return kernel
    positions: list[int] = []
    for column in kernel.columns:
        if isinstance(column, str):
            check_name(column, sources)
            positions.extend(i for i, source in enumerate(sources) if source == column)
        else:
            positions.append(column)
    return kernel.kernel.on(positions)


def by_name(kernel: Any, sources: list[str]) -> Any:
    """The kernel with positions replaced by names of columns of the table, where it takes all of what they became.

    >>> by_name(Spectrum(2).on([1]), ["age", "name"])
    Spectrum(2).on(['name'])
    """
    # Members of bags have columns of their own.
    children = () if isinstance(kernel, ObjectKernel) else kernel.children()
    if children:
        kernel = kernel.with_children(tuple(by_name(part, sources) for _, part in children))
    if not isinstance(kernel, On) or not all(isinstance(c, int) and 0 <= c < len(sources) for c in kernel.columns):
        return kernel
    names = list(dict.fromkeys(sources[c] for c in kernel.columns if isinstance(c, int)))
    whole = [i for name in names for i, source in enumerate(sources) if source == name]
    return kernel.kernel.on(names) if whole == list(kernel.columns) else kernel
