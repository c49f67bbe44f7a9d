"""A part of a table by its columns: a data frame of pandas, or a batch of Arrow."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from mercer._errors import DataError
from mercer._optional import optional
from mercer._types import AnyArray
from mercer.data.blocks.checks import place
from mercer.data.words import shown


@dataclass(frozen=True)
class NamedColumns(ABC):
    """Some rows of a table, the file they are from, and the number of the first of them in it."""

    table: Any
    file: str
    row: int

    @property
    @abstractmethod
    def rows(self) -> int:
        """Number of rows."""

    @abstractmethod
    def number(self, name: str) -> AnyArray:
        """Return a column of numbers or booleans; NaN where an entry is missing."""

    @abstractmethod
    def values(self, name: str) -> AnyArray:
        """Return a column as it is; missing entries are NaN or None."""

    @abstractmethod
    def frame(self, names: Sequence[str]) -> Any:
        """Return columns as a data frame of pandas."""


class FrameColumns(NamedColumns):
    """Columns of a data frame of pandas."""

    @property
    def rows(self) -> int:
        return len(self.table)

    def number(self, name: str) -> AnyArray:
        column = self.table[name]
        if isinstance(column.dtype, np.dtype) and column.dtype.kind in "biuf":
            return column.to_numpy()
        why = not_numbers(column)
        if why is not None:
            gaps, kinds = column.isna().to_numpy(), (int, float, np.number, np.bool_)
            bad = next((i for i, v in enumerate(column) if not gaps[i] and not isinstance(v, kinds)), 0)
            raise DataError(
                f"{place(self.file, self.row + bad)}: the column {shown(name)} {why}, such as "
                f"{shown(column.iloc[bad])}, but numbers are needed. Correct the entry, or encode the table with "
                "Blocks.encoded()."
            )
        return column.to_numpy(dtype=np.float64, na_value=np.nan)

    def values(self, name: str) -> AnyArray:
        column = self.table[name]
        plain = isinstance(column.dtype, np.dtype) and column.dtype.kind in "biuf"
        return column.to_numpy() if plain else column.to_numpy(dtype=object)

    def frame(self, names: Sequence[str]) -> Any:
        return self.table[list(names)]


class ArrowColumns(NamedColumns):
    """Columns of a record batch of Arrow."""

    @property
    def rows(self) -> int:
        return int(self.table.num_rows)

    def number(self, name: str) -> AnyArray:
        column = self.table.column(name)
        kind = arrow_kind(column.type)
        if kind not in ("boolean", "integer", "number", "null"):
            raise DataError(
                f"{self.file}: the column {shown(name)} holds {kind} ({column.type}), but numbers are needed. Choose "
                "other columns, or encode the table with Blocks.encoded()."
            )
        if str(column.type) in ("float", "double"):
            return column.to_numpy(zero_copy_only=False)
        return column.cast("float64", safe=False).to_numpy(zero_copy_only=False)

    def values(self, name: str) -> AnyArray:
        column = _decoded(self.table.column(name))
        return column.to_numpy(zero_copy_only=False)

    def frame(self, names: Sequence[str]) -> Any:
        arrow = optional("pyarrow", "reading blocks")
        columns = [_decoded(self.table.column(name)) for name in names]
        return arrow.RecordBatch.from_arrays(columns, names=list(names)).to_pandas()


def arrow_kind(kind: Any) -> str:
    """What a type of Arrow holds: boolean, integer, number, text, date or null; others by their name."""
    types = optional("pyarrow", "reading blocks").types
    if types.is_dictionary(kind):
        kind = kind.value_type
    for name, tests in {
        "boolean": ("is_boolean",),
        "integer": ("is_integer",),
        "number": ("is_floating", "is_decimal"),
        "text": ("is_string", "is_large_string", "is_string_view"),
        "date": ("is_date", "is_timestamp"),
        "null": ("is_null",),
    }.items():
        if any(getattr(types, test)(kind) for test in tests if hasattr(types, test)):
            return name
    return str(kind)


def not_numbers(column: Any) -> str | None:
    """Return what a column of a data frame holds if that is not numbers, as the end of a sentence."""
    kind = column.dtype.kind
    if kind in "biuf":
        return None
    if kind in "mM":
        return f"holds dates or times ({column.dtype})"
    if kind == "O" and column.dtype == object:
        contents = optional("pandas", "reading blocks").api.types.infer_dtype(column, skipna=True)
        if contents in ("integer", "floating", "mixed-integer-float", "boolean", "decimal", "empty"):
            return None
        return "holds text" if contents == "string" else f"holds entries that are not all numbers ({contents})"
    return "holds categories" if str(column.dtype) == "category" else f"holds text ({column.dtype})"


def _decoded(column: Any) -> Any:
    """A column of a dictionary as its entries, whose dictionaries may differ between batches."""
    return column.dictionary_decode() if hasattr(column, "dictionary_decode") else column


def with_text_names(frame: Any) -> Any:
    """A data frame whose columns are named by text."""
    names = [str(name) for name in frame.columns]
    return frame if names == list(frame.columns) else frame.set_axis(names, axis=1)
