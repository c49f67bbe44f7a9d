"""How a model file begins, which tells one from any other file without reading the rest; needs nothing."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from mercer._errors import ModelFileError

PREFIX = b'{"__metadata__":{"format":"mercer-model","sha256":"'
"""What follows the eight bytes with the length of the header."""


@contextmanager
def opened(path: Path) -> Iterator[BinaryIO]:
    """The file, open for reading.

    Raises
    ------
    ModelFileError
        If the path does not exist, is not a file, or cannot be read.
    """
    try:
        if not stat.S_ISREG(os.stat(path).st_mode):
            raise ModelFileError("this is a directory or a device, not a file; pass the name of a model file.")
        with open(path, "rb") as file:
            yield file
    except FileNotFoundError as error:
        raise ModelFileError("there is no such file; check the name and the directory.") from error
    except OSError as error:
        raise ModelFileError(f"it cannot be read: {error.strerror or error}. Check its permissions.") from error


def check_lead(lead: bytes) -> None:
    """Raise unless these first bytes are those of a model file, as far as they go.

    Raises
    ------
    ModelFileError
        If they are not.
    """
    if not lead or lead[8 : 8 + len(PREFIX)] != PREFIX[: max(0, len(lead) - 8)]:
        raise ModelFileError(
            "this is not a model file: its first bytes are wrong. Pass a file that save() has written."
        )


def check_begins(path: Path) -> None:
    """Raise if there is no file, or one that does not begin as a model file; the rest is not read.

    Raises
    ------
    ModelFileError
        With what there is instead.
    """
    try:
        with opened(path) as file:
            check_lead(file.read(8 + len(PREFIX)))
    except ModelFileError as error:
        raise ModelFileError(f"{path}: {error}") from error
