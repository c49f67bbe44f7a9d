"""Bags: rows that are unordered collections of any number of rows of one kind."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from mercer._errors import DataError
from mercer.data.columns import MixedRows
from mercer.data.objects import Anything, Objects, _sequence, short
from mercer.data.vectors import as_vectors

Members = Any


class Bags(Objects):
    """Rows that are bags of vectors, strings, graphs or anything else, including bags.

    The kernel that compares the members determines their kind. Until a kernel reads them, arrays are taken as vectors,
    one member per row, and everything else is left unchanged.

    Parameters
    ----------
    rows : array (m, d), Objects or MixedRows
        The members of all bags, one bag after the other.
    starts : array of shape (n + 1,)
        Bag i has the members ``starts[i]`` to ``starts[i + 1]`` (exclusive), at least one.

    Examples
    --------
    >>> bags = Bags.of([[[0.0, 1.0], [2.0, 3.0]], [[4.0, 5.0]]])
    >>> bags.starts.tolist(), bags[1].tolist()
    ([0, 2, 3], [[4.0, 5.0]])
    >>> Bags.of([["a", "word"], []])
    Traceback (most recent call last):
        ...
    mercer._errors.DataError: row 1 of X: the bag is empty; a bag needs at least one member.
    """

    kind = "bags"

    def __init__(self, rows: Members, starts: Any) -> None:
        if not isinstance(rows, (Objects, MixedRows)):
            # There are no bags if none was chosen.
            if not (isinstance(rows, np.ndarray) and rows.dtype.kind == "f" and rows.ndim == 2 and len(rows) == 0):
                rows = as_vectors(rows, "the members of the bags")
            if not isinstance(rows, np.ndarray):
                raise DataError("the members of bags must be dense vectors; pass each bag's .toarray().")
            rows = rows.view()
            rows.setflags(write=False)
        starts = np.array(starts)
        ends = starts.ndim == 1 and starts.dtype.kind in "iu" and len(starts) > 0 and starts[0] == 0
        if not ends or starts[-1] != len(rows) or (np.diff(starts) < 1).any():
            raise DataError(
                f"bags must start in ascending order from 0 to {len(rows)}, but these start at {short(starts)}."
            )
        starts.setflags(write=False)
        self.rows, self.starts = rows, starts.astype(np.int64, copy=False)
        super().__init__([rows[a:b] for a, b in zip(starts[:-1].tolist(), starts[1:].tolist(), strict=True)])

    @staticmethod
    def read(item: Any) -> Any:
        if isinstance(item, (Objects, MixedRows)):
            return item
        if hasattr(item, "iloc") or hasattr(item, "tocsr"):
            raise DataError(f"a bag must be a sequence of members, but is a {type(item).__name__}; pass its rows.")
        if isinstance(item, (str, bytes, dict, set)) or not hasattr(item, "__len__") or getattr(item, "ndim", 1) == 0:
            raise DataError(f"a bag must be a sequence of members, but is {short(item)}.")
        if len(item) == 0:
            raise DataError("the bag is empty; a bag needs at least one member.")
        if np.ma.is_masked(item):
            raise DataError("the bag has masked entries; fill them in (bag.filled(...)), or leave their members out.")
        return item

    @staticmethod
    def fingerprint(item: Any) -> bytes:
        if isinstance(item, np.ndarray):
            return repr(item.shape).encode() + (item.astype(np.float64) + 0.0).tobytes()
        if isinstance(item, MixedRows):
            return b"".join(Bags.fingerprint(c[:, None] if isinstance(c, np.ndarray) else c) for c in item.columns)
        return b"".join(b"%d:" % len(print_) + print_ for print_ in item.fingerprints())

    @classmethod
    def of(cls, X: Any, name: str = "X", members: Callable[[Any], Members] | None = None) -> Self:
        """Make bags from a sequence of sequences; ``members`` turns all members into rows of one kind."""
        if isinstance(X, cls):
            return X if members is None else X.reread(members)
        bags = []
        for number, item in enumerate(_sequence(X, cls.kind, name)):
            try:
                bags.append(cls.read(item))
            except DataError as error:
                raise DataError(f"row {number} of {name}: {error}") from error
        starts = np.concatenate([[0], np.cumsum([len(bag) for bag in bags])])
        return cls(_read_members(members or _guessed, _joined(bags, name), bags, name), starts)

    def reread(self, members: Callable[[Any], Members], name: str = "X") -> Self:
        """Return the bags with their members converted by ``members``."""
        items = self.rows.items.tolist() if isinstance(self.rows, Anything) else self.rows
        rows = _read_members(members, items, self.items.tolist(), name)
        return self if rows is self.rows else type(self)(rows, self.starts)

    def positions(self, index: Any) -> NDArray[np.int64]:
        """Return the positions of the members of the bags at ``index``, one bag after the other."""
        begins, sizes = self.starts[:-1][index], np.diff(self.starts)[index]
        ends = np.cumsum(sizes)
        return np.repeat(begins - (ends - sizes), sizes) + np.arange(ends[-1] if len(ends) else 0)

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, (int, np.integer)):
            return self.items[index]
        sizes = np.diff(self.starts)[index]
        return type(self)(self.rows[self.positions(index)], np.concatenate([[0], np.cumsum(sizes)]))

    def __iter__(self) -> Iterator[Any]:
        return iter(self.items)

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.rows, self.starts)

    def joined(self, more: Self) -> Self:
        """Return these bags followed by ``more``."""
        rows = _two(self.rows, more.rows)
        return type(self)(rows, np.concatenate([self.starts, more.starts[1:] + self.starts[-1]]))


def member_vectors(members: Any) -> np.ndarray:
    """Return the members of bags as vectors, (members, d).

    Raises
    ------
    DataError
        If they are not vectors. The message is about the last member: callers find the bad one by reading one at a
        time.

    Examples
    --------
    >>> member_vectors([[1.0, 2.0], [3.0]])
    Traceback (most recent call last):
        ...
    mercer._errors.DataError: the vector has length 1, but the first member has length 2.
    """
    try:
        rows = as_vectors(members, "the table of members")
    except DataError as error:
        raise DataError(_not_vectors(members, error)) from error
    return rows if isinstance(rows, np.ndarray) else rows.toarray()


def _not_vectors(members: Any, error: DataError) -> str:
    last = members[-1]
    try:
        vector = np.asarray(last)
    except ValueError:
        vector = np.empty(0, object)
    if vector.dtype.kind in "cmM":
        return str(error)
    if vector.dtype.kind not in "fiub" or vector.ndim != 1:
        if vector.dtype.kind in "fiub" and vector.ndim == 0:
            return f"a member must be a vector of numbers, but is {vector}; write a bag of numbers as [[1.0], [2.0]]."
        return f"a member must be a vector of numbers, but is {short(last)}."
    bad = np.flatnonzero(~np.isfinite(vector))
    if bad.size:
        return f"the vector holds {vector[bad[0]]} at position {bad[0]}; leave the member out, or fill it in."
    if not vector.size:
        return "the vector is empty; it needs at least one number."
    if np.shape(members[0]) != vector.shape:
        return f"the vector has length {len(vector)}, but the first member has length {np.size(members[0])}."
    return str(error)


def _read_members(members: Callable[[Any], Members], joined: Any, bags: list[Any], name: str) -> Members:
    """What ``members`` makes of the members of all bags; what it cannot read is named by its bag."""

    def read(some: Any) -> Members:
        rows = members(some)
        return rows if isinstance(rows, (Objects, MixedRows)) else member_vectors(rows)

    try:
        return read(joined)
    except DataError as error:
        fault = None if isinstance(bags[0], MixedRows) else _misread(read, bags)
        if fault is None:
            raise DataError(f"the members of the bags of {name}, counted from the first: {error}") from error
        row, position, cause = fault
        # The member was read alone, so the row in its message means nothing.
        why = re.sub(r"^row [0-9]+ of X(: |, )", "", str(cause))
        raise DataError(f"row {row} of {name}, member {position}: {why}") from cause


def _misread(read: Callable[[Any], Members], bags: list[Any]) -> tuple[int, int, DataError] | None:
    """The first member that cannot be read alone or beside the first one: its bag, its place there, and why."""
    first = [next(iter(bags[0]))]
    for row, bag in enumerate(bags):
        if _fault(read, [*first, *bag]) is None:
            continue
        for position, member in enumerate(bag):
            error = _fault(read, [member]) or _fault(read, [*first, member])
            if error is not None:
                return row, position, error
    return None


def _fault(read: Callable[[Any], Members], some: list[Any]) -> DataError | None:
    try:
        read(some)
    except DataError as error:
        return error
    return None


def _two(rows: Members, more: Members) -> Members:
    return np.concatenate([rows, more]) if isinstance(rows, np.ndarray) else rows.joined(more)


def _joined(bags: list[Any], name: str) -> Any:
    """The members of all bags: as one array where all bags are arrays, as one container, or in a list."""
    arrays = all(isinstance(bag, np.ndarray) and bag.ndim == 2 for bag in bags)
    # Joined to others, whole numbers would become text, and True a number.
    kinds = {bag.dtype.kind for bag in bags} if arrays else {"O"}
    if "O" not in kinds and (len(kinds) == 1 or kinds <= set("fiu")):
        widths = [bag.shape[1] for bag in bags]
        odd = next((row for row, width in enumerate(widths) if width != widths[0]), None)
        if odd is not None:
            raise DataError(
                f"row {odd} of {name}: its vectors have length {widths[odd]}, but those of row 0 have length "
                f"{widths[0]}."
            )
        return np.concatenate(bags)
    if all(isinstance(bag, (Objects, MixedRows)) and type(bag) is type(bags[0]) for bag in bags):
        rows = bags[0]
        for bag in bags[1:]:
            rows = rows.joined(bag)
        return rows
    return [member for bag in bags for member in bag]


def _guessed(members: Any) -> Members:
    """Vectors where the members are rows of numbers of one length; else anything."""
    if not isinstance(members, list):
        return members
    if all(isinstance(member, (list, tuple, np.ndarray)) for member in members):
        try:
            array = np.asarray(members)
        except ValueError:
            return Anything.of(members)
        if array.ndim == 2 and array.dtype.kind in "fiub":
            return array
    return Anything.of(members)
