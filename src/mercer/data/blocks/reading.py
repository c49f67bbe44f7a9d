"""One pass over a source: pieces to checked blocks of a fixed number of rows."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from mercer._errors import DataError
from mercer.data.blocks.ahead import read_ahead
from mercer.data.blocks.block import Block, Cutter, Piece
from mercer.data.blocks.checks import check_finite, same_targets
from mercer.data.blocks.checksum import Checksum, Ledger, Mark
from mercer.data.blocks.source import FLOAT64, Layout, Source
from mercer.data.columns import MixedRows
from mercer.data.words import listing
from mercer.engine import memory
from mercer.engine.progress import Progress

# Numbers of a block: 16 MiB in float64.
_ENTRIES = 2**21
_MOST_ROWS, _LEAST_ROWS = 2**17, 16
# Rows of CSR in a block; how many entries they have is not known before they are read.
_SPARSE_ROWS = 2**14


@dataclass(frozen=True, eq=False)
class Plan:
    """What a pass yields: rows of a source in some form, so many at a time.

    Parameters
    ----------
    source : Source
    rows : int
    frames : bool
        Whether X stays a data frame.
    encoder : object, optional
        Its ``transform`` turns a data frame into numbers.
    width : int
        Number of columns of X.
    """

    source: Source
    rows: int
    frames: bool = False
    encoder: Any = None
    width: int = 0

    @property
    def dtype(self) -> np.dtype:
        """Of X: float32 or float64; object for data frames."""
        if self.frames:
            return np.dtype(object)
        return FLOAT64 if self.encoder is not None else self.source.layout.dtype

    def blocks(self, ledger: Ledger) -> Iterator[Block]:
        """Yield the blocks of one pass, each compared to the ledger.

        Raises
        ------
        DataError
            If rows cannot be read, or are not those of an earlier pass.
        MemoryBudgetError
            If blocks of so many rows do not fit.
        """
        self.source.check()
        layout = self.source.layout
        if not self.frames and self.encoder is None:
            layout.check_numbers()
        marked: Iterator[tuple[Block, Mark, tuple[str, ...]]] = self._marked()
        # One block alone needs no thread that reads ahead.
        rows = self.rows if layout.n is None else min(self.rows, layout.n)
        ahead = self.source.ahead and layout.n != rows
        copies = 3 if ahead else 2
        known = 0 if layout.sparse or self.frames else rows * self.width * self.dtype.itemsize
        progress = Progress(None if layout.n is None else -(-layout.n // self.rows), "blocks")
        with memory.reserve(copies * known, self._what(), _WAY_OUT):
            first, digest = 0, b""
            for number, (block, mark, files) in enumerate(read_ahead(marked) if ahead else marked):
                ledger.enter(number, first, mark, files)
                first, digest = first + mark.rows, mark.digest
                with memory.reserve(0 if known else copies * block.nbytes, self._what(), _WAY_OUT):
                    yield block
                progress.advance()
            if not first:
                raise DataError(f"{self.source} has no rows.")
            ledger.close(Mark(first, digest))

    def _what(self) -> str:
        return f"reading blocks of {self.rows:,} rows with {self.width:,} columns"

    def _marked(self) -> Iterator[tuple[Block, Mark, tuple[str, ...]]]:
        checksum = Checksum()
        for block, files in self._cut():
            checksum.add(block)
            yield block, Mark(block.rows, checksum.digest()), files

    def _cut(self) -> Iterator[tuple[Block, tuple[str, ...]]]:
        cutter = Cutter(self.rows)
        targets = None
        for piece in self.source.pieces(self.rows, self.frames or self.encoder is not None):
            if piece.block.rows:
                targets = same_targets(piece, targets)
                encoded = piece if self.encoder is None else encode(piece, self.encoder, self.width)
                yield from cutter.push(encoded.block, encoded.file)
        yield from cutter.rest()


_WAY_OUT = "Pass a smaller rows_per_block, or raise the budget with mercer.config(memory=...)."


def default_rows(layout: Layout) -> int:
    """Rows of a block if the user does not say: 16 MiB of float64, as a power of two, whatever memory is free.

    >>> default_rows(Layout(d=10)), default_rows(Layout(d=3000))
    (131072, 512)
    """
    if layout.sparse:
        return _SPARSE_ROWS
    rows = max(_ENTRIES // layout.d, _LEAST_ROWS)
    return min(2 ** (rows.bit_length() - 1), _MOST_ROWS)


def encode(piece: Piece, encoder: Any, width: int | None = None) -> Piece:
    """Return the piece with its data frame encoded as float64 (r, width).

    Raises
    ------
    DataError
        If the encoder returns anything else.
    """
    X = encoder.transform(piece.block.X)
    if isinstance(X, MixedRows):
        names = [encoder.names_[place] for place in encoder.texts_]
        hold = "holds" if len(names) == 1 else "hold"
        raise DataError(
            f"{listing(names, 4)} {hold} text, which is not encoded as numbers. Leave such columns out with "
            f"columns=[...], or encode them as categories: encoded(kinds={dict.fromkeys(names[:2], 'category')!r})."
        )
    if sp.issparse(X):
        raise DataError(f"{piece.file}: the encoder returned a sparse matrix; set it to return arrays.")
    X = np.asarray(X)
    if X.dtype.kind not in "biuf" or X.ndim != 2 or X.shape != (piece.block.rows, width or X.shape[1]):
        wanted = f"({piece.block.rows}, {width or 'd'})"
        raise DataError(
            f"{piece.file}: the encoder returned {X.dtype} of shape {X.shape}; numbers of shape {wanted} are needed."
        )
    X = np.ascontiguousarray(X, dtype=np.float64)
    check_finite(X, piece.file, piece.row)
    return piece._replace(block=piece.block._replace(X=X))
