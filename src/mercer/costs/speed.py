"""How fast this machine evaluates a kernel and multiplies matrices, from a few milliseconds of work of one thread."""

from __future__ import annotations

import operator
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from mercer._types import AnyArray
from mercer.costs.ways import Way
from mercer.engine import lapack, threads
from mercer.gram import Gram
from mercer.kernels import Kernel

# Rows of the smallest tile, and the seconds that make a measurement.
_FEWEST, _ENOUGH = 8, 2e-3
_REPEATS = 3
# Side of the matrices that are factored and multiplied.
_SIDE = 1024
# How often memory is written: tiles, their mirror images, and what is made of them.
_COPIES = 2
# Numbers of an array that no cache holds.
_NUMBERS = 2**22


@dataclass(frozen=True)
class Speed:
    """CPU seconds of one thread.

    Parameters
    ----------
    double, single : float
        Of a kernel value with its share of a product, in float64 and in float32.
    operation, operation_in_single : float
        Of an operation of matrix algebra.
    written, read : float
        Of a byte of new memory, and of one that comes from memory.
    """

    double: float
    single: float
    operation: float
    operation_in_single: float
    written: float
    read: float

    @classmethod
    def of(cls, kernel: Kernel | None, rows: Any) -> Speed:
        """Measure; without a kernel its values cost nothing.

        Parameters
        ----------
        kernel : Kernel or None
        rows : array, CSR matrix, Objects or MixedRows
            Some rows of the data.
        """
        with threads.one_blas_thread(), np.errstate(over="ignore", invalid="ignore"):
            values = [0.0 if kernel is None else _of_values(kernel, rows, dtype) for dtype in (np.float64, np.float32)]
            algebra = [_of_algebra(dtype) for dtype in (np.float64, np.float32)]
            moved = _of_memory()
        return cls(values[0], values[1], algebra[0], algebra[1], *moved)

    def seconds(self, way: Way, workers: int) -> float:
        """What a way takes on so many threads."""
        exact = way.before + way.a_pass * min(way.exact, way.passes)
        single = way.a_pass * (way.passes - min(way.exact, way.passes))
        kernel = exact * self.double + single * self.single
        algebra = way.operations * self.operation + way.single * self.operation_in_single
        return (kernel + algebra + _COPIES * way.nbytes * self.written + way.read * self.read) / workers


def _of_values(kernel: Kernel, rows: Any, dtype: type) -> float:
    """Seconds of a value, from tiles of rows that become larger until they take long enough."""
    n, count = rows.shape[0], _FEWEST
    while True:
        count = min(count, n)
        part = rows[:count]
        # Two sides, so that no entry is taken from the other triangle.
        gram = Gram(kernel, part, rows[n - count :], dtype=dtype, n_jobs=1)
        column = np.ones(count, dtype=dtype)
        gram @ column
        taken = _least(partial(operator.matmul, gram, column))
        if taken >= _ENOUGH or count == n:
            return taken / count**2
        count *= 4


def _of_algebra(dtype: type) -> float:
    matrix: AnyArray = np.eye(_SIDE, dtype=dtype)
    with threads.workers(1):
        # The diagonal of ones stays what it is.
        return _least(lambda: lapack.factor_cholesky(matrix)) / (_SIDE**3 / 3)


def _of_memory() -> tuple[float, float]:
    """Seconds of a byte of a new array, and of one that is read."""
    size = 8 * _NUMBERS
    written = _least(lambda: np.ones(_NUMBERS)) / size
    array = np.ones(_NUMBERS)
    return written, _least(lambda: array @ array) / (2 * size)


def _least(work: Callable[[], Any]) -> float:
    times = []
    for _ in range(_REPEATS):
        start_time = time.thread_time()
        work()
        times.append(time.thread_time() - start_time)
    return max(min(times), 1e-9)
