"""How fast this machine evaluates a kernel and multiplies matrices, on one thread and on several."""

from __future__ import annotations

import functools
import operator
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from mercer._types import AnyArray
from mercer.costs.ways import Way
from mercer.engine import lapack, threads
from mercer.engine.tiles import TILE, spans
from mercer.gram import Gram
from mercer.kernels import RBF, Kernel

# Rows of the smallest tile, and the seconds that make a measurement.
_FEWEST, _ENOUGH = 8, 2e-3
_REPEATS = 4
# Side of the matrices that are factored on one thread, and of those that several threads share.
_SIDE, _SHARED_SIDE = 1024, 1536
# How often memory is written: tiles, their mirror images, and what is made of them.
_COPIES = 2
# Numbers of an array that no cache holds.
_NUMBERS = 2**22
# Seconds that checks and layers take before the first step.
_BEGIN = 4e-3


@dataclass(frozen=True)
class Machine:
    """What does not depend on the kernel.

    Parameters
    ----------
    operation, operation_in_single : float
        CPU seconds of an operation of matrix algebra on one thread.
    written, read : float
        The same of a byte of new memory, and of one that comes from memory.
    products, algebra, memory : float
        How many times as fast the threads together are.
    """

    operation: float
    operation_in_single: float
    written: float
    read: float
    products: float = 1.0
    algebra: float = 1.0
    memory: float = 1.0

    @classmethod
    @functools.cache
    def of(cls, workers: int) -> Machine:
        """Measure, once for each number of threads."""
        ones = np.ones(_NUMBERS)
        if workers == 1:
            with threads.workers(1):
                written = _least(lambda: np.ones(_NUMBERS)) / ones.nbytes
                read = _least(lambda: ones @ ones) / (2 * ones.nbytes)
                double, single = (_least(_factor(_SIDE, dtype)) / (_SIDE**3 / 3) for dtype in (float, np.float32))
            return cls(double, single, written, read)
        rows = np.random.default_rng(0).standard_normal((_SHARED_SIDE, 10))
        product = partial(operator.matmul, Gram(RBF(1.0), rows, rows.copy()), rows[:, 0])
        parts = [ones[part] for part in spans(_NUMBERS, max(TILE, _NUMBERS // (4 * workers)))]
        sums = [partial(operator.matmul, part, part) for part in parts]
        return replace(
            cls.of(1),
            products=_gain(product, workers),
            algebra=_gain(_factor(_SHARED_SIDE, float), workers),
            memory=_gain(lambda: threads.run(sums), workers),
        )


@dataclass(frozen=True)
class Speed:
    """CPU seconds of a kernel value with its share of a product on one thread, in float64 and in float32."""

    double: float
    single: float
    machine: Machine

    @classmethod
    def of(cls, kernel: Kernel | None, rows: Any, workers: int) -> Speed:
        """Measure; without a kernel its values cost nothing.

        Parameters
        ----------
        kernel : Kernel or None
        rows : array, CSR matrix, Objects or MixedRows
            Some rows of the data.
        workers : int
            The threads of the fit.
        """
        with threads.workers(1), np.errstate(over="ignore", invalid="ignore"):
            values = [0.0 if kernel is None else _of_values(kernel, rows, dtype) for dtype in (np.float64, np.float32)]
        return cls(values[0], values[1], Machine.of(workers))

    def seconds(self, way: Way, n: int) -> float:
        """What a way takes for n rows: the first tile of any work is one thread's, and the threads share the others."""
        rate, alone = self.machine, min(1.0, TILE / n)
        exact = way.before + way.a_pass * min(way.exact, way.passes)
        single = way.a_pass * (way.passes - min(way.exact, way.passes))
        shared = (
            (exact * self.double + single * self.single, rate.products),
            (way.operations * rate.operation + way.single * rate.operation_in_single, rate.algebra),
            (_COPIES * way.nbytes * rate.written + way.read * rate.read, rate.memory),
        )
        parts = sum(seconds * (alone + (1 - alone) / gain) for seconds, gain in shared)
        return _BEGIN + way.alone * rate.operation + parts


def _of_values(kernel: Kernel, rows: Any, dtype: type) -> float:
    """Seconds of a value, from tiles of rows that become larger until they take long enough."""
    n, count = rows.shape[0], _FEWEST
    while True:
        count = min(count, n)
        # Two sides, so that no entry is taken from the other triangle.
        gram = Gram(kernel, rows[:count], rows[n - count :], dtype=dtype, n_jobs=1)
        column = np.ones(count, dtype=dtype)
        gram @ column
        taken = _least(partial(operator.matmul, gram, column))
        if taken >= _ENOUGH or count == n:
            return taken / count**2
        count *= 4


def _factor(side: int, dtype: type) -> Callable[[], Any]:
    matrix: AnyArray = np.eye(side, dtype=dtype)
    # The diagonal of ones stays what it is.
    return lambda: lapack.factor_cholesky(matrix)


def _gain(work: Callable[[], Any], workers: int) -> float:
    """How many times as fast so many threads are as one; both in turn, since other programs may run."""
    taken: dict[int, list[float]] = {1: [], workers: []}
    for jobs in list(taken) * _REPEATS:
        with threads.workers(jobs):
            taken[jobs].append(_least(work, 1, time.perf_counter))
    return float(np.clip(min(taken[1]) / min(taken[workers]), 1.0, workers))


def _least(work: Callable[[], Any], repeats: int = _REPEATS, clock: Callable[[], float] = time.thread_time) -> float:
    times = []
    for _ in range(repeats):
        start_time = clock()
        work()
        times.append(clock() - start_time)
    return max(min(times), 1e-9)
