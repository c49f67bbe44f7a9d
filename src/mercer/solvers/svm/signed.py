"""A kernel matrix whose rows and columns are multiplied by signs."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from mercer._types import Array
from mercer.gram.protocol import GramMatrix


class SignedGram(GramMatrix):
    """``Q_ij = y_i y_j K_ij``, with the interface of the underlying matrix K; nothing is stored.

    Parameters
    ----------
    gram : GramMatrix
        K, (n, m).
    rows, columns : ndarray of shape (n,), (m,)
        Signs, +1 or -1.

    Examples
    --------
    >>> from mercer.gram import PrecomputedGram
    >>> y = np.array([1, -1])
    >>> SignedGram(PrecomputedGram(np.full((2, 2), 3.0)), y, y).block().tolist()
    [[3.0, -3.0], [-3.0, 3.0]]
    """

    def __init__(self, gram: GramMatrix, rows: NDArray[Any], columns: NDArray[Any]) -> None:
        self._gram = gram
        # Of one byte, so that a product with them keeps the precision of the matrix.
        self._rows, self._columns = rows.astype(np.int8), columns.astype(np.int8)

    @property
    def shape(self) -> tuple[int, int]:
        return self._gram.shape

    @property
    def dtype(self) -> Any:
        return self._gram.dtype

    @property
    def cheap(self) -> bool:
        """As for the matrix itself."""
        return self._gram.cheap

    @property
    def expensive(self) -> bool:
        """Whether entries of K cost much more than a product."""
        return self._gram.expensive

    def __matmul__(self, V: Any) -> Any:
        columns, rows = (s if np.ndim(V) == 1 else s[:, None] for s in (self._columns, self._rows))
        return rows * (self._gram @ (columns * V))

    def block(self, rows: Any = None, columns: Any = None, out: Array | None = None) -> Array:
        """The dense part at ``rows`` and ``columns``."""
        block = self._gram.block(rows, columns, out=out)
        self._sign(block, _at(rows), _at(columns))
        return block

    def fill(self, rows: Any, columns: slice, out: Array) -> None:
        """Write the part at rows, a slice or positions, and columns, a slice, into ``out``."""
        self._gram.fill(rows, columns, out)
        self._sign(out, rows, columns)

    def _sign(self, block: Array, rows: Any, columns: Any) -> None:
        block *= self._rows[rows][:, None]
        block *= self._columns[columns]

    def diagonal(self) -> Array:
        """``Q_ii = K_ii``."""
        return self._gram.diagonal()

    def restrict(self, rows: Any = None, columns: Any = None) -> SignedGram:
        """The part at ``rows`` and ``columns``."""
        return SignedGram(self._gram.restrict(rows, columns), self._rows[_at(rows)], self._columns[_at(columns)])

    def astype(self, dtype: Any) -> SignedGram:
        """The same matrix in another precision."""
        return SignedGram(self._gram.astype(dtype), self._rows, self._columns)

    def leading(self) -> SignedGram | None:
        """The same for the cheaper matrix that is close to K, if there is one."""
        leading = self._gram.leading()
        return None if leading is None else SignedGram(leading, self._rows, self._columns)


def _at(index: Any) -> Any:
    return slice(None) if index is None else index
