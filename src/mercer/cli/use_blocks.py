"""``mercer predict`` and ``mercer evaluate`` for files that are read in blocks."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import repeat
from pathlib import Path
from typing import Any

from mercer._errors import ParameterError
from mercer.cli.answers import kept_columns
from mercer.cli.checks import is_several
from mercer.cli.large import Part, Predicted
from mercer.cli.options import PredictOptions, UseOptions
from mercer.cli.reading import Reading
from mercer.data.blocks.blocks import Blocks
from mercer.data.blocks.sink import write_blocks
from mercer.data.blocks.written import written_columns
from mercer.data.schema import Locate
from mercer.data.table import row_place, shifted
from mercer.data.text_files import suffix_of
from mercer.data.unknown import one_note_a_column
from mercer.estimators.table import TableModel

# Tables in one file that are read in blocks where they are larger, in bytes.
_LARGE = 2**26
_TABLES = (".parquet", ".pq", ".arrow", ".feather", ".ipc", ".csv", ".tsv", ".tab", ".txt")


def is_in_blocks(options: UseOptions, model: TableModel) -> bool:
    """Whether the rows are read in blocks: those of a pattern, of a folder of tables, and of a large table.

    Objects such as text are read whole, because readers of blocks do not keep them letter by letter.
    """
    data = Path(options.data)
    if data.is_dir():
        # A folder with a list of labels has a series in each of its files.
        tables = any(suffix_of(path, inside=False) in (".parquet", ".csv", ".tsv") for path in data.iterdir())
        return tables and not any((data / name).exists() for name in ("labels.csv", "labels.tsv"))
    if is_several(options.data):
        return True
    is_plain = suffix_of(data, inside=False) in _TABLES and not model.schema_.roles and model.schema_.width is None
    return is_plain and data.is_file() and data.stat().st_size > _LARGE


def write(options: PredictOptions, frames: Iterator[Any]) -> int:
    """Write predictions as they are made, block by block, and return their number.

    Raises
    ------
    ParameterError
        If there is no file for the predictions, or one of another format.
    DataError
        If a file lacks a column or holds entries of another kind.
    """
    if options.out is None or options.out.suffix.lower() == ".tsv":
        raise ParameterError(
            "predictions for large or several files are written block by block; name a .csv or .parquet file: --out."
        )
    return write_blocks(options.out, frames)


def blocks_of(options: PredictOptions, model: TableModel) -> Iterator[tuple[Any, Any, Locate]]:
    """The rows in blocks of data frames: the columns to predict from, those that are kept or None, and their places."""
    names, dtype = _columns(options, model)
    blocks = Blocks(options.data, columns=names, dtype=dtype, encoding=options.encoding).frames()
    every = Blocks(options.data, encoding=options.encoding).columns or ()
    kept = kept_columns(options.keep, every, options.data)
    written = written_columns(options.data, kept, blocks.rows_per_block, options.encoding) if kept else repeat(None)
    reading, first = Reading.of(model.report_), 0
    for (block, _, _), columns in zip(blocks, written, strict=bool(kept)):
        locate = shifted(row_place, first)
        yield reading.frame(block, options.data, locate), columns, locate
        first += len(block)


def evaluate(options: UseOptions, model: TableModel) -> tuple[Predicted, str]:
    """Predict for files with the target block by block; also the name of the data.

    Raises
    ------
    DataError
        If a file lacks a column, or holds entries of another kind or classes that the model does not know.
    """
    (names, dtype), reading = _columns(options, model), Reading.of(model.report_)
    blocks = Blocks(options.data, model.target, columns=names, dtype=dtype, encoding=options.encoding)

    def parts() -> Iterator[Part]:
        first = 0
        for X, y, _ in blocks.frames():
            assert y is not None
            yield reading.frame(X, options.data, shifted(row_place, first)), y
            first += len(X)

    with one_note_a_column():
        predicted = Predicted.of(model, parts(), options.data)
    # Blocks without rows raise an error.
    assert predicted is not None
    return predicted, options.data


def _columns(options: UseOptions, model: TableModel) -> tuple[list[str] | None, dict[str, str] | None]:
    """The columns to predict from, and those that are text for the model, whatever they look like in one file."""
    names = Blocks(options.data, encoding=options.encoding).columns
    if names is None:
        return None, None
    verbatim, texts = Reading.of(model.report_).columns(model)
    dtype = {name: "str" for name in (*verbatim, *texts) if name in names}
    return [name for name in names if name not in (model.target, *options.drop)], dtype
