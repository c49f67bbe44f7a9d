"""Rows of which nothing is kept from pass to pass, and whose targets are revised all the same."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from mercer._types import Matrix, Vector
from mercer.solvers.restricted.passes import Part, Passes, Revise, Visit


@dataclass(frozen=True, eq=False)
class RevisedRows:
    """Rows whose targets are computed anew in each pass, from the functions by which they were revised.

    A pass makes the predictions of these functions in addition to the requested ones: kernel values, which take most
    of the time, are the same. So multipliers need no memory that grows with the number of rows, and workers no state.

    Parameters
    ----------
    rows : Passes
        With the targets as they were.
    steps : tuple of (ndarray, callable)
        Coefficients V, and the function that revises targets by the predictions ``K V``, one after the other.
    """

    rows: Passes
    steps: tuple[tuple[Matrix, Revise], ...]

    @property
    def shape(self) -> tuple[int, int, int]:
        """Rows n, landmarks m, targets t."""
        n, m, t = self.rows.shape
        nothing = np.empty((0, 1))
        part = self._revised(Part(np.empty((0, t)), nothing), np.empty((0, sum(V.shape[1] for V, _ in self.steps))))
        return n, m, part.targets.shape[1]

    def sweep(self, V: Matrix, visit: Visit, widths: tuple[int, int]) -> tuple[Matrix, Vector]:
        """``K^T U`` and sums over parts."""
        own = V.shape[1]

        def together(part: Part, F: Matrix) -> tuple[Matrix, Vector]:
            return visit(self._revised(part, F[:, own:]), F[:, :own])

        return self.rows.sweep(np.hstack([V, *(before for before, _ in self.steps)]), together, widths)

    def revised(
        self, V: Matrix, revise: Revise, visit: Visit, widths: tuple[int, int]
    ) -> tuple[RevisedRows, Matrix, Vector]:
        """The rows with the targets ``revise(part, K[part] @ V)``, and what a sweep over these returns; one pass."""
        rows = RevisedRows(self.rows, (*self.steps, (V, revise)))
        return rows, *rows.sweep(V, visit, widths)

    def single(self) -> RevisedRows | None:
        """The same rows with kernel values in float32, or None if these are not cheaper."""
        rows = self.rows.single()
        return None if rows is None else replace(self, rows=rows)

    def sample(self, count: int, random: np.random.RandomState) -> tuple[Matrix, Part]:
        """A uniform sample of rows: their kernel values in float64, targets and weights."""
        K, part = self.rows.sample(count, random)
        return K, self._revised(part, K @ np.hstack([V for V, _ in self.steps]))

    def _revised(self, part: Part, F: Matrix) -> Part:
        start = 0
        for V, revise in self.steps:
            part = replace(part, targets=revise(part, F[:, start : start + V.shape[1]]))
            start += V.shape[1]
        return part
