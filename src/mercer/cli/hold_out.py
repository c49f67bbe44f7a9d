"""The choice of the rows that are held out for the score."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.model_selection import train_test_split

from mercer._errors import DataError, MercerWarning, warn_user
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
        warn_user(
            f"classes of {target.name!r} with one row only stay in the training part: "
            f"{listing(target.values[single])}.",
            MercerWarning,
        )
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
