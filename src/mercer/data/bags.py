"""Bags: rows that are collections of rows of one kind, in no order and of any number."""

from __future__ import annotations

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
    """Rows that are bags of vectors, strings, graphs or of anything else, such as bags.

    What the members are is up to the kernel that compares them. Until one has read them, arrays are read as vectors, a
    member a row, and everything else stays as it is.

    Parameters
    ----------
    rows : array (m, d), Objects or MixedRows
        The members of all bags, one bag after the other.
    starts : array of shape (n + 1,)
        Bag i has the members from ``starts[i]`` to ``starts[i + 1]``, at least one.

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
            rows = as_vectors(rows, "the members of the bags")
            if not isinstance(rows, np.ndarray):
                raise DataError("the members of bags must be dense vectors; pass each bag's .toarray().")
            rows = rows.view()
            rows.setflags(write=False)
        starts = np.array(starts)
        ends = starts.ndim == 1 and starts.dtype.kind in "iu" and len(starts) > 0 and starts[0] == 0
        if not ends or starts[-1] != len(rows) or (np.diff(starts) < 1).any():
            raise DataError(f"bags begin in ascending order from 0 to {len(rows)}, and these at {short(starts)}.")
        starts.setflags(write=False)
        self.rows, self.starts = rows, starts.astype(np.int64, copy=False)
        super().__init__([rows[a:b] for a, b in zip(starts[:-1].tolist(), starts[1:].tolist(), strict=True)])

    @staticmethod
    def read(item: Any) -> Any:
        if isinstance(item, (Objects, MixedRows)):
            return item
        if hasattr(item, "iloc") or hasattr(item, "tocsr"):
            raise DataError(f"a bag must be a sequence of members, and is a {type(item).__name__}; pass its rows.")
        if isinstance(item, (str, bytes, dict, set)) or not hasattr(item, "__len__") or getattr(item, "ndim", 1) == 0:
            raise DataError(f"a bag must be a sequence of members, and is {short(item)}.")
        if len(item) == 0:
            raise DataError("the bag is empty; a bag needs at least one member.")
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
        """The bags of a sequence of sequences; ``members`` turns all that are in them into rows of one kind."""
        if isinstance(X, cls):
            return X if members is None else X.reread(members)
        bags = []
        for number, item in enumerate(_sequence(X, cls.kind, name)):
            try:
                bags.append(cls.read(item))
            except DataError as error:
                raise DataError(f"row {number} of {name}: {error}") from error
        starts = np.concatenate([[0], np.cumsum([len(bag) for bag in bags])])
        try:
            rows = (members or _guessed)(_joined(bags, name))
        except DataError as error:
            raise DataError(f"the members of the bags of {name}, counted from the first: {error}") from error
        return cls(rows, starts)

    def reread(self, members: Callable[[Any], Members]) -> Self:
        """The bags with their members as what ``members`` makes of them."""
        rows = members(self.rows.items.tolist() if isinstance(self.rows, Anything) else self.rows)
        return self if rows is self.rows else type(self)(rows, self.starts)

    def positions(self, index: Any) -> NDArray[np.int64]:
        """The members of the bags at ``index``, one bag after the other."""
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
        """These bags, and then ``more``."""
        rows = _two(self.rows, more.rows)
        return type(self)(rows, np.concatenate([self.starts, more.starts[1:] + self.starts[-1]]))


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
                f"row {odd} of {name}: its vectors are of length {widths[odd]}, and those of row 0 of {widths[0]}."
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
