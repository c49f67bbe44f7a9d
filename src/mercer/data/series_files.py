"""Series in the ``.ts`` files of the UCR and UEA archives, as aeon and sktime write them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from mercer._errors import DataError, MercerWarning, warn_user
from mercer.data.object_readers import column_of
from mercer.data.series import Series
from mercer.data.table import Table
from mercer.data.text_files import TextFile
from mercer.data.words import counted, shown

_TARGET = "label"
_MISSING = ("", "?")


@dataclass
class _Header:
    """What the lines before ``@data`` say."""

    classes: list[str] | None = None
    has_number: bool = False
    # What it says of every series, if it does.
    length: int | None = None
    channels: int | None = None

    @property
    def has_target(self) -> bool:
        return self.classes is not None or self.has_number


def read_ts(file: TextFile) -> Table:
    """Read a ``.ts`` file: a header of lines that begin with ``@``, and after ``@data`` a series in each line.

    Channels are separated by ``:``, and their values by commas. After the channels comes the class
    (``@classLabel true a b``) or a number (``@targetLabel true``), which is the column ``label`` of the table. Channels
    of a series must have one length; series may have several. Lines that begin with ``#`` are comments.

    Raises
    ------
    DataError
        If the file does not have this form, times are given (``@timeStamps true``), or a value is missing; the message
        has the line.

    Warns
    -----
    MercerWarning
        If a series has another length, or other channels, than the header says.
    """
    path, header, series, labels, lines = file.path, _Header(), [], list[Any](), list[int]()
    with file.open("whole") as text:
        inside = False
        for number, line in _lines(text):
            if not inside:
                inside = _read_header(path, number, line, header)
                continue
            *channels, last = line.split(":")
            if header.has_target:
                if not channels:
                    raise DataError(
                        f"{path}, line {number}: a class or a number must follow the series after ':', as the header "
                        f"says, but there is none in {shown(line)}."
                    )
                labels.append(_label(path, number, last.strip(), header))
            else:
                channels.append(last)
            series.append(_series(path, number, channels))
            lines.append(number)
    if not inside:
        raise DataError(f"{path} has no line '@data', after which the series of a .ts file stand.")
    for number, one in zip(lines, series):
        if one.shape[1] != series[0].shape[1]:
            raise DataError(
                f"{path}, line {number}: this series has {one.shape[1]} channels, but the first has "
                f"{series[0].shape[1]}."
            )
    _note_header(path, header, series, lines)
    frame = column_of("series", series)
    targets = {_TARGET: np.array(labels, dtype=object if None in labels else None)} if header.has_target else {}
    place = [f"line {number}" for number in lines]
    default = _TARGET if header.has_target else None
    return Table(frame, path.name, targets, default, place.__getitem__, {"series": "series"})


def _lines(text: Any) -> Iterator[tuple[int, str]]:
    for number, line in enumerate(text, start=1):
        content = line.strip()
        if content and not content.startswith("#"):
            yield number, content


def _read_header(path: Path, number: int, line: str, header: _Header) -> bool:
    """Read one line; return whether the series follow."""
    name, *words = line.split()
    name = name.lower()
    if not name.startswith("@"):
        raise DataError(f"{path}, line {number}: before '@data' a line must begin with '@', but this is {shown(line)}.")
    is_true = bool(words) and words[0].lower() == "true"
    if name == "@timestamps" and is_true:
        raise DataError(
            f"{path}, line {number}: times of the values ('@timeStamps true') are not read; write series with values "
            "at equal distances in time, and '@timeStamps false'."
        )
    if name == "@serieslength" and words and words[0].isdecimal():
        header.length = int(words[0])
    if name in ("@dimension", "@dimensions") and words and words[0].isdecimal():
        header.channels = int(words[0])
    if name == "@classlabel" and is_true:
        header.classes = words[1:]
    if name == "@targetlabel" and is_true:
        header.has_number = True
    return name == "@data"


def _note_header(path: Path, header: _Header, series: list[Any], lines: list[int]) -> None:
    """Say where the series are not as the header says; it may be the header that is wrong, so they stay as they are."""
    for place, stated, what in ((0, header.length, "value"), (1, header.channels, "channel")):
        others = [number for number, one in zip(lines, series) if stated is not None and one.shape[place] != stated]
        if others:
            actual = series[lines.index(others[0])].shape[place]
            warn_user(
                f"{path}: its header says that a series has {counted(stated or 0, what)}, but {len(others)} of "
                f"{len(series)} have not; that in line {others[0]} has {actual}. They are read as they "
                "stand; check that the file is whole.",
                MercerWarning,
            )


def _label(path: Path, number: int, text: str, header: _Header) -> Any:
    if header.has_number:
        try:
            return np.nan if text in _MISSING else float(text)
        except ValueError as error:
            raise DataError(f"{path}, line {number}: the target must be a number, but is {shown(text)}.") from error
    assert header.classes is not None
    if text in _MISSING:
        # An error where the classes are used, and none where they are predicted.
        return None
    if header.classes and text not in header.classes:
        raise DataError(
            f"{path}, line {number}: {shown(text)} is not among the classes of the header, "
            f"{', '.join(header.classes[:10])}."
        )
    return text


def _series(path: Path, number: int, channels: list[str]) -> Any:
    """A series of shape (times, channels)."""
    columns = [channel.split(",") for channel in channels]
    lengths = {len(column) for column in columns}
    if len(lengths) != 1:
        raise DataError(
            f"{path}, line {number}: the channels of a series must have one length, but have "
            f"{', '.join(map(str, sorted(lengths)))}. If a class follows the series, the header needs a line such as "
            "'@classLabel true a b'."
        )
    try:
        return Series.read(np.array(columns, dtype=np.float64).T)
    except (DataError, ValueError) as error:
        missing = any(entry.strip() in ("?", "", "NaN") for column in columns for entry in column)
        reason = "a value is missing; fill it, or leave the series out." if missing else str(error)
        raise DataError(f"{path}, line {number}: {reason}") from error
