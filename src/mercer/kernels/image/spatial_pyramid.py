"""Images compared by histograms of smaller and smaller parts."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from mercer._errors import DataError, ParameterError
from mercer._types import Array
from mercer.data.images import Images, check_channels, in_unit
from mercer.data.objects import Objects, short
from mercer.engine import memory, settings
from mercer.engine.tiles import TILE
from mercer.kernels.inputs import Frame, Operand, Rows, Scope
from mercer.kernels.objects import ObjectKernel
from mercer.kernels.pairs import Pairs
from mercer.kernels.parameters import as_float, whole
from mercer.kernels.statistics import Statistic
from mercer.loops import distances

_MOST_LEVELS = 8


@dataclass(frozen=True, repr=False)
class SpatialPyramid(ObjectKernel):
    """``k(x, z) = sum_l weight_l sum_{cells c of level l} sum_b min(h_lcb(x), h_lcb(z))`` over bins b of histograms.

    On level ``l = 0, ..., levels`` an image is cut into ``2^l`` times ``2^l`` cells. ``h_lcb`` is the share of the
    image's pixels that lie in the cell and in the bin, a histogram for each channel, whose mean is taken. The weights
    are ``2^-levels`` on level 0 and ``2^(l - levels - 1)`` on the others, so that ``k(x, x) = 1``.

    Parameters
    ----------
    levels : int, default=2
        The finest level; on level 0 alone it is the intersection of the histograms of whole images.
    bins : int, default=16
        Bins of a histogram, of equal width.
    values : (float, float), default=(0.0, 1.0)
        The range that the bins divide; pixels of bytes are scaled to 0 to 1.
    tuning : tuple, optional
        Set by :meth:`fixed` and :meth:`bounded`.

    Raises
    ------
    ParameterError
        If ``levels`` or ``bins`` is out of its range, or ``values`` is not a range.
    DataError
        When evaluated, if a row is not an image, has another number of channels, or has values outside the range.

    Notes
    -----
    Lazebnik, Schmid and Ponce (2006), "Beyond bags of features: spatial pyramid matching for recognizing natural scene
    categories", equation 3, with histograms of pixels instead of words.

    Examples
    --------
    >>> half = [[0.0, 1.0], [0.0, 1.0]]
    >>> SpatialPyramid(0, bins=2)([half, [[1.0, 0.0], [1.0, 0.0]]]).tolist()
    [[1.0, 1.0], [1.0, 1.0]]
    >>> SpatialPyramid(1, bins=2)([half, [[1.0, 0.0], [1.0, 0.0]]]).tolist()
    [[1.0, 0.5], [0.5, 1.0]]
    """

    levels: int = 2
    bins: int = 16
    values: Any = (0.0, 1.0)

    rows_of: ClassVar[type[Objects]] = Images

    def __post_init__(self) -> None:
        super().__post_init__()
        levels = whole("SpatialPyramid", "levels", self.levels, f"a whole number from 0 to {_MOST_LEVELS}", low=0)
        if levels > _MOST_LEVELS:
            raise ParameterError(
                f"SpatialPyramid: levels must be a whole number from 0 to {_MOST_LEVELS}, but is {levels}; on level "
                f"{_MOST_LEVELS} an image has {4**_MOST_LEVELS} cells."
            )
        object.__setattr__(self, "levels", levels)
        object.__setattr__(self, "bins", whole("SpatialPyramid", "bins", self.bins, "a whole number above 0"))
        try:
            low, high = (as_float(value) for value in self.values)
        except (TypeError, ValueError) as error:
            raise ParameterError(
                f"SpatialPyramid: values must be a range (low, high), but are {short(self.values)}."
            ) from error
        if not (np.isfinite(high - low) and low < high):
            description = short(self.values)
            raise ParameterError(f"SpatialPyramid: values must be finite with low < high, but are {description}.")
        object.__setattr__(self, "values", (low, high))

    def _fill(self, pairs: Pairs, out: Array) -> None:
        pairs.statistic(_Intersections(self), 1.0, out)

    def _pull(self, pairs: Pairs, weights: Array, slopes: Array) -> None:
        """Histograms have no parameters, so there are no slopes."""

    def _uses(self, scope: Scope) -> Iterator[Hashable]:
        yield scope, _Intersections(self)

    def histograms(self, X: Any) -> Array:
        """The weighted histograms of all cells, of which the kernel is the intersection.

        Parameters
        ----------
        X : sequence of images
            As the kernel takes them.

        Returns
        -------
        ndarray of shape (n, cells * bins * channels)
            A row for each image.

        Examples
        --------
        >>> SpatialPyramid(0, bins=2).histograms([[[0.0, 1.0], [1.0, 1.0]]]).tolist()
        [[0.25, 0.75]]
        """
        images = Images.of(X)
        cells = sum(4**level for level in range(self.levels + 1))
        width = cells * self.bins * images.channels
        # Each thread has a copy of those of a tile.
        n_rows = len(images) + (len(images) if len(images) <= TILE else settings.resolve_jobs(None) * TILE)
        memory.require(
            8 * width * n_rows,
            f"the histograms of {len(images)} images, of {width} numbers each,",
            "Lower levels or bins, or raise the budget with mercer.config(memory=...).",
        )
        out = np.empty((len(images), width))
        for row, image in enumerate(images):
            out[row] = self._histogram(in_unit(image), row)
        return out

    def _histogram(self, image: Array, row: int) -> Array:
        (low, high), (height, width, channels) = self.values, image.shape
        if image.min() < low or image.max() > high:
            value = image.max() if image.max() > high else image.min()
            raise DataError(
                f"the image in row {row} holds {value:g}, which is not between {low:g} and {high:g}; pass the "
                "range of the pixels, as in values=(0.0, 255.0)."
            )
        bins = np.searchsorted(np.linspace(low, high, self.bins + 1)[1:-1], image, side="right")
        side = 2**self.levels
        down, right = (np.arange(pixels) * side // pixels for pixels in (height, width))
        cells = (down[:, None] * side + right)[:, :, None]
        places = (cells * channels + np.arange(channels)) * self.bins + bins
        counts = np.bincount(places.ravel(), minlength=side * side * channels * self.bins)
        finest = counts.reshape(side, side, -1) / (height * width * channels)
        parts = []
        for level in range(self.levels, -1, -1):
            weight = 2.0**-self.levels if level == 0 else 2.0 ** (level - self.levels - 1)
            parts.append(weight * finest.ravel())
            half = finest.shape[0] // 2
            if level:
                finest = finest.reshape(half, 2, half, 2, -1).sum(axis=(1, 3))
        return np.concatenate(parts)


@dataclass(frozen=True)
class _Intersections(Statistic):
    """The intersection of the weighted histograms."""

    kernel: SpatialPyramid

    def prepare(self, side: Rows, frame: Frame, dtype: np.dtype) -> Operand:
        check_channels(frame.left.objects(Images), frame.right.objects(Images))
        own = side.objects(Images)
        return (own.keep(("histograms", self.kernel), lambda: self.kernel.histograms(own)).astype(dtype, copy=False),)

    def fill(self, left: Operand, right: Operand, multiplier: float, out: Array) -> None:
        distances.intersection(left[0], np.ascontiguousarray(right[0].T), out.dtype.type(multiplier), out)

    def diagonal(self, operand: Operand) -> Array:
        return operand[0].sum(axis=1)
