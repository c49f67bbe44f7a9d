"""What a column of text holds: numbers, codes, categories or sentences. One rule for files and tables in memory."""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mercer._types import Positions, Vector

_OF_FAILED_RESULTS = {"-1.#IND", "-1.#QNAN", "1.#IND", "1.#QNAN", "#N/A", "#N/A N/A", "#NA", "<NA>"}
MISSING_WORDS = frozenset({"", "?", "N/A", "NA", "NULL", "NaN", "-NaN", "-nan", "None", "n/a", "nan", "null"}) | (
    _OF_FAILED_RESULTS
)
"""Words that stand for a missing entry, with and without blanks around them: those of pandas, and a question mark."""

_NUMBER = re.compile(r"[-+]?((\d+\.?\d*|\.\d+)(e[-+]?\d+)?|inf(inity)?)", re.ASCII | re.IGNORECASE)
_CODE = re.compile(r"0\d+", re.ASCII)
_DIGITS = re.compile(r"\d+", re.ASCII)
# The share of the known entries that are numbers, from which on other ones are taken for gaps.
_NEARLY_ALL = 0.95
# More different values than this, in more than this share of the rows, are not informative as categories.
_FEW_CATEGORIES, _MOST_DIFFERENT = 20, 0.5
# Values of so many words on average are sentences. They are categories only if each is in so many rows on average,
# and if they are so few that each may have an indicator.
_SENTENCE, _ROWS_OF_A_CATEGORY, _MOST_SENTENCES, _LEAST_SENTENCES = 4.0, 10, 50, 3


@dataclass(frozen=True, eq=False)
class ReadNumbers:
    """Entries (n,) read as numbers: NaN where one is missing; ``strange`` are positions of entries that are neither."""

    values: Vector
    strange: Positions

    def are_nearly_all(self, weights: Vector | None = None) -> bool:
        """Whether at least 95 % of the entries that are not missing are numbers; ``weights`` (n,) count them."""
        counts = np.ones(len(self.values)) if weights is None else weights
        numbers, others = counts[~np.isnan(self.values)].sum(), counts[self.strange].sum()
        return bool(numbers >= _NEARLY_ALL * (numbers + others))


def read_numbers(entries: Sequence[Any] | NDArray[Any]) -> ReadNumbers:
    """Read texts and numbers as numbers; words for a missing entry become NaN, and so do words that name no number.

    Examples
    --------
    >>> read = read_numbers(["3.14", " 1e3 ", "?", 7, "many"])
    >>> read.values.tolist(), read.strange.tolist()
    ([3.14, 1000.0, nan, 7.0, nan], [4])
    """
    values, strange = np.full(len(entries), np.nan), []
    for place, entry in enumerate(entries):
        if isinstance(entry, str):
            text = entry.strip()
            if _NUMBER.fullmatch(text):
                values[place] = float(text)
            elif text not in MISSING_WORDS:
                strange.append(place)
            continue
        try:
            values[place] = float(entry)
        except OverflowError:
            # As text of so many digits is read.
            values[place] = math.inf if entry > 0 else -math.inf
        except (TypeError, ValueError):
            strange.append(place)
    return ReadNumbers(values, np.array(strange, dtype=np.intp))


def is_missing_word(entry: Any) -> bool:
    """Whether an entry is a word for a missing one.

    >>> is_missing_word(" NA "), is_missing_word("Nancy")
    (True, False)
    """
    return isinstance(entry, str) and entry.strip() in MISSING_WORDS


def are_codes(entries: Iterable[Any]) -> bool:
    """Whether all texts are digits, or missing, and one begins with a zero that a number would lose.

    >>> are_codes(["007", "120", "NA"]), are_codes(["0.5", "007"]), are_codes(["0", "12"])
    (True, False, False)
    """
    known = [str(entry).strip() for entry in entries if not is_missing_word(entry)]
    return any(map(_CODE.fullmatch, known)) and all(map(_DIGITS.fullmatch, known))


def are_too_many(values: int, rows: float) -> bool:
    """Whether so many different values in so many rows are not informative as categories.

    >>> are_too_many(15, 20), are_too_many(30, 50), are_too_many(30, 500)
    (False, True, False)
    """
    return values > max(_FEW_CATEGORIES, _MOST_DIFFERENT * rows)


def is_text(values: Collection[str], rows: float) -> bool:
    """Whether the different values of a column of so many rows are text to compare, and not categories.

    They are text if they are too many for categories (:func:`are_too_many`), or sentences of four words and more on
    average. Sentences are categories if there are two of them, or at most 50, each in ten rows on average.

    Examples
    --------
    >>> notes = [f"the guest of room {i} left early" for i in range(12)]
    >>> is_text(notes, 40), is_text(notes, 400), is_text([f"room {i}" for i in range(12)], 40)
    (True, False, False)
    """
    if are_too_many(len(values), rows):
        return True
    if len(values) < _LEAST_SENTENCES:
        return False
    words = sum(len(value.split()) for value in values) / len(values)
    seldom = rows < _ROWS_OF_A_CATEGORY * len(values) or len(values) > _MOST_SENTENCES
    return words >= _SENTENCE and seldom
