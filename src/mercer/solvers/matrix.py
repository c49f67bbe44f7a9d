"""What solvers know of a kernel matrix."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

Vector = NDArray[np.float64]
Array = NDArray[np.floating]


class GramMatrix(Protocol):
    """What a solver needs of a kernel matrix; it never sees the kernel or the data."""

    @property
    def shape(self) -> tuple[int, int]: ...
    @property
    def dtype(self) -> Any: ...
    @property
    def dear(self) -> bool: ...
    def __matmul__(self, V: Any) -> Any: ...
    def block(self, rows: Any = None, columns: Any = None, out: Array | None = None) -> Array: ...
    def fill(self, rows: Any, columns: slice, out: Array) -> None: ...
    def diagonal(self) -> Array: ...
    def restrict(self, rows: Any = None, columns: Any = None) -> GramMatrix: ...
    def astype(self, dtype: Any) -> GramMatrix: ...
    def leading(self) -> GramMatrix | None: ...


def whole_matrix(gram: GramMatrix, dtype: Any) -> Array:
    """All of K, whose memory the caller has reserved: without a place to go to, a block asks for it once more."""
    return gram.astype(dtype).block(None, None, out=np.empty(gram.shape, dtype))
