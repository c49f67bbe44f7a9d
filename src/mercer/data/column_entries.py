"""The entries of the columns of a table: where they are missing, what kind they are of, and their values."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time
from decimal import Decimal
from typing import Any

import numpy as np

from mercer._errors import DataError, SchemaError
from mercer._types import Vector
from mercer.data.column_features import Missing
from mercer.data.table import LARGEST, row_place
from mercer.data.text_columns import are_codes, is_missing_word, is_text, read_numbers
from mercer.data.words import shown

_FIRST_DAY = date(1970, 1, 1)
# Text in the form of ISO 8601 that ends with a time zone.
_ZONED = re.compile(r"[T ]\d\d.*(Z|[+-]\d\d(:?\d\d)?)", re.ASCII)

_BOOLEANS = {word: word.lower() == "true" for word in ("true", "True", "TRUE", "false", "False", "FALSE")}


@dataclass(frozen=True, eq=False)
class Column:
    """A column of a table: its name, its entries, where they are missing, and whether the table calls it a category."""

    name: str
    entries: np.ndarray
    missing: Missing
    is_category: bool = False


def read_columns(X: Any) -> Iterator[Column]:
    """The columns of a data frame or a two-dimensional array, one at a time; dates with a time zone in UTC.

    Raises
    ------
    DataError
        If two columns have the same name, or one holds complex numbers, or lists or other collections.
    """
    if hasattr(X, "columns"):
        names = [str(name) for name in X.columns]
        twice = next((name for name, count in Counter(names).items() if count > 1), None)
        if twice is not None:
            raise DataError(f"the table has several columns of the name {twice!r}; give each its own name.")
        for name, key in zip(names, X.columns, strict=True):
            yield _checked(_of_frame(name, X[key]))
        return
    X = np.asarray(X)
    for position, entries in enumerate(X.T):
        yield _checked(Column(f"x{position}", readable(entries), _is_missing(entries)))


def _of_frame(name: str, entries: Any) -> Column:
    missing = entries.isna() if hasattr(entries, "isna") else entries.is_null()
    if hasattr(entries, "dt") and getattr(entries.dtype, "tz", None) is not None:
        entries = entries.dt.tz_convert("UTC").dt.tz_localize(None)
    # Those of pandas and of polars.
    is_category = re.match("category|Categorical|Enum", str(entries.dtype)) is not None
    return Column(name, readable(entries.to_numpy()), np.asarray(missing.to_numpy(), dtype=bool), is_category)


def readable(entries: np.ndarray) -> np.ndarray:
    """Entries (n,) of which bytes are text and decimals are floats.

    Raises
    ------
    DataError
        If bytes are not UTF-8 text.

    Examples
    --------
    >>> readable(np.array([b"Ulm", None], dtype=object)).tolist()
    ['Ulm', None]
    """
    kinds = {bytes} if entries.dtype.kind == "S" else set(map(type, entries)) if entries.dtype.kind == "O" else set()
    if not kinds & {bytes, bytearray, Decimal}:
        return entries
    return np.array([_readable(entry) for entry in entries.tolist()], dtype=object)


def _readable(entry: Any) -> Any:
    if isinstance(entry, Decimal):
        return float(entry)
    if not isinstance(entry, (bytes, bytearray)):
        return entry
    try:
        return entry.decode("utf-8")
    except UnicodeDecodeError as error:
        raise DataError(
            f"a column holds bytes such as {shown(bytes(entry))}, which are not UTF-8 text. Turn them into numbers or "
            "text, or leave the column out."
        ) from error


def _is_missing(entries: np.ndarray) -> Missing:
    if entries.dtype.kind in "fc":
        return np.isnan(entries)
    if entries.dtype.kind in "mM":
        return np.isnat(entries)
    if entries.dtype.kind != "O":
        return np.zeros(len(entries), dtype=bool)
    nothing = {"NoneType", "NAType", "NaTType"}
    return np.array(
        [
            type(entry).__name__ in nothing or (isinstance(entry, (float, np.floating)) and entry != entry)
            for entry in entries
        ],
        dtype=bool,
    )


def _checked(column: Column) -> Column:
    """The column, if its entries are single real values."""
    known = column.entries[~column.missing] if column.entries.dtype.kind == "O" else column.entries[:1]
    for kind in {type(entry) for entry in known}:
        example = next(shown(entry) for entry in known if type(entry) is kind)
        if issubclass(kind, (complex, np.complexfloating)):
            raise DataError(
                f"Complex data not supported: column {column.name!r} holds complex numbers such as {example}; pass "
                "their real and imaginary parts as columns."
            )
        if issubclass(kind, Iterable) and not issubclass(kind, (str, bytes)):
            raise DataError(
                f"column {column.name!r} holds {kind.__name__} values such as {example}, but an entry must be a single "
                "number, date or text. Make a column of each part, or text of the whole (str)."
            )
    return column


def kind_of(column: Column, weights: Vector | None = None) -> str:
    """The kind that a column seems to be of; ``weights`` say how often each entry counts.

    Text is a number where at least 95 % of the entries are numbers in digits, or words for missing ones; digits with a
    leading zero are codes, which are categories. So is text that consists of booleans alone, as these are.

    >>> words = np.array(["red", "green", "red"], dtype=object)
    >>> kind_of(Column("colour", words, np.zeros(3, bool)))
    'category'
    >>> kind_of(Column("size", np.array(["3.5", "?", " 7 "], dtype=object), np.zeros(3, bool)))
    'number'
    >>> kind_of(Column("paid", np.array(["True", "False"], dtype=object), np.zeros(2, bool)))
    'number'
    """
    if column.is_category:
        return "category"
    if column.entries.dtype.kind in "biufm":
        return "number"
    if column.entries.dtype.kind == "M":
        return "date"
    known = column.entries[~column.missing]
    if all(isinstance(_boolean(entry), (bool, int, float, np.number, np.bool_)) for entry in known):
        return "number"
    counts = None if weights is None else weights[~column.missing]
    if read_numbers(known).are_nearly_all(counts) and not are_codes(known):
        return "number"
    if _dates([entry for entry in known if not is_missing_word(entry)]) is not None:
        return "date"
    return (
        "text"
        if is_text({str(entry) for entry in known}, len(known) if counts is None else counts.sum())
        else "category"
    )


def _boolean(entry: Any) -> Any:
    """An entry; a boolean if it is the text of one, in a spelling that files of separated values have."""
    return _BOOLEANS.get(entry.strip(), entry) if isinstance(entry, str) else entry


def numbers(
    column: Column, words: tuple[str, ...] | None = None, weights: Vector | None = None
) -> tuple[Vector, Missing, tuple[str, ...]]:
    """The numbers of a column (n,), where they are missing, and what other entries stand for missing ones.

    Parameters
    ----------
    column : Column
    words : tuple of str, optional
        What may stand for a missing number beside :data:`~mercer.data.text_columns.MISSING_WORDS`. None for what is
        in at most 5 % of the known entries.
    weights : ndarray of shape (n,), optional
        How often each entry counts.

    Raises
    ------
    DataError
        If another entry is not a number, or a number is not finite, or too large.

    Examples
    --------
    >>> column = Column("age", np.array(["31", "NA", "old"] + ["50"] * 20, dtype=object), np.zeros(23, bool))
    >>> values, missing, words = numbers(column)
    >>> missing[:4].tolist(), words
    ([False, True, True, False], ('old',))
    """
    values, missing = np.zeros(len(column.entries)), column.missing.copy()
    known = np.flatnonzero(~missing)
    entries = column.entries[known]
    if entries.dtype.kind == "m":
        values[known] = entries.astype("timedelta64[us]").astype(np.float64)
    elif entries.dtype.kind in "biuf":
        values[known] = entries
    else:
        read = read_numbers([_boolean(entry) for entry in entries])
        strange = [str(entries[place]).strip() for place in read.strange]
        if words is None:
            counts = None if weights is None else weights[known]
            words = tuple(sorted(set(strange))) if read.are_nearly_all(counts) else ()
        wrong = next((place for place, word in zip(read.strange, strange, strict=True) if word not in words), None)
        if wrong is not None:
            raise DataError(
                f"column {column.name!r} holds numbers, but {shown(entries[wrong])} in {row_place(int(known[wrong]))} "
                "cannot be read as a number. Correct it, leave it empty (NaN) if it is unknown, or fit with "
                f'kinds={{{column.name!r}: "category"}}.'
            )
        missing[known] = np.isnan(read.values)
        values[known] = np.where(missing[known], 0.0, read.values)
    large = np.flatnonzero(~missing & ~(np.abs(values) <= LARGEST))
    if large.size:
        row = int(large[0])
        raise DataError(
            f"column {column.name!r} holds {values[row]} in {row_place(row)}, but numbers must be finite (infinity is "
            f"not a number that can be learned) and at most {LARGEST:g} in size. Replace such values by NaN, which "
            "means missing."
        )
    return values, missing, words or ()


def dates(column: Column, locate: Callable[[int], str] = row_place) -> tuple[Vector, Missing]:
    """The dates of a column in seconds since 1970, (n,), and where they are missing.

    Raises
    ------
    DataError
        If an entry is not a date; the message gives the place of the first by ``locate``.
    """
    values, missing = np.zeros(len(column.entries)), column.missing.copy()
    if column.entries.dtype.kind == "M":
        values[~missing] = column.entries[~missing].astype("datetime64[us]").astype(np.float64) / 1e6
        return values, missing
    missing |= np.array([is_missing_word(entry) for entry in column.entries], dtype=bool)
    seconds = _dates(column.entries[~missing])
    if seconds is None:
        known = np.flatnonzero(~missing)
        strange = [row for row in known.tolist() if _dates([column.entries[row]]) is None] or known.tolist()
        raise DataError(f"{locate(strange[0])}, {not_dates(column.name, column.entries, strange)}")
    values[~missing] = seconds
    return values, missing


def dates_of(column: Any, name: str, source: str, locate: Callable[[int], str]) -> tuple[Vector, Missing]:
    """The dates of a column of a data frame in seconds since 1970, (n,), and where they are missing.

    Raises
    ------
    SchemaError
        If an entry is not a date; the message names the table and the place.
    """
    (read,) = read_columns(column.to_frame(name))
    try:
        return dates(read, locate)
    except DataError as error:
        raise SchemaError(f"{source}, {error}") from error


def not_dates(name: str, entries: Any, strange: Sequence[int]) -> str:
    """Return the message for entries that are not dates in a column of dates, by their rows; it begins with the column.

    >>> not_dates("day", ["2026-01-31", "31.01.2026"], [1])
    "column 'day': '31.01.2026' is not a date such as 2026-01-31 or 2026-01-31 08:30 (1 of 2 rows). Correct it, or \
leave it empty."
    """
    return (
        f"column {shown(name)}: {shown(entries[strange[0]])} is not a date such as 2026-01-31 or 2026-01-31 08:30 "
        f"({len(strange)} of {len(entries)} rows). Correct it, or leave it empty."
    )


def date_times(entries: np.ndarray) -> np.ndarray:
    """Entries (n,) of which times of day are those of the first day of 1970.

    >>> date_times(np.array([time(14, 5), None], dtype=object)).tolist()
    [datetime.datetime(1970, 1, 1, 14, 5), None]
    """
    if entries.dtype.kind != "O" or time not in set(map(type, entries)):
        return entries
    dated = [datetime.combine(_FIRST_DAY, entry) if isinstance(entry, time) else entry for entry in entries]
    return np.array(dated, dtype=object)


# Years and months alone are those of our time: 1001-01 is more likely a code.
_BEGIN = re.compile(r".{4}-(?=\d\d-)|(18|19|20)\d\d-\d\d\s*$", re.DOTALL)


def is_date(text: str) -> bool:
    """Whether a text is a date in the form of ISO 8601.

    >>> is_date("2026-02-28 08:30"), is_date("2026-02-30")
    (True, False)
    """
    return _dates([text]) is not None


def _dates(known: Sequence[Any] | np.ndarray) -> Vector | None:
    """Dates in seconds since 1970, if all entries are dates or text in the form of ISO 8601."""
    plausible = all(hasattr(entry, "isoformat") or (isinstance(entry, str) and _BEGIN.match(entry)) for entry in known)
    if not plausible:
        return None
    try:
        return np.array([_in_utc(entry) for entry in known], dtype="datetime64[us]").astype(np.float64) / 1e6
    except (TypeError, ValueError):
        return None


def _in_utc(entry: Any) -> str:
    """A date in the form of ISO 8601, in UTC if it has a time zone, which NumPy does not read.

    A time of day is that of the first day of 1970.
    """
    if isinstance(entry, time):
        entry = datetime.combine(_FIRST_DAY, entry)
    if isinstance(entry, str):
        text = entry.strip()
        if not _ZONED.search(text):
            return text
        entry = datetime.fromisoformat(text)
    if getattr(entry, "tzinfo", None) is not None and hasattr(entry, "astimezone"):
        entry = entry.astimezone(UTC).replace(tzinfo=None)
    return str(entry.isoformat())
