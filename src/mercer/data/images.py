"""Images: grey or colour, each of any size."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

import numpy as np

from mercer._errors import DataError, ParameterError
from mercer.data.objects import Objects, _sequence, short

AXES = ("nhw", "nhwc", "nchw")
"""Orders of the axes of an array of images: n rows, height h, width w, c channels."""

_CHANNELS = (3, 4)


class Images(Objects):
    """Rows that are images: arrays (height, width) in grey, or (height, width, 3 or 4) in colour.

    Bytes are scaled from 0 to 1 in steps of 1 / 255; other numbers are used unchanged. An array (n, height, width) or
    (n, height, width, 3 or 4) contains n images of one size. :meth:`from_array` reads arrays with the channels before
    the height, (n, channels, height, width), as in PyTorch. An array whose order of axes is ambiguous, or which may be
    a single colour image, raises an error unless the order is given there.

    Examples
    --------
    >>> images = Images.of([np.zeros((2, 3)), np.full((4, 4, 3), 255, np.uint8)])
    >>> [image.shape for image in images]
    [(2, 3), (4, 4, 3)]
    >>> Images.of([np.zeros(3)])
    Traceback (most recent call last):
        ...
    mercer._errors.DataError: row 0 of X: an image must be an array (height, width) or (height, width, 3 or 4) of \
numbers, but is of shape (3,).
    """

    kind = "images"

    def __init__(self, arrays: Pixels | Iterable[Any]) -> None:
        super().__init__(arrays.split() if isinstance(arrays, Pixels) else arrays)

    @staticmethod
    def read(item: Any) -> np.ndarray:
        if np.ma.is_masked(item):
            raise DataError("the image has masked pixels; fill them in (image.filled(...)).")
        requirement = "an image must be an array (height, width) or (height, width, 3 or 4) of numbers"
        try:
            image = np.asarray(item)
        except ValueError as error:
            raise DataError(f"{requirement}, but is {short(item)}, whose rows are not equally long.") from error
        colour = image.ndim == 3 and image.shape[2] in _CHANNELS
        if not (image.ndim == 2 or colour) or image.dtype.kind not in "fiub":
            description = f"of shape {image.shape}" if image.dtype.kind in "fiub" else f"an array of {image.dtype}"
            description = description if image.ndim else short(item)
            raise DataError(f"{requirement}, but is {description}.{_way_out(image.shape)}")
        if 0 in image.shape:
            raise DataError(f"the image has no pixels: its shape is {image.shape}.")
        if image.dtype == np.uint8:
            image = np.array(image, order="C")
        else:
            image = np.array(image, dtype=np.float64, order="C")
            if not np.isfinite(image).all():
                at = tuple(np.argwhere(~np.isfinite(image))[0].tolist())
                raise DataError(f"the image holds {image[at]} at {at}; fill it in, since every pixel is compared.")
            # So that equal images have equal bytes.
            image += 0.0
        image.setflags(write=False)
        return image

    @classmethod
    def of(cls, X: Any, name: str = "X") -> Self:
        if isinstance(X, np.ndarray) and X.dtype.kind in "fiub":
            _refuse_unclear(X, name)
        return super().of(X, name)

    @classmethod
    def from_array(cls, X: Any, axes: str) -> Self:
        """Read an array of images, or a list of arrays, whose axes are in a given order.

        Parameters
        ----------
        X : array of shape (n, height, width), (n, height, width, channels) or (n, channels, height, width)
            Or, for different sizes, a list of n arrays without the first axis. One channel is grey, 3 and 4 are colour.
        axes : {"nhw", "nhwc", "nchw"}
            The order of the axes: n rows, height h, width w, c channels. ``"nchw"`` is the order of PyTorch.

        Raises
        ------
        ParameterError
            If ``axes`` is not one of the three.
        DataError
            If a row has the wrong number of axes, or a number of channels other than 1, 3 or 4.

        Examples
        --------
        >>> Images.from_array(np.zeros((2, 3, 8, 6)), axes="nchw")[0].shape
        (8, 6, 3)
        """

        def read(item: Any) -> np.ndarray:
            return cls.read(_in_order(item, axes))

        if axes not in AXES:
            raise ParameterError(
                "axes must be 'nhw' (rows, height, width), 'nhwc' (rows, height, width, channels) or 'nchw' (rows, "
                f"channels, height, width), but is {axes!r}."
            )
        return cls.collect(cls.read_each(_sequence(X, cls.kind, "X"), read=read))

    @staticmethod
    def fingerprint(item: Any) -> bytes:
        return f"{item.dtype.str}{item.shape}".encode() + item.tobytes()

    @cached_property
    def arrays(self) -> Pixels:
        """All images in a few arrays, as model files and pickles store them."""
        return Pixels.of(self.items.tolist())

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.arrays,)

    @property
    def channels(self) -> int:
        """Number of channels, the same in all images.

        Raises
        ------
        DataError
            If some images are in colour and others in grey.
        """
        counts = [1 if image.ndim == 2 else image.shape[2] for image in self]
        odd = next((row for row, channels in enumerate(counts) if channels != counts[0]), None)
        if odd is not None:
            raise DataError(
                f"the image in row 0 has {counts[0]} numbers in a pixel and that in row {odd} has {counts[odd]}; "
                "convert all images to grey, or all to colour."
            )
        return counts[0]


def _refuse_unclear(X: np.ndarray, name: str) -> None:
    """Raise if an array may have its channels before the height, or be a single image in colour."""
    give = f"mercer.data.images.Images.from_array({name}, axes="
    if X.ndim == 4 and X.shape[1] in _CHANNELS and X.shape[3] in _CHANNELS and X.shape[1] < X.shape[2]:
        raise DataError(
            f"{name} is of shape {X.shape}, which may be (n, height, width, channels) or (n, channels, height, width). "
            f'Pass the order: {give}"nhwc") or {give}"nchw").'
        )
    if X.ndim == 3 and X.shape[2] in _CHANNELS and X.shape[0] > X.shape[2] < X.shape[1]:
        raise DataError(
            f"{name} is of shape {X.shape}: read as (n, height, width), it would be {X.shape[0]} grey images of width "
            f'{X.shape[2]}. If it is a single image in colour, pass [{name}]; if not, {give}"nhw").'
        )


def _way_out(shape: tuple[int, ...]) -> str:
    """What to do about an array of the shape of one image whose channels are elsewhere, or single."""
    places = [axes for axes, at in (("nchw", 0), ("nhwc", 2)) if len(shape) == 3 and shape[at] in (1, *_CHANNELS)]
    if not places:
        return ""
    return f' Pass mercer.data.images.Images.from_array(X, axes="{places[0]}").'


def _in_order(item: Any, axes: str) -> Any:
    """One image, whose axes are given, as an array (height, width) or (height, width, channels)."""
    if np.ndim(item) != len(axes) - 1:
        raise DataError(
            f"axes={axes!r} takes an array in {len(axes)} dimensions or a list of arrays in {len(axes) - 1}, and this "
            f"row has {np.ndim(item)}."
        )
    if axes == "nhw" or np.ma.is_masked(item):
        return item
    image = np.asarray(item)
    image = image.transpose(1, 2, 0) if axes == "nchw" else image
    return image[:, :, 0] if image.shape[2] == 1 else image


def check_channels(one: Images, other: Images) -> None:
    """Raise an error unless the images of both sides have the same number of channels."""
    if one.channels != other.channels:
        raise DataError(
            f"the images of one side have {one.channels} numbers in a pixel, and those of the other {other.channels}; "
            "convert all images to grey, or all to colour."
        )


def in_unit(image: np.ndarray) -> np.ndarray:
    """Return the values of the pixels, (height, width, channels), in float64; bytes are scaled to [0, 1].

    >>> in_unit(np.array([[0, 255]], np.uint8)).ravel().tolist()
    [0.0, 1.0]
    """
    values = image / 255.0 if image.dtype == np.uint8 else image
    return values[:, :, None] if values.ndim == 2 else values


@dataclass(frozen=True, eq=False)
class Pixels:
    """Images one after the other, those in bytes in ``small`` and the others in ``wide``.

    ``shapes`` (n, 4) contains height, width, channels (0 in grey), and 1 for images in bytes.
    """

    shapes: np.ndarray
    small: np.ndarray
    wide: np.ndarray

    def __post_init__(self) -> None:
        forms = {"shapes": ("i", 2), "small": ("u", 1), "wide": ("f", 1)}
        for name, (kind, ndim) in forms.items():
            if getattr(self, name).dtype.kind != kind or getattr(self, name).ndim != ndim:
                raise DataError(f"{name} must be an array of kind {kind!r} with {ndim} axes.")
        shapes = self.shapes
        if shapes.shape[1] != 4 or (shapes[:, :2] < 1).any() or not np.isin(shapes[:, 2], (0, *_CHANNELS)).all():
            raise DataError("the shapes of images are four numbers a row: height, width, channels, whether in bytes.")
        is_small = shapes[:, 3] == 1
        if [int(self._sizes()[chosen].sum()) for chosen in (is_small, ~is_small)] != [len(self.small), len(self.wide)]:
            raise DataError("the shapes of images do not add up to their pixels.")

    def _sizes(self) -> np.ndarray:
        return self.shapes[:, 0] * self.shapes[:, 1] * np.maximum(self.shapes[:, 2], 1)

    @classmethod
    def of(cls, images: list[np.ndarray]) -> Pixels:
        """Return the arrays of these images."""
        shapes = [(*i.shape[:2], i.shape[2] if i.ndim == 3 else 0, int(i.dtype == np.uint8)) for i in images]
        parts: list[list[np.ndarray]] = [[np.empty(0, np.uint8)], [np.empty(0)]]
        for image in images:
            parts[image.dtype != np.uint8].append(image.ravel())
        return cls(np.array(shapes, np.int64).reshape(-1, 4), np.concatenate(parts[0]), np.concatenate(parts[1]))

    def split(self) -> list[np.ndarray]:
        """Return the images, each checked again."""
        images, at = [], [0, 0]
        for (height, width, channels, is_small), size in zip(self.shapes.tolist(), self._sizes().tolist(), strict=True):
            source, place = (self.small, 0) if is_small else (self.wide, 1)
            shape = (height, width, channels) if channels else (height, width)
            images.append(Images.read(source[at[place] : at[place] + size].reshape(shape)))
            at[place] += size
        return images
