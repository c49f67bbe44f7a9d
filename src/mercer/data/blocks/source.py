"""Where rows come from: the one interface of files, arrays and functions."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp

from mercer._errors import DataError
from mercer._types import AnyArray
from mercer.data.blocks.block import Block, Piece
from mercer.data.blocks.checks import check_finite, checked_target, checked_weights, same_kind
from mercer.data.blocks.choice import Choice
from mercer.data.blocks.files import Files
from mercer.data.blocks.named_columns import FrameColumns, NamedColumns, not_numbers
from mercer.data.words import shown

FLOAT64 = np.dtype(np.float64)


@dataclass(frozen=True)
class Layout:
    """What is known of the rows before they are read.

    Parameters
    ----------
    d : int
        Number of columns of X.
    names : tuple of str, optional
        Their names; arrays have none.
    dtype : numpy.dtype
        Of X: float32 or float64.
    sparse : bool
        Whether X comes as CSR.
    n : int, optional
        Number of rows, if that is known without reading them.
    target_dtype : numpy.dtype, optional
        Of the target; None if there is none.
    not_numbers : dict of str to str
        Columns of X that hold no numbers, and a sentence about the first file where that is so.
    """

    d: int
    names: tuple[str, ...] | None = None
    dtype: np.dtype = FLOAT64
    sparse: bool = False
    n: int | None = None
    target_dtype: np.dtype | None = None
    not_numbers: Mapping[str, str] = field(default_factory=dict)

    def check_numbers(self) -> None:
        """Raise if a column of X holds no numbers.

        Raises
        ------
        DataError
            If one does.
        """
        for name, why in self.not_numbers.items():
            raise DataError(
                f"the column {shown(name)} {why}, but X must be numbers. Choose the columns with columns=[...], or "
                "encode tables with Blocks.encoded()."
            )


class Source(ABC):
    """Rows that can be read again and again."""

    ahead: ClassVar[bool] = True
    """Whether reading takes long enough for a thread of its own."""
    advice: ClassVar[str] = "Files must not change while they are in use; make new Blocks of them."
    """What to do if two passes differ."""

    @property
    @abstractmethod
    def layout(self) -> Layout:
        """What is known of the rows."""

    @abstractmethod
    def pieces(self, rows: int, frames: bool) -> Iterator[Piece]:
        """Yield all rows in order, in pieces of about ``rows`` rows; X as data frames if ``frames``."""

    @property
    def stored(self) -> tuple[Files, ...]:
        """The files that are read."""
        return ()

    def check(self) -> None:
        """Raise if a file has visibly changed.

        Raises
        ------
        DataError
            With the name of the file.
        """
        for files in self.stored:
            files.check()

    @abstractmethod
    def __str__(self) -> str:
        """The source in a few words."""


def piece_of(part: NamedColumns, choice: Choice, layout: Layout, frames: bool) -> Piece:
    """Return X, target and weights of a part of a table.

    Raises
    ------
    DataError
        If a value is missing or not of its kind.
    """
    assert layout.names is not None
    X = part.frame(layout.names) if frames else numbers_of(part, layout.names, layout.dtype)
    y = None
    if choice.targets:
        y = target_of(part, choice)
        assert layout.target_dtype is not None
        y = same_kind(y, layout.target_dtype, _quoted(choice.targets), part.file, part.row)
    weight = choice.weight
    weights = None if weight is None else checked_weights(part.number(weight), repr(weight), part.file, part.row)
    return Piece(Block(X, y, weights), part.file, part.row)


def frame_layout(part: FrameColumns, choice: Choice, n: int | None = None) -> Layout:
    """Return the layout of rows that begin with this data frame."""
    names = choice.resolve([str(name) for name in part.table.columns], part.file)
    reasons = {name: not_numbers(part.table[name]) for name in names}
    others = {name: f"of {part.file} {why}" for name, why in reasons.items() if why is not None}
    single = all(part.table[name].dtype in (np.float32, np.float16) for name in names)
    target = target_of(part, choice).dtype if choice.targets else None
    return Layout(len(names), names, np.dtype(np.float32 if single else np.float64), False, n, target, others)


def target_of(part: NamedColumns, choice: Choice) -> AnyArray:
    """Return the target of a part of a table, (r,) or (r, t)."""
    name = _quoted(choice.targets)
    if choice.one_target:
        return checked_target(part.values(choice.targets[0]), name, part.file, part.row)
    return checked_target(numbers_of(part, choice.targets, FLOAT64, finite=False), name, part.file, part.row)


def numbers_of(part: NamedColumns, names: tuple[str, ...], dtype: np.dtype, *, finite: bool = True) -> Any:
    """Return columns of numbers as an array (r, d)."""
    X = np.empty((part.rows, len(names)), dtype)
    for position, name in enumerate(names):
        X[:, position] = part.number(name)
    if finite:
        check_finite(X, part.file, part.row, names)
    return X


def array_piece(block: Block, file: str, row: int, target_dtype: np.dtype | None) -> Piece:
    """Return a piece of arrays; X, targets and weights are checked."""
    check_finite(block.X, file, row)
    X = block.X if sp.issparse(block.X) else np.ascontiguousarray(block.X)
    return with_arrays(Piece(Block(X), file, row), block.y, block.sample_weight, target_dtype)


def with_arrays(piece: Piece, y: AnyArray | None, weights: AnyArray | None, target_dtype: np.dtype | None) -> Piece:
    """Return a piece with targets and weights that are given as arrays; None leaves those of the piece."""
    block = piece.block
    if y is not None:
        y = checked_target(y, "y", piece.file, piece.row)
        assert target_dtype is not None
        block = block._replace(y=same_kind(y, target_dtype, "y", piece.file, piece.row))
    if weights is not None:
        block = block._replace(sample_weight=checked_weights(weights, "sample_weight", piece.file, piece.row))
    return piece._replace(block=block)


def _quoted(names: tuple[str, ...]) -> str:
    return ", ".join(map(repr, names))
