"""Numbers and dates in other notations: with units, signs of currencies or per cent, and marks between thousands."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from mercer._errors import DataError, MercerWarning, warn_user
from mercer._types import AnyArray
from mercer.data.date_columns import DateForm, date_form_of
from mercer.data.text_columns import are_codes, are_too_many, read_numbers
from mercer.data.words import listing, shown

_CURRENCIES = "USD EUR GBP CHF JPY CNY INR AUD CAD NZD SEK NOK DKK PLN CZK HUF BRL KRW ZAR"
# Before or after the digits; of these, a column has one, and everywhere.
_MONEY = rf"[%‰$€£¥₹±]|{_CURRENCIES.replace(' ', '|')}"
_UNITS = (
    "kg mg µg μg lb lbs oz km cm dm mm µm μm nm mi ft yd ha ml mL dl cl hr hrs min sec ms µs μs hours minutes seconds "
    "days weeks months years °C °F ° kPa hPa Pa bar mbar psi mV kV mA kW MW kWh MWh kJ MJ kcal Hz kHz MHz GHz rpm mol "
    "mmol km/h m/s m/s² mph ppm ppb dB px kB KB MB GB TB m² m2 m³ m3 km² km2 cm² cm³ mm² sqft mg/l mg/L g/l µg/m³ "
    "g/cm³ mmHg bpm"
)
# After digits without a blank, a single letter is more likely the end of a code, as in 12a.
_LETTERS = "t m g l L h s d V A W J N K"
_AFTER = "|".join(
    [
        _MONEY,
        *map(re.escape, sorted(_UNITS.split(), key=len, reverse=True)),
        rf"(?<=\s)(?:{_LETTERS.replace(' ', '|')})",
    ]
)
_THOUSANDS = {"k": 3, "K": 3, "M": 6, "B": 9}
# Spaces of several widths are marks between thousands.
_SPACES = r"' \u00a0\u202f’"
# The minus of money stands before its sign or after it: -$5, $-5. Fortran writes exponents with a D. What follows ±
# says how sure a number is.
_ENTRY = re.compile(
    rf"(?P<minus>[-+−]?)\s*(?P<before>{_MONEY})?\s*(?P<inner>[-+−]?)\s*(?P<body>\d[\d.,{_SPACES}]*?|[.,]\d+)"
    rf"(?:[dDeE](?P<exponent>[-+]?\d+))?(?P<scale>[kKMB](?=\s|$|{_MONEY}))?"
    rf"(?:\s*(?:±|\+/-)\s*[\d.,]+)?\s*(?P<after>{_AFTER})?"
)
# As spreadsheets protect text: ="5".
_PROTECTED = re.compile(r'="([^"]*)"')


def _body(decimal: str) -> re.Pattern[str]:
    mark = rf"[{',' if decimal == '.' else '.'}{_SPACES}]"
    end = rf"(?:\{decimal}\d+)?"
    return re.compile(rf"[1-9]\d{{0,2}}(?:{mark}\d{{3}})+{end}|\d+{end}|\{decimal}\d+")


_BODIES = {decimal: _body(decimal) for decimal in ".,"}


def _entry(text: str) -> re.Match[str] | None:
    """The parts of a number in some notation."""
    text = text.strip()
    protected = _PROTECTED.fullmatch(text)
    match = _ENTRY.fullmatch(protected[1].strip() if protected else text)
    if match is None or (match["before"] and match["after"]) or (match["minus"] and match["inner"]):
        return None
    return match if any(body.fullmatch(match["body"]) for body in _BODIES.values()) else None


def _sign(entry: re.Match[str]) -> str:
    return str(entry["before"] or entry["after"] or "")


@dataclass(frozen=True)
class Notation:
    """How a column writes its numbers.

    Parameters
    ----------
    decimal : {".", ","}
        The mark before decimals; the other one, apostrophes and spaces stand between thousands.
    sign : str
        What stands before or after the digits, as ``"$"`` or ``"kg"``; empty for nothing.
    """

    decimal: str
    sign: str
    entries: ClassVar[str] = "numbers"
    missing: ClassVar[Any] = np.nan

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
        >>> Notation(".", "kg").read("63.7 ± 0.2 kg"), [Notation(".", "").read(text) for text in ("63.7k", "6.3D+01")]
        (63.7, [63700.0, 63.0])
        """
        entry = _entry(text)
        if entry is None or _sign(entry) not in ("", self.sign) or not _BODIES[self.decimal].fullmatch(entry["body"]):
            return None
        digits = re.sub(rf"[^\d\{self.decimal}]", "", entry["body"]).replace(self.decimal, ".")
        minus = (entry["minus"] + entry["inner"]).replace("−", "-")
        return float(f"{minus}{digits}e{int(entry['exponent'] or 0) + _THOUSANDS.get(entry['scale'] or '', 0)}")


def in_another_notation(texts: Iterable[str]) -> bool:
    """Whether all texts are numbers of one unit, of which some are written as Mercer does not read them by itself.

    >>> [in_another_notation(texts) for texts in (["1,100", "5 %"], ["1,100", "many"], ["500 g", "1 kg"])]
    [True, False, False]
    """
    signs = set()
    for text in texts:
        entry = _entry(text)
        if entry is None:
            return False
        signs.add(_sign(entry))
    # Packets of 500 g and 1 kg are categories as they stand; amounts in two currencies are not.
    units = {sign for sign in signs if sign and not re.fullmatch(_MONEY, sign)}
    return len(units) < 2


def notation_of(texts: Sequence[str], decimal: str = ".") -> Notation | None:
    """Return the one notation in which all texts are numbers; None if a text is not a number.

    Parameters
    ----------
    texts : list of str
    decimal : {".", ","}
        The mark before decimals if the texts leave open which it is, as 1,100 does.

    Raises
    ------
    DataError
        If there are several, or the texts have several signs.

    Examples
    --------
    >>> notation_of(["$5", "$1,100"]), notation_of(["1.100,5", "2,5"]), notation_of(["5", "many"])
    (Notation(decimal='.', sign='$'), Notation(decimal=',', sign=''), None)
    """
    if not texts or not in_another_notation(texts) or are_codes(_PROTECTED.sub(r"\1", text) for text in texts):
        return None
    found = {_sign(entry) for entry in map(_entry, texts) if entry is not None}
    signs = sorted(found - {""})
    sign = signs[0] if signs else ""
    if len(signs) > 1 or (sign and "" in found):
        others = signs[1] if len(signs) > 1 else "no sign"
        raise DataError(f"some entries have {sign!r} and others have {others!r}, so that they are not of one unit.")
    fitting = [mark for mark in ".," if all(Notation(mark, sign).read(text) is not None for text in texts)]
    if not fitting:
        raise DataError("commas and points do not stand for the same in all entries.")
    marks = {letter for text in texts for letter in text if letter in ",."}
    if len(fitting) == 2 and len(marks) == 2:
        raise DataError("commas and points are both possible as decimal marks.")
    return Notation(decimal if decimal in fitting else fitting[0], sign)


def parse_numbers(
    frame: Any, source: str, verbatim: Sequence[str] = (), written: Any = None
) -> tuple[Any, dict[str, Notation | DateForm]]:
    """Return a data frame whose columns of numbers and dates in other notations are such, and how these were written.

    Where a column leaves open which mark stands before decimals, it is the one of the other columns; if these leave it
    open too, it is the point.

    Parameters
    ----------
    frame : pandas.DataFrame
    source : str
        Its name in messages.
    verbatim : sequence of str
        Columns that stay as they are.
    written : pandas.DataFrame, optional
        The same columns as text, as they are written in the file. Default: ``frame``.

    Raises
    ------
    DataError
        If a column has several notations.

    Warns
    -----
    MercerWarning
        If a column that is too varied for categories holds numbers in several units.
    """
    texts = {}
    for name in frame.columns:
        column = (frame if written is None else written)[name]
        if str(name) not in verbatim and _is_text(column):
            texts[str(name)] = [str(value) for value in column.dropna().unique()]
    marks = {mark for entries in texts.values() if (mark := _decimal_mark(entries))}
    notations: dict[str, Notation | DateForm] = {}
    for name, entries in texts.items():
        if not _is_to_be_read(entries, _is_text(frame[name]), marks):
            continue
        try:
            decimal = "," if marks == {","} else "."
            form = notation_of(entries, decimal) or date_form_of(entries)
        except DataError as error:
            raise DataError(
                f"{source}: the column {shown(name)} cannot be read by --parse-numbers: {error} Correct it, or "
                "leave the column out with --drop."
            ) from error
        if form is not None:
            notations[name] = form
        elif all(map(_entry, entries)) and are_too_many(len(entries), frame[name].count()):
            units = sorted({_sign(entry) for entry in map(_entry, entries) if entry is not None} - {""})
            warn_user(
                f"{source}: the column {shown(name)} holds numbers in several units ({listing(units, 4)}), so it stays "
                "text. Write all of them in one unit.",
                MercerWarning,
            )
    used = frame if written is None else frame.assign(**{name: written[name] for name in notations})
    return read_notations(used, notations, source, lambda row: f"row {row + 1}"), notations


def _is_to_be_read(texts: Sequence[str], is_text: bool, marks: set[str]) -> bool:
    """Whether a column has another notation; the marks before decimals are those of all columns that show them."""
    plain = not len(read_numbers(texts).strange)
    if marks and _decimal_mark(texts) == "":
        # A reader of numbers knows the mark of the file at most, and not that of thousands.
        return not (plain and marks == {"."})
    return is_text and not plain


def _decimal_mark(texts: Sequence[str]) -> str | None:
    """The mark before decimals if these numbers show it, empty if they leave it open; None without such a mark."""
    entries = [entry for entry in map(_entry, texts) if entry is not None]
    if len(entries) < len(texts) or not any(mark in entry["body"] for entry in entries for mark in ".,"):
        return None
    fitting = [mark for mark, body in _BODIES.items() if all(body.fullmatch(entry["body"]) for entry in entries)]
    return fitting[0] if len(fitting) == 1 else ""


def read_notations(
    frame: Any, notations: Mapping[str, Notation | DateForm], source: str, locate: Callable[[int], str]
) -> Any:
    """Return a data frame whose named columns are read in the given notations; those that it lacks are left out.

    Raises
    ------
    DataError
        If an entry is not a number, or a date, in the notation of its column.
    """
    present = {name: notation for name, notation in notations.items() if name in frame.columns}
    columns = {name: _read(frame[name], notation, source, locate) for name, notation in present.items()}
    return frame.assign(**columns) if columns else frame


def _read(column: Any, notation: Notation | DateForm, source: str, locate: Callable[[int], str]) -> AnyArray:
    if not _is_text(column):
        return column.to_numpy(dtype=None if isinstance(notation, DateForm) else np.float64)
    values = np.full(len(column), notation.missing)
    for row, (value, is_gap) in enumerate(zip(column.tolist(), column.isna(), strict=True)):
        if is_gap:
            continue
        read = notation.read(str(value))
        if read is None:
            raise DataError(
                f"{source}, {locate(row)}, column {shown(str(column.name))}: {shown(value)} is not a "
                f"{notation.entries[:-1]} as the model was fitted on, {notation.describe()}. Correct it, or leave the "
                "field empty if it is unknown."
            )
        values[row] = read
    return values


def _is_text(column: Any) -> bool:
    return str(column.dtype).startswith(("object", "str"))
