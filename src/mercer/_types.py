"""The arrays that signatures speak of."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

# Float64, of one and of two dimensions.
Vector = NDArray[np.float64]
Matrix = NDArray[np.float64]
# Float32 or float64.
Array = NDArray[np.floating]
# Of a type that the function's own text tells.
AnyArray = NDArray[Any]
# Where rows or columns stand.
Positions = NDArray[np.intp]
Integers = NDArray[np.integer]
