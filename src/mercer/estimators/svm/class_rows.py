"""The rows of a classifier by pairs of classes, sorted by class."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mercer._types import Vector


@dataclass(frozen=True, eq=False)
class ClassRows:
    """The rows with a weight, those of the first class first: positions in X, numbers of classes, and weights.

    ``total`` is the number of all rows of X.
    """

    names: np.ndarray
    rows: NDArray[np.intp]
    codes: NDArray[np.intp]
    weight: Vector
    total: int

    @classmethod
    def of(cls, y: np.ndarray, weight: Vector) -> ClassRows:
        """From labels and weights of all rows."""
        used = np.flatnonzero(weight)
        names, codes = np.unique(y[used], return_inverse=True)
        order = np.argsort(codes, kind="stable")
        return cls(names, used[order], codes[order], weight[used[order]], len(weight))

    @property
    def sizes(self) -> NDArray[np.intp]:
        """The number of rows of each class."""
        return np.bincount(self.codes)
