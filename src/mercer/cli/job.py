"""A fit as it was asked for, read and checked."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from mercer.data.schema import Schema
from mercer.data.target import Target
from mercer.kernels import Kernel


@dataclass(frozen=True)
class Job:
    """The columns, the target, the schema of all rows, and the row numbers of the training and the held-out part.

    ``default_kernel`` is the one for the roles of the columns, where none was asked for.
    """

    columns: Any
    target: Target
    schema: Schema
    default_kernel: Kernel | None
    train: np.ndarray
    test: np.ndarray

    def rows(self, chosen: np.ndarray) -> Any:
        """Some rows of the columns."""
        return self.columns.iloc[chosen] if hasattr(self.columns, "iloc") else self.columns[chosen]
