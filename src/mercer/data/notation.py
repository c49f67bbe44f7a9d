"""Numbers in other notations: with signs of currencies or per cent, and with marks between thousands."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from mercer._errors import DataError
from mercer._types import Vector
from mercer.data.schema import Locate, in_another_notation
from mercer.data.text_columns import read_numbers
from mercer.data.words import shown

_SIGNS = "%$€£¥"
# Spaces of several widths are marks between thousands.
# The minus of money stands before its sign or after it: -$5, $-5.
_ENTRY = re.compile(
    rf"(?P<minus>[-+]?)\s*(?P<before>[{_SIGNS}]?)\s*(?P<inner>[-+]?)\s*(?P<body>\d.*?|[.,]\d+)\s*(?P<after>[{_SIGNS}]?)"
)
_SPACES = r"' \u00a0\u202f’"


def _body(decimal: str) -> re.Pattern[str]:
    mark = rf"[{',' if decimal == '.' else '.'}{_SPACES}]"
    end = rf"(?:\{decimal}\d+)?"
    return re.compile(rf"\d{{1,3}}(?:{mark}\d{{3}})+{end}|\d+{end}|\{decimal}\d+")


_BODIES = {decimal: _body(decimal) for decimal in ".,"}


@dataclass(frozen=True)
class Notation:
    """How a column writes its numbers.

    Parameters
    ----------
    decimal : {".", ","}
        The mark before decimals; the other one, apostrophes and spaces stand between thousands.
    sign : str
        What stands before or after the digits, as ``"$"``; empty for nothing.
    """

    decimal: str
    sign: str

    def describe(self) -> str:
        """Describe the notation in words.

        >>> Notation(".", "$").describe(), Notation(",", "").describe()
        ("without '$', with the decimal mark '.'", "with the decimal mark ','")
        """
        sign = f"without {self.sign!r}, " if self.sign else ""
        return f"{sign}with the decimal mark {self.decimal!r}"

    def read(self, text: str) -> float | None:
        """Return the number that a text is in this notation, or None.

        >>> Notation(".", "$").read("-$1,100.5"), Notation(",", "").read("1.100,5"), Notation(".", "$").read("5 €")
        (-1100.5, 1100.5, None)
        >>> Notation(".", "$").read("$-0.50"), Notation(".", "$").read("-$-5")
        (-0.5, None)
        """
        match = _ENTRY.fullmatch(text.strip())
        if match is None or (match["before"] and match["after"]) or (match["minus"] and match["inner"]):
            return None
        if (match["before"] or match["after"]) not in ("", self.sign):
            return None
        if not _BODIES[self.decimal].fullmatch(match["body"]):
            return None
        digits = re.sub(rf"[^\d\{self.decimal}]", "", match["body"]).replace(self.decimal, ".")
        return float(f"{match['minus']}{match['inner']}{digits}")


def notation_of(texts: Sequence[str]) -> Notation | None:
    """Return the one notation in which all texts are numbers; None if a text is not a number.

    Raises
    ------
    DataError
        If there are several, or the texts have several signs.

    Examples
    --------
    >>> notation_of(["$5", "$1,100"]), notation_of(["1.100,5", "2,5"]), notation_of(["5", "many"])
    (Notation(decimal='.', sign='$'), Notation(decimal=',', sign=''), None)
    """
    if not texts or not in_another_notation(texts):
        return None
    signs = sorted({"".join(letter for letter in text if letter in _SIGNS) for text in texts} - {""})
    sign = signs[0] if signs else ""
    if len(signs) > 1 or (sign and any(sign not in text for text in texts)):
        others = signs[1] if len(signs) > 1 else "no sign"
        raise DataError(f"some entries have {sign!r} and others have {others!r}, so that they are not of one unit.")
    fitting = [n for n in (Notation(".", sign), Notation(",", sign)) if all(n.read(text) is not None for text in texts)]
    if not fitting:
        raise DataError("commas and points do not stand for the same in all entries.")
    marks = {letter for text in texts for letter in text if letter in ",."}
    if len(fitting) == 2 and len(marks) == 2:
        raise DataError("commas and points are both possible as decimal marks.")
    # Alone, a comma before three digits stands between thousands, and a point before decimals.
    return fitting[0]


def parse_numbers(frame: Any, source: str, verbatim: Sequence[str] = ()) -> tuple[Any, dict[str, Notation]]:
    """Return a data frame whose columns of numbers in other notations are numbers, and how these were written.

    Parameters
    ----------
    frame : pandas.DataFrame
    source : str
        Its name in messages.
    verbatim : sequence of str
        Columns that stay as they are.

    Raises
    ------
    DataError
        If a column has several notations.
    """
    notations: dict[str, Notation] = {}
    for name in frame.columns:
        column = frame[name]
        if str(name) in verbatim or not _is_text(column):
            continue
        texts = [str(value) for value in column.dropna()]
        if not len(read_numbers(texts).strange):
            continue
        try:
            notation = notation_of(texts)
        except DataError as error:
            raise DataError(
                f"{source}: the column {shown(str(name))} cannot be read by --parse-numbers: {error} Correct it, or "
                "leave the column out with --drop."
            ) from error
        if notation is not None:
            notations[str(name)] = notation
    return read_notations(frame, notations, source, lambda row: f"row {row + 1}"), notations


def read_notations(frame: Any, notations: Mapping[str, Notation], source: str, locate: Locate) -> Any:
    """Return a data frame whose named columns are read in the given notations; those that it lacks are left out.

    Raises
    ------
    DataError
        If an entry is not a number in the notation of its column.
    """
    present = {name: notation for name, notation in notations.items() if name in frame.columns}
    columns = {name: _numbers(frame[name], notation, source, locate) for name, notation in present.items()}
    return frame.assign(**columns) if columns else frame


def _numbers(column: Any, notation: Notation, source: str, locate: Locate) -> Vector:
    if not _is_text(column):
        return np.asarray(column, dtype=np.float64)
    numbers = np.full(len(column), np.nan)
    for row, (value, is_gap) in enumerate(zip(column.tolist(), column.isna(), strict=True)):
        if is_gap:
            continue
        number = notation.read(str(value))
        if number is None:
            raise DataError(
                f"{source}, {locate(row)}, column {shown(str(column.name))}: {shown(value)} is not a number as the "
                f"model was fitted on, {notation.describe()}. Correct it, or leave the field empty if it is unknown."
            )
        numbers[row] = number
    return numbers


def _is_text(column: Any) -> bool:
    return str(column.dtype).startswith(("object", "str"))
