"""A table from a file: named columns or a sparse matrix, the arrays that can be its target, and the places of rows."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import scipy.sparse as sp

from mercer._errors import DataError
from mercer._optional import optional
from mercer.data.words import closest_names, listing

# Squares of larger numbers overflow float64, and scales are computed from squares.
LARGEST = 1e150

MISSING = "empty, NaN, NA, None, null or ?"


def is_number(text: str) -> bool:
    """Whether Python reads a text as a number.

    >>> is_number("1e-3"), is_number("1,000")
    (True, False)
    """
    try:
        float(text)
    except ValueError:
        return False
    return True


def row_place(row: int) -> str:
    """Describe a row, counted from 0, of a table without line numbers.

    >>> row_place(0)
    'row 1'
    """
    return f"row {row + 1}"


def shifted(locate: Callable[[int], str], first: int) -> Callable[[int], str]:
    """Return the places of the rows of a block, whose first row has the number ``first``, from those of all rows.

    >>> shifted(row_place, 100)(0)
    'row 101'
    """
    return lambda row: locate(first + row)


@dataclass(frozen=True)
class Table:
    """The result of a reader.

    Parameters
    ----------
    columns : pandas.DataFrame or scipy.sparse.csr_matrix, shape (n, d)
        Named columns; or, from libsvm files, a sparse matrix whose column ``j`` is the feature ``j`` of the
        file.
    source : str
        The name of the table in messages.
    targets : dict of str to numpy.ndarray
        Arrays of length n in addition to the columns that can be the target (the label of a libsvm file).
    default_target : str or None
        The target if none is named.
    locate : callable
        Maps a row number (from 0) to a description of its place, such as ``"line 7"``.
    written : callable, optional
        Returns the columns as text, as they are written, for formats of text.
    roles : dict of str to str
        Columns whose entries are compared without encoding, and their roles: keys of :data:`mercer.data.roles.ROLES`.
    last : int
        How many rows are those of another table that follows.
    """

    columns: Any
    source: str
    targets: dict[str, np.ndarray] = field(default_factory=dict)
    default_target: str | None = None
    locate: Callable[[int], str] = row_place
    roles: dict[str, str] = field(default_factory=dict)
    written: Callable[[], Any] | None = None
    last: int = 0

    @property
    def is_sparse(self) -> bool:
        """Whether the columns are a sparse matrix without names."""
        return sp.issparse(self.columns)

    @property
    def names(self) -> list[str]:
        """Names of the columns; none for a sparse matrix."""
        return [] if self.is_sparse else [str(name) for name in self.columns.columns]

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return int(self.columns.shape[0])

    def drop(self, names: Iterable[str]) -> Table:
        """Return the table without the named columns.

        Raises
        ------
        DataError
            If a column does not exist.
        """
        names = list(names)
        for name in names:
            if name not in self.names:
                if self.is_sparse:
                    raise DataError(f"{self.source} has no named columns, so {name!r} cannot be dropped.")
                what = f"{self.source} has no column {name!r} to drop"
                raise DataError(_one_at_a_time(what, name, self.names) or _no_column(what, name, self.names))
        if not names:
            return self
        roles = {name: role for name, role in self.roles.items() if name not in names}
        return replace(self, columns=self.columns.drop(columns=names), roles=roles)

    def followed_by(self, other: Table) -> Table:
        """Return the table with the rows of another one, which has the same columns, after its own.

        Raises
        ------
        DataError
            If the other lacks a column, or has another kind of entries in one.
        """
        if self.is_sparse and other.is_sparse:
            parts = [self.columns.copy(), other.columns.copy()]
            width = max(part.shape[1] for part in parts)
            for part in parts:
                part.resize((part.shape[0], width))
            columns = sp.vstack(parts, format="csr")
        else:
            for name in self.names:
                if name not in other.names:
                    raise DataError(f"{other.source} has no column {name!r}, which {self.source} has.")
                known = [table.columns[name].dropna().infer_objects() for table in (self, other)]
                kinds = [column.dtype.kind in "iufb" for column in known]
                if kinds[0] != kinds[1] and all(map(len, known)):
                    raise DataError(f"the column {name!r} is numeric in one of {self.source} and {other.source} alone.")
            pandas = optional("pandas", "tables of named columns")
            columns = pandas.concat([self.columns, other.columns[self.names]], ignore_index=True)
        n, mine, its = self.n_rows, self.locate, other.locate
        return replace(
            self,
            columns=columns,
            targets={name: np.concatenate([values, other.targets[name]]) for name, values in self.targets.items()},
            locate=lambda row: mine(row) if row < n else f"{its(row - n)} of {other.source}",
            written=None,
            last=other.n_rows,
        )

    def with_roles(self, roles: Mapping[str, str]) -> Table:
        """Return the table with further columns that are compared without encoding.

        Raises
        ------
        DataError
            If a column does not exist.
        """
        for name, role in roles.items():
            if name not in self.names:
                if self.is_sparse:
                    raise DataError(f"{self.source} has no named columns, so it has no {role} {name!r}.")
                raise DataError(_no_column(f"{self.source} has no column {name!r} to be the {role}", name, self.names))
        return replace(self, roles={**self.roles, **roles})

    def has(self, name: str) -> bool:
        """Whether ``name`` can be the target."""
        return name in self.targets or name in self.names

    def split(self, target: str | None) -> tuple[Any, Any, str]:
        """Return the columns without the target, the target, and its name.

        Raises
        ------
        DataError
            If no target is named and the table has no default, if no target has that name, or if no column remains to
            learn from.
        """
        if target is None:
            target = self.default_target
        if target is None:
            raise DataError(
                f"{self.source} does not specify the target column; name it with --target COLUMN. "
                f"The columns are {listing([*self.targets, *self.names])}."
            )
        if target in self.targets:
            return self.columns, self.targets[target], target
        if target not in self.names:
            columns = [*self.targets, *self.names]
            raise DataError(_no_column(f"{self.source} has no column {target!r} to be the target", target, columns))
        rest = self.columns.drop(columns=[target])
        if rest.shape[1] == 0:
            raise DataError(
                f"{self.source} has no columns other than the target {target!r}, so there is nothing to learn from."
            )
        return rest, self.columns[target], target


def _one_at_a_time(what: str, name: str, names: list[str]) -> str:
    """The message for a name that lists several columns, such as ``"a,b"``; empty for any other.

    >>> _one_at_a_time("a.csv has no column 'age, sex' to drop", "age, sex", ["age", "sex", "y"])
    "a.csv has no column 'age, sex' to drop. Name one column at a time: drop=['age', 'sex']."
    """
    several = [part for part in re.split("[,; ]+", name) if part]
    listed = len(several) > 1 and set(several) <= set(names)
    return f"{what}. Name one column at a time: drop={several!r}." if listed else ""


def _no_column(what: str, name: str, names: list[str]) -> str:
    matches = closest_names(name, names)
    offer = f"Did you mean {' or '.join(repr(n) for n in matches)}? " if matches else ""
    return f"{what}. {offer}The columns are {listing(names)}."
