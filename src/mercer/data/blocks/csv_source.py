"""Files of comma- or tab-separated values, read by pandas some rows at a time."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from mercer._errors import DataError, ParameterError
from mercer.data.blocks.block import Piece
from mercer.data.blocks.choice import Choice
from mercer.data.blocks.files import Files, find_files
from mercer.data.blocks.named_columns import FrameColumns
from mercer.data.blocks.source import Layout, Source, frame_layout, piece_of
from mercer.data.separated import Separated, separated
from mercer.data.table import is_number
from mercer.data.text_columns import are_codes
from mercer.data.text_files import TextFile, named_faults, suffix_of
from mercer.data.words import listing, shown

SUFFIXES = (".csv", ".tsv", ".tab")
TEXT = ".txt"
"""A suffix that is read if a file is named, but not of the files in a folder, which may be notes."""
# Rows of the first file from which the types of the columns are inferred.
_HEAD = 1000
# How columns are read that pandas takes for such a kind of numbers there; others are text.
_TYPES = {"b": "boolean", "i": "float64", "u": "float64", "f": "float64"}


@dataclass(frozen=True)
class CsvSource(Source):
    """Files with a header each. Types of columns are inferred from the first rows, so that all blocks have the same.

    Numbers are read as float64, also whole ones, and all else but booleans as text, also digits after a leading zero.
    """

    files: Files
    choice: Choice
    dtype: tuple[tuple[str, str], ...] = ()
    encoding: str | None = None

    @classmethod
    def of(
        cls, paths: Any, choice: Choice, dtype: Mapping[str, str] | None = None, encoding: str | None = None
    ) -> CsvSource:
        """From a path, a pattern, a folder or a list of paths; ``dtype`` gives types of columns.

        Raises
        ------
        ParameterError
            If ``dtype`` is not a dict.
        """
        if dtype is not None and not isinstance(dtype, Mapping):
            raise ParameterError(f'dtype must be a dict such as {{"zip": "str"}}, but is {dtype!r}.')
        given = tuple((str(name), str(kind)) for name, kind in (dtype or {}).items())
        return cls(Files.of(find_files(paths, SUFFIXES)), choice, given, encoding)

    @cached_property
    def layout(self) -> Layout:
        first, _ = self._headers[0], self._types
        for one in self._headers:
            self.choice.check_same(one.names, str(one.path), first.names, str(first.path))
        head = next(self._frames(first, _HEAD))
        return frame_layout(FrameColumns(head, str(first.path), 0), self.choice)

    def pieces(self, rows: int, frames: bool) -> Iterator[Piece]:
        layout = self.layout
        for one in self._headers:
            row = 0
            for frame in self._frames(one, rows):
                yield piece_of(FrameColumns(frame, str(one.path), row), self.choice, layout, frames)
                row += len(frame)

    @property
    def stored(self) -> tuple[Files, ...]:
        return (self.files,)

    def __str__(self) -> str:
        return str(self.files)

    @cached_property
    def _headers(self) -> list[Separated]:
        """The files with rows."""
        headers = []
        for path, size in zip(self.files.paths, self.files.sizes, strict=True):
            if size:
                separator = "\t" if suffix_of(path) in (".tsv", ".tab") else None
                file = TextFile(path, self.encoding)
                with named_faults(file):
                    one = separated(file, separator, whole=False)
                    # pandas warns where the first row has more fields than the header, and then drops them. Such
                    # warnings are errors here alone, because filters of warnings are those of all threads.
                    with one.reading():
                        first = next(one.frames({}, 1), None)
                if first is not None:
                    headers.append(one)
        if not headers:
            raise DataError(f"{self} has no rows of data.")
        return headers

    @cached_property
    def _full(self) -> set[Path]:
        """The files that were seen to have no line with fewer fields than the header."""
        return set()

    @cached_property
    def _types(self) -> dict[str, str]:
        """The type of each column that is read."""
        first = self._headers[0]
        strange = [name for name, _ in self.dtype if name not in first.names]
        if strange:
            raise ParameterError(f"dtype names the column {strange[0]!r}, but the columns are {listing(first.names)}.")
        columns = self.choice.resolve(first.names, str(first.path))
        needed = [*columns, *self.choice.targets, *([self.choice.weight] if self.choice.weight else [])]
        with named_faults(first.file), first.errors():
            head = next(first.frames({}, _HEAD))
            texts = next(first.frames(dict.fromkeys(first.names, "str"), _HEAD))
        types = {name: "str" if are_codes(texts[name].dropna()) else _type_of(head[name]) for name in needed}
        types |= {name: kind for name, kind in self.dtype if name in types}
        first.note_numbers([name for name in first.names if types.get(name, "str") == "str"])
        return types

    def _frames(self, one: Separated, rows: int) -> Iterator[Any]:
        """Yield data frames of at most so many rows, with the same columns for every file."""
        types = self._types
        with named_faults(one.file), one.errors():
            chunks = one.frames(types, rows)
        while True:
            try:
                with named_faults(one.file), one.errors():
                    frame = next(chunks, None)
            except DataError:
                raise
            except (ValueError, TypeError) as error:
                raise DataError(self._misfit(one, error)) from error
            if frame is None:
                return
            if one.path not in self._full and frame.iloc[:, -1].isna().any():
                with named_faults(one.file):
                    one.require_full()
                self._full.add(one.path)
            yield frame[list(types)]

    def _misfit(self, one: Separated, error: Exception) -> str:
        """The message for a field that is not of the type of its column, found by reading the file again as text."""
        types, row = self._types, 0
        for frame in one.frames(dict.fromkeys(types, "str"), _HEAD):
            for name in [name for name, kind in types.items() if kind in _TYPES.values()]:
                texts, gaps = frame[name].tolist(), frame[name].isna().tolist()
                for i, (text, gap) in enumerate(zip(texts, gaps, strict=True)):
                    if not gap and not _fits(text, types[name], one.decimal):
                        return (
                            f"{one.path}, {one.line_finder()(row + i)}: the column {shown(name)} holds {shown(text)}, "
                            f"but {'booleans' if types[name] == 'boolean' else 'numbers'} in the first rows of "
                            f"{self._headers[0].path}. Correct the entry; in Python, Blocks(..., dtype={{{name!r}: "
                            "'str'}) reads the column as text, which Blocks.encoded() takes."
                        )
            row += len(frame)
        return f"{one.path} cannot be read with the given types of columns: {error}."


def _type_of(column: Any) -> str:
    """How a column is read that pandas takes for this; booleans with gaps are objects."""
    if column.dtype == object and column.notna().any() and column.dropna().map(type).eq(bool).all():
        return "boolean"
    return _TYPES.get(column.dtype.kind, "str")


def _fits(text: str, kind: str, decimal: str) -> bool:
    if kind == "boolean":
        return text.lower() in ("true", "false", "1", "0", "1.0", "0.0")
    return is_number(text.replace(decimal, "."))
