"""The choice of the rows that are held out for the score."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from sklearn.model_selection import train_test_split

from mercer._errors import DataError, MercerWarning
from mercer._optional import optional
from mercer.data.target import Target
from mercer.data.words import listing

# Orders of groups that are tried.
_ORDERS = 20


def hold_out(target: Target, share: float, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the row numbers of the training and of the held-out part, with the same share of every class held out."""
    n = len(target.values)
    rows = np.arange(n)
    if share == 0:
        return rows, rows[:0]
    if target.task == "regression":
        test_size = int(np.ceil(share * n))
        if n - test_size < 2:
            raise DataError(
                f"{n} rows are too few to hold out a share of {share:g} and fit on two or more; add rows, change "
                "--test-size, or pass --test-size 0 for no score."
            )
        train, test = train_test_split(rows, test_size=test_size, random_state=seed)
        return np.sort(train), np.sort(test)
    _, codes, counts = np.unique(target.values, return_inverse=True, return_counts=True)
    single = counts[codes] == 1
    several, classes = rows[~single], int((counts > 1).sum())
    test_size = int(np.ceil(share * len(several)))
    if classes == 0 or test_size < classes or len(several) - test_size < classes:
        raise DataError(
            f"{n} rows of {len(counts)} classes are too few to hold out a share of {share:g} with every "
            "class in both parts; add rows, change --test-size, or pass --test-size 0 for no score."
        )
    if single.any():
        warn_of_single(target.name, target.values[single])
    train, test = train_test_split(several, test_size=test_size, random_state=seed, stratify=codes[several])
    return np.sort(np.concatenate([train, rows[single]])), np.sort(test)


def split_by(
    way: str, column: Any, target: Target, share: float, seed: int, locate: Callable[[int], str]
) -> tuple[np.ndarray, np.ndarray]:
    """Return the row numbers of the training and of the held-out part: the last ones by time, or whole groups.

    Parameters
    ----------
    way : {"time", "group"}
    column : pandas.Series
        Times, as numbers, dates or text of dates, or names of groups.
    target : Target
    share : float
        Of the rows that are held out, at least.
    seed : int
        Of the groups that are drawn.
    locate : callable
        Describes the place of a row.

    Raises
    ------
    DataError
        If a time is missing or none, or if no rows would be left to learn two targets from.
    """
    name = column.name
    if way == "time":
        pandas = optional("pandas", "--split")
        types = pandas.api.types
        is_time = types.is_numeric_dtype(column) or types.is_datetime64_any_dtype(column)
        if types.is_bool_dtype(column):
            raise DataError(f"--split time {name}: the column holds truth values, which are no times.")
        times = column
        if not is_time:
            times = pandas.to_datetime(column.astype(object), errors="coerce", format="ISO8601", utc=True)
        bad = np.flatnonzero(times.isna())
        if len(bad):
            entry, where = column.iloc[bad[0]], locate(int(bad[0]))
            if pandas.isna(entry):
                raise DataError(f"--split time {name}: {where} has no entry; fill it in, or leave the row out.")
            raise DataError(
                f"--split time {name}: {entry!r} in {where} is neither a number nor a date such as 2026-01-31; dates "
                "in other forms are read with --parse-numbers."
            )
        codes = np.unique(times.to_numpy(), return_inverse=True)[1]
    else:
        labels = column.astype(str).to_numpy(dtype=str)
        _, groups = np.unique(labels, return_inverse=True)
        # The last ones of a random order. Groups differ: of several orders, that which holds out the fewest rows.
        orders = [np.random.default_rng([seed, k]).permutation(groups.max() + 1)[groups] for k in range(_ORDERS)]
        codes = min(orders, key=lambda order: _last(order, share).sum())
    held_out = _last(codes, share)
    if len(np.unique(target.values[~held_out])) < 2:
        raise DataError(
            f"--split {way} {name} leaves {int((~held_out).sum())} rows to learn from, with fewer than two targets; "
            "choose another column or a smaller --test-size."
        )
    return np.flatnonzero(~held_out), np.flatnonzero(held_out)


def _last(codes: np.ndarray, share: float) -> np.ndarray:
    """The rows (n,) with the largest codes, at least such a share of them, and all rows with the same code."""
    return codes >= np.sort(codes)[len(codes) - max(1, int(np.ceil(share * len(codes))))]


def warn_of_single(name: str, labels: np.ndarray) -> None:
    """Warn that classes of the target ``name`` are only learned, because they have one row each."""
    warnings.warn(
        f"classes of {name!r} with one row only stay in the training part: {listing(labels)}.",
        MercerWarning,
        stacklevel=3,
    )


@dataclass(frozen=True)
class Draw:
    """The rows that are held out of rows that come in blocks, at random, with the same share of every class.

    Of so many rows of a class in turn, as many are drawn as the share is of them: of every ten rows one for a share of
    0.1. The first row of a class is never drawn, so that every class is in the training part. Which rows are drawn
    depends on the targets and the seed alone, not on how the rows are cut into blocks.

    Parameters
    ----------
    share : float
        Above 0 and below 1.
    by_class : bool
        Whether the targets are classes.
    seed : int

    Examples
    --------
    >>> masks = Draw(0.25, False, 0).masks()
    >>> int(masks.next(np.arange(60.0)).sum() + masks.next(np.arange(40.0)).sum())
    25
    """

    share: float
    by_class: bool
    seed: int

    def masks(self) -> Masks:
        """Begin with the first row."""
        return Masks(self)


class Masks:
    """Which rows of one block after the other are held out."""

    def __init__(self, draw: Draw) -> None:
        self._draw = draw
        self._classes: dict[Any, _Turns] = {}

    def next(self, y: np.ndarray) -> np.ndarray:
        """The mask (r,) of the next rows, by their targets."""
        by_class = self._draw.by_class
        labels, codes, counts = np.unique(y if by_class else np.zeros(len(y)), return_inverse=True, return_counts=True)
        mask = np.zeros(len(y), dtype=bool)
        places = np.split(np.argsort(codes, kind="stable"), np.cumsum(counts)[:-1])
        # In the order in which classes come, so that it does not matter where blocks begin.
        for code, label in sorted(enumerate(labels.tolist()), key=lambda pair: places[pair[0]][0]):
            turns = self._classes.get(label)
            if turns is None:
                turns = self._classes[label] = _Turns(self._draw.share, [self._draw.seed, len(self._classes)])
            mask[places[code]] = turns.next(len(places[code]))
        return mask


class _Turns:
    """Of a fixed number of rows in turn some are drawn, and never the very first one."""

    def __init__(self, share: float, seed: list[int]) -> None:
        fraction = Fraction(share).limit_denominator(1000) or Fraction(1, round(1 / share))
        # A share just below 1 leaves one row of a hundred.
        self._drawn, self._turn = min(fraction, Fraction(99, 100)).as_integer_ratio()
        self._random = np.random.default_rng(seed)
        self._waiting = np.zeros(0, dtype=bool)
        self._is_first = True

    def next(self, count: int) -> np.ndarray:
        """Whether each of the next rows is drawn."""
        turns = max(0, -(-(count - len(self._waiting)) // self._turn))
        keys = self._random.random((turns, self._turn))
        if self._is_first and turns:
            keys[0, 0], self._is_first = 1.0, False
        drawn = np.zeros_like(keys, dtype=bool)
        np.put_along_axis(drawn, np.argsort(keys, axis=1, kind="stable")[:, : self._drawn], True, axis=1)
        row = np.concatenate([self._waiting, drawn.ravel()])
        self._waiting = row[count:]
        return row[:count]
