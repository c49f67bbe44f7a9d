"""How much memory a workbook would take, read from its parts before any of them is given to a parser.

A workbook is an archive. A few kilobytes unpack to gigabytes, and one entry in the last cell of a sheet makes it
17 billion cells, because a sheet is read as the rectangle around its entries.
"""

from __future__ import annotations

import re
import sys
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path

from mercer._errors import DataError
from mercer.engine import memory

_CHUNK = 2**20
# Of a cell, in the parser, as an object of Python and in the data frame.
_BYTES_OF_CELL = 64
# A cell that is not closed at once has an entry; its name is the column in letters and the row. Atomic groups keep the
# time linear in the length of a tag.
_CELL = re.compile(rb"""<(?:\w+:)?c(?>[^<>]*?\sr\s*=\s*["'])([A-Z]{1,7})([0-9]{1,12})["'](?>[^<>]*)(?<!/)>""")
# Tags of cells are shorter, and the rest of a chunk without the end of a tag is not kept for ever.
_LONGEST_TAG = 2**14


def require_room(path: Path) -> None:
    """Raise unless the parts of a workbook, and the largest of its sheets as a table, fit the memory budget.

    Raises
    ------
    MemoryBudgetError
        If they do not.
    DataError
        If the file is a damaged archive.
    """
    if not zipfile.is_zipfile(path):
        # Workbooks of the older form, whose sheets are small, and files that are not workbooks.
        return
    try:
        with zipfile.ZipFile(path) as parts:
            for part in parts.infolist():
                # The size that it states may be false.
                part.file_size = sys.maxsize
                _require_part(path, part.filename, _chunks(parts, part))
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError) as error:
        raise DataError(f"{path} cannot be read as a workbook: {error}.") from error


def _chunks(parts: zipfile.ZipFile, part: zipfile.ZipInfo) -> Iterator[bytes]:
    with parts.open(part) as file:
        while chunk := file.read(_CHUNK):
            yield chunk


def _require_part(path: Path, name: str, chunks: Iterator[bytes]) -> None:
    limit, size, rows, columns, rest = memory.budget(), 0, 0, 0, b""
    for chunk in chunks:
        size += len(chunk)
        if size > limit:
            memory.require(size, f"{path}: its part {name!r}")
        text = rest + chunk
        places = _CELL.findall(text)
        rows = max(rows, max(map(int, {row for _, row in places}), default=0))
        columns = max(columns, max(map(_number, {column for column, _ in places}), default=0))
        # A tag may go on in the next chunk.
        begin = text.rfind(b"<")
        rest = text[begin:] if begin >= 0 and len(text) - begin <= _LONGEST_TAG else b""
    memory.require(
        _BYTES_OF_CELL * rows * columns,
        f"{path}: its sheet has entries up to row {rows} and column {columns}, and as a table",
        "Delete what stands far from the table, save the table as CSV, or raise the budget with "
        "mercer.config(memory=...).",
    )


def _number(letters: bytes) -> int:
    """The number of a column from its letters, from 1 on.

    >>> _number(b"A"), _number(b"Z"), _number(b"AA"), _number(b"XFD")
    (1, 26, 27, 16384)
    """
    number = 0
    for letter in letters:
        number = 26 * number + letter - 64
    return number
