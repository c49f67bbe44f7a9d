"""Write predictions block by block to a file that appears when it is complete."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from mercer._errors import DataError
from mercer._optional import optional
from mercer._types import AnyArray
from mercer.data.blocks.arrow_source import PARQUET
from mercer.data.blocks.block import is_frame
from mercer.engine.drafts import written_in_one_stroke

_SUFFIXES = (*PARQUET, ".csv", ".npy")


def write_blocks(path: str | Path, blocks: Iterable[Any], *, columns: Sequence[str] | None = None) -> int:
    """Write blocks of rows to one file, and return the number of rows.

    Only one block is in memory at a time. The file appears when it is complete; until then, and if anything fails, an
    old file of that name stays as it is.

    Parameters
    ----------
    path : str or pathlib.Path
        A ``.csv``, ``.parquet`` or ``.npy`` file; ``.npy`` takes numbers only.
    blocks : iterable of arrays of shape (r,) or (r, k), or of pandas.DataFrame
        For instance predictions, made as they are written.
    columns : sequence of str, optional
        Names of the columns in CSV and Parquet files. Default: those of data frames; for arrays ``prediction``, or
        ``prediction_0``, ``prediction_1``, ...

    Returns
    -------
    int

    Raises
    ------
    DataError
        If the format is unknown, there are no blocks, or they do not have the same columns.
    OSError
        If the file cannot be written.

    Examples
    --------
    >>> import numpy as np, tempfile
    >>> from mercer import Blocks, write_blocks
    >>> blocks = Blocks(np.arange(10.0).reshape(5, 2), rows_per_block=2)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     rows = write_blocks(f"{folder}/sums.npy", (X.sum(axis=1) for X, y, sample_weight in blocks))
    ...     sums = np.load(f"{folder}/sums.npy").tolist()
    >>> rows, sums
    (5, [1.0, 5.0, 9.0, 13.0, 17.0])
    """
    path = Path(path)
    suffix = path.suffix.lower()
    if suffix not in _SUFFIXES:
        raise DataError(f"{path}: blocks are written to files that end in {', '.join(_SUFFIXES)}.")
    if not path.parent.is_dir():
        raise DataError(f"cannot write {path}: the directory {path.parent} does not exist; create it.")
    with written_in_one_stroke(path) as (file, draft):
        if suffix == ".npy":
            return _write_npy(file, blocks, path)
        frames = _frames(blocks, columns, path)
        return _write_csv(file, frames) if suffix == ".csv" else _write_parquet(draft, frames, path)


def _write_npy(file: BinaryIO, blocks: Iterable[Any], path: Path) -> int:
    first: AnyArray | None = None
    rows = 0
    for block in blocks:
        array = np.ascontiguousarray(block)
        if array.dtype.kind not in "biuf" or array.ndim == 0:
            raise DataError(f"{path} takes numbers, but a block is {array.dtype}; write text to .csv or .parquet.")
        if first is None:
            first = array[:0].copy()
            _write_header(file, first, 0)
        _check_same((array.dtype, array.shape[1:]), (first.dtype, first.shape[1:]), path, rows)
        file.write(array.data)
        rows += len(array)
    if first is None:
        raise DataError(_NO_BLOCKS.format(path))
    file.seek(0)
    _write_header(file, first, rows)
    return rows


def _write_header(file: BinaryIO, like: AnyArray, rows: int) -> None:
    """NumPy leaves room in headers for the number of rows to grow, so the second one is as long as the first."""
    shape = (rows, *like.shape[1:])
    descr = np.lib.format.dtype_to_descr(like.dtype)
    np.lib.format.write_array_header_1_0(file, {"descr": descr, "fortran_order": False, "shape": shape})


def _write_csv(file: BinaryIO, frames: Iterator[Any]) -> int:
    rows = 0
    for number, frame in enumerate(frames):
        frame.to_csv(file, index=False, header=number == 0, lineterminator="\n")
        rows += len(frame)
    return rows


def _write_parquet(draft: Path, frames: Iterator[Any], path: Path) -> int:
    arrow = optional("pyarrow", f"writing {path.name}")
    parquet = optional("pyarrow.parquet", f"writing {path.name}")
    first = arrow.Table.from_pandas(next(frames), preserve_index=False)
    rows = first.num_rows
    with parquet.ParquetWriter(draft, first.schema) as writer:
        writer.write_table(first)
        for frame in frames:
            try:
                table = arrow.Table.from_pandas(frame, first.schema, preserve_index=False)
            except (arrow.ArrowException, ValueError, TypeError) as error:
                raise DataError(
                    f"{path}: the block from row {rows + 1:,} on is not of the types before: {error}"
                ) from error
            writer.write_table(table)
            rows += table.num_rows
    return rows


def _frames(blocks: Iterable[Any], columns: Sequence[str] | None, path: Path) -> Iterator[Any]:
    """Yield the blocks as data frames with the same columns."""
    pandas = optional("pandas", f"writing {path.name}")
    names: list[str] | None = None
    rows = 0
    for block in blocks:
        frame = block if is_frame(block) else pandas.DataFrame(np.asarray(block))
        if columns is not None and len(columns) != frame.shape[1]:
            raise DataError(f"{path}: columns has {len(columns)} names, but a block {frame.shape[1]} columns.")
        if columns is not None or not is_frame(block):
            frame = frame.set_axis(list(columns or _default_names(frame.shape[1])), axis=1)
        names = list(frame.columns) if names is None else names
        _check_same(list(frame.columns), names, path, rows)
        yield frame
        rows += len(frame)
    if names is None:
        raise DataError(_NO_BLOCKS.format(path))


def _default_names(count: int) -> list[str]:
    return ["prediction"] if count == 1 else [f"prediction_{i}" for i in range(count)]


def _check_same(columns: object, first: object, path: Path, rows: int) -> None:
    if columns != first:
        raise DataError(f"{path}: the block from row {rows + 1:,} on has {columns}, but the first block {first}.")


_NO_BLOCKS = "{}: there are no blocks to write; an iterator can be read only once."
