"""Rows whose columns are of several kinds: numbers in some, strings, series or graphs in others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mercer._errors import DataError
from mercer.data.objects import Objects, short
from mercer.data.vectors import as_vectors, column_names


def as_table(X: Any) -> Any:
    """Return a data frame unchanged, and other rows as an array of objects, two-dimensional if they are equally long.

    >>> as_table([["ab", [1.0, 2.0]], ["b", [3.0, 4.0]]]).shape
    (2, 2)
    """
    if hasattr(X, "iloc") or (hasattr(X, "ndim") and X.dtype == object):
        return X
    rows = list(X) if isinstance(X, (list, tuple)) else []
    widths = {len(row) if isinstance(row, (list, tuple)) or getattr(row, "ndim", 0) == 1 else -1 for row in rows}
    if len(widths) != 1 or min(widths) < 1:
        return np.asarray(X, dtype=object)
    # Entries may be sequences themselves, which NumPy would take apart.
    table = np.empty((len(rows), widths.pop()), object)
    for number, row in enumerate(rows):
        for column, entry in enumerate(row):
            table[number, column] = entry
    return table


def checked_table(X: Any, name: str = "X") -> Any:
    """Return ``X`` as :func:`as_table` does, checked to have rows and columns.

    Raises
    ------
    DataError
        If it has no rows or no columns.
    """
    table = as_table(X)
    if 0 in table.shape:
        raise DataError(f"{name} is empty: its shape is {table.shape}. At least one row and one column are needed.")
    if table.ndim != 2:
        problem = f"has shape {table.shape}" if table.ndim else f"is {short(X)}"
        raise DataError(
            f"{name} must be a table, a pandas DataFrame or an array of objects with rows and columns, for a "
            f"kernel that compares columns of several kinds, but {problem}."
        )
    return table


class MixedRows:
    """A table whose columns are numbers, (n,), or objects; columns that no kernel uses are None.

    Parameters
    ----------
    columns : sequence of ndarray, Objects or None
    names : sequence of str, optional

    Examples
    --------
    >>> from mercer.data.strings import Strings
    >>> rows = MixedRows([np.array([1.0, 2.0]), Strings.of(["ab", "c"])], ["age", "name"])
    >>> rows.shape, rows[[1]].on([1])
    ((2, 2), ['c'])
    """

    ndim = 2
    dtype = np.dtype(np.float64)

    def __init__(self, columns: Sequence[Any], names: Sequence[str] | None = None) -> None:
        self.columns = tuple(columns)
        self.names = None if names is None else tuple(names)
        lengths = {len(column) for column in self.columns if column is not None}
        if len(lengths) > 1 or (self.names is not None and len(self.names) != len(self.columns)):
            raise DataError(
                f"the columns of a table must be equally long and named one by one; there are {len(self.columns)} of "
                f"{sorted(lengths)} rows, with {'no' if self.names is None else len(self.names)} names."
            )

    @classmethod
    def of(cls, X: Any, kinds: Mapping[int, type[Objects] | None], name: str = "X") -> MixedRows:
        """Read each column of a data frame, or of a two-dimensional array of objects, as the kernel requires.

        ``kinds`` gives the kind of each column that is required, None for numbers.

        Raises
        ------
        DataError
            If ``X`` is not a table, or a column is not of the required kind.
        """
        if isinstance(X, cls):
            return X
        table = checked_table(X, name)
        names = column_names(X)
        columns: list[Any] = [None] * table.shape[1]
        for position, kind in kinds.items():
            part = table.iloc[:, position].to_numpy() if hasattr(table, "iloc") else table[:, position]
            called = f"column {names[position] if names else position!r} of {name}"
            columns[position] = kind.of(part, called) if kind else as_vectors(part[:, None], called)[:, 0].copy()
        return cls(columns, names)

    @property
    def shape(self) -> tuple[int, int]:
        return next(len(column) for column in self.columns if column is not None), len(self.columns)

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, index: Any) -> MixedRows:
        return MixedRows([None if column is None else column[index] for column in self.columns], self.names)

    def on(self, positions: Sequence[int]) -> Any:
        """Return the chosen columns: numbers as an array (n, d), or a single column of objects."""
        columns = [self.columns[position] for position in positions]
        objects = [column for column in columns if not isinstance(column, np.ndarray)]
        if not objects:
            return np.column_stack(columns)
        if len(columns) > 1 or objects[0] is None:
            raise DataError(
                f"columns {list(positions)} were chosen together, but not all of them hold numbers; choose one column "
                "of objects at a time."
            )
        return objects[0]

    def copy(self) -> MixedRows:
        """Return these rows themselves, since they are immutable."""
        return self

    def astype(self, dtype: Any, copy: bool = True) -> MixedRows:
        """Return these rows themselves: their kernel values are always in float64."""
        return self

    def keys(self) -> NDArray[np.uint64]:
        """Return a number for each row, (n,); equal rows have the same number in every process."""
        total = np.zeros(len(self), np.uint64)
        for column in self.columns:
            if column is not None:
                own = column.keys() if isinstance(column, Objects) else (column + 0.0).view(np.uint64)
                total = (total ^ own) * np.uint64(0x9E3779B97F4A7C15) + (total >> np.uint64(29))
        return total

    def same(self, other: MixedRows) -> NDArray[np.bool_]:
        """Whether each row equals the row of ``other`` at the same position, (n,)."""
        equal = np.ones(len(self), bool)
        for mine, theirs in zip(self.columns, other.columns, strict=True):
            if mine is not None:
                equal &= mine.same(theirs) if isinstance(mine, Objects) else mine == theirs
        return equal

    def joined(self, more: MixedRows) -> MixedRows:
        """Return these rows followed by ``more``."""
        pairs = zip(self.columns, more.columns, strict=True)
        return MixedRows(
            [
                None if a is None else a.joined(b) if isinstance(a, Objects) else np.concatenate([a, b])
                for a, b in pairs
            ],
            self.names,
        )

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, MixedRows):
            return NotImplemented
        return self.shape == other.shape and bool(self.same(other).all())

    __hash__ = None  # type: ignore[assignment]
