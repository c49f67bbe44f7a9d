"""A sheet of a workbook (``.xlsx``, ``.xls``, ``.ods``) as a table."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

from mercer._errors import DataError, MercerWarning, warn_user
from mercer._optional import optional
from mercer.data.table import Table
from mercer.data.text_columns import MISSING_WORDS
from mercer.data.words import listing
from mercer.data.workbook_size import require_room

SUFFIXES = (".xlsx", ".xls", ".xlsm", ".xlsb", ".ods")
# The rows of a sheet are counted from 1, and the first has the names.
_FIRST_ROW = 2


def read_workbook(path: Path, sheet: str | None = None) -> Table:
    """Read a sheet, by default the first: names in its first row, and a row of data in each one that follows.

    Cells have the types of the sheet: numbers, dates, text, true and false. Empty cells and the words of
    :data:`mercer.data.text_columns.MISSING_WORDS` are missing values; rows without any entry are left out.

    Parameters
    ----------
    path : pathlib.Path
    sheet : str, optional
        The name of a sheet, or its number from 1 on.

    Raises
    ------
    DataError
        If the file is not a workbook, it has no such sheet, or a column has no name, or the name of another one.
    MemoryBudgetError
        If the sheet does not fit the memory budget.
    MissingDependencyError
        If python-calamine is not installed.

    Warns
    -----
    MercerWarning
        If there are further sheets, and none is chosen.
    """
    pandas = optional("pandas", f"reading {path.name}")
    calamine = optional("python_calamine", f"reading {path.name}")
    require_room(path)
    try:
        book = calamine.CalamineWorkbook.from_path(str(path))
        names = list(book.sheet_names)
        place = _place(path, names, sheet)
        cells = book.get_sheet_by_index(place).to_python(skip_empty_area=False) if names else []
    except (calamine.CalamineError, OSError, ValueError) as error:
        raise DataError(f"{path} cannot be read as a workbook: {error}.") from error
    if len(names) > 1 and sheet is None:
        warn_user(
            f"{path} has {len(names)} sheets, of which the first, {names[0]!r}, is read; the others are "
            f"{listing(names[1:])}. Choose one by its name or number: --sheet 2.",
            MercerWarning,
        )
    if not cells:
        raise DataError(f"{path}: the sheet {names[place]!r} is empty." if names else f"{path} has no sheets.")
    header = _header(path, cells[0])
    frame = pandas.DataFrame([row[: len(header)] for row in cells[1:]], columns=header, dtype=object)
    frame = frame.mask(frame.isin(["", *MISSING_WORDS]))
    kept = frame.notna().any(axis=1).to_numpy().nonzero()[0]
    frame = frame.iloc[kept].reset_index(drop=True)
    for name in header:
        frame[name] = _column(frame[name], pandas)
    return Table(frame, path.name, locate=lambda row: f"row {int(kept[row]) + _FIRST_ROW} of the sheet")


def _place(path: Path, names: list[str], sheet: str | None) -> int:
    """The position of a sheet: a name comes before a number."""
    if sheet is None or sheet in names:
        return 0 if sheet is None else names.index(sheet)
    if not (sheet.isdecimal() and 1 <= int(sheet) <= len(names)):
        raise DataError(f"{path} has no sheet {sheet!r}; it has {listing(names)}, or 1 to {len(names)}.")
    return int(sheet) - 1


def _header(path: Path, cells: list[Any]) -> list[str]:
    """The names in the first row, up to the last one."""
    names = [str(cell).strip() for cell in cells]
    while names and not names[-1]:
        names.pop()
    if not names or "" in names:
        place = f"column {names.index('') + 1}" if names else "every column"
        raise DataError(
            f"{path}: {place} has no name in the first row of the sheet; write a name for every column there, and "
            "remove titles above it."
        )
    if any(isinstance(cell, (int, float)) for cell in cells[: len(names)]):
        raise DataError(f"{path}: the first row of the sheet has numbers in place of names; write a name for each.")
    twice = next((name for name, count in Counter(names).items() if count > 1), None)
    if twice is not None:
        raise DataError(f"{path}: {twice!r} is the name of several columns; give each its own.")
    return names


def _column(column: Any, pandas: Any) -> Any:
    """The narrowest type for the entries: numbers and dates as such, mixed entries as text."""
    entries = column.dropna()
    kinds = {type(entry) for entry in entries}
    if not kinds or kinds <= {int, float}:
        return pandas.to_numeric(column)
    if kinds == {bool}:
        return column.astype("boolean") if len(entries) < len(column) else column.astype(bool)
    inferred = column.infer_objects()
    if inferred.dtype != object:
        return inferred
    if all(hasattr(entry, "isoformat") and hasattr(entry, "year") for entry in entries):
        return pandas.to_datetime(column)
    return column.map(_text, na_action="ignore")


def _text(entry: Any) -> str:
    """Text as it is, and whole numbers without a fraction, as the sheet shows them."""
    return str(int(entry)) if isinstance(entry, float) and entry.is_integer() else str(entry)
