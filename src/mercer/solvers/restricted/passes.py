"""What a solver of a restricted problem knows of the rows: how to pass over them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np

from mercer._types import Matrix, Vector
from mercer.engine import strips
from mercer.gram.hold import check_finite
from mercer.gram.protocol import GramMatrix


@dataclass(frozen=True, eq=False)
class Part:
    """Some rows: their targets (s, t), and their weights (s, 1)."""

    targets: Matrix
    weights: Matrix


Visit = Callable[[Part, Matrix], tuple[Matrix, Vector]]


class Passes(Protocol):
    """Rows that are seen one part at a time, as often as needed: in memory, in files or on other machines."""

    @property
    def shape(self) -> tuple[int, int, int]:
        """Rows n, landmarks m, targets t."""

    def sweep(self, V: Matrix, visit: Visit, widths: tuple[int, int]) -> tuple[Matrix, Vector]:
        """``K^T U`` and sums over parts, with ``U, numbers = visit(part, K[part] @ V)``; see :func:`strips.sweep`."""

    def single(self) -> Passes | None:
        """The same rows with kernel values in float32, or None if these are not cheaper."""

    def sample(self, count: int, random: np.random.RandomState) -> tuple[Matrix, Part]:
        """A uniform sample of rows: their kernel values in float64, targets and weights."""


@dataclass(frozen=True, eq=False)
class StoredRows:
    """Rows in memory.

    Parameters
    ----------
    gram : GramMatrix
        Kernel values of rows and landmarks, (n, m), in the precision of the passes: float64 for a solver.
    targets : ndarray of shape (n, t)
    weights : ndarray of shape (n,)
    n_jobs : int, optional
    """

    gram: GramMatrix
    targets: Matrix
    weights: Vector
    n_jobs: int | None = None

    @property
    def shape(self) -> tuple[int, int, int]:
        """Rows n, landmarks m, targets t."""
        return (*self.gram.shape, self.targets.shape[1])

    def sweep(self, V: Matrix, visit: Visit, widths: tuple[int, int]) -> tuple[Matrix, Vector]:
        """``K^T U`` and sums over strips of rows."""
        weights = self.weights[:, None]

        def strip(rows: slice, values: Matrix) -> tuple[Matrix, Vector]:
            return visit(Part(self.targets[rows], weights[rows]), values)

        with np.errstate(over="ignore", invalid="ignore"):
            found = strips.sweep(
                self.gram.fill, self.gram.shape, np.dtype(self.gram.dtype), V, strip, widths, self.n_jobs
            )
        check_finite(found[0])
        return found

    def single(self) -> StoredRows | None:
        """The same rows with kernel values in float32; None for values that are stored."""
        if self.gram.dtype == np.float32 or self.gram.stored_array() is not None:
            return None
        with np.errstate(over="ignore", invalid="ignore"):
            return replace(self, gram=self.gram.astype(np.float32))

    def sample(self, count: int, random: np.random.RandomState) -> tuple[Matrix, Part]:
        """A uniform sample of rows: their kernel values in float64, targets and weights."""
        n = self.gram.shape[0]
        chosen = np.arange(n) if count >= n else np.sort(random.choice(n, count, replace=False))
        block = self.gram.block(None if count >= n else chosen, None)
        part = Part(self.targets[chosen], self.weights[chosen, None])
        return np.array(block, dtype=np.float64, order="C"), part
