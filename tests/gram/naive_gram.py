"""A kernel matrix with the members that solvers use, and nothing else: no kernel, no tiles, no threads."""

from __future__ import annotations

from typing import Any

import numpy as np

from mercer.gram.protocol import GramMatrix


def _at(index: Any) -> Any:
    return slice(None) if index is None else index


class NaiveGram(GramMatrix):
    """Entries that only this class may see, as those on another device."""

    def __init__(self, entries: np.ndarray) -> None:
        self._entries = entries

    @property
    def shape(self) -> tuple[int, int]:
        return self._entries.shape[0], self._entries.shape[1]

    @property
    def dtype(self) -> np.dtype:
        return self._entries.dtype

    def __matmul__(self, V: np.ndarray) -> np.ndarray:
        return self._entries @ V

    def block(self, rows: Any = None, columns: Any = None, out: np.ndarray | None = None) -> np.ndarray:
        out = np.empty(self.restrict(rows, columns).shape, self.dtype) if out is None else out
        self.fill(_at(rows), _at(columns), out)
        return out

    def fill(self, rows: Any, columns: Any, out: np.ndarray) -> None:
        out[...] = self._entries[rows][:, columns]

    def diagonal(self) -> np.ndarray:
        return self._entries.diagonal().astype(np.float64)

    def restrict(self, rows: Any = None, columns: Any = None) -> NaiveGram:
        return NaiveGram(self._entries[_at(rows)][:, _at(columns)])

    def astype(self, dtype: Any) -> NaiveGram:
        return NaiveGram(self._entries.astype(dtype))
