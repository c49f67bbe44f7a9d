"""Names in messages, and choices that users make by name; it imports nothing heavy, so that errors appear at once."""

from __future__ import annotations

import difflib
import math
import re
from collections.abc import Iterable

from mercer._errors import ParameterError

TASKS = ("classification", "regression")
NORMALIZE = ("standard", "minmax", "unit", "none")
# Characters of a value or a name that a message quotes.
_LONGEST = 60
# All control characters but line breaks and tabs; overrides of the direction of writing; surrogates.
_OBEYED = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
# Names in quotes, and numbers with at least three decimals.
_LONG_NUMBERS = re.compile(r"""'[^']*'|"[^"]*"|\d+\.\d{3,}(?:e[+-]?\d+)?""")
_LISTS = re.compile(r"\[([^]]+)\]")
# Numbers from 10 to this power on are written with an exponent.
_MOST_DIGITS = 7
DATE_FORMS = ("day month year", "month day year", "year month day", "year month", "month year", "time")
"""Orders of the parts of dates."""
IMPUTE = ("mean", "median", "most_frequent")


def closest_names(name: str, names: Iterable[object], count: int = 3) -> list[str]:
    """Return those of ``names`` that are most similar to ``name``, ignoring case.

    >>> closest_names("pric", ["Price", "size"])
    ['Price']
    """
    by_lower = {str(known).lower(): str(known) for known in names}
    matches = difflib.get_close_matches(str(name).lower(), list(by_lower), n=count, cutoff=0.5)
    return [by_lower[key] for key in matches]


def listing(names: Iterable[object], most: int = 10) -> str:
    """Return names in quotes, with the tail of a long list as a count.

    >>> listing(["a", "b", "c"], most=2)
    "'a', 'b' and 1 more"
    """
    quoted = [shown(name) for name in names]
    rest = len(quoted) - most
    return ", ".join(quoted) if rest <= 0 else f"{', '.join(quoted[:most])} and {rest} more"


def counted(count: int, what: str) -> str:
    """Return a number of things.

    >>> counted(1, "row"), counted(2, "row")
    ('1 row', '2 rows')
    """
    return f"{count} {what}" if count == 1 else f"{count} {what}s"


def significant(number: float, digits: int = 4) -> str:
    """Return a number with so many significant digits, without an exponent where it is from 0.0001 to 10 million.

    >>> significant(0.15), significant(48213.7), significant(1.23e-9), significant(6.78901e12)
    ('0.1500', '48210', '1.230e-09', '6.789e+12')
    """
    if not number or not math.isfinite(number):
        return f"{number:g}"
    text = f"{number:.{digits - 1}e}"
    exponent = int(text.partition("e")[2])
    return f"{float(text):.{max(digits - 1 - exponent, 0)}f}" if -digits <= exponent < _MOST_DIGITS else text


def short_numbers(text: str) -> str:
    """Return a kernel or another expression with four digits of each long number; names in quotes stay as they are.

    >>> short_numbers("RBF(9.999946e-06).on(['x 0.12345']) + Constant(1234.56789)")
    "RBF(1e-05).on(['x 0.12345']) + Constant(1235.0)"
    """
    return _LONG_NUMBERS.sub(lambda part: part[0] if part[0][0] in "'\"" else str(float(f"{float(part[0]):.4g}")), text)


def short_expression(text: str) -> str:
    """Return a kernel or another expression with short numbers, and of long lists the first three and their number.

    >>> short_expression("RBF([1.0, 2.0, 3.123456, 4.0, 5.0])")
    'RBF([1.0, 2.0, 3.123, ... of 5])'
    """
    return _LISTS.sub(_first_three, short_numbers(text))


def _first_three(entries: re.Match[str]) -> str:
    parts = entries[1].split(", ")
    return entries[0] if len(parts) <= 4 else f"[{', '.join(parts[:3])}, ... of {len(parts)}]"


def shown(value: object) -> str:
    """Return a value from a file in quotes, fit for a message: control characters escaped, long text truncated.

    >>> shown("a" * 100)
    "'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa' and 40 more characters"
    """
    text = str(value)
    more = len(text) - _LONGEST
    return repr(text) if more <= 0 else f"{text[:_LONGEST]!r} and {more} more characters"


def printable(text: str) -> str:
    """Return text that is safe in a terminal: control characters and marks of text direction are escaped.

    Line breaks and tabs stay.

    >>> printable("a\\x1b[2Jb")
    'a\\\\x1b[2Jb'
    """
    return _OBEYED.sub(lambda mark: mark[0].encode("unicode_escape").decode("ascii"), text)


def shortened(text: str, most: int) -> str:
    """Return text on one line, without characters that a terminal or a page would obey, cut where it is long.

    >>> shortened("a long name", most=6)
    'a lon…'
    """
    clean = printable(" ".join(text.split()))
    return clean if len(clean) <= most else clean[: most - 1] + "…"


def check_choices(normalize: str, impute: str | None) -> None:
    """Raise an error unless the methods of scaling numbers and of filling in missing ones are known.

    Raises
    ------
    ParameterError
        If one is unknown; the message lists the known methods.
    """
    if normalize not in NORMALIZE:
        raise ParameterError(f"normalize={normalize!r} is unknown; choose one of {', '.join(NORMALIZE)}.")
    if impute is not None and impute not in IMPUTE:
        raise ParameterError(f"impute={impute!r} is unknown; choose one of {', '.join(IMPUTE)}.")


def check_task(task: str | None) -> None:
    """Raise an error unless the task is known.

    Raises
    ------
    ParameterError
        If it is unknown; the message lists the known tasks.
    """
    if task is not None and task not in TASKS:
        raise ParameterError(f"task={task!r} is unknown; the tasks are {' and '.join(TASKS)}.")
