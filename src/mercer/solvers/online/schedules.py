"""Step sizes of online learning, by name or by a function of the number of the step."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from mercer._errors import ParameterError
from mercer._types import Vector

NAMES = ("constant", "invscaling", "optimal")


def step_sizes(
    schedule: str | Callable[[Vector], Any], before: int, n: int, *, eta0: float, power_t: float, alpha: float
) -> Vector:
    r"""The sizes of the steps number ``before + 1`` to ``before + n``, (n,).

    Parameters
    ----------
    schedule : {"constant", "invscaling", "optimal"} or callable
        :math:`\eta_0`; :math:`\eta_0 / t^p`; :math:`1 / (\alpha (t + t_0))` with :math:`t_0 = 1 / (\alpha \eta_0)`;
        or a function from the numbers t of steps, from 1 on, (n,), to their sizes.
    before, n : int
    eta0, power_t, alpha : float
        :math:`\eta_0`, p and the regulariser.

    Raises
    ------
    ParameterError
        If a function returns something else than n finite numbers of 0 or more.

    Examples
    --------
    >>> step_sizes("invscaling", 3, 2, eta0=1.0, power_t=0.5, alpha=0.0).round(3).tolist()
    [0.5, 0.447]
    >>> step_sizes(lambda t: 1 / t, 0, 2, eta0=1.0, power_t=0.5, alpha=0.0).tolist()
    [1.0, 0.5]
    """
    t = np.arange(before + 1, before + n + 1, dtype=np.float64)
    if callable(schedule):
        return check_step_sizes(schedule(t), n, "learning_rate returned")
    if schedule == "constant":
        return np.full(n, eta0)
    if schedule == "invscaling":
        return eta0 / t**power_t
    return 1.0 / (alpha * (t + 1.0 / (alpha * eta0)))


def check_step_sizes(sizes: Any, n: int, what: str) -> Vector:
    """``sizes`` as n finite numbers of 0 or more, (n,).

    Raises
    ------
    ParameterError
        If they are not; ``what`` begins the message.

    Examples
    --------
    >>> check_step_sizes([1, 0.5], 2, "step_sizes are")
    array([1. , 0.5])
    """
    try:
        values = np.asarray(sizes, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ParameterError(f"{what} no numbers, but {sizes!r:.200}; there must be one for each row.") from error
    if values.shape != (n,):
        raise ParameterError(f"{what} an array of shape {values.shape}; there must be one number for each of {n} rows.")
    wrong = np.flatnonzero(~(np.isfinite(values) & (values >= 0)))
    if len(wrong):
        raise ParameterError(f"{what} {values[wrong[0]]} for row {wrong[0]}; step sizes must be finite and 0 or more.")
    return np.ascontiguousarray(values)
