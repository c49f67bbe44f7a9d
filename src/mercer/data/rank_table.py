"""A table checked, typed and encoded as ranks and codes, one number a column, for kernels that compare columns."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from mercer.data.fitted import Fitted
from mercer.data.rank_columns import CodeColumn, RankColumn, RankedDates
from mercer.data.raw_table import RawTable
from mercer.data.schema import Locate, Schema
from mercer.data.statements import Each, Is
from mercer.data.table import row_place

# A text that occurs only once says nothing about other rows.
_REPEATED = 2
Column = RankColumn | CodeColumn | RankedDates


class RankTable(RawTable):
    """Check a table as :class:`RawTable` does, and encode numbers and dates by ranks and categories by codes.

    Parameters
    ----------
    kinds : dict of str to {"number", "category", "date"}, optional
        Kinds of columns that are not what they seem.

    Attributes
    ----------
    schema_ : Schema
        Names and kinds of the columns.
    columns_ : list
        How each of them is encoded.

    Examples
    --------
    >>> import pandas as pd
    >>> frame = pd.DataFrame({"age": [20.0, None, 60.0, 30.0], "town": ["Ulm", "Zug"] * 2})
    >>> table = RankTable().fit(frame)
    >>> table.transform(frame).tolist(), table.ordered_.tolist()
    ([[0.0, 0.0], [-2.0, 1.0], [1.0, 0.0], [0.5, 1.0]], [True, False])
    """

    _fitted = Fitted(
        {"schema_": Is(Schema), "columns_": Each(Is(RankColumn, CodeColumn, RankedDates))},
        rules=(
            ("the columns and their encoding differ", lambda table: len(table.columns_) == len(table.schema_.kinds)),
            ("the codes are not those of the categories", lambda table: all(map(_has_its_codes, *_sides(table)))),
        ),
    )

    def fit(self, X: Any, y: Any = None, *, schema: Schema | None = None) -> RankTable:
        """Learn the kinds and the encoding of the columns.

        Raises
        ------
        DataError, ParameterError
            If a column cannot be read as its kind, or ``kinds`` names a column or a kind that does not exist.
        """
        super().fit(X, schema=schema)
        typed = super().transform(X)
        self.columns_ = [
            _fitted(kind, typed[name].to_numpy(), self.schema_.categories.get(name))
            for name, kind in self.schema_.kinds.items()
        ]
        return self

    def transform(self, X: Any, *, source: str = "the table", locate: Locate = row_place) -> NDArray[np.float64]:
        """Ranks and codes of rows, (n, p).

        Raises
        ------
        SchemaError
            If columns are missing or renamed, or an entry is not of the kind of its column.
        """
        typed = super().transform(X, source=source, locate=locate)
        pairs = zip(self.columns_, self.schema_.kinds, strict=True)
        return np.column_stack([column.encode(typed[name].to_numpy()) for column, name in pairs])

    @property
    def ordered_(self) -> NDArray[np.bool_]:
        """Which features have an order; the others are codes."""
        return np.array([ordered for column in self.columns_ for ordered in column.ordered])

    @property
    def names_(self) -> list[str]:
        """Names of the columns of the table."""
        return list(self.schema_.kinds)

    @property
    def feature_names_(self) -> list[str]:
        """The column that each feature comes from."""
        widths = [len(column.ordered) for column in self.columns_]
        return [name for name, width in zip(self.names_, widths, strict=True) for _ in range(width)]


def _fitted(kind: str, entries: Any, categories: list[str] | None) -> Column:
    if kind == "text":
        return CodeColumn.fit(entries, _REPEATED)
    if categories is not None:
        return CodeColumn(tuple(categories))
    return RankedDates.fit(entries) if kind == "date" else RankColumn.fit(entries.astype(np.float64))


def _sides(table: RankTable) -> tuple[list[Column], list[list[str] | None]]:
    """The columns, and the categories of the schema for those that have some."""
    return table.columns_, [table.schema_.categories.get(name) for name in table.schema_.kinds]


def _has_its_codes(column: Column, categories: list[str] | None) -> bool:
    return categories is None or (isinstance(column, CodeColumn) and list(column.values) == list(categories))
