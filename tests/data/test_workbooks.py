"""Workbooks: the first sheet, with the types of its cells."""

from __future__ import annotations

import zipfile
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape

import numpy as np
import pytest

from mercer._errors import DataError, MercerWarning
from mercer.cli import main
from mercer.data.readers import read_table

_HEAD = '<?xml version="1.0" encoding="UTF-8" standalone="yes"?>'
_MAIN = 'xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"'
_OFFICE = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
_PACKAGE = "http://schemas.openxmlformats.org/package/2006"


def _cell(place: str, value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return f'<c r="{place}" t="b"><v>{int(value)}</v></c>'
    if isinstance(value, tuple):
        # A day in the second style, which is that of dates.
        return f'<c r="{place}" s="1"><v>{value[0]}</v></c>'
    if isinstance(value, (int, float)):
        return f'<c r="{place}"><v>{value}</v></c>'
    return f'<c r="{place}" t="inlineStr"><is><t>{escape(value)}</t></is></c>'


def _sheet(rows: list[list[Any]]) -> str:
    lines = []
    for number, row in enumerate(rows, start=1):
        cells = "".join(_cell(f"{chr(65 + j)}{number}", value) for j, value in enumerate(row))
        lines.append(f'<row r="{number}">{cells}</row>')
    return f"{_HEAD}<worksheet {_MAIN}><sheetData>{''.join(lines)}</sheetData></worksheet>"


def write(path: Path, *sheets: list[list[Any]]) -> Path:
    """Write a workbook as simple as one can be."""
    numbers = range(1, len(sheets) + 1)
    named = "".join(f'<sheet name="Sheet {i}" sheetId="{i}" r:id="rId{i}"/>' for i in numbers)
    links = "".join(
        f'<Relationship Id="rId{i}" Type="{_OFFICE}/worksheet" Target="worksheets/sheet{i}.xml"/>' for i in numbers
    )
    styles = f'<Relationship Id="rId99" Type="{_OFFICE}/styles" Target="styles.xml"/>'
    with zipfile.ZipFile(path, "w") as book:
        book.writestr(
            "[Content_Types].xml",
            f'{_HEAD}<Types xmlns="{_PACKAGE}/content-types"><Default Extension="xml" ContentType="application/xml"/>'
            '<Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/>'
            "</Types>",
        )
        book.writestr(
            "_rels/.rels",
            f'{_HEAD}<Relationships xmlns="{_PACKAGE}/relationships"><Relationship Id="rId1" '
            f'Type="{_OFFICE}/officeDocument" Target="xl/workbook.xml"/></Relationships>',
        )
        book.writestr(
            "xl/workbook.xml", f'{_HEAD}<workbook {_MAIN} xmlns:r="{_OFFICE}"><sheets>{named}</sheets></workbook>'
        )
        book.writestr(
            "xl/_rels/workbook.xml.rels",
            f'{_HEAD}<Relationships xmlns="{_PACKAGE}/relationships">{links}{styles}</Relationships>',
        )
        book.writestr(
            "xl/styles.xml",
            f'{_HEAD}<styleSheet {_MAIN}><cellXfs count="2"><xf numFmtId="0"/><xf numFmtId="14"/></cellXfs>'
            "</styleSheet>",
        )
        for i, rows in zip(numbers, sheets):
            book.writestr(f"xl/worksheets/sheet{i}.xml", _sheet(rows))
    return path


ROWS = [
    ["length", "kind", "day", "sold", "code"],
    [1.5, "a", (45000,), True, "007"],
    [None, "?", (45001,), False, "008"],
    [None, None, None, None, None],
    [3, "b", None, True, 12],
]


def test_cells_keep_their_types(tmp_path: Path) -> None:
    table = read_table(write(tmp_path / "a.xlsx", ROWS))
    frame = table.columns
    assert frame.columns.tolist() == ROWS[0]
    np.testing.assert_array_equal(frame["length"], [1.5, np.nan, 3.0])
    assert frame["kind"].tolist()[::2] == ["a", "b"] and frame["kind"].isna().tolist() == [False, True, False]
    assert [str(day)[:10] for day in frame["day"]] == ["2023-03-15", "2023-03-16", "NaT"]
    assert frame["sold"].tolist() == [True, False, True]
    assert frame["code"].tolist() == ["007", "008", "12"]
    # The row without entries is left out, and places are those of the sheet.
    assert [table.locate(row) for row in range(3)] == [f"row {number} of the sheet" for number in (2, 3, 5)]


def test_further_sheets_are_named(tmp_path: Path) -> None:
    with pytest.warns(MercerWarning, match="has 2 sheets, of which the first, 'Sheet 1'"):
        table = read_table(write(tmp_path / "a.xlsx", ROWS, [["other"], [1.0]]))
    assert table.n_rows == 3


@pytest.mark.parametrize("sheet", ["Sheet 2", "2"])
def test_a_sheet_can_be_chosen(tmp_path: Path, sheet: str) -> None:
    path = write(tmp_path / "a.xlsx", ROWS, [["other"], [1.0]])
    table = read_table(path, sheet=sheet)
    assert table.names == ["other"] and table.columns["other"].tolist() == [1.0]
    assert read_table(path, sheet="1").names == ROWS[0]


def test_the_warning_about_sheets_names_an_option_that_chooses(tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    path, numbers = tmp_path / "a.xlsx", np.arange(12.0)
    write(path, [["a", "y"], *([x, -x] for x in numbers)], [["b", "y"], *([x, x * x] for x in numbers)])
    model = str(tmp_path / "m.mercer")
    with pytest.warns(MercerWarning, match=r"Choose one by its name or number: --sheet 2\."):
        read_table(path)
    assert main(["fit", str(path), "--sheet", "2", "-t", "y", "--model", "ridge", "-o", model]) == 0
    assert main(["predict", model, str(path), "--sheet", "Sheet 2"]) == 0
    assert capsys.readouterr().err.count("note") == 0


@pytest.mark.parametrize("sheet", ["Sheet 3", "3", "0", "-1", ""])
def test_sheets_that_do_not_exist(tmp_path: Path, sheet: str) -> None:
    with pytest.raises(DataError, match=r"has no sheet .*; it has 'Sheet 1', 'Sheet 2', or 1 to 2"):
        read_table(write(tmp_path / "a.xlsx", ROWS, [["other"], [1.0]]), sheet=sheet)
    (tmp_path / "a.csv").write_text("x,y\n1,2\n")
    with pytest.raises(DataError, match="has no sheets, so none can be chosen; leave --sheet out"):
        read_table(tmp_path / "a.csv", sheet=sheet)


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([["x", None, "z"], [1, 2, 3]], "column 2 has no name in the first row"),
        ([[1.0, 2.0], [3.0, 4.0]], "has numbers in place of names"),
        ([["x", "x"], [1, 2]], "'x' is the name of several columns"),
        ([["x", "y"]], "has no rows of data"),
        ([], "is empty"),
    ],
)
def test_sheets_that_are_no_tables(tmp_path: Path, rows: list[list[Any]], message: str) -> None:
    with pytest.raises(DataError, match=message):
        read_table(write(tmp_path / "a.xlsx", rows))


def test_files_that_are_no_workbooks(tmp_path: Path) -> None:
    path = tmp_path / "a.xlsx"
    path.write_text("x,y\n1,2\n")
    with pytest.raises(DataError, match="cannot be read as a workbook"):
        read_table(path)
    path.write_bytes(write(tmp_path / "b.xlsx", ROWS).read_bytes()[:300])
    with pytest.raises(DataError, match="cannot be read as a workbook"):
        read_table(path)
