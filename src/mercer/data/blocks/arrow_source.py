"""Parquet and Arrow files, data sets of pyarrow, and Arrow tables in memory."""

from __future__ import annotations

import glob
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from mercer._errors import DataError
from mercer._optional import optional
from mercer.data.blocks.arrow_fragment import NUMBERS, Fragment, named_faults
from mercer.data.blocks.block import Piece
from mercer.data.blocks.choice import Choice
from mercer.data.blocks.files import Files, find_files
from mercer.data.blocks.named_columns import ArrowColumns
from mercer.data.blocks.source import FLOAT64, Layout, Source, piece_of
from mercer.data.text_files import suffix_of
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
        if is_arrow(source):
            try:
                return cls(choice, given=dataset.dataset(arrow.table(source)))
            except (TypeError, ValueError) as error:
                raise DataError(f"a {type(source).__name__} cannot be read as a table: {error}") from error
        paths = find_files(source, SUFFIXES)
        return cls(choice, Files.of(paths), _base(source))

    @cached_property
    def layout(self) -> Layout:
        first = self.fragments[0]
        columns = self.choice.resolve(first.names, first.name)
        for one in self.fragments:
            self.choice.check_same(one.names, one.name, first.names, first.name)
        others = {}
        for name in (*columns, *self.choice.targets):
            typical = next((one for one in self.fragments if one.kind(name) != "null"), first)
            for one in self.fragments:
                _check_same_kind(name, one, typical)
            if name in columns and typical.kind(name) not in (*NUMBERS, "null"):
                others[name] = f"of {typical.name} holds {typical.describe(name)}"
        types = {one.type(name) for one in self.fragments for name in columns}
        single = all(str(one) in ("float", "halffloat") for one in types)
        n = sum(one.rows for one in self.fragments)
        dtype = np.dtype(np.float32 if single else np.float64)
        return Layout(len(columns), columns, dtype, False, n, self._target(), others)

    def pieces(self, rows: int, frames: bool) -> Iterator[Piece]:
        layout = self.layout
        assert layout.names is not None
        weight = self.choice.weight
        needed = list(dict.fromkeys([*layout.names, *self.choice.targets, *([] if weight is None else [weight])]))
        for one in self.fragments:
            row = 0
            for batch in one.batches(needed, rows):
                with named_faults(one.name):
                    piece = piece_of(ArrowColumns(batch, one.name, row), self.choice, layout, frames)
                yield piece
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
        with named_faults(str(self)):
            return optional("pyarrow.dataset", "reading Parquet and Arrow data").dataset(
                [str(path) for path in self.files.paths],
                format=formats.pop(),
                partitioning=None if self.base is None else "hive",
                partition_base_dir=self.base,
            )

    @cached_property
    def fragments(self) -> list[Fragment]:
        """The fragments that have rows, in the order of the files."""
        fragments = []
        for part in self._parts():
            name = str(getattr(part, "path", None) or self)
            with named_faults(name):
                rows = part.count_rows()
                if rows:
                    fragments.append(Fragment(part, name, rows, self._path_values(part)))
        if not fragments:
            raise DataError(f"{self} has no rows of data.")
        return fragments

    def _parts(self) -> list[Any]:
        try:
            return list(self._dataset.get_fragments())
        except ValueError as error:
            raise DataError(f"{self} cannot be read in fragments: {error}. Pass it without filter or join.") from error

    def _path_values(self, part: Any) -> dict[str, Any]:
        """Values of columns that are parts of the path, as scalars."""
        keys = optional("pyarrow.dataset", "reading Parquet and Arrow data").get_partition_keys
        scalar = optional("pyarrow", "reading Parquet and Arrow data").scalar
        schema = self._dataset.schema
        return {name: scalar(value, schema.field(name).type) for name, value in keys(part.partition_expression).items()}

    def _target(self) -> np.dtype | None:
        """The type that holds the targets of all files."""
        if not self.choice.targets:
            return None
        if not self.choice.one_target:
            return FLOAT64
        kinds = [one.kind(self.choice.targets[0]) for one in self.fragments]
        return np.result_type(*(_TARGETS.get(kind, np.dtype(object)) for kind in kinds))


def is_arrow(source: Any) -> bool:
    """Whether a source is a data set of pyarrow, or gives Arrow data."""
    module = type(source).__module__.partition(".")[0]
    return module == "pyarrow" or any(hasattr(source, f"__arrow_c_{kind}__") for kind in ("stream", "array"))


def _check_same_kind(name: str, one: Fragment, typical: Fragment) -> None:
    kinds = [part.kind(name) for part in (one, typical)]
    if "null" in kinds or kinds[0] == kinds[1] or set(kinds) <= set(NUMBERS):
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
