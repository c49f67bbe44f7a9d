"""A table checked and typed, but not encoded, for learners that encode the columns themselves."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from mercer._optional import optional
from mercer.data.column_encoder import checked_kinds
from mercer.data.column_entries import dates_of
from mercer.data.encoding import as_table
from mercer.data.fitted import Fitted
from mercer.data.schema import Locate, Schema, infer_schema, note_unknown_categories
from mercer.data.statements import Is
from mercer.data.table import row_place
from mercer.data.typed_columns import as_kind

_ENCODED = {"number": "number", "boolean": "number", "category": "category", "date": "date", "text": "text"}


class RawTable(TransformerMixin, BaseEstimator):
    """Check a table and give every column the type of its kind: numbers, categories, dates or text, with gaps.

    The result is a data frame with the columns of the schema in its order: float64 with NaN for numbers and booleans,
    text for categories, ``datetime64`` for dates, and ``str`` or None for text.

    Parameters
    ----------
    kinds : dict of str to {"number", "category", "date", "text"}, optional
        Kinds of columns that are not what they seem.

    Attributes
    ----------
    schema_ : Schema
        Names and kinds of the columns.

    Examples
    --------
    >>> import pandas as pd
    >>> frame = pd.DataFrame({"age": [20.0, None], "day": ["2026-01-31", "2026-02-01"], "town": ["Ulm", None]})
    >>> table = RawTable().fit(frame)
    >>> table.schema_.kinds
    {'age': 'number', 'day': 'date', 'town': 'category'}
    >>> table.transform(frame)["town"].tolist()
    ['Ulm', '(missing)']
    """

    _fitted = Fitted({"schema_": Is(Schema)})

    def __init__(self, kinds: Mapping[str, str] | None = None) -> None:
        self.kinds = kinds

    def check(self, X: Any, *, source: str = "the table", locate: Locate = row_place) -> Schema:
        """Check every value of a whole table and return its schema, which ``fit`` on some of its rows can then use.

        Raises
        ------
        DataError, ParameterError
            If a value cannot be read as the kind of its column, no column is left, or ``kinds`` names a column or a
            kind that does not exist.
        """
        X = as_table(X)
        asked = checked_kinds(self.kinds, [str(name) for name in X.columns])
        schema = infer_schema(X, source, locate, asked, raw=True)
        _typed(X, schema, source, locate)
        return schema

    def fit(self, X: Any, y: Any = None, *, schema: Schema | None = None) -> RawTable:
        """Learn the schema, unless one is given.

        Raises
        ------
        DataError, ParameterError
            As ``check``.
        """
        self.schema_ = self.check(X) if schema is None else schema
        return self

    def transform(self, X: Any, *, source: str = "the table", locate: Locate = row_place) -> Any:
        """Return the data frame of the columns.

        Raises
        ------
        SchemaError
            If columns are missing or renamed, or an entry is not of the kind of its column.

        Warns
        -----
        MercerWarning
            If categories or columns are unknown.
        """
        check_is_fitted(self, "schema_")
        X = as_table(X)
        self.schema_.check_columns(X, source)
        frame = _typed(X, self.schema_, source, locate)
        note_unknown_categories(self.schema_, frame, source, "they are treated like rare values")
        return frame

    @property
    def feature_names_(self) -> list[str]:
        """Names of the columns of the result, which are those of the table."""
        check_is_fitted(self, "schema_")
        return list(self.schema_.kinds)

    @property
    def kinds_(self) -> dict[str, str]:
        """The kind of each column in the words of :class:`~mercer.data.column_encoder.ColumnEncoder`."""
        check_is_fitted(self, "schema_")
        return {name: _ENCODED[kind] for name, kind in self.schema_.kinds.items()}


def _typed(frame: Any, schema: Schema, source: str, locate: Locate) -> Any:
    """The columns of the schema, each as its kind says."""
    columns = {}
    for name, kind in schema.kinds.items():
        column = frame[name]
        if kind == "date":
            seconds, missing = dates_of(column, name, source, locate)
            columns[name] = np.round(1e6 * seconds).astype("datetime64[us]")
            columns[name][missing] = np.datetime64("NaT")
        elif kind == "text":
            gaps = column.isna().to_numpy()
            columns[name] = np.array(
                [None if gap else str(value) for value, gap in zip(column, gaps, strict=True)], dtype=object
            )
        else:
            columns[name] = as_kind(column, name, kind, source, locate)
    result = optional("pandas", "reading columns").DataFrame(columns)
    for name, kind in schema.kinds.items():
        if kind in ("category", "text"):
            # Where pandas turns text into a type of its own.
            result[name] = result[name].astype(object)
    return result
