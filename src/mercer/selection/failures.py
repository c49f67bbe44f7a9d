"""Failing candidates of a search by name."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
from sklearn.exceptions import FitFailedWarning

from mercer._errors import MercerWarning, warn_user

Parameters = Mapping[str, Any]
# How many candidates a message names.
_SHOWN = 5


def failures(errors: Mapping[int, str], candidates: Sequence[Parameters]) -> str:
    """Say which candidates failed, and why.

    >>> print(failures({1: "C must be above 0."}, [{"C": 1.0}, {"C": -1.0}]))
    1 of 2 candidates failed on some fold and have error_score there:
    {'C': -1.0}: C must be above 0.
    """
    names = [
        f"{dict(candidates[number])}{f': {error}' if error else ''}"
        for number, error in sorted(errors.items())[:_SHOWN]
    ]
    others = [f"and {len(errors) - _SHOWN} more"] if len(errors) > _SHOWN else []
    head = f"{len(errors)} of {len(candidates)} candidates failed on some fold and have error_score there:"
    return "\n".join([head, *names, *others])


@contextmanager
def naming_failures(search: Any) -> Iterator[None]:
    """Name the candidates that fail in a search of scikit-learn's, whose warning says why, but not which.

    Parameters
    ----------
    search : estimator
        Its ``cv_results_`` are there at the end.
    """
    caught: list[warnings.WarningMessage] = []
    try:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            yield
    finally:
        for warning in caught:
            warnings.warn_explicit(warning.message, warning.category, warning.filename, warning.lineno)
    if any(issubclass(warning.category, FitFailedWarning) for warning in caught):
        errors = dict.fromkeys(_with_error_score(search), "")
        warn_user(failures(errors, search.cv_results_["params"]), MercerWarning)


def _with_error_score(search: Any) -> list[int]:
    """The candidates with ``error_score`` on some fold."""
    splits = [
        np.asarray(value, dtype=np.float64)
        for key, value in search.cv_results_.items()
        if key.startswith("split") and "_test_" in key
    ]
    failed = np.array(
        [np.isnan(split) if np.isnan(search.error_score) else split == search.error_score for split in splits]
    )
    return np.flatnonzero(failed.any(axis=0)).tolist()
