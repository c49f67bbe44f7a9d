"""Learners on a kernel matrix that is given, against scikit-learn's on the same matrix; strings against both steps.

Times are CPU seconds of the whole process: what the peers do on one thread is compared with all that ours do.
Scikit-learn's Gaussian processes take no matrix, but a kernel that looks its values up in one; its neighbours take the
distances that belong to the matrix. It has no peer of KernelKMeans and KernelLogisticRegression on a matrix.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import sklearn.svm as peers
from sklearn.datasets import load_digits
from sklearn.decomposition import KernelPCA as PeerPCA
from sklearn.gaussian_process import GaussianProcessClassifier as PeerGPC
from sklearn.gaussian_process import GaussianProcessRegressor as PeerGPR
from sklearn.gaussian_process.kernels import Kernel
from sklearn.kernel_ridge import KernelRidge as PeerRidge
from sklearn.neighbors import KNeighborsClassifier
from threadpoolctl import threadpool_limits

import mercer
from harness import Row, tell
from mercer.kernels import RBF, Spectrum

TITLE = 'kernel="precomputed", digits, 1,797 rows, CPU time'
LEAST, REPEATS = 1.0, 5
GIVEN: dict[str, Any] = {"kernel": "precomputed"}


class Stored(Kernel):
    """The values of a matrix, for rows that are positions in it."""

    def __init__(self, K: np.ndarray) -> None:
        self.K = K

    def __call__(self, X: np.ndarray, Y: np.ndarray | None = None, eval_gradient: bool = False) -> np.ndarray:
        """A copy of the whole matrix, whatever the rows: the benchmark asks for nothing else."""
        return self.K.copy()

    def diag(self, X: np.ndarray) -> np.ndarray:
        return self.K.diagonal()[X[:, 0].astype(int)]

    def is_stationary(self) -> bool:
        return False


def problem(copies: int = 1) -> tuple[np.ndarray, np.ndarray]:
    """The Gram matrix of the digits, of further copies with noise, with the default width, and their labels."""
    X, y = load_digits(return_X_y=True)
    rng = np.random.default_rng(0)
    order = np.concatenate([rng.permutation(len(y)) for _ in range(copies)])
    X = X[order] / 16.0
    X[len(y) :] += 0.05 * rng.normal(size=X[len(y) :].shape)
    return RBF.from_gamma(1.0 / (X.shape[1] * X.var()))(X), y[order]


def cpu_in_turn(contenders: dict[str, Callable[[], Any]]) -> dict[str, float]:
    """Median CPU seconds of each, taken in turn."""
    seconds: dict[str, list[float]] = {name: [] for name in contenders}
    for turn in range(REPEATS + 1):
        for name, work in contenders.items():
            start = time.process_time()
            work()
            if turn:
                seconds[name].append(time.process_time() - start)
    return {name: statistics.median(values) for name, values in seconds.items()}


def case(
    name: str,
    ours: Any,
    peer: Any,
    K: np.ndarray,
    y: np.ndarray,
    theirs: np.ndarray | None = None,
    label: str = "scikit-learn",
) -> list[Row]:
    """Rows of the fit and of the prediction for the same matrix; ``theirs`` is what the peer takes in its place."""
    tell(name)
    steps = ("fit", "predict") if hasattr(ours, "predict") else ("fit",)
    rows = []
    for step in steps:
        contenders = {"ours": _work(ours, step, K, y)}
        if peer is not None:
            contenders["peer"] = _work(peer, step, K if theirs is None else theirs, y)
        with threadpool_limits(1, "blas"):
            times = cpu_in_turn(contenders)
        seconds = times.get("peer")
        met = seconds is None or seconds >= LEAST * times["ours"]
        demand = "none" if seconds is None else f">= {LEAST:g}"
        rows.append(Row(f"{name}, {step}", "none" if peer is None else label, times["ours"], seconds, demand, met))
    return rows


def _work(learner: Any, step: str, X: np.ndarray, y: np.ndarray) -> Callable[[], Any]:
    arguments = (X, y) if step == "fit" else (X,)
    return lambda: getattr(learner, step)(*arguments)


def strings() -> Row:
    """A fit to strings, against the Gram matrix by our kernel and the peer's fit to it."""
    tell("strings")
    rng = np.random.default_rng(0)
    y = rng.integers(0, 4, 600)
    letters = [rng.dirichlet(np.ones(4)) for _ in range(4)]
    texts = ["".join(rng.choice(list("acgt"), 200, p=letters[label])) for label in y]
    kernel = Spectrum(4).normalized()
    with threadpool_limits(1, "blas"):
        times = cpu_in_turn(
            {
                "ours": lambda: mercer.SVC(kernel=kernel).fit(texts, y),
                "peer": lambda: peers.SVC(**GIVEN).fit(kernel(texts), y),
            }
        )
    met = times["peer"] >= LEAST * times["ours"]
    return Row("SVC, 600 strings, Spectrum(4)", "Gram, scikit-learn", *times.values(), f">= {LEAST:g}", met)


def run() -> list[Row]:
    """All rows of the section."""
    K, y = problem()
    two = np.where(y % 2 == 0, 1, -1)
    target = np.sin(y) + 0.1 * np.random.default_rng(0).normal(size=len(y))
    fixed: dict[str, Any] = {"optimizer": None, **GIVEN}
    distances, positions = np.sqrt(np.maximum(2.0 - 2.0 * K, 0.0)), np.arange(len(K), dtype=np.float64)[:, None]
    same = (
        ("SVC, ten classes", mercer.SVC(**GIVEN), peers.SVC(**GIVEN), y),
        ("SVC, two classes", mercer.SVC(**GIVEN), peers.SVC(**GIVEN), two),
        ("NuSVC, ten classes", mercer.NuSVC(nu=0.1, **GIVEN), peers.NuSVC(nu=0.1, **GIVEN), y),
        ("SVR", mercer.SVR(**GIVEN), peers.SVR(**GIVEN), target),
        ("NuSVR", mercer.NuSVR(**GIVEN), peers.NuSVR(**GIVEN), target),
        ("OneClassSVM", mercer.OneClassSVM(nu=0.1, **GIVEN), peers.OneClassSVM(nu=0.1, **GIVEN), target),
        ("KernelRidge", mercer.KernelRidge(0.1, **GIVEN), PeerRidge(0.1, **GIVEN), target),
        ("KernelPCA, ten components", mercer.KernelPCA(10, **GIVEN), PeerPCA(10, **GIVEN), target),
        ("KernelLogisticRegression, two classes", mercer.KernelLogisticRegression(**GIVEN), None, two),
        ("KernelKMeans, ten clusters", mercer.KernelKMeans(10, n_init=1, random_state=0, **GIVEN), None, y),
    )
    other = (
        (
            "KernelNeighborsClassifier",
            mercer.KernelNeighborsClassifier(**GIVEN),
            KNeighborsClassifier(metric="precomputed"),
            y,
            distances,
            "scikit-learn, distances",
        ),
        (
            "GaussianProcessRegressor",
            mercer.GaussianProcessRegressor(alpha=0.1, **fixed),
            PeerGPR(Stored(K), alpha=0.1, optimizer=None),
            target,
            positions,
            "scikit-learn, a stored kernel",
        ),
        (
            "GaussianProcessClassifier, two classes",
            mercer.GaussianProcessClassifier(**fixed),
            PeerGPC(Stored(K), optimizer=None, copy_X_train=False),
            two,
            positions,
            "scikit-learn, a stored kernel",
        ),
    )
    rows = [row for name, ours, peer, labels in same for row in case(name, ours, peer, K, labels)]
    for name, ours, peer, labels, theirs, label in other:
        rows += case(name, ours, peer, K, labels, theirs, label)
    K, y = problem(2)
    return [*rows, *case("SVC, ten classes, 3,594 rows", mercer.SVC(**GIVEN), peers.SVC(**GIVEN), K, y), strings()]


if __name__ == "__main__":
    for row in run():
        print(row)
