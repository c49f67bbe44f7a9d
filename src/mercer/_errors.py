"""Exceptions and warnings. Every message says what was wrong, what was seen, and what to do next."""

from __future__ import annotations

import re
import sys
import warnings
from contextvars import ContextVar
from pathlib import Path
from typing import Any

_PACKAGE = Path(__file__).parent
# Nobody reads a longer paragraph; what is wrong stands at the beginning, and what to do at the end.
_LONGEST = 1500
# The first three entries of a list, and the others.
_LIST = re.compile(r"(\[(?:[^][,\s][^][,]*, ){3})((?:[^][,\s][^][,]*,\s+)+)[^][,\s][^][,]*\]")


def bounded(message: str) -> str:
    """Return a message without the rest of its lists, and then without its middle, where values make it too long.

    >>> bounded(f"the columns {list(range(1000))} are constant. Leave them out.")
    'the columns [0, 1, 2, ... and 997 more] are constant. Leave them out.'
    >>> long = bounded("no column " + 5000 * "x" + ". Choose another.")
    >>> len(long), long[:13], long[-16:]
    (1500, 'no column xxx', ' Choose another.')
    """
    if len(message) > _LONGEST:
        message = _LIST.sub(lambda found: f"{found[1]}... and {found[2].count(',') + 1} more]", message)
    if len(message) <= _LONGEST:
        return message
    mark = f" [... {len(message) - _LONGEST} more characters ...] "
    kept = _LONGEST - len(mark)
    return message[: kept - kept // 2] + mark + message[-(kept // 2) :]


class MercerError(Exception):
    """Base of every error that Mercer raises on purpose; a message that values make too long is shortened."""

    def __str__(self) -> str:
        return bounded(super().__str__())


class DataError(MercerError, ValueError):
    """The data cannot be used as they are: NaN, wrong shape, unreadable file, one class only, ..."""


class SchemaError(DataError):
    """New data do not have the columns that the model was fitted on."""


class ParameterError(MercerError, ValueError):
    """A parameter has a value that makes no sense."""


class UnknownParameterError(ParameterError, TypeError):
    """A kernel was made with a parameter that it does not have; the message gives the right call."""


class KernelSyntaxError(ParameterError):
    """A kernel expression cannot be read."""


class IndefiniteKernelError(ParameterError):
    """A learner that needs a positive semi-definite kernel was given one that is not.

    Attributes
    ----------
    finding : str
        The evidence, without advice; empty if the message says everything.
    """

    def __init__(self, message: str, *, finding: str = "") -> None:
        super().__init__(message)
        self.finding = finding


class InfeasibleError(MercerError, ValueError):
    """No function separates the classes by a margin that float64 can resolve: there is no hard margin.

    With a strictly positive kernel and distinct rows there may be one all the same, too narrow to be computed.

    Parameters
    ----------
    message : str
    multipliers : ndarray of shape (n,)
        The proof: a mixture of the rows of each class (shares of 0 or more that sum to 1), which up to rounding are the
        same point of the feature space. Without an intercept, one mixture of ``y_i phi(x_i)`` that is zero.
    distance : float
        The distance of the nearest mixtures found in the feature space: at most rounding.
    least_slack : tuple of float
        A lower and an upper bound on the least sum of slacks of a function whose w is small enough that distances
        within rounding do not count.

    Attributes
    ----------
    multipliers, distance, least_slack
        As the parameters.
    pair : tuple of int, optional
        The indices of the two classes, if there are more than two.
    """

    pair: tuple[int, int] | None = None

    def __init__(
        self,
        message: str,
        *,
        multipliers: Any = None,
        distance: float = 0.0,
        least_slack: tuple[float, float] = (0.0, float("inf")),
    ) -> None:
        super().__init__(message)
        self.multipliers = multipliers
        self.distance = distance
        self.least_slack = least_slack


class MemoryBudgetError(MercerError, MemoryError):
    """The job would not fit the memory budget; raised before anything is allocated."""


class NumericalError(MercerError, ArithmeticError):
    """A computation broke down: a factorisation failed, numbers overflowed."""


class KernelValueError(DataError, NumericalError):
    """A kernel returned NaN, an infinity, or an array of the wrong shape."""


class ModelFileError(MercerError, ValueError):
    """A model file is truncated, altered, of a newer version, or not a model file at all; or a model cannot be written.

    Attributes
    ----------
    finding : str
        What is wrong with the content, without advice; empty if the message says everything.
    """

    def __init__(self, message: str, *, finding: str = "") -> None:
        super().__init__(message)
        self.finding = finding


class MissingDependencyError(MercerError, ImportError):
    """An optional package that the request needs is missing."""


class MercerWarning(UserWarning):
    """Base of the warnings that Mercer gives; a message that values make too long is shortened."""

    def __str__(self) -> str:
        return bounded(super().__str__())


class IndefiniteKernelWarning(MercerWarning):
    """A learner was given a kernel that is not positive semi-definite, so its answer has no guarantee."""


class DegenerateKernelWarning(MercerWarning):
    """On these rows a kernel is 0 between different rows, or the same for all of them."""


_Waiting = dict[tuple[type[Warning], str], str]
_waiting: ContextVar[_Waiting | None] = ContextVar("waiting", default=None)


class LatestWarnings:
    """Warn at the end of the block; of warnings that differ only in numbers, as in several fits, give the last."""

    def __enter__(self) -> None:
        self._waiting: _Waiting = {}
        self._token = _waiting.set(self._waiting)

    # Not a generator: the warnings would have the line of contextlib, and an exception would drop them.
    def __exit__(self, *exception: object) -> None:
        _waiting.reset(self._token)
        for (category, _), message in self._waiting.items():
            warn_user(message, category)


def warn_user(message: str, category: type[Warning]) -> None:
    """Warn in the name of the line outside this package that the call came from."""
    waiting = _waiting.get()
    if waiting is not None:
        waiting[category, re.sub(r"[\d.]+(e[+-]?\d+)?", "", message)] = message
        return
    frame, level = sys._getframe(1), 2
    while frame.f_back is not None and Path(frame.f_code.co_filename).is_relative_to(_PACKAGE):
        frame, level = frame.f_back, level + 1
    warnings.warn(bounded(message), category, stacklevel=level)
