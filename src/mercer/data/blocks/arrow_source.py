"""Parquet and Arrow files, data sets of pyarrow, and Arrow tables in memory."""

from __future__ import annotations

import glob
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from mercer._errors import DataError
from mercer._optional import optional
from mercer.data.blocks.block import Piece
from mercer.data.blocks.choice import Choice
from mercer.data.blocks.files import Files, find_files, suffix_of
from mercer.data.blocks.named_columns import ArrowColumns, arrow_kind
from mercer.data.blocks.source import FLOAT64, Layout, Source, piece_of
from mercer.data.words import shown

PARQUET, IPC = (".parquet", ".pq"), (".arrow", ".feather", ".ipc")
SUFFIXES = (*PARQUET, *IPC)
_TARGETS = {"boolean": np.dtype(np.bool_), "integer": np.dtype(np.int64), "number": FLOAT64}


@dataclass(frozen=True, eq=False)
class ArrowSource(Source):
    """Files of one format, or a data set (with the words for it in messages), read fragment by fragment."""

    choice: Choice
    files: Files | None = None
    base: str | None = None
    given: Any = None

    @classmethod
    def of(cls, source: Any, choice: Choice) -> ArrowSource:
        """From a path, a pattern, a folder, a list of paths, a data set, or a table with Arrow's stream interface.

        Below a folder and in a pattern, parts of the path such as ``year=2020`` are columns.

        Raises
        ------
        DataError
            If files are of different formats.
        """
        arrow = optional("pyarrow", "reading Parquet and Arrow data")
        dataset = optional("pyarrow.dataset", "reading Parquet and Arrow data")
        if isinstance(source, dataset.Dataset):
            return cls(choice, given=source)
        if hasattr(source, "__arrow_c_stream__"):
            return cls(choice, given=dataset.dataset(arrow.table(source)))
        paths = find_files(source, SUFFIXES)
        return cls(choice, Files.of(paths), _base(source))

    @cached_property
    def layout(self) -> Layout:
        first = self._fragments[0]
        columns = self.choice.resolve(first.schema.names, first.name)
        for one in self._fragments:
            self.choice.check_same(one.schema.names, one.name, first.schema.names, first.name)
        others = {}
        for name in (*columns, *self.choice.targets):
            typical = next((one for one in self._fragments if one.kind(name) != "null"), first)
            for one in self._fragments:
                _check_same_kind(name, one, typical)
            if name in columns and typical.kind(name) not in (*_TARGETS, "null"):
                others[name] = f"of {typical.name} holds {typical.describe(name)}"
        types = {one.schema.field(name).type for one in self._fragments for name in columns}
        single = all(str(one) in ("float", "halffloat") for one in types)
        n = sum(one.rows for one in self._fragments)
        dtype = np.dtype(np.float32 if single else np.float64)
        return Layout(len(columns), columns, dtype, False, n, self._target(), others)

    def pieces(self, rows: int, frames: bool) -> Iterator[Piece]:
        layout = self.layout
        assert layout.names is not None
        weight = self.choice.weight
        needed = list(dict.fromkeys([*layout.names, *self.choice.targets, *([] if weight is None else [weight])]))
        for one in self._fragments:
            row = 0
            with _named_faults(one.name):
                batches = one.fragment.to_batches(
                    schema=one.schema, columns=needed, batch_size=rows, batch_readahead=1, fragment_readahead=1
                )
            while True:
                with _named_faults(one.name):
                    batch = next(batches, None)
                if batch is None:
                    break
                yield piece_of(ArrowColumns(batch, one.name, row), self.choice, layout, frames)
                row += batch.num_rows

    @property
    def stored(self) -> tuple[Files, ...]:
        return () if self.files is None else (self.files,)

    def __str__(self) -> str:
        return "an Arrow data set" if self.files is None else str(self.files)

    @cached_property
    def _dataset(self) -> Any:
        if self.files is None:
            return self.given
        formats = {"parquet" if suffix_of(path) in PARQUET else "ipc" for path in self.files.paths}
        if len(formats) > 1:
            raise DataError(f"{self}: some files are Parquet and some Arrow; read one format at a time.")
        with _named_faults(str(self)):
            return optional("pyarrow.dataset", "reading Parquet and Arrow data").dataset(
                [str(path) for path in self.files.paths],
                format=formats.pop(),
                partitioning=None if self.base is None else "hive",
                partition_base_dir=self.base,
            )

    @cached_property
    def _fragments(self) -> list[_Fragment]:
        """The fragments that have rows, in the order of the files."""
        fragments = []
        for fragment in self._dataset.get_fragments():
            name = str(getattr(fragment, "path", None) or self)
            with _named_faults(name):
                rows = fragment.count_rows()
                if rows:
                    fragments.append(_Fragment(fragment, name, rows, self._schema(fragment)))
        if not fragments:
            raise DataError(f"{self} has no rows of data.")
        return fragments

    def _schema(self, fragment: Any) -> Any:
        """The columns of a fragment, with its own types, and those that its path tells."""
        schema = fragment.physical_schema
        keys = optional("pyarrow.dataset", "reading Parquet and Arrow data").get_partition_keys
        for name in keys(fragment.partition_expression):
            schema = schema if name in schema.names else schema.append(self._dataset.schema.field(name))
        return schema

    def _target(self) -> np.dtype | None:
        """The type that holds the targets of all files."""
        if not self.choice.targets:
            return None
        if not self.choice.one_target:
            return FLOAT64
        kinds = [one.kind(self.choice.targets[0]) for one in self._fragments]
        return np.result_type(*(_TARGETS.get(kind, np.dtype(object)) for kind in kinds))


@dataclass(frozen=True)
class _Fragment:
    fragment: Any
    name: str
    rows: int
    schema: Any

    def kind(self, name: str) -> str:
        return arrow_kind(self.schema.field(name).type)

    def describe(self, name: str) -> str:
        """What a column holds, in words."""
        kind = self.kind(name)
        numbers = kind in _TARGETS
        return "numbers" if numbers else f"{kind} ({self.schema.field(name).type})"


def _check_same_kind(name: str, one: _Fragment, typical: _Fragment) -> None:
    kinds = [part.kind(name) for part in (one, typical)]
    if "null" in kinds or kinds[0] == kinds[1] or set(kinds) <= set(_TARGETS):
        return
    raise DataError(
        f"the column {shown(name)} of {one.name} holds {one.describe(name)}, but that of {typical.name} "
        f"{typical.describe(name)}; give it one type in all files."
    )


def _base(source: Any) -> str | None:
    """The folder below which parts of paths are columns: a folder itself, or what comes before the first ``*``."""
    if not isinstance(source, (str, Path)):
        return None
    path = Path(source)
    if path.is_dir():
        return str(path)
    if path.exists():
        return None
    parts = path.parts
    fixed = next((i for i, part in enumerate(parts) if glob.has_magic(part)), len(parts))
    return str(Path(*parts[:fixed]))


@contextmanager
def _named_faults(name: str) -> Iterator[None]:
    """Name the file in errors of pyarrow."""
    arrow = optional("pyarrow", "reading Parquet and Arrow data")
    try:
        yield
    except (arrow.ArrowException, OSError) as error:
        raise DataError(f"{name} cannot be read: {str(error).splitlines()[0]}") from error
