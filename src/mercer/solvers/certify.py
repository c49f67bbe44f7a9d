"""The certificate of a support vector machine, computed in float64."""

from __future__ import annotations

import numpy as np

from mercer._errors import NumericalError
from mercer.solvers.iterate import Iterate
from mercer.solvers.problems import GramMatrix, Vector

# Whether a row is beyond the margin is taken from float32 only if it is so by this many times the largest error
# that float32 made on any support vector, in units of the length of the row in feature space.
_TRUST = 16.0


def refine_gradient(gram: GramMatrix, point: Iterate) -> None:
    """Replace ``point.F`` by its float64 values wherever they matter.

    Rows with a weight are all computed again in float64. Their largest correction, relative to ``sqrt(k(x, x))``,
    shows the size of the rounding; rows without weight are computed again if they are within many times that size
    of the margin. What is left counts for nothing if it is beyond the margin in float64, too: it has no loss and
    no violation. That it is, is inferred from an error 16 times the largest seen, not proved.
    """
    support = point.support
    if len(support):
        beta = point.beta[support]
        exact = point.linear[support] - _in_float64(gram.restrict(support, support)) @ beta
        # Rounding of <phi(x), phi(z)> grows with the lengths of both.
        lengths = np.sqrt(np.abs(gram.diagonal()))
        floor = max(float(lengths.max()), np.finfo(float).tiny) * np.finfo(np.float32).eps
        error = float((np.abs(exact - point.F[support]) / np.maximum(lengths[support], floor)).max())
        point.F[support] = exact
        near = np.flatnonzero(_near_margin(point, _TRUST * error * lengths))
        if len(near):
            point.F[near] = point.linear[near] - _in_float64(gram.restrict(near, support)) @ beta
    check_gradient(point)


def _in_float64(gram: GramMatrix) -> GramMatrix:
    return gram if gram.dtype == np.float64 else gram.astype(np.float64)


def check_gradient(point: Iterate) -> None:
    """Raise if the kernel gave values that are not finite."""
    if not np.isfinite(point.F).all():
        raise NumericalError(
            f"the kernel matrix gave NaN or infinity in {int((~np.isfinite(point.F)).sum())} of {len(point.F)} rows. "
            "Check the kernel for values that overflow, and scale the columns of X."
        )


def _near_margin(point: Iterate, slack: Vector) -> np.ndarray:
    """Rows without weight that might be inside the margin, or might decide the interval of the offset."""
    top, bottom = point.interval()
    offset = point.offset()
    idle = point.beta == 0
    rising = point.may_rise & (min(offset, top) - slack <= point.F)
    falling = point.may_fall & (max(offset, bottom) + slack >= point.F)
    return idle & (rising | falling)


def objectives(point: Iterate) -> tuple[float, float]:
    """Primal and dual objective at ``point``, whose gradient must be right.

    With the slack ``m_i = p_i - y_i (f_i + b)`` the gap is the sum of ``C_i max(0, m_i) - alpha_i m_i``, no term of
    which is negative.
    """
    lift = point.F - point.offset()
    dual = point.dual()
    # A row that may rise up to `upper` has y = +1 and slack `lift`; one with a lower bound below zero has y = -1.
    gap = np.maximum(lift, 0.0) @ point.upper + np.minimum(lift, 0.0) @ point.lower - point.beta @ lift
    return dual + float(gap), dual
