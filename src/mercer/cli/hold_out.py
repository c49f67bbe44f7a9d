"""The choice of the rows that are held out for the score."""

from __future__ import annotations

import warnings

import numpy as np
from sklearn.model_selection import train_test_split

from mercer._errors import DataError, MercerWarning
from mercer.data.target import Target
from mercer.data.words import listing


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
        warnings.warn(
            f"classes of {target.name!r} with one row only stay in the training part: "
            f"{listing(target.values[single])}.",
            MercerWarning,
            stacklevel=2,
        )
    train, test = train_test_split(several, test_size=test_size, random_state=seed, stratify=codes[several])
    return np.sort(np.concatenate([train, rows[single]])), np.sort(test)
