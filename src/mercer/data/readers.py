"""Readers: CSV, TSV, Parquet, libsvm and ``.npz`` files to a :class:`~mercer.data.table.Table`.

pandas, pyarrow, scikit-learn and NumPy do the parsing. Mercer chooses the reader, checks the header, and raises errors
that name the file, the line and the column.
"""

from __future__ import annotations

import csv
import gzip
import importlib
import re
import warnings
import zipfile
import zlib
from collections import Counter
from collections.abc import Callable, Collection
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import Any, TextIO

import numpy as np
import scipy.sparse as sp

from mercer._errors import DataError
from mercer._optional import optional
from mercer.data.archives import read_archive
from mercer.data.object_readers import read_folder, read_graphs
from mercer.data.sample_rows import load_sample
from mercer.data.sources import SAMPLE, check_source
from mercer.data.table import Table, is_number
from mercer.data.words import listing

# Lines from which the dialect of a text file is told.
_HEAD = 200
_FORMATS = ".csv, .tsv, .parquet, .libsvm (or .svmlight, .svm), .npz and .json; .csv, .tsv and .libsvm also with .gz"
_DAMAGE = (gzip.BadGzipFile, EOFError, zipfile.BadZipFile, zlib.error)
# A line with so many more separators than the header is looked at first: pandas would read all of its fields.
_MANY_MORE = 10_000
_QUOTATION = re.compile(r'"([^"]|"")*"\s*')
_LIBSVM_LINE = re.compile(r"[-+.\deE]+(\s+qid:\d+)?(\s+\d+:[-+.\deE]+)+\s*(#.*)?")


def read_table(source: str | Path, verbatim: Collection[str] = (), axes: str | None = None) -> Table:
    """Read a file, or the sample data set that ``sample:NAME`` names.

    Parameters
    ----------
    source : str or pathlib.Path
        A ``.csv``, ``.tsv``, ``.parquet``, ``.libsvm`` (``.svmlight``, ``.svm``) or ``.npz`` file, or
        ``"sample:NAME"`` with a name of :func:`mercer.data.samples.samples`. In CSV files the separator
        may be a comma, a semicolon, a tab or a bar; an empty field, ``?``, ``NA``, ``None``, ``null`` and
        ``NaN`` are missing values. A ``.npz`` file holds a two-dimensional array ``X`` and one-dimensional
        arrays that can be the target, ``y`` by default. Series are read from a ``.npz`` file (``X`` of shape (n,
        times, channels), padded with NaN: see :mod:`mercer.data.archives`) or from a folder, and graphs from a
        ``.json`` file: see :mod:`mercer.data.object_readers`.
    verbatim : collection of str
        Columns of text that are kept character by character: in CSV and TSV files ``0012`` is then not a number, ``NA``
        is not a missing value, and only an empty field is missing.
    axes : {"ntc", "nct"}, optional
        The order of the axes of series in a ``.npz`` file; ``"nct"`` for (n, channels, times). Default: the entry
        ``axes`` of the file, else ``"ntc"``.

    Raises
    ------
    DataError
        If the file does not exist, is empty, is of an unknown format, or cannot be read; the message gives line and
        column if the format has them.

    Examples
    --------
    >>> table = read_table("sample:iris")
    >>> table.n_rows, table.names[0], table.default_target
    (150, 'sepal length (cm)', 'species')
    """
    if axes is None and str(source).startswith(SAMPLE):
        return load_sample(str(source).removeprefix(SAMPLE))
    path = Path(source)
    if axes is not None and path.suffix.lower() != ".npz":
        raise DataError(f"{path}: axes apply only to series in a .npz file; leave them out.")
    if path.is_dir():
        return read_folder(path, read_table)
    check_source(source)
    suffixes = [suffix.lower() for suffix in path.suffixes]
    suffix = suffixes[-2] if len(suffixes) > 1 and suffixes[-1] == ".gz" else (suffixes or [""])[-1]
    reader = _READERS.get(suffix)
    if reader is None:
        if not _looks_like_libsvm(path):
            raise DataError(
                f"{path}: the format {suffix or 'of a file without a suffix'} is unknown; the known formats are "
                f"{_FORMATS}."
            )
        reader = _read_libsvm
    try:
        table = reader(path, verbatim) if axes is None else read_archive(path, axes)
    except _DAMAGE as error:
        raise DataError(_damaged(path, error)) from error
    except UnicodeDecodeError as error:
        raise DataError(_not_utf8(path)) from error
    except csv.Error as error:
        raise DataError(f"{path} cannot be read as separated values: {error}.") from error
    if table.n_rows == 0:
        raise DataError(f"{path} has no rows of data; at least one is needed to predict, and more to learn.")
    if table.columns.shape[1] == 0:
        raise DataError(f"{path} has no columns of data.")
    return table


def _damaged(path: Path, error: Exception) -> str:
    # Old versions of Python quote what they found instead of a header.
    text = str(error)
    return f"{path}: the file is damaged or was cut short: {text if len(text) <= 200 else text[:200] + '...'}."


def _open_text(path: Path) -> TextIO:
    if path.suffix.lower() == ".gz":
        return gzip.open(path, "rt", encoding="utf-8-sig", newline="")
    return path.open(encoding="utf-8-sig", newline="")


# --- comma- and tab-separated values ------------------------------------------------------------------------


class _Dialect(csv.excel):
    """How the fields of a file are set apart."""

    skipinitialspace = True

    def __init__(self, separator: str, quoted: bool = True) -> None:
        self.delimiter = separator
        self.quoting = csv.QUOTE_MINIMAL if quoted else csv.QUOTE_NONE
        super().__init__()


def _read_separated(path: Path, verbatim: Collection[str], separator: str | None = None) -> Table:
    pandas = optional("pandas", f"reading {path.name}")
    header, *rows = _first_lines(path)
    if separator is None:
        separator = max(",;\t|", key=lambda mark: len(_fields(header, _Dialect(mark))))
    dialect = _Dialect(separator, separator != "\t" or _is_quoted(path))
    names = _fields(header, dialect)
    _check_header(path, names)
    if any(row.count(separator) > len(names) + _MANY_MORE for row in rows):
        # Python's reader, unlike pandas', refuses fields of more than 128 KiB, which may well be data.
        with suppress(csv.Error):
            wide = _too_wide(path, dialect, len(names))
            if wide is not None:
                raise DataError(wide)
    # Files with semicolons mostly come from where the decimal point is a comma.
    fields = [field for row in rows for field in _fields(row, dialect)] if separator == ";" else []
    decimal = "," if any(re.fullmatch(r"[-+]?\d*,\d+", field) for field in fields) else "."
    try:
        with warnings.catch_warnings():
            # pandas warns where a line has more fields than the header, and then drops them.
            warnings.simplefilter("error", pandas.errors.ParserWarning)
            frame = pandas.read_csv(
                path,
                sep=separator,
                decimal=decimal,
                na_values=["?"],
                index_col=False,
                quoting=dialect.quoting,
                skipinitialspace=True,
                low_memory=False,
                encoding="utf-8-sig",
                converters={position: _guarded for position, name in enumerate(names) if name in verbatim},
            )
    except (pandas.errors.ParserError, pandas.errors.ParserWarning) as error:
        raise DataError(_parser_fault(path, dialect, len(names), str(error))) from error
    except pandas.errors.EmptyDataError as error:
        raise DataError(f"{path} is empty: it has no header line.") from error
    frame.columns = frame.columns.str.strip()
    for name in set(names) & set(verbatim):
        frame[name] = [field[1:] if isinstance(field, str) else np.nan for field in frame[name].astype(object)]
    return Table(frame, path.name, locate=_line_finder(path, dialect))


def _guarded(field: str) -> Any:
    """A field with a letter before it: some versions of pandas take ``NA`` for a gap even after a converter."""
    return f"={field}" if field.strip() else np.nan


def _fields(line: str, dialect: _Dialect) -> list[str]:
    try:
        fields = next(csv.reader([line], dialect))
    except csv.Error:
        # Python's reader refuses fields of more than 128 KiB: data, or a line that has another separator.
        fields = line.split(dialect.delimiter)
    return [field.strip() for field in fields]


def _is_quoted(path: Path) -> bool:
    """Whether quotation marks set fields apart in a file with tabs, or are letters of the text.

    They are letters where every line has its full number of tabs, and some field begins with one and is no whole
    quotation.
    """
    width, odd = None, False
    with _open_text(path) as lines:
        for line in lines:
            fields = line.rstrip("\r\n").split("\t")
            width = width or len(fields)
            if len(fields) != width and line.strip():
                return True
            odd = odd or any(field.startswith('"') and not _QUOTATION.fullmatch(field) for field in fields)
    return not odd


def _first_lines(path: Path) -> list[str]:
    """The header and what follows, as much as the dialect is told by; blank lines do not count."""
    with _open_text(path) as lines:
        first = list(islice((line.rstrip("\r\n") for line in lines if line.strip()), _HEAD))
    if not first:
        raise DataError(f"{path} is empty: it holds only blank lines.")
    if "\0" in first[0]:
        raise DataError(f"{path}, line 1: this is not a text file (it holds zero bytes); the formats are {_FORMATS}.")
    return first


def _check_header(path: Path, names: list[str]) -> None:
    twice = [name for name, count in Counter(names).items() if count > 1]
    if all(is_number(name) for name in names) or any(is_number(name) for name in twice):
        raise DataError(
            f"{path}, line 1: {listing(names, 4)} appear in place of column names; add a "
            "first line with a name for every column."
        )
    if twice:
        position = [i + 1 for i, name in enumerate(names) if name == twice[0]]
        raise DataError(
            f"{path}, line 1: the column name {twice[0]!r} appears in columns {position[0]} and {position[1]}; "
            "column names must be unique."
        )


def _parser_fault(path: Path, dialect: _Dialect, width: int, message: str) -> str:
    """The place and cause of what pandas could not parse, found by reading the file again, record by record."""
    if "EOF inside string" in message:
        line, column = _unclosed_quote(path, dialect)
        return f'{path}, line {line}, column {column}: a quotation mark (") is opened and never closed.'
    return _too_wide(path, dialect, width) or f"{path} cannot be read as separated values: {message}."


def _too_wide(path: Path, dialect: _Dialect, width: int) -> str | None:
    """The place of the first record with more fields than the header, in words; None if there is none."""
    with _open_text(path) as lines:
        records = csv.reader(lines, dialect)
        for record in records:
            if len(record) > width:
                return (
                    f"{path}, line {records.line_num}, column {width + 1}: the header has {width} columns, but this "
                    f"line has {len(record)} ({record[width]!r} is the first too many). Fields that hold the "
                    'separator must stand in quotation marks (").'
                )
    return None


def _unclosed_quote(path: Path, dialect: _Dialect) -> tuple[int, int]:
    """Line and column where the record begins that runs to the end of the file: its last field holds the mark."""
    line, following, fields = 1, 1, 1
    with _open_text(path) as lines:
        records = csv.reader(lines, dialect)
        for record in records:
            line, following, fields = following, records.line_num + 1, len(record)
    return line, fields


def _line_finder(path: Path, dialect: _Dialect) -> Callable[[int], str]:
    def locate(row: int) -> str:
        """The line of the record: quoted fields may hold line breaks, and blank lines do not count as records."""
        # Python's reader, unlike pandas', refuses fields of more than 128 KiB.
        with _open_text(path) as lines, suppress(csv.Error):
            records = csv.reader(lines, dialect)
            filled = -1
            for record in records:
                filled += any(field.strip() for field in record) or len(record) > 1
                if filled == row + 1:
                    return f"line {records.line_num}"
        return f"row {row + 1}"

    return locate


def _not_utf8(path: Path) -> str:
    try:
        with gzip.open(path) if path.suffix.lower() == ".gz" else path.open("rb") as file:
            data = file.read()
    except _DAMAGE as error:
        return _damaged(path, error)
    if data.startswith((b"\x1f\x8b", b"PK")):
        return f"{path} is a compressed file or a workbook, not text; save it as CSV, or name it .csv.gz if it is."
    try:
        data.decode("utf-8")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        column = error.start - (data.rfind(b"\n", 0, error.start) + 1) + 1
        return (
            f"{path}, line {line}, column {column}: the byte 0x{data[error.start]:02x} is not UTF-8 text. "
            "Save the file as UTF-8 (it may be Latin-1 or UTF-16 now)."
        )
    return f"{path} is not UTF-8 text."


# --- Parquet ------------------------------------------------------------------------------------------------


def _read_parquet(path: Path, _: Collection[str]) -> Table:
    pandas = optional("pandas", f"reading {path.name}")
    arrow = optional("pyarrow", f"reading {path.name}")
    try:
        frame = pandas.read_parquet(path, engine="pyarrow")
    except (arrow.ArrowException, OSError) as error:
        raise DataError(f"{path} cannot be read as Parquet: {str(error).splitlines()[0]}") from error
    # An index with a name is a column that pandas set apart; one without is the number of the row.
    frame = frame.reset_index(drop=frame.index.names == [None])
    frame.columns = [str(name) for name in frame.columns]
    return Table(frame, path.name)


# --- libsvm -------------------------------------------------------------------------------------------------


def _looks_like_libsvm(path: Path) -> bool:
    try:
        with _open_text(path) as lines:
            return _LIBSVM_LINE.fullmatch(lines.readline().strip()) is not None
    except (UnicodeDecodeError, OSError):
        return False


def _read_libsvm(path: Path, _: Collection[str]) -> Table:
    # Imported here and by name: scikit-learn's data sets bring packages that no other format needs.
    load = importlib.import_module("sklearn.datasets").load_svmlight_file
    try:
        # zero_based=True keeps the numbers of the file, so that two files of one data set always agree.
        X, y = load(str(path), zero_based=True)
    except (ValueError, IndexError, OverflowError) as error:
        raise DataError(_libsvm_fault(path, str(error))) from error
    return Table(sp.csr_matrix(X), path.name, {"label": y}, "label", lambda row: f"example {row + 1}")


def _libsvm_fault(path: Path, message: str) -> str:
    with _open_text(path) as lines:
        for number, line in enumerate(lines, start=1):
            last = -1
            for position, match in enumerate(re.finditer(r"\S+", line.partition("#")[0])):
                place = f"{path}, line {number}, column {match.start() + 1}"
                if position == 0 and not is_number(match[0]):
                    return f"{place}: the label {match[0]!r} is not a number; a line is 'label index:value ...'."
                if position == 0 or match[0].startswith("qid:"):
                    continue
                index, _, value = match[0].partition(":")
                if not index.isdigit() or not is_number(value):
                    return f"{place}: {match[0]!r} is not of the form index:value with two numbers."
                if int(index) <= last:
                    return f"{place}: the index {index} follows {last}; indices within a line must increase."
                last = int(index)
    return f"{path} cannot be read as a libsvm file: {message}."


def _read_tsv(path: Path, verbatim: Collection[str]) -> Table:
    return _read_separated(path, verbatim, "\t")


_READERS: dict[str, Callable[[Path, Collection[str]], Table]] = {
    ".csv": _read_separated,
    ".tsv": _read_tsv,
    ".tab": _read_tsv,
    ".parquet": _read_parquet,
    ".pq": _read_parquet,
    ".libsvm": _read_libsvm,
    ".svmlight": _read_libsvm,
    ".svm": _read_libsvm,
    ".npz": lambda path, _: read_archive(path),
    ".json": lambda path, _: read_graphs(path),
}
