"""Output files: checked before the work, written atomically after it."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from pathlib import Path

from mercer._errors import DataError, ParameterError
from mercer.cli.options import STANDARD
from mercer.engine.drafts import written_in_one_stroke


def check_output(path: Path, inputs: Iterable[str | Path] = (), option: str = "--out") -> None:
    """Raise an error if ``path`` cannot be written or is one of the input files; called before any long work.

    ``option`` is the one that names it.

    Raises
    ------
    ParameterError
        If it is ``-``.
    DataError
        If its directory does not exist or may not be written to, or if it is a directory, a device or an input.
    """
    if str(path) == STANDARD:
        raise ParameterError(
            f"{option} - stands for standard output, to which only mercer predict writes; give the name of a file."
        )
    directory = path.parent
    if not directory.is_dir():
        raise DataError(
            f"cannot write {path}: the directory {directory} does not exist; create it (mkdir -p {directory}) or "
            f"choose another {option}."
        )
    if path.is_dir():
        raise DataError(f"cannot write {path}: it is a directory; name a file in it, such as {path / 'model.mercer'}.")
    try:
        existed = path.exists()
        if existed and not path.is_file():
            raise DataError(f"cannot write {path}: it is a pipe or a device; choose another {option}.")
        if any(existed and Path(source).exists() and path.samefile(source) for source in inputs):
            raise DataError(
                f"cannot write {path}: it is a file that is read, and would be overwritten; choose another {option}."
            )
        if not os.access(directory, os.W_OK) or (existed and not os.access(path, os.W_OK)):
            raise DataError(f"cannot write {path}: permission denied; choose another {option}.")
        if not existed:
            # Only a trial detects names that are too long and file systems that cannot be written to.
            path.touch(exist_ok=False)
            path.unlink()
    except OSError as error:
        raise DataError(f"cannot write {path}: {error.strerror}; choose another {option}.") from error


def write_atomically(path: Path, write: Callable[[Path], None]) -> None:
    """Let ``write`` fill a temporary file next to ``path``, then move it into place; no partial file appears."""
    with written_in_one_stroke(path) as (_, draft):
        write(draft)
