"""Arrays, CSR matrices and data frames in memory, in slices."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp

from mercer._errors import DataError
from mercer._types import AnyArray
from mercer.data.blocks.block import Block, Piece
from mercer.data.blocks.checks import checked_target
from mercer.data.blocks.choice import Choice
from mercer.data.blocks.named_columns import FrameColumns, with_text_names
from mercer.data.blocks.source import Layout, Source, array_piece, frame_layout, piece_of, with_arrays
from mercer.data.vectors import refuse_unreal, with_sums


@dataclass(frozen=True, eq=False)
class ArraySource(Source):
    """An array or CSR matrix (n, d), with targets and weights."""

    X: Any
    y: AnyArray | None
    sample_weight: AnyArray | None
    ahead: ClassVar[bool] = False
    advice: ClassVar[str] = "Arrays must not change while they are in use."

    @classmethod
    def of(cls, X: Any, y: Any = None, sample_weight: Any = None) -> ArraySource:
        """From arrays, sparse matrices or lists of numbers.

        Raises
        ------
        DataError
            If X is not a table of numbers, or the lengths differ.
        """
        y, sample_weight = (None if part is None else np.asarray(part) for part in (y, sample_weight))
        X = as_rows(X, "X")
        check_lengths(X.shape[0], y, sample_weight, "X")
        return cls(X, y, sample_weight)

    @cached_property
    def layout(self) -> Layout:
        target = None if self.y is None else checked_target(self.y, "y", str(self), 0).dtype
        return Layout(self.X.shape[1], None, self.X.dtype, sp.issparse(self.X), self.X.shape[0], target)

    def pieces(self, rows: int, frames: bool) -> Iterator[Piece]:
        whole = Block(self.X, self.y, self.sample_weight)
        for start in range(0, whole.rows, rows):
            block = whole.take(slice(start, start + rows))
            yield array_piece(block, str(self), start, self.layout.target_dtype)

    def __str__(self) -> str:
        return f"{'a CSR matrix' if sp.issparse(self.X) else 'an array'} of shape {self.X.shape}"


@dataclass(frozen=True, eq=False)
class FrameSource(Source):
    """A data frame of pandas, with names of columns or arrays as target and weights."""

    table: Any
    choice: Choice
    y: AnyArray | None = None
    sample_weight: AnyArray | None = None
    ahead: ClassVar[bool] = False
    advice: ClassVar[str] = "Data frames must not change while they are in use."

    @classmethod
    def of(cls, table: Any, target: Any = None, columns: Any = None, sample_weight: Any = None) -> FrameSource:
        """From a data frame; target and weights are names of columns, or arrays.

        Raises
        ------
        DataError
            If the lengths differ.
        """
        named = target is None or isinstance(target, str) or _are_names(target, table)
        y = None if named else np.asarray(target)
        weighted = sample_weight is None or isinstance(sample_weight, str)
        weights = None if weighted else np.asarray(sample_weight)
        check_lengths(len(table), y, weights, "X")
        choice = Choice.of(target if named else None, columns, sample_weight if weighted else None)
        return cls(with_text_names(table), choice, y, weights)

    @cached_property
    def layout(self) -> Layout:
        layout = frame_layout(FrameColumns(self.table, str(self), 0), self.choice, len(self.table))
        return layout if self.y is None else replace(layout, target_dtype=checked_target(self.y, "y", "y", 0).dtype)

    def pieces(self, rows: int, frames: bool) -> Iterator[Piece]:
        for start in range(0, len(self.table), rows):
            part = slice(start, start + rows)
            piece = piece_of(FrameColumns(self.table.iloc[part], str(self), start), self.choice, self.layout, frames)
            y, weights = (None if values is None else values[part] for values in (self.y, self.sample_weight))
            yield with_arrays(piece, y, weights, self.layout.target_dtype)

    def __str__(self) -> str:
        return f"a data frame of shape {self.table.shape}"


def as_rows(X: Any, name: str) -> Any:
    """Return ``X`` as a two-dimensional array or CSR matrix of float32 or float64, without a copy where it is one.

    Raises
    ------
    DataError
        If it is not two-dimensional, or not of numbers.
    """
    refuse_unreal(X, name)
    if sp.issparse(X):
        X = with_sums(sp.csr_matrix(X))
        return X if X.dtype in (np.float32, np.float64) else X.astype(np.float64)
    try:
        array = np.asarray(X)
        refuse_unreal(array, name)
        array = array if array.dtype in (np.float32, np.float64) else array.astype(np.float64)
    except (TypeError, ValueError, OverflowError) as error:
        if isinstance(error, DataError):
            raise
        raise DataError(f"{name} must be a table of numbers, but is not: {error}.") from error
    if array.ndim != 2 or array.shape[1] == 0:
        raise DataError(f"{name} must have two dimensions (rows, columns), but has shape {array.shape}.")
    return array


def _are_names(target: Any, table: Any) -> bool:
    """Whether a target is names of columns, and not text for each row."""
    if not isinstance(target, (list, tuple)) or not all(isinstance(one, str) for one in target):
        return False
    return len(target) != len(table) or set(target) <= set(map(str, table.columns))


def check_lengths(rows: int, y: AnyArray | None, sample_weight: AnyArray | None, name: str) -> None:
    """Raise unless there is one target and one weight for each row.

    Raises
    ------
    DataError
        If there are more or fewer.
    """
    for what, values in (("y", y), ("sample_weight", sample_weight)):
        if values is not None and (values.ndim == 0 or len(values) != rows):
            raise DataError(f"{name} has {rows:,} rows, but {what} has shape {values.shape}; give one for each row.")
