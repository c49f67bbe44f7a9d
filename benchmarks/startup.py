"""Start-up: the import, and what the first fit of a new process costs with a warm and with a cold numba cache."""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile

from harness import Row, seconds_of

TITLE = "Start-up, whole processes"

FIT = """
import time
import numpy as np
from mercer import KernelRidge, SVC
X = np.random.default_rng(0).normal(size=(500, 5)); y = X[:, 0] > 0
def fit():
    begun = time.perf_counter()
    SVC(gamma=0.1).fit(X, y)
    KernelRidge(alpha=1.0, kernel="rbf").fit(X, y * 1.0)
    return time.perf_counter() - begun
first = fit()
print(first, min(fit() for _ in range(3)))
"""

IMPORT = "import time; begun = time.perf_counter(); import mercer; print(time.perf_counter() - begun)"


def _outcome(code: str, cache: str | None = None) -> tuple[list[float], str]:
    environment = dict(os.environ)
    if cache is not None:
        environment["NUMBA_CACHE_DIR"] = cache
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    return [float(word) for word in done.stdout.split()], done.stderr


def run() -> list[Row]:
    """All rows of the section; the "peer" column holds the limit or the later fits."""
    seconds = statistics.median(_outcome(IMPORT)[0][0] for _ in range(5))
    rows = [Row("import mercer", "limit", seconds, 0.15, "< 0.15 s", seconds < 0.15)]
    shown = [sys.executable, "-m", "mercer.cli", "--help"]
    runs = [seconds_of(lambda: subprocess.run(shown, capture_output=True, check=True)) for _ in range(5)]
    helped = statistics.median(runs)
    rows.append(Row("mercer --help", "limit", helped, 0.5, "< 0.5 s", helped < 0.5))
    with tempfile.TemporaryDirectory() as cache:
        (cold, later), said = _outcome(FIT, cache)
        note = "says that it compiles" if "compiling" in said else "SILENT"
        met = cold < 15 and "compiling" in said
        rows.append(Row("first fits, cold cache", "limit", cold, 15.0, "< 15 s", met, note))
        firsts = [_outcome(FIT, cache)[0] for _ in range(5)]
    warm = statistics.median(first for first, _ in firsts)
    later = statistics.median(second for _, second in firsts)
    rows.append(Row("first fits, warm cache", "later fits", warm, later, "< 1 s more", warm - later < 1))
    return rows
