"""Columns of a table as one number each: ranks of numbers and dates, codes of categories.

A kernel that compares column by column needs no indicators: two codes are equal or they are not.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from mercer._types import Matrix, Vector
from mercer.data.fitted import Fitted
from mercer.data.statements import Each, Floats, Is, Word

# Different numbers of a column between which ranks are interpolated.
_KNOTS = 1000
# A missing entry is like others, and farther from every rank than a hat of width 1 reaches.
_MISSING = -2.0
# A category that was not among the rows of the fit.
_OTHER = -1.0
_DAY, _YEAR = 86_400.0, 365.2425 * 86_400.0
# Days that dates must span before their weekday, and before the day of the year, is informative.
_WEEKS, _SEASONS = 7.0, 1.5 * 365.0


@dataclass(frozen=True, eq=False)
class RankColumn:
    """Numbers as ranks: the share of smaller numbers and half that of equal ones, stretched to [0, 1].

    Parameters
    ----------
    values : ndarray of shape (m,)
        Different numbers of the fit, ascending.
    ranks : ndarray of shape (m,)

    Examples
    --------
    >>> column = RankColumn.fit(np.array([1.0, 2.0, 2.0, 9.0]))
    >>> column.encode(np.array([1.0, 2.0, 5.5, 99.0, np.nan])).ravel().tolist()
    [0.0, 0.5, 0.75, 1.0, -2.0]
    """

    values: Vector
    ranks: Vector
    ordered: ClassVar[tuple[bool, ...]] = (True,)
    _fitted: ClassVar[Fitted] = Fitted(
        {"values": Floats("m"), "ranks": Floats("m", least=0, most=1)},
        rules=(("numbers are not ascending", lambda column: bool((np.diff(column.values) > 0).all())),),
    )

    @classmethod
    def fit(cls, numbers: Vector) -> Self:
        """From numbers (n,), NaN where one is missing."""
        values, counts = np.unique(numbers[~np.isnan(numbers)], return_counts=True)
        if len(values) < 2:
            return cls(values, np.zeros(len(values)))
        middles = np.cumsum(counts) - 0.5 * counts
        ranks = (middles - middles[0]) / (middles[-1] - middles[0])
        if len(values) > _KNOTS:
            chosen = np.linspace(0, len(values) - 1, _KNOTS).round().astype(np.intp)
            values, ranks = values[chosen], ranks[chosen]
        return cls(values, ranks)

    def encode(self, numbers: Vector) -> Matrix:
        """Ranks (n, 1)."""
        missing = np.isnan(numbers)
        if not len(self.values):
            return np.where(missing, _MISSING, 0.0)[:, None]
        with np.errstate(over="ignore", invalid="ignore"):
            ranks = np.interp(np.where(missing, self.values[0], numbers), self.values, self.ranks)
        return np.where(missing, _MISSING, ranks)[:, None]


@dataclass(frozen=True)
class CodeColumn:
    """Categories as codes: the place of each among those of the fit; -1 for all others.

    Examples
    --------
    >>> column = CodeColumn.fit(np.array(["Ulm", "Zug", "Ulm"], dtype=object))
    >>> column.values, column.encode(np.array(["Zug", "Rom"], dtype=object)).ravel().tolist()
    (('Ulm', 'Zug'), [1.0, -1.0])
    """

    values: tuple[str, ...]
    ordered: ClassVar[tuple[bool, ...]] = (False,)
    _fitted: ClassVar[Fitted] = Fitted(
        {"values": Each(Word())},
        rules=(("a category occurs twice", lambda column: len(set(column.values)) == len(column.values)),),
    )

    @classmethod
    def fit(cls, texts: NDArray[np.object_], least: int = 1) -> Self:
        """From texts (n,), those that occur in at least so many rows."""
        return cls(tuple(sorted(text for text, count in Counter(map(str, texts)).items() if count >= least)))

    def encode(self, texts: NDArray[np.object_]) -> Matrix:
        """Codes (n, 1)."""
        place = {text: float(position) for position, text in enumerate(self.values)}
        return np.fromiter((place.get(text, _OTHER) for text in texts), np.float64, len(texts))[:, None]


@dataclass(frozen=True, eq=False)
class RankedDates:
    """Dates as ranks, weekdays as codes, the time of day and of the year as shares, as far as they differ.

    Examples
    --------
    >>> days = np.arange("2024-01-01", "2024-03-01", dtype="datetime64[D]").astype("datetime64[s]")
    >>> RankedDates.fit(days).parts
    ('weekday',)
    """

    ranks: RankColumn
    parts: tuple[str, ...]
    _fitted: ClassVar[Fitted] = Fitted({"ranks": Is(RankColumn), "parts": Each(Word(("season", "weekday", "time")))})

    @classmethod
    def fit(cls, dates: Any) -> Self:
        """From ``datetime64`` (n,)."""
        seconds = _seconds(dates)
        known = seconds[~np.isnan(seconds)]
        span = (known.max() - known.min()) / _DAY if len(known) else 0.0
        differ = {
            "season": span >= _SEASONS,
            "weekday": span >= _WEEKS and len(np.unique(np.floor(known / _DAY) % 7)) > 1,
            "time": len(np.unique(known % _DAY)) > 1,
        }
        return cls(RankColumn.fit(seconds), tuple(part for part, varies in differ.items() if varies))

    @property
    def ordered(self) -> tuple[bool, ...]:
        """Which of the features have an order."""
        return (True, *(part != "weekday" for part in self.parts))

    def encode(self, dates: Any) -> Matrix:
        """Features (n, 1 + number of parts)."""
        seconds = _seconds(dates)
        # The first of January 1970 was a Thursday.
        made = {
            "season": seconds % _YEAR / _YEAR,
            "weekday": (np.floor(seconds / _DAY) + 3) % 7,
            "time": seconds % _DAY / _DAY,
        }
        features = [np.where(np.isnan(seconds), _MISSING, made[part]) for part in self.parts]
        return np.column_stack([self.ranks.encode(seconds), *features])


def _seconds(dates: Any) -> Vector:
    """Seconds since 1970 (n,), NaN where a date is missing."""
    values = np.asarray(dates, dtype="datetime64[ns]")
    return np.asarray(np.where(np.isnat(values), np.nan, values.astype(np.int64) / 1e9))
