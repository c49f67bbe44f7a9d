"""Containers of rows that are not vectors, such as strings, trees and series, with the indexing of an array."""

from __future__ import annotations

import abc
import hashlib
import pickle
import reprlib
import threading
from collections.abc import Callable, Hashable, Iterable, Iterator
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from mercer._errors import DataError


class Objects(abc.ABC):
    """Rows of one kind, each read once into an immutable form.

    A subclass is a kind of data: its method :meth:`read` defines what a row may be. Containers are values: they compare
    by their contents and are indexed by slices, positions and masks, like an array.

    Parameters
    ----------
    items : sequence
        Rows in the form that :meth:`read` returns; use :meth:`of` for any other rows.
    """

    kind: ClassVar[str]
    """What the rows are called in messages, such as ``"strings"``."""
    rows_as: ClassVar[str] = ""
    """What the rows of an array of numbers stand for, where they are of this kind; such as ``"a series"``."""
    ndim = 1
    dtype = np.dtype(np.float64)
    """That of kernel values between the rows."""

    def __init__(self, items: Any) -> None:
        self.items = _object_array(items)
        self.items.setflags(write=False)
        self._cache: dict[Hashable, Any] = {}
        self._lock = threading.RLock()

    @staticmethod
    @abc.abstractmethod
    def read(item: Any) -> Any:
        """Return one row in its final form.

        Parameters
        ----------
        item : object
            The row as given.

        Returns
        -------
        object

        Raises
        ------
        DataError
            If the row is not of this kind; :meth:`of` adds the number of the row to the message.
        """

    @staticmethod
    @abc.abstractmethod
    def fingerprint(item: Any) -> bytes:
        """Return bytes that are the same for equal rows and different for all others.

        Parameters
        ----------
        item : object
            A row in its final form.

        Returns
        -------
        bytes
        """

    @classmethod
    def of(cls, X: Any, name: str = "X") -> Self:
        """Make a container from anything that holds one object per row.

        Parameters
        ----------
        X : sequence
            A list, an array, or a column of a table.
        name : str, default="X"
            Its name in error messages.

        Returns
        -------
        Objects

        Raises
        ------
        DataError
            If ``X`` is empty or not a sequence of rows, or a row is not of this kind; the message gives its number.
        """
        if isinstance(X, cls):
            return X
        return cls.collect(cls.read_each(_sequence(X, cls.kind, name, cls.rows_as), name), name)

    @classmethod
    def read_each(cls, items: Iterable[Any], name: str = "X", read: Callable[[Any], Any] | None = None) -> list[Any]:
        """Return the rows in their final form; errors name the row.

        Parameters
        ----------
        items : iterable
            Rows as given.
        name : str, default="X"
            Their name in error messages.
        read : callable, optional
            Used in place of :meth:`read`.

        Returns
        -------
        list
        """
        rows = []
        for number, item in enumerate(items):
            try:
                rows.append((read or cls.read)(item))
            except DataError as error:
                raise DataError(f"row {number} of {name}: {error}") from error
        return rows

    @classmethod
    def collect(cls, items: list[Any], name: str = "X") -> Self:
        """Make the container of rows that :meth:`read` returned.

        Parameters
        ----------
        items : list
            The rows.
        name : str, default="X"
            Their name in error messages.

        Returns
        -------
        Objects

        Raises
        ------
        DataError
            If the rows are not compatible with each other.
        """
        return cls(items)

    @property
    def shape(self) -> tuple[int]:
        """``(n,)``."""
        return self.items.shape

    def __len__(self) -> int:
        return len(self.items)

    def __iter__(self) -> Iterator[Any]:
        return iter(self.items)

    def __getitem__(self, index: Any) -> Any:
        """The item at a position; for a slice, positions or a mask the rows there."""
        if isinstance(index, (int, np.integer)):
            return self.items[index]
        part = type(self)(self.items[index])
        known = self._cache.get("keys")
        if known is not None:
            part._cache["keys"] = known[index]
        return part

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Objects):
            return NotImplemented
        return type(self) is type(other) and self.fingerprints() == other.fingerprints()

    def __hash__(self) -> int:
        return hash((type(self), tuple(self.keys().tolist())))

    def __repr__(self) -> str:
        return repr(self.items.tolist())

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.items,)

    def copy(self) -> Self:
        """Return these rows themselves, since they are immutable."""
        return self

    def astype(self, dtype: Any, copy: bool = True) -> Self:
        """Return these rows themselves: their kernel values are always in float64.

        Parameters
        ----------
        dtype, copy : ignored

        Returns
        -------
        Objects
        """
        return self

    def keep(self, key: Hashable, make: Callable[[], Any]) -> Any:
        """Return the object stored under a key, such as a packed form of the rows.

        Parameters
        ----------
        key : hashable
        make : callable
            Called without arguments the first time to create it.

        Returns
        -------
        object
        """
        with self._lock:
            if key not in self._cache:
                self._cache[key] = make()
            return self._cache[key]

    def fingerprints(self) -> tuple[bytes, ...]:
        """The fingerprints of all rows."""
        fingerprints: tuple[bytes, ...] = self.keep(
            "fingerprints", lambda: tuple(self.fingerprint(item) for item in self)
        )
        return fingerprints

    def keys(self) -> NDArray[np.uint64]:
        """Return a number for each row, (n,); equal rows have the same number in every process."""
        keys: NDArray[np.uint64] = self.keep("keys", self._keys)
        return keys

    def _keys(self) -> NDArray[np.uint64]:
        digests = b"".join(hashlib.blake2b(f, digest_size=8).digest() for f in self.fingerprints())
        keys = np.frombuffer(digests, np.dtype("<u8")).astype(np.uint64)
        keys.setflags(write=False)
        return keys

    def same(self, other: Objects) -> NDArray[np.bool_]:
        """Whether each row equals the row of another container at the same position.

        Parameters
        ----------
        other : Objects
            A container of the same length.

        Returns
        -------
        ndarray of bool of shape (n,)
        """
        same = self.keys() == other.keys()
        # Different rows seldom have equal keys, and parts of these rows know their keys but not their fingerprints.
        for i in np.flatnonzero(same):
            a, b = self[i], other[i]
            same[i] = a is b or self.fingerprint(a) == self.fingerprint(b)
        return same

    def joined(self, more: Self) -> Self:
        """Return these rows followed by others.

        Parameters
        ----------
        more : Objects
            A container of the same class.

        Returns
        -------
        Objects
        """
        return type(self)([*self.items, *more.items])


class Anything(Objects):
    """Rows that only a user-defined function can compare; they are not checked.

    >>> Anything.of(["a", ("b", 2)]).shape
    (2,)
    """

    kind = "objects"

    @staticmethod
    def read(item: Any) -> Any:
        return item

    @staticmethod
    def fingerprint(item: Any) -> bytes:
        # Equal objects may have other bytes, in which case they count as different rows; never the other way round.
        try:
            return pickle.dumps(item, protocol=4)
        except (pickle.PicklingError, TypeError, AttributeError):
            return b"object at %d" % id(item)


def _object_array(items: Any) -> np.ndarray:
    """One object an entry, also where the objects are arrays or tuples of one length."""
    if isinstance(items, np.ndarray) and items.dtype == object and items.ndim == 1:
        return items.view()
    array = np.empty(len(items), object)
    for number, item in enumerate(items):
        array[number] = item
    return array


def _sequence(X: Any, kind: str, name: str, rows_as: str = "") -> Any:
    """``X`` as a sequence of rows."""
    if hasattr(X, "iloc"):
        # A column of a table, or a table of one column.
        if X.ndim == 2 and X.shape[1] != 1:
            raise DataError(
                f"{name} has {X.shape[1]} columns, but a kernel on {kind} takes one object per row; choose a column "
                f"with kernel.on([...]){_as_rows(X, rows_as)}."
            )
        X = X.to_numpy().ravel()
    elif isinstance(X, np.ndarray) and X.dtype.kind in "OUST" and X.ndim == 2 and X.shape[1] == 1:
        X = X.ravel()
    scalar = not hasattr(X, "__len__") or hasattr(X, "tocsr") or getattr(X, "shape", None) == ()
    if scalar or isinstance(X, (str, bytes, dict, set, frozenset)):
        raise DataError(f"{name} must be a sequence of {kind}, one per row, but is {short(X)}; pass a list of {kind}.")
    if len(X) == 0:
        raise DataError(f"{name} is empty: it has no rows.")
    return X if isinstance(X, (list, tuple, np.ndarray)) else list(X)


def _as_rows(table: Any, rows_as: str) -> str:
    """What to do with a table of numbers whose rows are the objects."""
    if not rows_as or any(getattr(dtype, "kind", "O") not in "fiub" for dtype in table.dtypes):
        return ""
    return f", or, if each row is {rows_as}, pass X.to_numpy()"


def short(value: Any) -> str:
    """Return a value as part of a message, in one line; numbers of NumPy as those of Python.

    >>> short(np.float64(1.0)), short([np.int64(3), "a"])
    ('1.0', "[3, 'a']")
    """
    try:
        text = " ".join(line.strip() for line in repr(_of_python(value)).splitlines())
    except RecursionError:
        text = reprlib.repr(value)
    except ValueError:
        # Python does not print whole numbers of more than some thousands of digits.
        text = f"a value of type {type(value).__name__} that cannot be printed"
    return text if len(text) <= 60 else f"{text[:57]}..."


def _of_python(value: Any) -> Any:
    if isinstance(value, np.generic):
        return value.item()
    if type(value) in (list, tuple):
        return type(value)(map(_of_python, value))
    return {_of_python(key): _of_python(entry) for key, entry in value.items()} if type(value) is dict else value
