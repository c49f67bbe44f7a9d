"""Which source an argument of :class:`~mercer.Blocks` is, recognised by its type and the suffix of its files."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from mercer._errors import DataError, ParameterError
from mercer.data.blocks import arrow_source, csv_source, npy_source, svmlight_source
from mercer.data.blocks.arrow_source import ArrowSource, is_arrow
from mercer.data.blocks.block import is_frame
from mercer.data.blocks.choice import Choice
from mercer.data.blocks.csv_source import CsvSource
from mercer.data.blocks.files import find_files
from mercer.data.blocks.function_source import FunctionSource
from mercer.data.blocks.memory_source import ArraySource, FrameSource
from mercer.data.blocks.npy_source import NpySource
from mercer.data.blocks.source import Source
from mercer.data.blocks.svmlight_source import SvmlightSource
from mercer.data.libsvm import looks_like_libsvm
from mercer.data.text_files import TextFile, suffix_of
from mercer.data.words import listing

_SUFFIXES = {
    "parquet": arrow_source.SUFFIXES,
    "csv": csv_source.SUFFIXES,
    "npy": npy_source.SUFFIXES,
    "svmlight": svmlight_source.SUFFIXES,
}


def recognise(
    source: Any,
    target: Any,
    columns: Any,
    sample_weight: Any,
    dtype: Mapping[str, str] | None = None,
    encoding: str | None = None,
) -> Source:
    """Return the source that the arguments of :class:`~mercer.Blocks` describe.

    Raises
    ------
    DataError
        If rows cannot be read from it more than once, or its kind is unknown.
    ParameterError
        If arguments do not fit its kind.
    """
    if _are_paths(source):
        return _files(source, target, columns, sample_weight, dtype, encoding)
    _require_no(encoding)
    if hasattr(source, "__next__"):
        raise DataError(
            f"the source is a {type(source).__name__}, which can be read only once, but several passes are needed. "
            "Pass a function that opens a new one at each call, such as the generator function itself: Blocks(load)."
        )
    if callable(source):
        return FunctionSource(source, Choice.of(target, columns, sample_weight))
    if is_frame(source):
        return FrameSource.of(source, target, columns, sample_weight)
    if is_arrow(source):
        return ArrowSource.of(source, Choice.of(target, columns, sample_weight))
    if columns is not None:
        raise ParameterError("columns=[...] chooses columns by name, which arrays have not; pass X[:, ...].")
    if not (isinstance(source, (np.ndarray, list, tuple)) or sp.issparse(source)):
        raise DataError(
            f"rows cannot be read from a {type(source).__name__}. Pass a path, a pattern or a list of files, an array, "
            "a data frame, a data set of pyarrow, or a function that returns an iterator of blocks."
        )
    return ArraySource.of(source, target, sample_weight)


def _require_no(encoding: str | None) -> None:
    if encoding is not None:
        raise ParameterError(f"encoding={encoding!r} is for CSV and TSV files alone; leave it out.")


def _are_paths(source: Any) -> bool:
    several = isinstance(source, (list, tuple)) and len(source) > 0
    return isinstance(source, (str, Path)) or (several and all(isinstance(one, (str, Path)) for one in source))


def _files(
    source: Any, target: Any, columns: Any, sample_weight: Any, dtype: Mapping[str, str] | None, encoding: str | None
) -> Source:
    kind = _kind_of(source)
    if kind != "csv":
        _require_no(encoding)
    if kind == "parquet":
        return ArrowSource.of(source, Choice.of(target, columns, sample_weight))
    if kind == "csv":
        return CsvSource.of(source, Choice.of(target, columns, sample_weight), dtype, encoding)
    if columns is not None:
        raise ParameterError("columns=[...] chooses columns by name, which only tables have.")
    if kind == "npy":
        return NpySource.of(source, target, sample_weight)
    if target is not None or sample_weight is not None:
        raise ParameterError("the target of svmlight files is their label, and they hold no weights; leave both out.")
    return SvmlightSource.of(source)


def _kind_of(source: Any) -> str:
    """The format of the files of a path, a pattern, a folder or a list."""
    known = tuple(suffix for suffixes in _SUFFIXES.values() for suffix in suffixes)
    paths = find_files(source, known)
    suffixes = dict.fromkeys(suffix_of(path) for path in paths)
    kinds = {kind for kind, own in _SUFFIXES.items() for suffix in suffixes if suffix in own}
    if set(suffixes) == {csv_source.TEXT}:
        return "svmlight" if looks_like_libsvm(TextFile(paths[0])) else "csv"
    if len(kinds) == 1 and set(suffixes) <= set(_SUFFIXES[next(iter(kinds))]):
        return kinds.pop()
    raise DataError(
        f"the format of {paths[0]} is not told by the suffix of its files, which is {listing(suffixes)}; there must be "
        f"one kind of {', '.join(known)}. For other files, pass a function that returns an iterator of blocks."
    )
