"""Series as the arrays that the compiled loops read."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mercer._errors import DataError
from mercer._types import Vector
from mercer.data.series import Series
from mercer.engine import threads
from mercer.kernels.objects import Packed
from mercer.loops.series import PAD, SeriesSide

_NONE = np.empty(0)


class PackedSeries(NamedTuple):
    """All series concatenated, channel by channel: in their order (``forward``) and each reversed (``backward``)."""

    forward: NDArray[np.float64]
    backward: NDArray[np.float64]
    starts: NDArray[np.int64]
    lengths: NDArray[np.int64]
    channels: int


def packed(objects: Series) -> PackedSeries:
    """Return the arrays of some series, which are computed once for all kernels.

    Examples
    --------
    >>> packed(Series.of([[1.0, 2.0], [3.0]])).starts.tolist()
    [0, 18]
    """
    series: PackedSeries = objects.keep("packed series", lambda: _packed(objects))
    return series


def _packed(objects: Series) -> PackedSeries:
    lengths = objects.lengths
    starts = np.cumsum(lengths + PAD) - lengths - PAD
    forward = np.zeros((objects.channels, int((lengths + PAD).sum())))
    backward = np.zeros_like(forward)
    for item, start, length in zip(objects, starts, lengths, strict=True):
        forward[:, start : start + length] = item.T
        backward[:, start : start + length] = item[::-1].T
    return PackedSeries(forward.ravel(), backward.ravel(), starts, lengths, objects.channels)


def side(rows: Packed, series: PackedSeries, backward: bool = False, shrink: Vector = _NONE) -> SeriesSide:
    """Return some rows as the compiled loops read them; ``shrink`` has the layout of one channel."""
    values = series.backward if backward else series.forward
    step = len(values) // series.channels
    return SeriesSide(values, step, series.channels, series.starts, series.lengths, rows.index, shrink)


def channels_differ(one: int, other: int) -> str:
    """Return the message for two sides with different numbers of channels."""
    return f"the two sides of a kernel must be series with the same number of channels, but have {one} and {other}."


def compare(
    loop: Callable[..., Any], left: SeriesSide, right: SeriesSide, *arguments: Any, steps_each: float = 1.0
) -> None:
    """Call an interruptible loop over the pairs of two sides; a pair of points takes ``steps_each`` steps.

    Raises
    ------
    DataError
        If the series of the sides have different numbers of channels.
    """
    if left.channels != right.channels:
        raise DataError(channels_differ(left.channels, right.channels))
    one, other = (rows.lengths[rows.index].sum(dtype=np.float64) for rows in (left, right))
    threads.interruptible(loop, (left, right, *arguments), steps_each * float(one * other))


def reversed_each(values: NDArray[np.float64], store: PackedSeries) -> NDArray[np.float64]:
    """Return numbers of points, in the layout of one channel, with the numbers of each series reversed.

    Examples
    --------
    >>> store = packed(Series.of([[1.0, 2.0], [3.0]]))
    >>> bool((reversed_each(store.forward, store) == store.backward).all())
    True
    """
    turned = np.zeros_like(values)
    for start, length in zip(store.starts, store.lengths, strict=True):
        turned[start : start + length] = values[start : start + length][::-1]
    return turned
