"""Text files: how they are packed and encoded, and how much of one may be in memory at a time."""

from __future__ import annotations

import codecs
import csv
import gzip
import io
import re
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from mercer._errors import DataError, ParameterError
from mercer.data.words import listing
from mercer.engine import memory

DAMAGE = (gzip.BadGzipFile, EOFError, zipfile.BadZipFile, zlib.error)
_PACKED = (".gz", ".zip")
# Bytes of memory for each byte of text: four for text, two for numbers of many digits, ten for columns of one digit.
_COPIES = 4
Keep = Literal["line", "part", "whole"]
_KEPT: dict[Keep, str] = {"line": "a line of ", "part": "some rows of ", "whole": ""}
# Characters that are searched at once.
_CHUNK = 1 << 20


@dataclass(frozen=True)
class TextFile:
    """A text file, which may be packed: ``.gz``, or a ``.zip`` archive with this file alone.

    Parameters
    ----------
    path : pathlib.Path
    encoding : str, optional
        A name that Python knows. Default: UTF-8, or UTF-16 if the file begins with its byte order mark.

    Raises
    ------
    ParameterError
        If there is no such encoding.
    """

    path: Path
    encoding: str | None = None

    def __post_init__(self) -> None:
        try:
            "".encode("utf-8" if self.encoding is None else self.encoding)
        except (LookupError, ValueError) as error:
            raise ParameterError(
                f"there is no encoding of text {self.encoding!r}; examples are cp1252 (Windows, Western Europe), "
                "utf-16 and shift_jis."
            ) from error

    def __str__(self) -> str:
        return str(self.path)

    @property
    def name(self) -> str:
        """The name without the folder."""
        return self.path.name

    def open(self, keep: Keep = "line", *, newline: str | None = "", errors: str = "strict") -> Lines:
        """Open the file, of which so much will be in memory: a line, what follows ``begin_part``, or the whole.

        Raises
        ------
        MemoryBudgetError
            On reading, before more of the text is in memory than the budget allows.
        """
        file = _unpacked(self.path)
        start = file.peek(2)[:2]
        # Bytes that are text in any encoding but UTF-16 only if they are strange.
        encoding = "utf-16" if start in (b"\xff\xfe", b"\xfe\xff") else "utf-8-sig"
        if self.encoding is not None and codecs.lookup(self.encoding).name != "utf-8":
            encoding = self.encoding
        return Lines(_Metered(file, self.path, keep), encoding=encoding, newline=newline, errors=errors)


class Lines(io.TextIOWrapper):
    """The text of a file, whose bytes in memory are counted."""

    def begin_part(self) -> None:
        """Count anew: what was read so far is not needed any more."""
        self.buffer.seen = 0  # type: ignore[attr-defined]


class _Metered(io.BufferedIOBase):
    """Bytes of a file, and how many of them are in memory."""

    def __init__(self, file: Any, path: Path, keep: Keep) -> None:
        self._file, self._path, self._keep = file, path, keep
        self._most = memory.budget() // _COPIES
        self.seen = 0

    @property
    def name(self) -> str:
        """That of the file, as other files have one."""
        return str(self._path)

    def readable(self) -> bool:
        return True

    def read(self, size: int | None = -1, /) -> bytes:
        if size is not None and size >= 0:
            return self.read1(size)
        return b"".join(iter(lambda: self.read1(_CHUNK), b""))

    def read1(self, size: int = -1, /) -> bytes:
        data: bytes = self._file.read1(size)
        last = max(data.rfind(b"\n"), data.rfind(b"\r")) if self._keep == "line" else -1
        self.seen = len(data) + (self.seen if last < 0 else -1 - last)
        if self.seen > self._most:
            self._require_room()
            self._most = memory.budget() // _COPIES
        return data

    def _require_room(self) -> None:
        """Raise unless so much text fits the budget, or all of it if its size is known."""
        known = self._keep == "whole" and self._path.suffix.lower() not in _PACKED
        size = max(self.seen, self._path.stat().st_size if known else 0)
        memory.require(
            _COPIES * size,
            f"reading {_KEPT[self._keep]}{self._path} ({'' if known else 'more than '}{memory.describe(size)} of text)",
        )

    def close(self) -> None:
        self._file.close()
        super().close()


def _unpacked(path: Path) -> Any:
    """The bytes of a file, or of the one that it packs."""
    suffix = path.suffix.lower()
    if suffix == ".gz":
        return gzip.open(path)
    if suffix != ".zip":
        return path.open("rb")
    with zipfile.ZipFile(path) as archive:
        try:
            return archive.open(_member(path, archive))
        except (RuntimeError, NotImplementedError) as error:
            # Encrypted, or packed in a way that Python does not know.
            raise DataError(f"{path} cannot be unpacked: {error}. Unpack it, and name the table.") from error


def _member(path: Path, archive: zipfile.ZipFile) -> str:
    """The only file in an archive; what macOS adds does not count."""
    names = [
        name
        for name in archive.namelist()
        if not name.endswith("/") and not name.startswith("__MACOSX/") and not Path(name).name.startswith(".")
    ]
    if len(names) != 1:
        inside = f"{len(names)} files ({listing(names, 4)})" if names else "no file"
        raise DataError(f"{path} holds {inside}, but an archive is read if it holds one table; unpack it, and name it.")
    return names[0]


def suffix_of(path: Path, *, inside: bool = True) -> str:
    """The suffix that tells the format, in lower case; that of a packed file is the one before ``.gz`` or ``.zip``.

    A ``.zip`` archive without such a suffix is looked into, unless ``inside`` is False.

    Raises
    ------
    DataError
        If the archive is damaged, or does not hold one file.

    Examples
    --------
    >>> suffix_of(Path("a.CSV.gz")), suffix_of(Path("b.txt")), suffix_of(Path("c"))
    ('.csv', '.txt', '')
    """
    *others, last = [suffix.lower() for suffix in path.suffixes] or [""]
    if last not in _PACKED:
        return last
    if last == ".zip" and inside:
        try:
            with zipfile.ZipFile(path) as archive:
                return Path(_member(path, archive)).suffix.lower()
        except DAMAGE as error:
            raise DataError(damaged(path, error)) from error
    return others[-1] if others else last


def damaged(path: Path, error: Exception) -> str:
    """The message for a compressed file that cannot be read."""
    # Old versions of Python quote what they found instead of a header.
    text = str(error)
    return f"{path}: the file is damaged or was cut short: {text if len(text) <= 200 else text[:200] + '...'}."


def wrong_encoding(file: TextFile) -> str:
    """The message for a file that is not text in its encoding, with the place of the first strange byte."""
    encoding = file.encoding or "UTF-8"
    advice = 'Name its encoding, as in Blocks.from_csv(..., encoding="cp1252") for Western Europe, or save it as UTF-8.'
    try:
        with _unpacked(file.path) as raw:
            if raw.peek(2)[:2] in (b"\x1f\x8b", b"PK"):
                return (
                    f"{file} is a compressed file or a workbook, not text; save it as CSV, or name it .csv.gz if it is."
                )
        with file.open(errors="surrogateescape", newline=None) as lines:
            line, column = 1, 1
            while chunk := lines.read(_CHUNK):
                # What stands for a byte that could not be decoded.
                strange = re.search("[\udc80-\udcff]", chunk)
                before = chunk[: strange.start()] if strange else chunk
                line += before.count("\n")
                column = len(before) - before.rfind("\n") + (column - 1 if "\n" not in before else 0)
                if strange:
                    byte = ord(strange[0]) - 0xDC00
                    return (
                        f"{file}, line {line}, column {column}: the byte 0x{byte:02x} is not {encoding} text. {advice}"
                    )
                lines.begin_part()
    except DAMAGE as error:
        return damaged(file.path, error)
    except UnicodeError:
        # Encodings of more than a byte for each letter do not let such bytes pass.
        encoding = file.encoding or "UTF-16"
    return f"{file} is not {encoding} text. {advice}"


@contextmanager
def named_faults(file: TextFile) -> Iterator[None]:
    """Name the file, and the place if it is known, in errors of decompression and of text in another encoding.

    Raises
    ------
    DataError
        In place of those errors in the block.
    """
    try:
        yield
    except DAMAGE as error:
        raise DataError(damaged(file.path, error)) from error
    except UnicodeError as error:
        raise DataError(wrong_encoding(file)) from error
    except csv.Error as error:
        raise DataError(f"{file} cannot be read as separated values: {error}.") from error
