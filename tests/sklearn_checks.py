"""scikit-learn's own checks of an estimator: all of them, or one after the other on several settings of it."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Sequence
from typing import Any
from unittest import SkipTest

from sklearn.utils.estimator_checks import estimator_checks_generator

Checks = list[tuple[Any, Any]]


def every_check(model: Any) -> Checks:
    """All checks, each with the estimator for it."""
    return list(estimator_checks_generator(model, legacy=True))


def in_turn(models: Sequence[Any], first: int) -> Checks:
    """Each check once, on one of the settings ``models`` of an estimator, of which ``first`` begins."""
    columns = [every_check(model) for model in models]
    names = [[name_of(check) for _, check in column] for column in columns]
    assert all(other == names[0] for other in names), "the settings have different checks"
    return [columns[(first + number) % len(models)][number] for number in range(len(names[0]))]


def name_of(check: Any) -> str:
    return str(check.func.__name__)


def not_passed(checks: Iterable[tuple[Any, Any]]) -> dict[str, str]:
    """What was said by each check that failed or was skipped."""
    others = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for model, check in checks:
            try:
                check(model)
            except (Exception, SkipTest) as error:
                others[name_of(check)] = str(error)
    # The one check that scikit-learn itself leaves out unless SciPy is told to take arrays of other libraries.
    others.pop("check_array_api_input", None)
    return others
