"""The schema of a table: names and kinds of its columns, and the check of new tables against it."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from mercer._errors import DataError, MercerWarning, SchemaError, warn_user
from mercer._optional import optional
from mercer.data.column_entries import is_date, not_dates
from mercer.data.date_columns import are_dates
from mercer.data.fitted import Fitted
from mercer.data.notation import in_another_notation
from mercer.data.roles import ROLES
from mercer.data.statements import Count, Each, Maybe, Texts, Word
from mercer.data.text_columns import are_codes, are_too_many, is_text, read_numbers
from mercer.data.unknown import note_unknown
from mercer.data.words import closest_names, listing, shown

Locate = Callable[[int], str]

NO_VALUE = "(missing)"
"""The category of rows in which a column of categories is empty."""

# What seems to be a tree in brackets.
_TREE = re.compile(r"\s*\(.*\)\s*", re.DOTALL)
_NOTATION = {
    "numbers in another notation": "Read them with --parse-numbers, write them with digits and a decimal point alone, "
    "as in 1234.5",
    "dates": "Read them with --parse-numbers, write dates as in 2026-01-31, turn them into numbers",
}
_NAME = re.compile(r"\d+ ?[^\W\d_]+")
DATE = re.compile(r"\s*(\d{4}-\d\d-\d\d([T ]\d\d:\d\d.*)?|(1[89]|20)\d\d-(0[1-9]|1[0-2]))\s*")
"""A date that the model auto reads: year and month, the day, and what may follow."""


def quantities(texts: Collection[str]) -> str | None:
    """What texts are that as categories would say nothing about values in between; None for all others.

    Whole numbers before letters, as in 2B and 64GB, are names where there are few of them.

    >>> quantities(["1,100", "5 %"]), quantities(["31.08.2024"]), quantities(["1,100", "many"])
    ('numbers in another notation', 'dates', None)
    >>> quantities(["1B", "2B", "3B"] * 20), quantities(["1.5B", "2B", "3B"] * 20)
    (None, 'numbers in another notation')
    """
    different = set(texts)
    if not texts or (all(map(_NAME.fullmatch, different)) and not are_too_many(len(different), len(texts))):
        return None
    return "numbers in another notation" if in_another_notation(texts) else "dates" if are_dates(texts) else None


@dataclass(frozen=True)
class Schema:
    """The columns that a model expects in a table.

    Parameters
    ----------
    kinds : dict of str to str
        Name of each column that is used, in order, to ``"number"``, ``"boolean"``, ``"category"`` or ``"date"``, or to
        a role, a key of :data:`mercer.data.roles.ROLES`, for entries that are compared without encoding.
    categories : dict of str to list of str
        The categories seen in each category column.
    left_out : dict of str to str
        Columns of the data that are not used, with the reason.
    width : int or None
        For sparse matrices, which have no column names: the number of columns.
    indicators : list of str
        Columns of numbers and booleans whose gaps are filled in, and marked in a further column.
    """

    kinds: dict[str, str] = field(default_factory=dict)
    categories: dict[str, list[str]] = field(default_factory=dict)
    left_out: dict[str, str] = field(default_factory=dict)
    width: int | None = None
    indicators: list[str] = field(default_factory=list)
    _fitted: ClassVar[Fitted] = Fitted(
        {
            "kinds": Texts(Word(("number", "boolean", "category", "date", *ROLES))),
            "categories": Texts(Each(Word())),
            "left_out": Texts(Word()),
            "width": Maybe(Count(least=1)),
            "indicators": Each(Word()),
        },
        rules=(
            ("categories do not match the columns", lambda s: list(s.categories) == s.of_kind("category")),
            ("columns are both named and numbered", lambda s: not (s.kinds and s.width is not None)),
            (
                "indicators are not those of columns of numbers",
                lambda s: (
                    len(set(s.indicators)) == len(s.indicators)
                    and all(s.kinds.get(name) in ("number", "boolean") for name in s.indicators)
                ),
            ),
            ("a category occurs twice", lambda s: all(len(set(c)) == len(c) for c in s.categories.values())),
        ),
    )

    def of_kind(self, kind: str) -> list[str]:
        """Names of the columns of a kind."""
        return [name for name, its in self.kinds.items() if its == kind]

    @property
    def roles(self) -> dict[str, str]:
        """Columns whose entries are compared without encoding, and their roles."""
        return {name: kind for name, kind in self.kinds.items() if kind in ROLES}

    @property
    def encoded(self) -> dict[str, str]:
        """Columns that become numbers, and their kinds."""
        return {name: kind for name, kind in self.kinds.items() if kind not in ROLES}

    def only(self, names: Collection[str], why: str) -> Schema:
        """Return the schema of some of the columns; the others are left out, with a reason.

        >>> Schema({"age": "number", "size": "number"}).only(["age"], "not asked for").left_out
        {'size': 'not asked for'}
        """
        names = set(names)
        rest = {name: why for name in self.kinds if name not in names}
        return Schema(
            {name: kind for name, kind in self.kinds.items() if name in names},
            {name: values for name, values in self.categories.items() if name in names},
            {**self.left_out, **rest},
            self.width,
            [name for name in self.indicators if name in names],
        )

    @property
    def encoded_columns(self) -> int:
        """Number of columns that kernels see.

        There is one per number, boolean, known category, indicator of gaps, and column without encoding.
        """
        if self.width is not None:
            return self.width
        columns = sum(len(self.categories[name]) if kind == "category" else 1 for name, kind in self.kinds.items())
        return columns + len(self.indicators)

    def encoded_names(self) -> list[str]:
        """Their names: numbers, booleans, ``"town=Ulm"`` for every category, ``"age=(missing)"``, and others."""
        if self.width is not None:
            return [str(j) for j in range(self.width)]
        of_categories = [f"{name}={value}" for name, values in self.categories.items() for value in values]
        return [*self._plain(), *of_categories, *(f"{name}={NO_VALUE}" for name in self.indicators), *self.roles]

    def encoded_sources(self) -> list[str]:
        """The column of the table that each of them comes from."""
        if self.width is not None:
            return self.encoded_names()
        of_categories = [name for name, its in self.categories.items() for _ in its]
        return [*self._plain(), *of_categories, *self.indicators, *self.roles]

    def _plain(self) -> list[str]:
        return [*self.of_kind("number"), *self.of_kind("boolean")]

    def describe(self) -> str:
        """Describe the columns in words.

        >>> Schema({"age": "number", "town": "category"}, {"town": ["Ulm", "Zug"]}).describe()
        '1 number, 1 category column (2 values)'
        """
        if self.width is not None:
            return f"{self.width} numbered columns (sparse)"
        parts = []
        for kind in ("number", "boolean", "category", "date", *ROLES):
            count = len(self.of_kind(kind))
            if count:
                values = sum(len(values) for values in self.categories.values())
                word = kind if kind in ("number", "boolean", "date") else f"{kind} column"
                plural = "s" if count > 1 else ""
                parts.append(f"{count} {word}{plural}" + (f" ({values} values)" if kind == "category" else ""))
        return ", ".join(parts)

    def check_columns(self, X: Any, source: str) -> None:
        """Raise an error unless a data frame has the columns that the model uses; warn about unknown ones.

        Raises
        ------
        SchemaError
            If columns are missing; the message lists the missing and the extra ones, and the closest names. If ``X`` is
            a sparse matrix, whose columns have no names.
        """
        if not hasattr(X, "columns"):
            raise SchemaError(
                f"the model was fitted on named columns ({self.describe()}), but {source} is a libsvm file, whose "
                "columns have no names; pass a CSV, TSV or Parquet file."
            )
        names = [str(name) for name in X.columns]
        present = set(names)
        missing = [name for name in self.kinds if name not in present]
        extra = [name for name in names if name not in self.kinds and name not in self.left_out]
        if missing:
            pairs = []
            for name in missing[:5]:
                matches = closest_names(name, extra, 1)
                pairs.append(f"{name!r} (did you mean {matches[0]!r}, which is there?)" if matches else repr(name))
            more = f" and {len(missing) - 5} more" if len(missing) > 5 else ""
            also = f" It also has {listing(extra, 5)}, which the model does not use." if extra else ""
            raise SchemaError(
                f"{source} lacks {len(missing)} of the {len(self.kinds)} columns that the model was fitted on: "
                f"{', '.join(pairs)}{more}.{also} Rename the columns, or add them."
            )
        if extra:
            columns, are = ("columns", "are") if len(extra) > 1 else ("column", "is")
            warn_user(
                f"{source} has {len(extra)} {columns} that the model was not fitted on, which {are} ignored: "
                f"{listing(extra, 5)}.",
                MercerWarning,
            )


def note_unknown_categories(schema: Schema, frame: Any, source: str, treated: str) -> None:
    """Warn of categories that the schema does not have, with what is made of them.

    Warns
    -----
    MercerWarning
        For each column that has some.
    """
    for name, known in schema.categories.items():
        strange = sorted(set(frame[name].dropna()) - set(known))
        if strange:
            note_unknown(source, name, strange, int(frame[name].isin(strange).sum()), treated)


def infer_schema(
    frame: Any, source: str, locate: Locate, given: Mapping[str, str] | None = None, *, raw: bool = False
) -> Schema:
    """Infer the schema of a data frame; ``given`` has the kinds, or roles, of columns that are not what they seem.

    Numbers are numbers, booleans are booleans, text is a category, and a missing entry among text is a category too.
    Columns of text in which more than half of the values (and more than 20) are distinct are left out, as are empty
    columns and an unnamed column of row numbers. For learners that encode the columns themselves (``raw``), dates are
    dates, and text and sentences are text.

    Raises
    ------
    DataError
        If a column mixes numbers and text, or contains dates, lists or other values that cannot be encoded.
    """
    kinds: dict[str, str] = {}
    categories: dict[str, list[str]] = {}
    left_out: dict[str, str] = {}
    asked = given or {}
    # By column this would take milliseconds each, of which a wide table has thousands.
    empty = set(frame.columns[frame.isna().all().to_numpy()])
    for name in frame.columns:
        column = frame[name]
        why = why_useless(column, name in empty)
        if why:
            left_out[name] = why
            continue
        kind = asked.get(name) or (_raw_kind if raw else column_kind)(column, str(name), source, locate)
        if kind == "category":
            values = categories_of(column)
            if name not in asked and _is_text(values, len(frame), raw):
                trees = are_trees(values)
                if trees or not raw:
                    what = "trees" if trees else "text"
                    left_out[name] = f"{what}, {len(values)} different values in {len(frame)} rows"
                    continue
                kind = "text"
            else:
                categories[name] = values
        kinds[name] = kind
    if not kinds:
        raise no_column(left_out, source)
    return Schema(kinds, categories, left_out)


def _is_text(values: list[str], rows: int, raw: bool) -> bool:
    """Whether the values of a column are no categories."""
    if raw:
        return is_text([value for value in values if value != NO_VALUE], rows)
    # Sentences stay categories as long as they may be: these models compare no text unless a role says so.
    return are_too_many(len(values), rows)


def no_column(left_out: Mapping[str, str], source: str) -> DataError:
    """The error for a table all of whose columns are left out, for the reasons given."""
    way_out = next(
        (
            f' To compare it {how}, pass roles={{{name!r}: "{role}"}}.'
            for name, why in left_out.items()
            for role, how in (("text", "letter by letter"), ("tree", "as a tree"))
            if why.startswith(role)
        ),
        "",
    )
    return DataError(
        f"{source} has no column to learn from: "
        f"{', '.join(f'{shown(n)} is left out ({w})' for n, w in list(left_out.items())[:10])}.{way_out}"
    )


def why_useless(column: Any, empty: bool) -> str:
    """Why a column is left out of any model: an unnamed one of row numbers, or an empty one; else an empty text."""
    if re.fullmatch(r"Unnamed: \d+", str(column.name)) and _counts_rows(column):
        return "unnamed, counts the rows"
    return "empty in every row" if empty else ""


def categories_of(column: Any) -> list[str]:
    """The different values of a column as text, sorted, and last that of missing entries."""
    values = sorted({category_text(value) for value in column.dropna()})
    if column.isna().any() and NO_VALUE not in values:
        values.append(NO_VALUE)
    return values


def are_trees(values: Collection[str]) -> bool:
    """Whether all values seem to be trees in brackets.

    >>> are_trees(["(S (NP a) (VP b))"])
    True
    """
    return all(_TREE.fullmatch(value) for value in values if value != NO_VALUE)


def _counts_rows(column: Any) -> bool:
    if column.dtype.kind not in "iuf" or column.isna().any():
        return False
    # Rows in blocks have floats. Those that a filter has kept have gaps between them; where most steps are longer than
    # one, it may as well be a measurement in order.
    steps = np.diff(column.to_numpy())
    return bool((steps > 0).all() and (steps % 1 == 0).all() and (steps == 1).sum() >= 0.5 * len(steps))


def column_kind(column: Any, name: str, source: str, locate: Locate) -> str:
    """``"number"``, ``"boolean"`` or ``"category"``.

    Raises
    ------
    DataError
        As :func:`infer_schema`.
    """
    types = optional("pandas", "encoding columns").api.types
    if types.is_bool_dtype(column.dtype):
        return "boolean"
    if types.is_numeric_dtype(column.dtype) and not types.is_complex_dtype(column.dtype):
        return "number"
    if isinstance(column.dtype, optional("pandas", "encoding columns").CategoricalDtype):
        return "category"
    present = column.dropna()
    if types.is_string_dtype(column.dtype) or column.dtype == object:
        values = present.tolist()
        if values and all(isinstance(value, (bool, np.bool_)) for value in values):
            return "boolean"
        if values and all(hasattr(value, "isoformat") for value in values):
            raise _dates(name, str(values[0]), f"{source}, column {shown(name)}")
        strange = next((v for v in values if not isinstance(v, (str, int, float, np.number, bool))), None)
        if strange is None:
            return _number_or_category(column, name, source, locate)
        description = f"{type(strange).__name__} values such as {str(strange)[:40]!r}"
    elif types.is_datetime64_any_dtype(column.dtype):
        raise _dates(name, str(present.iloc[0]), f"{source}, column {shown(name)}")
    else:
        description = f"{column.dtype}"
    raise DataError(
        f"{source}: the column {shown(name)} holds {description}; columns must hold numbers, booleans or text. "
        f"Turn it into numbers, or leave it out with --drop {_shell(name)}."
    )


def _raw_kind(column: Any, name: str, source: str, locate: Locate) -> str:
    """As :func:`column_kind`, or a date."""
    types = optional("pandas", "reading columns").api.types
    if types.is_datetime64_any_dtype(column.dtype):
        return "date"
    if column.dtype == object or types.is_string_dtype(column.dtype):
        values = column.dropna().tolist()
        if values and all(hasattr(v, "isoformat") or (isinstance(v, str) and DATE.fullmatch(v)) for v in values):
            return "date"
    return column_kind(column, name, source, locate)


def _number_or_category(column: Any, name: str, source: str, locate: Locate) -> str:
    """A text column: a category, numbers if all parse; an error if most are numbers and some are not."""
    present = column.notna().to_numpy()
    entries = column[present].tolist()
    if are_codes(entries):
        return "category"
    text = np.flatnonzero(present)[read_numbers(entries).strange]
    if present.any() and text.size == 0:
        return "number"
    written = [str(entry).strip() for entry in column.iloc[text]]
    what = quantities(written)
    if present.any() and text.size < 0.5 * present.sum() and what is None:
        row = int(text[0])
        raise DataError(
            f"{source}, {locate(row)}, column {shown(name)}: {shown(column.iloc[row])} is text, but most of "
            f"the column ({int(present.sum()) - text.size} of {int(present.sum())} values) are numbers. Correct it, "
            f"leave the field empty if it is unknown, or leave the column out with --drop {_shell(name)}. The model "
            f'auto takes it as a category with --set \'kinds={{"{name}": "category"}}\'.'
        )
    if text.size and all(map(DATE.fullmatch, written)):
        others = set(np.flatnonzero(present).tolist()) - set(text.tolist())
        strange = sorted(
            others | {row for row, entry in zip(text.tolist(), written, strict=True) if not is_date(entry)}
        )
        if strange:
            message = not_dates(name, column.to_numpy(), strange)
            raise DataError(f"{source}, {locate(strange[0])}, {message}")
        raise _dates(name, written[0], f"{source}, {locate(int(text[0]))}, column {shown(name)}")
    if what is not None:
        raise DataError(
            f"{source}, {locate(int(text[0]))}, column {shown(name)}: the column holds {what} such as "
            f"{shown(written[0])}. {_NOTATION[what]}, or leave the column out with --drop {_shell(name)}."
        )
    return "category"


def _dates(name: str, example: str, place: str) -> DataError:
    """The error for dates that a model would have to read as numbers or categories."""
    return DataError(
        f"{place}: the column holds dates such as {shown(example)}, which the model auto alone reads. Use "
        f"mercer fit --model auto (without a search), turn them into numbers, or leave the column out with "
        f"--drop {_shell(name)}."
    )


def _shell(name: str) -> str:
    return name if re.fullmatch(r"[\w.-]+", name) else f'"{name}"'


def category_text(value: Any) -> str:
    """A category as text; whole floats as integers, which they were before a gap in the column made them floats.

    >>> category_text(3.0), category_text("Ulm")
    ('3', 'Ulm')
    """
    if isinstance(value, (float, np.floating)) and float(value).is_integer():
        return str(int(value))
    return str(value)
