"""Time series: values at equally spaced times, in one channel or several."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from mercer._errors import DataError
from mercer.data.objects import Objects, short

# Beyond this, squares of differences are no numbers any more.
_LARGEST = 1e150


class Series(Objects):
    """Rows of values at equally spaced times: (T,) for one channel, or (T, c); rows may be of different lengths.

    A list of such, an array (n, T) or (n, T, c), or a column of a table whose entries are lists or arrays. An array
    with the channels before the times, (n, c, T), is turned by ``X.transpose(0, 2, 1)``.

    Examples
    --------
    >>> rows = Series.of([[1.0, 2.0, 4.0], [3.0]])
    >>> rows.shape, rows[0].shape, rows.channels
    ((2,), (3, 1), 1)
    >>> Series.of([[1.0, 2.0], [1.0, float("nan")]])
    Traceback (most recent call last):
        ...
    mercer._errors.DataError: row 1 of X: a series must have a value at every time, and 1 of 2 are NaN. If that is \
padding at its end, mercer.data.series.Series.from_padded(X) cuts it off.
    """

    kind = "series"
    rows_as = "a series"

    @staticmethod
    def read(item: Any) -> NDArray[np.float64]:
        values = _values(item)
        if values.size == 0:
            raise DataError("a series must have at least one value, and this one is empty; leave it out.")
        finite = np.asarray(np.isfinite(values).all(axis=1))
        if not finite.all():
            raise DataError(_not_finite(values, finite))
        if np.abs(values).max() > _LARGEST:
            raise DataError(
                f"values of a series must be below {_LARGEST:g} in size, where squares are numbers; scale it."
            )
        # Zero has one form, so that equal series have equal bytes.
        values = values + 0.0
        values.setflags(write=False)
        return values

    @staticmethod
    def fingerprint(item: Any) -> bytes:
        return np.int64(item.shape[1]).tobytes() + np.ascontiguousarray(item, np.float64).tobytes()

    @classmethod
    def of(cls, X: Any, name: str = "X") -> Self:
        rows = super().of(X, name)
        if not isinstance(X, cls):
            wanted = rows.channels
            for number, item in enumerate(rows):
                if item.shape[1] != wanted:
                    raise DataError(
                        f"row {number} of {name}: all series must have equally many channels; this one has "
                        f"{item.shape[1]} and those before it {wanted}. A series is an array (times, channels); "
                        "transpose what has the channels first."
                    )
        return rows

    @classmethod
    def from_padded(cls, X: Any) -> Self:
        """The rows of an array (n, T) or (n, T, c) whose shorter series are filled up with NaN at the end.

        Raises
        ------
        DataError
            If a NaN stands before a value.

        Examples
        --------
        >>> [item.ravel().tolist() for item in Series.from_padded([[1.0, 2.0], [3.0, float("nan")]])]
        [[1.0, 2.0], [3.0]]
        """
        items = []
        for number, item in enumerate(X):
            try:
                values = _values(item)
            except DataError as error:
                raise DataError(f"row {number} of X: {error}") from error
            there = np.flatnonzero(~np.isnan(values).all(axis=1))
            items.append(values[: there[-1] + 1 if there.size else 0])
        return cls.of(items)

    @property
    def channels(self) -> int:
        """Values at each time."""
        return int(self.items[0].shape[1])

    @property
    def lengths(self) -> NDArray[np.int64]:
        """Times of each series, (n,)."""
        return np.array([len(item) for item in self], np.int64)


def _values(item: Any) -> NDArray[np.float64]:
    """One row as an array (times, channels)."""
    wanted = "a series must be an array of numbers, (times,) or (times, channels)"
    if isinstance(item, (str, bytes)) or not (isinstance(item, Sequence) or hasattr(item, "__array__")):
        raise DataError(f"{wanted}, and is {short(item)}.")
    if np.ma.is_masked(item):
        raise DataError("a series must have a value at every time, and has masked ones; fill them in (.filled(...)).")
    try:
        array = np.asarray(item)
        if array.size and array.dtype.kind not in "fiub":
            raise DataError(f"{wanted}, and holds {short(array.ravel()[0])} ({array.dtype}).")
        values = np.array(array, np.float64, order="C")
    except ValueError as error:
        if isinstance(error, DataError):
            raise
        raise DataError(f"{wanted}, and is {short(item)}.") from error
    if values.ndim not in (1, 2):
        seen = f"has the shape {values.shape}" if values.ndim else f"is {short(values.item())}"
        raise DataError(f"{wanted}, and {seen}.")
    return values[:, None] if values.ndim == 1 else values


def _not_finite(values: NDArray, finite: NDArray) -> str:
    """What to do about values that are no numbers."""
    if not np.isnan(values).any():
        return f"a series must be finite, and {int((~finite).sum())} of its {len(values)} times hold infinities."
    text = f"a series must have a value at every time, and {int((~finite).sum())} of {len(values)} are NaN."
    if np.diff(finite.astype(int)).max(initial=0) <= 0 and finite[0]:
        return f"{text} If that is padding at its end, mercer.data.series.Series.from_padded(X) cuts it off."
    return f"{text} Fill them in first, for instance by numpy.interp between the times that are there."
