"""Data-dependent widths of kernels on series: the median rule."""

from __future__ import annotations

import math

import numpy as np
from scipy.spatial.distance import pdist

from mercer._errors import ParameterError
from mercer.data.series import Series
from mercer.kernels.inputs import Rows

# Bands around the diagonal that a search tries, as parts of the length of the longest series.
_BANDS = (0.05, 0.1, 0.2)
# This many points determine the median well: its standard error is a few hundredths of the spread of the distances.
_POINTS = 1000
_GOLDEN = (math.sqrt(5) - 1) / 2
# Where the squares of widths are numbers.
_SMALLEST = 1e-149


def bands(rows: Rows, own: int | None, whole: int | None) -> tuple[int | None, ...]:
    """The widths of bands that a search tries, beside ``own``; at the end, what stands for no band: ``whole``."""
    longest = int(rows.objects(Series).lengths.max())
    widths = {math.ceil(part * longest) for part in _BANDS}
    if own is not None and own != whole:
        widths.add(own)
    return (*sorted(widths), whole)


def median_distance(series: Series) -> float:
    """The median of the Euclidean distances between points of the series, at any times; 1 where all are equal.

    Distances of zero count only where at most half of all are zero. Of more than 1000 points, 1000 are taken, spread
    evenly over all by multiples of the golden ratio, which follow no period.

    Examples
    --------
    >>> median_distance(Series.of([[0.0, 10.0], [0.0, 10.0, 10.0]]))
    10.0
    """
    points = np.concatenate(list(series))
    if len(points) > _POINTS:
        places = np.arange(1, _POINTS + 1) * _GOLDEN % 1.0 * len(points)
        points = points[np.sort(places.astype(np.int64))]
    # In units near the largest, so that no square leaves the range of float64; powers of two, which round nothing.
    size = math.ldexp(1.0, math.frexp(float(np.abs(points).max()))[1])
    distances = pdist(points / size)
    median = float(np.median(distances)) if distances.size else 0.0
    if median == 0.0:
        positive = distances[distances > 0]
        median = float(np.median(positive)) if positive.size else 0.0
    return min(max(median * size, _SMALLEST), 1 / _SMALLEST) if median > 0.0 else 1.0


def alignment_width(series: Series) -> float:
    """The rule of Cuturi (2011): the median distance times the square root of the median length.

    Examples
    --------
    >>> alignment_width(Series.of([[0.0, 1.0, 2.0, 3.0], [1.0, 2.0, 3.0, 5.0]]))
    4.0
    """
    return min(median_distance(series) * math.sqrt(float(np.median(series.lengths))), 1 / _SMALLEST)


def known(kernel: str, name: str, value: float | str) -> float:
    """The number of a parameter, once it is known.

    Raises
    ------
    ParameterError
        If it is still the name of a rule.
    """
    if isinstance(value, str):
        raise ParameterError(
            f"{kernel}: {name}={value!r} is computed from training data, but there are none; pass the kernel to a "
            "learner, set it with kernel.with_data(X), or pass a number."
        )
    return value
