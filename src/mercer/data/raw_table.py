"""A table checked and typed, but not encoded, for learners that encode the columns themselves."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from mercer._errors import SchemaError
from mercer._optional import optional
from mercer.data.column_encoder import checked_kinds
from mercer.data.column_entries import dates_of
from mercer.data.encoding import as_table
from mercer.data.fitted import Fitted
from mercer.data.schema import (
    DATE,
    NO_VALUE,
    Locate,
    Schema,
    are_trees,
    categories_of,
    column_kind,
    no_column,
    why_useless,
)
from mercer.data.statements import Is
from mercer.data.table import row_place
from mercer.data.text_columns import is_text
from mercer.data.typed_columns import as_kind
from mercer.data.unknown import note_unknown

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
        schema = _infer(X, checked_kinds(self.kinds, [str(name) for name in X.columns]), source, locate)
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
        if not hasattr(X, "columns"):
            raise SchemaError(
                f"the model was fitted on named columns ({self.schema_.describe()}), but {source} is a libsvm file, "
                "whose columns have no names; pass a CSV, TSV or Parquet file."
            )
        self.schema_.check_names([str(name) for name in X.columns], source)
        frame = _typed(X, self.schema_, source, locate)
        self._note_unknown(frame, source)
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

    def _note_unknown(self, frame: Any, source: str) -> None:
        for name, known in self.schema_.categories.items():
            strange = sorted(set(frame[name].unique()) - set(known))
            if strange:
                rows = int(frame[name].isin(strange).sum())
                note_unknown(source, name, strange, rows, "they are treated like rare values")


def _infer(frame: Any, asked: Mapping[str, str], source: str, locate: Locate) -> Schema:
    kinds: dict[str, str] = {}
    categories: dict[str, list[str]] = {}
    left_out: dict[str, str] = {}
    empty = set(frame.columns[frame.isna().all().to_numpy()])
    for name in frame.columns:
        column = frame[name]
        why = why_useless(column, name in empty)
        if why:
            left_out[name] = why
            continue
        kinds[name] = asked.get(name) or _kind(column, name, source, locate)
        if kinds[name] == "category":
            values = categories_of(column)
            if name not in asked and is_text([value for value in values if value != NO_VALUE], len(frame)):
                kinds[name] = "text"
                if are_trees(values):
                    del kinds[name]
                    left_out[name] = f"trees, {len(values)} different values in {len(frame)} rows"
            else:
                categories[name] = values
    if not kinds:
        raise no_column(left_out, source)
    return Schema(kinds, categories, left_out)


def _kind(column: Any, name: str, source: str, locate: Locate) -> str:
    types = optional("pandas", "reading columns").api.types
    if types.is_datetime64_any_dtype(column.dtype):
        return "date"
    present = column.dropna()
    if column.dtype == object or types.is_string_dtype(column.dtype):
        values = present.tolist()
        if values and all(hasattr(v, "isoformat") or (isinstance(v, str) and DATE.fullmatch(v)) for v in values):
            return "date"
    return column_kind(column, name, source, locate)


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
