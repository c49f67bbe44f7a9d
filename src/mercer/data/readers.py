"""Readers: CSV, TSV, workbooks, Parquet, libsvm, ``.npz`` and ``.ts`` files to a :class:`~mercer.data.table.Table`.

pandas, pyarrow, scikit-learn and NumPy do the parsing. Mercer chooses the reader, checks the header, and raises errors
that name the file, the line and the column.
"""

from __future__ import annotations

import csv
import importlib
from collections.abc import Callable, Collection
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from mercer._errors import DataError
from mercer._optional import optional
from mercer.data.archives import read_archive
from mercer.data.code_columns import may_have_codes, restore_codes
from mercer.data.graph_folders import indicator_of, read_graph_folder
from mercer.data.libsvm import libsvm_fault, looks_like_libsvm
from mercer.data.object_readers import read_folder, read_graphs
from mercer.data.sample_rows import load_sample
from mercer.data.separated import DAMAGE, FORMATS, Separated, damaged, not_utf8, open_text, separated
from mercer.data.series_files import read_ts
from mercer.data.sources import SAMPLE, check_source
from mercer.data.table import Table
from mercer.data.workbooks import SUFFIXES, read_workbook


def read_table(
    source: str | Path, verbatim: Collection[str] = (), axes: str | None = None, texts: Collection[str] = ()
) -> Table:
    """Read a file, or the sample data set that ``sample:NAME`` names.

    Parameters
    ----------
    source : str or pathlib.Path
        A ``.csv``, ``.tsv``, ``.parquet``, ``.libsvm`` (``.svmlight``, ``.svm``) or ``.npz`` file, or
        ``"sample:NAME"`` with a name of :func:`mercer.data.samples.samples`. In CSV files the separator
        may be a comma, a semicolon, a tab or a bar; an empty field, ``?``, ``NA``, ``None``, ``null`` and
        ``NaN`` are missing values (:data:`mercer.data.text_columns.MISSING_WORDS`), but a line with fewer fields than
        the header is an error, since it may have been cut. A column of digits alone, of which some begin with a zero,
        as in ``007``, holds codes, which stay text. A ``.npz`` file holds a two-dimensional
        array ``X`` and one-dimensional arrays that can be the target, ``y`` by default. Series are read from a ``.npz``
        file (``X`` of shape (n, times, channels), padded with NaN: see :mod:`mercer.data.archives`), a ``.ts`` file
        (:mod:`mercer.data.series_files`) or a folder, and graphs from a ``.json`` file (see
        :mod:`mercer.data.object_readers`) or a folder of the TU data sets (:mod:`mercer.data.graph_folders`). Of a
        workbook (``.xlsx``, ``.xls``, ``.ods``) the first sheet is read (:mod:`mercer.data.workbooks`).
    verbatim : collection of str
        Columns of text that are kept character by character: in CSV and TSV files ``12`` is then not a number, ``NA``
        is not a missing value, and only an empty field is missing.
    axes : {"ntc", "nct"}, optional
        The order of the axes of series in a ``.npz`` file; ``"nct"`` for (n, channels, times). Default: the entry
        ``axes`` of the file, else ``"ntc"``.
    texts : collection of str
        Columns that are known not to hold numbers, such as categories: in CSV and TSV files their entries stay as they
        are written, so that ``1.10`` is not ``1.1``. Words for missing values are missing values.

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
        return read_folder(path, read_table) if indicator_of(path) is None else read_graph_folder(path)
    check_source(source)
    suffixes = [suffix.lower() for suffix in path.suffixes]
    suffix = suffixes[-2] if len(suffixes) > 1 and suffixes[-1] == ".gz" else (suffixes or [""])[-1]
    reader = _READERS.get(suffix)
    if reader is None:
        if not looks_like_libsvm(path):
            raise DataError(
                f"{path}: the format {suffix or 'of a file without a suffix'} is unknown; the known formats are "
                f"{FORMATS}."
            )
        reader = _read_libsvm
    try:
        table = reader(path, verbatim, texts) if axes is None else read_archive(path, axes)
    except DAMAGE as error:
        raise DataError(damaged(path, error)) from error
    except UnicodeDecodeError as error:
        raise DataError(not_utf8(path)) from error
    except csv.Error as error:
        raise DataError(f"{path} cannot be read as separated values: {error}.") from error
    if table.n_rows == 0:
        raise DataError(f"{path} has no rows of data; at least one is needed to predict, and more to learn.")
    if table.columns.shape[1] == 0:
        raise DataError(f"{path} has no columns of data.")
    return table


# --- comma- and tab-separated values ------------------------------------------------------------------------


def _read_separated(
    path: Path, verbatim: Collection[str], texts: Collection[str], separator: str | None = None
) -> Table:
    pandas = optional("pandas", f"reading {path.name}")
    layout = separated(path, separator)
    names = layout.names
    layout.note_numbers([*verbatim, *texts])
    with layout.reading():
        frame = pandas.read_csv(
            path,
            converters={position: _guarded for position, name in enumerate(names) if name in verbatim},
            dtype={position: str for position, name in enumerate(names) if name in texts and name not in verbatim},
            **layout.options(),
        )
        with open_text(path) as lines:
            has_codes = may_have_codes(lines, layout.dialect.delimiter)
        if has_codes:
            restore_codes(frame, _written(layout))
    if frame.iloc[:, -1].isna().any():
        layout.require_full()
    frame.columns = frame.columns.str.strip()
    for name in set(names) & set(verbatim):
        frame[name] = [field[1:] if isinstance(field, str) else np.nan for field in frame[name].astype(object)]
    return Table(frame, path.name, locate=layout.line_finder(), written=lambda: _written(layout))


def _written(layout: Separated) -> Any:
    """The columns as text."""
    frame = optional("pandas", f"reading {layout.path.name}").read_csv(layout.path, dtype=str, **layout.options())
    frame.columns = frame.columns.str.strip()
    return frame


def _guarded(field: str) -> Any:
    """A field with a letter before it: some versions of pandas take ``NA`` for a gap even after a converter."""
    return f"={field}" if field.strip() else np.nan


# --- Parquet ------------------------------------------------------------------------------------------------


def _read_parquet(path: Path, *_: Collection[str]) -> Table:
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


def _read_libsvm(path: Path, *_: Collection[str]) -> Table:
    # Imported here and by name: scikit-learn's data sets bring packages that no other format needs.
    load = importlib.import_module("sklearn.datasets").load_svmlight_file
    try:
        # zero_based=True keeps the numbers of the file, so that two files of one data set always agree.
        X, y = load(str(path), zero_based=True)
    except (ValueError, IndexError, OverflowError) as error:
        raise DataError(libsvm_fault(path, str(error))) from error
    return Table(sp.csr_matrix(X), path.name, {"label": y}, "label", lambda row: f"example {row + 1}")


def _read_tsv(path: Path, verbatim: Collection[str], texts: Collection[str]) -> Table:
    return _read_separated(path, verbatim, texts, "\t")


_READERS: dict[str, Callable[[Path, Collection[str], Collection[str]], Table]] = {
    ".csv": _read_separated,
    ".tsv": _read_tsv,
    ".tab": _read_tsv,
    ".parquet": _read_parquet,
    ".pq": _read_parquet,
    ".libsvm": _read_libsvm,
    ".svmlight": _read_libsvm,
    ".svm": _read_libsvm,
    ".npz": lambda path, *_: read_archive(path),
    ".json": lambda path, *_: read_graphs(path),
    ".ts": lambda path, *_: read_ts(path),
    **dict.fromkeys(SUFFIXES, lambda path, *_: read_workbook(path)),
}
