"""The arrays that signatures speak of."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

# Float64, of one and of two dimensions.
Vector = NDArray[np.float64]
Matrix = NDArray[np.float64]
# Float32 or float64.
Array = NDArray[np.floating]
# Of a type that the function's own text states.
AnyArray = NDArray[Any]
# Where rows or columns stand.
Positions = NDArray[np.intp]
Integers = NDArray[np.integer]


class CheckedRows(Protocol):
    """Rows that a learner has checked: an array, a CSR matrix, a container of objects, or a table."""

    @property
    def shape(self) -> tuple[int, ...]: ...
    @property
    def dtype(self) -> Any: ...
    def __getitem__(self, index: Any, /) -> Any: ...


# What users pass as rows.
RowsLike = ArrayLike | Sequence[object] | CheckedRows
