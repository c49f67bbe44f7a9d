"""From a table with columns of any kind to rows of features for a kernel, without a choice by the user."""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Mapping
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from mercer._errors import MercerWarning, ParameterError, warn_user
from mercer._types import Matrix, Vector
from mercer.data.column_entries import Column, dates, kind_of, numbers, read_columns
from mercer.data.column_features import FARTHEST, CategoryColumn, DateColumn, Missing, NumberColumn, TextColumn
from mercer.data.columns import MixedRows
from mercer.data.fitted import Fitted
from mercer.data.schema import quantities
from mercer.data.statements import Each, Is, Word
from mercer.data.strings import Strings
from mercer.data.text_columns import are_codes
from mercer.data.words import closest_names, listing, shown

FeatureColumn = NumberColumn | CategoryColumn | DateColumn | TextColumn
KINDS: dict[str, type[FeatureColumn]] = {
    "number": NumberColumn,
    "category": CategoryColumn,
    "date": DateColumn,
    "text": TextColumn,
}


class ColumnEncoder(TransformerMixin, BaseEstimator):
    """Encode every column of a table by its kind: numbers, categories, dates or text.

    Parameters
    ----------
    kinds : dict of str to {"number", "category", "date", "text"}, optional
        Kinds of columns that are not what they seem, such as numbers that are codes of categories. The columns of an
        array are called x0, x1, ...
    numbers : bool, default=False
        Whether there are features for functions that are linear in numbers: each column of numbers as it is,
        standardised, with the indicator of its gaps.
    farthest : float, default=2.5
        Normal scores of numbers beyond it, at most 4, are cut off.

    Attributes
    ----------
    columns_ : list
        A fitted encoder of each column.
    names_ : list of str

    Examples
    --------
    >>> import pandas as pd
    >>> frame = pd.DataFrame({"age": [20.0, None, 60.0, 30.0], "town": ["Ulm", "Zug", "Ulm", "Zug"]})
    >>> encoder = ColumnEncoder().fit(frame)
    >>> encoder.transform(frame).round(2).tolist()
    [[-0.97, 0.0, 1.0, 0.0, 0.0], [0.0, 1.0, 0.0, 1.0, 0.0], [0.97, 0.0, 1.0, 0.0, 0.0], [0.0, 0.0, 0.0, 1.0, 0.0]]
    >>> encoder.sources_.tolist(), encoder.groups_.tolist()
    ([0, 0, 1, 1, 1], [0, 1, 2, 2, 2])
    """

    _fitted = Fitted(
        {"columns_": Each(Is(*KINDS.values())), "names_": Each(Word())},
        rules=(("names and columns do not match", lambda encoder: len(encoder.names_) == len(encoder.columns_)),),
    )

    def __init__(
        self, kinds: Mapping[str, str] | None = None, *, numbers: bool = False, farthest: float = FARTHEST
    ) -> None:
        self.kinds = kinds
        self.numbers = numbers
        self.farthest = farthest

    def fit(self, X: Any, y: Any = None, sample_weight: Vector | None = None) -> Self:
        """Learn the kind and the encoding of each column; ``sample_weight`` says how often each row counts.

        Raises
        ------
        ParameterError
            If ``kinds`` names a column or a kind that does not exist.
        DataError
            If a column cannot be read as its kind.

        Warns
        -----
        MercerWarning
            If entries of a column of numbers are neither numbers nor missing: where they are at most 5 %, they count as
            missing. If numbers or dates in another notation, such as 5 kg, are compared as text.
        """
        columns = list(read_columns(X))
        names = [column.name for column in columns]
        asked = checked_kinds(self.kinds, names)
        encoders: list[FeatureColumn] = []
        for column in columns:
            kind = asked.get(column.name) or kind_of(column, sample_weight)
            if column.name not in asked and not column.is_category:
                _note_quantities(column, kind)
            encoders.append(_fitted_encoder(kind, column, sample_weight, self.farthest))
        self.columns_, self.names_ = encoders, names
        return self

    def transform(self, X: Any) -> np.ndarray | MixedRows:
        """Features of new rows, float64 of shape (n, p), followed by the columns of text if there are any.

        Numbers as they are come after all other features. A table without features has one, which is zero.

        Raises
        ------
        DataError
            If a column cannot be read as the kind that it had in training.
        """
        check_is_fitted(self, "columns_")
        blocks, numbers, texts = [], [], []
        for encoder, column in zip(self.columns_, read_columns(X), strict=True):
            if isinstance(encoder, TextColumn):
                texts.append(Strings.of(encoder.texts(column.entries, column.missing)))
                blocks.append(encoder.encode(column.entries, column.missing))
            else:
                entries, missing = _values(encoder, column)
                blocks.append(encoder.encode(entries, missing))
                if self.numbers and isinstance(encoder, NumberColumn):
                    numbers.append(encoder.standardise(entries, missing))
        blocks += numbers
        features = np.concatenate(blocks, axis=1)
        if not features.shape[1]:
            features = np.zeros((len(features), 1))
        if not texts:
            return np.ascontiguousarray(features)
        return MixedRows([*map(np.ascontiguousarray, features.T), *texts])

    def plain(self, X: Any) -> tuple[Matrix, NDArray[np.bool_]]:
        """Each column but text as one number, (n, q), NaN where missing, and which of them are codes of categories."""
        columns, codes = [np.empty((len(X), 0))], []
        for encoder, column in zip(self.columns_, read_columns(X), strict=True):
            if isinstance(encoder, TextColumn):
                continue
            entries, missing = _values(encoder, column)
            if isinstance(encoder, CategoryColumn):
                columns.append(encoder.codes(entries, missing)[:, None].astype(np.float64))
            else:
                columns.append(np.where(missing, np.nan, entries)[:, None])
            codes.append(isinstance(encoder, CategoryColumn))
        return np.concatenate(columns, axis=1), np.array(codes, dtype=bool)

    def without_numbers(self, features: np.ndarray | MixedRows) -> tuple[Self, np.ndarray | MixedRows]:
        """This encoder without numbers as they are, and what it makes of rows of which this one made ``features``."""
        end, count = len(self.sources_) - len(self.numbers_), len(self.numbers_)
        other = copy.copy(self)
        other.numbers = False
        if isinstance(features, MixedRows):
            return other, MixedRows([*features.columns[:end], *features.columns[end + count :]])
        return other, np.ascontiguousarray(features[:, :end])

    def cut_off(self, farthest: float) -> Self:
        """This encoder with scores of numbers that are cut off beyond ``farthest``, which is less than its own."""
        other = copy.copy(self)
        other.farthest = farthest
        other.columns_ = [
            column.cut_off(farthest) if isinstance(column, (NumberColumn, DateColumn)) else column
            for column in self.columns_
        ]
        return other

    @property
    def kinds_(self) -> dict[str, str]:
        """The kind that each column was taken for, by its name."""
        words = {cls: word for word, cls in KINDS.items()}
        return {name: words[type(encoder)] for name, encoder in zip(self.names_, self.columns_, strict=True)}

    @property
    def texts_(self) -> list[int]:
        """Positions of the columns of text."""
        return [place for place, encoder in enumerate(self.columns_) if isinstance(encoder, TextColumn)]

    @property
    def sources_(self) -> NDArray[np.intp]:
        """The position of the column that each feature comes from."""
        widths = [sum(encoder.groups) for encoder in self.columns_]
        of_groups = np.repeat(np.arange(len(widths)), widths) if sum(widths) else np.zeros(1, np.intp)
        return np.concatenate([of_groups, self.numbers_])

    @property
    def numbers_(self) -> NDArray[np.intp]:
        """The position of the column of each feature of numbers as they are; these come after those of groups."""
        counts = [column.linear if isinstance(column, NumberColumn) else 0 for column in self.columns_]
        return np.repeat(np.arange(len(counts)), counts) if self.numbers else np.zeros(0, np.intp)

    @property
    def groups_(self) -> NDArray[np.intp]:
        """The group of each feature but numbers as they are; features of a group share their length scale."""
        widths = [width for encoder in self.columns_ for width in encoder.groups]
        return np.repeat(np.arange(len(widths)), widths) if sum(widths) else np.zeros(1, np.intp)

    @property
    def gaps_(self) -> list[int]:
        """Positions of the features that are 1 where an entry is missing, one for each column with gaps in training."""
        ends = np.cumsum([sum(encoder.groups) for encoder in self.columns_])
        return [
            int(end) - sum(encoder.groups) + encoder.gap
            for end, encoder in zip(ends, self.columns_, strict=True)
            if encoder.gap is not None
        ]

    def new_gaps(self, X: Any) -> NDArray[np.bool_]:
        """Where a number or a date is missing, of a column that had no gaps in training, (n, d)."""
        gaps = np.zeros((len(X), len(self.columns_)), dtype=bool)
        for place, (encoder, column) in enumerate(zip(self.columns_, read_columns(X), strict=True)):
            if encoder.gap is None and isinstance(encoder, (NumberColumn, DateColumn)):
                gaps[:, place] = _values(encoder, column)[1]
        return gaps

    def missing(self, features: Any) -> Matrix:
        """Of encoded rows, (n, g): where an entry is missing, for each column with gaps in training."""
        if isinstance(features, MixedRows):
            columns = [features.columns[gap] for gap in self.gaps_]
            return np.column_stack(columns) if columns else np.zeros((len(features), 0))
        return np.asarray(features[:, self.gaps_])


def _note_quantities(column: Column, kind: str) -> None:
    """Warn of numbers and dates that are compared as text."""
    known = list(dict.fromkeys(map(str, column.entries[~column.missing]))) if kind in ("category", "text") else []
    what = None if are_codes(known) else quantities(known)
    if what is not None:
        warn_user(
            f"column {column.name!r} holds {what} such as {shown(known[0])}, which are compared as text. Turn it into "
            f"{what.split()[0]}, or fit with kinds={{{column.name!r}: {kind!r}}} if that is right.",
            MercerWarning,
        )


def _fitted_encoder(kind: str, column: Column, weights: Vector | None, farthest: float) -> FeatureColumn:
    if kind == "text":
        return TextColumn.fit(column.entries, column.missing, weights)
    if kind == "category":
        return CategoryColumn.fit(column.entries, column.missing, weights)
    if kind == "date":
        return DateColumn.fit(*dates(column), weights, farthest=farthest)
    values, missing, words = numbers(column, weights=weights)
    if words:
        warn_user(
            f"column {column.name!r} holds numbers, and also {listing(words, 3)}, which count as missing. Correct the "
            f'column, or fit with kinds={{{column.name!r}: "category"}}.',
            MercerWarning,
        )
    return dataclasses.replace(NumberColumn.fit(values, missing, weights, farthest=farthest), words=words)


def _values(encoder: NumberColumn | CategoryColumn | DateColumn, column: Column) -> tuple[Any, Missing]:
    """The entries in the form that a fitted encoder reads, and where they are missing."""
    if isinstance(encoder, CategoryColumn):
        return column.entries, column.missing
    if isinstance(encoder, DateColumn):
        return dates(column)
    values, missing, _ = numbers(column, encoder.words)
    return values, missing


def checked_kinds(kinds: Mapping[str, str] | None, names: list[str]) -> Mapping[str, str]:
    """The kinds that a user gives to columns; none for None.

    Raises
    ------
    ParameterError
        If ``kinds`` is not a dict, or names a column or a kind that does not exist.
    """
    if kinds is None:
        return {}
    if not isinstance(kinds, Mapping):
        raise ParameterError(f'kinds must be a dict such as {{"zip": "category"}}, but is {kinds!r}.')
    for name, kind in kinds.items():
        if kind not in KINDS:
            raise ParameterError(f"there is no kind {kind!r} of column; choose one of {', '.join(KINDS)}.")
        if name not in names:
            near = closest_names(str(name), names)
            offer = f"did you mean {' or '.join(map(repr, near))}? " if near else ""
            raise ParameterError(f"kinds names the column {name!r}, which X lacks; {offer}X has {listing(names)}.")
    return kinds
