"""Readers: CSV, TSV, workbooks, Parquet, libsvm, ``.npz`` and ``.ts`` files to a :class:`~mercer.data.table.Table`.

pandas, pyarrow, scikit-learn and NumPy do the parsing. Mercer chooses the reader, checks the header, and raises errors
that name the file, the line and the column.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from mercer._errors import DataError
from mercer._optional import optional
from mercer.data.archives import read_archive
from mercer.data.code_columns import may_have_codes, restore_codes
from mercer.data.graph_folders import indicator_of, read_graph_folder
from mercer.data.libsvm import first_feature, looks_like_libsvm, read_parts, require_features
from mercer.data.object_readers import read_folder, read_graphs
from mercer.data.sample_rows import load_sample
from mercer.data.separated import FORMATS, Separated, separated
from mercer.data.series_files import read_ts
from mercer.data.sources import SAMPLE, check_source
from mercer.data.table import Table
from mercer.data.text_files import TextFile, named_faults, suffix_of
from mercer.data.workbooks import SUFFIXES, read_workbook
from mercer.engine import memory


def read_table(
    source: str | Path,
    verbatim: Collection[str] = (),
    axes: str | None = None,
    texts: Collection[str] = (),
    *,
    encoding: str | None = None,
    sheet: str | None = None,
) -> Table:
    """Read a file, or the sample data set that ``sample:NAME`` names.

    Parameters
    ----------
    source : str or pathlib.Path
        A ``.csv``, ``.tsv``, ``.txt``, ``.parquet``, ``.arrow``, ``.libsvm`` (``.svmlight``, ``.svm``) or ``.npz``
        file, or ``"sample:NAME"`` with a name of :func:`mercer.data.samples.samples`. Text may be packed
        (:class:`mercer.data.text_files.TextFile`). In CSV files the separator may be a comma, a semicolon, a tab or a
        bar; an empty field, ``?``, ``NA``, ``None``, ``null`` and ``NaN`` are missing values
        (:data:`mercer.data.text_columns.MISSING_WORDS`), but a line with fewer fields than the header is an error,
        since it may have been cut. A column of digits alone, of which some begin with a zero, as in ``007``, holds
        codes, which stay text. A ``.npz`` file holds a two-dimensional array ``X`` and one-dimensional arrays that can
        be the target, ``y`` by default. Series are read from a ``.npz`` file (``X`` of shape (n, times, channels),
        padded with NaN: see :mod:`mercer.data.archives`), a ``.ts`` file (:mod:`mercer.data.series_files`) or a
        folder, and graphs from a ``.json`` file (see :mod:`mercer.data.object_readers`) or a folder of the TU data
        sets (:mod:`mercer.data.graph_folders`). Workbooks are ``.xlsx``, ``.xls`` and ``.ods`` files
        (:mod:`mercer.data.workbooks`).
    verbatim : collection of str
        Columns of text that are kept character by character: in CSV and TSV files ``12`` is then not a number, ``NA``
        is not a missing value, and only an empty field is missing.
    axes : {"ntc", "nct"}, optional
        The order of the axes of series in a ``.npz`` file; ``"nct"`` for (n, channels, times). Default: the entry
        ``axes`` of the file, else ``"ntc"``.
    texts : collection of str
        Columns that are known not to hold numbers, such as categories: in CSV and TSV files their entries stay as they
        are written, so that ``1.10`` is not ``1.1``. Words for missing values are missing values.
    encoding : str, optional
        That of a text file. Default: UTF-8, or UTF-16 if the file has its byte order mark.
    sheet : str, optional
        The sheet of a workbook by its name, or its number from 1 on. Default: the first.

    Raises
    ------
    DataError
        If the file does not exist, is empty, is of an unknown format, or cannot be read; the message gives line and
        column if the format has them.
    MemoryBudgetError
        If its text does not fit the memory budget.
    ParameterError
        If there is no such encoding.

    Examples
    --------
    >>> table = read_table("sample:iris")
    >>> table.n_rows, table.names[0], table.default_target
    (150, 'sepal length (cm)', 'species')
    """
    if axes is None and str(source).startswith(SAMPLE):
        if encoding is not None or sheet is not None:
            raise DataError(f"{source} is not a file, so it has no encoding and no sheets; leave the option out.")
        return load_sample(str(source).removeprefix(SAMPLE))
    path = Path(source)
    if axes is not None and path.suffix.lower() != ".npz":
        raise DataError(f"{path}: axes apply only to series in a .npz file; leave them out.")
    if sheet is not None and suffix_of(path, inside=False) not in SUFFIXES:
        raise DataError(f"{path} has no sheets, so none can be chosen; leave --sheet out.")
    if path.is_dir():
        # Of a folder of series, all files have one encoding.
        read = partial(read_table, encoding=encoding)
        return read_folder(path, read) if indicator_of(path) is None else read_graph_folder(path)
    check_source(source)
    suffix, file = suffix_of(path), TextFile(path, encoding)
    read_text = _TEXT_READERS.get(suffix)
    if read_text is None and suffix not in _READERS:
        read_text = _read_libsvm if looks_like_libsvm(file) else None
    if read_text is None and suffix not in _READERS:
        raise DataError(
            f"{path}: the format {suffix or 'of a file without a suffix'} is unknown; the known formats are {FORMATS}."
        )
    if read_text is None and encoding is not None:
        raise DataError(f"{path} is not a text file, so it has no encoding; leave --encoding out.")
    if read_text is None and path.suffix.lower() != suffix:
        raise DataError(f"{path} holds a {suffix} file, and only text is read from such a file; unpack it.")
    with named_faults(file):
        if read_text is not None:
            table = read_text(file, verbatim, texts)
        elif sheet is not None:
            table = read_workbook(path, sheet)
        else:
            table = _READERS[suffix](path) if axes is None else read_archive(path, axes)
    if table.n_rows == 0:
        raise DataError(f"{path} has no rows of data; at least one is needed to predict, and more to learn.")
    if table.columns.shape[1] == 0:
        raise DataError(f"{path} has no columns of data.")
    return table


# --- comma- and tab-separated values ------------------------------------------------------------------------


def _read_separated(
    file: TextFile, verbatim: Collection[str], texts: Collection[str], separator: str | None = None
) -> Table:
    layout = separated(file, separator)
    kept = [name for name in layout.names if name in verbatim]
    layout.note_numbers([*verbatim, *texts])
    with layout.reading():
        types = {name: str for name in layout.names if name in texts and name not in verbatim}
        (frame,) = layout.frames(types, converters=dict.fromkeys(kept, _guarded))
        with file.open() as lines:
            has_codes = may_have_codes(lines, layout.dialect.delimiter)
        if has_codes:
            restore_codes(frame, _written(layout))
    if frame.iloc[:, -1].isna().any():
        layout.require_full()
    for name in kept:
        frame[name] = [field[1:] if isinstance(field, str) else np.nan for field in frame[name].astype(object)]
    return Table(frame, file.name, locate=layout.line_finder(), written=lambda: _written(layout))


def _written(layout: Separated) -> Any:
    """The columns as text."""
    (frame,) = layout.frames(dict.fromkeys(layout.names, str))
    return frame


def _guarded(field: str) -> Any:
    """A field with a letter before it: some versions of pandas take ``NA`` for a gap even after a converter."""
    return f"={field}" if field.strip() else np.nan


# --- Parquet and Arrow --------------------------------------------------------------------------------------


def _read_parquet(path: Path) -> Table:
    def read(pandas: Any) -> Any:
        stated = optional("pyarrow.parquet", f"reading {path.name}").read_metadata(path)
        # Repeated values are packed: a file of two megabytes may hold a billion numbers.
        memory.require(8 * stated.num_rows * stated.num_columns, f"the table of {stated.num_rows:,} rows in {path}")
        return pandas.read_parquet(path, engine="pyarrow")

    return _read_arrow(path, "Parquet", read)


def _read_feather(path: Path) -> Table:
    return _read_arrow(path, "Arrow", lambda pandas: pandas.read_feather(path))


def _read_arrow(path: Path, what: str, read: Callable[[Any], Any]) -> Table:
    pandas = optional("pandas", f"reading {path.name}")
    arrow = optional("pyarrow", f"reading {path.name}")
    try:
        frame = read(pandas)
    except (arrow.ArrowException, OSError) as error:
        raise DataError(f"{path} cannot be read as {what}: {str(error).splitlines()[0]}") from error
    # An index with a name is a column that pandas set apart; one without is the number of the row.
    frame = frame.reset_index(drop=frame.index.names == [None])
    frame.columns = [str(name) for name in frame.columns]
    return Table(frame, path.name)


# --- libsvm -------------------------------------------------------------------------------------------------


def _read_libsvm(file: TextFile, *_: Collection[str]) -> Table:
    parts, labels, size = [], [], 0
    for X, y in read_parts(file):
        size += X.data.nbytes + X.indices.nbytes + X.indptr.nbytes
        # Beside the parts, the whole that is made of them.
        memory.require(2 * size, f"reading {file}")
        parts.append(X)
        labels.append(y)
    if not parts:
        raise DataError(f"{file} has no rows of data; at least one is needed to predict, and more to learn.")
    whole = sp.vstack(parts, format="csr")
    width = int(whole.indices.max(initial=-1)) + 1
    require_features(first_feature(whole), width, str(file))
    X = sp.csr_matrix((whole.data, whole.indices, whole.indptr), shape=(whole.shape[0], width))
    return Table(X, file.name, {"label": np.concatenate(labels)}, "label", lambda row: f"example {row + 1}")


def _read_tsv(file: TextFile, verbatim: Collection[str], texts: Collection[str]) -> Table:
    return _read_separated(file, verbatim, texts, "\t")


def _read_txt(file: TextFile, verbatim: Collection[str], texts: Collection[str]) -> Table:
    return (_read_libsvm if looks_like_libsvm(file) else _read_separated)(file, verbatim, texts)


_TEXT_READERS: dict[str, Callable[[TextFile, Collection[str], Collection[str]], Table]] = {
    ".csv": _read_separated,
    ".tsv": _read_tsv,
    ".tab": _read_tsv,
    ".txt": _read_txt,
    ".libsvm": _read_libsvm,
    ".svmlight": _read_libsvm,
    ".svm": _read_libsvm,
    ".json": lambda file, *_: read_graphs(file),
    ".ts": lambda file, *_: read_ts(file),
}
_READERS: dict[str, Callable[[Path], Table]] = {
    ".parquet": _read_parquet,
    ".pq": _read_parquet,
    **dict.fromkeys((".arrow", ".feather", ".ipc"), _read_feather),
    ".npz": read_archive,
    **dict.fromkeys(SUFFIXES, read_workbook),
}
