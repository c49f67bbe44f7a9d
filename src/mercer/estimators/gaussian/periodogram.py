"""Where to start the search for the periods of a kernel: at the peaks of a periodogram."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from scipy.signal import lombscargle

from mercer._types import Matrix, Vector
from mercer.kernels import ExpSineSquared, Kernel, Periodic
from mercer.kernels.base import Expression
from mercer.kernels.modifiers import On, Warped
from mercer.kernels.parameters import Parameter

# Rows of a periodogram, drawn in equal steps of the sorted column.
_ROWS = 1000
# Frequencies for each ``1 / range``, the width of a peak.
_OVERSAMPLING = 8


def period_starts(kernel: Kernel | None, X: Any, y: Matrix, parameters: Sequence[Parameter]) -> list[Vector]:
    """One more start if the kernel has free periods, else none: ``parameters`` with the highest peaks as periods.

    The evidence as a function of the period has a maximum about ``period^2 / range`` wide at each multiple of the true
    one, and is flat elsewhere, so that ascents from other periods do not find it. Several periods of one column start
    from its highest peaks in turn.

    Examples
    --------
    >>> kernel, X = Periodic(1.0, period=0.5), np.linspace(0.0, 20.0, 101)[:, None]
    >>> (start,) = period_starts(kernel, X, np.sin(2.0 * np.pi * X / 1.7), kernel.parameters)
    >>> np.exp(start).round(1).tolist()
    [1.0, 1.7]
    """
    if kernel is None or not isinstance(X, np.ndarray):
        return []
    places = {parameter.name: place for place, parameter in enumerate(parameters)}
    start = np.array([parameter.theta for parameter in parameters])
    peaks: dict[tuple[int, ...], Iterator[float]] = {}
    found = False
    for part, path, columns in parts_of(kernel, "", tuple(range(X.shape[1]))):
        name = path + "period"
        if name not in places or not isinstance(part, (Periodic, ExpSineSquared)):
            continue
        if columns not in peaks:
            peaks[columns] = iter(peak_periods(X[:, list(columns)], y))
        place, period = places[name], next(peaks[columns], None)
        if period is not None:
            start[place], found = dataclasses.replace(parameters[place], value=period).theta, True
    return [start] if found else []


def parts_of(
    kernel: Expression, path: str, columns: tuple[int, ...]
) -> Iterator[tuple[Expression, str, tuple[int, ...]]]:
    """The parts of a kernel, with what their parameters' names begin with, and the columns that they see.

    Examples
    --------
    >>> [(path, columns) for _, path, columns in parts_of(2.0 * Periodic().on([1]), "", (0, 1))]
    [('', (0, 1)), ('kernel.', (0, 1)), ('kernel.kernel.', (1,))]
    """
    yield kernel, path, columns
    if isinstance(kernel, Warped):
        return
    inside = tuple(columns[int(c)] for c in kernel.columns) if columns and isinstance(kernel, On) else columns
    for name, child in kernel.children():
        yield from parts_of(child, f"{path}{name}.", inside)


def peak_periods(X: Matrix, y: Matrix) -> list[float]:
    """Periods of the local maxima of the Lomb-Scargle periodogram of y, of all targets and columns, the highest first.

    Frequencies reach from two periods in the range of a column to one in two rows. A cubic trend, whose power at the
    lowest frequencies would hide the peaks, is removed before.

    References
    ----------
    J. D. Scargle, "Studies in astronomical time series analysis II", Astrophysical Journal 263 (1982), 835-853.
    """
    peaks = []
    for x in np.asarray(X, dtype=np.float64).T:
        order = np.argsort(x, kind="stable")[:: -(-len(x) // _ROWS)]
        x, values = x[order], y.reshape(len(y), -1)[order]
        frequencies = np.arange(2 * _OVERSAMPLING, _OVERSAMPLING * len(np.unique(x)) // 2 + 1) / _OVERSAMPLING
        if not len(frequencies):
            # There are fewer than four different rows.
            continue
        extent = x[-1] - x[0]
        x = (x - x[0]) / extent
        H = np.vander(x, 4)
        residual = values - H @ np.linalg.lstsq(H, values, rcond=None)[0]
        power = np.zeros(len(frequencies))
        for column in residual.T:
            power += lombscargle(x, column.copy(), 2 * np.pi * frequencies)
        padded = np.concatenate([[-np.inf], power, [-np.inf]])
        top = np.flatnonzero((padded[1:-1] > padded[:-2]) & (padded[1:-1] >= padded[2:]) & (power > 0))
        peaks += [(float(power[k]), float(extent / frequencies[k])) for k in top]
    return [period for _, period in sorted(peaks, reverse=True)]
