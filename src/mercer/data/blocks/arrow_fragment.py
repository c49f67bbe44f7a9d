"""A fragment of a data set of pyarrow, usually a file, read a batch at a time."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from mercer._errors import DataError
from mercer._optional import optional
from mercer.data.blocks.named_columns import arrow_kind
from mercer.engine import settings

NUMBERS = ("boolean", "integer", "number")
# Bytes that are read of a column at a time.
_BUFFER = 2**20


@dataclass(frozen=True)
class Fragment:
    """A fragment with rows, its name in messages, and the columns whose value is in its path, such as ``year=2020``."""

    part: Any
    name: str
    rows: int
    path_values: Mapping[str, Any]

    @property
    def names(self) -> list[str]:
        """Names of all columns; an index of pandas without a name is the number of the row, and not one of them."""
        index = _unnamed_index(self.part.physical_schema)
        own = [name for name in self.part.physical_schema.names if name != index]
        return [*own, *(name for name in self.path_values if name not in own)]

    def type(self, name: str) -> Any:
        """The type of a column."""
        schema = self.part.physical_schema
        return schema.field(name).type if name in schema.names else self.path_values[name].type

    def kind(self, name: str) -> str:
        """What a column holds: boolean, integer, number, text, date, null, or the name of its type."""
        return arrow_kind(self.type(name))

    def describe(self, name: str) -> str:
        """What a column holds, in words."""
        kind = self.kind(name)
        return "numbers" if kind in NUMBERS else f"{kind} ({self.type(name)})"

    def batches(self, columns: Sequence[str], rows: int) -> Iterator[Any]:
        """Yield record batches of at most so many rows; little more than one is in memory.

        Scanners of pyarrow hold many: a Parquet file of 480 MB with one row group takes 1 GB there, and 0.15 GB here.
        """
        arrow = optional("pyarrow", "reading Parquet and Arrow data")
        own = [name for name in columns if name in self.part.physical_schema.names]
        with named_faults(self.name):
            batches = self._own_batches(own, rows)
        while True:
            with named_faults(self.name):
                batch = next(batches, None)
            if batch is None:
                return
            arrays = [
                batch.column(name) if name in own else arrow.repeat(self.path_values[name], batch.num_rows)
                for name in columns
            ]
            for start in range(0, batch.num_rows, rows):
                yield arrow.RecordBatch.from_arrays([array.slice(start, rows) for array in arrays], names=list(columns))

    def _own_batches(self, columns: list[str], rows: int) -> Iterator[Any]:
        kind = getattr(getattr(self.part, "format", None), "default_extname", "")
        if kind == "parquet":
            return _parquet_batches(self.part, columns, rows)
        if kind == "arrow":
            return _ipc_batches(self.part, columns)
        batches: Iterator[Any] = self.part.to_batches(columns=columns, batch_size=rows, batch_readahead=1)
        return batches


def _unnamed_index(schema: Any) -> str | None:
    """The column in which pandas stores the labels of rows that have no name, if there is one."""
    try:
        # Anything may stand there; what pandas has not written says nothing about the columns.
        stated: Any = schema.pandas_metadata
        (index,) = stated["index_columns"]
        unnamed = [column["field_name"] for column in stated["columns"] if column["name"] is None]
    except (KeyError, TypeError, ValueError):
        return None
    return index if isinstance(index, str) and index in unnamed else None


def _parquet_batches(part: Any, columns: list[str], rows: int) -> Iterator[Any]:
    parquet = optional("pyarrow.parquet", "reading Parquet data")
    # A fragment may have only some row groups of its file.
    groups = [group.id for group in part.row_groups]
    with part.open() as stream, parquet.ParquetFile(stream, buffer_size=_BUFFER, pre_buffer=False) as file:
        several = settings.resolve_jobs() > 1
        yield from file.iter_batches(rows, row_groups=groups, columns=columns, use_threads=several)


def _ipc_batches(part: Any, columns: list[str]) -> Iterator[Any]:
    ipc = optional("pyarrow.ipc", "reading Arrow data")
    fields = [part.physical_schema.names.index(name) for name in columns]
    options = ipc.IpcReadOptions(included_fields=fields, use_threads=settings.resolve_jobs() > 1)
    with part.open() as stream, ipc.open_file(stream, options=options) as file:
        for number in range(file.num_record_batches):
            batch = file.get_batch(number)
            # A damaged file may hold offsets beyond its text, which are only looked at here.
            batch.validate(full=True)
            yield batch


@contextmanager
def named_faults(name: str) -> Iterator[None]:
    """Name the file in errors of pyarrow."""
    arrow = optional("pyarrow", "reading Parquet and Arrow data")
    try:
        yield
    except (arrow.ArrowException, OSError) as error:
        raise DataError(f"{name} cannot be read: {str(error).splitlines()[0]}") from error
