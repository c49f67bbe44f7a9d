"""Gaussian process regression over landmarks on rows that are read block by block."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from mercer._errors import DataError, ParameterError
from mercer._types import Matrix, Positions, Vector
from mercer.data.blocks.block import Block, Cutter
from mercer.data.blocks.blocks import Blocks
from mercer.data.blocks.dask_source import is_dask
from mercer.data.blocks.reservoir import Reservoir
from mercer.data.seeds import generator
from mercer.engine import memory
from mercer.estimators.gaussian.cross_covariance import KernelCrossValues
from mercer.estimators.gaussian.over_landmarks import LandmarkFit
from mercer.estimators.shared.on_blocks import check_parts, count_of, named, refuse_sides, rows_to_draw
from mercer.estimators.shared.on_dask import predicted
from mercer.estimators.shared.whole_rows import answers_parts
from mercer.kernels import Kernel
from mercer.kernels.inputs import Rows
from mercer.kernels.plan import Plan, check_finite
from mercer.landmarks.choose import Landmarks
from mercer.solvers.gaussian.inducing import InducingRegression

_DOUBLE = np.dtype(np.float64)
# Numbers that are kept for each row beside its targets: variances and their parts.
NUMBERS_OF_ROW = 8


@dataclass(frozen=True, eq=False)
class PartRows:
    """Rows in blocks, their targets, and a sample of the rows.

    Parameters
    ----------
    blocks : Blocks
    y : ndarray of shape (n,) or (n, t)
        Of all rows.
    sample : Block
    positions : ndarray of shape (s,)
        Where the rows of the sample are among all.
    """

    blocks: Blocks
    y: Matrix
    sample: Block
    positions: Positions

    @classmethod
    def of(cls, learner: Any, X: Any, y: Any) -> PartRows | None:
        """Read targets and draw the sample in one pass; None for rows in memory."""
        if is_dask(X):
            check_parts(learner, X)
            if y is None:
                raise DataError(f"{type(learner).__name__} needs targets y, and y is None; pass a collection of Dask.")
            X, y = Blocks.from_dask(X, y), None
        if not isinstance(X, Blocks):
            return None
        check_parts(learner, X)
        refuse_sides(learner, y, None)
        size = rows_to_draw(X.n, count_of(learner))
        reservoir, targets = Reservoir(size, generator(learner.random_state)), []
        if X.dtype == object:
            raise DataError(
                f"{type(learner).__name__} needs numbers, but these blocks are data frames; use encoded() in place of "
                "frames()."
            )
        with ExitStack() as stack:
            for number, block in enumerate(X):
                if not number and isinstance(block.X, np.ndarray):
                    stack.enter_context(memory.reserve(2 * 8 * size * X.d, f"a sample of {size:,} rows"))
                if block.sample_weight is not None:
                    raise DataError(
                        f"{type(learner).__name__} has no sample weights, and {X!r} has some; pass blocks without them."
                    )
                if block.y is None:
                    raise DataError(
                        f"{type(learner).__name__} needs targets, and {X!r} has none; name them with target=...."
                    )
                reservoir.add(block)
                targets.append(block.y)
        assert reservoir.sample is not None
        return cls(X, np.concatenate(targets), reservoir.sample, reservoir.positions)

    def training(self) -> tuple[Any, Any]:
        """The sample and its targets; columns have their names if they have any."""
        return named(self.sample.X, self.blocks.columns), self.sample.y


@dataclass(frozen=True, eq=False)
class BlockedCross:
    """Values of a kernel between rows in blocks and landmarks, as functions of ``kernel.theta``."""

    kernel: Kernel
    blocks: Blocks
    landmarks: Any
    n_jobs: int | None = None

    @property
    def shape(self) -> tuple[int, int]:
        return self.blocks.n, int(self.landmarks.shape[0])

    @property
    def size(self) -> int:
        return len(self.kernel.theta)

    def at(self, theta: Vector) -> BlockedCrossValues:
        # Its rows are those of the landmarks; each block has its own.
        columns = Rows(self.landmarks)
        return BlockedCrossValues(self.kernel.with_theta(theta), columns, columns, self.n_jobs, self.blocks)


@dataclass(frozen=True, eq=False)
class BlockedCrossValues(KernelCrossValues):
    """The values at parameters of the kernel, of rows that are read in their order in each pass."""

    blocks: Blocks
    _reading: Iterator[Block] = field(init=False, repr=False, default_factory=lambda: iter(()))

    def block(self, rows: slice, out: Matrix) -> None:
        if rows.start == 0:
            object.__setattr__(self, "_reading", self._parts(rows.stop))
        part = next(self._reading)
        Plan(self.kernel, Rows(part.X), self.columns, _DOUBLE).dense(out, self.n_jobs)
        check_finite(out, self.kernel)
        if rows.stop == self.blocks.n:
            # The end of a pass is compared with that of the first one.
            next(self._reading, None)

    def diagonals(self) -> tuple[Vector, Vector]:
        parts = [super(BlockedCrossValues, replace(self, rows=Rows(block.X))).diagonals() for block in self.blocks]
        function, noise = (np.concatenate(side) for side in zip(*parts, strict=True))
        return function, noise

    def _parts(self, rows: int) -> Iterator[Block]:
        """All rows in blocks of another size."""
        cutter = Cutter(rows)
        for block in self.blocks:
            for part, _ in cutter.push(block._replace(y=None, sample_weight=None)):
                yield part
        for part, _ in cutter.rest():
            yield part


@dataclass(frozen=True, eq=False)
class PartsFit(LandmarkFit):
    """A fit whose rows, targets and variances are those of a sample, but for the posterior, which has all rows.

    Parameters
    ----------
    blocks : Blocks
    all_targets : ndarray of shape (n, t)
    all_variances : ndarray of shape (n,)
    """

    blocks: Blocks
    all_targets: Matrix
    all_variances: Vector

    def run(self) -> None:
        n = len(self.all_targets)
        with memory.reserve(8 * n * NUMBERS_OF_ROW, f"variances of {n:,} rows"):
            super().run()
        if self.learner.search_ is not None:
            self.learner.search_rows_ = len(self.targets)

    def _choose(self, theta: Vector, random: np.random.RandomState) -> Landmarks:
        # Positions would be those in the sample.
        return Landmarks(super()._choose(theta, random).rows, None)

    def _of_all_rows(self, problem: InducingRegression) -> InducingRegression:
        sample: Any = problem.covariance
        covariance = BlockedCross(sample.kernel, self.blocks, sample.landmarks, sample.n_jobs)
        return replace(problem, covariance=covariance, targets=self.all_targets, variances=self.all_variances)


def predicts_parts(method: Callable[..., Any]) -> Callable[..., Any]:
    """Let ``predict`` of a process take blocks, whose answers are joined, and collections of Dask."""

    @functools.wraps(method)
    def predict(self: Any, X: Any, return_std: bool = False, return_cov: bool = False, **options: Any) -> Any:
        if not isinstance(X, Blocks) and not is_dask(X):
            return method(self, X, return_std, return_cov, **options)
        if return_cov:
            raise ParameterError(
                "return_cov=True needs all new rows at once, and X comes in parts; pass return_std=True, or call it "
                "for one block after the other: [model.predict(X, return_cov=True) for X, y, sample_weight in blocks]."
            )
        if isinstance(X, Blocks):
            answers = [method(self, named(block.X, X.columns), return_std, **options) for block in X]
            if not return_std:
                return np.concatenate(answers)
            return tuple(np.concatenate(side) for side in zip(*answers, strict=True))

        def part(number: int) -> Callable[..., Any]:
            return lambda model, rows: method(model, rows, True, **options)[number]

        return (predicted(part(0), self, X), predicted(part(1), self, X)) if return_std else predicted(method, self, X)

    return answers_parts(predict)
