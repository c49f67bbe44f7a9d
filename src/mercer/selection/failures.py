"""Failing candidates of a search by name."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
from sklearn.exceptions import FitFailedWarning

from mercer._errors import DataError, MercerWarning, warn_user
from mercer.selection.evaluated import Evaluated

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


class AllFailedError(DataError):
    """No candidate of a search could be fitted and scored."""


def by_kernel(candidates: Sequence[Evaluated]) -> str:
    """Say which candidates of a search failed, and why; a kernel with which none could be fitted has one line.

    Parameters
    ----------
    candidates : list of Evaluated
        All, also those that did not fail.

    Returns
    -------
    str
        A line for each of the first few.
    """
    groups: dict[tuple[str, str], list[Evaluated]] = {}
    for one in candidates:
        if one.error:
            groups.setdefault((_kernel(one), one.error), []).append(one)
    counts = Counter(map(_kernel, candidates))
    lines = []
    for (kernel, error), failed in list(groups.items())[:_SHOWN]:
        if kernel and 1 < len(failed) == counts[kernel]:
            names = f"all {len(failed)} with the kernel {kernel}"
        else:
            names = ", ".join(str(dict(one.parameters)) for one in failed[:_SHOWN])
            names += f" and {len(failed) - _SHOWN} more" if len(failed) > _SHOWN else ""
        lines.append(f"{names}: {error}")
    others = [f"and others for {len(groups) - _SHOWN} more reasons"] if len(groups) > _SHOWN else []
    return "\n".join([*lines, *others])


def _kernel(one: Evaluated) -> str:
    """The kernel of a candidate in words; "" where all candidates have that of the learner."""
    return next((repr(value) for name, value in one.parameters.items() if name.rpartition("__")[2] == "kernel"), "")


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
