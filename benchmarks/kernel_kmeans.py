"""``KernelKMeans.fit`` against tslearn's kernel k-means and scikit-learn's k-means; mnist and a million rows in 4 GiB.

Large fits run in processes of their own, whose peak is that of the resident set (on Linux). Run as a script with a name
and a number it takes so many rows for that one, for a trial.
"""

from __future__ import annotations

import importlib
import json
import subprocess
import sys
import warnings
from pathlib import Path

import numpy as np
from sklearn.cluster import KMeans
from sklearn.exceptions import ConvergenceWarning

import mercer
from harness import Row, data_folder, in_turn, peak_so_far, seconds_of, tell
from mercer import KernelKMeans

TITLE = "KernelKMeans.fit"
N, D, K, ITERATIONS, GAMMA = 3000, 10, 5, 20, 0.05
# How many times as fast as tslearn it has to be.
LEAST = 5.0
REPEATS = 5
BUDGET = 4 * 2**30
IMAGES, MANY, LANDMARKS = 60_000, 1_000_000, 300


def problem(n: int, d: int, k: int, spread: float = 0.3) -> np.ndarray:
    """Rows around k centres that overlap, so that many iterations are needed; less if these are spread."""
    rng = np.random.default_rng(0)
    rows: np.ndarray = spread * rng.normal(size=(k, d))[rng.integers(k, size=n)] + rng.normal(size=(n, d))
    return rows


def against_tslearn() -> Row:
    """The same partition to start from, and the same number of iterations."""
    with warnings.catch_warnings():
        # h5py is for files of its models.
        warnings.simplefilter("ignore")
        # Benchmarks of other estimators need no tslearn.
        Peer = importlib.import_module("tslearn.clustering").KernelKMeans
    X = problem(N, D, K)
    start = np.random.RandomState(0).randint(K, size=N)
    ours = KernelKMeans(K, kernel="rbf", gamma=GAMMA, init=start, max_iter=ITERATIONS)
    # With tol=0 no two inertias are equal enough.
    peer = Peer(K, kernel="rbf", kernel_params={"gamma": GAMMA}, max_iter=ITERATIONS, tol=0, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        times = in_turn({"ours": lambda: ours.fit(X), "peer": lambda: peer.fit(X[:, :, None])}, REPEATS)
        ours.fit(X)
        theirs = KernelKMeans(K, kernel="rbf", gamma=GAMMA, init=peer.labels_, max_iter=1).fit(X)
    note = (
        f"{ours.n_iter_} and {peer.n_iter_} iterations; inertia {ours.inertia_:.3f}, of tslearn's labels "
        f"{theirs.inertia_history_[0]:.3f} (it leaves out the norms of the means)"
    )
    met = times["peer"] >= LEAST * times["ours"] and ours.n_iter_ == peer.n_iter_ == ITERATIONS
    case = f"RBF, n = {N:,}, {K} clusters, {ITERATIONS} iterations"
    return Row(case, "tslearn", times["ours"], times["peer"], f">= {LEAST:g}", met, note)


def against_scikit_learn() -> Row:
    """The linear kernel: the same clusters."""
    X = problem(50_000, 20, 10, spread=0.8)
    ours = KernelKMeans(10, kernel="linear", init=X[:10], max_iter=50)
    peer = KMeans(10, init=X[:10], n_init=1, tol=0, max_iter=50)
    times = in_turn({"ours": lambda: ours.fit(X), "peer": lambda: peer.fit(X)}, REPEATS)
    ours.fit(X)
    same = float((ours.labels_ == peer.labels_).mean())
    note = f"{ours.n_iter_} and {peer.n_iter_} iterations; {100 * same:.2f} % of the labels are the same"
    return Row(
        "linear, n = 50,000, d = 20, 10 clusters",
        "scikit-learn",
        times["ours"],
        times["peer"],
        "the same labels",
        same == 1.0,
        note,
    )


def fit_here(name: str, n: int) -> dict[str, float]:
    """Fit in this process: seconds, its peak, and what became of it."""
    if name == "mnist":
        folder = data_folder()
        assert folder is not None
        with np.load(folder / "classification" / "mnist.npz") as archive:
            X = archive["X"][:n].reshape(n, -1).astype(np.float32) / np.float32(255)
        model = KernelKMeans(10, gamma=0.02, random_state=0)
    else:
        X = problem(n, 20, 10, spread=1.0).astype(np.float32)
        model = KernelKMeans(10, gamma=0.02, approximation="nystroem", n_landmarks=LANDMARKS, random_state=0)
    with mercer.config(memory=BUDGET), warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(X[:1000])
        seconds = seconds_of(lambda: model.fit(X))
    certificate = model.certificate_
    return {
        "seconds": seconds,
        "peak": float(peak_so_far()),
        "iterations": float(model.n_iter_),
        "rows": float(n),
        "inertia": model.inertia_,
        "violation": certificate.kkt_violation,
        "reserved": float(certificate.peak_bytes),
    }


def large(name: str, case: str, n: int) -> Row:
    """One row of the table for a fit in a process of its own."""
    tell(f"  {case}")
    command = [sys.executable, str(Path(__file__).resolve()), name, str(n)]
    result = json.loads(subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout)
    note = (
        f"{result['iterations']:.0f} iterations, peak of the process {result['peak'] / 2**30:.2f} GiB, reserved "
        f"{result['reserved'] / 2**30:.2f} GiB, violation {result['violation']:.0e}, inertia {result['inertia']:.6g}"
    )
    return Row(case, "", result["seconds"], None, "within 4 GiB", result["peak"] <= BUDGET, note, result)


def run() -> list[Row]:
    """All rows of the section."""
    rows = [against_tslearn(), against_scikit_learn()]
    rows.append(large("many", f"Nyström, n = {MANY:,}, d = 20, {LANDMARKS} landmarks, 10 clusters", MANY))
    if data_folder() is not None:
        rows.append(large("mnist", f"RBF, mnist, n = {IMAGES:,}, 10 clusters, float32 rows", IMAGES))
    return rows


if __name__ == "__main__":
    if len(sys.argv) == 3:
        print(json.dumps(fit_here(sys.argv[1], int(sys.argv[2]))))
    else:
        for row in run():
            print(row)
