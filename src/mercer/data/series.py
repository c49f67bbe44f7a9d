"""Time series: values at equally spaced times, in one channel or several."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from mercer._errors import DataError, MercerWarning, ParameterError, warn_user
from mercer.data.objects import Objects, _sequence, short
from mercer.data.words import listing

AXES = ("ntc", "nct")
"""Orders of the axes of an array of series: n rows, t times, c channels."""

# A long weekend between days of work is 4 days, and months differ by less.
_UNEVEN = 4
# Beyond this, squares of differences overflow.
_LARGEST = 1e150


class Series(Objects):
    """Rows that are time series at equally spaced times: (T,) for one channel, or (T, c); lengths may differ.

    Accepted are a list of series, an array (n, T), (n, T, c) or, as in aeon and sktime, (n, c, T), and a column of a
    table whose entries are lists or arrays. In an array of three axes the longer one of the last two is time. Where
    they are equally long, or time is the shorter one, :meth:`from_array` reads it in the order that is given.

    Examples
    --------
    >>> rows = Series.of([[1.0, 2.0, 4.0], [3.0]])
    >>> rows.shape, rows[0].shape, rows.channels
    ((2,), (3, 1), 1)
    >>> Series.of([[1.0, 2.0], [1.0, float("nan")]])
    Traceback (most recent call last):
        ...
    mercer._errors.DataError: row 1 of X: a series must have a value at every time, but 1 of 2 are NaN. If that is \
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
                f"values of a series must be below {_LARGEST:g} in size, so that squares do not overflow; scale it."
            )
        # Zero has one form, so that equal series have equal bytes.
        values = values + 0.0
        values.setflags(write=False)
        return values

    @classmethod
    def read_each(cls, items: Iterable[Any], name: str = "X", read: Callable[[Any], Any] | None = None) -> list[Any]:
        items = _with_channels_in_order(list(items), name)
        _warn_of_uneven_times(items, name)
        return super().read_each(items, name, read)

    @staticmethod
    def fingerprint(item: Any) -> bytes:
        return np.int64(item.shape[1]).tobytes() + np.ascontiguousarray(item, np.float64).tobytes()

    @classmethod
    def of(cls, X: Any, name: str = "X") -> Self:
        if isinstance(X, np.ndarray) and X.ndim == 3 and len(X):
            return cls._in_axes(X, longer_axis_is_time(X.shape, name), name)
        rows = super().of(X, name)
        if not isinstance(X, cls):
            _refuse_single_times([item.shape for item in rows], name)
        return rows

    @classmethod
    def collect(cls, items: list[Any], name: str = "X") -> Self:
        channels = items[0].shape[1]
        for number, item in enumerate(items):
            if item.shape[1] != channels:
                raise DataError(
                    f"row {number} of {name}: all series must have the same number of channels; this one has "
                    f"{item.shape[1]}, but those before it have {channels}. A series is an array (times, channels); if "
                    f'the channels come first, pass mercer.data.series.Series.from_array({name}, axes="nct").'
                )
        return cls(items)

    @classmethod
    def from_array(cls, X: Any, axes: str) -> Self:
        """Read a three-dimensional array, or a list of two-dimensional arrays, whose axes are in a given order.

        Parameters
        ----------
        X : array of shape (n, times, channels) or (n, channels, times)
            Or, for different lengths, a list of n arrays (times, channels) or (channels, times).
        axes : {"ntc", "nct"}
            The order of the axes: n rows, t times, c channels. ``"nct"`` is the order of aeon and sktime.

        Raises
        ------
        ParameterError
            If ``axes`` is neither of the two.
        DataError
            If a row is not a two-dimensional array of finite numbers, or the numbers of channels differ.

        Examples
        --------
        >>> X = np.arange(12.0).reshape(2, 1, 6)
        >>> Series.from_array(X, axes="nct").channels, Series.from_array(X, axes="ntc").channels
        (1, 6)
        """

        check_axes(axes)
        return cls._in_axes(_sequence(X, cls.kind, "X"), axes, "X")

    @classmethod
    def _in_axes(cls, X: Any, axes: str, name: str) -> Self:
        return cls.collect(cls.read_each(X, name, lambda item: cls.read(_in_order(item, axes))), name)

    @classmethod
    def from_padded(cls, X: Any, axes: str | None = None) -> Self:
        """Read an array (n, T) or (n, T, c) whose shorter series are padded with NaN at the end.

        ``axes`` as in :meth:`from_array`; by default the longer one of the last two is time.

        Raises
        ------
        DataError
            If a NaN precedes a value, or ``axes`` is not given and the last two axes are equally long.

        Examples
        --------
        >>> [item.ravel().tolist() for item in Series.from_padded([[1.0, 2.0], [3.0, float("nan")]])]
        [[1.0, 2.0], [3.0]]
        """

        def read(item: Any) -> NDArray[np.float64]:
            values = _values(item) if axes is None else _in_order(item, axes)
            times = np.flatnonzero(~np.isnan(values).all(axis=1))
            return cls.read(values[: times[-1] + 1 if times.size else 0])

        if axes is not None:
            check_axes(axes)
        elif isinstance(X, np.ndarray) and X.ndim == 3:
            axes = longer_axis_is_time(X.shape, "X")
        rows = cls.collect(cls.read_each(X, read=read))
        if axes is None:
            _refuse_single_times([np.shape(item) for item in X if np.ndim(item) == 2], "X")
        return rows

    @property
    def channels(self) -> int:
        """Number of values at each time."""
        return int(self.items[0].shape[1])

    @property
    def lengths(self) -> NDArray[np.int64]:
        """Number of times of each series, (n,)."""
        return np.array([len(item) for item in self], np.int64)


def _with_channels_in_order(items: list[Any], name: str) -> list[Any]:
    """The rows that are data frames with their columns in the order of the first.

    Raises
    ------
    DataError
        If a data frame has other columns than the first.
    """
    frames = [row for row, item in enumerate(items) if hasattr(item, "columns")]
    first = list(items[frames[0]].columns) if frames else []
    for row in frames:
        own = list(items[row].columns)
        if own == first:
            continue
        if len(set(own)) < len(own) or sorted(map(str, own)) != sorted(map(str, first)):
            raise DataError(
                f"row {row} of {name} has the columns {listing(own)}, but row {frames[0]} has {listing(first)}; the "
                "channels of all series must be the same."
            )
        items[row] = items[row][first]
    return items


def _warn_of_uneven_times(items: list[Any], name: str) -> None:
    """Say that the times in the index of pandas, if they are not equally spaced, are not used."""
    for row, item in enumerate(items):
        times: Any = getattr(item, "index", None)
        if getattr(getattr(times, "dtype", None), "kind", "") not in ("f", "m", "M") or len(times) < 3:
            continue
        steps = np.abs(np.diff(times.to_numpy()))
        if steps.max() > _UNEVEN * steps.min():
            way = "numpy.interp(numpy.linspace(t[0], t[-1], len(t)), t, series)"
            way = way if times.dtype.kind == "f" else 'series.resample("1D").mean().interpolate()'
            warn_user(
                f"row {row} of {name} has times in its index that are not equally spaced: steps from {steps.min()} to "
                f"{steps.max()}. They are not used: a series stands for equally spaced values. Interpolate first, as "
                f"in {way}, or leave the times out (series.to_numpy()).",
                MercerWarning,
            )
            return


def check_axes(axes: str) -> None:
    """Raise an error unless ``axes`` is a known order of the axes of series.

    Raises
    ------
    ParameterError
        If it is not.
    """
    if axes not in AXES:
        raise ParameterError(
            f"axes must be 'ntc' (rows, times, channels) or 'nct' (rows, channels, times), but is {axes!r}."
        )


def longer_axis_is_time(shape: tuple[int, ...], name: str, give: str | None = None) -> str:
    """Return the order of the axes of an array whose shape has three: the longer one of the last two is time.

    Raises
    ------
    DataError
        If they are equally long; ``give`` says how to give the order.

    Examples
    --------
    >>> longer_axis_is_time((50, 1, 96), "X"), longer_axis_is_time((50, 96, 2), "X")
    ('nct', 'ntc')
    """
    _, one, other = shape
    if one == other > 1:
        give = give or f'mercer.data.series.Series.from_array({name}, axes="nct"), or with "ntc"'
        raise DataError(
            f"{name} is of shape {shape}, so that it may be (n, times, channels) or, as in aeon and sktime, (n, "
            f"channels, times). Say which: {give}."
        )
    return "nct" if other > one else "ntc"


def _refuse_single_times(shapes: Sequence[tuple[int, ...]], name: str) -> None:
    """Raise if each of several series in a list has one time, and more channels: the axes are then the other way round.

    Other short series of many channels in a list are taken as they are; and so is one alone.
    """
    times, channels = (int(size) for size in np.max(shapes, axis=0)) if shapes else (0, 0)
    if times == 1 and channels > 1 and len(shapes) > 1:
        raise DataError(
            f"{name} is a list of arrays of shape {shapes[0]}: read as (times, channels), its series would have "
            f"{channels} channels and 1 time. If the channels come before the times, as in aeon and sktime, pass "
            f'mercer.data.series.Series.from_array({name}, axes="nct"); if not, axes="ntc".'
        )


def _in_order(item: Any, axes: str) -> NDArray[np.float64]:
    """One row, whose axes are given, as an array (times, channels)."""
    if np.ndim(item) != 2:
        raise DataError(
            f"axes={axes!r} takes an array in three dimensions or a list of arrays in two, and this row has "
            f"{np.ndim(item)}; series of one channel in two dimensions, (n, times), need no axes."
        )
    return _values(np.asarray(item).T if axes == "nct" else item)


def _values(item: Any) -> NDArray[np.float64]:
    """One row as an array (times, channels)."""
    requirement = "a series must be an array of numbers, (times,) or (times, channels)"
    if isinstance(item, (str, bytes)) or not (isinstance(item, Sequence) or hasattr(item, "__array__")):
        raise DataError(f"{requirement}, but is {short(item)}.")
    if np.ma.is_masked(item):
        raise DataError("a series must have a value at every time, but has masked ones; fill them in (.filled(...)).")
    try:
        array = np.asarray(item)
        if array.size and array.dtype.kind not in "fiub":
            raise DataError(f"{requirement}, but holds {short(array.ravel()[0])} ({array.dtype}).")
        values = np.array(array, np.float64, order="C")
    except ValueError as error:
        if isinstance(error, DataError):
            raise
        raise DataError(f"{requirement}, but is {short(item)}.") from error
    if values.ndim not in (1, 2):
        problem = f"has the shape {values.shape}" if values.ndim else f"is {short(values.item())}"
        raise DataError(f"{requirement}, but {problem}.")
    return values[:, None] if values.ndim == 1 else values


def _not_finite(values: NDArray[Any], finite: NDArray[Any]) -> str:
    """What to do about values that are not numbers."""
    if not np.isnan(values).any():
        return f"a series must be finite, but {int((~finite).sum())} of its {len(values)} times hold infinities."
    text = f"a series must have a value at every time, but {int((~finite).sum())} of {len(values)} are NaN."
    if np.diff(finite.astype(int)).max(initial=0) <= 0 and finite[0]:
        return f"{text} If that is padding at its end, mercer.data.series.Series.from_padded(X) cuts it off."
    return f"{text} Fill them in first, for instance by numpy.interp between the times that are there."
