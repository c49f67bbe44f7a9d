"""Targets of regressions: what is legal and most often a mistake."""

from __future__ import annotations

import warnings

import numpy as np

from mercer._errors import MercerWarning
from mercer.solvers.problems import Vector


def warn_of_constant(y: Vector, weights: Vector | None) -> None:
    """Warn, in the name of the caller's caller, if ``y`` (n,) or (n, t) has one value in all rows with a weight.

    Examples
    --------
    >>> with warnings.catch_warnings(record=True) as caught:
    ...     warnings.simplefilter("always")
    ...     warn_of_constant(np.array([2.0, 2.0, 3.0]), np.array([1.0, 1.0, 0.0]))
    >>> str(caught[0].message)[:36]
    'y has the value 2 in every row, so t'
    """
    used = y if weights is None else y[weights > 0]
    if len(used) < 2 or not y.size:
        return
    constant = np.flatnonzero(np.atleast_1d((used == used[0]).all(axis=0)))
    if len(constant):
        which = "y has" if y.ndim == 1 else f"column {constant[0]} of y has"
        value = used[0] if y.ndim == 1 else used[0, constant[0]]
        warnings.warn(
            f"{which} the value {value:g} in every row, so there is nothing to learn; check that y is the target.",
            MercerWarning,
            stacklevel=3,
        )
