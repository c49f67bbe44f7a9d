"""``KernelLogisticRegression.fit`` of ten classes against ``KernelRidge.fit`` of the same rows, kernel and size.

The rows are the first 10,000 of mnist, and generated ones, which need no files. Run as a script with a number it takes
so many rows, for a trial.
"""

from __future__ import annotations

import sys

import numpy as np

from harness import Row, data_folder, in_turn
from mercer import KernelLogisticRegression, KernelRidge

TITLE = "KernelLogisticRegression.fit, ten classes, RBF, n = 10,000"
N, GAMMA = 10_000, 0.02
COSTS = (1.0, 10.0, 100.0)
MOST = 6.0
GAP = 1e-6
REPEATS = 3


def generated(n: int) -> tuple[np.ndarray, np.ndarray]:
    """Rows of 50 columns; the class is the largest of ten waves, with noise."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 50))
    waves = np.sin(X @ rng.normal(size=(50, 10)) / np.sqrt(10)) + 0.3 * rng.normal(size=(n, 10))
    return X, waves.argmax(axis=1)


def mnist(n: int) -> tuple[np.ndarray, np.ndarray] | None:
    """Images, values from 0 to 1; None without the data."""
    folder = data_folder()
    if folder is None:
        return None
    archive = np.load(folder / "classification" / "mnist.npz")
    return archive["X"][:n].astype(np.float64) / 255.0, archive["y"][:n]


def _row(name: str, X: np.ndarray, y: np.ndarray, C: float) -> Row:
    ours = KernelLogisticRegression(C=C, kernel="rbf", gamma=GAMMA)
    ridge = KernelRidge(kernel="rbf", gamma=GAMMA, alpha=1.0)
    numbers = np.unique(y, return_inverse=True)[1].astype(np.float64)
    small = slice(None, 500)
    times = in_turn(
        {"ours": lambda: ours.fit(X, y), "ridge": lambda: ridge.fit(X, numbers)},
        repeats=REPEATS,
        warm_up=lambda who: ours.fit(X[small], y[small]) if who == "ours" else ridge.fit(X[small], numbers[small]),
    )
    certificate = ours.certificate_
    times_ridge = times["ours"] / times["ridge"]
    note = (
        f"{times_ridge:.1f} times; {certificate.iterations} Newton steps, relative gap {certificate.relative_gap:.0e}, "
        f"peak {certificate.peak_bytes / 2**20:.0f} MiB"
    )
    met = times_ridge <= MOST and certificate.relative_gap <= GAP
    facts = {"times_ridge": times_ridge, "steps": float(certificate.iterations), "gap": certificate.relative_gap}
    return Row(
        f"{name}, C = {C:g}",
        "KernelRidge.fit",
        times["ours"],
        times["ridge"],
        f"<= {MOST:g} times its time",
        met,
        note,
        facts,
    )


def run(n: int = N) -> list[Row]:
    """All rows of the section."""
    rows = []
    for name, data in (("generated, d = 50", generated(n)), ("mnist, d = 784", mnist(n))):
        if data is not None:
            rows += [_row(name, *data, C) for C in COSTS]
    return rows


if __name__ == "__main__":
    for row in run(int(sys.argv[1]) if len(sys.argv) > 1 else N):
        print(row)
