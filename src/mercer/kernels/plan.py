"""How a kernel is evaluated on two sets of rows: prepared once, then tile by tile from any thread."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Mapping
from types import MappingProxyType
from typing import Any

import numpy as np

from mercer._errors import DataError, KernelValueError, ParameterError
from mercer._types import Array
from mercer.data.objects import short
from mercer.engine import memory, tiles
from mercer.engine.tiles import Fill
from mercer.kernels.base import Expression
from mercer.kernels.inputs import Frame, Index, Operand, Rows
from mercer.kernels.leading import LeadingDistance
from mercer.kernels.pairs import MatchedPairs, TilePairs
from mercer.kernels.program import Program
from mercer.kernels.statistics import SquaredDistance

# Distances from leading directions are used where they have this many times fewer columns.
LEAST_GAIN = 3


class Plan:
    """A kernel with the two sides of a block; ``fill`` may be called from any thread.

    ``instead`` names substitutes for the statistics that the kernel uses, as ``_uses`` yields them.
    """

    def __init__(
        self,
        kernel: Expression,
        left: Rows,
        right: Rows,
        dtype: Any = None,
        instead: Mapping[Any, Any] = MappingProxyType({}),
    ) -> None:
        self.kernel, self.left, self.right, self.instead = kernel, left, right, instead
        self.symmetric, self.tile = left is right, kernel.tile
        both_float32 = left.dtype == np.float32 and right.dtype == np.float32
        default = np.float32 if both_float32 else np.float64
        try:
            self.dtype = np.dtype(default if dtype is None else dtype)
        except TypeError as error:
            raise ParameterError(f"kernels are evaluated in float32 or float64, not in {short(dtype)}.") from error
        if self.dtype not in (np.float32, np.float64):
            raise ParameterError(f"kernels are evaluated in float32 or float64, not in {self.dtype}.")
        uses = Counter(kernel._uses(()))
        self._repeated = frozenset(key for key, count in uses.items() if count > 1)
        # For all tiles; the sides that its keys name live as long as the plan does.
        self._operands: dict[Hashable, tuple[Operand, Operand]] = {}
        self._programs: dict[np.dtype, Program | None] = {}

    def between(self, left: Rows, right: Rows) -> Plan:
        """The same kernel, evaluated in the same way, between other rows."""
        same = left is self.left and right is self.right
        return self if same else Plan(self.kernel, left, right, self.dtype, self.instead)

    def __reduce__(self) -> tuple[Any, ...]:
        return Plan, (self.kernel, self.left, self.right, self.dtype, dict(self.instead))

    @property
    def shape(self) -> tuple[int, int]:
        return self.left.n, self.right.n

    def pairs(self, rows: Index, columns: slice, dtype: np.dtype) -> TilePairs:
        """The pairs of one tile."""
        return TilePairs(self.left, self.right, (rows, columns), dtype, self._operands, self._repeated, self.instead)

    def program(self, dtype: np.dtype) -> Program | None:
        """The kernel for compiled loops, in a precision, or None where they do not compute it."""
        if dtype not in self._programs:
            self._programs[dtype] = Program.of(self, dtype)
        return self._programs[dtype]

    def fill(self, rows: Index, columns: slice, out: Array) -> None:
        """Write one tile."""
        program = self.program(out.dtype) if out.size else None
        if program is not None and program.writes(out):
            program.fill(rows, columns, out)
            return
        pairs = self.pairs(rows, columns, out.dtype)
        # What overflows is seen in the values.
        with np.errstate(over="ignore", invalid="ignore"):
            self.kernel._fill(pairs, out)
        pairs.release()

    def _fill_checked(self, rows: slice, columns: slice, out: Array) -> None:
        """Write one tile, and raise if it holds NaN or an infinity; in the cache the check costs little."""
        self.fill(rows, columns, out)
        check_finite(out, self.kernel)

    def leading(self) -> Plan | None:
        """The same with distances from leading directions, or None if that would not be much cheaper."""
        frame = Frame(self.left.root, self.right.root)
        # Of whole rows and of distances alone: statistics of chosen columns have rows of their own.
        used = [use[1] if isinstance(use, tuple) and use[0] == () else None for use in self.kernel._uses(())]
        instead = {
            ((), statistic): LeadingDistance(statistic.scales)
            for statistic in used
            if isinstance(statistic, SquaredDistance)
        }
        if not instead or len(instead) < len(set(used)) or frame.layout != "dense":
            return None
        widths = [statistic.directions(frame).shape for statistic in instead.values()]
        if any(width * LEAST_GAIN > columns for columns, width in widths):
            return None
        return Plan(self.kernel, self.left, self.right, self.dtype, instead)

    def prepare(self) -> None:
        """Check the input and prepare it, before any worker starts."""
        if self.left.n and self.right.n and self.program(self.dtype) is None:
            self.fill(slice(0, 1), slice(0, 1), np.empty((1, 1), self.dtype))

    def prepare_for_workers(self) -> None:
        """The same for rows that were checked; a single tile prepares its own."""
        if max(self.shape) > self.tile:
            self.prepare()

    def dense(self, out: Array | None = None, n_jobs: int | None = None, checked: bool = False) -> Array:
        """The whole block; into ``out`` if given. A block that would not fit the memory budget raises an error.

        With ``checked``, NaN and infinite values raise an error; learners check their results instead.
        """
        if out is None:
            n, m = self.shape
            memory.require(
                n * m * self.dtype.itemsize,
                f"the {n} x {m} kernel matrix in {self.dtype}",
                "Raise the budget with mercer.config(memory=...), use fewer rows, pass float32 data, "
                "or multiply by it lazily with mercer.Gram(kernel, X) @ v.",
            )
        else:
            check_out(out, self.shape)
        self.prepare_for_workers()
        if out is None:
            out = np.empty(self.shape, self.dtype)
        program = self.program(out.dtype) if out.size else None
        if program is None or not program.writes(out):
            tiles.dense(self._fill_checked if checked else self.fill, out, self.symmetric, n_jobs, self.tile)
        elif not program.dense(out, n_jobs, checked):
            check_finite(out, self.kernel)
        return out

    def product(self, V: Array, n_jobs: int | None = None) -> Array:
        """``K @ V`` for ``V`` (m, k) in the precision of the plan; sums over tiles in float64."""
        program = self.program(self.dtype)
        if program is not None:
            return program.product(V, n_jobs)
        self.prepare_for_workers()
        return tiles.product(self.fill, self.shape, self.dtype, V, self.symmetric, n_jobs, self.tile)

    def pull(self, weights: Array, n_jobs: int | None = None) -> Array:
        """``sum_ij weights_ij d k(x_i, z_j) / d theta`` over the free parameters, tile by tile."""

        def weigh(rows: slice, columns: slice, out: Array) -> None:
            # Sums of slopes cancel: they are taken in float64 whatever the input is.
            out[...] = weights[rows, columns]

        return self._reduce(weigh, n_jobs, symmetric=False)

    def pull_symmetric(self, weigh: Fill, n_jobs: int | None = None) -> Array:
        """``sum_ij w_ij d k(x_i, x_j) / d theta`` for symmetric weights, which ``weigh(rows, columns, out)`` writes.

        It is called, from any thread, for the tiles on the diagonal and above only: the others are their mirror images.
        The weights are never stored as one matrix.
        """
        if not self.symmetric:
            raise DataError("symmetric weights require a Gram matrix of rows with themselves.")
        return self._reduce(weigh, n_jobs, symmetric=True)

    def _reduce(self, weigh: Fill, n_jobs: int | None, symmetric: bool) -> Array:
        parameters = self.kernel.parameters
        self.prepare_for_workers()
        if not any(p.free for p in parameters):
            return np.zeros(0)

        def visit(rows: slice, columns: slice) -> Array:
            slopes = np.zeros(len(parameters))
            pairs = self.pairs(rows, columns, np.dtype(np.float64))
            # Distances that overflow belong to values of 0, whose slopes are 0.
            with tiles.scratch(pairs.shape, pairs.dtype) as weights, np.errstate(over="ignore"):
                weigh(rows, columns, weights)
                self.kernel._pull(pairs, weights, slopes)
            pairs.release()
            # A tile above the diagonal stands for its mirror image as well.
            return 2.0 * slopes if symmetric and columns.start > rows.start else slopes

        slopes = tiles.reduce(visit, self.shape, len(parameters), n_jobs, symmetric, self.tile)
        return np.array([p.chain(s) for p, s in zip(parameters, slopes, strict=True) if p.free])


def diagonal(kernel: Expression, rows: Rows) -> Array:
    """``k(x_i, x_i)`` for every row, in float64."""
    out = np.empty(rows.n)
    kernel._fill(MatchedPairs(rows, np.dtype(np.float64)), out)
    return out


def check_out(out: Any, shape: tuple[int, int]) -> None:
    """Raise unless values of a block of this shape can be written to an array."""
    if not isinstance(out, np.ndarray):
        raise DataError(f"out must be a NumPy array of shape {shape}, but is {short(out)}; pass np.empty({shape}).")
    if out.shape != shape:
        raise DataError(f"out has shape {out.shape}, but the block has shape {shape}.")
    if out.dtype not in (np.float32, np.float64):
        raise ParameterError(
            f"kernels are evaluated in float32 or float64, not in {out.dtype}; pass out=np.empty({shape})."
        )
    if not out.flags.writeable:
        raise DataError(f"out is read-only; pass a copy, or np.empty({shape}).")


def check_finite(block: Array, kernel: Expression) -> None:
    """Raise if a kernel returned NaN or an infinity."""
    with np.errstate(over="ignore", invalid="ignore"):
        total = block.sum()
    if not np.isfinite(total) and not np.isfinite(block).all():
        value = block[~np.isfinite(block)][0]
        raise KernelValueError(
            f"the kernel {kernel!r} returned {value}; scale the columns of X, if it has columns "
            "(sklearn.preprocessing.StandardScaler), or choose a kernel or parameters with smaller values."
        )
