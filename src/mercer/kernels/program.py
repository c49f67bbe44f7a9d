"""A kernel on rows of numbers as a program that compiled loops run tile by tile: see ``mercer.loops.programs``."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np
from numba.core.errors import NumbaError

from mercer._errors import ParameterError
from mercer._types import Array, Integers, Matrix, Vector
from mercer.engine import settings, strips, threads
from mercer.engine.progress import Progress
from mercer.engine.tiles import TILE, scratch_tile
from mercer.kernels.base import Expression, is_overridden
from mercer.kernels.elementary import compiled_works
from mercer.kernels.inputs import Frame, Index, Rows, Scope
from mercer.loops import programs, steps
from mercer.loops.programs import Code, Sums, Team, Weighted

if TYPE_CHECKING:
    from mercer.kernels.plan import Plan

# The most tiles on the stack, and the most steps.
_DEEPEST, _LONGEST = 8, 64
# Whole numbers up to this one are floats.
_LARGEST_EXPONENT = 2**53
# Tasks that a block is divided into where it is large enough: several for each of many cores. Their number depends on
# the shape alone, and so does the order of sums.
_TASKS = 64
_LEAST_SIDE = 64
# A program takes seconds to compile for a precision, once on a machine: more than it saves on fewer entries than these.
LEAST_ENTRIES = 2**22
# Sides of a tile: OpenBLAS multiplies wide rows a third faster in the second, which leaves the cache of a core.
_NARROW_SIDE, _WIDE_SIDE, _NARROW = 256, 512, 128
# Numbers of rows that are gathered or turned at once.
_GATHERED = 2**20
# Additions and multiplications that are worth another worker.
_WORTH = 2**21
_NONE: Integers = np.empty(0, np.int64)
Step = Callable[..., Any]


class Lowering:
    """The steps of a program, as the parts of a kernel add them."""

    def __init__(self, plan: Plan, dtype: np.dtype) -> None:
        self.dtype, self.left, self.right = dtype, plan.left, plan.right
        self.scope: Scope = ()
        # What each does, the number of a statistic, and the function.
        self.steps: list[tuple[int, int, Step | None]] = []
        self.factors: list[tuple[float, ...]] = []
        self.tables: list[Array] = []
        self.depth = self._height = 0
        # What the addresses in the tables are of, and whether a statistic needs its right side as columns.
        self.alive: list[Any] = []
        self.turned = False
        self._instead = plan.instead
        self._repeated = [key for key, count in Counter(plan.kernel._uses(())).items() if count > 1]
        self._made: set[Hashable] = set()
        self.stored = len(self._repeated)
        self.tables.extend(np.zeros(programs.TABLE, np.int64) for _ in self._repeated)

    def kernel(self, kernel: Expression) -> bool:
        """Put the values of a kernel on the stack; False if compiled loops do not compute them."""
        return not is_overridden(kernel, "_fill", "_lower") and kernel._lower(self)

    def joined(self, kernels: tuple[Expression, ...], function: Step) -> bool:
        """The same for several that a function joins."""
        if not self.kernel(kernels[0]):
            return False
        for kernel in kernels[1:]:
            if not self.kernel(kernel):
                return False
            self._add(programs.JOIN, function)
            self._height -= 1
        return True

    def step(self, function: Step, *factors: float) -> bool:
        """Add a step that replaces the uppermost tile; False for exponents that are no numbers of a loop."""
        if function is steps.power and factors[0] > _LARGEST_EXPONENT:
            return False
        self._add(programs.REPLACE, function, *factors)
        return True

    def power(self, exponent: float) -> bool:
        """Raise the uppermost tile to a power."""
        return self.step(steps.power if isinstance(exponent, int) else steps.real_power, exponent)

    def constant(self, value: float) -> bool:
        """Put a constant on the stack."""
        return self._push(programs.PUSH, steps.write, value)

    def _push(self, code: int, function: Step | None, factor: float, which: int = 0) -> bool:
        """Add a step that puts a tile on the stack."""
        self._add(code, function, factor, which=which)
        self._height += 1
        self.depth = max(self.depth, self._height)
        return True

    def _add(self, code: int, function: Step | None, *factors: float, which: int = 0) -> None:
        self.steps.append((code, which, function))
        self.factors.append((*factors, 0.0, 0.0, 0.0, 0.0)[:4])

    def statistic(self, statistic: Any, multiplier: float) -> bool:
        """Put ``multiplier * statistic`` on the stack; False if no compiled loop computes it."""
        key = (self.scope, statistic)
        if key in self._instead or not statistic.is_in_range(multiplier, self.dtype):
            return False
        if key not in self._repeated:
            self.tables.append(np.zeros(programs.TABLE, np.int64))
            self._push(programs.STATISTIC, None, multiplier, len(self.tables) - 1)
            return self._write(statistic, self.tables[-1])
        which = self._repeated.index(key)
        if key not in self._made:
            self._made.add(key)
            self._add(programs.STATISTIC, None, 1.0, which=which)
            if not self._write(statistic, self.tables[which]):
                return False
        return self._push(programs.RECALL, steps.recall, multiplier, which)

    def _write(self, statistic: Any, table: Array) -> bool:
        frame = Frame(self.left.root, self.right.root)
        left, right = (side.operand(statistic, frame, self.dtype) for side in (self.left, self.right))
        self.alive += [left, right]
        return bool(statistic.lower(left, right, table, self))

    def address_of(self, loop: Step, kind: str) -> int:
        """The address of a loop, which is compiled if it has not been."""
        try:
            return steps.address_of(loop, kind, self.dtype)
        except NumbaError as error:
            # Numba says first in which of its passes.
            lines = [line for line in str(error).splitlines() if line and not line.startswith("Failed in ")]
            reason = lines[0].rstrip(": ")
            raise ParameterError(
                f"the function compiled(t, numbers) of a kernel cannot be compiled: {reason}; use numbers and "
                "functions of math in it, or remove it, and blocks are computed by value(t)."
            ) from error

    @contextmanager
    def seen(self, through: Callable[[Rows], Rows], step: Hashable) -> Iterator[None]:
        """The pairs through a map or a choice of columns, in the block."""
        before = self.left, self.right, self.scope
        left = through(self.left)
        self.left, self.right = left, left if self.right is self.left else through(self.right)
        self.scope = (*self.scope, step)
        yield
        self.left, self.right, self.scope = before


class Program:
    """A kernel between two sides, for compiled loops.

    Parameters
    ----------
    lowering : Lowering
    shape : tuple of int
    """

    def __init__(self, lowering: Lowering, shape: tuple[int, int]) -> None:
        self.dtype, self.shape, self._symmetric = lowering.dtype, shape, lowering.left is lowering.right
        self.steps = np.array(
            [(*step[:2], 0 if step[2] is None else lowering.address_of(step[2], "function")) for step in lowering.steps]
        )
        tables = np.array(lowering.tables, np.int64).reshape(-1, programs.TABLE)
        self._code = Code(self.steps, np.array(lowering.factors), tables)
        self._job = np.zeros(programs.JOB, np.int64)
        self._job[[programs.STORED, programs.DEPTH]] = lowering.stored, lowering.depth + 1
        self._turned = lowering.turned
        self._width = int(tables[:, programs.WIDTH].max(initial=0))
        self._base = _WIDE_SIDE if self._width > _NARROW else _NARROW_SIDE
        self._alive = lowering.alive

    @classmethod
    def of(cls, plan: Plan, dtype: np.dtype, least: int | None = None) -> Program | None:
        """The program of a plan of at least so many entries, or None where compiled loops do not compute its kernel."""
        if plan.left.n * plan.right.n < max(LEAST_ENTRIES if least is None else least, 1) or plan.kernel.tile != TILE:
            return None
        if not compiled_works(dtype):
            return None
        lowering = Lowering(plan, dtype)
        if not lowering.kernel(plan.kernel) or lowering.depth > _DEEPEST or len(lowering.steps) > _LONGEST:
            return None
        return cls(lowering, plan.shape)

    def fill(self, rows: Index, columns: slice, out: Array) -> None:
        """Write one tile in this thread; the rows of ``out`` must be contiguous."""
        n, m = out.shape
        first, positions = (rows.start, _NONE) if isinstance(rows, slice) else (0, _inside(rows, self.shape[0]))
        job = self._new_job(n, m, n, m, picked=len(positions) > 0)
        job[[programs.FIRST_ROW, programs.FIRST_COLUMN]] = first, columns.start
        # Rows with themselves, to the last bit.
        job[programs.MIRROR] = self._symmetric and isinstance(rows, slice) and rows == columns
        self._aim(job, out)
        room = self._room(job, len(positions) > 0)
        team = Team(np.zeros(programs.ROUNDS, np.int64), np.zeros(1, np.uint8))
        programs.fill(job, self._code, positions, team, room)

    def writes(self, out: Array) -> bool:
        """Whether :meth:`fill` and :meth:`dense` can write to an array: to rows of numbers side by side, one after the
        other."""
        row, item = (out.strides[0] if len(out) > 1 else out.shape[1] * out.itemsize), out.itemsize
        return bool(out.strides[1] == item and row % item == 0 and row >= out.shape[1] * item and out.flags.aligned)

    def dense(self, out: Array, n_jobs: int | None, checked: bool) -> bool:
        """Write the whole block; whether all of its entries are finite, if that is checked."""
        n, m = out.shape
        job = self._new_job(n, m, self._base, self._chunk(n, m))
        if self._symmetric:
            # Squares, so that little is computed below the diagonal.
            job[programs.WIDE] = job[programs.TALL]
        job[[programs.MIRROR, programs.CHECK]] = self._symmetric, checked
        self._aim(job, out)

        def loop(team: Team, keep: Any = out) -> None:
            programs.fill(job, self._code, _NONE, team, self._room(job))

        shared = self._share(loop, job, self._tasks(job), n_jobs, "Gram matrix")
        return not shared[programs.NOT_FINITE]

    def product(self, V: Array, n_jobs: int | None) -> Matrix:
        """``K @ V`` for ``V`` (m, k), with sums over tiles in float64."""
        (n, m), k = self.shape, V.shape[1]
        if self._symmetric:
            job = self._new_job(n, m, self._side(n), m)
            job[programs.MODE] = programs.SYMMETRIC
            count = -(-n // self._side(n))
            # A task for each two strips; as many workers as can meet in a round.
            tasks, most, chunks = count * (count + 1) // 2, max(count // 2, 1), 1
        else:
            job = self._new_job(n, m, self._base, self._chunk(n, m))
            tasks, most, chunks = self._tasks(job), 0, -(-m // int(job[programs.CHUNK]))
        V, out = _writeable(V), np.zeros((chunks, n, k))

        def loop(team: Team) -> None:
            programs.multiply(job, self._code, V, out, team, self._room(job))

        self._share(loop, job, tasks, n_jobs, "kernel product", most)
        return out[0] if chunks == 1 else out.sum(axis=0)

    def sweep(self, V: Array, targets: Matrix, weights: Vector, n_jobs: int | None) -> tuple[Matrix, Vector]:
        """``K^T U`` with ``U = weights * (targets - K V)``, (m, t), and the weighted squares of what is left, (t,).

        The prediction of targets beyond the columns of V is 0.
        """
        (n, m), t = self.shape, targets.shape[1]
        side = max(_LEAST_SIDE, min(TILE, strips.entries_at_once(self.dtype) // m))
        groups = strips.group_count(-(-n // side), m * t)
        V, targets, weights = _writeable(V), _writeable(targets), _writeable(weights)
        job = self._new_job(n, m, side, m)
        products, sums = np.zeros((groups, t, m)), np.zeros((groups, t))

        def loop(team: Team) -> None:
            room = self._room(job, more=side * (m + t))
            programs.sweep(job, self._code, V, Weighted(targets, weights), Sums(products, sums), team, room)

        self._share(loop, job, -(-n // side), n_jobs, "kernel pass", groups)
        return np.ascontiguousarray(products.sum(axis=0).T), sums.sum(axis=0)

    @staticmethod
    def _side(n: int) -> int:
        """Rows of a strip of a symmetric product: a power of two, so that tiles are whole."""
        return min(TILE, max(_LEAST_SIDE, 1 << (max(n // (_TASKS // 2), 1).bit_length() - 1)))

    def _chunk(self, n: int, m: int) -> int:
        """Columns of a task."""
        several = max(1, _TASKS // -(-n // self._base))
        return -(-m // several // self._base) * self._base

    @staticmethod
    def _tasks(job: Integers) -> int:
        """Pieces of a block."""
        return int(-(-job[programs.ROWS] // job[programs.SIDE]) * -(-job[programs.COLUMNS] // job[programs.CHUNK]))

    def _new_job(self, n: int, m: int, side: int, chunk: int, picked: bool = False) -> Integers:
        job = self._job.copy()
        job[[programs.ROWS, programs.COLUMNS]] = n, m
        job[[programs.SIDE, programs.CHUNK]] = side, chunk
        base = self._base
        most = max(_GATHERED // max(self._width, 1), 16)
        tall = max(min(side, base, most if picked else base), 16)
        job[[programs.TALL, programs.WIDE]] = tall, min(base * base // tall, most if self._turned else base * base)
        return job

    def _aim(self, job: Integers, out: Array) -> None:
        job[[programs.TARGET, programs.STRIDE]] = (
            out.ctypes.data,
            out.strides[0] // out.itemsize if len(out) > 1 else out.shape[1],
        )

    def _share(
        self, loop: Callable[[Team], None], job: Integers, tasks: int, n_jobs: int | None, what: str, most: int = 0
    ) -> Integers:
        """Have at most so many workers (0: one for each task) run a loop, and return what they shared."""
        n, m, side = (int(job[i]) for i in (programs.ROWS, programs.COLUMNS, programs.SIDE))
        shared = np.zeros(programs.ROUNDS - (-n // side), np.int64)
        # Additions and multiplications, about.
        work = n * m * (self._width + 16 * len(self.steps))
        progress = Progress(tasks, what)

        def look() -> None:
            if done := int(shared[programs.DONE]) - progress.done:
                progress.advance(done)

        workers = min(settings.resolve_jobs(n_jobs), most or tasks, 1 + work // _WORTH)
        threads.share(lambda stop: loop(Team(shared, stop)), workers, work, look)
        return shared

    def _room(self, job: Integers, picked: bool = False, more: int = 0) -> Array:
        """A work array of this thread: tiles, rows that are gathered and turned, and more."""
        tall, wide = int(job[programs.TALL]), int(job[programs.WIDE])
        tiles = int(job[programs.STORED] + job[programs.DEPTH]) * tall * wide
        rows = (self._width + 1) * tall * picked + self._width * wide * self._turned
        return scratch_tile("program", (tiles + rows + more,), self.dtype)


def _writeable(array: Any) -> Any:
    """The same numbers in the one form that loops are compiled for."""
    return array if array.flags.writeable and array.flags.c_contiguous else np.array(array, order="C")


def _inside(positions: Array, n: int) -> Integers:
    """Positions counted from the first of n rows, as new numbers.

    >>> _inside(np.array([0, -1]), 3).tolist()
    [0, 2]
    """
    found = np.array(positions, np.int64)
    found[found < 0] += n
    if found.size and not (found.min() >= 0 and found.max() < n):
        raise IndexError(f"positions of rows range from {positions.min()} to {positions.max()}, but there are {n}.")
    return found
