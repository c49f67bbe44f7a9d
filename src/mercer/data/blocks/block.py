"""A block of rows, and what rows of any kind can do: be counted, cut, joined and hashed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from mercer._optional import optional
from mercer._types import AnyArray, Vector


class Block(NamedTuple):
    """Some rows, their targets and their weights.

    Attributes
    ----------
    X : ndarray or scipy.sparse.csr_matrix of shape (r, d), or pandas.DataFrame
    y : ndarray of shape (r,) or (r, t), or None
        Float64, int64 or bool; text is an array of objects.
    sample_weight : ndarray of shape (r,), or None
    """

    X: Any
    y: AnyArray | None = None
    sample_weight: Vector | None = None

    @property
    def rows(self) -> int:
        """Number of rows."""
        return int(self.X.shape[0])

    @property
    def nbytes(self) -> int:
        """Bytes of memory; of text, those of the references only."""
        return _bytes(self.X) + sum(part.nbytes for part in (self.y, self.sample_weight) if part is not None)

    def take(self, index: slice | AnyArray) -> Block:
        """Return some of the rows; for a slice of an array without a copy."""
        X = self.X.iloc[index] if is_frame(self.X) else self.X[index]
        return Block(X, None if self.y is None else self.y[index], _part(self.sample_weight, index))


class Piece(NamedTuple):
    """Rows as a source reads them, with the file (or its like) and the number of the first row in it, from 0."""

    block: Block
    file: str
    row: int = 0


def is_frame(X: Any) -> bool:
    """Whether rows are a data frame of pandas."""
    return hasattr(X, "iloc")


def join(blocks: Sequence[Block]) -> Block:
    """Return the rows of several blocks in order.

    >>> join([Block(np.ones((1, 2))), Block(np.zeros((1, 2)))]).X.tolist()
    [[1.0, 1.0], [0.0, 0.0]]
    """
    if len(blocks) == 1:
        return blocks[0]
    parts = [block.X for block in blocks]
    if is_frame(parts[0]):
        X = optional("pandas", "joining blocks").concat(parts, ignore_index=True)
    elif sp.issparse(parts[0]):
        X = sp.vstack(parts, format="csr")
    else:
        X = np.concatenate(parts)
    return Block(X, _joined([block.y for block in blocks]), _joined([block.sample_weight for block in blocks]))


def byte_streams(block: Block) -> Iterator[tuple[str, bytes | memoryview]]:
    """Yield the content as named streams of bytes, which joined over blocks do not depend on where they are cut."""
    X = block.X
    if is_frame(X):
        hashes = optional("pandas", "checking blocks").util.hash_pandas_object(X, index=False)
        yield "X", _buffer(hashes.to_numpy())
    elif sp.issparse(X):
        yield "lengths", _buffer(np.diff(X.indptr).astype(np.int64))
        yield "indices", _buffer(X.indices.astype(np.int64))
        yield "X", _buffer(X.data)
    else:
        yield "X", _buffer(X)
    for name, values in (("y", block.y), ("sample_weight", block.sample_weight)):
        if values is not None and values.dtype.kind == "O":
            yield name, "".join(f"{len(text)}:{text}" for text in map(str, values)).encode()
        elif values is not None:
            yield name, _buffer(values)


class Cutter:
    """Cuts rows that arrive in pieces of any size into blocks of ``rows`` rows; the last one may have fewer.

    Where blocks begin does not depend on the pieces, so neither do the bits of sums over blocks.

    >>> cutter = Cutter(2)
    >>> [block.X.ravel().tolist() for block, _ in cutter.push(Block(np.arange(5.0)[:, None]), "a.npy")]
    [[0.0, 1.0], [2.0, 3.0]]
    >>> [block.X.ravel().tolist() for block, _ in cutter.rest()]
    [[4.0]]
    """

    def __init__(self, rows: int) -> None:
        self._rows = rows
        self._waiting: list[tuple[Block, str]] = []
        self._count = 0

    def push(self, block: Block, file: str = "") -> Iterator[tuple[Block, tuple[str, ...]]]:
        """Add rows of a file; yield the blocks that are now complete, each with the files that it comes from."""
        start = 0
        while block.rows - start >= self._rows - self._count:
            stop = start + self._rows - self._count
            self._waiting.append((block.take(slice(start, stop)), file))
            yield from self.rest()
            start = stop
        if start < block.rows:
            self._waiting.append((block.take(slice(start, block.rows)), file))
            self._count += block.rows - start

    def rest(self) -> Iterator[tuple[Block, tuple[str, ...]]]:
        """Yield the rows that wait for others, as a block, if there are any."""
        if self._waiting:
            block = join([block for block, _ in self._waiting])
            files = tuple(dict.fromkeys(file for _, file in self._waiting))
            self._waiting, self._count = [], 0
            yield block, files


def _part(values: Vector | None, index: slice | AnyArray) -> Vector | None:
    return None if values is None else values[index]


def _joined(parts: Sequence[AnyArray | None]) -> AnyArray | None:
    present = [part for part in parts if part is not None]
    return np.concatenate(present) if present else None


def _buffer(values: AnyArray) -> memoryview:
    return np.ascontiguousarray(values).reshape(-1).view(np.uint8).data


def _bytes(X: Any) -> int:
    if is_frame(X):
        return int(X.memory_usage(index=False).sum())
    if sp.issparse(X):
        return int(X.data.nbytes + X.indices.nbytes + X.indptr.nbytes)
    return int(X.nbytes)
