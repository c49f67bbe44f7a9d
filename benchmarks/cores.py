"""How work shares the cores: with 1, 2, 4, ... threads, and beside a Python thread that never rests.

The second shows how often work enters Python, where it waits up to 5 ms for such a thread: it is how a notebook or a
web server feels.
"""

from __future__ import annotations

import itertools
import os
import statistics
import threading
import time
from collections.abc import Callable
from contextlib import contextmanager

import numpy as np

import mercer
from harness import Row
from mercer import SVC, GridSearchCV, KernelLogisticRegression, KernelRidge, TabularRegressor, kernels

TITLE = "Cores: threads, and a Python thread that never rests"
_REPEATS = 3
# Seconds from which a run is not repeated.
_SLOW = 3.0


def _seconds(work: Callable[[], object]) -> float:
    times = []
    for _ in range(_REPEATS):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
        if times[0] > _SLOW:
            break
    return statistics.median(times)


@contextmanager
def _restless():
    """A thread that never rests, in the block."""
    stop = threading.Event()

    def spin() -> None:
        while not stop.is_set():
            pass

    thread = threading.Thread(target=spin, daemon=True)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


def _works() -> dict[str, tuple[Callable[[], object], float, bool]]:
    """Each with the speed-up to reach on 16 cores, or 0, and whether it is run beside a restless thread."""
    random = np.random.default_rng(0)
    X = random.normal(size=(400_000, 20))
    y = np.sin(X[:, 0]) + X[:, 1] * X[:, 2] + 0.1 * random.normal(size=len(X))
    classes = (y > 0).astype(int)
    narrow = X[:40_000, :10].astype(np.float32)
    v = random.normal(size=40_000).astype(np.float32)
    gram = mercer.Gram(kernels.RBF(10**0.5), narrow)
    part = mercer.Gram(kernels.RBF(10**0.5), narrow[:20_000])
    nystroem = {"kernel": "rbf", "approximation": "nystroem", "n_landmarks": 2000, "random_state": 0}
    grid = {"C": [0.1, 1.0, 10.0, 100.0, 1000.0], "gamma": [0.003, 0.01, 0.03, 0.1, 0.3]}
    logistic = (lambda: KernelLogisticRegression().fit(X[:5000], classes[:5000]), 5.0, True)
    search = (lambda: GridSearchCV(SVC(), grid, cv=5).fit(X[:2000], classes[:2000]), 8.0, True)
    return {
        "lazy K v, 40,000 x 10, float32": (lambda: gram @ v, 11.0, False),
        "lazy K v, 20,000 x 10, float32": (lambda: part @ v[:20_000], 0.0, True),
        "SVC, 40,000 x 20": (lambda: SVC().fit(X[:40_000], classes[:40_000]), 5.0, False),
        "SVC, 20,000 x 20": (lambda: SVC().fit(X[:20_000], classes[:20_000]), 0.0, True),
        "Nystroem ridge, 200,000 x 20, 2000 landmarks": (
            lambda: KernelRidge(**nystroem).fit(X[:200_000], y[:200_000]),
            10.0,
            True,
        ),
        "KernelRidge, 8000 x 20": (lambda: KernelRidge(kernel="rbf").fit(X[:8000], y[:8000]), 6.0, False),
        "logistic, 5000 x 20": logistic,
        "GridSearchCV(SVC()), 5 x 5, 2000 x 20": search,
        "TabularRegressor, 4000 x 10": (lambda: TabularRegressor().fit(X[:4000, :10], y[:4000]), 4.0, False),
    }


def run() -> list[Row]:
    """All rows of the section."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    numbers = [2**i for i in range(cores.bit_length()) if 2**i <= cores]
    rows = []
    for name, (work, speedup, restless) in _works().items():
        with mercer.config(n_jobs=1):
            work()
        if speedup:
            times = {}
            for threads in numbers:
                with mercer.config(n_jobs=threads):
                    times[threads] = _seconds(work)
            best = numbers[-1]
            never_slower = all(times[b] <= 1.05 * times[a] for a, b in itertools.pairwise(numbers))
            # The demand is for 16 cores; of fewer, in proportion.
            wanted = 1 + (speedup - 1) * (best - 1) / 15
            note = ", ".join(f"{n}: {t:.3g} s" for n, t in times.items())
            met = times[1] / times[best] >= wanted and never_slower
            demand = f">= {wanted:.2g} ({speedup:g} on 16)"
            rows.append(Row(f"{name}, {best} threads", "1 thread", times[best], times[1], demand, met, note))
        if restless:
            with mercer.config(n_jobs=1):
                alone = _seconds(work)
                with _restless():
                    beside = _seconds(work)
            met = beside <= 1.3 * alone + 0.1
            case = f"{name}, 1 worker beside a restless thread"
            rows.append(Row(case, "without it", beside, alone, "<= 1.3 x + .1 s", met))
    return rows
