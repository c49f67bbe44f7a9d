"""Ctrl-C ends a fit, or a kernel matrix, within two seconds of work of any thread, as a KeyboardInterrupt."""

from __future__ import annotations

import itertools
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from estimator_table import ALL

pytestmark = pytest.mark.skipif(not Path("/proc/self/task").is_dir(), reason="needs /proc, for the time of threads")

# Seconds of processor time: from the beginning of the work to Ctrl-C, and from there to the end of the process, of any
# one thread. By the clock it is longer on a busy machine.
EARLY, DELAY, PATIENCE = 0.6, 1.5, 2.0

# What every case stands on is imported once: a case is a fork of that process, which then runs and ends as any other.
_PREPARED = """
import os, random, signal, sys, warnings
warnings.simplefilter("ignore")
import numpy as np
import mercer
from mercer import *
from mercer import kernels as k
rng = np.random.default_rng(0)

def vectors(n, d):
    X = rng.normal(size=(n, d))
    noise = rng.normal(size=n)
    return X, np.where(X[:, 0] * X[:, 1] + noise > 0, "a", "b"), np.sin(X[:, 0]) + 0.3 * noise, rng.integers(0, 6, n)

def strings(n, m):
    return np.array(list("abcdefgh"))[rng.integers(0, 8, (n, m), np.uint8)].view(f"U{m}")[:, 0].tolist()

def graphs(n, m):
    edges = rng.integers(0, m, (n, 3 * m, 2)).tolist()
    labels = np.array(list("CNO"))[rng.integers(0, 3, (n, m))].tolist()
    return [(list(map(tuple, own)), its, [1] * len(own)) for own, its in zip(edges, labels)]

def trees(n, m):
    below = random.Random(0).random
    def tree(size):
        if size < 2:
            return "ab"[int(2 * below())]
        left = 1 + int((size - 1) * below())
        return f"({'abc'[int(3 * below())]} {tree(left)} {tree(size - left)})"
    return [tree(m) for _ in range(n)]

def arrays(n, *shape):
    return list(rng.uniform(size=(n, *shape)))

for name in mercer.__all__:
    getattr(mercer, name)
for line in sys.stdin:
    work, out, err = eval(line)
    child = os.fork()
    if child == 0:
        for stream, path in ((1, out), (2, err)):
            os.dup2(os.open(path, os.O_WRONLY | os.O_CREAT), stream)
        break
    print(child, flush=True)
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
else:
    sys.exit()
signal.signal(signal.SIGINT, signal.default_int_handler)
exec(work)
print("END", flush=True)
"""

# Each would take at least ten seconds on one core of today.
FITS = {
    "SVC": "X, c, y, m = vectors(12_000, 20)\nSTART\nSVC(C=1000).fit(X, c)",
    "SVC, probability": "X, c, y, m = vectors(6_000, 20)\nSTART\nSVC(C=100, probability=True).fit(X, m)",
    "NuSVC": "X, c, y, m = vectors(12_000, 20)\nSTART\nNuSVC(nu=0.3).fit(X, c)",
    "KernelLogisticRegression": "X, c, y, m = vectors(5_000, 10)\nSTART\nKernelLogisticRegression(C=1e3).fit(X, m)",
    "KernelOrdinalRegression":
        "X, c, y, m = vectors(4_000, 10)\nSTART\nKernelOrdinalRegression(slope='evidence').fit(X, m)",
    "KernelOrdinalRegression, indefinite":
        "X, c, y, m = vectors(7_000, 10)\nkernel = k.Sigmoid(1.0)\nSTART\n"
        "KernelOrdinalRegression(kernel=kernel, C=10.0, allow_indefinite=True).fit(X, m)",
    "GaussianProcessOrdinalRegression":
        "X, c, y, m = vectors(3_000, 5)\nSTART\nGaussianProcessOrdinalRegression().fit(X, m)",
    "GaussianProcessOrdinalRegression, restarts":
        "X, c, y, m = vectors(3_000, 5)\nSTART\n"
        "GaussianProcessOrdinalRegression(n_restarts_optimizer=4, random_state=0).fit(X, m)",
    "GaussianProcessClassifier": "X, c, y, m = vectors(4_000, 10)\nkernel = 1.0 * k.RBF(1.0)\nSTART\n"
        "GaussianProcessClassifier(kernel, n_restarts_optimizer=4, random_state=0).fit(X, c)",
    "GaussianProcessClassifier, six classes":
        "X, c, y, m = vectors(4_000, 10)\nSTART\nGaussianProcessClassifier().fit(X, m)",
    "GaussianProcessClassifier, landmarks":
        "X, c, y, m = vectors(200_000, 10)\nSTART\n"
        "GaussianProcessClassifier(approximation='nystroem', landmarks='uniform').fit(X, c)",
    "GaussianProcessRegressor":
        "X, c, y, m = vectors(3_000, 10)\nkernel = 1.0 * k.RBF(1.0)\nSTART\n"
        "GaussianProcessRegressor(kernel, alpha=0.1, n_restarts_optimizer=5, random_state=0).fit(X, y)",
    "KernelRidge": "X, c, y, m = vectors(14_000, 10)\nSTART\nKernelRidge(1e-6, kernel='rbf').fit(X, y)",
    "KernelRidge, products":
        "X, c, y, m = vectors(30_000, 10)\nSTART\nKernelRidge(1e-6, kernel='rbf', solver='cg').fit(X, y)",
    "KernelRidge, landmarks":
        "X, c, y, m = vectors(400_000, 10)\nSTART\n"
        "KernelRidge(1e-3, kernel='rbf', approximation='nystroem', n_landmarks=2000).fit(X, y)",
    "SVC, landmarks":
        "X, c, y, m = vectors(200_000, 10)\nSTART\nSVC(C=100, approximation='nystroem', n_landmarks=1000).fit(X, c)",
    "KernelRidge, indefinite":
        "X, c, y, m = vectors(9_000, 10)\nkernel = k.Sigmoid(1.0)\nSTART\n"
        "KernelRidge(1e-3, kernel=kernel, allow_indefinite=True).fit(X, y)",
    "KernelRidge, leave-one-out": "X, c, y, m = vectors(7_000, 10)\nSTART\nKernelRidge('loo', kernel='rbf').fit(X, y)",
    "MultipleKernelRidge": "X, c, y, m = vectors(6_000, 10)\nSTART\nMultipleKernelRidge().fit(X, y)",
    "MultipleKernelRidge, random":
        "X, c, y, m = vectors(6_000, 10)\nSTART\nMultipleKernelRidge(search='random').fit(X, y)",
    "MultipleKernelSVC":
        "X, c, y, m = vectors(4_000, 10)\nSTART\n"
        "MultipleKernelSVC(kernel='RBF(0.3) + RBF(3.0) + Linear()', C=1e3, tol=1e-6).fit(X, c)",
    "MultipleKernelSVR":
        "X, c, y, m = vectors(4_000, 10)\nSTART\n"
        "MultipleKernelSVR(kernel='RBF(0.3) + RBF(3.0) + Linear()', C=1e3, tol=1e-6).fit(X, y)",
    "KernelRidge, kernel by leave-one-out":
        "X, c, y, m = vectors(7_000, 10)\nSTART\nKernelRidge('loo', kernel='rbf', gamma='loo').fit(X, y)",
    "KernelLMS": "X, c, y, m = vectors(12_000, 20)\nSTART\nKernelLMS(tol=1e-9, max_iter=100_000).fit(X, y)",
    "KernelSGDClassifier":
        "X, c, y, m = vectors(40_000, 20)\nSTART\nKernelSGDClassifier(alpha=1e-8, max_iter=9_999, tol=1e-12).fit(X, c)",
    "KernelPerceptron": "X, c, y, m = vectors(20_000, 20)\nSTART\nKernelPerceptron(max_iter=10_000).fit(X, c)",
    "OnlineKernelLogisticRegression":
        "X, c, y, m = vectors(60_000, 20)\nSTART\nOnlineKernelLogisticRegression(budget=2_000, max_iter=50).fit(X, c)",
    "OnlineKernelRegressor":
        "X, c, y, m = vectors(60_000, 20)\nSTART\nOnlineKernelRegressor(budget=4_000, max_iter=50).fit(X, y)",
    "SVR": "X, c, y, m = vectors(12_000, 20)\nSTART\nSVR(C=1000, epsilon=0.01).fit(X, y)",
    "NuSVR": "X, c, y, m = vectors(12_000, 20)\nSTART\nNuSVR(C=1000).fit(X, y)",
    "KernelQuantileRegression":
        "X, c, y, m = vectors(4_000, 10)\nSTART\nKernelQuantileRegression([0.1, 0.5, 0.9], C=100).fit(X, y)",
    "KernelMachine": "X, c, y, m = vectors(7_000, 10)\nSTART\nKernelMachine('huber', alpha=1e-4).fit(X, y)",
    "KernelMachine, indefinite":
        "X, c, y, m = vectors(6_000, 10)\nkernel = k.Sigmoid(1.0)\nSTART\n"
        "KernelMachine('logistic', kernel=kernel, alpha=1e-3, allow_indefinite=True).fit(X, c)",
    "OneClassSVM": "X, c, y, m = vectors(60_000, 20)\nSTART\nOneClassSVM(nu=0.5).fit(X)",
    "KernelPCA": "X, c, y, m = vectors(3_500, 10)\nSTART\nKernelPCA(None, kernel='rbf').fit(X)",
    "KernelPCA, Lanczos": "X, c, y, m = vectors(20_000, 20)\nSTART\nKernelPCA(100, kernel='rbf').fit(X)",
    "KernelKMeans": "X, c, y, m = vectors(20_000, 20)\nSTART\nKernelKMeans(20, kernel='rbf', n_init=20).fit(X)",
    "KernelKMeans, linear":
        "X, c, y, m = vectors(200_000, 20)\nSTART\nKernelKMeans(50, kernel='linear', n_init=20).fit(X)",
    "KernelLocalOutlierFactor":
        "X, c, y, m = vectors(60_000, 30)\nSTART\nKernelLocalOutlierFactor().fit(X)",
    "KernelNeighborsClassifier":
        "X, c, y, m = vectors(60_000, 30)\nSTART\nKernelNeighborsClassifier().fit(X, c).predict(X)",
    "KernelNeighborsRegressor":
        "X, c, y, m = vectors(60_000, 30)\nSTART\nKernelNeighborsRegressor().fit(X, y).predict(X)",
    "TabularRegressor": "X, c, y, m = vectors(6_000, 20)\nSTART\nTabularRegressor(search_rows=4000).fit(X, y)",
    "TabularClassifier": "X, c, y, m = vectors(6_000, 20)\nSTART\nTabularClassifier(search_rows=4000).fit(X, m)",
    "BayesianLinearRegression": "X, c, y, m = vectors(3_000, 4_000)\nSTART\nBayesianLinearRegression().fit(X, y)",
}  # fmt: skip

# Many rows, repeated where they take long to make, or few long ones; for one pair see ``kernels/test_interruption.py``.
MATRICES = {
    "Spectrum": "X = strings(6_000, 1_500)\nSTART\nk.Spectrum(12)(X)",
    "BlendedSpectrum": "X = strings(6_000, 800)\nSTART\nk.BlendedSpectrum(6)(X)",
    "Subsequence": "X = strings(4_000, 1_000)\nSTART\nk.Subsequence(4)(X)",
    "EditDistance": "X = strings(6_000, 1_000)\nSTART\nk.EditDistance(0.1)(X)",
    "GappyKmers": "X = strings(6_000, 1_000)\nSTART\nk.GappyKmers(6, 2)(X)",
    "Mismatch": "X = strings(6_000, 1_000)\nSTART\nk.Mismatch(5, 1, alphabet=8)(X)",
    "WeightedDegree": "X = strings(6_000, 1_000)\nSTART\nk.WeightedDegree(6, shift=200)(X)",
    "BagOfWords": "X = strings(20_000, 2_000)\nSTART\nk.BagOfWords(r'\\w')(X)",
    "ShortestPath": "X = graphs(100, 600) * 4\nSTART\nk.ShortestPath()(X)",
    "ShortestPath, one graph": "X = graphs(1, 8_000)\nSTART\nk.ShortestPath()(X)",
    "WeisfeilerLehman": "X = graphs(100, 2_000) * 4\nSTART\nk.WeisfeilerLehman(80)(X)",
    "Graphlet": "X = graphs(10, 8_000) * 4\nSTART\nk.Graphlet(5)(X)",
    "Graphlet, one graph": "X = graphs(1, 100_000)\nSTART\nk.Graphlet(5)(X)",
    "Graphlet, samples of one graph": "X = graphs(1, 1_000)\nSTART\nk.Graphlet(5, samples=100_000_000, seed=1)(X)",
    "Graphlet, samples": "X = graphs(20, 1_000)\nSTART\nk.Graphlet(5, samples=3_000_000, seed=1)(X)",
    "Propagation": "X = graphs(10, 8_000) * 4\nSTART\nk.Propagation(0.01, 300, 'labels')(X)",
    "RandomWalk": "X = graphs(400, 80)\nSTART\nk.RandomWalk(0.01)(X)",
    "Subtree": "X = trees(2_000, 300) * 4\nSTART\nk.Subtree()(X)",
    "SubsetTree": "X = trees(4_000, 100)\nSTART\nk.SubsetTree(0.4)(X)",
    "PartialTree": "X = trees(4_000, 100)\nSTART\nk.PartialTree(0.4)(X)",
    "GlobalAlignment": "X = arrays(3_000, 100, 2)\nSTART\nk.GlobalAlignment(1.0)(X)",
    "DynamicTimeWarping": "X = arrays(3_000, 100, 2)\nSTART\nk.DynamicTimeWarping()(X)",
    "Elementwise": "X = arrays(12_000, 500, 2)\nSTART\nk.Elementwise(k.RBF(1.0))(X)",
    "Signature": "X = arrays(3_000, 500, 3)\nSTART\nk.Signature(7, time=0.0)(X)",
    "SignaturePDE": "X = arrays(3_000, 100, 2)\nSTART\nk.SignaturePDE(0.1)(X)",
    "SetOf": "X = arrays(6_000, 40, 3)\nSTART\nk.SetOf(k.RBF(1.0))(X)",
    "SetOf, two bags": "X = arrays(2, 300_000, 3)\nSTART\nk.SetOf(k.RBF(1.0))(X)",
    "PyramidMatch": "X = arrays(20_000, 60, 3)\nSTART\nk.PyramidMatch(1e-4, levels=16)(X)",
    "SpatialPyramid": "X = arrays(2_000, 100, 100)\nSTART\nk.SpatialPyramid(6)(X)",
    "ConvolutionalPatches": "X = arrays(1_500, 40, 40)\nSTART\nk.ConvolutionalPatches()(X)",
    "ConvolutionalPatches, two images": "X = arrays(2, 700, 700)\nSTART\nk.ConvolutionalPatches()(X)",
}  # fmt: skip

EVERYDAY, MORE = ["KernelPCA"], ["GaussianProcessOrdinalRegression, restarts", "SVR"]


@pytest.fixture(scope="module")
def prepared() -> Iterator[subprocess.Popen[bytes]]:
    # Without buffers, so that a line that has not been read yet can be waited for.
    with subprocess.Popen(
        [sys.executable, "-c", _PREPARED], stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0
    ) as process:
        yield process
        process.kill()


def _seconds(pid: int) -> dict[str, float]:
    """The processor time of each thread so far; nothing of a process that has ended."""
    results: dict[str, float] = {}
    try:
        paths = list(Path(f"/proc/{pid}/task").glob("*/stat"))
    except FileNotFoundError:
        # It ended while its folder was read.
        return results
    for path in paths:
        try:
            # After the name, which may have blanks: the state, and as the 12th and 13th field user and system time.
            fields = path.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if fields[0] not in "ZX":
            results[path.parent.name] = (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    return results


def _after_ctrl_c(prepared: subprocess.Popen[bytes], folder: Path, work: str, delay: float) -> float:
    """The processor time of the busiest thread from Ctrl-C, sent that long after ``START``, to the end."""
    assert prepared.stdin is not None and prepared.stdout is not None
    out, err = folder / "out", folder / "err"
    out.touch()
    case = work.replace("START", "print('START', flush=True)"), str(out), str(err)
    prepared.stdin.write(f"{case!r}\n".encode())
    pid = int(prepared.stdout.readline())
    # The next line is the exit code. Before that is asked for, the number is given to no other process.
    ended = select.epoll()
    ended.register(prepared.stdout, select.EPOLLIN)
    try:
        while out.read_text() != "START\n" and not ended.poll(0.02):
            pass
        first = sum(_seconds(pid).values())
        while sum(_seconds(pid).values()) < first + delay and not ended.poll(0.02):
            pass
        if ended.poll(0):
            assert "END" in out.read_text(), err.read_text()[-2000:]
            pytest.skip(f"all the work takes less than {delay} s on this machine")
        before = after = _seconds(pid)
        os.kill(pid, signal.SIGINT)
        until = time.monotonic() + 120
        while not ended.poll(0.01) and time.monotonic() < until:
            after = _seconds(pid) or after
        assert ended.poll(0), f"two minutes after Ctrl-C it is still at work: {after}"
    finally:
        if not ended.poll(0):
            os.kill(pid, signal.SIGKILL)
        code = int(prepared.stdout.readline())
        ended.close()
    assert "END" not in out.read_text(), "it ended in spite of Ctrl-C"
    assert err.read_text().rstrip().endswith("KeyboardInterrupt") and code != 0, err.read_text()[-2000:]
    return max(after[thread] - before.get(thread, 0.0) for thread in after)


@pytest.mark.parametrize("case", [*EVERYDAY, *(pytest.param(case, marks=pytest.mark.slow) for case in MORE)])
def test_ctrl_c_ends_a_fit(prepared: subprocess.Popen[bytes], tmp_path: Path, case: str) -> None:
    assert _after_ctrl_c(prepared, tmp_path, FITS[case], EARLY) <= PATIENCE


@pytest.mark.slow
@pytest.mark.parametrize(("case", "delay"), list(zip(FITS, itertools.cycle([0.5, 2.0]), strict=False)))
def test_ctrl_c_ends_every_fit_at_any_time(
    prepared: subprocess.Popen[bytes], tmp_path: Path, case: str, delay: float
) -> None:
    assert _after_ctrl_c(prepared, tmp_path, FITS[case], delay) <= PATIENCE


@pytest.mark.slow
@pytest.mark.parametrize("case", MATRICES)
def test_ctrl_c_ends_every_matrix(prepared: subprocess.Popen[bytes], tmp_path: Path, case: str) -> None:
    assert _after_ctrl_c(prepared, tmp_path, MATRICES[case], DELAY / 2) <= PATIENCE


def test_every_learner_is_in_the_sweep() -> None:
    names = {type(case.values[0]).__name__ for case in ALL}
    assert names <= {case.partition(",")[0] for case in FITS}
