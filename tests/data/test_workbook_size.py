"""Workbooks that are small as files and huge as tables: an error before a parser sees them."""

from __future__ import annotations

import struct
import time
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

import mercer
from mercer._errors import DataError, MemoryBudgetError
from mercer.data.readers import read_table
from mercer.data.workbook_size import _require_part, require_room


def _book(path: Path, sheet: str) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as parts:
        parts.writestr("xl/worksheets/sheet1.xml", sheet)
    return path


@pytest.mark.parametrize(
    "cell",
    [
        '<c r="XFD1048576"><v>1</v></c>',
        "<x:c s='1' r = 'XFD1048576'><x:v>1</x:v></x:c>",
        '<c r="A1048576"><v>1</v></c><c r="XFD1"><v>1</v></c>',
    ],
)
def test_one_entry_in_the_last_cell(tmp_path: Path, cell: str) -> None:
    path = _book(tmp_path / "a.xlsx", f'<worksheet><c r="A1"/>{cell}</worksheet>')
    words = r"a.xlsx: its sheet has entries up to row 1048576 and column 16384, and as a table would take 1.0 TiB"
    with mercer.config(memory="1 GiB"), pytest.raises(MemoryBudgetError, match=words):
        read_table(path)


def test_cells_without_entries_do_not_count(tmp_path: Path) -> None:
    """Styles reach to the last cell of many a sheet."""
    cells = '<c r="B2"><v>1</v></c><c r="XFD1048576" s="2"/>'
    with mercer.config(memory="1 MiB"):
        require_room(_book(tmp_path / "a.xlsx", f"<worksheet>{cells}</worksheet>"))


def test_a_cell_between_two_chunks() -> None:
    text = b'<row r="9"><c r="ZZ900" s="1"><v>1</v></c>'
    for cut in range(len(text)):
        with mercer.config(memory=10_000), pytest.raises(MemoryBudgetError, match="row 900 and column 702"):
            _require_part(Path("a.xlsx"), "sheet", iter([text[:cut], text[cut:]]))


def test_parts_that_unpack_to_more_than_they_say(tmp_path: Path) -> None:
    path = _book(tmp_path / "a.xlsx", " " * 3_000_000)
    assert path.stat().st_size < 10_000
    data = path.read_bytes()
    size = struct.pack("<I", 3_000_000)
    assert data.count(size) == 2
    for content in (data, data.replace(size, struct.pack("<I", 10))):
        path.write_bytes(content)
        with mercer.config(memory="1 MiB"), pytest.raises(MemoryBudgetError, match=r"its part 'xl/worksheets/sheet1"):
            read_table(path)


def test_a_damaged_archive(tmp_path: Path) -> None:
    path = _book(tmp_path / "a.xlsx", "<worksheet/>" * 1000)
    data = bytearray(path.read_bytes())
    data[60:70] = bytes(10)
    path.write_bytes(data)
    with pytest.raises(DataError, match="cannot be read as a workbook"):
        read_table(path)


@pytest.mark.parametrize(
    "text", [b"<c " * 300_000, b"<c " + b' r="A"' * 100_000, b"<c" + b" " * 900_000, b"<" * 900_000]
)
def test_the_time_is_linear_in_the_length(text: bytes) -> None:
    def chunks() -> Iterator[bytes]:
        yield text

    start_time = time.process_time()
    _require_part(Path("a.xlsx"), "sheet", chunks())
    # A quadratic search takes minutes.
    assert time.process_time() - start_time < 5.0


def test_files_that_are_no_archives(tmp_path: Path) -> None:
    (tmp_path / "a.xls").write_bytes(b"\xd0\xcf\x11\xe0" * 200)
    require_room(tmp_path / "a.xls")
    with pytest.raises(DataError, match="cannot be read as a workbook"):
        read_table(tmp_path / "a.xls")
