"""Series as the arrays that the loops read."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mercer._errors import DataError
from mercer.data.series import Series
from mercer.engine import threads
from mercer.kernels.objects import Packed
from mercer.loops.series import PAD


class PackedSeries(NamedTuple):
    """All series one after the other, channel by channel: as they are, and each from its end to its start."""

    forward: NDArray[np.float64]
    backward: NDArray[np.float64]
    starts: NDArray[np.int64]
    lengths: NDArray[np.int64]
    channels: int


def packed(objects: Series) -> PackedSeries:
    """The arrays of some series, made once for all kernels.

    Examples
    --------
    >>> packed(Series.of([[1.0, 2.0], [3.0]])).starts.tolist()
    [0, 18]
    """
    kept: PackedSeries = objects.keep("packed series", lambda: _packed(objects))
    return kept


def _packed(objects: Series) -> PackedSeries:
    lengths = objects.lengths
    starts = np.cumsum(lengths + PAD) - lengths - PAD
    forward = np.zeros((objects.channels, int((lengths + PAD).sum())))
    backward = np.zeros_like(forward)
    for item, start, length in zip(objects, starts, lengths, strict=True):
        forward[:, start : start + length] = item.T
        backward[:, start : start + length] = item[::-1].T
    return PackedSeries(forward.ravel(), backward.ravel(), starts, lengths, objects.channels)


def _both_sides(left: Packed, right: Packed, backward: bool) -> tuple[Any, ...]:
    """What the loops take of two sides: the left one forward, and the right one too, or backward."""
    one, other = left.store, right.store
    if one.channels != other.channels:
        raise DataError(channels_differ(one.channels, other.channels))
    second = other.backward if backward else other.forward
    return (
        one.forward,
        one.starts,
        one.lengths,
        left.index,
        second,
        other.starts,
        other.lengths,
        right.index,
        one.channels,
    )


def channels_differ(one: int, other: int) -> str:
    """The message about two sides whose series have different numbers of channels."""
    return f"the two sides of a kernel must be series of equally many channels, but have {one} and {other}."


def compare(
    loop: Callable[..., Any], left: Packed, right: Packed, *arguments: Any, backward: bool = True, work: float = 1.0
) -> None:
    """Call a loop over the pairs of two sides, which Ctrl-C ends; ``work`` are the steps for a pair of points.

    Raises
    ------
    DataError
        If the series of the sides have different numbers of channels.
    """
    points = [side.store.lengths[side.index].sum(dtype=np.float64) for side in (left, right)]
    threads.interruptible(loop, (*_both_sides(left, right, backward), *arguments), work * float(points[0] * points[1]))


def compare_self(loop: Callable[..., Any], store: PackedSeries, *arguments: Any) -> None:
    """The same over all series of a store, each with itself."""
    own = store.forward, store.starts, store.lengths, np.arange(len(store.lengths)), store.channels
    threads.interruptible(loop, (*own, *arguments), float(np.square(store.lengths, dtype=np.float64).sum()))


def reversed_each(values: NDArray[np.float64], store: PackedSeries) -> NDArray[np.float64]:
    """Numbers of the points, laid out as one channel, with those of each series from its end to its start.

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
