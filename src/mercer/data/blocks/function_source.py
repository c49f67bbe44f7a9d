"""A user-defined function that returns an iterator of blocks, anew for each pass."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar, NamedTuple

import numpy as np
import scipy.sparse as sp

from mercer._errors import DataError
from mercer.data.blocks.block import Block, Piece, is_frame
from mercer.data.blocks.checks import checked_target
from mercer.data.blocks.checksum import Checksum, Mark
from mercer.data.blocks.choice import Choice
from mercer.data.blocks.memory_source import as_rows, check_lengths
from mercer.data.blocks.named_columns import FrameColumns, with_text_names
from mercer.data.blocks.source import Layout, Source, array_piece, frame_layout, piece_of, with_arrays


class _Beginning(NamedTuple):
    """What the first call yielded at first: a copy of one row, the layout, and the mark of the block."""

    row: Block
    layout: Layout
    block: Mark


@dataclass(frozen=True, eq=False)
class FunctionSource(Source):
    """Blocks that ``function()`` yields: X, (X, y) or (X, y, sample_weight), or data frames.

    The first call, for the layout, reads one block. Blocks may be of any size; blocks without rows are skipped.
    """

    function: Callable[[], Any]
    choice: Choice
    # A thread could not use what the function opened in another one, such as a connection to a database.
    ahead: ClassVar[bool] = False
    advice: ClassVar[str] = "The function must return a new iterator over the same rows each time that it is called."

    @property
    def layout(self) -> Layout:
        return self._beginning.layout

    @cached_property
    def _beginning(self) -> _Beginning:
        block, name = next(self._blocks(), (None, ""))
        if block is None:
            raise DataError(f"{self} yields no rows.")
        layout = self._layout_of(block, name)
        checksum = Checksum()
        checksum.add(self._used(block, layout))
        return _Beginning(block.take(np.zeros(1, np.intp)), layout, Mark(block.rows, checksum.digest()))

    def _layout_of(self, block: Block, name: str) -> Layout:
        if is_frame(block.X):
            layout = frame_layout(FrameColumns(block.X, name, 0), self.choice)
        elif self.choice != Choice():
            raise DataError(
                f"{self} yields arrays, whose columns have no names; yield (X, y) or (X, y, sample_weight), and leave "
                "out target, columns and sample_weight."
            )
        else:
            layout = Layout(block.X.shape[1], None, block.X.dtype, sp.issparse(block.X))
        if block.y is None:
            return layout
        if self.choice.targets:
            raise DataError(f"{self} yields targets, so leave out target={self.choice.targets[0]!r}.")
        return replace(layout, target_dtype=checked_target(block.y, "y", name, 0).dtype)

    def pieces(self, rows: int, frames: bool) -> Iterator[Piece]:
        first = self._beginning.row
        for block, name in self._unchanged():
            for what in ("y", "sample_weight"):
                if (getattr(block, what) is None) != (getattr(first, what) is None):
                    raise DataError(f"{name}: {what} is given for some blocks and not for others; yield all alike.")
            for start in range(0, block.rows, rows):
                yield self._piece(block.take(slice(start, start + rows)), name, start, frames)

    def _unchanged(self) -> Iterator[tuple[Block, str]]:
        """What the function yields, if it begins with the rows that the layout is from."""
        _, layout, begun = self._beginning
        checksum, missing = Checksum(), begun.rows
        for block, name in self._blocks():
            if missing:
                again = block.take(slice(0, missing))
                checksum.add(self._used(again, layout))
                missing -= again.rows
                if not missing and checksum.digest() != begun.digest:
                    break
            yield block, name
        else:
            if not missing:
                return
        raise DataError(f"the first {begun.rows:,} rows of {self} are not those of its first call. {self.advice}")

    def _used(self, block: Block, layout: Layout) -> Block:
        """A block without the columns of a data frame that are not used."""
        if layout.names is None:
            return block
        names = (*layout.names, *self.choice.targets, self.choice.weight)
        return block._replace(X=block.X[[name for name in dict.fromkeys(names) if name in block.X]])

    def __str__(self) -> str:
        return f"{getattr(self.function, '__name__', type(self.function).__name__)}()"

    def _blocks(self) -> Iterator[tuple[Block, str]]:
        """What the function yields, as blocks with a name in messages."""
        answer = self.function()
        if not hasattr(answer, "__iter__") or isinstance(answer, (str, bytes, dict, np.ndarray)) or is_frame(answer):
            raise DataError(
                f"{self} returned {type(answer).__name__}, but must return an iterator of blocks: X, (X, y) or "
                "(X, y, sample_weight)."
            )
        for number, item in enumerate(answer):
            block, name = _as_block(item, f"block {number} of {self}"), f"block {number} of {self}"
            if block.rows:
                yield block, name

    def _piece(self, block: Block, name: str, row: int, frames: bool) -> Piece:
        first, layout, _ = self._beginning
        if is_frame(block.X) != is_frame(first.X) or sp.issparse(block.X) != sp.issparse(first.X):
            raise DataError(
                f"{name} is a {type(block.X).__name__}, but the first block is a {type(first.X).__name__}; yield all "
                "blocks in one form."
            )
        if is_frame(block.X):
            names = [str(column) for column in block.X.columns]
            self.choice.check_same(names, name, list(first.X.columns), "the first block")
            piece = piece_of(FrameColumns(block.X, name, row), self.choice, layout, frames)
            return with_arrays(piece, block.y, block.sample_weight, layout.target_dtype)
        if block.X.shape[1] != layout.d:
            raise DataError(f"{name} has {block.X.shape[1]} columns, but the first block has {layout.d}.")
        if block.X.dtype != layout.dtype and layout.dtype == np.float32:
            raise DataError(f"{name} is of {block.X.dtype}, but the first block of float32; yield all in one type.")
        return array_piece(block._replace(X=block.X.astype(layout.dtype, copy=False)), name, row, layout.target_dtype)


def _as_block(item: Any, name: str) -> Block:
    """One block of a user, its rows as an array, CSR matrix or data frame, and its lengths checked."""
    parts = item if isinstance(item, tuple) else (item,)
    if not 1 <= len(parts) <= 3:
        raise DataError(f"{name} is a tuple of {len(parts)}, but must be X, (X, y) or (X, y, sample_weight).")
    X, y, weights = (*parts, None, None)[:3]
    X = with_text_names(X) if is_frame(X) else as_rows(X, name)
    y, weights = (None if part is None else np.asarray(part) for part in (y, weights))
    check_lengths(X.shape[0], y, weights, name)
    return Block(X, y, weights)
