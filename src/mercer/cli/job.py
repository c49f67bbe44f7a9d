"""A requested fit, with its data read and checked."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from mercer.cli.reading import Reading
from mercer.data.schema import Schema
from mercer.data.table import row_place
from mercer.data.target import Target
from mercer.kernels import Kernel


@dataclass(frozen=True)
class Job:
    """The columns, the target, the schema of all rows, and the row numbers of the training and the held-out part.

    ``default_kernel`` is the kernel for the roles of the columns if the user names none. ``model`` is the name of the
    learner, and ``why`` says in words why it was chosen. ``kernels`` are those to choose among, with their columns.
    ``locate`` says where in the file ``source`` a row is, and ``reading`` which columns were not taken as they are.
    ``how`` says which rows are held out, if not random ones.
    """

    columns: Any
    target: Target
    schema: Schema
    default_kernel: Kernel | None
    train: np.ndarray
    test: np.ndarray
    model: str
    why: str
    kernels: tuple[Any, ...] = ()
    locate: Callable[[int], str] = row_place
    reading: Reading = field(default_factory=Reading)
    source: str = "the table"
    how: str = ""

    def rows(self, positions: np.ndarray) -> Any:
        """Return some rows of the columns."""
        return self.columns.iloc[positions] if hasattr(self.columns, "iloc") else self.columns[positions]

    def sample(self, rows: np.ndarray, count: int | None, seed: int) -> np.ndarray:
        """Return at most ``count`` row numbers, all for None: the same share, and at least one row, of every class."""
        if count is None or len(rows) <= count:
            return np.sort(rows)
        shuffled = np.random.default_rng(seed).permutation(rows)
        if self.target.task == "regression":
            return np.sort(shuffled[:count])
        share, labels = count / len(rows), self.target.values[shuffled]
        parts = [shuffled[labels == label] for label in np.unique(labels)]
        return np.sort(np.concatenate([part[: max(1, round(share * len(part)))] for part in parts]))
