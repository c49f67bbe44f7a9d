"""Images compared patch by patch."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from mercer._errors import DataError, MercerWarning, warn_user
from mercer.data.bags import Bags
from mercer.data.images import Images, check_channels, in_unit
from mercer.data.objects import Objects
from mercer.engine import memory
from mercer.kernels.bag import MeanKernel
from mercer.kernels.inputs import Frame, Rows
from mercer.kernels.kernel import Kernel
from mercer.kernels.parameters import number, whole
from mercer.kernels.vector.stationary import RBF

# Range of the pixels in length scales beyond which a pair of patches may count for exp(-32) by one pixel.
_FAR = 8.0


@dataclass(frozen=True, repr=False)
class ConvolutionalPatches(MeanKernel):
    """``k(x, z) = mean_{p, q} exp(-|x[p] - z[q]|^2 / (2 length_scale^2))`` over all patches p of x and q of z.

    A patch is a square of ``size`` times ``size`` pixels that lies within the image, with all channels. Images may
    differ in size; the position of a pattern in an image makes no difference.

    ``k(x, x)`` is larger the more the patches of x are alike. ``.normalized()`` makes it 1 for every image. Its values
    then differ less than those of a kernel on vectors, because most pairs of patches are alike: machines need a larger
    C, such as 10, or a smaller length scale.

    Parameters
    ----------
    size : int, default=3
        Pixels on a side of a patch.
    length_scale : float, default=1.0
        Distance at which two patches differ; pixels of bytes are scaled to 0 to 1. Other pixels are used unchanged,
        with a warning if they go over more than 8 length scales.
    tuning : tuple, optional
        Set by :meth:`fixed` and :meth:`bounded`.

    Raises
    ------
    ParameterError
        If ``size`` is not a whole number above 0.
    DataError
        When evaluated, if a row is not an image, is smaller than a patch, or has another number of channels.

    Notes
    -----
    van der Wilk, Rasmussen and Hensman (2017), "Convolutional Gaussian processes", equation 10, as a mean. The cost of
    a pair is a product of matrices over all pairs of patches.

    Examples
    --------
    >>> k = ConvolutionalPatches(2, length_scale=1.0)
    >>> k([[[0, 0], [0, 0]], [[0, 0, 1], [0, 0, 1]]]).round(4).tolist()
    [[1.0, 0.6839], [0.6839, 0.6839]]
    """

    size: int = 3
    length_scale: float = number(1.0)

    rows_of: ClassVar[type[Objects]] = Images

    def __post_init__(self) -> None:
        super().__post_init__()
        size = whole("ConvolutionalPatches", "size", self.size, "a whole number above 0")
        object.__setattr__(self, "size", size)

    @property
    def _inner(self) -> Kernel:
        return RBF(self.length_scale)

    def _check_sides(self, frame: Frame) -> None:
        check_channels(frame.left.objects(Images), frame.right.objects(Images))

    def _bags(self, side: Rows) -> Bags:
        images: Images = side.objects(Images)
        bags: Bags = images.keep(("patches", self.size), lambda: self._patches(images))
        return bags

    def _patches(self, images: Images) -> Bags:
        bags = patches(images, self.size)
        # Bytes were scaled; of other pixels the range is that of the data.
        low, high = float(np.min(bags.rows)), float(np.max(bags.rows))
        if high - low > _FAR * self.length_scale and all(image.dtype != np.uint8 for image in images):
            scaled = f"{f'(X - {low:g})' if low else 'X'} / {high - low:g}"
            warn_user(
                f"{self!r}: pixels go from {low:g} to {high:g}, {(high - low) / self.length_scale:.3g} length scales: "
                "patches that differ in one pixel alone may have nothing in common. Only bytes (numpy.uint8) are "
                f"scaled to 0 to 1; pass {scaled}, or raise length_scale.",
                MercerWarning,
            )
        return bags


def patches(images: Images, size: int) -> Bags:
    """All patches of each image, as vectors of ``size * size * channels`` numbers.

    Raises
    ------
    DataError
        If an image is smaller than a patch, or has another number of channels than the others.
    MemoryBudgetError
        If the patches would not fit the memory budget.

    Examples
    --------
    >>> patches(Images.of([np.arange(6).reshape(2, 3)]), 2)[0].tolist()
    [[0.0, 1.0, 3.0, 4.0], [1.0, 2.0, 4.0, 5.0]]
    """
    channels = images.channels
    small = next((row for row, image in enumerate(images) if min(image.shape[:2]) < size), None)
    if small is not None:
        height, width = images[small].shape[:2]
        raise DataError(
            f"the image in row {small} has {height} x {width} pixels, but patches have {size} x {size}; choose a "
            "smaller size."
        )
    counts = [(image.shape[0] - size + 1) * (image.shape[1] - size + 1) for image in images]
    starts = np.concatenate([np.zeros(1, np.int64), np.cumsum(counts)])
    width = size * size * channels
    # The patches, and their copy about their middle between which distances are taken.
    memory.require(
        2 * 8 * int(starts[-1]) * width,
        f"the {starts[-1]} patches of {len(images)} images",
        "Use fewer or smaller images, or raise the budget with mercer.config(memory=...).",
    )
    rows = np.empty((int(starts[-1]), width))
    for image, first, last in zip(images, starts[:-1].tolist(), starts[1:].tolist(), strict=True):
        windows = np.lib.stride_tricks.sliding_window_view(in_unit(image), (size, size), axis=(0, 1))
        # Windows stand last: (down, right, channels, size, size).
        rows[first:last] = windows.transpose(0, 1, 3, 4, 2).reshape(last - first, width)
    return Bags(rows, starts)
