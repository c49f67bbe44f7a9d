"""Roles of columns: what the entries of a column are, if they are neither numbers nor categories."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from mercer._errors import DataError
from mercer.data.graphs import Graphs
from mercer.data.objects import Objects
from mercer.data.series import Series
from mercer.data.strings import Strings
from mercer.data.trees import Trees

ROLES: dict[str, type[Objects]] = {"text": Strings, "tree": Trees, "series": Series, "graph": Graphs}
"""The container of each role."""

VERBATIM = ("text", "tree")
"""Roles whose entries are text in a file, to be kept letter for letter."""


def read_objects(column: Any, name: str, role: str, source: str, locate: Callable[[int], str]) -> Objects:
    """Return a column of a table as objects of the kind that its role names.

    Raises
    ------
    DataError
        If an entry is missing or not of that kind; the message gives its place.

    Examples
    --------
    >>> import pandas as pd
    >>> read_objects(pd.Series(["ab", "c"]), "word", "text", "the table", lambda row: f"row {row + 1}")
    ['ab', 'c']
    """
    missing = np.flatnonzero(column.isna().to_numpy())
    if missing.size:
        raise DataError(
            f"{source}, {locate(int(missing[0]))}, column {name!r}: the {role} is missing ({missing.size} of "
            f"{len(column)} rows), and cannot be filled in. Remove those rows, or add the missing entries."
        )
    kind, items = ROLES[role], []
    for row, value in enumerate(column.tolist()):
        try:
            items.append(kind.read(_as_text(value) if role in VERBATIM else value))
        except DataError as error:
            raise DataError(f"{source}, {locate(row)}, column {name!r}: {error}") from error
    try:
        return kind.collect(items)
    except DataError as error:
        raise DataError(f"{source}, column {name!r}: {error}") from error


def role_of(kind: type[Objects]) -> str | None:
    """Return the role of columns whose entries are objects of this kind.

    >>> role_of(Strings)
    'text'
    """
    return next((role for role, rows in ROLES.items() if rows is kind), None)


def _as_text(value: Any) -> Any:
    """Numbers as text: a file of digits alone is read as numbers where nothing says that it is text."""
    return str(value) if isinstance(value, (bool, int, float, np.generic)) else value
