"""Dates and times as columns of numbers: the date itself, and its place in the cycles of year, week and day."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, ClassVar

import numpy as np

from mercer._errors import DataError
from mercer._optional import optional
from mercer.data.column_entries import Column, dates, dates_of, is_date, kind_of, read_columns
from mercer.data.table import row_place
from mercer.data.words import DATE_FORMS

_DAY = 86_400.0
_PERIODS = {"year": 365.2425 * _DAY, "week": 7.0 * _DAY, "day": _DAY}
PARTS = tuple(_PERIODS)
"""The cycles."""
# A cycle is informative in itself where the dates span at least so many days.
_LEAST_SPAN = {"year": 180.0, "week": 7.0, "day": 0.0}
# The first of January 1970 was a Thursday; weeks begin on Mondays.
_MONDAY = 3.0 * _DAY


_MONTHS = (
    *("January", "February", "March", "April", "May", "June"),
    *("July", "August", "September", "October", "November", "December"),
)
_PARTS = {
    "day": r"(?P<day>\d\d?)",
    "month": r"(?P<month>\d\d?|[A-Za-z]{3,9})\.?",
    "year": r"(?P<year>(?:1[89]|20)\d\d)",
    "time": r"(?P<hour>\d\d?):(?P<minute>\d\d)(?::(?P<second>\d\d))?(?: ?(?P<half>[AaPp])[Mm])?",
}


def _form(order: str) -> re.Pattern[str]:
    parts = [_PARTS[part] for part in order.split()]
    time = rf"(?:(?: |T|, ){_PARTS['time']})?" if len(parts) == 3 else ""
    return re.compile(r"(?:[-./ ]|, )".join(parts) + time, re.ASCII)


_PATTERNS = {order: _form(order) for order in DATE_FORMS}


@dataclass(frozen=True)
class DateForm:
    """How a column writes dates, other than in the form of ISO 8601.

    Parameters
    ----------
    order : str
        Of the parts: one of :data:`mercer.data.words.DATE_FORMS`. A time is that of the first day of 1970, a month its
        first day.
    """

    order: str
    entries: ClassVar[str] = "dates"
    missing: ClassVar[Any] = np.datetime64("NaT", "s")

    def describe(self) -> str:
        """Describe the form in words.

        >>> DateForm("month day year").describe(), DateForm("time").describe()
        ('in the order month, day, year', 'as times of day')
        """
        return "as times of day" if self.order == "time" else f"in the order {self.order.replace(' ', ', ')}"

    def read(self, text: str) -> np.datetime64 | None:
        """Return the date that a text is in this form, or None.

        >>> str(DateForm("day month year").read("31-Aug-2024")), DateForm("day month year").read("31-Sep-2024")
        ('2024-08-31T00:00:00', None)
        """
        match = _PATTERNS[self.order].fullmatch(text.strip())
        if match is None:
            return None
        found = {"year": "1970", "month": "1", "day": "1"} | {k: v for k, v in match.groupdict().items() if v}
        month = _month(found["month"])
        hour, minute, second = (int(found.get(part, 0)) for part in ("hour", "minute", "second"))
        if "half" in found:
            if not 1 <= hour <= 12:
                return None
            hour = hour % 12 + (12 if found["half"] in "Pp" else 0)
        try:
            return np.datetime64(datetime(int(found["year"]), month, int(found["day"]), hour, minute, second), "s")
        except ValueError:
            return None


def _month(text: str) -> int:
    """The number of a month; 0 if there is none of that name."""
    if text.isdigit():
        return int(text)
    text = text.lower()
    names = (name.lower() for name in _MONTHS)
    return next((i + 1 for i, name in enumerate(names) if text in (name, name[:3], name[:4])), 0)


def are_dates(texts: Iterable[str]) -> bool:
    """Whether all texts are dates in one form.

    >>> are_dates(["31-Aug-2024", "1-Sep-2024"]), are_dates(["31-Aug-2024", "soon"])
    (True, False)
    """
    fitting = [DateForm(order) for order in DATE_FORMS]
    for text in texts:
        fitting = [form for form in fitting if form.read(text) is not None]
        if not fitting:
            return False
    return True


def date_form_of(texts: Sequence[str]) -> DateForm | None:
    """Return the form in which all texts are dates; None if there is none, or if it is that of ISO 8601.

    Raises
    ------
    DataError
        If days may be months and months days.

    Examples
    --------
    >>> date_form_of(["31.8.2024", "1.9.2024"]), date_form_of(["14:05"]), date_form_of(["Ulm"])
    (DateForm(order='day month year'), DateForm(order='time'), None)
    """
    if not texts or not are_dates(texts) or all(map(is_date, texts)):
        return None
    forms = [form for form in map(DateForm, DATE_FORMS) if all(form.read(text) is not None for text in texts)]
    different = [text for text in texts if len(forms) > 1 and forms[0].read(text) != forms[1].read(text)]
    if different:
        # Points come after the day.
        if all(text.count(".") >= 2 for text in texts):
            return DateForm("day month year")
        raise DataError(
            f"dates such as {different[0]!r} may have the day or the month first. Write the year first, as in "
            "2024-08-31."
        )
    return forms[0]


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
        seconds, missing = dates_of(frame[name], name, source, locate)
        seconds = np.where(missing, np.nan, seconds)
        # In days, so that digits are left for the time.
        columns[name] = seconds / _DAY
        for part in cycles[name]:
            angle = 2.0 * np.pi * (seconds + (_MONDAY if part == "week" else 0.0)) / _PERIODS[part]
            columns[f"{name} ({part}, cos)"], columns[f"{name} ({part}, sin)"] = np.cos(angle), np.sin(angle)
    return optional("pandas", "reading dates").DataFrame(columns, index=frame.index)
