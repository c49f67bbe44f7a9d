"""Warn where a learner without a formula for leave-one-out predicts rows that are held out worse than the mean does."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any

import numpy as np

from mercer._errors import MemoryBudgetError, MercerWarning, warn_user
from mercer._types import Matrix, Positions, Vector

# Rows that show cheaply whether most of all rows are worth a fit.
_SAMPLE = 256
# Of fewer rows nothing is said.
_FEWEST = 10
_HELD_OUT = 0.2
# Errors of m rows are known to about 1 / sqrt(m) of themselves; so many times that is a difference.
_DEVIATIONS = 2.0


def warn_if_held_out_is_worse(
    learner: str, gram: Any, y: Matrix, weight: Vector, fit: Callable[[Positions], Matrix], remedy: str
) -> None:
    """Warn if an expansion in four fifths of the rows is worse at the others than the mean of the four fifths.

    First of 256 rows; only where it is worse there, which a fit that has less to learn from may be, of all.

    Parameters
    ----------
    learner : str
        Its name.
    gram : GramMatrix
        K on the rows of the fit, (n, n).
    y : ndarray of shape (n, t)
        Targets.
    weight : ndarray of shape (n,)
    fit : callable
        Gives the coefficients (m, t) of a fit to the rows of some positions (m,).
    remedy : str
        Ends the message.
    """
    n = len(y)
    if n < _FEWEST:
        return
    order = np.random.default_rng(0).permutation(n)
    worse: tuple[int, float, float] | None = None
    # A fit that has been made does not end in an error of its check.
    with suppress(MemoryBudgetError):
        for count in sorted({min(n, _SAMPLE), n}):
            held = int(np.ceil(_HELD_OUT * count))
            others, kept = np.sort(order[:held]), np.sort(order[held:count])
            worse = _worse(gram, y, weight, others, kept, fit(kept))
            if worse is None:
                return
    if worse is None:
        return
    column, squares, spread = worse
    which = "" if y.shape[1] == 1 else f" for column {column} of y"
    warn_user(
        f"{learner}: fitted to four fifths of its rows, it has the mean squared error {squares:.3g}{which} on the "
        f"others, and the mean of the four fifths has {spread:.3g}. {remedy}",
        MercerWarning,
    )


def _worse(
    gram: Any, y: Matrix, weight: Vector, others: Positions, kept: Positions, coefficients: Matrix
) -> tuple[int, float, float] | None:
    """The first target that is predicted worse than by the mean, and both mean squared errors; None if none is."""
    errors = y[others] - np.asarray(gram.restrict(others, kept) @ coefficients, dtype=np.float64)
    constant = y[others] - np.average(y[kept], axis=0, weights=weight[kept])
    with np.errstate(over="ignore"):
        squares = np.average(errors**2, axis=0, weights=weight[others])
        spread = np.average(constant**2, axis=0, weights=weight[others])
    rounding = (1e3 * np.finfo(float).eps * np.abs(y).max(axis=0)) ** 2
    found = np.flatnonzero(squares > (1.0 + _DEVIATIONS / np.sqrt(len(others))) * spread + rounding)
    return (int(found[0]), float(squares[found[0]]), float(spread[found[0]])) if len(found) else None
