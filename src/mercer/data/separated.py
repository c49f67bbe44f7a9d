"""Files of separated values: how their fields are set apart, and the places of their faults."""

from __future__ import annotations

import csv
import re
import warnings
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from mercer._errors import DataError, MercerWarning, warn_user
from mercer._optional import optional
from mercer.data.table import is_number
from mercer.data.text_columns import MISSING_WORDS
from mercer.data.text_files import TextFile
from mercer.data.words import listing

FORMATS = (
    ".csv, .tsv, .txt, .parquet, .arrow (or .feather), .libsvm (or .svmlight, .svm), "
    ".npz, .json, .ts, .xlsx (or .xls, .ods); those of text also with .gz, or in a .zip of their own"
)
# Lines from which the dialect of a text file is inferred.
_HEAD = 200
# A line with so many more separators than the header is looked at first: pandas would read all of its fields.
_MANY_MORE = 10_000
# Digits with one mark that may stand before decimals; between thousands, three digits follow each, and no zero leads.
_NUMBER = re.compile(r"[-+]?\d*(?P<mark>[.,])\d+(?:[eE][-+]?\d+)?", re.ASCII)
_THOUSANDS = re.compile(r"[-+]?[1-9]\d{0,2}[.,]\d{3}", re.ASCII)
_QUOTATION = re.compile(r'"([^"]|"")*"\s*')


class Dialect(csv.excel):
    """How the fields of a file are set apart."""

    skipinitialspace = True

    def __init__(self, separator: str, quoted: bool = True) -> None:
        self.delimiter = separator
        self.quoting = csv.QUOTE_MINIMAL if quoted else csv.QUOTE_NONE
        super().__init__()


@dataclass(frozen=True)
class Separated:
    """A file of separated values: the names of its columns, its dialect and its decimal mark.

    In the columns ``left_open``, the comma that is taken for the decimal mark may also stand between thousands.
    """

    file: TextFile
    names: list[str]
    dialect: Dialect
    decimal: str
    left_open: frozenset[str] = frozenset()

    def note_numbers(self, texts: Collection[str]) -> None:
        """Warn of numbers that may have another size, but for columns that are read as text.

        Warns
        -----
        MercerWarning
            With the columns.
        """
        names = [name for name in self.names if name in self.left_open and name not in texts]
        if names:
            warn_user(
                f"{self.file}: {listing(names, 3)}: three digits follow every comma, as in 1,050, which is read as "
                "1.05 as in other files with semicolons. If the commas stand between thousands, leave them out.",
                MercerWarning,
            )

    @property
    def path(self) -> Path:
        """The path of the file."""
        return self.file.path

    @property
    def _options(self) -> dict[str, Any]:
        """Arguments of ``pandas.read_csv`` for this file."""
        return {
            "sep": self.dialect.delimiter,
            "decimal": self.decimal,
            "na_values": sorted(MISSING_WORDS),
            "keep_default_na": False,
            "index_col": False,
            "quoting": self.dialect.quoting,
            "skipinitialspace": True,
            "low_memory": False,
        }

    def frames(self, types: Mapping[str, Any], rows: int | None = None, **more: Any) -> Iterator[Any]:
        """Yield data frames of at most so many rows with all columns, or one of the whole file.

        All columns are read: with a choice of them, pandas does not see lines with too many fields. Before version 3.1
        it does not see them either where such a line is the first of a later part.

        Parameters
        ----------
        types : dict of str to str or type
            Those of columns that pandas does not infer.
        rows : int, optional
        more
            Further arguments of ``pandas.read_csv``.
        """
        pandas = optional("pandas", f"reading {self.file.name}")
        options = {**self._options, "header": 0, "names": self.names, "dtype": dict(types), **more}
        with self.file.open("whole" if rows is None else "part") as lines:
            if rows is None:
                yield pandas.read_csv(lines, **options)
                return
            with pandas.read_csv(lines, chunksize=rows, **options) as reader:
                for frame in reader:
                    lines.begin_part()
                    if len(frame):
                        yield frame

    @contextmanager
    def reading(self) -> Iterator[None]:
        """As :meth:`errors`, and the warnings of pandas about lines of other lengths are errors, too."""
        kinds = optional("pandas", f"reading {self.file.name}").errors
        with self.errors(), warnings.catch_warnings():
            # pandas warns where a line has more fields than the header, and then drops them.
            warnings.simplefilter("error", kinds.ParserWarning)
            yield

    @contextmanager
    def errors(self) -> Iterator[None]:
        """Turn the errors of ``pandas.read_csv`` in the block into errors that name line and column."""
        errors = optional("pandas", f"reading {self.file.name}").errors
        try:
            yield
        except (errors.ParserError, errors.ParserWarning) as error:
            raise DataError(self._fault(str(error))) from error
        except errors.EmptyDataError as error:
            raise DataError(f"{self.file} is empty: it has no header line.") from error
        except OverflowError as error:
            raise DataError(
                f"{self.file} has a whole number of over 300 digits, which this version of pandas cannot read; update "
                "pandas, or write an 'x' in front of digits that are codes."
            ) from error

    def line_finder(self) -> Callable[[int], str]:
        """Return a function from the number of a row, from 0, to its line in words."""
        return _line_finder(self.file, self.dialect)

    def require_full(self) -> None:
        """Raise ``DataError`` if a line has fewer fields than the header.

        pandas fills such lines with missing values, the last column among them. So this pass over the file is needed
        only if that column has some.
        """
        short = _too_narrow(self.file, self.dialect, len(self.names))
        if short is not None:
            raise DataError(short)

    def _fault(self, message: str) -> str:
        """The place and cause of what pandas could not parse, found by reading the file again, record by record."""
        if "EOF inside string" in message:
            line, column = _unclosed_quote(self.file, self.dialect)
            return f'{self.file}, line {line}, column {column}: a quotation mark (") is opened and never closed.'
        wide = _too_wide(self.file, self.dialect, len(self.names))
        return wide or f"{self.file} cannot be read as separated values: {message}."


def separated(file: TextFile, separator: str | None = None, *, whole: bool = True) -> Separated:
    """Return how the fields of a file are set apart, inferred from its first lines.

    In files with tabs, quotation marks may be letters of the text; with ``whole``, all lines are read to decide.

    Raises
    ------
    DataError
        If the file has no header, or a line near the beginning has far too many fields.
    """
    header, *rows = _first_lines(file)
    if separator is None:
        separator = max(",;\t|", key=lambda mark: len(_fields(header, Dialect(mark))))
    dialect = Dialect(separator, separator != "\t" or _is_quoted(file, None if whole else _HEAD))
    names = _header(file, dialect)
    _check_header(file, names)
    # As pandas calls them where it reads the header.
    for place, name in enumerate(names):
        if not name:
            names[place] = f"Unnamed: {place}"
            while names.count(names[place]) > 1:
                names[place] += ".1"
    if any(row.count(separator) > len(names) + _MANY_MORE for row in rows):
        # Python's reader, unlike pandas', raises for fields of more than 128 KiB, which may well be data.
        with suppress(csv.Error):
            wide = _too_wide(file, dialect, len(names))
            if wide is not None:
                raise DataError(wide)
    # Files with semicolons mostly come from where the decimal point is a comma.
    decimal, is_open = _decimal(file, rows, dialect) if separator == ";" else (".", frozenset())
    return Separated(file, names, dialect, decimal, frozenset(names[place] for place in is_open if place < len(names)))


def _header(file: TextFile, dialect: Dialect) -> list[str]:
    """The fields of the first record, which may hold line breaks within quotation marks."""
    # Python's reader raises for fields of more than 128 KiB: a quotation mark that is never closed.
    with file.open("part") as lines, suppress(csv.Error):
        return [field.strip() for field in next(filter(_is_filled, csv.reader(lines, dialect)))]
    return _fields(_first_lines(file)[0], dialect)


def _fields(line: str, dialect: Dialect) -> list[str]:
    try:
        fields = next(csv.reader([line], dialect))
    except csv.Error:
        # Python's reader raises for fields of more than 128 KiB: data, or a line that has another separator.
        fields = line.split(dialect.delimiter)
    return [field.strip() for field in fields]


def _decimal(file: TextFile, head: list[str], dialect: Dialect) -> tuple[str, frozenset[int]]:
    """The mark before decimals, and the positions of columns that leave it open.

    It is that of any number that has it elsewhere than before three digits. All lines are read if the first ones leave
    it open. If the others do as well, it is the comma.
    """
    marks = _marks(head, dialect)
    if set(marks) == {""}:
        with file.open() as lines:
            marks = _marks(lines, dialect)
    is_open = set(marks) == {""}
    return "," if "," in marks or is_open else ".", frozenset(marks[""] if is_open else ())


def _marks(lines: Iterable[str], dialect: Dialect) -> dict[str, set[int]]:
    """The marks before decimals that numbers show, with their columns; an empty text for numbers such as 1,050."""
    marks: dict[str, set[int]] = {}
    for line in lines:
        for position, field in enumerate(_fields(line.rstrip("\r\n"), dialect)):
            number = _NUMBER.fullmatch(field)
            if number is None:
                continue
            if not _THOUSANDS.fullmatch(field):
                marks.setdefault(number["mark"], set()).add(position)
            elif number["mark"] == ",":
                marks.setdefault("", set()).add(position)
        if "," in marks:
            break
    return marks


def _is_quoted(file: TextFile, most: int | None) -> bool:
    """Whether quotation marks set fields apart in a file with tabs, or are letters of the text.

    They are letters where every line (of the first ``most``) has its full number of tabs, and some field begins with
    one and is not a whole quotation.
    """
    width, odd = None, False
    with file.open() as lines:
        for line in islice(lines, most):
            fields = line.rstrip("\r\n").split("\t")
            width = width or len(fields)
            if len(fields) != width and line.strip():
                return True
            odd = odd or any(field.startswith('"') and not _QUOTATION.fullmatch(field) for field in fields)
    return not odd


def _first_lines(file: TextFile) -> list[str]:
    """The header and the following lines from which the dialect is inferred; blank lines do not count."""
    with file.open("part") as lines:
        first = list(islice((line.rstrip("\r\n") for line in lines if line.strip()), _HEAD))
    if not first:
        raise DataError(f"{file} is empty: it holds only blank lines.")
    if "\0" in first[0]:
        raise DataError(f"{file}, line 1: this is not a text file (it holds zero bytes); the formats are {FORMATS}.")
    return first


def _check_header(file: TextFile, names: list[str]) -> None:
    twice = [name for name, count in Counter(names).items() if count > 1]
    if all(is_number(name) for name in names) or any(is_number(name) for name in twice):
        raise DataError(
            f"{file}, line 1: {listing(names, 4)} appear in place of column names; add a "
            "first line with a name for every column."
        )
    if twice:
        position = [i + 1 for i, name in enumerate(names) if name == twice[0]]
        raise DataError(
            f"{file}, line 1: the column name {twice[0]!r} appears in columns {position[0]} and {position[1]}; "
            "column names must be unique."
        )


def _too_wide(file: TextFile, dialect: Dialect, width: int) -> str | None:
    """The place of the first record with more fields than the header, in words; None if there is none."""
    with file.open() as lines:
        records = csv.reader(lines, dialect)
        for record in records:
            if len(record) > width:
                return (
                    f"{file}, line {records.line_num}, column {width + 1}: the header has {width} columns, but this "
                    f"line has {len(record)} ({record[width]!r} is the first too many). Fields that hold the "
                    'separator must stand in quotation marks (").'
                )
    return None


def _too_narrow(file: TextFile, dialect: Dialect, width: int) -> str | None:
    """The place of the first record with fewer fields than the header, and their number; None if there is none."""
    first, length, last, count = 0, 0, False, 0
    # Python's reader, unlike pandas', raises for fields of more than 128 KiB.
    with file.open() as lines, suppress(csv.Error):
        records = csv.reader(lines, dialect)
        for record in records:
            if not _is_filled(record):
                continue
            last = len(record) < width
            if last and count == 0:
                first, length = records.line_num, len(record)
            count += last
    if count == 0:
        return None
    others = f", and so have {count - 1} later lines" if count > 2 else ", and so has a later line" if count > 1 else ""
    cause = "It is the last line: the file may have been cut short. " if last and count == 1 else ""
    return (
        f"{file}, line {first}: the header has {width} columns, but this line has {length}{others}. {cause}Correct the "
        "file; a missing value needs its separator, so that its line has as many as the header."
    )


def _is_filled(record: list[str]) -> bool:
    """Whether a record is a row: a blank line is not."""
    return any(field.strip() for field in record) or len(record) > 1


def _unclosed_quote(file: TextFile, dialect: Dialect) -> tuple[int, int]:
    """Line and column where the record begins that runs to the end of the file: its last field holds the mark."""
    line, following, fields = 1, 1, 1
    with file.open() as lines:
        records = csv.reader(lines, dialect)
        for record in records:
            line, following, fields = following, records.line_num + 1, len(record)
    return line, fields


def _line_finder(file: TextFile, dialect: Dialect) -> Callable[[int], str]:
    def locate(row: int) -> str:
        """The line of the record: quoted fields may hold line breaks, and blank lines do not count as records."""
        # Python's reader, unlike pandas', raises for fields of more than 128 KiB.
        with file.open() as lines, suppress(csv.Error):
            records = csv.reader(lines, dialect)
            filled = -1
            for record in records:
                filled += _is_filled(record)
                if filled == row + 1:
                    return f"line {records.line_num}"
        return f"row {row + 1}"

    return locate
