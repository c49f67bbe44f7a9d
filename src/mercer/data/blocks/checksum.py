"""Checksums of blocks: every pass over them must find the rows of the first one."""

from __future__ import annotations

import hashlib
from typing import NamedTuple

from mercer._errors import DataError
from mercer.data.blocks.block import Block, byte_streams


class Checksum:
    """A running checksum of rows; how they are cut into blocks does not matter.

    SHA-256, which processors have instructions for: about 1.5 GB a second.

    >>> import numpy as np
    >>> whole, parts = Checksum(), Checksum()
    >>> whole.add(Block(np.eye(2)))
    >>> parts.add(Block(np.eye(2)[:1])), parts.add(Block(np.eye(2)[1:]))
    (None, None)
    >>> whole.digest() == parts.digest()
    True
    """

    def __init__(self) -> None:
        self._streams: dict[str, hashlib._Hash] = {}

    def add(self, block: Block) -> None:
        """Add the rows of a block."""
        for name, content in byte_streams(block):
            self._streams.setdefault(name, hashlib.sha256(usedforsecurity=False)).update(content)

    def digest(self) -> bytes:
        """The checksum of all rows so far."""
        parts = (name.encode() + stream.digest() for name, stream in sorted(self._streams.items()))
        return hashlib.sha256(b"".join(parts), usedforsecurity=False).digest()


class Mark(NamedTuple):
    """What is known of a block: its rows, and the checksum of all rows up to its end."""

    rows: int
    digest: bytes


class Ledger:
    """The marks of the blocks of the first pass, to which later passes are compared.

    Passes may run at the same time: whichever reads a block first enters its mark. ``counts`` gets the number of rows
    as ``"n"``; the forms of the same rows share it.
    """

    def __init__(self, advice: str, counts: dict[str, int]) -> None:
        self._advice = advice
        self._counts = counts
        self._marks: dict[int, Mark] = {}
        self._end: dict[str, Mark] = {}

    @property
    def end(self) -> Mark | None:
        """All rows and their checksum, once a pass has come to its end."""
        return self._end.get("end")

    def enter(self, number: int, first: int, mark: Mark, files: tuple[str, ...]) -> None:
        """Compare a block, whose first row is ``first``, to the same one of an earlier pass.

        Raises
        ------
        DataError
            If it has changed.
        """
        place = f"block {number} (rows {first + 1:,} to {first + mark.rows:,}, from {_several(files)})"
        if self.end is not None and first >= self.end.rows:
            raise DataError(f"{place} was not there before: an earlier pass had {self.end.rows:,} rows. {self._advice}")
        known = self._marks.setdefault(number, mark)
        if known != mark:
            counts = "" if known.rows == mark.rows else f": it has {mark.rows:,} rows, and had {known.rows:,}"
            raise DataError(f"{place} has changed since it was first read{counts}. {self._advice}")

    def close(self, end: Mark) -> None:
        """Compare the number of all rows at the end of a pass to that of an earlier one.

        Raises
        ------
        DataError
            If they differ.
        """
        known = self._counts.setdefault("n", end.rows)
        if known != end.rows:
            raise DataError(f"this pass ended after {end.rows:,} rows, an earlier one after {known:,}. {self._advice}")
        self._end.setdefault("end", end)


def _several(files: tuple[str, ...]) -> str:
    more = f" and {len(files) - 3} more" if len(files) > 3 else ""
    return ", ".join(files[:3]) + more


def fingerprint_of(end: Mark, d: int, dtype: str, columns: tuple[str, ...] | None, target_dtype: object) -> str:
    """Return the fingerprint of rows with this checksum and layout, 64 hexadecimal digits."""
    text = repr((end.rows, d, dtype, columns, str(target_dtype)))
    return hashlib.sha256(text.encode() + end.digest, usedforsecurity=False).hexdigest()
