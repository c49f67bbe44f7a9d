"""Recognise a model file by its first bytes, without reading the rest or loading other modules."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from mercer._errors import ModelFileError

PREFIX = b'{"__metadata__":{"format":"mercer-model","sha256":"'
"""The bytes after the eight with the length of the header."""


@contextmanager
def opened(path: Path) -> Iterator[BinaryIO]:
    """Open the file for reading.

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
    """Raise unless these bytes are the beginning of a model file.

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
    """Raise unless the file exists and begins like a model file; the rest is not read.

    Raises
    ------
    ModelFileError
        The message says what is wrong with the file.
    """
    try:
        with opened(path) as file:
            check_lead(file.read(8 + len(PREFIX)))
    except ModelFileError as error:
        raise ModelFileError(f"{path}: {error}") from error
