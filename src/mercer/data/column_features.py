"""Columns of a table as features of a kernel: normal scores of numbers, indicators of categories, parts of dates.

Each kind of column is a small record that is fitted to a column and then encodes others. Its features come in
groups, which :mod:`mercer.estimators.tabular.mixture` gives one length scale each: the indicators of the values of a
column share theirs.
"""

from __future__ import annotations

import dataclasses
from collections import Counter
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from mercer._types import Matrix, Vector
from mercer.data.fitted import Fitted
from mercer.data.statements import Each, Floats, Number, Word
from mercer.data.text_columns import are_too_many

Missing = NDArray[np.bool_]

# Scores beyond the first, of one row in 160, are cut off: an outlying value is not far from all others. Where what is
# rare matters, they are cut off farther out; beyond the second, of one row in 30,000, in any case.
FARTHEST, UTMOST = 2.5, 4.0
# Numbers as they are, in deviations: what is beyond it would overflow in squares.
_LARGEST = 1e6
# Distinct numbers of a column between which scores are interpolated.
_KNOTS = 1000
# Values of a column of categories with indicators of their own, each in at least so many rows.
_MOST_VALUES, _LEAST_ROWS = 50, 2
# The category of missing entries.
_NO_VALUE = "(missing)"
_DAY, _YEAR = 86_400.0, 365.2425 * 86_400.0
# Days that dates must span before their season, and before their weekday, is informative.
_SEASONS, _WEEKS = 180.0, 7.0


@dataclass(frozen=True, eq=False)
class NumberColumn:
    r"""Numbers as normal scores :math:`\Phi^{-1}` (share of smaller numbers + half that of equal ones).

    A missing number has the score 0, that of the median, and an indicator if some were missing in training.

    Parameters
    ----------
    values : ndarray of shape (m,)
        Distinct numbers of training, ascending; none if the column is constant or empty.
    scores : ndarray of shape (m,)
    gaps : bool
        Whether there is an indicator of missing numbers.
    mean, deviation : float
        Of the numbers of training; 0 and 1 if the column is constant or empty.
    words : tuple of str
        Texts that stood for missing numbers in training, beside those that always do.

    Examples
    --------
    >>> column = NumberColumn.fit(np.array([1.0, 2.0, 2.0, 9.0]), np.zeros(4, bool))
    >>> column.encode(np.array([1.0, 2.0, 5.5, 99.0]), np.array([False, False, False, True])).round(2).ravel().tolist()
    [-1.15, 0.0, 0.58, 0.0]
    """

    values: Vector
    scores: Vector
    gaps: bool
    mean: float = 0.0
    deviation: float = 1.0
    words: tuple[str, ...] = ()
    _fitted: ClassVar[Fitted] = Fitted(
        {
            "values": Floats("m"),
            "scores": Floats("m", least=-UTMOST, most=UTMOST),
            "mean": Number(),
            "deviation": Number(least=np.finfo(float).tiny),
            "words": Each(Word()),
        },
        rules=(("numbers are not ascending", lambda column: bool((np.diff(column.values) > 0).all())),),
    )

    @classmethod
    def fit(
        cls, values: Vector, missing: Missing, weights: Vector | None = None, *, farthest: float = FARTHEST
    ) -> Self:
        """From numbers (n,), where they are missing, how often each counts, and where scores are cut off."""
        known = values[~missing]
        gaps = bool(0 < len(known) < len(values))
        distinct, place = np.unique(known, return_inverse=True)
        if len(distinct) < 2:
            return cls(np.zeros(0), np.zeros(0), gaps)
        counts = np.bincount(place, None if weights is None else weights[~missing])
        scores = np.clip(ndtri((np.cumsum(counts) - 0.5 * counts) / counts.sum()), -farthest, farthest)
        if len(distinct) > _KNOTS:
            chosen = np.linspace(0, len(distinct) - 1, _KNOTS).round().astype(np.intp)
            distinct, scores = distinct[chosen], scores[chosen]
        return cls(distinct, scores, gaps, *_mean_and_deviation(known, None if weights is None else weights[~missing]))

    @property
    def groups(self) -> tuple[int, ...]:
        return (1,) * (bool(len(self.values)) + self.gaps)

    @property
    def gap(self) -> int | None:
        """The feature that is 1 where an entry is missing."""
        return int(len(self.values) > 0) if self.gaps else None

    def cut_off(self, farthest: float) -> Self:
        """With scores between -``farthest`` and ``farthest``."""
        return dataclasses.replace(self, scores=np.clip(self.scores, -farthest, farthest))

    @property
    def linear(self) -> int:
        """Features of :meth:`standardise`."""
        return 1 + self.gaps if len(self.values) else 0

    def encode(self, values: Vector, missing: Missing) -> Matrix:
        features = []
        if len(self.values):
            features.append(np.where(missing, 0.0, self._score(np.where(missing, 0.0, values))))
        if self.gaps:
            features.append(missing.astype(np.float64))
        return np.stack(features, axis=1) if features else np.empty((len(values), 0))

    def standardise(self, values: Vector, missing: Missing) -> Matrix:
        """Features for functions that are linear in numbers: these in deviations from their mean, and the indicator.

        A missing number is 0. Of a constant or empty column there are none, (n, 0).
        """
        if not self.linear:
            return np.empty((len(values), 0))
        # What is too far away overflows, and is cut off as well.
        with np.errstate(over="ignore"):
            standard = (np.where(missing, self.mean, values) - self.mean) / self.deviation
        features = [np.clip(standard, -_LARGEST, _LARGEST)]
        if self.gaps:
            features.append(missing.astype(np.float64))
        return np.stack(features, axis=1)

    def _score(self, values: Vector) -> Vector:
        """Scores by linear interpolation; where slopes overflow, next to the least numbers, by steps."""
        with np.errstate(over="ignore", invalid="ignore"):
            scores = np.interp(values, self.values, self.scores)
        lost = ~np.isfinite(scores)
        scores[lost] = self.scores[np.searchsorted(self.values, values[lost])]
        return np.asarray(scores)


@dataclass(frozen=True)
class CategoryColumn:
    """Categories as indicators: one of each frequent value, and a last one of all others, also those not yet seen.

    A missing entry is a value like any other.

    Examples
    --------
    >>> town = np.array(["Ulm", "Zug", "Ulm", "Zug", "Bonn"], dtype=object)
    >>> column = CategoryColumn.fit(town, np.zeros(5, bool))
    >>> column.values, column.encode(np.array(["Zug", "Rom"], dtype=object), np.zeros(2, bool)).tolist()
    (('Ulm', 'Zug'), [[0.0, 1.0, 0.0], [0.0, 0.0, 1.0]])
    """

    values: tuple[str, ...]
    _fitted: ClassVar[Fitted] = Fitted(
        {"values": Each(Word())},
        rules=(("a category occurs twice", lambda column: len(set(column.values)) == len(column.values)),),
    )

    @classmethod
    def fit(cls, values: NDArray[np.object_], missing: Missing, weights: Vector | None = None) -> Self:
        """From values (n,), where they are missing, and how often each counts."""
        labels = _labels(values, missing)
        counts: Counter[str] = Counter()
        for label, weight in zip(labels, np.ones(len(labels)) if weights is None else weights, strict=True):
            counts[label] += float(weight)  # type: ignore[assignment]
        if len(counts) < 2:
            return cls(())
        frequent = [label for label, count in counts.most_common(_MOST_VALUES) if count >= _LEAST_ROWS]
        return cls(tuple(sorted(frequent)))

    @property
    def groups(self) -> tuple[int, ...]:
        return (len(self.values) + 1,) if self.values else ()

    @property
    def gap(self) -> int | None:
        """The feature that is 1 where an entry is missing."""
        return self.values.index(_NO_VALUE) if _NO_VALUE in self.values else None

    def encode(self, values: NDArray[np.object_], missing: Missing) -> Matrix:
        if not self.values:
            return np.empty((len(values), 0))
        features = np.zeros((len(values), len(self.values) + 1))
        features[np.arange(len(values)), self.codes(values, missing)] = 1.0
        return features

    def codes(self, values: NDArray[np.object_], missing: Missing) -> NDArray[np.intp]:
        """The places of values (n,) among the frequent ones, (n,); all others have the next one."""
        place = {label: position for position, label in enumerate(self.values)}
        return np.array([place.get(label, len(self.values)) for label in _labels(values, missing)], dtype=np.intp)


@dataclass(frozen=True, eq=False)
class DateColumn:
    """Dates and times, in seconds: a number, and season, weekday and time of day as far as they differ in training.

    Season and time of day are points on a circle; a weekday is a category.

    Examples
    --------
    >>> dates = np.arange("2024-01-01", "2026-01-01", dtype="datetime64[D]").astype("datetime64[s]").astype(float)
    >>> DateColumn.fit(dates, np.zeros(731, bool)).parts
    ('season', 'weekday')
    """

    number: NumberColumn
    parts: tuple[str, ...]
    _fitted: ClassVar[Fitted] = Fitted({"parts": Each(Word(("season", "weekday", "time")))})

    @classmethod
    def fit(
        cls, values: Vector, missing: Missing, weights: Vector | None = None, *, farthest: float = FARTHEST
    ) -> Self:
        """From seconds (n,), where they are missing, how often each counts, and where scores are cut off."""
        known = values[~missing]
        span = (known.max() - known.min()) / _DAY if len(known) else 0.0
        number = NumberColumn.fit(values, missing, weights, farthest=farthest)
        differ = {
            "season": span >= _SEASONS,
            "weekday": span >= _WEEKS and len(np.unique(np.floor(known / _DAY) % 7)) > 1,
            "time": len(np.unique(known % _DAY)) > 1,
        }
        return cls(number, tuple(part for part, varies in differ.items() if varies))

    def cut_off(self, farthest: float) -> Self:
        """As :meth:`NumberColumn.cut_off`."""
        return dataclasses.replace(self, number=self.number.cut_off(farthest))

    @property
    def groups(self) -> tuple[int, ...]:
        widths = {"season": 2, "weekday": 7, "time": 2}
        return (*self.number.groups, *(widths[part] for part in self.parts))

    @property
    def gap(self) -> int | None:
        """The feature that is 1 where an entry is missing."""
        return self.number.gap

    def encode(self, values: Vector, missing: Missing) -> Matrix:
        features = [self.number.encode(values, missing)]
        known = np.where(missing, 0.0, values)
        for part in self.parts:
            if part == "weekday":
                # The first of January 1970 was a Thursday.
                block = np.eye(7)[((np.floor(known / _DAY) + 3) % 7).astype(np.intp)]
            else:
                angle = 2 * np.pi * known / (_YEAR if part == "season" else _DAY)
                block = np.stack([np.cos(angle), np.sin(angle)], axis=1)
            features.append(np.where(missing[:, None], 0.0, block))
        return np.concatenate(features, axis=1)


@dataclass(frozen=True)
class TextColumn:
    """Text, which a string kernel compares; a missing entry is the empty text.

    Texts that repeat are also categories: what is known of one of them need not hold for similar ones.

    Parameters
    ----------
    repeated : CategoryColumn
        With the texts that repeat; none if most differ.

    Examples
    --------
    >>> notes = np.array(["was late", "was early", "was late", "was rude"] * 2, dtype=object)
    >>> column = TextColumn.fit(notes, np.zeros(8, bool))
    >>> column.repeated.values, column.groups
    (('was early', 'was late', 'was rude'), (4,))
    """

    repeated: CategoryColumn = CategoryColumn(())
    gap: ClassVar[None] = None
    _fitted: ClassVar[Fitted] = Fitted()

    @classmethod
    def fit(cls, values: NDArray[np.object_], missing: Missing, weights: Vector | None = None) -> Self:
        """From values (n,), where they are missing, and how often each counts."""
        rows = len(values) if weights is None else float(weights.sum())
        if are_too_many(len(set(_labels(values, missing))), rows):
            return cls()
        return cls(CategoryColumn.fit(values, missing, weights))

    @property
    def groups(self) -> tuple[int, ...]:
        return self.repeated.groups

    def encode(self, values: NDArray[np.object_], missing: Missing) -> Matrix:
        return self.repeated.encode(values, missing)

    def texts(self, values: NDArray[np.object_], missing: Missing) -> list[str]:
        return _labels(values, missing, "")


def _mean_and_deviation(values: Vector, weights: Vector | None) -> tuple[float, float]:
    """Of numbers (n,) of which two differ, computed in units of the largest, whose square may overflow."""
    size = float(np.abs(values).max())
    mean = float(np.average(values / size, weights=weights))
    deviation = float(np.sqrt(np.average(np.square(values / size - mean), weights=weights)))
    return mean * size, max(deviation * size, float(np.finfo(float).tiny))


def _labels(values: NDArray[np.object_], missing: Missing, no_value: str = _NO_VALUE) -> list[str]:
    """Entries as text; the same number is the same text, whatever its type."""
    return [no_value if gap else _label(value) for value, gap in zip(values, missing, strict=True)]


def _label(value: Any) -> str:
    if isinstance(value, (float, np.floating)) and float(value).is_integer():
        return str(int(value))
    return str(int(value)) if isinstance(value, (bool, np.bool_)) else str(value)
