"""Dates and times as columns of numbers: the date itself, and its place in the cycles of year, week and day."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from mercer._errors import DataError
from mercer._optional import optional
from mercer.data.column_entries import Column, dates, kind_of, read_columns
from mercer.data.table import row_place

_DAY = 86_400.0
_PERIODS = {"year": 365.2425 * _DAY, "week": 7.0 * _DAY, "day": _DAY}
PARTS = tuple(_PERIODS)
"""The cycles."""
# A cycle is informative in itself where the dates span at least so many days.
_LEAST_SPAN = {"year": 180.0, "week": 7.0, "day": 0.0}
# The first of January 1970 was a Thursday; weeks begin on Mondays.
_MONDAY = 3.0 * _DAY


def find_dates(frame: Any, verbatim: Sequence[str] = ()) -> dict[str, list[str]]:
    """Return the columns of dates, and the cycles in whose places their entries differ.

    Parameters
    ----------
    frame : pandas.DataFrame
    verbatim : sequence of str
        Columns that are ignored.

    Examples
    --------
    >>> import pandas as pd
    >>> find_dates(pd.DataFrame({"at": ["2026-01-31 10:00", "2026-02-08 11:00"], "km": [1, 2]}))
    {'at': ['week', 'day']}
    """
    cycles: dict[str, list[str]] = {}
    for column in _columns_of_dates(frame, [str(name) for name in frame.columns if str(name) not in verbatim]):
        values, missing = dates(column)
        known = values[~missing]
        span = float(np.ptp(known)) / _DAY
        differ = {"year": True, "week": len(np.unique(known // _DAY % 7)) > 1, "day": len(np.unique(known % _DAY)) > 1}
        cycles[column.name] = [part for part in PARTS if span >= _LEAST_SPAN[part] and differ[part]]
    return cycles


def _columns_of_dates(frame: Any, names: Sequence[str]) -> Iterator[Column]:
    """Columns of dates alone, without those that are empty."""
    dtypes = dict(zip(map(str, frame.columns), frame.dtypes, strict=True))
    likely = [name for name in names if str(dtypes[name]).startswith(("object", "datetime64", "str"))]
    for name in likely:
        if frame[name].notna().any():
            yield from (column for column in read_columns(frame[[name]]) if kind_of(column) == "date")


def expand_dates(
    frame: Any, cycles: Mapping[str, Sequence[str]], source: str, locate: Callable[[int], str] = row_place
) -> Any:
    """Return a data frame whose columns of dates are numbers, each followed by cosine and sine of its cycles.

    Parameters
    ----------
    frame : pandas.DataFrame
    cycles : dict of str to list of str
        As :func:`find_dates` returns them; columns that the frame lacks are left out.
    source : str
        The name of the table in messages.
    locate : callable
        Maps a row number to a description of its place, for messages.

    Raises
    ------
    DataError
        If an entry is not a date; the message gives its place.

    Examples
    --------
    >>> import pandas as pd
    >>> expand_dates(pd.DataFrame({"at": ["1970-01-02 06:00"]}), {"at": ["day"]}, "a table").round(3).to_dict("list")
    {'at': [1.25], 'at (day, cos)': [0.0], 'at (day, sin)': [1.0]}
    """
    present = [name for name in cycles if name in frame.columns]
    if not present:
        return frame
    columns: dict[str, Any] = {}
    for name in frame.columns:
        if name not in present:
            columns[name] = frame[name]
            continue
        (column,) = read_columns(frame[[name]])
        try:
            seconds, missing = dates(column, locate)
        except DataError as error:
            raise DataError(f"{source}, {error}") from error
        seconds = np.where(missing, np.nan, seconds)
        # In days, so that digits are left for the time.
        columns[name] = seconds / _DAY
        for part in cycles[name]:
            angle = 2.0 * np.pi * (seconds + (_MONDAY if part == "week" else 0.0)) / _PERIODS[part]
            columns[f"{name} ({part}, cos)"], columns[f"{name} ({part}, sin)"] = np.cos(angle), np.sin(angle)
    return optional("pandas", "reading dates").DataFrame(columns, index=frame.index)
