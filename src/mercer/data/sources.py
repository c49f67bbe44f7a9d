"""Sources of tables: whether a file or a sample exists, checked before anything is loaded."""

from __future__ import annotations

from pathlib import Path

from mercer._errors import DataError
from mercer.data.samples import find_sample
from mercer.data.words import listing

SAMPLE = "sample:"
"""What the name of a sample data set begins with where a file could stand."""


_STANDARD = "-"


def check_source(source: str | Path) -> None:
    """Raise unless there is such a sample, or a file or folder that can be read more than once.

    Raises
    ------
    DataError
        With what there is instead.
    """
    if str(source).startswith(SAMPLE):
        find_sample(str(source).removeprefix(SAMPLE))
        return
    path = Path(source)
    if str(source) == _STANDARD and not path.exists():
        raise DataError(
            "- stands for standard input, which mercer predict and mercer evaluate alone can read; save it to a file."
        )
    if path.is_dir():
        return
    if not path.exists():
        siblings = sorted(p.name for p in path.parent.iterdir() if p.is_file()) if path.parent.is_dir() else []
        matches = [name for name in siblings if name.lower().startswith(path.stem.lower()[:4])]
        offer = f" {path.parent} holds {listing(matches, 5)}." if matches else ""
        raise DataError(
            f"{path} does not exist.{offer} Sample data sets are named sample:NAME; mercer samples lists them."
        )
    if not path.is_file():
        raise DataError(f"{path} is a pipe or a device, but files are read more than once; save it to a file first.")
    if path.stat().st_size == 0:
        raise DataError(f"{path} is empty (0 bytes).")
