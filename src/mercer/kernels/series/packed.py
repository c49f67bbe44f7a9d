"""Series as the arrays that the loops read."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mercer._errors import DataError
from mercer.data.series import Series
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


def both_sides(left: Packed, right: Packed) -> tuple[Any, ...]:
    """What the loops take of two sides: the left one forward, and the right one backward.

    Raises
    ------
    DataError
        If the series of the sides have different numbers of channels.
    """
    one, other = left.store, right.store
    if one.channels != other.channels:
        raise DataError(
            "the two sides of a kernel must be series of equally many channels, and have "
            f"{one.channels} and {other.channels}."
        )
    return (
        one.forward, one.starts, one.lengths, left.index, other.backward, other.starts, other.lengths, right.index,
        one.channels,
    )  # fmt: skip
