"""Columns of files as they are written: the text of CSV, and the types of Parquet and Arrow."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from mercer._optional import optional
from mercer.data.blocks import arrow_source, csv_source
from mercer.data.blocks.arrow_source import ArrowSource
from mercer.data.blocks.block import Block, Cutter
from mercer.data.blocks.choice import Choice
from mercer.data.blocks.files import find_files
from mercer.data.separated import separated
from mercer.data.text_files import TextFile, suffix_of

# Rows that are read at a time where no number is given.
_ROWS = 2**16


def is_written(path: Path) -> bool:
    """Whether a file is one whose columns can be read as they are written."""
    return suffix_of(path) in (*csv_source.SUFFIXES, csv_source.TEXT, *arrow_source.SUFFIXES)


def written_columns(
    data: Any, names: Sequence[str], rows: int | None = None, encoding: str | None = None
) -> Iterator[Any]:
    """Yield data frames of so many rows with the fields of some columns, all of them at once by default.

    Fields of CSV files are text, an empty one for a gap. Columns of Parquet and Arrow files have their types, of which
    whole numbers and booleans may have gaps.

    Parameters
    ----------
    data : str, pathlib.Path, or list of these
        Files of one format, as of :class:`mercer.Blocks`.
    names : sequence of str
    rows : int, optional
    encoding : str, optional
        That of CSV files, as of :class:`mercer.Blocks`.

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "a.csv"
    >>> _ = path.write_text("id,ok,x\\n007,true,1\\n1.10,NA,2\\n")
    >>> next(written_columns(path, ["id", "ok"])).to_dict("list")
    {'id': ['007', '1.10'], 'ok': ['true', 'NA']}
    """
    paths = find_files(data, (*csv_source.SUFFIXES, *arrow_source.SUFFIXES))
    is_text = suffix_of(paths[0]) not in arrow_source.SUFFIXES
    files = [TextFile(path, encoding) for path in paths if path.stat().st_size]
    pieces = _texts(files, names, rows) if is_text else _typed(data, names, rows or _ROWS)
    if rows is None:
        yield optional("pandas", "reading columns").concat(list(pieces), ignore_index=True)
        return
    cutter = Cutter(rows)
    for piece in pieces:
        for block, _ in cutter.push(Block(piece)):
            yield block.X
    for block, _ in cutter.rest():
        yield block.X


def _texts(files: Sequence[TextFile], names: Sequence[str], rows: int | None) -> Iterator[Any]:
    for file in files:
        one = separated(file, "\t" if suffix_of(file.path) in (".tsv", ".tab") else None, whole=rows is None)
        for frame in one.frames(dict.fromkeys(one.names, str), rows or _ROWS, na_filter=False):
            yield frame[list(names)]


def _typed(data: Any, names: Sequence[str], rows: int) -> Iterator[Any]:
    arrow, pandas = optional("pyarrow", "reading columns"), optional("pandas", "reading columns")
    nullable = {
        arrow.bool_(): pandas.BooleanDtype(),
        **{getattr(arrow, name.lower())(): getattr(pandas, f"{name}Dtype")() for name in _WHOLE},
    }
    source = ArrowSource.of(data, Choice.of(None, list(names), None))
    for fragment in source.fragments:
        for batch in fragment.batches(names, rows):
            yield batch.to_pandas(types_mapper=nullable.get)


_WHOLE = [f"{sign}Int{bits}" for sign in ("", "U") for bits in (8, 16, 32, 64)]
