"""The files of a source: found by path, pattern or folder, and compared to what they were."""

from __future__ import annotations

import glob
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mercer._errors import DataError, ParameterError
from mercer.data.text_files import suffix_of
from mercer.data.words import listing


@dataclass(frozen=True)
class Files:
    """Files with their sizes in bytes and the times at which they last changed, in nanoseconds."""

    paths: tuple[Path, ...]
    sizes: tuple[int, ...]
    times: tuple[int, ...]

    @classmethod
    def of(cls, paths: Sequence[Path]) -> Files:
        """The files as they are now."""
        states = [path.stat() for path in paths]
        sizes, times = (tuple(getattr(state, name) for state in states) for name in ("st_size", "st_mtime_ns"))
        return cls(tuple(paths), sizes, times)

    def check(self) -> None:
        """Raise if a file is gone or has changed.

        Raises
        ------
        DataError
            With the name of the file.
        """
        for path, size, time in zip(self.paths, self.sizes, self.times, strict=True):
            try:
                state = path.stat()
            except OSError as error:
                raise DataError(f"{path} cannot be read any more: {error.strerror}.") from error
            if (state.st_size, state.st_mtime_ns) != (size, time):
                size_note = f" ({size:,} bytes, now {state.st_size:,})" if state.st_size != size else ""
                raise DataError(f"{path} has changed since these Blocks were made{size_note}; make new Blocks of it.")

    def __str__(self) -> str:
        first = str(self.paths[0])
        return first if len(self.paths) == 1 else f"{first} and {len(self.paths) - 1} more"


def find_files(source: Any, suffixes: Iterable[str]) -> list[Path]:
    """Return the files that a path, a pattern such as ``"parts/*.csv"``, a folder or a list of these names.

    Files of a pattern or a folder are in alphabetical order, others as given. In folders, files with other suffixes
    and those whose names begin with ``_`` or ``.`` are left out.

    Raises
    ------
    DataError
        If there is no such file, or one is named twice.
    """
    sources = [source] if isinstance(source, (str, Path)) else list(source)
    paths = [path for one in sources for path in _files_of(one, tuple(suffixes))]
    twice = [path for path in dict.fromkeys(paths) if paths.count(path) > 1] if len(set(paths)) < len(paths) else []
    if twice:
        raise DataError(f"{twice[0]} is named twice, and its rows would count twice; name it once.")
    if not paths:
        raise DataError("the list of files is empty; name at least one.")
    return paths


def _files_of(source: Any, suffixes: tuple[str, ...]) -> list[Path]:
    if not isinstance(source, (str, Path)):
        raise ParameterError(f"a file must be named by a str or a Path, but one is {str(source)[:80]!r}.")
    path = Path(source)
    try:
        path.exists()
    except OSError as error:
        raise DataError(f"{path} cannot be a file: {error.strerror}.") from error
    if path.is_dir():
        inside = sorted(
            file for file in path.rglob("*") if suffix_of(file, inside=False) in suffixes and _is_visible(file, path)
        )
        if not inside:
            raise DataError(f"the folder {path} has no files with the suffix {' or '.join(suffixes)}.")
        return inside
    if not path.exists() and glob.has_magic(str(source)):
        matches = sorted(Path(match) for match in glob.glob(str(source), recursive=True) if Path(match).is_file())
        if not matches:
            raise DataError(f"no file matches {str(source)!r}.{_neighbours(path)}")
        return matches
    if not path.exists():
        raise DataError(f"{path} does not exist.{_neighbours(path)}")
    if not path.is_file():
        raise DataError(f"{path} is a pipe or a device, but files are read more than once; save it to a file first.")
    return [path]


def _neighbours(path: Path) -> str:
    """What there is in the folder instead, in words."""
    names = sorted(file.name for file in path.parent.iterdir()) if path.parent.is_dir() else []
    visible = [name for name in names if not name.startswith(".")]
    where = "The folder" if path.parent == Path() else str(path.parent)
    return f" {where} holds {listing(visible, 5)}." if visible else ""


def _is_visible(file: Path, folder: Path) -> bool:
    return file.is_file() and not any(part.startswith(("_", ".")) for part in file.relative_to(folder).parts)
