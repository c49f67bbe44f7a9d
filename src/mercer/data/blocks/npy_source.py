"""Arrays in ``.npy`` files, which the system maps into memory page by page."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from tokenize import TokenError
from typing import Any

import numpy as np

from mercer._errors import DataError
from mercer._types import AnyArray
from mercer.data.blocks.block import Block, Piece
from mercer.data.blocks.checks import checked_target
from mercer.data.blocks.files import Files, find_files
from mercer.data.blocks.memory_source import check_lengths
from mercer.data.blocks.source import Layout, Source, array_piece

SUFFIXES = (".npy",)


@dataclass(frozen=True)
class NpySource(Source):
    """Files of X (n, d), and as many of y and of weights."""

    X: Files
    y: Files | None
    sample_weight: Files | None

    @classmethod
    def of(cls, X: Any, y: Any = None, sample_weight: Any = None) -> NpySource:
        """From paths, patterns, folders or lists of paths.

        Raises
        ------
        DataError
            If there is no such file, or not as many of one as of another.
        """
        sources = [None if paths is None else Files.of(find_files(paths, SUFFIXES)) for paths in (X, y, sample_weight)]
        assert sources[0] is not None
        for name, files in (("y", sources[1]), ("sample_weight", sources[2])):
            if files is not None and len(files.paths) != len(sources[0].paths):
                raise DataError(
                    f"there are {len(sources[0].paths)} files of X, but {len(files.paths)} of {name}; give one for "
                    "each, in the same order."
                )
        return cls(sources[0], sources[1], sources[2])

    @cached_property
    def layout(self) -> Layout:
        d, n, dtypes, targets = 0, 0, [], []
        for X, y, weights in self._arrays():
            name = _name(X)
            if X.ndim != 2 or X.shape[1] == 0:
                raise DataError(
                    f"{name} must hold an array of two dimensions (rows, columns), but has shape {X.shape}."
                )
            if X.dtype.kind not in "biuf":
                raise DataError(f"{name} holds {X.dtype}, but numbers are needed.")
            if d and X.shape[1] != d:
                raise DataError(f"{name} has {X.shape[1]} columns, but {self.X.paths[0]} has {d}.")
            check_lengths(X.shape[0], y, weights, name)
            d, n = X.shape[1], n + X.shape[0]
            dtypes.append(X.dtype)
            if y is not None and len(y):
                targets.append(checked_target(y[:1], "y", _name(y), 0).dtype)
        if n == 0:
            raise DataError(f"{self} has no rows.")
        single = all(dtype in (np.float32, np.float16) for dtype in dtypes)
        return Layout(d, None, np.dtype(np.float32 if single else np.float64), False, n, _common(targets))

    def pieces(self, rows: int, frames: bool) -> Iterator[Piece]:
        layout = self.layout
        for X, y, weights in self._arrays():
            for start in range(0, len(X), rows):
                part = Block(X, y, weights).take(slice(start, start + rows))
                # A copy, so that the memory of a block is not that of the file.
                block = Block(np.array(part.X, dtype=layout.dtype, order="C"), _copy(part.y), _copy(part.sample_weight))
                yield array_piece(block, _name(X), start, layout.target_dtype)

    @property
    def stored(self) -> tuple[Files, ...]:
        return tuple(files for files in (self.X, self.y, self.sample_weight) if files is not None)

    def __str__(self) -> str:
        return str(self.X)

    def _arrays(self) -> Iterator[tuple[AnyArray, AnyArray | None, AnyArray | None]]:
        for number, path in enumerate(self.X.paths):
            others = [None if files is None else _mapped(files.paths[number]) for files in (self.y, self.sample_weight)]
            yield _mapped(path), others[0], others[1]


def _mapped(path: Path) -> AnyArray:
    try:
        with np.errstate(over="ignore"):
            array = np.load(path, mmap_mode="r", allow_pickle=False)
    except (ValueError, EOFError, OSError, OverflowError, SyntaxError, TokenError) as error:
        # NumPy proposes an option that runs code of the file.
        why = "it is not a .npy file, or holds objects" if "pickle" in str(error) else error
        raise DataError(f"{path} cannot be read as a NumPy array: {why}.") from error
    if not isinstance(array, np.ndarray):
        raise DataError(f"{path} holds several arrays (.npz), which cannot be mapped; save each with numpy.save.")
    return array


def _copy(values: AnyArray | None) -> AnyArray | None:
    return None if values is None else np.array(values)


def _name(array: Any) -> str:
    return str(getattr(array, "filename", "an array"))


def _common(dtypes: list[np.dtype]) -> np.dtype | None:
    """The type of targets of several files: that which holds all of their values."""
    return np.result_type(*dtypes) if dtypes else None
