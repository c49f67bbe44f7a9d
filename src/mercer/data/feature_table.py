"""A table checked, typed and encoded as features, for learners that take numbers and rows that come in blocks."""

from __future__ import annotations

from typing import Any

from mercer.data.column_encoder import ColumnEncoder
from mercer.data.fitted import Fitted
from mercer.data.raw_table import RawTable
from mercer.data.schema import Locate, Schema
from mercer.data.statements import Is
from mercer.data.table import row_place


class FeatureTable(RawTable):
    """Check a table as :class:`RawTable` does, and encode it by :class:`ColumnEncoder`.

    Parameters
    ----------
    kinds : dict of str to {"number", "category", "date"}, optional
        Kinds of columns that are not what they seem.

    Attributes
    ----------
    schema_ : Schema
        Names and kinds of the columns.
    encoder_ : ColumnEncoder

    Examples
    --------
    >>> import pandas as pd
    >>> frame = pd.DataFrame({"age": [20.0, 30.0, 40.0, 50.0], "town": ["Ulm", "Zug"] * 2})
    >>> table = FeatureTable().fit(frame)
    >>> table.transform(frame).shape, table.feature_names_[0], table.schema_.kinds["town"]
    ((4, 4), 'age', 'category')
    """

    _fitted = Fitted(
        {"schema_": Is(Schema), "encoder_": Is(ColumnEncoder)},
        rules=(("the columns and their encoding differ", lambda table: table.names_ == list(table.schema_.kinds)),),
    )

    def fit(self, X: Any, y: Any = None, *, schema: Schema | None = None) -> FeatureTable:
        """Learn the kinds and the encoding of the columns.

        Raises
        ------
        DataError, ParameterError
            If a column cannot be read as its kind, or ``kinds`` names a column or a kind that does not exist.
        """
        super().fit(X, schema=schema)
        self.encoder_ = ColumnEncoder(self.kinds_).fit(super().transform(X))
        return self

    def transform(self, X: Any, *, source: str = "the table", locate: Locate = row_place) -> Any:
        """Features of rows, float64 of shape (n, p).

        Raises
        ------
        SchemaError
            If columns are missing or renamed, or an entry is not of the kind of its column.
        """
        return self.encoder_.transform(super().transform(X, source=source, locate=locate))

    @property
    def names_(self) -> list[str]:
        """Names of the columns of the table."""
        return self.encoder_.names_

    @property
    def texts_(self) -> list[int]:
        """Positions of the columns of text, which have no features."""
        return self.encoder_.texts_

    @property
    def feature_names_(self) -> list[str]:
        """The column that each feature comes from."""
        return [self.names_[place] for place in self.encoder_.sources_]
