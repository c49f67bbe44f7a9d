"""Names in messages, and the choices that users make by a word; needs nothing, so that mistakes are told at once."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable

from mercer._errors import ParameterError

TASKS = ("classification", "regression")
NORMALIZE = ("standard", "minmax", "unit", "none")
# Characters of a value or a name that a message quotes.
_LONGEST = 60
# All control characters but line breaks and tabs; overrides of the direction of writing; surrogates.
_OBEYED = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
IMPUTE = ("mean", "median", "most_frequent")


def closest_names(name: str, names: Iterable[object], count: int = 3) -> list[str]:
    """Those of ``names`` that look most like ``name``, upper and lower case being the same.

    >>> closest_names("pric", ["Price", "size"])
    ['Price']
    """
    by_lower = {str(known).lower(): str(known) for known in names}
    found = difflib.get_close_matches(str(name).lower(), list(by_lower), n=count, cutoff=0.5)
    return [by_lower[key] for key in found]


def listing(names: Iterable[object], most: int = 10) -> str:
    """Names in quotes, the tail of a long list as a number.

    >>> listing(["a", "b", "c"], most=2)
    "'a', 'b' and 1 more"
    """
    quoted = [shown(name) for name in names]
    rest = len(quoted) - most
    return ", ".join(quoted) if rest <= 0 else f"{', '.join(quoted[:most])} and {rest} more"


def shown(value: object) -> str:
    """A value of a file in quotes, as a message can hold it: control characters escaped, long text cut short.

    >>> shown("a" * 100)
    "'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa' and 40 more characters"
    """
    text = str(value)
    more = len(text) - _LONGEST
    return repr(text) if more <= 0 else f"{text[:_LONGEST]!r} and {more} more characters"


def printable(text: str) -> str:
    """Text that a terminal shows and does not obey: control characters, and marks that turn the line round, escaped.

    Line breaks and tabs stay.

    >>> printable("a\\x1b[2Jb")
    'a\\\\x1b[2Jb'
    """
    return _OBEYED.sub(lambda mark: mark[0].encode("unicode_escape").decode("ascii"), text)


def check_choices(normalize: str, impute: str | None) -> None:
    """Raise unless there is such a way to scale numbers, and to fill in missing ones.

    Raises
    ------
    ParameterError
        With the known ways.
    """
    if normalize not in NORMALIZE:
        raise ParameterError(f"normalize={normalize!r} is unknown; choose one of {', '.join(NORMALIZE)}.")
    if impute is not None and impute not in IMPUTE:
        raise ParameterError(f"impute={impute!r} is unknown; choose one of {', '.join(IMPUTE)}.")


def check_task(task: str | None) -> None:
    """Raise unless there is such a task.

    Raises
    ------
    ParameterError
        With the known tasks.
    """
    if task is not None and task not in TASKS:
        raise ParameterError(f"task={task!r} is unknown; the tasks are {' and '.join(TASKS)}.")
