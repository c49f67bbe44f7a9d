"""A table on standard input, as a file that can be read more than once."""

from __future__ import annotations

import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from mercer._errors import DataError
from mercer.cli.options import STANDARD

NAME = "standard input"
"""What messages call it."""


@contextmanager
def as_file(data: str) -> Iterator[str]:
    """Give the name of a file with the data: the name itself, or for ``-`` a copy of standard input, as CSV.

    Raises
    ------
    DataError
        If nothing is on standard input; errors within the block name it as such.
    """
    if data != STANDARD:
        yield data
        return
    # Closed by the caller, as in `mercer predict ... - <&-`.
    if sys.stdin is None:
        raise DataError(f"{NAME} is closed; write CSV with a header line to it, or name a file.")
    with tempfile.TemporaryDirectory(prefix="mercer-") as folder:
        copy = Path(folder) / f"{NAME}.csv"
        with copy.open("wb") as file:
            shutil.copyfileobj(sys.stdin.buffer, file)
        if not copy.stat().st_size:
            raise DataError(f"{NAME} is empty; write CSV with a header line to it")
        try:
            yield str(copy)
        except DataError as error:
            raise type(error)(str(error).replace(str(copy), NAME).replace(copy.name, NAME)) from error
