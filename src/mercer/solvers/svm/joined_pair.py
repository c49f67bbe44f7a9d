"""The C-SVC of two classes of a few hundred rows each: steps in float32 on joined rows, checked in float64.

Such a problem takes a millisecond, and computing its whole matrix would take most of it. Problems that steps alone do
not solve go to :class:`mercer.solvers.svm.smo.SMO`.
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from mercer._types import Array, Vector
from mercer.engine import threads
from mercer.engine.tiles import scratch_tile, spans
from mercer.gram.protocol import GramMatrix
from mercer.loops.box import BoxWeights
from mercer.loops.joined import ClassBlocks, KeptRows, solve_joined
from mercer.loops.pairs import FIGURES, assess
from mercer.loops.smo import StepRoom
from mercer.loops.transpose import transpose
from mercer.solvers.solution import Solution
from mercer.solvers.svm.box_qp import BoxQPValue
from mercer.solvers.svm.smo import WHOLE
from mercer.solvers.svm.solver import Start
from mercer.solvers.svm.step_rule import StepRule

# The part of the tolerance that is aimed at in float32, to leave room for its rounding.
_FLOAT32_PART = 0.9
_FLOAT32, _FLOAT64 = np.dtype(np.float32), np.dtype(np.float64)


@dataclass(frozen=True)
class Blocks:
    """The kernel matrix of all rows, sorted by class, in two precisions, and blocks of classes with themselves."""

    single: GramMatrix
    exact: GramMatrix
    own: dict[int, Array]


class PairMatrix(ABC):
    """The matrix of two classes, with rows computed on demand, and answers with it.

    Parameters
    ----------
    sizes : tuple of int
        Rows of the two classes.
    """

    def __init__(self, sizes: tuple[int, int]) -> None:
        self._sizes = sizes
        # Weights to go on from, their gradient, and the steps to them, where steps alone did not solve the problem.
        self.reached: tuple[Start, int] = Start(), 0

    @property
    @abstractmethod
    def nbytes(self) -> int:
        """Bytes of all stored arrays."""

    @abstractmethod
    def matrix(self) -> Array | None:
        """The whole matrix in float32, for :class:`mercer.solvers.svm.smo.SMO`, or None if it is large."""

    @abstractmethod
    def _product(self, weights: Vector) -> Vector:
        """``K weights`` in float64."""

    @abstractmethod
    def _steps(self, F: Vector, weights: BoxWeights, tol: float) -> int:
        """Steps from the weights, in place, whose gradient is F, which may be overwritten; returns their number."""

    def solve(self, upper: Vector, rule: StepRule, start: Start) -> Solution[BoxQPValue, Vector] | None:
        """Solve the C-SVC with absolute weights bounded by ``upper`` (q,); None if steps alone do not solve it."""
        begin = time.perf_counter()
        a, b = self._sizes
        y = np.repeat([1.0, -1.0], [a, b])
        lower, upper = np.concatenate([np.zeros(a), -upper[a:]]), np.concatenate([upper[:a], np.zeros(b)])
        before = np.zeros(a + b) if start.beta is None else np.clip(start.beta, lower, upper)
        F = y - self._product(before) if start.gradient is None else start.gradient.copy()
        beta = before.copy()
        steps = self._steps(F, BoxWeights(beta, lower, upper, np.zeros(a + b)), rule.tol)
        F -= self._product(beta - before)
        figures = np.empty(FIGURES)
        offset = assess(F, y, beta, lower, upper, True, figures)
        figures[3] = steps
        if not (np.isfinite(F).all() and rule.accepts(figures)):
            self.reached = (Start(beta, F), steps) if np.isfinite(F).all() else (start, 0)
            return None
        certificate = rule.certificate(figures, time.perf_counter() - begin, self.nbytes)
        return Solution(BoxQPValue(beta, (offset,), F), certificate.status, certificate, beta)


class JoinedPair(PairMatrix):
    """The matrix of two classes, with rows computed on demand, and answers with it.

    Its rows in float32 are in work memory of the thread: it is valid until the same thread makes another one.

    Parameters
    ----------
    blocks : Blocks
        What pairs share.
    pair : tuple of int
        The classes.
    parts : list of slice
        Their rows.
    """

    def __init__(self, blocks: Blocks, pair: tuple[int, int], parts: list[slice]) -> None:
        self._first, self._second = (blocks.own[group] for group in pair)
        self._parts = parts
        a, b = len(self._first), len(self._second)
        super().__init__((a, b))
        self._cross = scratch_tile("cross block", (a, b), _FLOAT32)
        cross, begin = self._cross, parts[0].start

        def make(rows: slice) -> Callable[[], None]:
            return lambda: blocks.single.fill(slice(begin + rows.start, begin + rows.stop), parts[1], cross[rows])

        threads.run([make(rows) for rows in spans(a)])
        self._K = scratch_tile("joined rows", (a + b, a + b), _FLOAT32)
        self._present = np.zeros(a + b, dtype=bool)
        # Rows in float64: of all whose weight ever moved.
        self._exact = blocks.exact
        self._lines, self._n_lines = scratch_tile("exact rows", (a + b, a + b), _FLOAT64), 0
        self._line = np.full(a + b, -1)

    @property
    def nbytes(self) -> int:
        """Bytes of all stored arrays."""
        return int(self._K.nbytes + self._cross.nbytes + self._lines[: self._n_lines].nbytes)

    def _steps(self, F: Vector, weights: BoxWeights, tol: float) -> int:
        work = scratch_tile("steps", (6, len(F)), _FLOAT32)
        work[0] = F
        blocks, store = ClassBlocks(self._first, self._second, self._cross), KeptRows(self._K, self._present)
        steps: int = solve_joined(blocks, store, work[:2], StepRoom.of(work[2:]), weights, _FLOAT32_PART * tol)
        return steps

    def matrix(self) -> Array | None:
        """The whole matrix in float32, for :class:`mercer.solvers.svm.smo.SMO`, or None if it is large."""
        if len(self._present) > WHOLE:
            return None
        if not self._present.all():
            a = self._sizes[0]
            self._K[:a, :a], self._K[a:, a:], self._K[:a, a:] = self._first, self._second, self._cross
            transpose(self._cross, self._K[a:, :a])
            self._present[:] = True
        return self._K

    def _product(self, weights: Vector) -> Vector:
        """``K weights`` in float64."""
        support = np.flatnonzero(weights)
        missing = support[self._line[support] < 0]
        if len(missing):
            self._make_lines(missing)
        lines = self._line[support]
        if 2 * len(support) < self._n_lines:
            return weights[support] @ self._lines[lines]
        # Most of the rows: as they lie, without a copy of them.
        of_lines = np.zeros(self._n_lines)
        of_lines[lines] = weights[support]
        return of_lines @ self._lines[: self._n_lines] if self._n_lines else np.zeros(len(weights))

    def _make_lines(self, index: np.ndarray) -> None:
        a = self._sizes[0]
        first, second = self._parts
        rows = self._exact.restrict(np.where(index < a, first.start + index, second.start + index - a), None)
        lines = self._lines[self._n_lines : self._n_lines + len(index)]
        for some in spans(len(index)):
            for part, place in ((first, 0), (second, a)):
                # A tile is filled where it is contiguous, and copied.
                tile = scratch_tile("exact tile", (some.stop - some.start, part.stop - part.start), _FLOAT64)
                rows.fill(some, part, tile)
                lines[some, place : place + tile.shape[1]] = tile
        self._line[index] = self._n_lines + np.arange(len(index))
        self._n_lines += len(index)
