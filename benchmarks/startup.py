"""Start-up: the import, and what the first fit of a new process costs with a warm and with a cold numba cache."""

from __future__ import annotations

import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time

from harness import Row

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

IRIS = """
import time
from sklearn.datasets import load_iris
from mercer import SVC
X, y = load_iris(return_X_y=True)
start_time = time.perf_counter()
SVC().fit(X, y)
print(time.perf_counter() - start_time)
"""

LEARNER = """
import resource
{}
used = resource.getrusage(resource.RUSAGE_SELF)
print(used.ru_utime + used.ru_stime, used.ru_maxrss / 1024)
"""

# What a process of its own runs after a first fit, twice: the demand is about the difference.
PATHS = {
    "SVC.fit, SVC.predict": "SVC().fit(X, y).predict(X)",
    "SVC.predict_proba": "SVC(probability=True).fit(X, y).predict_proba(X)",
    "GridSearchCV of SVC, 3 x 3": "GridSearchCV(SVC(), {'C': [0.1, 1, 10], 'gamma': [0.01, 0.1, 1]}).fit(X, y)",
    "KernelRidge": "KernelRidge(kernel='rbf').fit(X, y).predict(X)",
    "GaussianProcessRegressor": "GaussianProcessRegressor().fit(X, y).predict(X, return_std=True)",
    "KernelRidge over landmarks": "KernelRidge(kernel='rbf', approximation='nystroem').fit(X, y).predict(X)",
    "SVC over landmarks": "SVC(approximation='nystroem').fit(X, y).predict(X)",
    "KernelKMeans": "KernelKMeans(n_clusters=3, random_state=0).fit(X).predict(X)",
    "report": "report(SVC().fit(X, y), X, y)",
}

PATH = """
import time
from sklearn.datasets import load_iris
from mercer import *
X, y = load_iris(return_X_y=True)
SVC().fit(X, y)
def seconds():
    start_time = time.process_time()
    {}
    return time.process_time() - start_time
print(seconds(), seconds())
"""

IMPORT = "import time; begun = time.perf_counter(); import mercer; print(time.perf_counter() - begun)"


def _outcome(code: str, cache: str | None = None, package: str = "") -> tuple[list[float], str]:
    environment = {**os.environ, "PYTHONPATH": package}
    if cache is not None:
        environment["NUMBA_CACHE_DIR"] = cache
    process = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    return [float(word) for word in process.stdout.split()], process.stderr


def _cpu_seconds(command: list[str] | str) -> float:
    """User and system time of a process that runs a command of Mercer, or some code."""
    what = ["-c", command] if isinstance(command, str) else ["-m", "mercer", *command]
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    process = subprocess.run([sys.executable, *what], capture_output=True, text=True, check=False)
    if process.returncode != (2 if "missing.csv" in what else 0):
        raise RuntimeError(f"{what} ended with {process.returncode}: {process.stderr[-500:]}")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def _beside_sklearn() -> list[Row]:
    """What the import of a learner costs, beside scikit-learn's."""
    (seconds, memory), (peer_seconds, peer_memory) = (
        [statistics.median(column) for column in zip(*(_outcome(LEARNER.format(line))[0] for _ in range(5)))]
        for line in ("from mercer import SVC", "from sklearn.svm import SVC")
    )
    ratio, more = seconds / peer_seconds, memory - peer_memory
    return [
        Row("from mercer import SVC, CPU", "sklearn.svm", seconds, peer_seconds, "< 1.3 x", ratio < 1.3),
        Row("from mercer import SVC, MB", "sklearn.svm", memory, peer_memory, "< 60 MB more", more < 60),
    ]


def _first_fits() -> list[Row]:
    """The first SVC on iris: with an empty cache, in the next process, and after a warm-up of another cache."""
    with tempfile.TemporaryDirectory() as empty, tempfile.TemporaryDirectory() as warmed:
        cold, warm = (_outcome(IRIS, empty)[0][0] for _ in range(2))
        start_time = time.perf_counter()
        environment = {**os.environ, "NUMBA_CACHE_DIR": warmed}
        subprocess.run([sys.executable, "-m", "mercer", "warm-up"], env=environment, capture_output=True, check=True)
        seconds = time.perf_counter() - start_time
        after = _outcome(IRIS, warmed)[0][0]
    return [
        Row("first SVC on iris, cold cache", "limit", cold, 8.0, "< 8 s", cold < 8),
        Row("first SVC on iris, warm cache", "limit", warm, 2.0, "< 2 s", warm < 2),
        Row("first SVC on iris, after a warm-up", "limit", after, 2.0, "< 2 s", after < 2, f"warm-up {seconds:.0f} s"),
    ]


def _from_a_wheel() -> list[Row]:
    """What is left to wait for with a wheel of compiled loops, which MERCER_WHEEL names, and nothing else stored."""
    wheel = os.environ.get("MERCER_WHEEL")
    if wheel is None:
        return []
    with tempfile.TemporaryDirectory() as package, tempfile.TemporaryDirectory() as cache:
        install = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target", package, wheel]
        subprocess.run(install, check=True)
        first = _outcome(IRIS, cache, package)[0][0]
        rows = [Row("first SVC on iris, from a wheel", "limit", first, 2.0, "< 2 s", first < 2)]
        for name, call in PATHS.items():
            first, second = _outcome(PATH.format(call), cache, package)[0]
            more = first - second < 1
            rows.append(Row(f"{name}, from a wheel, CPU", "second call", first, second, "< 1 s more", more))
        compiled = [path for _, _, paths in os.walk(cache) for path in paths]
        note = f"{len(compiled)} loops"
        return [*rows, Row("compiled although the wheel is there", "", None, None, "nothing", not compiled, note)]


def run() -> list[Row]:
    """All rows of the section; the "peer" column holds the limit or the later fits."""
    seconds = statistics.median(_outcome(IMPORT)[0][0] for _ in range(5))
    rows = [Row("import mercer", "limit", seconds, 0.15, "< 0.15 s", seconds < 0.15)]
    with tempfile.TemporaryDirectory() as folder:
        model = os.path.join(folder, "iris.mercer")
        fitted = ["fit", "sample:iris", "--quiet", "--out", model]
        # The first run may compile.
        _cpu_seconds(fitted)
        commands = (
            (["--help"], 0.5),
            (["samples"], 0.5),
            (["fit", "missing.csv"], 0.5),
            (["inspect", model], 0.5),
            (fitted, 1.5),
        )
        for command, limit in commands:
            spent = statistics.median(_cpu_seconds(command) for _ in range(5))
            name = " ".join("iris.mercer" if word == model else word for word in command[:2])
            rows.append(Row(f"mercer {name}, CPU", "limit", spent, limit, f"< {limit} s", spent < limit))
        # What the packages cost that any fit needs.
        floor = statistics.median(_cpu_seconds("import numba, sklearn.base") for _ in range(5))
        rows.append(Row("mercer fit sample:iris, CPU", "import numba, sklearn.base", spent, floor, "", True))
    with tempfile.TemporaryDirectory() as cache:
        (cold, later), message = _outcome(FIT, cache)
        note = "says that it compiles" if "compiling" in message else "SILENT"
        met = cold < 15 and "compiling" in message
        rows.append(Row("first fits, cold cache", "limit", cold, 15.0, "< 15 s", met, note))
        firsts = [_outcome(FIT, cache)[0] for _ in range(5)]
    warm = statistics.median(first for first, _ in firsts)
    later = statistics.median(second for _, second in firsts)
    rows.append(Row("first fits, warm cache", "later fits", warm, later, "< 1 s more", warm - later < 1))
    return rows + _beside_sklearn() + _first_fits() + _from_a_wheel()
